"""How does PostgreSQL spell functions of times so that no row makes them raise?"""

from __future__ import annotations

import re
from types import MappingProxyType

from proxy.sql.functions.hazards import arrives_outside, either_unbounded, leaves_calendar
from proxy.sql.render.dialect import text_literal
from proxy.sql.render.postgres.spelling import (
    AWAY,
    FIRST,
    IN_CALENDAR,
    IN_OUR_ERA,
    LAST,
    SpelledArguments,
    Spelling,
    bare,
    text_of,
)  # fmt: skip

LONGEST_DAYS = 4000 * 365  # a span from year 1 stays in the calendar, which begins in 4713 BC
DAY_MICROSECONDS = 86_400_000_000
_FAR_DAYS = 250_000  # less than from the start of the guarded years to that of the calendar
_MOST_MICROSECONDS = 2**53  # a double counts them one by one
_EARLIEST_S, _LATEST_S = "'-1.8e11'::FLOAT8", "'9e11'::FLOAT8"  # from 1970: in the calendar, and as the other engine
_FIELDS = ("year", "isoyear", "month", "day", "hour", "minute", "quarter", "week", "dow", "isodow", "doy")
_UNITS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
_LONG_UNITS = ("decade", "century", "millennium")
_SPAN = re.compile(r"INTERVAL '(-?\d+) months (-?\d+) days (-?\d+) microseconds'")

# strftime's directives as PostgreSQL writes them
_PATTERNS = MappingProxyType({
    "G": "IYYY", "Y": "YYYY", "y": "YY", "m": "MM", "V": "IW", "j": "DDD", "d": "DD", "u": "ID", "H": "HH24",
    "I": "HH12", "M": "MI", "S": "SS", "g": "MS", "f": "US", "-m": "FMMM", "-d": "FMDD", "-H": "FMHH24",
    "-I": "FMHH12", "-M": "FMMI", "-S": "FMSS", "B": "FMMonth", "b": "Mon", "A": "FMDay", "a": "Dy", "p": "AM",
    "%": '"%"',
})  # fmt: skip
_DIRECTIVE = re.compile(r"%(-?.)|([^%]+)")


def _field(name: str, divisor: str = "") -> Spelling:
    return Spelling(f"CASE WHEN isfinite({{0}}) THEN extract({name} FROM {{0}})::FLOAT8{divisor} END")


def _moved(sign: str) -> Spelling:
    near = f"{{1}} BETWEEN -{_FAR_DAYS} AND {_FAR_DAYS}"
    return Spelling(f"{{0}} {sign} ({{1}})::INTEGER",
                    f"CASE WHEN {IN_CALENDAR} AND {near} THEN {{0}} {sign} {{1}}::INTEGER END",
                    arrives_outside)  # fmt: skip


def _truncated(unit: str) -> Spelling:
    return Spelling(
        f"date_trunc('{unit}', ({{0}})::TIMESTAMP)",
        f"CASE WHEN {IN_CALENDAR} THEN date_trunc('{unit}', {{0}}::TIMESTAMP) "
        "WHEN NOT isfinite({0}) THEN {0}::TIMESTAMP END",
        leaves_calendar,
    )


def _shifted(sign: str) -> Spelling:
    return Spelling(
        f"({{0}}) {sign} ({{1}})",
        f"CASE WHEN {IN_OUR_ERA} THEN {{0}} {sign} {{1}} WHEN NOT isfinite({{0}}) THEN {{0}}::TIMESTAMP END",
        arrives_outside,
    )


def _shifted_often(sign: str) -> Spelling:
    """{3}: how often at most."""
    moved = f"WHEN {IN_OUR_ERA} AND {{2}} BETWEEN -{{3}} AND {{3}} THEN {{0}} {sign} {{1}} * ({{2}})::FLOAT8"
    return Spelling(f"CASE WHEN {{2}} BETWEEN -2147483648 AND 2147483647 THEN "
                    f"CASE WHEN NOT isfinite({{0}}) THEN {{0}}::TIMESTAMP {moved} END END",
                    prepared=_with_most)  # fmt: skip


