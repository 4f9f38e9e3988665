"""Which value does a text stand for, whatever the settings of the session that wrote it?

A strict part of what PostgreSQL reads, in which neither DateStyle, IntervalStyle, TimeZone nor any other setting has a
say: what programs send nearly always. Every other text is for PostgreSQL itself to read. Nothing here is a guess: a
text that is understood means in every session what is said here.
"""

from __future__ import annotations

import math
import re
import struct
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from proxy.sqltypes import Family, SqlType, Value

_MOST_DIGITS = 400
_BITS = {SqlType.INT2: 15, SqlType.INT4: 31, SqlType.INT8: 63}
_WORDS = {"t": True, "true": True, "y": True, "yes": True, "on": True, "1": True,
          "f": False, "false": False, "n": False, "no": False, "off": False, "0": False}  # fmt: skip
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CLOCK = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?"
_OFFSET = r"(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)"
# the year comes first and has four digits, so that no DateStyle takes it for a day or a month
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_MOMENT = re.compile(rf"{_DATE.pattern}(?:[ T]{_CLOCK}(?P<offset> ?{_OFFSET})?|(?P<bare> {_OFFSET}))?")
_TIME = re.compile(_CLOCK)
_FARTHEST_OFFSET = timedelta(hours=15, minutes=59)
_ELEMENT = re.compile(r'(?:"([^"\\]*)"|([^"\\{},\s]+))(,(?!$)|$)')


def read_plain(text: str, kind: SqlType) -> Value:
    """The value of a type. Raises ValueError for a text that PostgreSQL is to read, or to refuse.

    A timestamptz is one with an offset: which instant another is depends on the session's clocks.
    """
    match kind.family:
        case Family.TEXT:
            return _text(text, kind)
        case Family.BOOLEAN:
            return _boolean(text)
        case Family.NUMBER:
            return _whole(text, kind) if kind.is_integer else _fraction(text, kind)
        case Family.TIME:
            return _moment(text, kind)
        case Family.INTERVAL:
            raise ValueError("an interval is read by plain_span")


def plain_time_of_day(text: str) -> int:
    """Microseconds since midnight. Raises ValueError as `read_plain` does."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("no time of day")
    hours, minutes, seconds, micros = _clock(found.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros


def plain_elements(text: str) -> list[str]:
    """The texts of an array's elements, none of them NULL. Raises ValueError as `read_plain` does."""
    inner = text[1:-1] if text[:1] == "{" and text[-1:] == "}" and len(text) > 1 else None
    if inner is None:
        raise ValueError("no array of one dimension")
    found, position = list[str](), 0
    while position < len(inner):
        match = _ELEMENT.match(inner, position)
        if match is None or (match[2] or "").upper() == "NULL":
            raise ValueError("not a plain element")
        found.append(match[2] if match[1] is None else match[1])
        position = match.end()
    return found


def _boolean(text: str) -> bool:
    if not text.isascii() or text.lower() not in _WORDS:
        raise ValueError("no plain boolean")
    return _WORDS[text.lower()]


def _whole(text: str, kind: SqlType) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise ValueError("no plain whole number")
    number = int(text)
    if not -(2 ** _BITS[kind]) <= number < 2 ** _BITS[kind]:
        raise ValueError("out of range")
    return number


def _fraction(text: str, kind: SqlType) -> Decimal | float:
    if len(text) > _MOST_DIGITS or _NUMBER.fullmatch(text) is None:
        raise ValueError("no plain number")
    number = Decimal(text)
    near = float(number)
    if not math.isfinite(near):
        raise ValueError("out of range of double precision")
    if kind is SqlType.NUMERIC:
        return number or abs(number)  # which has no negative zero
    if bool(number) != bool(near):
        raise ValueError("out of range of double precision")
    if kind is SqlType.FLOAT4 and (abs(near) >= 2.0**127 or Decimal(_single(near)) != number):
        raise ValueError("no number of single precision: it would be rounded")
    return near


def _single(number: float) -> float:
    """The nearest number of single precision."""
    (found,) = struct.unpack("<f", struct.pack("<f", number))
    return float(found)


def _text(text: str, kind: SqlType) -> str:
    if kind is not SqlType.UUID:
        return text.rstrip(" ") if kind is SqlType.BPCHAR else text
    if _UUID.fullmatch(text) is None:
        raise ValueError("no plain uuid")
    return text.lower()


def _moment(text: str, kind: SqlType) -> date | datetime:
    """A date or a timestamp, which have no offset: PostgreSQL reads over one."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError("no plain time")
    year, month, day = map(int, found.groups()[:3])
    here = datetime(year, month, day, *_clock(found.groups()[3:7]))
    offset = found["offset"] or found["bare"]
    zone = None if offset is None else timezone(_offset(offset.strip()))
    match kind:
        case SqlType.DATE:
            return here.date()
        case SqlType.TIMESTAMP:
            return here
        case _ if zone is not None:
            return here.replace(tzinfo=zone)
        case _:
            raise ValueError("no instant without an offset")


def _clock(groups: tuple[str | None, ...]) -> tuple[int, int, int, int]:
    """Hours, minutes, seconds and microseconds."""
    hours, minutes, seconds = (int(part or 0) for part in groups[:3])
    if not (hours < 24 and minutes < 60 and seconds < 60):
        raise ValueError("no plain time of day")
    return hours, minutes, seconds, int((groups[3] or "").ljust(6, "0"))


def _offset(text: str) -> timedelta:
    if text == "Z":
        return timedelta()
    digits = text[1:].replace(":", "")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    if size > _FARTHEST_OFFSET or int(digits[2:] or 0) > 59:
        raise ValueError("no plain offset")
    return -size if text[0] == "-" else size
