"""Which functions of dates and times may appear over private rows? Rows of `functions`."""

from __future__ import annotations

from proxy.policy.model import Domain
from proxy.sql.functions import constant_evaluation as images
from proxy.sql.functions import signatures as types
from proxy.sql.functions.domains import ages, answers, spans, times, zones
from proxy.sql.functions.domains import rules as domains
from proxy.sql.functions.domains.intervals import time_range
from proxy.sql.functions.function import Function, Nulls, Whole, always, arrives_outside, leaves_calendar
from proxy.sqltypes import Family, SqlType

_TIME = Family.TIME
_FIELDS = ("year", "isoyear", "month", "day", "hour", "minute", "quarter", "week", "dow", "isodow", "doy")
_OF_WEEKS = ("week", "isoyear")
_SIGNS = {"+": 1, "-": -1}
_CLOCK = ("hour", "minute", "second", "milliseconds", "microseconds")
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


def rows() -> tuple[Function, ...]:
    def field(name: str, number: str, whole: Whole = Whole.NO) -> Function:
        """A field is a numeric, as a product with it is: with a whole number of the engine's it could overflow."""
        duckdb = f"({number})::DOUBLE"
        of = types.clock if name in _CLOCK else types.fixed(SqlType.NUMERIC, _TIME)
        return Function(name=f"extract {name}", types=of, duckdb=duckdb, domain=times.extracted(name), whole=whole,
                        image=images.field(name) if whole is Whole.YES else images.nothing_known,
                        may_raise=leaves_calendar)  # fmt: skip

    return (
        *(field(name, f"extract({name} FROM {_apart(name)})", Whole.YES) for name in _FIELDS),
        *(field(name, _OUR_ERA.format(number), Whole.YES) for name, (number, _) in _SPANS.items()),
        field("second", "extract(microseconds FROM {0}) / 1e6"),
        field("milliseconds", "extract(microseconds FROM {0}) / 1e3"),
        field("microseconds", "extract(microseconds FROM {0})", Whole.YES),
        field("epoch", "epoch({0})"),
        *(
            Function(name=f"date_trunc {unit}", types=types.truncation, duckdb=f"date_trunc('{unit}', {_apart(unit)})",
                     domain=times.truncated(unit), may_raise=leaves_calendar)
            for unit in times.TRUNCATION_UNITS if unit not in _SPANS
        ),
        *(
            Function(name=f"date_trunc {unit}", types=types.truncation, domain=times.truncated(unit),
                     duckdb=_OUR_ERA.format(f"date_trunc('year', {{0}}) - to_years({past})"),
                     may_raise=leaves_calendar)
            for unit, (_, past) in _SPANS.items()
        ),
        *(
            Function(name=f"date {sign} integer", types=types.date_and_integer, domain=times.moved_by_days(factor),
                     duckdb=f"{{0}} {sign} {_DAYS}", image=images.moved(factor),
                     may_raise=arrives_outside)
            for sign, factor in _SIGNS.items()
        ),
        Function(name="date - date", types=types.two_dates, domain=times.days_between, image=images.days_between,
                 duckdb="CASE WHEN isfinite({0}) AND isfinite({1}) THEN {0} - {1} END", may_raise=arrives_outside),
        *(
            Function(name=f"time {sign} interval", types=types.time_and_span, domain=times.moved(factor),
                     duckdb=f"{{0}} {sign} {{1}}", image=images.moved(factor), may_raise=arrives_outside)
            for sign, factor in _SIGNS.items()
        ),
        *_spans(), *_ages(), *_zones(),
        Function(name="overlaps", types=types.two_spans_of_time, duckdb=_OVERLAPS, domain=domains.booleans,
                 nulls=Nulls.WITH_SOME),
        Function(name="isfinite", types=types.fixed(SqlType.BOOL, _TIME), duckdb="isfinite({0})",
                 domain=domains.booleans),
        Function(name="to_char", types=types.fixed(SqlType.TEXT, _TIME, Family.TEXT), domain=times.formatted,
                 duckdb=f"CASE WHEN {{0}} BETWEEN {_FIRST} AND {_LAST} THEN strftime({{0}}, {{1}}) END",
                 image=images.formatted, may_raise=leaves_calendar),
    )  # fmt: skip


