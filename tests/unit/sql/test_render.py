"""Is what a policy names spelled so that it stays a name or a text?"""

from __future__ import annotations

import duckdb
import pytest

from proxy.errors import Unsupported
from proxy.policy.model import Unknown
from proxy.sql.functions.hazards import Operands, never
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.render.dialect import quote, text_literal
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sql.render.duckdb.functions import SPELLINGS as IN_DUCKDB
from proxy.sql.render.postgres.dialect import POSTGRES
from proxy.sql.render.postgres.functions import SPELLINGS as IN_POSTGRES
from proxy.sqltypes import SqlType


def test_quotes_are_doubled() -> None:
    assert quote('a"b') == '"a""b"'
    assert DUCKDB.relation(("main", 'a"b')) == '"main"."a""b"'
    assert text_literal("a'b") == "'a''b'"


def test_numbers_that_are_equal_are_spelled_alike() -> None:
    """Which keys of a unit are kept is told by a hash of their spelling, and NaN can have a sign."""
    nan = "('inf'::DOUBLE / 'inf'::DOUBLE)"
    texts = (nan, f"-{nan}", "'nan'::DOUBLE", "-0.0e0", "0.0e0", "NULL::DOUBLE")
    spelled = ", ".join(f"{DUCKDB.one_spelling(t)}::VARCHAR" for t in texts)
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT {spelled}").fetchone() == ("nan", "nan", "nan", "0.0", "0.0", None)


def test_every_function_has_a_spelling_that_tells_when_it_could_raise() -> None:
    """DuckDB computes all of them; where PostgreSQL's plain spelling could raise, there is one that is checked."""
    assert set(IN_DUCKDB) == set(FUNCTIONS)
    assert set(IN_POSTGRES) <= set(FUNCTIONS)
    assert [name for name, of in IN_POSTGRES.items() if bool(of.checked) != (of.may_raise is not never)] == []
    assert sum(of.may_raise is not never for of in IN_POSTGRES.values()) > 20


def test_a_function_without_a_spelling_is_refused_and_raises_nothing_before() -> None:
    nothing_known = Operands((SqlType.FLOAT8,), (Unknown(),), Unknown())
    assert not POSTGRES.may_raise("no such function", nothing_known)
    with pytest.raises(Unsupported):
        POSTGRES.call("no such function", ("1",), (SqlType.FLOAT8,), may_raise=False)
