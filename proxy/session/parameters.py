"""Which constants do a client's bound parameters stand for?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from psycopg.abc import Transformer as Loaders
from psycopg.adapt import Transformer
from psycopg.pq import Format

from proxy.errors import InvalidParameter
from proxy.session.contract import Parameter
from proxy.sql.algebra import Literal, Null
from proxy.sqltypes import BY_OID, SqlType


def read_parameters(parameters: tuple[Parameter, ...]) -> Mapping[int, Literal | Null]:
    """Parameters by number, from 1. Types outside the algebra are left out: naming one there is refused."""
    loaders = Transformer()
    found: dict[int, Literal | Null] = {}
    for number, parameter in enumerate(parameters, start=1):
        kind = BY_OID.get(parameter.oid)
        if kind is not None and kind is not SqlType.INTERVAL:
            found[number] = _read(number, parameter, kind, loaders)
    return found


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
