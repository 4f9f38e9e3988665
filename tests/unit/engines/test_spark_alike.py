"""Does a server of Spark's protocol compute each function as DuckDB does, and never raise?

The guide (docs/guide/spark.md) says where the two may differ: the last bit of curves, times of other years than 1 to
9999, patterns in texts of more than 1,000 characters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path

import duckdb
import pytest

from proxy.errors import Unsupported
from proxy.sql.algebra.nodes import Span
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.render.dialect import Dialect
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sql.render.spark.dialect import SPARK
from proxy.sql.render.spark.functions import SPELLINGS
from proxy.sqltypes import SqlType
from tests.spark_client import Client
from tests.unit.engines.calls import DATE, DOUBLE, INT8, MOMENT, TEXT, VALUES, Called, Constant, calls

_BOOL = SqlType.BOOL
_CURVES = ("exp", "ln", "log", "cbrt", "power", "sin", "cos", "tan", "asin", "acos", "atan", "atan2")
_OF_TIMES = ("date", "time", "make_date", "to_timestamp", "local time", "instant", "cast time to", "cast text to date",
             "cast text to timestamp")  # fmt: skip
_CHOICES = ("coalesce", "nullif", "greatest", "least")
_LAST_BITS = 4e-15
_LONGEST_OF = {"matches": 1_000, "extracted": 1_000, "replaced matches": 1_000, "cast text": 400}

Rows = list[tuple[object, ...]]


def _own() -> Iterator[Called]:
    """What `calls` leaves out, as its spelling is the same on the other two engines."""
    yield from (Called(name, (kind, kind)) for name in ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "nullif",
                "coalesce", "greatest", "least") for kind in (DOUBLE, INT8, TEXT, MOMENT, DATE))  # fmt: skip
    yield from (Called(name, (MOMENT, DATE)) for name in ("<", "=", "is distinct from", "greatest", "coalesce"))
    yield from (Called(name, (_BOOL, _BOOL)) for name in ("and", "or"))
    yield from (Called(name, (kind,)) for name, kind in (("not", _BOOL), ("is null", TEXT), ("isfinite", MOMENT)))
    yield from (Called(f"integer {sign}", (INT8, INT8)) for sign in ("+", "-", "*", "/", "&", "|", "#"))
    yield from (Called("integer %", (INT8,), ((n, INT8),)) for n in (7, -3, 0))
    yield from (Called("integer >>", (INT8,), ((n, INT8),)) for n in (0, 3, 63))
    yield from (Called(f"integer {name}", (INT8,)) for name in ("negate", "abs"))
    yield from (Called(name, (kind,)) for kind in (DOUBLE, INT8) for name in ("ceil", "round", "round real", "exp",
                "ln", "log", "cbrt", "asin", "acos"))  # fmt: skip
    yield from (Called(name, (DOUBLE,)) for name in ("negate", "abs"))
    yield from (Called("atan2", (DOUBLE, DOUBLE)), Called("cast boolean to integer", (_BOOL,)))
    for name in ("smallint", "integer", "bigint"):
        yield from (Called(f"cast {of} to {name}", (kind,)) for of, kind in (
            ("number", DOUBLE), ("number", INT8), ("real", DOUBLE), ("real", INT8), ("boolean", _BOOL)))  # fmt: skip
    for name in ("numeric", "double precision"):
        yield from (Called(f"cast number to {name}", (kind,)) for kind in (DOUBLE, INT8))
    for name in ("text", "character varying"):
        yield from (Called(f"cast {of} to {name}", (kind,)) for of, kind in (
            ("text", TEXT), ("integer", INT8), ("boolean", _BOOL), ("date", DATE), ("timestamp", MOMENT)))  # fmt: skip
    yield from (Called(f"cast time to {to}", (kind,)) for to in ("date", "timestamp", "timestamptz") for kind in
                (MOMENT, DATE))  # fmt: skip
    yield from _own_times()
    yield from _own_texts()


def _own_times() -> Iterator[Called]:
    for kind in (MOMENT, DATE):
        yield from (Called(name, (kind,)) for name in FUNCTIONS if name.startswith(("extract ", "date_trunc "))
                    and name != "extracted")  # fmt: skip
        spans = (Span(1, 0, 0), Span(0, 1, 0), Span(-14, 3, 3_600_000_001), Span(0, 0, 1), Span(12 * 200, 0, 0))
        yield from (Called(f"time {sign} interval", (kind,), ((span, SqlType.INTERVAL),)) for sign in "+-"
                    for span in spans)  # fmt: skip
    yield from (Called(f"date {sign} integer", (DATE, INT8)) for sign in "+-")
    yield from (Called("date - date", (DATE, DATE)), Called("time - time", (MOMENT, MOMENT)))
    yield Called("time of day", (MOMENT,))
    yield Called("instant", (MOMENT,), (("UTC", TEXT), ("Europe/Zurich", TEXT)))


def _own_texts() -> Iterator[Called]:
    likes = ("a%", "%\\%%", "_b%", "a\\_b", "", "%ß", "%\\\\%", "\\a%", "%\n%", "it''s%")
    yield from (Called("like", (TEXT,), ((pattern, TEXT),)) for pattern in likes)
    yield from (Called(name, (TEXT,)) for name in ("length", "octet_length", "ascii", "reverse"))
    yield from (Called("substring", (TEXT,), ((a, INT8), (b, INT8))) for a, b in ((1, 3), (2, 0), (3, 2**31 - 1)))
    yield from (Called("substring from", (TEXT,), ((n, INT8),)) for n in (1, 2, 2**31 - 1))
    yield from (Called(name, (TEXT,), ((n, INT8),)) for name in ("left", "right") for n in (0, 1, 3, -1, -2, -(10**6)))
    yield from (Called(name, (TEXT,), ((chars, TEXT),)) for name in ("trim", "ltrim", "rtrim") for chars in
                (" ", "ab", "-", "é", "xyz%\\"))  # fmt: skip
    yield from (Called(name, (TEXT,), ((part, TEXT),)) for name in ("position", "starts with") for part in
                ("a", "", "-b", "é", "\\", "'", "\n"))  # fmt: skip
    yield from (Called("replace", (TEXT,), ((old, TEXT), (new, TEXT))) for old, new in
                (("a", ""), ("", "x"), ("-", "''"), ("\\", "é"), ("aa", "a")))  # fmt: skip
    yield from (Called(name, (TEXT,), ((n, INT8), (fill, TEXT))) for name in ("lpad", "rpad") for n, fill in
                ((0, " "), (5, "ab"), (2, "é"), (100, "'")))  # fmt: skip
    yield Called("||", (TEXT,), (('it\'s \\ \n "x" `y` ', TEXT),))


def _of_spark() -> Iterator[Called]:
    """Every call that Spark's table has, with arguments that it accepts."""
    for called in (*calls(), *_own()):
        try:
            SPARK.call(called.function, _arguments(called, SPARK)[0], _arguments(called, SPARK)[1], may_raise=True)
        except Unsupported:
            continue
        yield called


