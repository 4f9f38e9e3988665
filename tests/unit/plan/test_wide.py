"""Which totals of units are lost in their noise, and what is said of them: public figures alone."""

from __future__ import annotations

import pytest

from proxy.plan.words.explain_sets import explain_plan, plan_lines
from proxy.plan.words.wide import too_wide
from proxy.session.answering.notices import clamp_notices
from tests.unit.plan.shop import any_plan, context

PER_UNIT = "(select user_id, sum(amount) as s from orders group by user_id) t"
BY_STATUS = "(select user_id, status, sum(amount - 500) as s from orders group by user_id, status) t"
WIDE = f"select sum(s) from {PER_UNIT}"


@pytest.mark.parametrize(
    ("query", "named", "clamp"),
    [
        (WIDE, "sum(sum(amount))", "least(sum(amount), 10000)"),
        (f"select avg(s) from {PER_UNIT}", "avg(sum(amount))", "least(sum(amount), 10000)"),
        (f"select status, sum(s) from {BY_STATUS} group by rollup (status)", "sum(sum((amount - 500)))",
         "greatest(least(sum((amount - 500)), 5000), -5000)"),
        (f"select sum(-s) from {PER_UNIT}", "sum() of sum(amount)", "least(sum(amount), 10000)"),
    ],
)  # fmt: skip
def test_a_total_that_is_lost_is_named_with_the_clamp_that_helps(query: str, named: str, clamp: str) -> None:
    (found,) = too_wide(any_plan(query), "customer")
    assert found.what.startswith(f"the noise of {named} is that of ")
    assert f"write {clamp}: about 6 times less noise." in found.instead


@pytest.mark.parametrize(
    "query",
    [
        "select sum(amount) from orders",
        f"select sum(least(s, 10000)) from {PER_UNIT}",
        f"select count(*), count(s) from {PER_UNIT}",
        "select avg(n) from (select user_id, count(*) as n from orders group by user_id) t",
        f"select percentile_cont(0.5) within group (order by s) from {PER_UNIT}",
        "select sum(s) from (select user_id, max(amount) as s from orders group by user_id) t",
    ],
)
def test_others_are_left_alone(query: str) -> None:
    assert too_wide(any_plan(query), "customer") == ()


def test_explain_and_a_notice_say_it() -> None:
    plan = any_plan(WIDE)
    (notice,) = clamp_notices([plan, plan], "customer")
    assert "as large as 60 such rows" in notice.message
    assert "write least(sum(amount), 10000)" in notice.detail
    for said in (WIDE, f"select status, sum(s) from {BY_STATUS} group by rollup (status)"):
        explained = explain_plan(any_plan(said), context().privacy)
        assert explained["clamps"]
        assert "Clamp: the noise of" in " ".join(plan_lines(explained))
    assert "clamps" not in explain_plan(any_plan("select count(*) from orders"), context().privacy)
