"""PREPARE and EXECUTE are taken apart as PostgreSQL reads them."""

from __future__ import annotations

import pytest

from proxy.errors import HushError
from proxy.sql.syntax.parse import split_statements
from proxy.sql.syntax.prepared import Execution, call_of, prepared_text, with_values


def call(text: str) -> Execution:
    (statement,) = split_statements(text)
    return call_of(statement)


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("EXECUTE P", "p", ()),
        ('execute "P" ()', "P", ()),
        ("EXECUTE p(1)", "p", ("1",)),
        ("EXECUTE p(f(1, 2), ARRAY[3, 4], 'a,(b')", "p", ("f(1, 2)", "ARRAY[3, 4]", "'a,(b'")),
        ('EXECUTE p("(", ((1)))', "p", ('"("', "((1))")),
    ],
)
def test_call_is_a_name_and_its_arguments(text: str, name: str, arguments: tuple[str, ...]) -> None:
    assert call(text) == Execution(name, arguments, cannot_run=False)


def test_query_among_the_arguments_is_noticed() -> None:
    assert call("EXECUTE p((SELECT 1))").cannot_run
    assert call("EXECUTE p(1, $1 + 2)").cannot_run
    assert not call("EXECUTE p('$1')").cannot_run
    assert not call("EXECUTE p('SELECT')").cannot_run


@pytest.mark.parametrize("text", ["EXECUTE", "EXECUTE p 1", "EXECUTE p(1) x", "EXECUTE p.q(1)"])
def test_call_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(HushError, match="not understood"):
        call(text)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("PREPARE p AS SELECT 1", "SELECT 1"),
        ("SELECT 2; prepare P (int, numeric(1,2)) as /* one */ SELECT 1 AS x;", "/* one */ SELECT 1 AS x"),
        ('PREPARE "p" AS SELECT 1; PREPARE q AS SELECT 2', "SELECT 1"),
    ],
)
def test_prepared_text_is_found_in_its_string(source: str, text: str) -> None:
    assert prepared_text(source, "p") == text


@pytest.mark.parametrize("source", [
    "SELECT 1", "PREPARE p AS SELECT 1; DEALLOCATE p; PREPARE p AS SELECT 2", "PREPARE p (int)",
    'PREPARE "P" AS SELECT 1',
])  # fmt: skip
def test_prepared_text_in_doubt_is_refused(source: str) -> None:
    with pytest.raises(HushError, match="not understood"):
        prepared_text(source, "p")


def test_values_are_written_out_with_their_types() -> None:
    text = "SELECT $1, '$1', $2+$3, $4 -- $1\n, $5, $1, $8, a - $6 + $7"
    values = (("it's", "text"), ("-3", "integer"), ("2.5", "numeric"), (None, "date"), ("true", "boolean"),
              ("7ff8000000000000", "double precision"), ("3dcccccd", "real"))  # fmt: skip
    assert with_values(text, values) == (
        "SELECT 'it''s'::text, '$1', (-3)::integer+2.5::numeric, NULL::date -- $1\n, true, 'it''s'::text, $8,"
        " a - 'nan'::double precision + 0.10000000149011612::real"
    )
