"""Which constants do a client's bound parameters stand for?"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from uuid import UUID

from psycopg.abc import Transformer as Loaders
from psycopg.adapt import Transformer
from psycopg.pq import Format

from proxy.errors import InvalidParameter
from proxy.session.contract import Parameter
from proxy.sql.algebra import Literal, Null
from proxy.sql.constants import Bindings, Elements
from proxy.sqltypes import BY_ARRAY_OID, BY_OID, SqlType


def read_parameters(parameters: tuple[Parameter, ...]) -> Bindings:
    """Parameters by number, from 1. Types outside the algebra are left out: naming one there is refused."""
    loaders = Transformer()
    found: dict[int, Literal | Null | Elements] = {}
    for number, parameter in enumerate(parameters, start=1):
        kind, array_of = BY_OID.get(parameter.oid), BY_ARRAY_OID.get(parameter.oid)
        if kind is not None and kind is not SqlType.INTERVAL:
            found[number] = _read(number, parameter, kind, loaders)
        elif array_of is not None and array_of is not SqlType.INTERVAL:
            found[number] = _read_array(number, parameter, array_of, loaders)
    return found


def _read_array(number: int, parameter: Parameter, kind: SqlType, loaders: Loaders) -> Elements | Null:
    if parameter.data is None:
        return Null(kind)
    try:
        cut = _cut_binary(parameter.data, kind) if parameter.format else _cut_text(parameter.data, loaders)
    except ValueError as error:
        detail = "Its elements must be in one dimension."
        raise InvalidParameter(f"parameter ${number} is not a valid {kind.pg_name}[]", detail=detail) from error
    elements = (Parameter(oid=kind.oid, format=parameter.format, data=data) for data in cut)
    return Elements(tuple(_read(number, element, kind, loaders) for element in elements))


def _cut_text(data: bytes, loaders: Loaders) -> list[bytes | None]:
    """The elements' texts. Raises ValueError."""
    try:
        texts = loaders.get_loader(SqlType.TEXT.array_oid, Format.TEXT).load(data)
    except Exception as error:  # the loader's errors have no common class
        raise ValueError("not an array") from error
    if not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError("more than one dimension")
    return [None if text is None else text.encode() for text in texts]


def _cut_binary(data: bytes, kind: SqlType) -> list[bytes | None]:
    """The elements' bytes: a header, then each with its length, -1 for NULL. Raises ValueError."""
    reader = BytesIO(data)

    def whole() -> int:
        return int.from_bytes(_exactly(reader, 4), "big", signed=True)

    dimensions, _, oid = whole(), whole(), whole()
    if dimensions not in (0, 1) or oid != kind.oid:
        raise ValueError("not such an array")
    size, _ = (whole(), whole()) if dimensions else (0, 1)
    if size * 4 > len(data):
        raise ValueError("shorter than it says")
    lengths = (whole() for _ in range(size))
    found = [None if length == -1 else _exactly(reader, length) for length in lengths]
    if reader.read(1):
        raise ValueError("longer than it says")
    return found


def _exactly(reader: BytesIO, count: int) -> bytes:
    data = reader.read(count) if count >= 0 else b""
    if len(data) != count:
        raise ValueError("shorter than it says")
    return data


def _read(number: int, parameter: Parameter, kind: SqlType, loaders: Loaders) -> Literal | Null:
    if parameter.data is None:
        return Null(kind)
    if parameter.format and not _has_right_size(kind, parameter.data):
        raise InvalidParameter(f"parameter ${number} is not a valid {kind.pg_name}")
    try:
        value = loaders.get_loader(parameter.oid, Format(parameter.format)).load(parameter.data)
    except Exception as error:  # the loaders' errors have no common class
        raise InvalidParameter(f"parameter ${number} is not a valid {kind.pg_name}") from error
    if isinstance(value, UUID):
        value = str(value)
    if kind is SqlType.BPCHAR and isinstance(value, str):
        value = value.rstrip(" ")
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        raise InvalidParameter(f"parameter ${number} must be finite to be used with private rows")
    if not isinstance(value, (bool, int, float, Decimal, str, date, datetime)):
        raise InvalidParameter(f"parameter ${number} cannot be used with private rows")
    return Literal(value, kind)


def _has_right_size(kind: SqlType, data: bytes) -> bool:
    """Whether a binary value has the bytes that its type needs: the loaders read them without looking."""
    if kind is SqlType.NUMERIC:
        return len(data) >= 8 and len(data) == 8 + 2 * int.from_bytes(data[:2], "big")
    size: int = kind.value.size
    return size < 0 or len(data) == size
