"""One expression over rows of odd values: as the private engine, the oracle and PostgreSQL compute it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal

import duckdb
import psycopg

from proxy.analysis.domains import Domains
from proxy.engines.duckdb_open import set_optimizer
from proxy.policy.model import Column, RowUnit, Table
from proxy.sql.algebra.nodes import Block, ColumnRef, Scalar, Scan
from proxy.sql.binding.rules import Constants, make_binder
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sql.render.renderer import Renderer
from proxy.sql.syntax.parse import parse
from proxy.sqltypes import SqlType
from tests.oracle import times
from tests.oracle.scalars import Evaluator, Reading, stored

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)
ZONE = "UTC"
Client = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Sample:
    """A column of the table that is asked: its type in the policy and in the engine, and its values."""

    name: str
    type: SqlType
    engine: str
    values: tuple[object, ...]


def _moments(*texts: str, zone: tzinfo | None = None) -> tuple[object, ...]:
    return (*(datetime.fromisoformat(text).replace(tzinfo=zone) for text in texts), None)


TEXTS = ("", " ", "a", "A", "ab", "abc", "a-b-c", "-a", "a-", "--", "a--b", "Ab cD", "o'Hara 1st", "éa ßb_x", "straße",
         "ẞ ŒUVRE", "x@y.example", "a.b@c@d", "12", "12.5", "12abc34", "%_\\", "a\nb", "\tx", "zz top", "ΑΒΓ αβγ", "ba",
         "aaa", "https://example.org/a/b?c=1", "2024-05-06", "é", "  7 ", "1e3", "1.", ".5", "NaN", "true",
         "99999999999", "3.7", "-3.5", "+4", "2024-05-06 07:08", "2024-13-01", "2024-5-6", "2024-02-30", "1 2",
         "9223372036854775808", None)  # fmt: skip
INTEGERS = (0, 1, -1, 2, 7, 10, 99, 100, -15, 2**31 - 1, -(2**31), 8, 1000, None)
NUMERICS = (*map(Decimal, ("0", "1.15", "-1.15", "2.5", "-2.5", "0.005", "1.005", "99.995", "-0.004", "12345.6789",
            "64", "27", "1000", "99999999.9999")), None)  # fmt: skip
DATES = (*map(date.fromisoformat, ("0011-01-01", "1970-01-01", "1999-12-31", "2000-01-01", "2001-01-01", "2004-02-29",
         "2010-01-03", "2024-02-29", "2024-12-30", "2021-01-03", "9990-12-31")), None)  # fmt: skip
TIMES = _moments("0011-01-01", "1969-12-31 23:59:59.999999", "2000-01-01", "2024-02-29 12:34:56.789012",
                 "2024-03-31 02:30", "2024-10-27 02:30", "2024-12-31 23:59:59", "2019-12-30 00:00:01",
                 "2024-07-07 13:05", "9990-12-31 23:59:59")  # fmt: skip
INSTANTS = _moments("1970-01-01", "2024-02-29 12:34:56.789012", "2024-03-31 00:59:59", "2024-03-31 01:00",
                    "2024-10-27 00:30", "2024-10-27 01:30", "2024-12-31 23:30", zone=UTC)  # fmt: skip
SAMPLES = (
    Sample("x", SqlType.TEXT, "varchar", TEXTS),
    Sample("c", SqlType.VARCHAR, "varchar", TEXTS[5:15]),
    Sample("i", SqlType.INT4, "integer", INTEGERS),
    Sample("n", SqlType.NUMERIC, "decimal(12,4)", NUMERICS),
    Sample("r", SqlType.FLOAT8, "double", (0.0, 1.5, -1.5, 2.5, 27.0, -8.0, 1e-3, 12345.678, 1e15, None)),
    Sample("d", SqlType.DATE, "date", DATES),
    Sample("t", SqlType.TIMESTAMP, "timestamp", TIMES),
    Sample("z", SqlType.TIMESTAMPTZ, "timestamptz", INSTANTS),
    Sample("b", SqlType.BOOL, "boolean", (True, False, None)),
)
_COUNT = max(len(s.values) for s in SAMPLES)


def rows() -> Iterator[tuple[object, ...]]:
    """Each value of each column; shorter columns begin anew."""
    for number in range(_COUNT):
        yield tuple(s.values[number % len(s.values)] for s in SAMPLES)


class Asked:
    """Asks all three. postgres: a connection whose temporary table becomes the same."""

    def __init__(self, postgres: Client) -> None:
        columns = tuple(Column(name=s.name, type=s.type) for s in SAMPLES)
        table = Table(name="v", relation=("v",), ownership=RowUnit(), columns=columns)
        self._refs = {s.name: ColumnRef(0, s.name, s.type) for s in SAMPLES}
        domains = Domains(Block(scans=(Scan(0, table),), where=(), keys=(), aggregates=()))
        self._renderer = Renderer(domains.column, domains.operands, ZONE, DUCKDB)
        self._evaluator = Evaluator(domains.column, ZONE)
        self._engine = duckdb.connect(config={"threads": 1})
        set_optimizer(self._engine)
        self._engine.execute(f"set TimeZone = '{ZONE}'")
        self._postgres = postgres
        self._fill()

    def _fill(self) -> None:
        wanted = ", ".join(f"{s.name} {s.engine}" for s in SAMPLES)
        declared = ", ".join(f"{s.name} {s.type.pg_name}" for s in SAMPLES)
        self._engine.execute(f"create table v (row integer, {wanted})")
        self._postgres.execute(f"create temporary table v (row integer, {declared})".encode())
        self._postgres.execute(f"set timezone = '{ZONE}'".encode())
        marks = ", ".join("?" for _ in range(len(SAMPLES) + 1))
        for number, row in enumerate(rows()):
            self._engine.execute(f"insert into v values ({marks})", [number, *row])
            self._postgres.execute(f"insert into v values ({marks.replace('?', '%s')})".encode(), [number, *row])

    def scalar(self, expression: str) -> Scalar:
        """Its meaning. Raises HushError."""
        source = f"SELECT {expression}"
        binder = make_binder(lambda node: self._refs[node.name], Constants({}, NOW), source)
        (item,) = parse(source).expressions
        return binder.scalar(item)

    def engine(self, scalar: Scalar) -> list[object]:
        """The private engine's value for each row."""
        text = self._renderer.key(scalar)
        found = self._engine.execute(f"select {text} from v s0 order by row").fetchall()
        return [_plain(value) for (value,) in found]

    def oracle(self, scalar: Scalar) -> list[object]:
        """The oracle's, in its own terms."""
        found = []
        for row in rows():
            cells = {(0, s.name): stored(v, s.type, ZONE) for s, v in zip(SAMPLES, row, strict=True)}
            found.append(_plain(self._evaluator.value(scalar, cells, Reading.KEY)))
        return found

    def postgres(self, expression: str) -> list[object]:
        """PostgreSQL's; NULL for a row where it raises."""
        try:
            found = self._postgres.execute(f"select {expression} from v order by row".encode()).fetchall()
            return [_plain(value) for (value,) in found]
        except psycopg.Error:
            return [self._row(expression, number) for number in range(_COUNT)]

    def _row(self, expression: str, number: int) -> object:
        try:
            found = self._postgres.execute(f"select {expression} from v where row = {number}".encode()).fetchone()
        except (psycopg.errors.SyntaxError, psycopg.errors.UndefinedFunction):
            raise
        except psycopg.Error:
            return None
        assert found is not None
        return _plain(found[0])


def _plain(value: object) -> object:
    """A value in one spelling: numbers as doubles, times as microseconds since 1970."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, date):
        return float(times.moment_of(value))
    return float(value) if isinstance(value, (int, float, Decimal)) else value


def differences(ours: Sequence[object], theirs: Sequence[object], *, near: float = 1e-12) -> list[str]:
    """Rows where two answers differ by more than rounding."""
    return [
        f"{[r for r in list(rows())[n] if r is not None]}: {a!r}, not {b!r}"
        for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if not _is_same(a, b, near)
    ]  # fmt: skip


def _is_same(left: object, right: object, near: float) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=near)
    return left == right
