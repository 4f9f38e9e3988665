"""What is planned for local tables, about which the dataset promises nothing?"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.errors import Unsupported
from proxy.plan.charge import Cost, Unpromised
from proxy.plan.release_plan import AllKeys, KeysOfRows, ReleasePlan, plan_release
from proxy.plan.sets.sets import plan_block, promised, unpromised
from proxy.plan.unpromised import local_table, plan_unpromised, protected_words, ticket_of
from proxy.plan.words.explain_sets import explain_plan, output_noises, plan_lines
from proxy.plan.words.outputs import NO_NOISE
from proxy.policy.model import Privacy
from proxy.sql.relations.scope import Catalog
from tests.unit.plan.survey import ANSWERS, WITH_LOCAL, of_local
from tests.unit.release.make import bound

CATALOG = Catalog(WITH_LOCAL)


def plan(query: str, *, pure: bool = False) -> ReleasePlan:
    found = plan_block(bound(query, CATALOG).block, of_local(pure=pure))
    assert isinstance(found, ReleasePlan)
    return found


@pytest.mark.parametrize("pure", [False, True])
def test_local_tables_have_no_noise_and_cost_nothing(pure: bool) -> None:
    found = plan("select plan, count(*), sum(size), avg(pay) from answers where ill group by plan", pure=pure)
    assert found.is_unpromised
    assert found.cost == Cost(0, 0)
    assert set(found.sds) == {0.0}
    assert not found.parts
    assert not found.key_rules
    assert {o.mechanism for o in output_noises(found)} == {NO_NOISE}
    assert "salt" not in found.sql
    assert plan("select count(*) from answers").fingerprint != plan("select count(*) from people").fingerprint


def test_groups_nobody_listed_are_those_of_rows() -> None:
    assert plan("select plan, count(*) from answers group by plan").selection == AllKeys()
    assert plan("select city, plan, count(*) from answers group by city, plan").selection == KeysOfRows()
    without_delta = replace(of_local(), privacy=Privacy(unit="person", delta=0.0, delta_pool=0.0))
    found = plan_block(bound("select city, count(*) from answers group by city", CATALOG).block, without_delta)
    assert isinstance(found, ReleasePlan)
    assert found.selection == KeysOfRows()


def test_there_is_a_ticket_only_for_what_reads_nothing_promised() -> None:
    local, central = plan("select count(*) from answers"), plan("select count(*) from people")
    assert ticket_of(local) == Unpromised(local.sql)
    assert ticket_of(local).further == ()
    assert local_table(local) == ANSWERS
    assert (promised([local, central]), unpromised([local, central])) == ((central,), (local,))
    mixed = replace(local, analysed=central.analysed)
    noisy = plan_release(bound("select count(*) from answers", CATALOG).block, of_local())
    assert noisy.cost.pico > 0
    for one in (central, mixed, noisy):
        with pytest.raises(AssertionError, match="reads what is promised"):
            ticket_of(one)


@pytest.mark.parametrize("aggregate", [
    "count(distinct city)", "min(age)", "max(age)", "percentile_cont(0.5) within group (order by age)",
    "percentile_disc(0.5) within group (order by age)", "mode() within group (order by plan)",
])  # fmt: skip
def test_what_is_no_sum_is_refused_with_a_statement_that_works(aggregate: str) -> None:
    with pytest.raises(Unsupported) as refused:
        plan(f"select {aggregate} from answers")
    assert "over a local table is not supported" in refused.value.message
    instead = re.search(r"SELECT .* AS g", refused.value.hint)
    assert instead is not None
    assert plan(instead[0]).is_unpromised


def test_grouping_sets_are_asked_one_by_one() -> None:
    with pytest.raises(Unsupported, match="grouping sets over a local table") as refused:
        plan_unpromised(bound("select plan, count(*) from answers group by rollup (plan)", CATALOG).block, of_local())
    assert "costs nothing" in refused.value.hint


def test_what_protects_a_row_is_said_in_what_it_is_known_in() -> None:
    pure = Privacy(unit="person")
    assert re.fullmatch(r"epsilon [\d.]+ for each row", protected_words(ANSWERS, pure))


def test_explain_says_what_protects_and_how_far_off_it_is() -> None:
    found = plan("select city, plan, count(*) filter (where ill) from answers group by 1, 2")
    data = explain_plan(found, of_local().privacy)
    lines = "\n".join(plan_lines(data))
    for words in (
        "Answer about the local table answers, without noise", "Charge: none", "Protected when collected: epsilon",
        "city: public: every value that a row has is shown", "plan: public: every value is shown (2 values)",
        "Errors of count(*)", "randomization before storing sd at most", 'FROM "answers"',
    ):  # fmt: skip
        assert words in lines
    assert "noise of the release" not in lines
    assert data["charge"] == {"rho": 0.0, "delta": 0.0}
    pure = explain_plan(plan("select count(*) from answers", pure=True), of_local(pure=True).privacy)
    assert pure["charge"] == {"epsilon": 0.0, "delta": 0.0}
    assert MappingProxyType(data)["mechanism"] == "none"
