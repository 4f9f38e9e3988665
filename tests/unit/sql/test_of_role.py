"""Is a condition on the rows of a role the WHERE of a sub-select that stands in the table's place, wherever that is?"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from sqlglot import exp

from proxy.errors import HushError, Unsupported
from proxy.policy.response import TwoCoins
from proxy.sql.algebra.constants import Constants
from proxy.sql.algebra.nodes import Literal, Scalar
from proxy.sql.binding.consulted import Consulted
from proxy.sql.relations.of_role import rows_where
from proxy.sql.syntax.parse import parse
from proxy.sqltypes import SqlType
from tests.unit.sql.corpus import Case, Setting, cases, plan, policy, setting_of

ROWS = {"orders": "store_id IN (1, 2)", "users": "age < 50 AND plan <> 'pro'", "items": "quantity > 1"}
CASES = [c for c in cases() if not (c.is_refused or "orders AS (SELECT * FROM users)" in c.sql or "users *" in c.sql)]
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=ZoneInfo("UTC"))


def of_role(setting: Setting) -> Setting:
    """The same for a role that has some rows of each table."""
    named = {n: replace(t, rows_where=ROWS.get(n, "")) for n, t in setting.premises.named.items()}
    return replace(setting, premises=replace(setting.premises, named=named))


def written_out(sql: str) -> str:
    """The statement with the conditions in it: a sub-select in the place of each table."""
    names = {c.alias for c in parse(sql).find_all(exp.CTE)}
    found = sql
    places = [(t.this.meta["start"], t.this.meta["end"] + 1, t) for t in parse(sql).find_all(exp.Table)
              if t.name.lower() in ROWS and t.name not in names and "start" in t.this.meta]  # fmt: skip
    for name, end, table in sorted(places, key=lambda place: -place[0]):
        schema = table.args.get("db")
        start = name if schema is None else schema.meta["start"]
        alias = "" if table.alias else f" AS {table.name}"
        found = f"{found[:start]}(SELECT * FROM {table.name} WHERE {ROWS[table.name.lower()]}){alias}{found[end:]}"
    return found


def released(case: Case, setting: Setting) -> list[str] | str:
    """The names of what would be released, or that it would be refused."""
    try:
        return [p.fingerprint for p in plan(case, policy(), setting)]
    except HushError as error:
        return error.sqlstate


def test_rows_outside_the_condition_are_left_out_as_a_where_leaves_them_out() -> None:
    """By the names of releases: equal names are the same private SQL with the same noise."""
    whole, part, changed = setting_of(policy()), of_role(setting_of(policy())), 0
    for case in CASES[::8]:
        written = replace(case, sql=written_out(case.sql))
        ours = released(case, part)
        assert ours == released(written, whole), case.place
        changed += ours != released(case, whole)
    assert changed > len(CASES[::8]) * 0.9


def test_roles_whose_conditions_differ_in_a_constant_share_no_release() -> None:
    case, plain = next(c for c in CASES if "FROM orders" in c.sql), setting_of(policy())
    found = set[str]()
    for where in ("store_id = 1", "store_id = 2", "store_id IN (1, 2)", "store_id IS NOT NULL", ""):
        named = {**plain.premises.named, "orders": replace(plain.premises.named["orders"], rows_where=where)}
        found.update(released(case, replace(plain, premises=replace(plain.premises, named=named))))
    assert len(found) == 5 * len(released(case, plain))


def bound(condition: str, constants: Constants, hidden: tuple[str, ...] = ()) -> tuple[tuple[Scalar, ...], bool]:
    """The conjuncts of a condition on orders, and whether it reads the clock."""
    orders = policy().tables["orders"]
    columns = tuple(replace(c, hidden=c.name in hidden) for c in orders.columns)
    consulted = Consulted(constants)
    return rows_where(replace(orders, columns=columns, rows_where=condition), 7, consulted), consulted.reads_clock


def test_nothing_that_a_client_says_bears_on_the_condition() -> None:
    plain = Constants({}, NOW)
    given = Constants({1: Literal(5, SqlType.INT4)}, NOW, session_zone="Pacific/Kiritimati")
    for condition in ("at >= '2024-05-01'", "at > current_date - 30", "at > now()", "store_id = 1"):
        assert bound(condition, plain) == bound(condition, given)


def test_a_condition_that_names_the_clock_is_another_at_another_time() -> None:
    assert bound("at > current_date - 30", Constants({}, NOW))[1]
    assert not bound("at > '2024-05-01'", Constants({}, NOW))[1]


@pytest.mark.parametrize("text", ["now", "today", "yesterday", "tomorrow", " NOW "])
def test_a_text_that_reads_the_clock_is_another_at_another_time(text: str) -> None:
    for condition in (f"at > '{text}'", f"'{text}' > at", f"at > '{text}'::date", f"at IN ('2024-05-01', '{text}')"):
        try:
            assert bound(condition, Constants({}, NOW))[1], condition
        except Unsupported as refused:
            assert "without a server" in refused.message  # noqa: PT017 - one of the two


def test_a_condition_names_no_randomized_column() -> None:
    """Its true values are estimated from all rows, those outside the condition too."""
    orders = policy().tables["orders"]
    columns = tuple(
        replace(c, randomized=TwoCoins(Fraction(1, 2), Fraction(1, 2))) if c.name == "status" else c
        for c in orders.columns
    )
    table = replace(orders, columns=columns, rows_where="status = 'paid'")
    with pytest.raises(Unsupported, match="were randomized, and do not tell which rows exist"):
        rows_where(table, 7, Consulted(Constants({}, NOW)))


def test_a_condition_may_name_columns_that_the_role_may_not_read() -> None:
    given = Constants({}, NOW)
    assert bound("store_id IN (1, 2)", given, ("store_id",)) == bound("store_id IN (1, 2)", given)


@pytest.mark.parametrize(("condition", "words"), [
    ("store_id = $1", "has no parameters and no sub-queries"),
    ("store_id = (SELECT 1)", "has no parameters and no sub-queries"),
    ("EXISTS (SELECT 1 FROM users)", "has no parameters and no sub-queries"),
    ("at >= '1.5.2024'", "without a server"),  # a session's DateStyle would read it
    ("nope = 1", 'column "nope" does not exist in table "orders"'),
    ("users.age = 1", 'column "age" does not exist in table "orders"'),
    ("store_id", "a condition must be boolean"),
    ("store_id = 1, amount > 3", "it is not one condition"),
    ("store_id = 1 FROM users", "a SELECT with FROM"),
    ("store_id = 1 LIMIT 3", "a SELECT with LIMIT"),
    ("store_id = 1; SELECT 2", "expected one statement"),
    ("count(*) > 3", "count() is not supported"),
    ("current_user = 'ann'", "current_user is not supported"),
    ("store_id = 1)", "not understood"),
])  # fmt: skip
def test_what_is_no_condition_on_one_row_is_refused(condition: str, words: str) -> None:
    with pytest.raises(Unsupported) as refused:
        bound(condition, Constants({1: Literal(5, SqlType.INT4)}, NOW))
    assert words in refused.value.message
    assert refused.value.position == 0, "it is no place of the client's statement"
