"""How does Spark SQL spell what a private statement computes, so that no row can make it raise?

For Spark 4 in ANSI mode. What it does not compute as the other engines do is refused when a statement is planned. What
the spellings rest on, `engines.spark_probes` asks a server before it is served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType

from proxy.errors import Unsupported
from proxy.sql.functions.hazards import Operands
from proxy.sql.functions.templates import fill, uses
from proxy.sql.render.dialect import Abilities, Overflow, double
from proxy.sql.render.spark.functions import ALIKE, SPELLINGS, template_of
from proxy.sql.render.spark.spelling import LARGEST, cut, text_literal
from proxy.sql.render.spark.texts import lower
from proxy.sql.render.spark.times import in_calendar, microseconds_of
from proxy.sqltypes import SqlType

KEPT_KEYS = "kept_keys"  # the relation of keys that were kept, with columns p1, ..
MOST_DIGITS = 18  # of a numeric column, and of a number beside it: then the two have a common type
_LONGEST_CALL = 200_000  # characters: calls whose arguments are written more than once grow with each level

_TYPES = MappingProxyType({
    SqlType.BOOL: "BOOLEAN", SqlType.INT2: "BIGINT", SqlType.INT4: "BIGINT", SqlType.INT8: "BIGINT",
    SqlType.NUMERIC: "DOUBLE", SqlType.FLOAT4: "DOUBLE", SqlType.FLOAT8: "DOUBLE",
    SqlType.TEXT: "STRING", SqlType.VARCHAR: "STRING", SqlType.BPCHAR: "STRING", SqlType.UUID: "STRING",
    SqlType.DATE: "DATE", SqlType.TIMESTAMP: "TIMESTAMP_NTZ", SqlType.TIMESTAMPTZ: "TIMESTAMP_NTZ",
    SqlType.INTERVAL: "INTERVAL DAY TO SECOND",
})  # fmt: skip

_ABILITIES = Abilities(
    doubles=Overflow.INFINITE, half_joins=True, numerics_cost=False, ids_by_range=False, filters_early=False,
    counts_in_words=False,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spark:
    """Spark's spellings. Implements `Dialect`."""

    name: str = "spark"
    abilities: Abilities = _ABILITIES
    huge: str = "DECIMAL(38,0)"
    fence: str = ""

    @property
    def types(self) -> Mapping[SqlType, str]:
        return _TYPES

    def quote(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def text_literal(self, text: str) -> str:
        return text_literal(text)

    def day(self, value: date) -> str:
        return f"DATE '{value.isoformat()}'"

    def moment(self, value: datetime) -> str:
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"

    def double(self, value: float) -> str:
        return double(value)

    def as_double(self, text: str) -> str:
        return f"({text})::DOUBLE"

    def once(self, name: str, body: str) -> str:
        return f"{name} AS ({body})"

    def whole(self, text: str) -> str:
        return f"try_cast({text} AS BIGINT)"

    def truncated(self, text: str) -> str:
        return cut(f"({text})")

    def small_whole(self, text: str) -> str:
        return self.whole(text)

    def rounded_up(self, text: str, kind: str) -> str:
        """By way of BIGINT, which is what ceil gives: what has none is larger than any bound on it."""
        within = f"least({text}, 9.2e18)"
        return f"CAST(ceil({within}) AS {kind})"

    def ratio(self, dividend: str, divisor: str) -> str:
        return f"{dividend} / (CASE WHEN {divisor} <> 0 THEN {divisor} END)"

    def wide_sum(self, text: str) -> str:
        return f"sum(CAST({text} AS DECIMAL(20,0)))"

    def exact_sum(self, text: str) -> str:
        return f"sum({text})"

    def bytes_of(self, text: str) -> str:
        return f"CAST({text} AS STRING)"

    def as_text(self, text: str, kind: SqlType) -> str:
        if kind in (SqlType.FLOAT4, SqlType.FLOAT8, SqlType.NUMERIC):
            raise _unsupported("a bound on unlisted groups, or on values, that are numbers with fractions")
        if kind.is_time:
            return f"CAST({in_calendar(text)} AS STRING)"
        return f"CAST({text} AS STRING)"

    def tuple_of(self, texts: Sequence[str]) -> str:
        return f"struct({', '.join(texts)})"

    def finite(self, text: str) -> str:
        return f"(abs({text}) <= {LARGEST})"  # NaN is above all

    def one_spelling(self, text: str) -> str:
        return f"(CASE WHEN isnan({self.as_double(text)}) THEN double('NaN') ELSE {text} + 0.0e0 END)"

    def sign_bit(self, text: str) -> str:
        return f"(atan2({text}, -1e0) < 0e0)"

    def has_value(self, stored: str, kind: SqlType, *, limited: bool = False) -> str:
        return f"{stored} IS NOT NULL"

    def rounded(self, value: str, scale: float) -> str:
        return self.whole(f"round({value} * {double(scale)})")

    def quotient(self, dividend: str, divisor: int) -> str:
        return f"({dividend}) DIV {divisor}"

    def days_between(self, first: str, last: str) -> str:
        return f"(CAST(unix_date({last}) AS BIGINT) - CAST(unix_date({first}) AS BIGINT))"

    def microseconds_between(self, first: str, last: str) -> str:
        return f"try_subtract({microseconds_of(last)}, {microseconds_of(first)})"

    def one_if(self, condition: str) -> str:
        return f"CASE WHEN {condition} THEN 1L ELSE 0L END"

    def of_peers(self, frame: str) -> str:
        raise _unsupported("a window over GROUPS of equal rows")

    def smallest(self, text: str, kind: SqlType) -> str:
        return f"min({text})"

    def matched(self, rows: str, others: str, columns: Sequence[str], *, is_there: bool) -> str:
        same = " AND ".join(f"{others}.{c} = {rows}.{c}" for c in columns)
        return f"{rows} LEFT {'SEMI' if is_there else 'ANTI'} JOIN {others} ON {same}"

    def half_join(self, others: str, same: str) -> str:
        return f"LEFT SEMI JOIN {others} ON {same}"

    def among(self, columns: Sequence[tuple[str, SqlType]]) -> str:
        same = " AND ".join(f"{name} <=> kept.p{i}" for i, (name, _) in enumerate(columns, 1))
        return self.half_join(f"{KEPT_KEYS} AS kept", same)

    def gathered(self, text: str) -> str:
        return text

    def sparse(self, text: str) -> str:
        return text

    def counters(self, keys: Sequence[str], slots: int, width: int, there: str) -> str:
        raise _unsupported("counts in the bits of a word")

    def relation(self, parts: tuple[str, ...]) -> str:
        return ".".join(map(self.quote, parts))

    def span(self, months: int, days: int, microseconds: int) -> str:
        return f"INTERVAL '{months} months {days} days {microseconds} microseconds'"  # `times` takes it apart

    def stored(self, text: str, kind: SqlType, *, limited: bool = False) -> str:
        return f"{text}::{_TYPES[kind]}"

    def read_within(self, text: str, kind: SqlType, ends: tuple[float, float], read: str) -> str:
        return read

    def local_time(self, text: str, zone: str) -> str:
        shown = f"try_cast({text} AS TIMESTAMP_NTZ)"  # of sessions in UTC
        return shown if zone == "UTC" else f"convert_timezone('UTC', {self.text_literal(zone)}, {in_calendar(shown)})"

    def link(self, text: str) -> str:
        raise _unsupported("a join by numeric columns")

    def lower(self, text: str) -> str:
        return lower(text)

    def enumerated(self, text: str, values: Sequence[str]) -> str:
        return ""

    def total(self, text: str) -> str:
        return text

    def may_raise(self, function: str, of: Operands) -> bool:
        spelling = SPELLINGS.get(function)
        return spelling is not None and spelling.may_raise(of)

    def times_written(self, function: str, place: int) -> int:
        spelling = SPELLINGS.get(function)
        return 1 if spelling is None else max(1, *(uses(t, place) for t in (spelling.plain, spelling.checked)))

    def call(self, function: str, args: tuple[str, ...], kinds: tuple[SqlType, ...], *, may_raise: bool) -> str:
        spelling = SPELLINGS.get(function)
        if spelling is None:
            raise _unsupported(function)
        if function in ALIKE:
            args = _of_one_kind(args, kinds)
        try:
            args = spelling.prepared(args)
        except ValueError as error:
            raise _unsupported(str(error)) from error
        found = f"({fill(template_of(spelling, kinds, may_raise=may_raise), args)})"
        if len(found) > _LONGEST_CALL:
            raise _unsupported("an expression of this size")
        return found

    def compare(self, operator: str, exact_sides: tuple[str, str], doubles: tuple[str, str]) -> str:
        if not all(map(_is_short, exact_sides)):
            raise _unsupported(f"a comparison with a number of more than {MOST_DIGITS} digits")
        return f"{exact_sides[0]} {operator} {exact_sides[1]}"

    def member(self, stored: str, items: Sequence[str]) -> str:
        if not all(map(_is_short, items)):
            raise _unsupported(f"a comparison with a number of more than {MOST_DIGITS} digits")
        return f"coalesce({stored} IN ({', '.join(items)}), FALSE)"


SPARK = Spark()


def _of_one_kind(args: tuple[str, ...], kinds: tuple[SqlType, ...]) -> tuple[str, ...]:
    """Dates beside timestamps as such: servers differ in what they make of the two, and some have not enough years."""
    if not any(kind.is_time and kind is not SqlType.DATE for kind in kinds):
        return args
    return tuple(
        f"try_cast({text} AS TIMESTAMP_NTZ)" if kind is SqlType.DATE else text
        for text, kind in zip(args, kinds, strict=True)
    )


def _is_short(side: str) -> bool:
    """Whether a column, or a number in digits, has a common type with a column of 18 digits."""
    digits = side.removeprefix("-").replace(".", "")
    return bool(side) and (not digits.isdigit() or len(digits) <= MOST_DIGITS)


def _unsupported(construct: str) -> Unsupported:
    return Unsupported(
        f"{construct} is not supported over private rows with engine spark",
        hint="docs/guide/spark.md lists the functions that are.",
    )
