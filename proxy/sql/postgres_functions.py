"""Which functions does the private engine postgres compute, and how are they spelled so that no row makes them raise?

A function that has no row here is refused on this engine. `plain` is used where bounds prove that nothing can go
wrong, `checked` where they do not; without one, `plain` never raises. `whole` is for arguments that are whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from proxy.sql.text_functions import LONGEST_JOINED
from proxy.sqltypes import SqlType


@dataclass(frozen=True, slots=True)
class Spelling:
    """Templates of one function; "" for the same as `plain`."""

    plain: str
    checked: str = ""
    whole: str = ""


_INT8 = "BETWEEN -9223372036854775808 AND 9223372036854775807"
_LARGE, _SMALL = "'1e150'::FLOAT8", "'1e-150'::FLOAT8"
# away from zero, as PostgreSQL's numeric rounds; its doubles go to the even neighbour
AWAY = "trunc({0}) + CASE WHEN abs({0} - trunc({0})) >= 0.5 THEN sign({0}) ELSE 0 END"
_FIRST, _LAST = "'4000-01-01 00:00:00 BC'::TIMESTAMP", "'200000-01-01 00:00:00'::TIMESTAMP"
_IN_CALENDAR = f"{{0}} BETWEEN {_FIRST} AND {_LAST}"
_IN_OUR_ERA = f"{{0}} BETWEEN '0001-01-01 00:00:00'::TIMESTAMP AND {_LAST}"  # any span leads to the calendar's years
_FAR_DAYS = 250_000  # less than from the start of the guarded years to that of the calendar


def _whole_numbers(operator: str) -> Spelling:
    """Sums and products, by way of numeric where they could be too large."""
    exact = f"{{0}}::NUMERIC {operator} {{1}}::NUMERIC"
    checked = f"CASE WHEN {exact} {_INT8} THEN ({exact})::BIGINT END"
    return Spelling(f"{{0}} {operator} {{1}}", checked)


def _doubles(operator: str) -> str:
    """Sums: only the largest doubles overflow, and they have no sum here."""
    one, other = "{0}::FLOAT8", "{1}::FLOAT8"
    return f"CASE WHEN abs({one}) <= {_LARGE} AND abs({other}) <= {_LARGE} THEN {one} {operator} {other} END"


_SIZES = "abs({0}::FLOAT8)", "abs({1}::FLOAT8)"
_MULTIPLIED = (
    "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
    f"WHEN {_SIZES[0]} > {_LARGE} OR {_SIZES[1]} > {_LARGE} THEN NULL "
    f"WHEN {_SIZES[0]} < {_SMALL} OR {_SIZES[1]} < {_SMALL} THEN '0'::FLOAT8 ELSE {{0}}::FLOAT8 * {{1}}::FLOAT8 END"
)
_DIVIDED = (
    f"CASE WHEN {_SIZES[0]} > {_LARGE} OR {_SIZES[1]} > {_LARGE} OR {_SIZES[1]} < {_SMALL} THEN NULL "
    f"WHEN {{1}} IS NOT NULL AND {_SIZES[0]} < {_SMALL} THEN '0'::FLOAT8 ELSE {{0}}::FLOAT8 / {{1}}::FLOAT8 END"
)

_CONDITIONS = {
    **{sign: Spelling(f"{{0}} {sign} {{1}}") for sign in ("=", "<>", "<", "<=", ">", ">=")},
    "and": Spelling("{0} AND {1}"),
    "or": Spelling("{0} OR {1}"),
    "not": Spelling("NOT {0}"),
    "is null": Spelling("{0} IS NULL"),
    "is distinct from": Spelling("{0} IS DISTINCT FROM {1}"),
    "coalesce": Spelling("coalesce({*})"),
    "nullif": Spelling("nullif({0}, {1})"),
    "greatest": Spelling("greatest({*})"),
    "least": Spelling("least({*})"),
}

_NUMBERS = {
    **{f"integer {sign}": _whole_numbers(sign) for sign in ("+", "-", "*")},
    # the one quotient that is too large is that of the smallest number by -1
    "integer /": Spelling("{0} / nullif({1}, 0)", "CASE WHEN {1} = -1 THEN CASE WHEN {0} > -9223372036854775808 "
                          "THEN -{0} END ELSE {0} / nullif({1}, 0) END"),
    "integer %": Spelling("{0} % nullif({1}, 0)"),
    "integer negate": Spelling("-({0})", "CASE WHEN {0} > -9223372036854775808 THEN -{0} END"),
    "integer abs": Spelling("abs({0})", "CASE WHEN {0} > -9223372036854775808 THEN abs({0}) END"),
    "+": Spelling(_doubles("+")),
    "-": Spelling(_doubles("-")),
    "*": Spelling(_MULTIPLIED),
    "/": Spelling(_DIVIDED),
    "negate": Spelling("-({0})"),
    "abs": Spelling("abs({0})"),
    "floor": Spelling("floor({0}::FLOAT8)"),
    "ceil": Spelling("ceil({0}::FLOAT8)"),
    "round": Spelling(AWAY, whole="{0}::FLOAT8"),
    "round real": Spelling("round({0}::FLOAT8)"),
    "trunc": Spelling("trunc({0}::FLOAT8)"),
    "sign": Spelling("sign({0}::FLOAT8)"),
    "sqrt": Spelling("sqrt(CASE WHEN {0} >= 0 THEN {0}::FLOAT8 END)"),
    "exp": Spelling("CASE WHEN {0} < -700 THEN '0'::FLOAT8 WHEN {0} <= 709 THEN exp({0}::FLOAT8) END"),
    "ln": Spelling("ln(CASE WHEN {0} > 0 THEN {0}::FLOAT8 END)"),
    "log": Spelling("log(CASE WHEN {0} > 0 THEN {0}::FLOAT8 END)"),
    "cbrt": Spelling("cbrt({0}::FLOAT8)"),
    **{name: Spelling(f"{name}(CASE WHEN abs({{0}}::FLOAT8) <= {_LARGE} THEN {{0}}::FLOAT8 END)")
       for name in ("sin", "cos", "tan")},
    **{name: Spelling(f"{name}(CASE WHEN abs({{0}}::FLOAT8) <= 1 THEN {{0}}::FLOAT8 END)")
       for name in ("asin", "acos")},
    "atan": Spelling("atan({0}::FLOAT8)"),
    "atan2": Spelling("atan2({0}::FLOAT8, {1}::FLOAT8)"),
}  # fmt: skip

_FIELDS = ("year", "isoyear", "month", "day", "hour", "minute", "quarter", "week", "dow", "isodow", "doy")


def _field(name: str, divisor: str = "") -> Spelling:
    return Spelling(f"CASE WHEN isfinite({{0}}) THEN extract({name} FROM {{0}})::FLOAT8{divisor} END")


def _moved(sign: str) -> Spelling:
    near = f"{{1}} BETWEEN -{_FAR_DAYS} AND {_FAR_DAYS}"
    return Spelling(f"{{0}} {sign} ({{1}})::INTEGER",
                    f"CASE WHEN {_IN_CALENDAR} AND {near} THEN {{0}} {sign} {{1}}::INTEGER END")  # fmt: skip


_TIMES = {
    **{f"extract {name}": _field(name) for name in _FIELDS},
    "extract second": _field("microseconds", " / 1e6"),
    "extract milliseconds": _field("microseconds", " / 1e3"),
    "extract microseconds": _field("microseconds"),
    "extract epoch": _field("epoch"),
    **{
        f"date_trunc {unit}": Spelling(
            f"date_trunc('{unit}', ({{0}})::TIMESTAMP)",
            f"CASE WHEN {_IN_CALENDAR} THEN date_trunc('{unit}', {{0}}::TIMESTAMP) "
            "WHEN NOT isfinite({0}) THEN {0}::TIMESTAMP END",
        )
        for unit in (
            "microseconds",
            "milliseconds",
            "second",
            "minute",
            "hour",
            "day",
            "week",
            "month",
            "quarter",
            "year",
        )
    },
    "date + integer": _moved("+"),
    "date - integer": _moved("-"),
    "date - date": Spelling("CASE WHEN isfinite({0}) AND isfinite({1}) THEN ({0} - {1})::BIGINT END"),
    **{
        f"time {sign} interval": Spelling(
            f"({{0}}) {sign} ({{1}})",
            f"CASE WHEN {_IN_OUR_ERA} THEN {{0}} {sign} {{1}} WHEN NOT isfinite({{0}}) THEN {{0}}::TIMESTAMP END",
        )
        for sign in ("+", "-")
    },
    "time - time": Spelling(
        "((extract(epoch FROM {0}) - extract(epoch FROM {1})) * 1000000)::BIGINT",
        f"CASE WHEN {_IN_CALENDAR} AND {{1}} BETWEEN {_FIRST} AND {_LAST} "
        "THEN ((extract(epoch FROM {0}) - extract(epoch FROM {1})) * 1000000)::BIGINT END",
    ),
}

_TEXTS = {
    "like": Spelling("{0} LIKE {1} ESCAPE '\\'"),
    "||": Spelling(f"left({{0}}, {LONGEST_JOINED}) || left({{1}}, {LONGEST_JOINED})"),
    "replace": Spelling(f"replace(left({{0}}, {LONGEST_JOINED}), {{1}}, {{2}})"),
    "length": Spelling("length({0})::BIGINT"),
    "octet_length": Spelling("octet_length({0})::BIGINT"),
    "trim": Spelling("btrim({0}, {1})"),
    "ltrim": Spelling("ltrim({0}, {1})"),
    "rtrim": Spelling("rtrim({0}, {1})"),
    "position": Spelling("strpos({0}, {1})::BIGINT"),
    "starts with": Spelling("starts_with({0}, {1})"),
    "substring": Spelling("substring({0}, ({1})::INTEGER, ({2})::INTEGER)"),
    "substring from": Spelling("substring({0}, ({1})::INTEGER)"),
    "left": Spelling("left({0}, ({1})::INTEGER)"),
    "right": Spelling("right({0}, ({1})::INTEGER)"),
    "lpad": Spelling("lpad({0}, ({1})::INTEGER, {2})"),
    "rpad": Spelling("rpad({0}, ({1})::INTEGER, {2})"),
    "translate": Spelling("translate({0}, {1}, {2})"),
}


def _to_integer(limit: int) -> tuple[Spelling, Spelling]:
    """Casts of a number, halves away from zero, and of a double, halves to the even neighbour."""
    ends = f"{{0}} >= {-limit} AND {{0}} < {limit}"
    whole = f"CASE WHEN {ends} THEN {{0}} END"
    away = f"CASE WHEN {ends} THEN CASE WHEN {AWAY} < {limit} THEN ({AWAY})::BIGINT END END"
    even = f"CASE WHEN {ends} THEN CASE WHEN round({{0}}) < {limit} THEN round({{0}})::BIGINT END END"
    return Spelling(away, whole=whole), Spelling(even, whole=whole)


def _casts() -> dict[str, Spelling]:
    found: dict[str, Spelling] = {}
    for kind, limit in ((SqlType.INT2, 2**15), (SqlType.INT4, 2**31), (SqlType.INT8, 2**63)):
        found[f"cast number to {kind.pg_name}"], found[f"cast real to {kind.pg_name}"] = _to_integer(limit)
        found[f"cast boolean to {kind.pg_name}"] = Spelling("({0})::INTEGER::BIGINT")
    for kind in (SqlType.NUMERIC, SqlType.FLOAT8):
        found[f"cast number to {kind.pg_name}"] = Spelling("({0})::FLOAT8")
    for kind in (SqlType.TEXT, SqlType.VARCHAR):
        for source in ("text", "integer", "boolean", "date", "timestamp"):
            found[f"cast {source} to {kind.pg_name}"] = Spelling("({0})::TEXT")
    found["cast time to date"] = Spelling("({0})::DATE")
    for name in ("timestamp", "timestamptz"):
        found[f"cast time to {name}"] = Spelling(
            f"CASE WHEN {_IN_CALENDAR} OR NOT isfinite({{0}}) THEN {{0}}::TIMESTAMP END"
        )
    return found


SPELLINGS = MappingProxyType({**_CONDITIONS, **_NUMBERS, **_TIMES, **_TEXTS, **_casts()})


def spelling(function: str, kinds: tuple[SqlType, ...], *, may_raise: bool) -> str:
    """The template for arguments of these types; "" for a function that the engine does not compute."""
    found = SPELLINGS.get(function)
    if found is None:
        return ""
    if found.whole and kinds[0].is_integer:
        return found.whole
    return found.checked if may_raise and found.checked else found.plain
