"""The text of a front's schema."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.errors import PolicyError
from proxy.front.schema import GUARD_RELATION, copy_sql, database_sql, schema_sql
from proxy.front.visibility import Visibility
from proxy.policy.model import Column, Listed, RowUnit
from proxy.sqltypes import SqlType
from tests.front.samples import ITEMS, ORDERS, STORES, USERS, WEIRD, WEIRD_NAME, policy

ALL = Visibility(("users", "orders", "items", "stores"))


def lines(*, visible: Visibility = ALL, start: str = "") -> list[str]:
    return [line for line in schema_sql(policy(), visible).splitlines() if line.startswith(start)]


def test_tables_have_their_columns_types_and_keys() -> None:
    columns = '"user_id" integer NOT NULL, "age" integer, "City" text, "plan" character varying, "code" bpchar, '
    expected = f'CREATE TABLE public."users" ({columns}"joined" date, PRIMARY KEY ("user_id"));'
    assert lines(start='CREATE TABLE public."users"') == [expected]
    assert lines(start='CREATE TABLE public."stores"') == [
        'CREATE TABLE public."stores" ("id" integer NOT NULL, "Town" text, "opened" date);'
    ]


def test_every_private_relation_is_guarded_and_no_public_one() -> None:
    guarded = [line.split(" ON ")[1].split(" USING ")[0] for line in lines(start="CREATE POLICY")]
    assert guarded == [
        *('public."users"', 'public."orders"', 'public."items"'),
        *('hush."budget"', 'hush."history"', 'hush."last_query"', 'hush."messages"', 'hush."policy"'),
        *('hush."admin_history"', 'hush."admin_budget"'),
    ]
    enabled = [line for line in lines(start="ALTER TABLE") if "ENABLE ROW LEVEL SECURITY" in line]
    assert len(enabled) == len(guarded)
    assert f"REVOKE ALL ON {GUARD_RELATION} FROM PUBLIC;" in lines()


def test_a_smaller_visibility_names_nothing_else() -> None:
    text = schema_sql(policy(), Visibility(("items", "stores")))
    for absent in ("orders", "users", "amount", "City"):
        assert absent not in text


def test_keys_are_added_after_all_tables() -> None:
    text = schema_sql(policy(ITEMS, ORDERS, USERS, STORES), Visibility(("items", "orders", "users", "stores")))
    last_table = text.index('CREATE TABLE public."stores"')
    assert text.index('ALTER TABLE public."items" ADD FOREIGN KEY') > last_table


def test_hostile_names_stay_inside_their_quotes() -> None:
    text = schema_sql(policy(WEIRD), Visibility((WEIRD_NAME,)))
    assert text.startswith("CREATE TABLE information_schema.only_aggregates")
    assert """CREATE TABLE public."we""ird'; DROP TABLE users; --$body$" ("K""ey" uuid,""" in text


def test_comments_stay_short_and_name_the_row_as_unit() -> None:
    long = Column(name="n", type=SqlType.INT4, domain=Listed(tuple(range(30))), key=True)
    table = replace(USERS, ownership=RowUnit(), unit_unique=False, comment="", columns=(long,))
    text = schema_sql(policy(table), Visibility(("users",)))
    assert "IS 'private: aggregates only, each row is protected';" in text
    assert "IS 'key: for joins, never shown; values 0, 1, 2," in text
    assert "18, 19, ...';" in text


def test_truth_values_are_listed_as_sql_spells_them() -> None:
    told = Column(name="told", type=SqlType.BOOL, domain=Listed((False, True)))
    text = schema_sql(policy(replace(USERS, columns=(*USERS.columns, told))), Visibility(("users",)))
    assert "IS 'values false, true';" in text


def test_names_postgresql_would_cut_are_refused() -> None:
    with pytest.raises(PolicyError):
        schema_sql(policy(replace(USERS, name="u" * 64)), Visibility(("u" * 64,)))


def test_settings_of_the_database_are_text_constants() -> None:
    assert "ALTER DATABASE \"shop\" SET hush.epsilon = '0.25'" in database_sql(policy(), ALL)


def test_copy_names_the_visible_columns() -> None:
    assert copy_sql(STORES) == 'COPY public."stores" ("id", "Town", "opened") FROM STDIN'