def _constant(value: Constant, kind: SqlType, dialect: Dialect) -> str:
    match value:
        case Span(months, days, microseconds):
            return dialect.span(months, days, microseconds)
        case str():
            return f"{dialect.types[kind]} '{value}'" if kind.is_time else dialect.text_literal(value)
        case _:
            return f"{value}::BIGINT" if kind is INT8 else dialect.double(float(value))


def _arguments(called: Called, dialect: Dialect) -> tuple[tuple[str, ...], tuple[SqlType, ...]]:
    columns = [(f"s{n}.x", kind) for n, kind in enumerate(called.columns)]
    constants = [(_constant(value, kind, dialect), kind) for value, kind in called.constants]
    texts, kinds = zip(*(*columns, *constants), strict=True)
    return tuple(f"({text})" for text in texts), kinds


def _query(called: Called, dialect: Dialect, tables: Mapping[SqlType, str], *, may_raise: bool = True) -> str:
    args, kinds = _arguments(called, dialect)
    text = dialect.call(called.function, args, kinds, may_raise=may_raise)
    text_type = dialect.types[TEXT]
    shown = [f"CAST({text} AS {text_type})" if _is_of_time(called) else text]
    shown += [f"CAST(s{n}.x AS {text_type})" if k.is_time else f"s{n}.x" for n, k in enumerate(called.columns)]
    named = ", ".join(f"{tables[kind]} AS s{n}" for n, kind in enumerate(called.columns))
    listed = ", ".join(f"{text} AS c{n}" for n, text in enumerate(shown))
    order = ", ".join(f"s{n}.n" for n in range(len(called.columns)))
    return f"SELECT {listed} FROM {named} ORDER BY {order}"


