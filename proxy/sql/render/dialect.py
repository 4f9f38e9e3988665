"""What do private engines spell differently, and which one does what?

One object for each engine; the rest of the rendering is the same for all. DuckDB computes doubles without ever raising
and catches the rest with TRY; PostgreSQL raises for overflow and underflow too, so each of its spellings avoids them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.functions.templates import fill
from proxy.sql.render import exact
from proxy.sqltypes import SqlType


class Dialect(Protocol):
    """The spellings of one engine. Texts are expressions that never raise."""

    @property
    def name(self) -> str:
        """As a policy calls the engine."""
        ...

    @property
    def has_total_doubles(self) -> bool:
        """Whether arithmetic of doubles overflows to infinity and underflows to zero, and never raises."""
        ...

    @property
    def joins_half(self) -> bool:
        """Whether SEMI and ANTI JOIN exist."""
        ...

    @property
    def types(self) -> Mapping[SqlType, str]:
        """The type in which values of a type are computed."""
        ...

    @property
    def huge(self) -> str:
        """The type of exact sums."""
        ...

    @property
    def small(self) -> str:
        """The type of whole numbers of up to 31 bits whose sums are computed quickest."""
        ...

    @property
    def fence(self) -> str:
        """What ends a sub-select so that its columns are computed once, however often they are named."""
        ...

    def double(self, value: float) -> str:
        """A constant of double precision."""
        ...

    def as_double(self, text: str) -> str:
        """A number in double precision."""
        ...

    def finite(self, text: str) -> str:
        """Whether a double is a number; NULL for NULL."""
        ...

    def one_spelling(self, text: str) -> str:
        """A number in double precision that is spelled as every equal one: one zero, one NaN."""
        ...

    def sign_bit(self, text: str) -> str:
        """Something by which 0 and -0, which are equal, differ."""
        ...

    def has_value(self, stored: str, kind: SqlType, *, limited: bool = False) -> str:
        """Whether a stored column can be computed with; FALSE or NULL if not. limited: see `Column`."""
        ...

    def rounded(self, value: str, scale: float) -> str:
        """A double times a power of ten as a whole number, halves away from zero; NULL for NULL."""
        ...

    def quotient(self, dividend: str, divisor: int) -> str:
        """How often a positive whole number is in another that is not negative."""
        ...

    def days_between(self, first: str, last: str) -> str:
        """Days from one date to another, neither of them infinite."""
        ...

    def microseconds_between(self, first: str, last: str) -> str:
        """The same of timestamps, in microseconds."""
        ...

    def exact_sum(self, text: str) -> str:
        """The sum of whole numbers that are known to fit."""
        ...

    def one_if(self, condition: str) -> str:
        """1 or 0."""
        ...

    def smallest(self, text: str, kind: SqlType) -> str:
        """An aggregate: the smallest of values of a type."""
        ...

    def matched(self, rows: str, others: str, columns: Sequence[str], *, is_there: bool) -> str:
        """What stands behind FROM for the rows that have, or have not, an equal among others; nothing may follow."""
        ...

    def half_join(self, others: str, same: str) -> str:
        """What stands behind a relation to keep the rows for which there is one of others; nothing may follow."""
        ...

    def among(self, lists: str, columns: Sequence[tuple[str, SqlType]]) -> str:
        """What stands behind a relation to keep rows whose columns are, NULLs included, a row of lists (`p1`, ..)."""
        ...

    def relation(self, parts: tuple[str, ...]) -> str:
        """The name of a table of the data, quoted."""
        ...

    def span(self, months: int, days: int, microseconds: int) -> str:
        """A constant interval."""
        ...

    def stored(self, text: str, kind: SqlType, *, limited: bool = False) -> str:
        """A stored number, date or truth value in the type in which it is computed. limited: see `Column`."""
        ...

    def read_within(self, text: str, kind: SqlType, ends: tuple[float, float], read: str) -> str:
        """What `read` makes of a stored number, which leaves it as it is between the ends, where most of them are."""
        ...

    def local_time(self, text: str, zone: str) -> str:
        """A stored timestamptz as the time that clocks of a zone show."""
        ...

    def link(self, text: str) -> str:
        """A stored numeric column, to be equated with whole numbers: NULL unless it is whole."""
        ...

    def lower(self, text: str) -> str:
        """A text in lower case, letter by letter. Raises Unsupported where the engine does it otherwise."""
        ...

    def enumerated(self, text: str, values: Sequence[str]) -> str:
        """A text as one of a list's values, NULL outside, for grouping; "" where there is no quicker way."""
        ...

    def total(self, text: str) -> str:
        """The value of an expression that may raise, NULL where it would."""
        ...

    def call(self, function: str, args: tuple[str, ...], kinds: tuple[SqlType, ...], *, may_raise: bool) -> str:
        """A function of `FUNCTIONS`. Raises Unsupported where the engine has no spelling of it."""
        ...

    def compare(self, operator: str, exact_sides: tuple[str, str], doubles: tuple[str, str]) -> str:
        """left operator right of exact numbers; see `exact`."""
        ...

    def member(self, stored: str, items: Sequence[str]) -> str:
        """Whether a stored number is one of the items in digits, FALSE for NULL; "" if that cannot be told exactly."""
        ...


