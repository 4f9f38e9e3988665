"""How does Spark spell functions of times so that no row makes them raise?

By whole days and microseconds since 1970: what Spark calls by names (`date_trunc`, days of the week, differences in
microseconds) other servers of its protocol compute otherwise, or not for every year. The session's time zone is UTC.
Times of other years than 1 to 9999 have no value here unless bounds exclude them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType

from proxy.sql.functions.hazards import Hazard, arrives_outside, either_unbounded, leaves_calendar
from proxy.sql.render.spark.spelling import SparkArguments, SparkSpelling, X, text_of

DAY_MICROSECONDS = 86_400_000_000
FIRST, LAST = "TIMESTAMP_NTZ '0001-01-01 00:00:00'", "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
_FAR_DAYS = 3_700_000  # more than there are in those years
_MOST_MONTHS, _MOST_MICROSECONDS = 9000 * 12, 2**58  # of an interval
_MOST_S = "9e11"  # seconds from 1970: as far as a double counts microseconds
_SPAN = re.compile(r"\(INTERVAL '(-?\d+) months (-?\d+) days (-?\d+) microseconds'\)")


def microseconds_of(time: str) -> str:
    """Since 1970."""
    return f"unix_micros(CAST({time} AS TIMESTAMP))"


def moment_of(microseconds: str) -> str:
    return f"CAST(timestamp_micros({microseconds}) AS TIMESTAMP_NTZ)"


def in_calendar(time: str) -> str:
    """NULL outside the years that every client and every function has."""
    moment = f"try_cast({time} AS TIMESTAMP_NTZ)"
    return f"(CASE WHEN {moment} BETWEEN {FIRST} AND {LAST} THEN {time} END)"


_DATE = "CAST({0} AS DATE)"
_DAYS = f"CAST(unix_date({_DATE}) AS BIGINT)"
_US = microseconds_of("{0}")
_SECONDS = f"pmod({_US}, 60000000)"
_SINCE_MONDAY = f"pmod({_DAYS} + 3, 7)"
_YEAR = f"extract(YEAR FROM {_DATE})"


def _total(template: str, hazard: Hazard = leaves_calendar, also: str = "") -> SparkSpelling:
    """A template whose first argument, and `also`, must be in the calendar."""
    checked = template.replace("{0}", in_calendar("{0}"))
    return SparkSpelling(template, checked.replace(also, in_calendar(also)) if also else checked, hazard)


def _field(number: str) -> SparkSpelling:
    return _total(f"CAST({number} AS DOUBLE)")


def _at_midnight(date: str) -> SparkSpelling:
    return _total(f"CAST({date} AS TIMESTAMP_NTZ)")


def _from_years(first: str) -> SparkSpelling:
    return _at_midnight(f"make_date(CAST({first} AS INT), 1, 1)")


def _floored(microseconds: int) -> SparkSpelling:
    return _total(moment_of(f"{_US} - pmod({_US}, {microseconds})"))


def _moved(sign: str) -> SparkSpelling:
    days = f"CAST(CASE WHEN {{1}} BETWEEN -{_FAR_DAYS} AND {_FAR_DAYS} THEN {{1}} END AS INT)"
    return _total(f"date_from_unix_date(unix_date({{0}}) {sign} {days})", arrives_outside)


def _shifted(sign: int) -> SparkSpelling:
    """Months first, which may end earlier, then days and the time of day."""
    moved = f"CAST(add_months({_DATE}, {{1}}) AS TIMESTAMP_NTZ)"
    plain = moment_of(f"{microseconds_of(moved)} + pmod({_US}, {DAY_MICROSECONDS}) + {{2}}")
    total = _total(plain, arrives_outside)
    return SparkSpelling(plain, total.checked, arrives_outside, prepared=_by_span(sign))


def _by_span(sign: int) -> Callable[[SparkArguments], SparkArguments]:
    def prepared(args: SparkArguments) -> SparkArguments:
        found = _SPAN.fullmatch(args[1])
        assert found is not None, "the binder makes constant spans"
        months, days, microseconds = (sign * int(part) for part in found.groups())
        if abs(months) > _MOST_MONTHS or abs(days * DAY_MICROSECONDS + microseconds) >= _MOST_MICROSECONDS:
            raise ValueError("an interval of more than 9,000 years")
        return args[0], f"({months})", f"({days * DAY_MICROSECONDS + microseconds})"

    return prepared


def _from_utc(args: SparkArguments) -> SparkArguments:
    """Where clocks are set back an hour is there twice, of which Java takes the first and PostgreSQL the second."""
    if text_of(args[1]) != "UTC":
        raise ValueError("a time of another zone than UTC in a policy's or a statement's zone")
    return args


_IN_ZONE = SparkSpelling(f"convert_timezone({{1}}, {{2}}, {in_calendar('{0}')})", prepared=_from_utc)


_PADDED = "lpad(CAST(CASE WHEN {%d} BETWEEN %d AND %d THEN {%d} END AS STRING), %d, '0')"
_WRITTEN_DATE = ", '-', ".join(
    _PADDED % (place, 1, most, place, width) for place, most, width in ((0, 9999, 4), (1, 12, 2), (2, 31, 2))
)

SPELLINGS = MappingProxyType({
    **{f"extract {name}": _field(f"extract({name.upper()} FROM {_DATE})")
       for name in ("year", "month", "day", "quarter", "week", "doy")},
    "extract isoyear": _field(f"extract(YEAR FROM date_from_unix_date(CAST({_DAYS} - {_SINCE_MONDAY} + 3 AS INT)))"),
    "extract dow": _field(f"pmod({_DAYS} + 4, 7)"),
    "extract isodow": _field(f"{_SINCE_MONDAY} + 1"),
    "extract hour": _field(f"pmod({_US}, {DAY_MICROSECONDS}) DIV 3600000000"),
    "extract minute": _field(f"pmod({_US}, 3600000000) DIV 60000000"),
    "extract decade": _field(f"{_YEAR} DIV 10"),
    "extract century": _field(f"({_YEAR} + 99) DIV 100"),
    "extract millennium": _field(f"({_YEAR} + 999) DIV 1000"),
    "extract second": _field(f"CAST({_SECONDS} AS DOUBLE) / 1e6"),
    "extract milliseconds": _field(f"CAST({_SECONDS} AS DOUBLE) / 1e3"),
    "extract microseconds": _field(_SECONDS),
    "extract epoch": _field(f"CAST({_US} AS DOUBLE) / 1e6"),
    "date_trunc microseconds": _total("CAST({0} AS TIMESTAMP_NTZ)"),
    "date_trunc milliseconds": _floored(1000),
    "date_trunc second": _floored(1_000_000),
    "date_trunc minute": _floored(60_000_000),
    "date_trunc hour": _floored(3_600_000_000),
    "date_trunc day": _at_midnight(_DATE),
    "date_trunc week": _at_midnight(f"date_from_unix_date(CAST({_DAYS} - {_SINCE_MONDAY} AS INT))"),
    "date_trunc month": _at_midnight(f"make_date({_YEAR}, extract(MONTH FROM {_DATE}), 1)"),
    "date_trunc quarter": _at_midnight(f"make_date({_YEAR}, extract(QUARTER FROM {_DATE}) * 3 - 2, 1)"),
    "date_trunc year": _from_years(_YEAR),
    "date_trunc century": _from_years(f"{_YEAR} - (({_YEAR} - 1) % 100)"),
    "date_trunc millennium": _from_years(f"{_YEAR} - (({_YEAR} - 1) % 1000)"),
    **{f"date {sign} integer": _moved(sign) for sign in "+-"},
    "date - date": SparkSpelling("CAST(unix_date({0}) AS BIGINT) - CAST(unix_date({1}) AS BIGINT)"),
    "time + interval": _shifted(1),
    "time - interval": _shifted(-1),
    "time - time": _total(f"{_US} - {microseconds_of('{1}')}", either_unbounded, "{1}"),
    "time of day": _total(f"pmod({_US}, {DAY_MICROSECONDS})"),
    "date_bin": _total(moment_of(f"{_US} - pmod({_US} - {microseconds_of('{2}')}, {{1}})")),
    "make_date": SparkSpelling(f"try_cast(concat({_WRITTEN_DATE}) AS DATE)"),
    "to_timestamp": SparkSpelling(
        moment_of(f"try_cast(round(CASE WHEN abs({X}) < {_MOST_S} THEN {X} * 1e6 END) AS BIGINT)")
    ),
    "local time": _IN_ZONE,
    "instant": _IN_ZONE,
    "isfinite": SparkSpelling("CASE WHEN {0} IS NOT NULL THEN TRUE END"),
})  # fmt: skip
