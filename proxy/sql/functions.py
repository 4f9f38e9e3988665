"""Which functions and operators may appear over private rows, and what does each mean?

One row a function. A name that has no row here is refused by the binder (closed world). The spelling
is DuckDB's; `{0}`, `{1}` are rendered arguments. Integers are computed as BIGINT, all other numbers
as DOUBLE, and a function that cannot give an answer gives NULL: no row may ever raise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from proxy.policy.model import Domain, Listed
from proxy.sql import intervals
from proxy.sql.intervals import DomainRule
from proxy.sqltypes import Family, SqlType

# Characters of a text that || reads: texts that double with every || would take the memory of the whole process,
# which no limit of the engine prevents, and whether they do would depend on one person's text.
LONGEST_JOINED = 10_000

TypeRule = Callable[[tuple[SqlType, ...]], SqlType | None]
Hazard = Callable[[tuple[Domain, ...], Domain], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One permitted function.

    types: result type for argument types, None when there is no such signature.
    duckdb: spelling. strict: NULL exactly when an argument is NULL, unless `partial`.
    partial: may give NULL for non-null arguments. may_raise: whether DuckDB could raise, given the
    argument domains and the result's domain; such a call is rendered inside TRY. Its arguments never raise
    themselves, since an engine may compute a part apart from what stands around it.
    """

    name: str
    types: TypeRule
    duckdb: str
    domain: DomainRule = intervals.nothing_known
    strict: bool = True
    partial: bool = False
    may_raise: Hazard = lambda _arguments, _result: False


# --- type rules ---------------------------------------------------------------------------------------


_NUMBER_RANK = (SqlType.INT2, SqlType.INT4, SqlType.INT8, SqlType.NUMERIC, SqlType.FLOAT4, SqlType.FLOAT8)


def common_type(types: tuple[SqlType, ...]) -> SqlType | None:
    """PostgreSQL's result type when values of these types meet in CASE, COALESCE or a comparison."""
    if len(set(types)) == 1:
        return types[0]
    families = {t.family for t in types}
    if families == {Family.NUMBER}:
        widest = max(types, key=_NUMBER_RANK.index)
        return SqlType.FLOAT8 if widest is SqlType.FLOAT4 and SqlType.NUMERIC in types else widest
    if families == {Family.TEXT} and SqlType.UUID not in types:
        return SqlType.TEXT
    if families == {Family.TIME}:
        return SqlType.TIMESTAMPTZ if SqlType.TIMESTAMPTZ in types else SqlType.TIMESTAMP
    return None


def _comparison(types: tuple[SqlType, ...]) -> SqlType | None:
    return SqlType.BOOL if common_type(types) is not None else None


def _fixed(result: SqlType, *families: Family) -> TypeRule:
    def rule(types: tuple[SqlType, ...]) -> SqlType | None:
        return result if tuple(t.family for t in types) == families and SqlType.UUID not in types else None

    return rule


def _any(result: SqlType) -> TypeRule:
    return lambda types: result if len(types) == 1 else None


def _arithmetic(types: tuple[SqlType, ...]) -> SqlType | None:
    if not all(t.is_number for t in types):
        return None
    found = common_type(types)
    return SqlType.FLOAT8 if found is SqlType.FLOAT4 and len(set(types)) > 1 else found


def _integers(types: tuple[SqlType, ...]) -> SqlType | None:
    return _arithmetic(types) if all(t.is_integer for t in types) else None


def _fractions(types: tuple[SqlType, ...]) -> SqlType | None:
    return None if all(t.is_integer for t in types) else _arithmetic(types)


def _same_number(types: tuple[SqlType, ...]) -> SqlType | None:
    return types[0] if len(types) == 1 and types[0].is_number else None


def _real_or_numeric(types: tuple[SqlType, ...]) -> SqlType | None:
    """round, floor, ceil: integers and floats become double precision, numeric stays numeric."""
    if len(types) != 1 or not types[0].is_number:
        return None
    return SqlType.NUMERIC if types[0] is SqlType.NUMERIC else SqlType.FLOAT8


def _round_digits(types: tuple[SqlType, ...]) -> SqlType | None:
    fits = len(types) == 2 and (types[0].is_integer or types[0] is SqlType.NUMERIC) and types[1].is_integer
    return SqlType.NUMERIC if fits else None


def _meeting(types: tuple[SqlType, ...]) -> SqlType | None:
    return common_type(types) if types else None


