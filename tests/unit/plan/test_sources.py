"""What does EXPLAIN say of the errors of an estimate, and how are moments of cells put together?"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from proxy.plan.profile.bound_choice import FROM_POLICY
from proxy.plan.profile.usual import Usual
from proxy.plan.release_plan import ReleasePlan, plan_release
from proxy.plan.reuse.derive import derive
from proxy.plan.sql.unit_totals import possible_totals
from proxy.plan.vector.recipes import Count, Mean, Spread, Total, response_of
from proxy.plan.words.sources import error_sources
from proxy.policy.model import Bounded
from proxy.sql.relations.scope import Catalog
from tests.unit.plan.shop import with_bounds
from tests.unit.plan.survey import TABLES, of_survey
from tests.unit.release.make import bound

CATALOG = Catalog(TABLES)


def planned(query: str, *, pure: bool = False) -> ReleasePlan:
    return plan_release(bound(query, CATALOG).block, of_survey(pure=pure))


def test_both_sources_are_named_and_which_dominates() -> None:
    plan = planned("select count(*) filter (where smokes), count(*) from people")
    ((aggregate, words),) = error_sources(plan)
    assert "smokes" in aggregate
    p, q = 0.875, 0.125
    row_sd = math.sqrt(p * (1 - p)) / (p - q)
    assert response_of(plan.vector.finishes[0]).row_sd == pytest.approx(row_sd)
    assert "the randomization dominates from" in words


def test_a_profile_tells_which_dominates() -> None:
    plan = planned("select count(*) filter (where smokes) from people")
    for rows, which in ((1.0, "the noise"), (10_000.0, "the randomization")):
        ((_, words),) = error_sources(replace(plan, usual=Usual(rows, rows, (rows,), 1)))
        assert words.endswith(f"{which} dominates")


def test_where_nobody_counts_there_is_one_source() -> None:
    ((_, words),) = error_sources(planned("select count(*) filter (where vote = 'z') from people"))
    assert "dominates" not in words


@pytest.mark.parametrize("query", ["select {} from people", "select plan, {} from people group by 1"])
def test_the_noise_of_stored_numbers_is_a_source(query: str) -> None:
    for aggregate in ("sum(pay)", "avg(pay)", "sum(pay) filter (where plan = 'pro')"):
        plan = planned(query.format(aggregate))
        assert response_of(plan.vector.finishes[0]).row_sd == pytest.approx(10.0 * math.sqrt(2.0))
        ((_, words),) = error_sources(plan)
        assert "the randomization dominates from" in words


def test_variances_and_counts_of_units_have_two_sources() -> None:
    """A deviation is off by what the variance is, as far as it moves it where values spread evenly."""
    variance, deviation = (
        response_of(planned(f"select {kind}(pay) from people").vector.finishes[0]).row_sd
        for kind in ("var_pop", "stddev")
    )
    half = 135.0
    assert deviation == pytest.approx(variance / (2.0 * half / math.sqrt(3.0)), rel=1e-9)
    counted = "(select id, count(*) filter (where paid) as c from visits group by id) as t"
    for query in ("select stddev(smokes::int), var_pop(pay) from people", f"select avg(c), sum(c) from {counted}"):
        found = error_sources(planned(query))
        assert len(found) == 2
        assert all("the randomization dominates from" in words for _, words in found)


def test_groups_have_more_noise_than_their_cells() -> None:
    ((_, by_key),) = error_sources(planned("select vote, count(*) from people group by 1"))
    assert "noise of the release sd" in by_key


@pytest.mark.parametrize("pure", [False, True])
def test_a_row_weighs_as_if_there_were_no_condition(pure: bool) -> None:
    """Cells exclude each other, so that the noise of an estimate is that of a count, times its weights."""
    for query in ("ill", "ill and smokes", "vote in ('a', 'b')", "mood is null or mood = 'bad'"):
        plan = planned(f"select count(*) filter (where {query}) from people", pure=pure)
        largest = max(plan.allocation.weights)
        assert plan.allocation.row_norm == pytest.approx(largest)
        assert plan.allocation.unit_norm >= plan.allocation.row_norm
        assert len(set(plan.allocation.weights)) == 1


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(
    ("aggregate", "kind", "parts"),
    [
        ("count(*)", Count, 1), ("count(age)", Count, 1), ("sum(age)", Total, 1), ("avg(size)", Mean, 3),
        ("sum(case when smokes then 2 end)", Total, 1), ("avg(smokes::int)", Mean, 3), ("sum(0 * size)", Total, 1),
        ("var_pop(size)", Spread, 3), ("stddev(smokes::int)", Spread, 3), ("variance(0 * size)", Spread, 3),
        ("var_samp(case vote when 'a' then 3 when 'b' then 1 else 0 end)", Spread, 6),
    ],
)  # fmt: skip
def test_each_estimate_knows_its_own_error(aggregate: str, kind: type, parts: int, pure: bool) -> None:
    (found,) = planned(f"select {aggregate} filter (where ill) from people", pure=pure).vector.finishes
    assert isinstance(found, kind)
    assert len(response_of(found).parts) == parts


def test_what_nobody_passes_has_no_average() -> None:
    nobody = "avg(size) filter (where vote = 'z'), avg(case when vote = 'z' then 1 end)"
    found, other, of_values, of_constants = planned(
        f"select {nobody}, {nobody.replace('avg', 'stddev')} from people"
    ).vector.finishes
    assert isinstance(found, Mean)
    assert isinstance(other, Mean)
    assert isinstance(of_values, Spread)
    assert isinstance(of_constants, Spread)
    assert found.number.terms == of_values.number.terms == of_constants.number.terms == ()


def test_estimates_are_not_computed_from_other_answers() -> None:
    fine = planned("select vote, plan, count(*) from people group by 1, 2")
    coarse = planned("select plan, count(*) from people group by 1")
    assert derive(coarse, (fine,), 10.0) == ()
    assert derive(fine, (fine,), 10.0) == ()


def test_no_total_of_a_unit_is_clipped_for_an_estimate() -> None:
    tables = {**TABLES, "visits": with_bounds(TABLES["visits"], "cost", Bounded(0, 60))}
    for query, many in (("sum(cost)", 1), ("sum(cost) filter (where paid)", 0)):
        block = bound(f"select {query} from visits", Catalog(tables)).block
        plan = plan_release(block, replace(of_survey(), tables=tables))
        assert len(possible_totals(plan.analysed)) == many
        assert plan.bound == FROM_POLICY
