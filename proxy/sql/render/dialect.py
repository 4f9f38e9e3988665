"""What do private engines spell differently, and which one does what?

One object for each engine; the rest of the rendering is the same for all. DuckDB computes doubles without ever raising
and catches the rest with TRY; PostgreSQL raises for overflow and underflow too, so each of its spellings avoids them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from proxy.sql.functions.hazards import Operands
from proxy.sqltypes import SqlType


class Overflow(enum.Enum):
    """What happens to doubles beyond the largest, and nearer to zero than the smallest."""

    INFINITE = "it gives infinity and zero"
    RAISING = "it raises"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What an engine can do, where that decides which statement is written rather than how it is spelled.

    half_joins: SEMI and ANTI JOIN exist. numerics_cost: to read a numeric column as a double costs more than what is
    done with it. ids_by_range: whole numbers are grouped in an array over all between the least and the greatest.
    filters_early: a unit's norm is worth a look before it is added up. counts_in_words: `Dialect.counters` exists.
    """

    doubles: Overflow
    half_joins: bool
    numerics_cost: bool
    ids_by_range: bool
    filters_early: bool
    counts_in_words: bool


class Dialect(Protocol):
    """The spellings of one engine. Texts are expressions that never raise."""

    @property
    def name(self) -> str:
        """As a policy calls the engine."""
        ...

    @property
    def abilities(self) -> Abilities:
        """What the engine can do."""
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
    def fence(self) -> str:
        """What ends a sub-select so that its columns are computed once, however often they are named."""
        ...

    def quote(self, name: str) -> str:
        """A name, whatever is in it."""
        ...

    def text_literal(self, text: str) -> str:
        """A constant text, whatever is in it."""
        ...

    def day(self, value: date) -> str:
        """A constant date."""
        ...

    def moment(self, value: datetime) -> str:
        """A constant timestamp, without a time zone."""
        ...

    def double(self, value: float) -> str:
        """A constant of double precision."""
        ...

    def once(self, name: str, body: str) -> str:
        """A relation of WITH that is named more than once, to be computed once where the engine can be told so."""
        ...

    def whole(self, text: str) -> str:
        """A double as a BIGINT, truncated toward zero; of what has none, anything but an error."""
        ...

    def truncated(self, text: str) -> str:
        """A double truncated toward zero, as a double."""
        ...

    def small_whole(self, text: str) -> str:
        """`whole` of a number of at most 31 bits, in the type whose sums are computed quickest."""
        ...

    def rounded_up(self, text: str, kind: str) -> str:
        """A double, not negative, as the next whole number of a type, BIGINT or `huge`."""
        ...

    def ratio(self, dividend: str, divisor: str) -> str:
        """A double by a number that is not zero wherever the ratio is used; where it is zero, anything but an error."""
        ...

    def wide_sum(self, text: str) -> str:
        """An aggregate, FILTER or OVER may follow: the sum of BIGINTs, which itself may be none."""
        ...

    def bytes_of(self, text: str) -> str:
        """A stored text that is equal byte by byte or not at all, whatever the collation of its column."""
        ...

    def as_text(self, text: str, kind: SqlType) -> str:
        """A value as the engine prints it. Raises Unsupported for what it prints in a way of its own."""
        ...

    def tuple_of(self, texts: Sequence[str]) -> str:
        """Several values as one, to be told apart; equal where all are, NULLs too."""
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

    def of_peers(self, frame: str) -> str:
        """A window's frame in which rows that the order calls equal count as one. Raises Unsupported without such."""
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

    def among(self, columns: Sequence[tuple[str, SqlType]]) -> str:
        """What stands behind a relation to keep rows whose columns are, NULLs included, keys that were kept.

        The engine is given those in the columns' order.
        """
        ...

    def gathered(self, text: str) -> str:
        """What is selected for whole numbers of which few occur, so that they are grouped without an array."""
        ...

    def sparse(self, text: str) -> str:
        """A whole number that is grouped without an array over all."""
        ...

    def counters(self, keys: Sequence[str], slots: int, width: int, there: str) -> str:
        """An aggregate: the rows that are `there` ("" for all), counted by slot, which a hash of keys chooses.

        Each slot has `width` bits of a BIGINT; NULL if that is too narrow for the sum.
        """
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

    def may_raise(self, function: str, of: Operands) -> bool:
        """Whether a row could make the plain spelling of a function raise."""
        ...

    def times_written(self, function: str, place: int) -> int:
        """How often the text of an argument stands in that of a call."""
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


def quote(name: str) -> str:
    """An identifier in double quotes, as standard SQL has it: for the front and for PostgreSQL's words.

    Private statements take `Dialect.quote`: not every engine reads double quotes so.
    """
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """A string literal of standard SQL, in which a backslash has no meaning. As for `quote`: not every engine's."""
    return "'" + text.replace("'", "''") + "'"


def double(value: float) -> str:
    """A DOUBLE constant: an exponent keeps an engine from reading a DECIMAL."""
    assert math.isfinite(value)
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def parameters(columns: Sequence[tuple[str, SqlType]], types: Mapping[SqlType, str]) -> str:
    """Keys that were kept, as rows of `p1`, ..: a parameter for each column, which is an array."""
    return ", ".join(f"unnest(${i}::{types[kind]}[]) AS p{i}" for i, (_, kind) in enumerate(columns, 1))
