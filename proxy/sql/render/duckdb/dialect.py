"""How does DuckDB spell what a private statement computes, so that no row can make it raise?

It computes doubles without ever raising; TRY catches the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType

from proxy.sql.functions.hazards import Operands
from proxy.sql.functions.templates import fill, uses
from proxy.sql.render.dialect import Abilities, Overflow, double, parameters, quote, text_literal
from proxy.sql.render.duckdb.functions import SPELLINGS
from proxy.sql.render.exact import MOST_DIGITS
from proxy.sqltypes import SqlType

_TYPES = MappingProxyType({
    SqlType.BOOL: "BOOLEAN", SqlType.INT2: "BIGINT", SqlType.INT4: "BIGINT", SqlType.INT8: "BIGINT",
    SqlType.NUMERIC: "DOUBLE", SqlType.FLOAT4: "DOUBLE", SqlType.FLOAT8: "DOUBLE",
    SqlType.TEXT: "VARCHAR", SqlType.VARCHAR: "VARCHAR", SqlType.BPCHAR: "VARCHAR", SqlType.UUID: "VARCHAR",
    SqlType.DATE: "DATE", SqlType.TIMESTAMP: "TIMESTAMP", SqlType.TIMESTAMPTZ: "TIMESTAMP",
    SqlType.INTERVAL: "INTERVAL",
})  # fmt: skip


_ABILITIES = Abilities(
    doubles=Overflow.INFINITE, half_joins=True, numerics_cost=False, ids_by_range=True, filters_early=True,
    counts_in_words=True,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DuckDB:
    """DuckDB's spellings. Implements `Dialect`."""

    name: str = "duckdb"
    abilities: Abilities = _ABILITIES
    huge: str = "HUGEINT"
    fence: str = ""

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

    def double(self, value: float) -> str:
        return double(value)

    def once(self, name: str, body: str) -> str:
        return f"{name} AS MATERIALIZED ({body})"

    def whole(self, text: str) -> str:
        return f"trunc({text})::BIGINT"

    def truncated(self, text: str) -> str:
        return f"trunc({text})"

    def small_whole(self, text: str) -> str:
        return self.whole(text)

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

    def of_peers(self, frame: str) -> str:
        return frame

    def smallest(self, text: str, kind: SqlType) -> str:
        return f"min({text})"

    def matched(self, rows: str, others: str, columns: Sequence[str], *, is_there: bool) -> str:
        return f"{rows} {'SEMI' if is_there else 'ANTI'} JOIN {others} USING ({', '.join(columns)})"

    def half_join(self, others: str, same: str) -> str:
        return f"SEMI JOIN {others} ON {same}"

    def among(self, columns: Sequence[tuple[str, SqlType]]) -> str:
        same = " AND ".join(f"{name} IS NOT DISTINCT FROM p{i}" for i, (name, _) in enumerate(columns, 1))
        return self.half_join(f"(SELECT {parameters(columns, _TYPES)}) AS kept", same)

    def gathered(self, text: str) -> str:
        return f"unnest(list({text}))"

    def sparse(self, text: str) -> str:
        return f"({text} | 0)"

    def counters(self, keys: Sequence[str], slots: int, width: int, there: str) -> str:
        one = f"1::BIGINT << ((hash({', '.join(keys)}) % {slots}) * {width})::INTEGER"
        return f"TRY_CAST(sum({f'CASE WHEN {there} THEN {one} END' if there else one}) AS BIGINT)"

    def relation(self, parts: tuple[str, ...]) -> str:
        return ".".join(map(self.quote, parts))

    def span(self, months: int, days: int, microseconds: int) -> str:
        return f"(to_months({months}) + to_days({days}) + to_microseconds({microseconds}))"

    def stored(self, text: str, kind: SqlType, *, limited: bool = False) -> str:
        return f"{text}::{_TYPES[kind]}"

    def read_within(self, text: str, kind: SqlType, ends: tuple[float, float], read: str) -> str:
        stored = self.stored(text, kind)
        low, high = (str(int(e)) if kind.is_integer else double(e) for e in ends)
        return f"CASE WHEN {stored} BETWEEN {low} AND {high} THEN {stored} ELSE {read} END"

    def local_time(self, text: str, zone: str) -> str:  # years near the end of its calendar have no local time
        return f"TRY({text} AT TIME ZONE {self.text_literal(zone)})"

    def link(self, text: str) -> str:  # two scales may have no common one
        return f"TRY_CAST(CASE WHEN {text} = trunc({text}) THEN {text} END AS HUGEINT)"

    def lower(self, text: str) -> str:
        return f"lower({text})"

    def enumerated(self, text: str, values: Sequence[str]) -> str:
        return f"TRY_CAST({text} AS ENUM ({', '.join(map(self.text_literal, values))}))"

    def total(self, text: str) -> str:
        return f"TRY({text})"

    def may_raise(self, function: str, of: Operands) -> bool:
        return SPELLINGS[function].may_raise(of)

    def times_written(self, function: str, place: int) -> int:
        return max(1, uses(SPELLINGS[function].text, place))

    def call(self, function: str, args: tuple[str, ...], kinds: tuple[SqlType, ...], *, may_raise: bool) -> str:
        text = f"({fill(SPELLINGS[function].text, args)})"
        return self.total(text) if may_raise else text

    def compare(self, operator: str, exact_sides: tuple[str, str], doubles: tuple[str, str]) -> str:
        """Rows may be stored in a type that has no common one with the other side: then doubles decide."""
        real = f"{doubles[0]} {operator} {doubles[1]}"
        return f"coalesce(TRY({exact_sides[0]} {operator} {exact_sides[1]}), {real})" if all(exact_sides) else real

    def member(self, stored: str, items: Sequence[str]) -> str:
        """The engine may turn the argument of IN into a join, outside of a TRY around it, so it cannot raise itself."""
        scale = max(len(item.partition(".")[2]) for item in items)
        width = max(len(item.partition(".")[0].lstrip("-")) for item in items)
        if not all(items) or scale + width > MOST_DIGITS:
            return ""
        near = f"TRY_CAST({stored} AS DECIMAL({MOST_DIGITS},{scale}))"
        return f"coalesce({near} IN ({', '.join(items)}) AND TRY({stored} = {near}), FALSE)"


DUCKDB = DuckDB()
