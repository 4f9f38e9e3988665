"""Has what a function is spelled as in an engine the type that everything around it is spelled for?

A product of numerics is one of doubles in DuckDB, which never overflows. One of whole numbers of 64 bits would,
for some rows: and the error would tell of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import product

import duckdb

from proxy.errors import Unsupported
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.functions.templates import uses
from proxy.sql.render.dialect import Dialect
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sql.render.duckdb.functions import SPELLINGS
from proxy.sql.render.postgres.dialect import POSTGRES
from proxy.sqltypes import SqlType
from tests.postgres_server import private_server

KINDS = (
    SqlType.BOOL, SqlType.INT8, SqlType.NUMERIC, SqlType.FLOAT4, SqlType.FLOAT8, SqlType.TEXT, SqlType.DATE,
    SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ,
)  # fmt: skip
MOST_ARGUMENTS = 4
SPANS = {"time - time", "age", "interval"}  # a span between two times is a number of microseconds


PG_NAMES = {"BIGINT": "bigint", "FLOAT8": "double precision", "TIMESTAMP": "timestamp without time zone"}

Asked = tuple[str, str, SqlType]


def calls(dialect: Dialect) -> Iterator[Asked]:
    """(what it is, spelled for arguments that are NULL, type) of each function and kinds of arguments that it takes."""
    for name, function in FUNCTIONS.items():
        template = SPELLINGS[name].text
        taken = 1 + max((n for n in range(10) if uses(template, n)), default=-1)
        for size in range(1, 4) if "{*}" in template else (taken,):
            for kinds in product(KINDS, repeat=size if size <= MOST_ARGUMENTS else 0):
                result = function.types(kinds)
                is_possible = not name.startswith("width_bucket") or kinds[-1] is SqlType.INT8  # how many, a constant
                if result is not None and is_possible and name not in SPANS:
                    nulls = tuple(f"(NULL::{dialect.types[k]})" for k in kinds)
                    # a pattern must be a constant, and some functions are not computed
                    with suppress(Unsupported, AssertionError):
                        told = f"{name} of {', '.join(k.name for k in kinds)}"
                        yield told, dialect.call(name, nulls, kinds, may_raise=True), result


def wrong(asked: Sequence[Asked], kind: str, ask: Callable[[str], Sequence[object]], dialect: Dialect) -> list[str]:
    """Calls of another type than they are said to have. kind: the engine's function that names one."""
    found: list[object] = []
    for start in range(0, len(asked), 200):
        found += ask(f"SELECT {', '.join(f'{kind}({text})' for _, text, _ in asked[start : start + 200])}")
    types = {
        of: PG_NAMES.get(name, name.lower()) if dialect is POSTGRES else name for of, name in dialect.types.items()
    }
    return [f"{told} is {k}" for (told, _, of), k in zip(asked, found, strict=True) if str(k) != types[of]]


def test_a_call_has_the_type_that_it_is_said_to_have() -> None:
    asked = list(calls(DUCKDB))
    with duckdb.connect() as connection:
        assert not wrong(asked, "typeof", lambda sql: connection.execute(sql).fetchall()[0], DUCKDB)
    assert len(asked) > 1000
    assert len({told.partition(" of ")[0] for told, _, _ in asked}) > 0.9 * len(FUNCTIONS)


def test_a_call_has_that_type_in_postgresql_too() -> None:
    asked = list(calls(POSTGRES))
    with private_server().owner() as connection:
        assert not wrong(asked, "pg_typeof", lambda sql: connection.execute(sql.encode()).fetchall()[0], POSTGRES)
    assert len(asked) > 800


def test_both_engines_say_alike_which_doubles_are_numbers() -> None:
    doubles = {"NaN": False, "Infinity": False, "-Infinity": False, "1.7976931348623157e308": True,
               "-1.7976931348623157e308": True, "5e-324": True, "-0.0": True, "0.0": True}  # fmt: skip
    ours = [DUCKDB.finite(f"'{d}'::DOUBLE") for d in (*doubles, "NULL")]
    theirs = [POSTGRES.finite(f"'{d}'::FLOAT8") for d in (*doubles, "NULL")]
    sql = "SELECT {}".format
    with duckdb.connect() as connection, private_server().owner() as server:
        found = [connection.execute(sql(", ".join(ours).replace("'NULL'", "NULL"))).fetchone()]
        found.append(server.execute(sql(", ".join(theirs).replace("'NULL'", "NULL")).encode()).fetchone())
    assert found == [(*doubles.values(), None)] * 2