def _text_and_numbers(count: int) -> TypeRule:
    def rule(types: tuple[SqlType, ...]) -> SqlType | None:
        if len(types) != count + 1 or not types[0].is_text or types[0] is SqlType.UUID:
            return None
        return SqlType.TEXT if all(t.is_integer for t in types[1:]) else None

    return rule


def _date_and_integer(types: tuple[SqlType, ...]) -> SqlType | None:
    return SqlType.DATE if len(types) == 2 and types[0] is SqlType.DATE and types[1].is_integer else None


def _two_dates(types: tuple[SqlType, ...]) -> SqlType | None:
    return SqlType.INT4 if types == (SqlType.DATE, SqlType.DATE) else None


def _time_and_span(types: tuple[SqlType, ...]) -> SqlType | None:
    if len(types) != 2 or not types[0].is_time or types[1] is not SqlType.INTERVAL:
        return None
    return SqlType.TIMESTAMP if types[0] is SqlType.DATE else types[0]


def _clock(types: tuple[SqlType, ...]) -> SqlType | None:
    """Fields of the time of day, which a date has not."""
    return SqlType.NUMERIC if len(types) == 1 and types[0].is_time and types[0] is not SqlType.DATE else None


def _truncation(types: tuple[SqlType, ...]) -> SqlType | None:
    if len(types) != 1 or not types[0].is_time:
        return None
    return SqlType.TIMESTAMP if types[0] is SqlType.TIMESTAMP else SqlType.TIMESTAMPTZ


# --- hazards -------------------------------------------------------------------------------------------


def _overflows(arguments: tuple[Domain, ...], result: Domain) -> bool:
    """Integer arithmetic may leave int64 unless the result's interval proves otherwise."""
    ends = intervals.number_range(result)
    inside = all(_fits(intervals.number_range(a)) for a in arguments)
    return not (inside and _fits(ends))


def _fits(ends: tuple[float, float] | None) -> bool:
    return ends is not None and max(abs(ends[0]), abs(ends[1])) < intervals.INT64_SAFE


def _leaves_calendar(arguments: tuple[Domain, ...], _result: Domain) -> bool:
    """Times without declared bounds may be where an engine's calendar ends."""
    return intervals.time_range(arguments[0]) is None


def _always(_arguments: tuple[Domain, ...], _result: Domain) -> bool:
    return True


# --- the table -------------------------------------------------------------------------------------------


def _conditions() -> tuple[Function, ...]:
    boolean = Family.BOOLEAN
    comparisons = tuple(
        Function(name=op, types=_comparison, duckdb=f"{{0}} {op} {{1}}", domain=intervals.booleans)
        for op in ("=", "<>", "<", "<=", ">", ">=")
    )
    return (
        *comparisons,
        Function(name="and", types=_fixed(SqlType.BOOL, boolean, boolean), duckdb="{0} AND {1}",
                 domain=intervals.booleans, strict=False),
        Function(name="or", types=_fixed(SqlType.BOOL, boolean, boolean), duckdb="{0} OR {1}",
                 domain=intervals.booleans, strict=False),
        Function(name="not", types=_fixed(SqlType.BOOL, boolean), duckdb="NOT {0}", domain=intervals.booleans),
        Function(name="is null", types=_any(SqlType.BOOL), duckdb="{0} IS NULL",
                 domain=intervals.booleans, strict=False),
        Function(name="is distinct from", types=_comparison, duckdb="{0} IS DISTINCT FROM {1}",
                 domain=intervals.booleans, strict=False),
        Function(name="coalesce", types=_meeting, duckdb="coalesce({*})", domain=intervals.union, strict=False),
        Function(name="nullif", types=lambda t: t[0] if _comparison(t) else None, duckdb="nullif({0}, {1})",
                 domain=lambda d: d[0], partial=True),
    )  # fmt: skip


