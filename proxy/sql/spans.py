"""Which months, days and microseconds does an interval literal stand for?"""

from __future__ import annotations

import re
from decimal import Decimal

from proxy.sql.algebra import Span

_UNITS = {
    "microsecond": (0, 0, 1),
    "millisecond": (0, 0, 1_000),
    "second": (0, 0, 1_000_000),
    "sec": (0, 0, 1_000_000),
    "minute": (0, 0, 60_000_000),
    "min": (0, 0, 60_000_000),
    "hour": (0, 0, 3_600_000_000),
    "day": (0, 1, 0),
    "week": (0, 7, 0),
    "month": (1, 0, 0),
    "mon": (1, 0, 0),
    "quarter": (3, 0, 0),
    "year": (12, 0, 0),
}
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*")
_NUMBER = re.compile(r"\s*[+-]?\d+(?:\.\d+)?\s*")
_CLOCK = re.compile(r"\s*([+-]?)(\d{1,4}):([0-5]\d)(?::([0-5]\d(?:\.\d{1,6})?))?\s*")
_LARGEST = 2**31 - 1


def parse_clock(text: str) -> int | None:
    """Microseconds of hours, minutes and seconds written as 02:30 or 02:30:15.5."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    seconds = Decimal(int(found[2]) * 3600 + int(found[3]) * 60) + Decimal(found[4] or 0)
    return int(seconds * 1_000_000) * (-1 if found[1] == "-" else 1)


def parse_span(text: str, unit: str) -> Span | None:
    """The interval written as `INTERVAL 'text' unit`; None when it is not understood.

    Fractions are accepted for units of fixed length below a day only. A time of day stands alone: the parser drops
    the one of INTERVAL '1 day 02:30'. A number alone is one of seconds.
    """
    whole = f"{text} {unit}" if unit else f"{text} second" if _NUMBER.fullmatch(text) else text
    clock = parse_clock(whole)
    if clock is not None:
        return Span(0, 0, clock)
    months, days, micros, end = 0, 0, 0, 0
    while end < len(whole):
        match = _PART.match(whole, end)
        scale = _UNITS.get(match[2].lower().removesuffix("s")) if match else None
        if match is None or scale is None:
            return None
        amount = Decimal(match[1])
        parts = [amount * s for s in scale]
        if any(p != int(p) or abs(p) > _LARGEST * 10**6 for p in parts):
            return None
        months, days, micros = months + int(parts[0]), days + int(parts[1]), micros + int(parts[2])
        end = match.end()
    if not whole.strip() or max(abs(months), abs(days)) > _LARGEST:
        return None
    return Span(months, days, micros)


def times(span: Span, factor: int) -> Span | None:
    """The interval so many times; None when it is too long."""
    parts = (span.months * factor, span.days * factor, span.microseconds * factor)
    is_short = max(abs(parts[0]), abs(parts[1]), abs(parts[2]) // 1_000_000) <= _LARGEST
    return Span(*parts) if is_short else None
