"""What does the private engine postgres refuse, and what does its SQL never hold?"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.errors import Unsupported
from proxy.policy.model import Bounded, Column
from proxy.sql.render.postgres.dialect import POSTGRES
from proxy.sqltypes import SqlType
from tests.unit.plan import shop

_ONLY_DUCKDB = re.compile(r"\bTRY|DOUBLE\b(?! PRECISION)|HUGEINT|ENUM \(|(SEMI|ANTI) JOIN|EXCLUDE|no_overflow")


def _sql(text: str, *, pure: bool = False) -> str:
    of = replace(shop.context(pure=pure), dialect=POSTGRES)
    return "\n".join(stage for plan in shop.plans(text, of) for stage in plan.stages)


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*), sum(age), avg(age) FROM users WHERE age > 30",
        "SELECT plan, count(*), sum(age) FROM users GROUP BY plan",
        "SELECT status, count(DISTINCT user_id), avg(amount), variance(amount) FROM orders GROUP BY status",
        "SELECT count(*) FROM users u LEFT JOIN orders o ON o.user_id = u.user_id WHERE o.amount > 5",
        "SELECT status, count(DISTINCT store_id), max(amount), min(made) FROM orders GROUP BY status",
        "SELECT count(DISTINCT city), min(joined), max(height) FROM users",
        "SELECT count(*) FROM (SELECT user_id, count(*) n, min(amount) m FROM orders GROUP BY user_id) x WHERE m > n",
        "SELECT count(*) FROM (SELECT user_id, sum(amount * 2) AS s FROM orders GROUP BY user_id) x WHERE s < 500",
        "SELECT count(*) FROM (SELECT user_id, avg(amount) AS s FROM orders GROUP BY user_id) x WHERE s < 500",
        "SELECT count(*) FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.user_id)",
    ],
)
def test_no_construct_of_duckdb_is_left(text: str, pure: bool) -> None:
    assert not _ONLY_DUCKDB.search(_sql(text, pure=pure)), _sql(text, pure=pure)


def test_units_with_too_many_unlisted_keys_are_cut_there_too() -> None:
    sql = _sql("SELECT store_id, status, count(*), count(DISTINCT order_id), min(amount) FROM orders GROUP BY 1, 2")
    assert "NOT EXISTS (SELECT 1 FROM many" in sql
    assert not _ONLY_DUCKDB.search(sql)


@pytest.mark.parametrize(
    "text, words",
    [
        ("SELECT count(*) FROM users WHERE log(2, age + 1) > 5", "a logarithm to base 2"),
        ("SELECT count(*) FROM users WHERE city ~* '^zü'", "a pattern in any case"),
        ("SELECT count(*) FROM users WHERE joined + interval '9000 years' > now()", "an interval of this length"),
    ],
)  # fmt: skip
def test_what_postgresql_does_not_compute_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(Unsupported, match="with engine postgres") as refused:
        _sql(text)
    assert words in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("aggregate", ["sum(height)", "variance(height)", "max(height * 1e-120)"])
def test_bounds_between_which_doubles_could_underflow_are_refused(aggregate: str) -> None:
    users = shop.TABLES["users"]
    narrow = (replace(c, domain=Bounded(0.0, 1e-200)) if c.name == "height" else c for c in users.columns)
    tables = {**shop.TABLES, "users": replace(users, columns=tuple(narrow))}
    with pytest.raises(Unsupported, match="bounds this near to each other"):
        shop.plan(f"SELECT {aggregate} FROM users", replace(shop.context(), dialect=POSTGRES, tables=tables))


def test_texts_are_ordered_byte_by_byte_whatever_the_database_says() -> None:
    """Conditions such as these are told apart by their bytes; a collation of the database has an order of its own."""
    for text in ("CASE WHEN age > 3 THEN 'b' ELSE 'Z' END", "age::text", "to_char(joined, 'FMMonth')", "age || plan"):
        for ordered in (
            f"{text} > 'a'",
            f"{text} <= 'Z'",
            f"greatest({text}, plan) = 'a'",
            f"least({text}, plan) = 'a'",
        ):
            assert re.search(r'\) COLLATE "C"(,| [<>])', _sql(f"SELECT count(*) FROM users WHERE {ordered}")), ordered


@pytest.mark.parametrize(
    "aggregate, bounds, branches",
    [
        ("sum", (0.0, 1000.0), ["1e-150 AND 1000.0"]),
        ("sum", (-7.5, 1000.0), ["1e-150 AND 1000.0", "-7.5 AND -1e-150"]),
        ("sum", (-9.0, 0.0), ["-9.0 AND -1e-150"]),
        ("sum", (0.0, 1e15), ["1e-150 AND 1000000000000000.0"]),
        ("avg", (0.0, 1e15), []),  # a quotient by such a step could underflow
    ],
)
def test_a_numeric_between_its_bounds_is_read_once(
    aggregate: str, bounds: tuple[float, float], branches: list[str]
) -> None:  # fmt: skip
    column = Column(name="amount", type=SqlType.NUMERIC, domain=Bounded(*bounds), nullable=False)
    sql = _of_amount(f"SELECT {aggregate}(amount) FROM orders", column)
    assert re.findall(r'sum\(\(CASE WHEN s0\."amount" BETWEEN (\S+ AND \S+)', sql) == branches[:1]
    assert all(f'WHEN s0."amount" BETWEEN {branch} THEN trunc(s0."amount"::FLOAT8 / ' in sql for branch in branches)


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("asked", ["sum(amount)", "sum(amount) FILTER (WHERE status = 'paid')", "avg(amount)"])
def test_a_numeric_of_limited_digits_is_made_a_double_once(asked: str, nullable: bool) -> None:
    domain = Bounded(0, 1000)
    column = Column(name="amount", type=SqlType.NUMERIC, domain=domain, nullable=nullable, limited_digits=True)
    sql = _of_amount(f"SELECT {asked} FROM orders", column)
    assert sql.count('"amount"::FLOAT8') == 1
    assert "OFFSET 0" not in sql
    assert ('"amount" IS NOT NULL' in sql) == nullable


def _of_amount(query: str, amount: Column) -> str:
    """The SQL of a query over orders whose amount is another column."""
    orders = shop.TABLES["orders"]
    columns = (amount if c.name == "amount" else c for c in orders.columns)
    tables = {**shop.TABLES, "orders": replace(orders, columns=tuple(columns))}
    return shop.plan(query, replace(shop.context(), dialect=POSTGRES, tables=MappingProxyType(tables))).sql


def test_a_measure_that_is_read_often_is_computed_once() -> None:
    assert "OFFSET 0) AS present" in _sql("SELECT avg(amount), variance(amount) FROM orders")


def test_a_case_blind_column_is_grouped_in_lower_case() -> None:
    users = shop.TABLES["users"]
    blind = replace(users, columns=tuple(replace(c, case_blind=c.name == "city") for c in users.columns))
    of = replace(shop.context(), dialect=POSTGRES, tables=MappingProxyType({**shop.TABLES, "users": blind}))
    asked = "SELECT city, count(*) FROM users GROUP BY city"
    assert "lower(x COLLATE" in shop.plan(asked, of).sql
    assert "lower(" not in shop.plan(asked, replace(of, tables=shop.TABLES)).sql


def test_the_sign_of_a_zero_breaks_ties_of_windows() -> None:
    """Engines hold 0 and -0 for equal, so what comes first of two such rows would depend on how they are stored."""
    text = "SELECT count(*) FROM (SELECT user_id, lag(height) OVER (PARTITION BY user_id ORDER BY age) h FROM users) x"
    for sql, sign in (
        (_sql(text), r"atan2\(s0.\"height\", '-1.0'::FLOAT8\)"),
        (_duckdb(text), r"signbit\(s0.\"height\"\)"),
    ):
        assert re.search(rf'ORDER BY .*s0."height" ASC NULLS LAST, {sign}', sql), sql


def _duckdb(text: str) -> str:
    return "\n".join(stage for plan in shop.plans(text) for stage in plan.stages)
