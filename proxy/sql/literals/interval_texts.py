"""Which months, days and microseconds does the text of an interval stand for, whatever IntervalStyle says?"""

from __future__ import annotations

import re
from decimal import Decimal

from proxy.sql.algebra.nodes import Span

_UNITS = {
    "microsecond": (0, 0, 1), "millisecond": (0, 0, 1_000), "second": (0, 0, 1_000_000), "minute": (0, 0, 60_000_000),
    "hour": (0, 0, 3_600_000_000), "day": (0, 1, 0), "week": (0, 7, 0), "month": (1, 0, 0), "year": (12, 0, 0),
}  # fmt: skip
_NAMES = {"sec": "second", "min": "minute", "mon": "month"}
_PART = re.compile(r"\s*([+-]?[0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([a-zA-Z]+)\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,9}\s*", re.ASCII)
_CLOCK = re.compile(r"\s*([+-]?)([0-9]{1,4}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]{1,6})?))?\s*", re.ASCII)
_SECONDS = ("second", "millisecond", "microsecond")
_OF_CLOCKS = ("hour", "minute", *_SECONDS)
_LARGEST = 2**31 - 1


def plain_span(text: str, field: str = "") -> Span:
    """The interval 'text', or 'text' field as in '90' MINUTE. Raises ValueError for what PostgreSQL is to read.

    Left to it is whatever has a sign before several parts, which stands for all of them in some styles, a fraction of
    a unit other than seconds, and a field behind more than a whole number, which would cut what the text says.
    """
    is_number = _NUMBER.fullmatch(text) is not None
    if field and not is_number:
        raise ValueError("no plain interval")
    return _sum(f"{text} {field or 'second'}" if is_number else text)


def _sum(text: str) -> Span:
    """Numbers, each with its unit, and at the end perhaps hours, minutes and seconds as clocks show them."""
    total, seen, end = (0, 0, 0), list[str](), 0
    while end < len(text):
        if end and not text[end - 1].isspace():
            raise ValueError("parts that are not apart")
        clock = _CLOCK.fullmatch(text, end)
        units, size = ([*_OF_CLOCKS], (0, 0, _on_clock(clock))) if clock else _part(text, end)
        if set(units) & set(seen):
            raise ValueError("a unit twice")
        seen += units
        total = (total[0] + size[0], total[1] + size[1], total[2] + size[2])
        found = clock or _PART.match(text, end)
        assert found is not None
        end = found.end()
    is_alone = seen in ([*_OF_CLOCKS], [*_SECONDS]) or len(seen) == 1
    if not seen or (not is_alone and text.lstrip().startswith("-")):
        raise ValueError("no plain interval")
    if max(abs(total[0]), abs(total[1])) > _LARGEST or abs(total[2]) >= 2**63:
        raise ValueError("too long")
    return Span(*total)


def _part(text: str, start: int) -> tuple[list[str], tuple[int, int, int]]:
    """A number with its unit: the names of the units that it takes, and months, days and microseconds."""
    match = _PART.match(text, start)
    word = match[2].lower().removesuffix("s") if match else ""
    unit = _NAMES.get(word, word)
    if match is None or unit not in _UNITS or ("." in match[1] and unit != "second"):
        raise ValueError("no plain interval")
    months, days, micros = (int(Decimal(match[1]) * size) for size in _UNITS[unit])
    return [*_SECONDS] if "." in match[1] else [unit], (months, days, micros)


def _on_clock(found: re.Match[str]) -> int:
    """Microseconds of 02:30:15.5."""
    seconds = Decimal(int(found[2]) * 3600 + int(found[3]) * 60) + Decimal(found[4] or 0)
    return int(seconds * 1_000_000) * (-1 if found[1] == "-" else 1)


def times(span: Span, factor: int) -> Span | None:
    """The interval so many times; None when it is too long."""
    parts = (span.months * factor, span.days * factor, span.microseconds * factor)
    is_short = max(abs(parts[0]), abs(parts[1]), abs(parts[2]) // 1_000_000) <= _LARGEST
    return Span(*parts) if is_short else None
