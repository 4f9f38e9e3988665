"""Private SQL without the names that a role may not read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.front.relations import RELATIONS
from proxy.pipeline.premises import Premises, as_declared
from proxy.pipeline.shown_names import shown_sql
from proxy.policy.model import PostgresSource
from proxy.sql.render.dialects import dialect_of
from tests.unit.sql.corpus import policy


def premises(*named: str) -> Premises:
    """Of a role that may name these tables of the cases' policy."""
    every = as_declared(policy(), RELATIONS)
    return replace(every, named={name: every.tables[name] for name in named})


SQL = """SELECT s0."order_id", s1."user_id" FROM "orders" AS s0, "users" AS s1 WHERE s0."user_id" = s1."user_id"
 AND s0."note" = 'it''s "users" AS s1, s1."user_id"' AND s1."age" IS NOT NULL GROUP BY s1."user_id" """


def test_columns_of_a_table_outside_the_role_have_no_name() -> None:
    shown = shown_sql(SQL, premises("orders"))
    assert shown == (
        SQL.replace(', "users" AS s1', ", <table 1> AS s1")
        .replace(' = s1."user_id"', " = s1.<column 1>").replace('"order_id", s1."user_id"', '"order_id", s1.<column 1>')
        .replace('BY s1."user_id"', "BY s1.<column 1>").replace('s1."age"', "s1.<column 2>")
    )  # fmt: skip


def test_a_text_in_quotes_is_no_name() -> None:
    assert """'it''s "users" AS s1, s1."user_id"'""" in shown_sql(SQL, premises("orders"))


def test_who_may_name_all_tables_reads_all_names() -> None:
    assert shown_sql(SQL, premises("orders", "users")) == SQL


@pytest.mark.parametrize("qualified", ['"public"."users"', '"users"'])
def test_a_qualified_name_is_left_out_as_a_whole(qualified: str) -> None:
    postgres = dialect_of(PostgresSource(dsn="host=nowhere"))
    of = premises("orders") if qualified == '"users"' else replace(premises("orders"), dialect=postgres)
    assert shown_sql(f"FROM {qualified} AS s7 WHERE s7.\"plan\" = 'a'", of) == (
        "FROM <table 1> AS s7 WHERE s7.<column 1> = 'a'"
    )


def test_a_name_that_is_handed_on_from_outside_the_role_is_left_out() -> None:
    sql = 'SELECT s2."kids" AS "kids" FROM "users" AS s2'
    assert "kids" not in shown_sql(sql, premises("orders"))
