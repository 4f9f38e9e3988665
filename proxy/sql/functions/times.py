"""Which functions of dates and times may appear over private rows? Rows of `functions`."""

from __future__ import annotations

from proxy.sql.functions import constant_evaluation as images
from proxy.sql.functions import signatures as types
from proxy.sql.functions.domains import ages, answers, spans, times, zones
from proxy.sql.functions.domains import rules as domains
from proxy.sql.functions.function import Function, Nulls, Whole
from proxy.sql.functions.hazards import always, arrives_outside, either_unbounded, leaves_calendar
from proxy.sqltypes import Family, SqlType

_TIME = Family.TIME
_FIELDS = ("year", "isoyear", "month", "day", "hour", "minute", "quarter", "week", "dow", "isodow", "doy")
_SIGNS = {"+": 1, "-": -1}
_CLOCK = ("hour", "minute", "second", "milliseconds", "microseconds")
_SPANS = ("decade", "century", "millennium")


def rows() -> tuple[Function, ...]:
    def field(name: str, whole: Whole = Whole.NO) -> Function:
        """A field is a numeric, as a product with it is: with a whole number of an engine's it could overflow."""
        of = types.clock if name in _CLOCK else types.fixed(SqlType.NUMERIC, _TIME)
        return Function(name=f"extract {name}", types=of, domain=times.extracted(name), whole=whole,
                        image=images.field(name) if whole is Whole.YES else images.nothing_known,
                        beyond=leaves_calendar)  # fmt: skip

    return (
        *(field(name, Whole.YES) for name in (*_FIELDS, *_SPANS)),
        field("second"),
        field("milliseconds"),
        field("microseconds", Whole.YES),
        field("epoch"),
        *(
            Function(name=f"date_trunc {unit}", types=types.truncation,
                     domain=times.truncated(unit), beyond=leaves_calendar)
            for unit in times.TRUNCATION_UNITS
        ),
        *(
            Function(name=f"date {sign} integer", types=types.date_and_integer, domain=times.moved_by_days(factor),
                     image=images.moved(factor),
                     beyond=arrives_outside)
            for sign, factor in _SIGNS.items()
        ),
        Function(name="date - date", types=types.two_dates, domain=times.days_between, image=images.days_between,
                 beyond=arrives_outside),
        *(
            Function(name=f"time {sign} interval", types=types.time_and_span, domain=times.moved(factor),
                     image=images.moved(factor), beyond=arrives_outside)
            for sign, factor in _SIGNS.items()
        ),
        *_spans(), *_ages(), *_zones(),
        Function(name="overlaps", types=types.two_spans_of_time, domain=domains.booleans,
                 nulls=Nulls.WITH_SOME),
        Function(name="isfinite", types=types.fixed(SqlType.BOOL, _TIME), domain=domains.booleans),
        Function(name="to_char", types=types.fixed(SqlType.TEXT, _TIME, Family.TEXT), domain=times.formatted,
                 image=images.formatted, beyond=leaves_calendar),
    )  # fmt: skip


def _spans() -> tuple[Function, ...]:
    return (
        Function(name="time - time", types=types.two_timestamps, domain=spans.between, beyond=either_unbounded),
        *(
            Function(name=f"time {sign} intervals", types=types.time_spans_and_number, domain=spans.moved_often(factor),
                     image=images.moved_often(factor), beyond=always,
                     answers=answers.often)
            for sign, factor in _SIGNS.items()
        ),
        Function(name="date_bin", types=types.bins, domain=spans.bins, image=images.bins, beyond=leaves_calendar),
        Function(name="make_date", types=types.three_integers, domain=spans.made_dates, image=images.made_date,
                 beyond=always,
                 answers=answers.every_month_has),
        Function(name="to_timestamp", types=types.one_number, domain=spans.after_seconds, image=images.after_seconds,
                 nulls=Nulls.WITH_ANY_OR_NO_ANSWER,
                 answers=answers.is_time),
    )  # fmt: skip


def _ages() -> tuple[Function, ...]:
    """Ages in months of thirty days, as intervals are compared, their fields, made intervals and times of day."""

    def field(name: str) -> Function:
        return Function(name=f"age {name}", types=types.fixed(SqlType.INT8, _TIME, _TIME), domain=ages.field(name),
                        nulls=Nulls.WITH_ANY_OR_NO_ANSWER,
                        beyond=either_unbounded, answers=answers.times)  # fmt: skip

    return (
        Function(name="age", types=types.two_timestamps, domain=ages.compared,
                 nulls=Nulls.WITH_ANY_OR_NO_ANSWER, beyond=either_unbounded, answers=answers.times),
        *(field(name) for name in ("year", *ages.FIELDS)),
        Function(name="interval", types=types.fixed(SqlType.INTERVAL, Family.NUMBER),
                 domain=domains.same),
        Function(name="time of day", types=types.fixed(SqlType.INT8, _TIME),
                 nulls=Nulls.WITH_ANY_OR_NO_ANSWER, domain=spans.times_of_day, beyond=leaves_calendar,
                 answers=answers.times),
    )  # fmt: skip


def _zones() -> tuple[Function, ...]:
    """A time that clocks of one zone show, as those of another show it; `instant`: the other is the policy's."""
    return tuple(
        Function(name=name, types=types.time_and_zones(result), domain=zones.moved_to_zone, beyond=leaves_calendar)
        for name, result in (("local time", SqlType.TIMESTAMP), ("instant", SqlType.TIMESTAMPTZ))
    )  # fmt: skip
