"""Are the bounds of rows those that a statement leaves, where it says itself how many of a unit there are?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.analysis.analyse import Lowered
from proxy.plan.profile.left_out import COMPLETE, Untold
from tests.unit.plan.shop import context, plan

NUMBER = "row_number() over (partition by user_id order by made desc)"


def placed(condition: str, number: str = NUMBER, group: str = "status") -> str:
    rows = f"select user_id, status, order_id, amount, {number} as r from orders"
    return f"select {group}, count(*) from ({rows}) t where {condition} group by 1"


LAST = (
    "select status, count(*) from (select distinct on (user_id) user_id, status from orders order by user_id, made) t"
    " group by 1"
)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [(LAST, 1), (placed("r = 1"), 1), (placed("r <= 3"), 3), (placed("r between 2 and 3"), 2),
     (placed("r in (1, 2)"), 2)],
)  # fmt: skip
def test_the_first_rows_of_each_unit_are_as_many_as_are_asked_for(sql: str, rows: int) -> None:
    found = plan(sql)
    bounds = found.analysed.bounds
    assert (bounds.rows, bounds.rows_per_group, bounds.groups) == (rows, rows, min(rows, 3))
    assert bounds.is_implied
    assert bounds.source == "by the statement"
    assert found.left_out == COMPLETE


def test_a_unit_with_few_rows_has_no_more_unlisted_groups() -> None:
    few, many = (plan(placed(c, group="order_id")).analysed.bounds.keys for c in ("r = 1", "r > 0"))
    assert (few, many) == (1, plan("select order_id, count(*) from orders group by 1").analysed.bounds.keys)
    assert many > 1


@pytest.mark.parametrize(
    "sql",
    [placed("r > 0"), placed("r >= 5"), placed("r = 60"),
     placed("r = 1", "rank() over (partition by user_id order by made)"),
     placed("r = 1", "row_number() over (partition by user_id, store_id order by made)"),
     placed("r = 1", "count(*) over (partition by user_id)"),
     "select v.n, count(*) from (select user_id, " + NUMBER + " as r from orders) t join (values (1), (2)) v(n)"
     " on t.r >= v.n where t.r = 1 group by 1"],
)  # fmt: skip
def test_where_more_may_be_left_the_policy_says_how_many_count(sql: str) -> None:
    found = plan(sql)
    assert not found.analysed.bounds.is_implied
    assert isinstance(found.left_out, Untold)


def test_what_a_client_lowers_may_leave_rows_out() -> None:
    for lowered in (Lowered(rows_per_group=1), Lowered(groups=1)):
        found = plan(placed("r <= 2"), replace(context(), lowered=lowered))
        assert found.analysed.bounds.rows == 2
        assert isinstance(found.left_out, Untold)


def test_one_row_for_each_threshold_is_no_row_that_is_left_out() -> None:
    steps = "select v.t, count(*) from users u join (values (20), (40), (60)) v(t) on u.age >= v.t group by 1"
    found = plan(steps)
    bounds = found.analysed.bounds
    assert (bounds.rows, bounds.rows_per_group) == (3, 1)
    assert bounds.is_implied
    assert found.left_out == COMPLETE
    several = steps.replace("users u", "orders u").replace("u.age", "u.store_id")
    assert isinstance(plan(several).left_out, Untold)