_DUCKDB_TYPES = MappingProxyType({
    SqlType.BOOL: "BOOLEAN", SqlType.INT2: "BIGINT", SqlType.INT4: "BIGINT", SqlType.INT8: "BIGINT",
    SqlType.NUMERIC: "DOUBLE", SqlType.FLOAT4: "DOUBLE", SqlType.FLOAT8: "DOUBLE",
    SqlType.TEXT: "VARCHAR", SqlType.VARCHAR: "VARCHAR", SqlType.BPCHAR: "VARCHAR", SqlType.UUID: "VARCHAR",
    SqlType.DATE: "DATE", SqlType.TIMESTAMP: "TIMESTAMP", SqlType.TIMESTAMPTZ: "TIMESTAMP",
    SqlType.INTERVAL: "INTERVAL",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class DuckDB:
    """DuckDB's spellings. Implements `Dialect`."""

    name: str = "duckdb"
    has_total_doubles: bool = True
    joins_half: bool = True
    huge: str = "HUGEINT"
    small: str = "BIGINT"
    fence: str = ""

    @property
    def types(self) -> Mapping[SqlType, str]:
        return _DUCKDB_TYPES

    def double(self, value: float) -> str:
        return double(value)

    def as_double(self, text: str) -> str:
        return f"({text})::DOUBLE"

    def finite(self, text: str) -> str:
        return f"isfinite({text})"

    def one_spelling(self, text: str) -> str:  # arithmetic makes NaN with a sign, which is equal and prints as -nan
        return f"(CASE WHEN isnan(({text})::DOUBLE) THEN 'nan'::DOUBLE ELSE {text} + 0.0e0 END)"

    def sign_bit(self, text: str) -> str:
        return f"signbit({text})"

    def has_value(self, stored: str, kind: SqlType, *, limited: bool = False) -> str:
        return f"{stored} IS NOT NULL"

    def rounded(self, value: str, scale: float) -> str:
        return f"round({value} * {double(scale)})::BIGINT"

    def quotient(self, dividend: str, divisor: int) -> str:
        return f"({dividend}) // {divisor}"

    def days_between(self, first: str, last: str) -> str:
        return f"date_diff('day', {first}, {last})"

    def microseconds_between(self, first: str, last: str) -> str:
        return f"epoch_us({last}) - epoch_us({first})"

    def exact_sum(self, text: str) -> str:
        return f"sum_no_overflow({text})"

    def one_if(self, condition: str) -> str:
        return f"({condition})::BIGINT"

    def smallest(self, text: str, kind: SqlType) -> str:
        return f"min({text})"

    def matched(self, rows: str, others: str, columns: Sequence[str], *, is_there: bool) -> str:
        return f"{rows} {'SEMI' if is_there else 'ANTI'} JOIN {others} USING ({', '.join(columns)})"

    def half_join(self, others: str, same: str) -> str:
        return f"SEMI JOIN {others} ON {same}"

    def among(self, lists: str, columns: Sequence[tuple[str, SqlType]]) -> str:
        same = " AND ".join(f"{name} IS NOT DISTINCT FROM p{i}" for i, (name, _) in enumerate(columns, 1))
        return self.half_join(f"(SELECT {lists}) AS kept", same)

    def relation(self, parts: tuple[str, ...]) -> str:
        return ".".join(map(quote, parts))

    def span(self, months: int, days: int, microseconds: int) -> str:
        return f"(to_months({months}) + to_days({days}) + to_microseconds({microseconds}))"

    def stored(self, text: str, kind: SqlType, *, limited: bool = False) -> str:
        return f"{text}::{_DUCKDB_TYPES[kind]}"

    def read_within(self, text: str, kind: SqlType, ends: tuple[float, float], read: str) -> str:
        stored = self.stored(text, kind)
        low, high = (str(int(e)) if kind.is_integer else double(e) for e in ends)
        return f"CASE WHEN {stored} BETWEEN {low} AND {high} THEN {stored} ELSE {read} END"

    def local_time(self, text: str, zone: str) -> str:  # years near the end of its calendar have no local time
        return f"TRY({text} AT TIME ZONE {text_literal(zone)})"

    def link(self, text: str) -> str:  # two scales may have no common one
        return f"TRY_CAST(CASE WHEN {text} = trunc({text}) THEN {text} END AS HUGEINT)"

    def lower(self, text: str) -> str:
        return f"lower({text})"

    def enumerated(self, text: str, values: Sequence[str]) -> str:
        return f"TRY_CAST({text} AS ENUM ({', '.join(map(text_literal, values))}))"

    def total(self, text: str) -> str:
        return f"TRY({text})"

    def call(self, function: str, args: tuple[str, ...], kinds: tuple[SqlType, ...], *, may_raise: bool) -> str:
        text = f"({fill(FUNCTIONS[function].duckdb, args)})"
        return self.total(text) if may_raise else text

    def compare(self, operator: str, exact_sides: tuple[str, str], doubles: tuple[str, str]) -> str:
        return exact.compare(operator, exact_sides, doubles)

    def member(self, stored: str, items: Sequence[str]) -> str:
        return exact.member(stored, items)


DUCKDB = DuckDB()


def quote(name: str) -> str:
    """An identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """A string literal; neither engine gives backslashes a meaning."""
    return "'" + text.replace("'", "''") + "'"


def double(value: float) -> str:
    """A DOUBLE constant: an exponent keeps DuckDB from reading a DECIMAL."""
    assert math.isfinite(value)
    text = repr(value)
    return text if "e" in text else f"{text}e0"