def _is_of_time(called: Called) -> bool:
    """Whether the result may be a time, which Python has not for every year."""
    return called.function.startswith(_OF_TIMES) or (called.function in _CHOICES and called.columns[0].is_time)


class Engines:
    """DuckDB and the server over the same Parquet files, one for each type."""

    def __init__(self, folder: Path, values: Mapping[SqlType, Sequence[object]]) -> None:
        self._duckdb = duckdb.connect()
        self._duckdb.execute("set TimeZone = 'UTC'")
        self._client = Client()
        self.of_duckdb: dict[SqlType, str] = {}
        self.of_spark: dict[SqlType, str] = {}
        for kind, column in values.items():
            name = f"of_{kind.name}".lower()
            self._duckdb.execute(
                f"create table {name} as select generate_subscripts($1, 1) as n, unnest($1)::{DUCKDB.types[kind]} as x",
                [[*column, None]],
            )
            path = str(folder / f"{name}.parquet")
            self._duckdb.execute(f"copy {name} to '{path}' (format parquet)")
            self.of_duckdb[kind], self.of_spark[kind] = name, SPARK.relation(("parquet", path))

    def differences(self, called: Called) -> Iterator[str]:
        ours = self._duckdb.execute(_query(called, DUCKDB, self.of_duckdb)).fetchall()
        theirs = self._client.rows(_query(called, SPARK, self.of_spark))
        for (one, *values), (other, *_) in zip(ours, theirs, strict=True):
            if not _are_alike(called, one, other) and not _is_declared(called, one, values):
                yield f"{called} of {values}: {one!r} {other!r}"

    def close(self) -> None:
        self._duckdb.close()
        self._client.close()


def _plain(value: object) -> object:
    match value:
        case float() | Decimal():
            return "NaN" if math.isnan(value) else float(value) + 0.0
        case _:
            return value


def _are_alike(called: Called, one: object, other: object) -> bool:
    ours, theirs = _plain(one), _plain(other)
    if called.function in _CURVES and isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or math.isclose(ours, theirs, rel_tol=_LAST_BITS, abs_tol=1e-300)
    return ours == theirs


def _is_declared(called: Called, result: object, values: Sequence[object]) -> bool:
    """Whether the guide says that the engines may differ. result: DuckDB's; values: what it is computed from."""
    if _is_of_time(called) and isinstance(result, str):
        return "(BC)" in result or result[4:5] != "-"
    longest = _LONGEST_OF.get(called.function.partition(" to ")[0])
    return longest is not None and any(len(v) > longest for v in values if isinstance(v, str))


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    moments = [m for m in VALUES[MOMENT] if "infinity" not in str(m)]
    values: dict[SqlType, Sequence[object]] = {
        **VALUES, MOMENT: moments, DATE: [str(m)[:10] for m in moments], _BOOL: (True, False),
    }  # fmt: skip
    opened = Engines(tmp_path_factory.mktemp("alike"), values)
    yield opened
    opened.close()


def test_every_function_of_spark_is_called() -> None:
    assert {called.function for called in _of_spark()} == set(SPELLINGS) <= set(FUNCTIONS)


def test_functions_of_hard_values_are_the_same_and_never_raise_on_spark(engines: Engines) -> None:
    assert [difference for called in _of_spark() for difference in islice(engines.differences(called), 1)] == []
