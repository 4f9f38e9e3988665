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
_CLOCK = ("hour", "minute", "second")


def rows() -> tuple[Function, ...]:
    def field(name: str, duckdb: str, whole: Whole = Whole.NO) -> Function:
        of = types.clock if name in _CLOCK else types.fixed(SqlType.NUMERIC, _TIME)
        return Function(name=f"extract {name}", types=of, duckdb=duckdb, domain=times.extracted(name), whole=whole,
                        may_raise=leaves_calendar)  # fmt: skip

    return (
        *(field(name, f"extract({name} FROM {{0}})", Whole.YES) for name in _FIELDS),
        field("second", "extract(microseconds FROM {0}) / 1e6"),
        field("epoch", "epoch({0})"),
        *(
            Function(name=f"date_trunc {unit}", types=types.truncation, duckdb=f"date_trunc('{unit}', {{0}})",
                     domain=times.truncated(unit), may_raise=leaves_calendar)
            for unit in times.TRUNCATION_UNITS
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
    )  # fmt: skip
