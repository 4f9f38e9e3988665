"""Which joins repeat rows of a unit, and what is said of them?"""

from __future__ import annotations

import pytest

from proxy.plan.words.explain_sets import explain_plan, plan_lines
from proxy.plan.words.repeats import repeated_rows
from proxy.session.answering.notices import repeat_notices
from tests.unit.plan.shop import any_plan, context

TWICE = "select count(*) from orders a join orders b on a.user_id = b.user_id"
PER_UNIT = "(select user_id, count(*) as n from orders group by user_id)"
INSTEAD = f"select sum(a.n * b.n) from {PER_UNIT} a join {PER_UNIT} b using (user_id)"
BY_STATUS = "(select user_id, status, count(*) as n from orders group by 1, 2)"


@pytest.mark.parametrize(
    "query",
    [
        TWICE,
        "select sum(a.amount) from orders a, orders b, users u where a.user_id = u.user_id and b.user_id = u.user_id",
        "select count(*) from orders a left join orders b on a.user_id = b.user_id",
        "select count(*) from items a, items b where a.order_id = b.order_id",
        f"select avg(o.amount) from orders o join {BY_STATUS} b using (user_id)",
        "select a.status, b.status, count(*) from orders a join orders b using (user_id) group by rollup (1, 2)",
        "select count(distinct a.status) from orders a join orders b using (user_id)",
    ],
)
def test_a_join_that_repeats_rows_is_named(query: str) -> None:
    assert repeated_rows(any_plan(query), "customer") is not None


@pytest.mark.parametrize(
    "query",
    [
        INSTEAD,
        "select count(*) from orders o join users u using (user_id)",
        "select count(*) from items i join orders o on i.order_id = o.order_id join users u on u.user_id = o.user_id",
        "select count(*) from orders o left join items i on i.order_id = o.order_id",
        "select count(*) from orders a join orders b on a.order_id = b.order_id and a.user_id = b.user_id",
        "select count(distinct a.user_id) from orders a join orders b on a.user_id = b.user_id",
        "select count(*) from orders o join stores s on o.store_id = s.store_id",
        f"select avg(o.amount) from orders o join {BY_STATUS} b using (user_id, status)",
        "select count(*) from users where user_id in (select user_id from orders)",
        "select count(*) from census",
    ],
)
def test_joins_that_repeat_nothing_are_left_alone(query: str) -> None:
    assert repeated_rows(any_plan(query), "customer") is None


def test_what_is_said_names_the_tables_the_bounds_and_the_statement_to_write() -> None:
    (notice,) = repeat_notices([any_plan(TWICE), any_plan(TWICE)], "customer")
    assert notice.message == (
        'the join repeats rows: each of one customer in "orders" meets several of the same customer in "orders"'
    )
    assert "At most 60 joined rows of a customer count" in notice.detail
    per_unit = PER_UNIT.replace("select", "SELECT").replace("from", "FROM").replace("group by", "GROUP BY")
    assert f"FROM {per_unit.replace(' as ', ' AS ')} a JOIN" in notice.detail
    assert notice.detail.endswith("b USING (user_id)")


@pytest.mark.parametrize("by", ["a.status", "rollup (a.status)"])
def test_explain_says_it_too(by: str) -> None:
    query = f"{TWICE.replace('count(*)', 'a.status, count(*)')} group by {by}"
    lines = plan_lines(explain_plan(any_plan(query), context().privacy))
    assert "Rows: the join repeats rows" in " ".join(lines)
    quiet = plan_lines(explain_plan(any_plan("select count(*) from orders"), context().privacy))
    assert "repeats rows" not in " ".join(quiet)
