"""Does PostgreSQL compute each function as DuckDB does, and never raise?

The guide says where the two may differ: results nearer to zero than 10^-300 or beyond 1.797 * 10^308, powers and
remainders of numbers beyond 10^150 or nearer to zero than 10^-100, powers beyond 10^307, remainders of quotients
beyond 9 * 10^15, texts of more than 1,000 letters, intervals of more than 4,000 years.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal

import duckdb
import psycopg
import pytest

from proxy.sql.algebra.nodes import Span
from proxy.sql.functions import letters
from proxy.sql.render.dialect import Dialect, text_literal
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sql.render.postgres.dialect import POSTGRES
from proxy.sql.render.postgres.times import LONGEST_DAYS
from proxy.sqltypes import SqlType
from tests.postgres_server import private_server
from tests.unit.engines.calls import INT8, TEXT, VALUES, Called, Constant, calls, generated

_MANY = 20_000
_LONG_TEXT = 1_000
_CASES = ("lower", "upper", "initcap", "ilike", "cast text to numeric", "cast text to double precision")
_OF_TIMES = ("date", "time", "make_date", "to_timestamp", "local time", "instant", "cast text to date",
             "cast text to timestamp")  # fmt: skip
_OF_COMMON_SIZES = ("power", "%")
_STEPS = (1, 7919, 104_729)  # row numbers that are joined where not all are joined with all

Rows = list[tuple[object, ...]]
Values = Mapping[SqlType, tuple[object, ...]]


class Engines:
    """Both engines with the same values, a table for each type."""

    def __init__(self, name: str, values: Values) -> None:
        self.count = max(map(len, values.values()))
        self._duckdb = duckdb.connect()
        server = private_server()
        server.create(name, "")
        self._postgres = psycopg.connect(server.dsn(name), autocommit=True)
        self._postgres.execute("set search_path = pg_catalog")
        for engine in (self._duckdb, self._postgres):
            engine.execute("set TimeZone = 'UTC'")
        for kind, column in values.items():
            self._fill(kind, [*column[: self.count - 1], None])

    def _fill(self, kind: SqlType, column: list[object]) -> None:
        table = f"public.of_{kind.name}".lower()
        self._duckdb.execute("create schema if not exists public")
        self._duckdb.execute(f"create table {table} (n integer, x {DUCKDB.types[kind]})")
        self._postgres.execute(f"create table {table} (n integer, x {POSTGRES.types[kind]})".encode())
        self._duckdb.execute(
            f"insert into {table} select generate_subscripts($1, 1), unnest($1)::{DUCKDB.types[kind]}", [column]
        )
        with self._postgres.cursor() as cursor, cursor.copy(f"copy {table} from stdin".encode()) as copy:
            for row in enumerate(column, start=1):
                copy.write_row(row)

    def close(self) -> None:
        self._duckdb.close()
        self._postgres.close()

    def of_duckdb(self, sql: str) -> Rows:
        return self._duckdb.execute(sql).fetchall()

    def of_postgres(self, sql: str) -> Rows:
        return self._postgres.execute(sql.encode()).fetchall()


def _constant(value: Constant, kind: SqlType, dialect: Dialect) -> str:
    match value:
        case Span(months, days, microseconds):
            return dialect.span(months, days, microseconds)
        case str():
            return f"TIMESTAMP '{value}'" if kind.is_time else text_literal(value)
        case _:
            return f"{value}::BIGINT" if kind is INT8 else dialect.double(float(value))


def _arguments(called: Called, dialect: Dialect) -> tuple[tuple[str, ...], tuple[SqlType, ...]]:
    columns = [(f"s{n}.x", kind) for n, kind in enumerate(called.columns)]
    constants = [(_constant(value, kind, dialect), kind) for value, kind in called.constants]
    texts, kinds = zip(*(columns[:1] + constants + columns[1:] if called.is_of_spans else columns + constants),
                       strict=True)  # fmt: skip
    return tuple(f"({text})" for text in texts), kinds


def _query(called: Called, dialect: Dialect, joined: int) -> str:
    """Row by row: what the columns hold, and the function of it. joined: rows joined one to one; 0 for all with all."""
    args, kinds = _arguments(called, dialect)
    text = dialect.call(called.function, args, kinds, may_raise=True)
    shown = [f"({text})::VARCHAR" if called.function.startswith(_OF_TIMES) else text]
    shown += [f"{c}.x::VARCHAR" if k.is_time else f"{c}.x" for c, k in _named(called)]
    tables = ", ".join(f"public.of_{kind.name} s{n}".lower() for n, kind in enumerate(called.columns))
    places = [f"s{n}.n" for n in range(len(called.columns))]
    same = [f"{place} = s0.n::BIGINT * {step} % {joined} + 1"
            for place, step in zip(places[1:], _STEPS[1:], strict=False) if joined]  # fmt: skip
    where = f" WHERE {' AND '.join(same)}" if same else ""
    return f"SELECT {', '.join(shown)} FROM {tables}{where} ORDER BY {', '.join(places)}"


def _named(called: Called) -> list[tuple[str, SqlType]]:
    return [(f"s{n}", kind) for n, kind in enumerate(called.columns)]


def _plain(value: object) -> object:
    match value:
        case float() | Decimal():
            return "NaN" if math.isnan(value) else float(value) + 0.0
        case str() if value.endswith(" BC"):
            return value.removesuffix(" BC")
        case str():
            return value.replace(" (BC)", "")
        case _:
            return value


def _is_declared(called: Called, values: tuple[object, ...]) -> bool:
    """Whether the guide says that the engines may differ. values: DuckDB's result, and what it is computed from."""
    result, numbers = values[0], [v for v in values[1:] if isinstance(v, (int, float)) and v != 0]
    if isinstance(result, float) and (0 < abs(result) < 1e-300 or 1.797e308 <= abs(result) < math.inf):
        return True
    if called.function in _OF_COMMON_SIZES and any(not 1e-100 < abs(n) < 1e150 for n in numbers):
        return True
    if called.function == "power" and isinstance(result, float) and abs(result) > 1e307:
        return True
    if called.function == "%":
        return len(numbers) == 2 and abs(numbers[0] / numbers[1]) > 9e15
    if called.is_of_spans:
        span = called.constants[0][0]
        assert isinstance(span, Span)
        days = abs(span.months) * 31 + abs(span.days) + abs(span.microseconds) / 86_400_000_000
        return any(abs(n) * days > LONGEST_DAYS for n in numbers)
    if called.function == "to_timestamp":
        return any(abs(n) > 1e11 for n in numbers)
    return called.function in _CASES and any(len(v) > _LONG_TEXT for v in values if isinstance(v, str))


