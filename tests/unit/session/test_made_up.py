"""Made-up rows need no engine, no profile, no salt and no books: these are not at hand, or are unlike, here."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from proxy.pipeline.outline import Cuts
from proxy.pipeline.statements import QueryString, Understood, understand
from proxy.policy.model import Bounded, ByProfile, Column, Policy, RawSelect
from proxy.session.answering.made_up import MADE_UP, made_up_rows, said_of_made_up
from proxy.session.contract import Refusal, Spliced
from proxy.session.dataset import Version
from proxy.sql.query.probe import Probe
from tests.unit.session.make import version
from tests.unit.sql.corpus import policy

JOINED = "SELECT u.city, o.store_id FROM public.users u JOIN orders o ON o.user_id = u.user_id WHERE u.age > $1"


def served() -> Policy:
    shop = policy()
    return replace(shop, privacy=replace(shop.privacy, raw_select=RawSelect.MADE_UP))


def understood(text: str, of: Version, login: str = "ann") -> Understood:
    (piece,) = understand(Cuts(), QueryString(premises=of.premises(login), text=text, has_intervals=False, told=((),)))
    assert isinstance(piece.handle, Understood), piece.refusal
    return piece.handle


def rows(text: str, of: Version, login: str = "ann", count: int = 0) -> Spliced:
    handle = understood(text, of, login)
    assert isinstance(handle.query, Probe)
    assert handle.query.is_made_up
    return made_up_rows(handle, handle.query, of, login, count)


def test_made_up_rows_stand_in_the_place_of_the_tables() -> None:
    found = rows(JOINED, version(served()), count=1)
    assert found.sql.startswith("SELECT u.city, o.store_id FROM (SELECT ")
    assert found.sql.endswith("WHERE u.age > $1")
    assert "$2::pg_catalog.int4[]" in found.sql
    assert 'FROM public."stores"' in found.sql
    assert found.notices == (MADE_UP,)


def test_made_up_rows_are_the_same_whatever_was_learned_and_found() -> None:
    """Limits by a profile, values found in public tables, another salt and another time of loading change nothing."""
    plain = version(served())
    tables = dict(plain.policy.tables)
    known = {
        name: replace(
            table, rows_per_unit=ByProfile(1, "1"),
            columns=tuple(replace(c, domain=Bounded(5, 5), found=True, limited_digits=True) for c in table.columns),
        )
        for name, table in tables.items()
    }  # fmt: skip
    other = replace(plain, salt="feed", better_known=known, loaded_at=plain.loaded_at.replace(year=2031))
    assert rows(JOINED, other) == rows(JOINED, plain)
    assert rows("SELECT * FROM orders", other, "clerk") == rows("SELECT * FROM orders", plain, "clerk")


def test_only_columns_and_tables_that_the_login_may_see_are_shown() -> None:
    shop = served()
    orders = shop.tables["orders"]
    secret = replace(orders, columns=(*orders.columns, Column(name="secret", type=orders.columns[0].type, hidden=True)))
    of = version(replace(shop, tables={**shop.tables, "orders": secret}))
    assert "secret" not in rows("SELECT * FROM orders", of).sql
    assert "users" not in rows("SELECT * FROM orders", of, "clerk").sql


@pytest.mark.parametrize("text", [
    "CREATE TEMP TABLE t AS SELECT * FROM users", "SELECT * INTO TEMP t FROM users",
    "CREATE TEMP TABLE t AS TABLE users", "EXPLAIN CREATE TEMP TABLE t AS SELECT * FROM users",
    "EXPLAIN (FORMAT JSON) SELECT * INTO TEMP t FROM users",
])  # fmt: skip
def test_made_up_rows_are_not_kept_in_tables(text: str) -> None:
    of = version(served())
    (piece,) = understand(Cuts(), QueryString(premises=of.premises("ann"), text=text, has_intervals=False, told=((),)))
    assert isinstance(piece.refusal, Refusal)
    assert piece.refusal.error.message == "made-up rows cannot be kept in a table"


def test_a_refusal_says_where_made_up_rows_are_shown() -> None:
    of = version(served())
    text = "SELECT city FROM (SELECT city FROM users) t"
    (piece,) = understand(Cuts(), QueryString(premises=of.premises("ann"), text=text, has_intervals=False, told=((),)))
    assert isinstance(piece.refusal, Refusal)
    assert "Made-up rows are shown by one SELECT" in piece.refusal.error.detail


@pytest.mark.parametrize("text", [
    "COPY (SELECT city FROM users) TO STDOUT", "DECLARE c CURSOR FOR SELECT city FROM users",
    "EXPLAIN SELECT city FROM users",
])  # fmt: skip
def test_what_stands_around_a_select_may_show_made_up_rows(text: str) -> None:
    assert rows(text, version(served())).literal_sql.count("unnest") > 1


def test_explain_says_that_rows_are_made_up() -> None:
    assert said_of_made_up(["Privacy plan"], is_json=False) == [f"Rows: {MADE_UP.message}", "Privacy plan"]
    (told,) = said_of_made_up(['[{"releases": []}]'], is_json=True)
    assert json.loads(told) == [{"made_up": True, "releases": []}]