def _arithmetic_rows() -> tuple[Function, ...]:
    return (
        Function(name="integer +", types=_integers, duckdb="{0} + {1}", domain=intervals.whole(intervals.add),
                 may_raise=_overflows),
        Function(name="integer -", types=_integers, duckdb="{0} - {1}", domain=intervals.whole(intervals.subtract),
                 may_raise=_overflows),
        Function(name="integer *", types=_integers, duckdb="{0} * {1}", domain=intervals.whole(intervals.multiply),
                 may_raise=_overflows),
        Function(name="integer /", types=_integers, duckdb="{0} // nullif({1}, 0)", domain=intervals.divide_whole,
                 partial=True, may_raise=_overflows),
        Function(name="integer %", types=_integers, duckdb="{0} % nullif({1}, 0)",
                 domain=intervals.whole(intervals.modulo), partial=True, may_raise=_overflows),
        Function(name="integer negate", types=_integers, duckdb="-({0})", domain=intervals.whole(intervals.negate),
                 may_raise=_overflows),
        Function(name="integer abs", types=_integers, duckdb="abs({0})", domain=intervals.whole(intervals.absolute),
                 may_raise=_overflows),
        Function(name="+", types=_fractions, duckdb="{0} + {1}", domain=intervals.add),
        Function(name="-", types=_fractions, duckdb="{0} - {1}", domain=intervals.subtract),
        Function(name="*", types=_fractions, duckdb="{0} * {1}", domain=intervals.multiply),
        Function(name="/", types=_fractions, duckdb="{0} / nullif({1}, 0e0)", domain=intervals.divide, partial=True),
        Function(name="%", types=_fractions, duckdb="{0} % nullif({1}, 0e0)", domain=intervals.modulo, partial=True),
        Function(name="negate", types=_fractions, duckdb="-({0})", domain=intervals.negate),
        Function(name="abs", types=_fractions, duckdb="abs({0})", domain=intervals.absolute),
        Function(name="floor", types=_real_or_numeric, duckdb="floor({0}::DOUBLE)", domain=intervals.floor),
        Function(name="ceil", types=_real_or_numeric, duckdb="ceil({0}::DOUBLE)", domain=intervals.ceil),
        Function(name="round", types=_real_or_numeric, duckdb="round({0}::DOUBLE)", domain=intervals.rounded),
        Function(name="trunc", types=_real_or_numeric, duckdb="trunc({0}::DOUBLE)", domain=intervals.rounded),
        Function(name="round digits", types=_round_digits, duckdb="round({0}::DOUBLE, {1}::INTEGER)",
                 domain=intervals.rounded_to_digits, may_raise=_always),
        Function(name="sqrt", types=_real_or_numeric, duckdb="sqrt(CASE WHEN {0} >= 0 THEN {0}::DOUBLE END)",
                 domain=intervals.square_root, partial=True),
        Function(name="greatest", types=_meeting, duckdb="greatest({*})", strict=False),
        Function(name="least", types=_meeting, duckdb="least({*})", strict=False),
    )  # fmt: skip


def _text_rows() -> tuple[Function, ...]:
    text = Family.TEXT
    return (
        Function(name="like", types=_fixed(SqlType.BOOL, text, text), duckdb="{0} LIKE {1} ESCAPE '\\'",
                 domain=intervals.booleans),
        Function(name="ilike", types=_fixed(SqlType.BOOL, text, text), duckdb="{0} ILIKE {1} ESCAPE '\\'",
                 domain=intervals.booleans),
        Function(name="lower", types=_fixed(SqlType.TEXT, text), duckdb="lower({0})",
                 domain=intervals.each(str.lower)),
        Function(name="upper", types=_fixed(SqlType.TEXT, text), duckdb="upper({0})",
                 domain=intervals.each(str.upper)),
        Function(name="length", types=_fixed(SqlType.INT4, text), duckdb="length({0})"),
        Function(name="substring", types=_text_and_numbers(2), duckdb="substring({0}, {1}, {2})"),
        Function(name="substring from", types=_text_and_numbers(1), duckdb="substring({0}, {1})"),
        Function(name="trim", types=_fixed(SqlType.TEXT, text, text), duckdb="trim({0}, {1})"),
        Function(name="ltrim", types=_fixed(SqlType.TEXT, text, text), duckdb="ltrim({0}, {1})"),
        Function(name="rtrim", types=_fixed(SqlType.TEXT, text, text), duckdb="rtrim({0}, {1})"),
        Function(name="||", types=_fixed(SqlType.TEXT, text, text),
                 duckdb=f"left({{0}}, {LONGEST_JOINED}) || left({{1}}, {LONGEST_JOINED})"),
    )  # fmt: skip