def _with_most(args: SpelledArguments) -> SpelledArguments:
    found = _SPAN.fullmatch(bare(args[1]))
    assert found is not None
    months, days, microseconds = (abs(int(part)) for part in found.groups())
    most = int(LONGEST_DAYS / max(months * 31 + days + microseconds / DAY_MICROSECONDS, 1e-12))
    if microseconds % 1_000_000:
        most = min(most, _MOST_MICROSECONDS // microseconds)
    return *args, str(most)


def _format(args: SpelledArguments) -> SpelledArguments:
    """to_char's own format."""
    parts = [_PATTERNS[found[1]] if found[1] else f'"{found[2]}"' for found in _DIRECTIVE.finditer(text_of(args[1]))]
    return args[0], text_literal("".join(parts))


def _of_age(number: str) -> Spelling:
    inside = f"CASE WHEN {IN_CALENDAR} AND {{1}} BETWEEN {FIRST} AND {LAST} THEN age({{0}}, {{1}}) END"
    return Spelling(f"(SELECT ({number})::BIGINT FROM (SELECT {inside} AS a OFFSET 0) AS aged)")


_OF_OUR_ERA = "CASE WHEN " + IN_OUR_ERA.replace("{0}", "{{0}}") + " THEN {} END"
_DIFFERENCE = "((extract(epoch FROM {0}) - extract(epoch FROM {%s})) * 1000000)::BIGINT"
_MICROSECOND = "INTERVAL '1 microsecond'"
_LAST_DAY = "extract(day FROM make_date(({0})::INTEGER, ({1})::INTEGER, 1) + INTERVAL '1 month -1 day')"
_WORN = "(CASE WHEN {0} > " + _EARLIEST_S + " AND {0} < " + _LATEST_S + " THEN {0}::FLOAT8 * '1e6'::FLOAT8 END)"
_ROUNDED = f"SELECT ({AWAY.replace('{0}', 'us')})::BIGINT AS us FROM (SELECT {_WORN} AS us OFFSET 0) AS v OFFSET 0"

# its own OVERLAPS makes timestamps of dates, which some have not
_LATER = "CASE WHEN {%s} IS NOT NULL AND {%s} IS NOT NULL THEN greatest({%s}, {%s}) END"
_ENDS = (
    f"SELECT least({{0}}, {{1}}) AS a, {_LATER % (0, 1, 0, 1)} AS b, "
    f"least({{2}}, {{3}}) AS c, {_LATER % (2, 3, 2, 3)} AS d OFFSET 0"
)
_OVERLAPS = (
    "(SELECT CASE WHEN a > c THEN a < d OR b < d WHEN a < c THEN c < b OR d < b "
    f"WHEN a = c THEN b = d OR b <> d END FROM ({_ENDS}) AS ends)"
)

SPELLINGS = MappingProxyType({
    **{f"extract {name}": _field(name) for name in _FIELDS},
    **{f"extract {name}": Spelling(_OF_OUR_ERA.format(f"extract({name} FROM {{0}})::FLOAT8")) for name in _LONG_UNITS},
    "extract second": _field("microseconds", " / 1e6"),
    "extract milliseconds": _field("microseconds", " / 1e3"),
    "extract microseconds": _field("microseconds"),
    "extract epoch": _field("epoch"),
    **{f"date_trunc {unit}": _truncated(unit) for unit in _UNITS},
    **{f"date_trunc {unit}": Spelling(_OF_OUR_ERA.format(f"date_trunc('{unit}', ({{0}})::TIMESTAMP)"))
       for unit in _LONG_UNITS},
    "overlaps": Spelling(_OVERLAPS),
    "isfinite": Spelling("isfinite({0})"),
    "date + integer": _moved("+"),
    "date - integer": _moved("-"),
    "date - date": Spelling("CASE WHEN isfinite({0}) AND isfinite({1}) THEN ({0} - {1})::BIGINT END"),
    "time + interval": _shifted("+"),
    "time - interval": _shifted("-"),
    "time + intervals": _shifted_often("+"),
    "time - intervals": _shifted_often("-"),
    "time - time": Spelling(
        _DIFFERENCE % 1,
        f"CASE WHEN {IN_CALENDAR} AND {{1}} BETWEEN {FIRST} AND {LAST} THEN {_DIFFERENCE % 1} END",
        either_unbounded,
    ),
    # ages of times in the calendar
    "age": _of_age("((extract(year FROM a) * 12 + extract(month FROM a)) * 2592000 + extract(day FROM a) * 86400"
                   " + extract(hour FROM a) * 3600 + extract(minute FROM a) * 60) * 1000000"
                   " + extract(microseconds FROM a)"),
    **{f"age {name}": _of_age(f"extract({name} FROM a)")
       for name in ("year", "month", "day", "hour", "minute", "microseconds")},
    "interval": Spelling("{0}"),
    "time of day": Spelling(
        "CASE WHEN isfinite({0}) THEN (extract(epoch FROM ({0})::TIMESTAMP::TIME) * 1000000)::BIGINT END",
    ),
    # the remainder is below the stride, which a double holds to the microsecond
    "date_bin": Spelling(
        f"CASE WHEN {IN_CALENDAR} THEN {{0}} - mod(mod({_DIFFERENCE % 2}, {{1}}) + {{1}}, {{1}}) * {_MICROSECOND} "
        "WHEN NOT isfinite({0}) THEN {0} END",
    ),
    "make_date": Spelling(
        "CASE WHEN {0} BETWEEN 1 AND 9999 AND {1} BETWEEN 1 AND 12 AND {2} >= 1 THEN "
        f"CASE WHEN {{2}} <= {_LAST_DAY} THEN make_date(({{0}})::INTEGER, ({{1}})::INTEGER, ({{2}})::INTEGER) END END",
    ),
    "to_timestamp": Spelling(
        f"(SELECT '1970-01-01'::TIMESTAMP + make_interval(days => (us / {DAY_MICROSECONDS})::INTEGER)"
        f" + (us % {DAY_MICROSECONDS}) * {_MICROSECOND} FROM ({_ROUNDED}) AS v)",
    ),
    **{name: Spelling(f"CASE WHEN {IN_CALENDAR} OR NOT isfinite({{0}}) THEN "
                      "timezone({2}, timezone({1}, {0})) END")
       for name in ("local time", "instant")},
    "to_char": Spelling(
        "CASE WHEN {0} BETWEEN '0001-01-01 00:00:00'::TIMESTAMP AND '9999-12-31 23:59:59.999999'::TIMESTAMP "
        "THEN to_char(({0})::TIMESTAMP, {1}) END",
        prepared=_format,
    ),
})  # fmt: skip
