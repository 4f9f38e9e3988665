"""How does PostgreSQL spell what a private statement computes, so that no row can make it raise?

It raises for overflow and underflow of doubles and whole numbers, for times outside its calendar and for numerics that
are no double, so each is told apart by CASE before it is computed. Its own meaning of a function is the meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType

from proxy.errors import Unsupported
from proxy.sql.functions.hazards import Operands
from proxy.sql.functions.templates import fill, uses
from proxy.sql.render.dialect import Abilities, Overflow, parameters, quote, text_literal
from proxy.sql.render.postgres.functions import SPELLINGS, template_of
from proxy.sql.render.postgres.spelling import AWAY
from proxy.sql.render.postgres.texts import in_case
from proxy.sql.render.postgres.times import DAY_MICROSECONDS, LONGEST_DAYS
from proxy.sqltypes import SqlType

LARGEST = 1.7976931348623157e308
SMALLEST, LARGEST_NUMERIC = 1e-150, 1e150  # numerics beyond have no double here, and smaller ones are zero
_ORDERING = frozenset({"<", "<=", ">", ">=", "greatest", "least"})
_CALENDAR = "'4000-01-01 00:00:00+00 BC'", "'200000-01-01 00:00:00+00'"
DEFAULT_SCHEMA = "public"

_TYPES = MappingProxyType({
    SqlType.BOOL: "BOOLEAN", SqlType.INT2: "BIGINT", SqlType.INT4: "BIGINT", SqlType.INT8: "BIGINT",
    SqlType.NUMERIC: "FLOAT8", SqlType.FLOAT4: "FLOAT8", SqlType.FLOAT8: "FLOAT8",
    SqlType.TEXT: "TEXT", SqlType.VARCHAR: "TEXT", SqlType.BPCHAR: "TEXT", SqlType.UUID: "TEXT",
    SqlType.DATE: "DATE", SqlType.TIMESTAMP: "TIMESTAMP", SqlType.TIMESTAMPTZ: "TIMESTAMP",
    SqlType.INTERVAL: "INTERVAL",
})  # fmt: skip


_ABILITIES = Abilities(
    doubles=Overflow.RAISING, half_joins=False, numerics_cost=True, ids_by_range=False, filters_early=False,
    counts_in_words=False,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Postgres:
    """PostgreSQL's spellings. Implements `Dialect`."""

    name: str = "postgres"
    abilities: Abilities = _ABILITIES
    huge: str = "NUMERIC"
    fence: str = "\nOFFSET 0"

    @property
    def types(self) -> Mapping[SqlType, str]:
        return _TYPES

    def quote(self, name: str) -> str:
        return quote(name)

    def text_literal(self, text: str) -> str:
        return text_literal(text)

    def day(self, value: date) -> str:
        return f"DATE '{value.isoformat()}'"

    def moment(self, value: datetime) -> str:
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"

    def once(self, name: str, body: str) -> str:
        return f"{name} AS MATERIALIZED ({body})"

    def whole(self, text: str) -> str:
        return f"trunc({text})::BIGINT"

    def truncated(self, text: str) -> str:
        return f"trunc({text})"

    def small_whole(self, text: str) -> str:
        return f"trunc({text})::INTEGER"  # sums of BIGINT are numeric

    def rounded_up(self, text: str, kind: str) -> str:
        return f"ceil({text})::{kind}"

    def ratio(self, dividend: str, divisor: str) -> str:
        return f"{dividend} / {divisor}"

    def wide_sum(self, text: str) -> str:
        return f"sum({text})"

    def bytes_of(self, text: str) -> str:
        return f'({text}::VARCHAR COLLATE "C")'

    def as_text(self, text: str, kind: SqlType) -> str:
        return f"{text}::VARCHAR"

    def tuple_of(self, texts: Sequence[str]) -> str:
        return f"row({', '.join(texts)})"

    def double(self, value: float) -> str:
        return f"'{value!r}'::FLOAT8"

    def one_spelling(self, text: str) -> str:
        return f"({text} + {self.double(0.0)})"

    def sign_bit(self, text: str) -> str:
        return f"atan2({text}, {self.double(-1.0)}) < {self.double(0.0)}"

    def has_value(self, stored: str, kind: SqlType, *, limited: bool = False) -> str:
        if kind is not SqlType.NUMERIC:
            return f"{stored} IS NOT NULL"
        return f"{stored} <> 'NaN'" if limited else f"{stored} BETWEEN -{LARGEST_NUMERIC!r} AND {LARGEST_NUMERIC!r}"

    def as_double(self, text: str) -> str:
        return f"({text})::FLOAT8"

    def finite(self, text: str) -> str:
        return f"({text} BETWEEN {self.double(-LARGEST)} AND {self.double(LARGEST)})"  # NaN is above infinity

    def rounded(self, value: str, scale: float) -> str:
        tiny = self.double(1e-150)  # has no product with a scale below 1
        product = f"CASE WHEN abs(x) < {tiny} THEN {self.double(0.0)} ELSE x * {self.double(scale)} END"
        inner = f"SELECT {product} AS x FROM (SELECT {value} AS x OFFSET 0) AS v OFFSET 0"
        return f"(SELECT ({fill(AWAY, ('x',))})::BIGINT FROM ({inner}) AS v)"

    def quotient(self, dividend: str, divisor: int) -> str:
        return f"div(({dividend})::NUMERIC, {divisor})::BIGINT"

    def days_between(self, first: str, last: str) -> str:
        return f"({last} - {first})::BIGINT"

    def microseconds_between(self, first: str, last: str) -> str:
        return f"(extract(epoch FROM ({last} - {first})) * 1000000)::BIGINT"

    def exact_sum(self, text: str) -> str:
        return f"sum({text})"

    def one_if(self, condition: str) -> str:
        return f"CASE WHEN {condition} THEN 1 ELSE 0 END"

    def of_peers(self, frame: str) -> str:
        return frame

    def smallest(self, text: str, kind: SqlType) -> str:
        return f"bool_and({text})" if kind is SqlType.BOOL else f"min({text})"

    def matched(self, rows: str, others: str, columns: Sequence[str], *, is_there: bool) -> str:
        same = " AND ".join(f"{others}.{c} = {rows}.{c}" for c in columns)
        return f"{rows} WHERE {'' if is_there else 'NOT '}EXISTS (SELECT 1 FROM {others} WHERE {same})"

    def half_join(self, others: str, same: str) -> str:
        return f"WHERE EXISTS (SELECT 1 FROM {others} WHERE {same})"

    def among(self, columns: Sequence[tuple[str, SqlType]]) -> str:
        """By a hashed IN, which knows no NULL: each column goes in as whether it is one, and what it is else."""
        ours = ", ".join(f"{name} IS NULL, coalesce({name}, {_some(kind)})" for name, kind in columns)
        theirs = ", ".join(f"p{i} IS NULL, coalesce(p{i}, {_some(kind)})" for i, (_, kind) in enumerate(columns, 1))
        return f"WHERE ({ours}) IN (SELECT {theirs} FROM (SELECT {parameters(columns, _TYPES)}) AS kept)"

    def gathered(self, text: str) -> str:
        return text

    def sparse(self, text: str) -> str:
        return text

    def counters(self, keys: Sequence[str], slots: int, width: int, there: str) -> str:
        raise AssertionError("without counts in words")

    def relation(self, parts: tuple[str, ...]) -> str:
        return ".".join(map(self.quote, parts if len(parts) > 1 else (DEFAULT_SCHEMA, *parts)))

    def span(self, months: int, days: int, microseconds: int) -> str:
        if abs(months) * 31 + abs(days) + abs(microseconds) / DAY_MICROSECONDS > LONGEST_DAYS:
            raise _unsupported("an interval of this length", self.name)
        return f"INTERVAL '{months} months {days} days {microseconds} microseconds'"

    def stored(self, text: str, kind: SqlType, *, limited: bool = False) -> str:
        if kind is not SqlType.NUMERIC:
            return f"{text}::{_TYPES[kind]}"
        if limited:
            return f"nullif({text}::FLOAT8, 'NaN'::FLOAT8)"
        first, last = repr(SMALLEST), repr(LARGEST_NUMERIC)
        parts = ((first, last, f"{text}::FLOAT8"), (f"-{first}", first, self.double(0.0)),
                 (f"-{last}", f"-{first}", f"{text}::FLOAT8"))  # fmt: skip
        whens = " ".join(f"WHEN {text} BETWEEN {low} AND {high} THEN {value}" for low, high, value in parts)
        return f"(CASE {whens} END)"

    def read_within(self, text: str, kind: SqlType, ends: tuple[float, float], read: str) -> str:
        low, high = ends
        if kind is SqlType.NUMERIC:
            low, high = (max(low, SMALLEST), high) if high > SMALLEST else (low, min(high, -SMALLEST))
            inside = f"{text} BETWEEN {low!r} AND {high!r}"
        elif kind.is_integer:
            inside = f"{text} BETWEEN {int(low)} AND {int(high)}"
        else:
            inside = f"{text} BETWEEN {self.double(low)} AND {self.double(high)}"
        return f"CASE WHEN {inside} THEN {text}::{_TYPES[kind]} ELSE {read} END"

    def local_time(self, text: str, zone: str) -> str:
        first, last = (f"TIMESTAMPTZ {end}" for end in _CALENDAR)
        inside = f"{text} BETWEEN {first} AND {last} OR NOT isfinite({text})"
        return f"(CASE WHEN {inside} THEN {text} AT TIME ZONE {self.text_literal(zone)} END)"

    def link(self, text: str) -> str:
        number = f"{text}::NUMERIC"
        return f"CASE WHEN {number} BETWEEN -1e38 AND 1e38 AND {number} = trunc({number}) THEN {number} END"

    def lower(self, text: str) -> str:
        named = in_case("lower", "x")
        return f"(SELECT {named} FROM (SELECT {text} AS x OFFSET 0) AS v)"

    def enumerated(self, text: str, values: Sequence[str]) -> str:
        return ""

    def total(self, text: str) -> str:
        return text

    def may_raise(self, function: str, of: Operands) -> bool:
        spelling = SPELLINGS.get(function)
        return spelling is not None and spelling.may_raise(of)

    def times_written(self, function: str, place: int) -> int:
        return 1  # in a sub-select, if it is named more than once

    def call(self, function: str, args: tuple[str, ...], kinds: tuple[SqlType, ...], *, may_raise: bool) -> str:
        spelling = SPELLINGS.get(function)
        if spelling is None:
            raise _unsupported(function, self.name)
        try:
            args = spelling.prepared(args)
        except ValueError as error:
            raise _unsupported(str(error), self.name) from error
        if function in _ORDERING and kinds[0].is_text:  # a database orders texts by a collation of its own
            args = (f'{args[0]} COLLATE "C"', *args[1:])
        template = template_of(spelling, kinds, may_raise=may_raise)
        if all(uses(template, place) <= 1 for place in range(len(args))):
            return f"({fill(template, args)})"
        named = ", ".join(f"{text} AS x{place}" for place, text in enumerate(args))
        inner = fill(template, tuple(f"x{place}" for place in range(len(args))))
        return f"(SELECT {inner} FROM (SELECT {named} OFFSET 0) AS v)"  # each argument is written and computed once

    def compare(self, operator: str, exact_sides: tuple[str, str], doubles: tuple[str, str]) -> str:
        sides = exact_sides if all(exact_sides) else doubles
        return f"{sides[0]} {operator} {sides[1]}"

    def member(self, stored: str, items: Sequence[str]) -> str:
        return f"coalesce({stored} IN ({', '.join(items)}), FALSE)" if all(items) else ""


POSTGRES = Postgres()


def _some(kind: SqlType) -> str:
    """Any value of a type."""
    if kind is SqlType.BOOL:
        return "FALSE"
    if kind.is_time:
        return f"DATE '2000-01-01'::{_TYPES[kind]}"
    return f"'0'::{_TYPES[kind]}"


def _unsupported(construct: str, engine: str) -> Unsupported:
    return Unsupported(
        f"{construct} is not supported over private rows with engine {engine}",
        hint="The guide says what this engine computes.",
    )
