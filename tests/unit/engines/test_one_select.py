"""A long text that is one SELECT beyond doubt is not parsed where no other thread can run; every other one is."""

from __future__ import annotations

import duckdb
import pytest

from proxy.engines.base import EngineStopped
from proxy.engines.duckdb import Parsed
from proxy.engines.one_select import is_one_select

LONG = f", {'1' * 30}" * 1_000


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "\n with t as (select ';' as a) select * from t where \"drop;\" = 'it''s; insert into t'",
        "select ''",
        "select x from t where x in ($1, $2)",
    ],
)
def test_one_select_is_seen(sql: str) -> None:
    assert is_one_select(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select 1; select 2", "insert into t values (1)", "with t as (select 1) insert into u select * from t", "",
        "selected", "select 1 -- x", "select /* x */ 1", "select $$;$$", "select $a$;$a$", "select 1 into t",
        r"select e'\'; drop table t'", "select 'a", 'select "a', "copy t to 'x'", "with t as (select 1) delete from t",
        "select $1$ ; $1$",
    ],
)  # fmt: skip
def test_what_may_be_more_is_left_to_the_parser(sql: str) -> None:
    assert not is_one_select(sql)


def test_a_long_select_is_not_parsed_apart() -> None:
    """The parser holds up every session of the proxy."""
    with duckdb.connect() as connection:
        parsed = Parsed()
        text = f"SELECT 1{LONG}"
        found = parsed.select(connection, text)
        assert found == text
        assert not len(parsed)
        assert connection.execute(found).fetchall()[0][:1] == (1,)
        assert not isinstance(parsed.select(connection, "SELECT 1"), str)


@pytest.mark.parametrize("sql", [f"SELECT 1{LONG}; SELECT 2", f"CREATE TABLE t AS SELECT 1{LONG}"])
def test_a_long_text_that_is_no_single_select_is_refused(sql: str) -> None:
    with duckdb.connect() as connection, pytest.raises(EngineStopped) as stopped:
        Parsed().select(connection, sql)
    assert stopped.value.exception_name == "NotOneSelect"
