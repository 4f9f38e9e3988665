"""Is what a policy names spelled so that it stays a name or a text?"""

from __future__ import annotations

import duckdb

from proxy.sql.render.dialect import quote, text_literal
from proxy.sql.render.duckdb.dialect import DUCKDB


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
