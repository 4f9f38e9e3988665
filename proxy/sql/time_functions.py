"""Which functions of dates and times may appear over private rows? Rows of `functions`."""

from __future__ import annotations

from proxy.sql import images
from proxy.sql import signatures as types
from proxy.sql import time_rules as times
from proxy.sql.function import Function, Whole, arrives_outside, leaves_calendar
from proxy.sqltypes import Family, SqlType

_TIME = Family.TIME
_FIELDS = ("year", "isoyear", "month", "day", "hour", "minute", "quarter", "week", "dow", "isodow", "doy")
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


def rows() -> tuple[Function, ...]:
    def field(name: str, duckdb: str, whole: Whole = Whole.NO) -> Function:
        of = types.clock if name in _CLOCK else types.fixed(SqlType.NUMERIC, _TIME)
        return Function(name=f"extract {name}", types=of, duckdb=duckdb, domain=times.extracted(name), whole=whole,
                        image=images.field(name) if whole is Whole.YES else images.nothing_known,
                        may_raise=leaves_calendar)  # fmt: skip

    return (
        *(field(name, f"extract({name} FROM {{0}})", Whole.YES) for name in _FIELDS),
        *(field(name, _OUR_ERA.format(number), Whole.YES) for name, (number, _) in _SPANS.items()),
        field("second", "extract(microseconds FROM {0}) / 1e6"),
        field("milliseconds", "extract(microseconds FROM {0}) / 1e3"),
        field("microseconds", "extract(microseconds FROM {0})", Whole.YES),
        field("epoch", "epoch({0})"),
        *(
            Function(name=f"date_trunc {unit}", types=types.truncation, duckdb=f"date_trunc('{unit}', {{0}})",
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
                     duckdb=f"{{0}} {sign} TRY_CAST({{1}} AS INTEGER)", image=images.moved(factor),
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
        Function(name="to_char", types=types.fixed(SqlType.TEXT, _TIME, Family.TEXT), domain=times.formatted,
                 duckdb=f"CASE WHEN {{0}} BETWEEN {_FIRST} AND {_LAST} THEN strftime({{0}}, {{1}}) END",
                 image=images.formatted, may_raise=leaves_calendar),
    )  # fmt: skip
