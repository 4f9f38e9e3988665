"""How does DuckDB spell functions of dates and times?"""

from __future__ import annotations

from types import MappingProxyType

from proxy.sql.functions.domains import ages, times
from proxy.sql.functions.hazards import always, arrives_outside, either_unbounded, leaves_calendar
from proxy.sql.render.duckdb.spelling import Written

_FIELDS = ("year", "isoyear", "month", "day", "hour", "minute", "quarter", "week", "dow", "isodow", "doy")
_OF_WEEKS = ("week", "isoyear")
# the number of a span of years, and how many years of it are past
_SPANS = {
    "decade": ("year({0}) // 10", "year({0}) % 10"),
    "century": ("(year({0}) + 99) // 100", "(year({0}) - 1) % 100"),
    "millennium": ("(year({0}) + 999) // 1000", "(year({0}) - 1) % 1000"),
}
_OUR_ERA = "CASE WHEN year({{0}}) >= 1 THEN {} END"
_FIRST, _LAST = "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"  # years of four digits

# The earlier and the later end of two spans of time, the later one being NULL where an end is.
_ENDS = (
    "[least({0}, {1}), CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN greatest({0}, {1}) END, "
    "least({2}, {3}), CASE WHEN {2} IS NOT NULL AND {3} IS NOT NULL THEN greatest({2}, {3}) END]"
)
_OVERLAPS = (
    f"list_transform([{_ENDS}], lambda v: CASE WHEN v[1] > v[3] THEN v[1] < v[4] OR v[2] < v[4] "
    "WHEN v[1] < v[3] THEN v[3] < v[2] OR v[4] < v[2] WHEN v[1] = v[3] THEN v[2] = v[4] OR v[2] <> v[4] END)[1]"
)

# less than 10^8 days: farther away dates have no timestamp, and DuckDB compares some of them all the same
_DAYS = "TRY_CAST(TRY_CAST({1} AS DECIMAL(8, 0)) AS INTEGER)"
_FARTHEST_S = "9e11"  # seconds from 1970: as far as a double counts microseconds


def _apart(unit: str) -> str:
    """The argument. DuckDB plans with a column's least and greatest values, of which it also takes the week: outside of
    TRY, and the week of its first date raises. What comes out of TRY has no such values.
    """
    return "TRY({0})" if unit in _OF_WEEKS else "{0}"


def _field(number: str) -> Written:
    """A field is a numeric, as a product with it is: with a whole number of the engine's it could overflow."""
    return Written(f"({number})::DOUBLE", leaves_calendar)


def _of_age(name: str) -> Written:
    return Written(f"datepart('{name}', age({{0}}, {{1}}))::BIGINT", either_unbounded)


SPELLINGS = MappingProxyType({
    **{f"extract {name}": _field(f"extract({name} FROM {_apart(name)})") for name in _FIELDS},
    **{f"extract {name}": _field(_OUR_ERA.format(number)) for name, (number, _) in _SPANS.items()},
    "extract second": _field("extract(microseconds FROM {0}) / 1e6"),
    "extract milliseconds": _field("extract(microseconds FROM {0}) / 1e3"),
    "extract microseconds": _field("extract(microseconds FROM {0})"),
    "extract epoch": _field("epoch({0})"),
    **{f"date_trunc {unit}": Written(f"date_trunc('{unit}', {_apart(unit)})", leaves_calendar)
       for unit in times.TRUNCATION_UNITS if unit not in _SPANS},
    **{f"date_trunc {unit}": Written(_OUR_ERA.format(f"date_trunc('year', {{0}}) - to_years({past})"), leaves_calendar)
       for unit, (_, past) in _SPANS.items()},
    **{f"date {sign} integer": Written(f"{{0}} {sign} {_DAYS}", arrives_outside) for sign in "+-"},
    "date - date": Written("CASE WHEN isfinite({0}) AND isfinite({1}) THEN {0} - {1} END", arrives_outside),
    **{f"time {sign} interval": Written(f"{{0}} {sign} {{1}}", arrives_outside) for sign in "+-"},
    "time - time": Written("epoch_us({0}) - epoch_us({1})", either_unbounded),
    **{f"time {sign} intervals": Written(f"{{0}} {sign} {{1}} * ({{2}})::BIGINT", always) for sign in "+-"},
    "date_bin": Written("CASE WHEN isfinite({0}) THEN time_bucket(to_microseconds({1}), {0}, {2}) ELSE {0} END",
                         leaves_calendar),
    "make_date": Written("make_date(CASE WHEN {0} BETWEEN 1 AND 9999 THEN {0} END, {1}, {2})", always),
    "to_timestamp": Written(f"CASE WHEN abs({{0}}::DOUBLE) < {_FARTHEST_S} THEN "
                             "make_timestamp(round({0}::DOUBLE * 1e6)::BIGINT) END"),
    "age": Written("epoch_us(age({0}, {1}))", either_unbounded),
    **{f"age {name}": _of_age(name) for name in ("year", *ages.FIELDS)},
    "interval": Written("{0}"),
    "time of day": Written("epoch_us(({0})::TIME)", leaves_calendar),
    **{name: Written("timezone({2}, timezone({1}, {0}))", leaves_calendar) for name in ("local time", "instant")},
    "overlaps": Written(_OVERLAPS),
    "isfinite": Written("isfinite({0})"),
    "to_char": Written(f"CASE WHEN {{0}} BETWEEN {_FIRST} AND {_LAST} THEN strftime({{0}}, {{1}}) END",
                        leaves_calendar),
})  # fmt: skip
