"""Has what a function is spelled as in DuckDB the type that everything around it is spelled for?

A product of numerics is one of doubles there, which never overflows. One of whole numbers of 64 bits would, for some
rows: and the error would tell of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import duckdb

from proxy.sql.dialect import DUCKDB
from proxy.sql.functions import FUNCTIONS
from proxy.sql.templates import uses
from proxy.sqltypes import SqlType

KINDS = (
    SqlType.BOOL, SqlType.INT8, SqlType.NUMERIC, SqlType.FLOAT4, SqlType.FLOAT8, SqlType.TEXT, SqlType.DATE,
    SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ,
)  # fmt: skip
MOST_ARGUMENTS = 4
SPANS = {"time - time"}  # a span between two times is a number of microseconds


def calls() -> Iterator[tuple[str, str, SqlType]]:
    """(what it is, spelled for arguments that are NULL, type) of each function and kinds of arguments that it takes."""
    for name, function in FUNCTIONS.items():
        template = function.duckdb
        taken = 1 + max((n for n in range(10) if uses(template, n)), default=-1)
        for size in range(1, 4) if "{*}" in template else (taken,):
            for kinds in product(KINDS, repeat=size if size <= MOST_ARGUMENTS else 0):
                result = function.types(kinds)
                is_possible = not name.startswith("width_bucket") or kinds[-1] is SqlType.INT8  # how many, a constant
                if result is not None and is_possible and name not in SPANS:
                    nulls = tuple(f"(NULL::{DUCKDB.types[k]})" for k in kinds)
                    told = f"{name} of {', '.join(k.name for k in kinds)}"
                    yield told, DUCKDB.call(name, nulls, kinds, may_raise=True), result


def test_a_call_has_the_type_that_it_is_said_to_have() -> None:
    asked = list(calls())
    with duckdb.connect() as connection:
        kinds = [
            kind
            for start in range(0, len(asked), 200)
            for kind in connection.execute(
                f"SELECT {', '.join(f'typeof({text})' for _, text, _ in asked[start : start + 200])}"
            ).fetchall()[0]
        ]
    wrong = [f"{told} is {kind}" for (told, _, of), kind in zip(asked, kinds, strict=True) if kind != DUCKDB.types[of]]
    assert not wrong
    assert len(asked) > 1000
    assert len({told.partition(" of ")[0] for told, _, _ in asked}) > 0.9 * len(FUNCTIONS)
