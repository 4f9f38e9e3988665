"""Which answers are expected to be lost, as far as profiles tell: before anything is charged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.dp.accounting import knob_pico
from proxy.plan.release_plan import Threshold
from proxy.plan.words.lost import lost_in
from tests.unit.plan.shop import any_plan, context, plan
from tests.unit.plan.test_kept import KNOWN
from tests.unit.plan.test_private_choice import OF
from tests.unit.plan.test_profile import ROWS

CHEAP = replace(KNOWN, pico=10**7)


def test_the_sizes_of_groups_follow_from_the_profile() -> None:
    usual = plan("select status, count(*), avg(amount), sum(amount) from orders group by status", KNOWN).usual
    assert usual is not None
    assert usual.groups == 3
    assert usual.rows == pytest.approx(sum(ROWS) / 3, rel=0.05)
    assert usual.sizes[0] == usual.sizes[1] == usual.rows
    usual = plan("select sum(amount), sum(amount) filter (where status = 'paid') from orders", KNOWN).usual
    assert usual is not None
    assert usual.sizes[0] == pytest.approx(sum(ROWS) * 50, rel=0.2), "a row is worth 50 here"
    assert usual.units == pytest.approx(len(ROWS), rel=0.05)


@pytest.mark.parametrize("query", ["select count(*) from orders", "select sum(amount) from orders"])
def test_nothing_is_expected_without_a_profile(query: str) -> None:
    found = plan(query, replace(context(), pico=1))
    assert found.usual is None
    assert lost_in((found,), context().privacy) == ()


def test_nothing_is_expected_of_no_groups() -> None:
    where = "status in ('paid') and status = 'none'"
    found = plan(f"select status, sum(amount) from orders where {where} group by 1", KNOWN)
    assert found.public_keys == ()
    assert found.usual is None
    assert lost_in((found,), KNOWN.privacy) == ()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select count(*) from orders where status = 'refunded' and amount > 990", ["count(*) is expected to be all"]),
        ("select status, count(*), avg(amount) from orders where amount > 990 and status = 'refunded' group by 1",
         ["count(*) is expected", "avg(amount) is expected to be all noise: of about"]),
        ("select percentile_disc(0.5) within group (order by amount) from orders where amount > 999.99",
         ["percentile_disc(0.5)"]),
        ("select status, count(*) from orders where amount > 990 and status = 'refunded' group by rollup (status)",
         ["count(*) is expected"]),  # of one status
        ("select count(*) from orders", []),
        ("select status, count(*), sum(amount), avg(amount) from orders group by 1", []),
    ],
)  # fmt: skip
def test_what_is_smaller_than_its_noise_is_expected_to_be_lost(query: str, words: list[str]) -> None:
    found = lost_in((any_plan(query, CHEAP),), CHEAP.privacy)
    assert len(found) == len(words)
    for one, word in zip(found, words, strict=True):
        assert word in one.what


def test_what_helps_is_an_epsilon_that_leaves_a_number_and_coarser_groups() -> None:
    query = "select status, count(*) from orders where amount between 990 and 990.5 group by status"
    (one,) = lost_in((any_plan(query, CHEAP),), CHEAP.privacy)
    assert "GROUP BY something coarser than status (3 values), or a WHERE that keeps more rows." in one.instead
    epsilon = float(one.instead.partition("hush.epsilon = ")[2].partition(",")[0])
    assert lost_in((any_plan(query, replace(CHEAP, pico=knob_pico(CHEAP.privacy, epsilon))),), CHEAP.privacy) == ()
    huge = replace(CHEAP, privacy=replace(CHEAP.privacy, max_query_epsilon=0.1))
    (other,) = lost_in((any_plan(query, huge),), huge.privacy)
    assert "hush.epsilon" not in other.instead


def test_groups_below_their_threshold_are_expected_not_to_be_shown() -> None:
    query = "select store_id, count(*) from orders group by 1"
    poor, rich = (plan(query, replace(OF, pico=pico)) for pico in (10**6, 10**13))
    assert isinstance(poor.selection, Threshold)
    (one,) = lost_in((poor,), OF.privacy)
    assert "are not shown" in one.what
    assert "GROUP BY something coarser than store_id" in one.instead
    assert lost_in((rich,), OF.privacy) == ()


def test_several_private_keys_tell_nothing() -> None:
    found = plan("select store_id, order_id, count(*) from orders group by 1, 2", OF)
    assert found.usual is None
