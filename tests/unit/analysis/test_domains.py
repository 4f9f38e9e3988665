"""Do inferred domains contain what expressions evaluate to?"""

from __future__ import annotations

import pytest

from proxy.policy.model import Bounded, Domain, Listed, Unknown
from proxy.sql.algebra.nodes import Call, ColumnRef
from proxy.sql.render.duckdb.dialect import DUCKDB
from tests.oracle.scalars import Evaluator, Reading, in_domain
from tests.unit.analysis.samples import ROWS, argument
from tests.unit.plan.shop import plan

EXPRESSIONS = (
    "age", "age + 1", "age - height", "age * -2", "-age", "abs(age - 50)", "abs(age - 200)", "age / 7",
    "age % 7", "-age % 7",
    "age / height", "1 / (height + 1)", "height % 3", "height * height", "age / -3", "age % (age - 50)",
    "floor(height)", "ceil(-height)", "round(height)", "trunc(height / 7)", "sqrt(height - 5)", "height / 0.1",
    "round(age, -2)", "round(age, -1)", "round(height::numeric, 1)", "greatest(age, 20)", "least(age, 20)",
    "greatest(age, height - 300)", "least(age, 200 + height)", "coalesce(age, 500)",
    "coalesce(age, height)", "nullif(age, 50)", "case when age > 50 then height else -1 end",
    "case when age > 50 then 7 end", "height::integer", "age::float8", "(age > 5)::int", "(height * 2)::bigint",
    "extract(year from joined)", "extract(isoyear from joined)", "extract(week from joined)",
    "extract(dow from joined)", "extract(doy from joined)", "extract(epoch from joined)",
    "date_trunc('month', joined)", "date_trunc('week', joined)", "date_trunc('quarter', joined)", "joined::timestamp",
    "lower(plan)", "upper(plan)", "age > 5", "plan is null", "age in (1, 2)", "plan = 'free'",
)  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("reading", [Reading.TEST, Reading.MEASURE])
def test_a_domain_contains_every_value(expression: str, reading: Reading) -> None:
    scalar, domains = argument(expression)
    evaluator = Evaluator(domains.column, "UTC")
    domain = domains.declared(scalar)
    assert not isinstance(domain, Unknown) or "/ height" in expression or "% (age" in expression, "nothing is known"
    seen = 0
    for row in ROWS:
        value = evaluator.value(scalar, row, reading)
        if value is None:
            continue
        seen += 1
        assert in_domain(value, widened(domain), evaluator, scalar.type), (value, domain)
    assert seen


def widened(domain: Domain) -> Bounded | Listed | Unknown:
    """An interval's ends are doubles; their own rounding is forgiven."""
    match domain:
        case Bounded(lo, hi) if isinstance(lo, (int, float)) and isinstance(hi, (int, float)):
            slack = 1e-9 * max(abs(lo), abs(hi), 1)
            return Bounded(lo - slack, hi + slack)
        case _:
            return domain


def test_conditions_narrow_measures_and_prove_nothing_about_raising() -> None:
    found = plan("select sum(age * 2), count(order_id + 1) from orders join users on orders.user_id = users.user_id"
                 " where age <= 10 and order_id in (1, 2)")  # fmt: skip
    domains = found.analysed.domains
    total, count = (a.argument for a in found.analysed.owned.block.aggregates)
    assert domains.of(total) == Bounded(0, 20)
    assert domains.declared(total) == Bounded(0, 220)
    assert isinstance(total, Call)
    assert isinstance(count, Call)
    assert not DUCKDB.may_raise(total.function, domains.operands(total))
    assert DUCKDB.may_raise(count.function, domains.operands(count))
    assert isinstance(count.args[0], ColumnRef)
    assert domains.of(count.args[0]) == Listed((1, 2))


@pytest.mark.parametrize(
    ("expression", "nullable"),
    [
        ("age", True), ("height", False), ("plan", False), ("age + 1", True), ("height + 1", False),
        ("coalesce(age, 1)", False), ("nullif(height, 1)", True), ("height / 2", False), ("2 / height", True),
        ("(height > 2)::int", True), ("age is null", False),
        ("greatest(age, height)", False), ("case when age > 3 then 1 end", True),
        ("case when age > 3 then 1 else 2 end", False), ("joined + 5", True), ("extract(year from joined)", True),
        ("age is distinct from 3", False), ("plan in ('a', 'b')", False),
    ],
)  # fmt: skip
def test_what_may_be_null(expression: str, nullable: bool) -> None:
    scalar, domains = argument(expression)
    assert domains.may_be_null(scalar) is nullable


def test_a_condition_makes_its_column_present() -> None:
    for condition in ("age > 3", "age in (1, 2)", "age is not null", "3 <= age"):
        found = plan(f"select count(age) from users where {condition}")
        argument_ = found.analysed.owned.block.aggregates[0].argument
        assert not found.analysed.domains.may_be_null(argument_), condition


def test_each_alternative_must_say_that_a_column_is_present() -> None:
    for condition, may_be_null in (("age > 3 or age = 1", False), ("age > 3 or height > 1", True)):
        found = plan(f"select count(age) from users where {condition}")
        argument_ = found.analysed.owned.block.aggregates[0].argument
        assert found.analysed.domains.may_be_null(argument_) is may_be_null, condition


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("age < 2.5", 0, 2), ("age <= 2.5", 0, 2), ("age > 2.5", 3, 110), ("age >= 2.5", 3, 110),
        ("age < 2", 0, 1), ("age <= 2", 0, 2), ("age > 2", 3, 110), ("age < 2.0", 0, 1), ("2.5 > age", 0, 2),
        ("age < 2.5::float8", 0, 2), ("age > 2.5::float8", 3, 110), ("age < 2::float8", 0, 1),
        ("NOT (age < 2.5)", 3, 110), ("NOT (age >= 2.5 AND height > 7)", 0, 110),
    ],
)  # fmt: skip
def test_a_comparison_leaves_whole_numbers_on_its_side(condition: str, low: int, high: int) -> None:
    found = plan(f"select sum(age) from users where {condition}")
    (total,) = (a.argument for a in found.analysed.owned.block.aggregates)
    assert found.analysed.domains.of(total) == Bounded(low, high)