def _time_rows() -> tuple[Function, ...]:
    time = Family.TIME
    return (
        *(
            Function(name=f"extract {field}", types=_clock if field in _CLOCK else _fixed(SqlType.NUMERIC, time),
                     duckdb=spelling,
                     domain=intervals.extracted(field), may_raise=_leaves_calendar)
            for field, spelling in _EXTRACTS.items()
        ),
        *(
            Function(name=f"date_trunc {unit}", types=_truncation, duckdb=f"date_trunc('{unit}', {{0}})",
                     domain=intervals.truncated(unit), may_raise=_leaves_calendar)
            for unit in intervals.TRUNCATION_UNITS
        ),
        Function(name="date + integer", types=_date_and_integer, duckdb="{0} + TRY_CAST({1} AS INTEGER)",
                 may_raise=_always),
        Function(name="date - integer", types=_date_and_integer, duckdb="{0} - TRY_CAST({1} AS INTEGER)",
                 may_raise=_always),
        Function(name="date - date", types=_two_dates, partial=True, may_raise=_always,
                 duckdb="CASE WHEN isfinite({0}) AND isfinite({1}) THEN {0} - {1} END"),
        Function(name="time + interval", types=_time_and_span, duckdb="{0} + {1}", may_raise=_always),
        Function(name="time - interval", types=_time_and_span, duckdb="{0} - {1}", may_raise=_always),
    )  # fmt: skip


_CLOCK = frozenset(("hour", "minute", "second"))
_EXTRACTS = {
    **{f: f"extract({f} FROM {{0}})" for f in ("year", "isoyear", "month", "day", "hour", "minute", "quarter", "week")},
    **{f: f"extract({f} FROM {{0}})" for f in ("dow", "isodow", "doy")},
    "second": "extract(microseconds FROM {0}) / 1e6",
    "epoch": "epoch({0})",
}


def _casts() -> tuple[Function, ...]:
    number, text, time, boolean = Family.NUMBER, Family.TEXT, Family.TIME, Family.BOOLEAN

    def cast(name: str, result: SqlType, source: Family, duckdb: str, domain: DomainRule) -> Function:
        return Function(name=f"cast {name}", types=_fixed(result, source), duckdb=duckdb, domain=domain,
                        partial=True)  # fmt: skip

    integers = {SqlType.INT2: 2**15, SqlType.INT4: 2**31, SqlType.INT8: 2**63}

    def to_integer(kind: SqlType, limit: int) -> tuple[Function, ...]:
        inside = f"CASE WHEN {{0}} >= {-limit} AND {{0}} < {limit} THEN %s END"
        narrow = intervals.whole(intervals.rounded)
        return (
            cast(f"number to {kind.pg_name}", kind, number, inside % "TRY_CAST(round({0}) AS BIGINT)", narrow),
            cast(f"real to {kind.pg_name}", kind, number, inside % "TRY_CAST(round_even({0}, 0) AS BIGINT)", narrow),
            cast(f"text to {kind.pg_name}", kind, text, "TRY_CAST({0} AS BIGINT)", intervals.nothing_known),
            cast(f"boolean to {kind.pg_name}", kind, boolean, "{0}::BIGINT", lambda _: Listed((0, 1))),
        )

    rows = [r for kind, limit in integers.items() for r in to_integer(kind, limit)]
    for kind in (SqlType.NUMERIC, SqlType.FLOAT8):
        rows.append(cast(f"number to {kind.pg_name}", kind, number, "{0}::DOUBLE", intervals.same))
        rows.append(cast(f"text to {kind.pg_name}", kind, text, "TRY_CAST({0} AS DOUBLE)", intervals.nothing_known))
    for kind in (SqlType.TEXT, SqlType.VARCHAR):
        rows.append(cast(f"text to {kind.pg_name}", kind, text, "{0}::VARCHAR", lambda d: d[0]))
        rows.append(cast(f"integer to {kind.pg_name}", kind, number, "{0}::VARCHAR", intervals.nothing_known))
        rows.append(cast(f"date to {kind.pg_name}", kind, time, "{0}::VARCHAR", intervals.nothing_known))
        rows.append(cast(f"boolean to {kind.pg_name}", kind, boolean, "{0}::VARCHAR",
                         lambda _: Listed(("false", "true"))))  # fmt: skip
    rows += [
        cast("time to date", SqlType.DATE, time, "{0}::DATE", intervals.to_date),
        cast("text to date", SqlType.DATE, text, "TRY_CAST({0} AS DATE)", intervals.nothing_known),
        cast("time to timestamp", SqlType.TIMESTAMP, time, "TRY_CAST({0} AS TIMESTAMP)", intervals.to_timestamp),
        cast("text to timestamp", SqlType.TIMESTAMP, text, "TRY_CAST({0} AS TIMESTAMP)", intervals.nothing_known),
        cast("time to timestamptz", SqlType.TIMESTAMPTZ, time, "TRY_CAST({0} AS TIMESTAMP)", intervals.to_timestamp),
    ]
    return tuple(rows)


FUNCTIONS = MappingProxyType(
    {row.name: row for row in (*_conditions(), *_arithmetic_rows(), *_text_rows(), *_time_rows(), *_casts())}
)