def _differences(engines: Engines, joined: int) -> Iterator[str]:
    for called in calls():
        pairs = zip(engines.of_duckdb(_query(called, DUCKDB, joined)),
                    engines.of_postgres(_query(called, POSTGRES, joined)), strict=True)  # fmt: skip
        for (ours, *values), (other, *_) in pairs:
            if _plain(ours) != _plain(other) and not _is_declared(called, (ours, *values)):
                yield f"{called} of {values}: {ours!r} {other!r}"
                break


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    opened = Engines("alike", VALUES)
    yield opened
    opened.close()


def test_functions_of_hard_values_are_the_same_and_never_raise(engines: Engines) -> None:
    assert list(_differences(engines, 0)) == []


@pytest.mark.long
def test_functions_of_generated_values_are_the_same_and_never_raise() -> None:
    engines = Engines("generated", generated(_MANY, seed=7))
    try:
        assert list(_differences(engines, engines.count)) == []
    finally:
        engines.close()


def test_letters_change_their_case_as_elsewhere(engines: Engines) -> None:
    """Every letter, and none by what stands beside it."""
    for name, change in (("lower", letters.lower), ("upper", letters.upper)):
        with_cases = [c for c in map(chr, range(0x80, 0x1F000)) if not 0xD800 <= ord(c) < 0xE000 and change(c) != c]
        texts = ["ß".join(with_cases[start : start + 100]) for start in range(0, len(with_cases), 100)]
        listed = ", ".join(f"({text_literal(text)})" for text in texts)
        spelled = POSTGRES.call(name, ("(x)",), (TEXT,), may_raise=False)
        assert engines.of_postgres(f"SELECT {spelled} FROM (VALUES {listed}) AS t(x)") == [(change(t),) for t in texts]
