"""Which constants do the bytes stand for in which PostgreSQL sends a value?

A value that no private engine holds, such as NaN, a time without end or one before our era, is none: whoever names it
below the noise line is refused, before anything is charged.
"""

from __future__ import annotations

import math
import struct
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from uuid import UUID

import psycopg
from psycopg.abc import Transformer as Loaders
from psycopg.adapt import Transformer
from psycopg.pq import Format

from proxy.sql.algebra.constants import TIME_OID, Elements, Given, TimeOfDay, Unheld
from proxy.sql.algebra.nodes import Literal, Null, Span
from proxy.sqltypes import BY_ARRAY_OID, BY_OID, SqlType

_INTERVAL = struct.Struct("!qii")
_FARTHEST = ((-(2**63), -(2**31), -(2**31)), (2**63 - 1, 2**31 - 1, 2**31 - 1))
_MOST_DIMENSIONS = 6
NOT_HELD = Unheld("is beyond private rows: years are from 1 to 9999, numbers those of double precision")
NOT_FINITE = Unheld("must be finite to be used with private rows")


def value_of(oid: int, data: bytes | None) -> Given:
    """The constant of a type that is supported. Raises ValueError for what are not the bytes of one."""
    kind, element = BY_OID.get(oid), BY_ARRAY_OID.get(oid)
    if data is None:
        return Null(kind or element or SqlType.TEXT)
    if oid == TIME_OID:
        return TimeOfDay(struct.unpack("!q", _sized(data, 8))[0])
    if kind is SqlType.INTERVAL:
        return _interval(_sized(data, 16))
    loaders = Transformer()
    return _array(data, element, loaders) if kind is None and element is not None else _scalar(data, kind, loaders)


def _sized(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ValueError("not as long as its type")
    return data


def _interval(data: bytes) -> Span | Unheld:
    microseconds, days, months = _INTERVAL.unpack(data)
    if (microseconds, days, months) in _FARTHEST:
        return NOT_FINITE
    return Span(months, days, microseconds)


def _scalar(data: bytes, kind: SqlType | None, loaders: Loaders) -> Literal | Unheld:
    if kind is None or not _has_right_size(kind, data):
        raise ValueError("not a value of its type")
    try:
        value = loaders.get_loader(kind.oid, Format.BINARY).load(data)
    except UnicodeDecodeError as error:
        raise ValueError("not a text") from error
    except (psycopg.Error, ValueError, OverflowError):  # Python's times are fewer than PostgreSQL's
        return NOT_HELD
    if isinstance(value, UUID):
        value = str(value)
    if kind is SqlType.BPCHAR and isinstance(value, str):
        value = value.rstrip(" ")
    if isinstance(value, (float, Decimal)) and not math.isfinite(float(value)):
        is_large = isinstance(value, Decimal) and value.is_finite()
        return NOT_HELD if is_large else NOT_FINITE
    assert isinstance(value, (bool, int, float, Decimal, str, date, datetime)), kind
    return Literal(value, kind)


def _has_right_size(kind: SqlType, data: bytes) -> bool:
    """Whether a value has the bytes that its type needs: the loaders read them without looking."""
    if kind is SqlType.NUMERIC:
        return len(data) >= 8 and len(data) == 8 + 2 * int.from_bytes(data[:2], "big")
    size: int = kind.value.size
    return size < 0 or len(data) == size


def _array(data: bytes, kind: SqlType, loaders: Loaders) -> Elements | Unheld:
    dimensions, cut = _cut(data, kind)
    found = [Null(kind) if part is None else _scalar(part, kind, loaders) for part in cut]
    if any(isinstance(item, Unheld) for item in found):
        return NOT_HELD
    return Elements(tuple(item for item in found if not isinstance(item, Unheld)), max(dimensions, 1))


def _cut(data: bytes, kind: SqlType) -> tuple[int, list[bytes | None]]:
    """How many dimensions there are, and the elements' bytes: a header, then each with its length, -1 for NULL."""
    reader = BytesIO(data)

    def whole() -> int:
        return int.from_bytes(_exactly(reader, 4), "big", signed=True)

    dimensions, _, oid = whole(), whole(), whole()
    if not 0 <= dimensions <= _MOST_DIMENSIONS or oid != kind.oid:
        raise ValueError("not such an array")
    sizes = [whole() for _ in range(2 * dimensions)][::2]
    size = math.prod(sizes) if sizes else 0
    if min(sizes, default=0) < 0 or size * 4 > len(data):
        raise ValueError("shorter than it says")
    lengths = (whole() for _ in range(size))
    found = [None if length == -1 else _exactly(reader, length) for length in lengths]
    if reader.read(1):
        raise ValueError("longer than it says")
    return dimensions, found


def _exactly(reader: BytesIO, count: int) -> bytes:
    data = reader.read(count) if count >= 0 else b""
    if len(data) != count:
        raise ValueError("shorter than it says")
    return data