def _spans() -> tuple[Function, ...]:
    return (
        Function(name="time - time", types=types.two_timestamps, domain=spans.between, may_raise=_either_unbounded,
                 duckdb="epoch_us({0}) - epoch_us({1})"),
        *(
            Function(name=f"time {sign} intervals", types=types.time_spans_and_number, domain=spans.moved_often(factor),
                     duckdb=f"{{0}} {sign} {{1}} * ({{2}})::BIGINT", image=images.moved_often(factor), may_raise=always,
                     answers=answers.often)
            for sign, factor in _SIGNS.items()
        ),
        Function(name="date_bin", types=types.bins, domain=spans.bins, image=images.bins, may_raise=leaves_calendar,
                 duckdb="CASE WHEN isfinite({0}) THEN time_bucket(to_microseconds({1}), {0}, {2}) ELSE {0} END"),
        Function(name="make_date", types=types.three_integers, domain=spans.made_dates, image=images.made_date,
                 duckdb="make_date(CASE WHEN {0} BETWEEN 1 AND 9999 THEN {0} END, {1}, {2})", may_raise=always,
                 answers=answers.every_month_has),
        Function(name="to_timestamp", types=types.one_number, domain=spans.after_seconds, image=images.after_seconds,
                 duckdb=f"CASE WHEN abs({{0}}::DOUBLE) < {_FARTHEST_S} THEN "
                        "make_timestamp(round({0}::DOUBLE * 1e6)::BIGINT) END", nulls=Nulls.WITH_ANY_OR_NO_ANSWER,
                 answers=answers.is_time),
    )  # fmt: skip


def _ages() -> tuple[Function, ...]:
    """Ages in months of thirty days, as intervals are compared, their fields, made intervals and times of day."""

    def field(name: str) -> Function:
        return Function(name=f"age {name}", types=types.fixed(SqlType.INT8, _TIME, _TIME), domain=ages.field(name),
                        duckdb=f"datepart('{name}', age({{0}}, {{1}}))::BIGINT", nulls=Nulls.WITH_ANY_OR_NO_ANSWER,
                        may_raise=_either_unbounded, answers=answers.times)  # fmt: skip

    return (
        Function(name="age", types=types.two_timestamps, domain=ages.compared, duckdb="epoch_us(age({0}, {1}))",
                 nulls=Nulls.WITH_ANY_OR_NO_ANSWER, may_raise=_either_unbounded, answers=answers.times),
        *(field(name) for name in ("year", *ages.FIELDS)),
        Function(name="interval", types=types.fixed(SqlType.INTERVAL, Family.NUMBER), duckdb="{0}",
                 domain=domains.same),
        Function(name="time of day", types=types.fixed(SqlType.INT8, _TIME), duckdb="epoch_us(({0})::TIME)",
                 nulls=Nulls.WITH_ANY_OR_NO_ANSWER, domain=spans.times_of_day, may_raise=leaves_calendar,
                 answers=answers.times),
    )  # fmt: skip


def _zones() -> tuple[Function, ...]:
    """A time that clocks of one zone show, as those of another show it; `instant`: the other is the policy's."""
    return tuple(
        Function(name=name, types=types.time_and_zones(result), domain=zones.moved_to_zone, may_raise=leaves_calendar,
                 duckdb="timezone({2}, timezone({1}, {0}))")
        for name, result in (("local time", SqlType.TIMESTAMP), ("instant", SqlType.TIMESTAMPTZ))
    )  # fmt: skip


def _either_unbounded(arguments: tuple[Domain, ...], _result: Domain) -> bool:
    return any(time_range(a) is None for a in arguments)
