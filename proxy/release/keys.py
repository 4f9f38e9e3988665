"""How are the keys and integers of an engine's rows read, told apart, ordered and stored?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal

from proxy.analysis.keys import NULL_KEY, KeyValue, NullKey, key_identity
from proxy.errors import LedgerFailed


def read_integer(value: object) -> int:
    """An exact count or moment; SQL's sum of nothing is 0."""
    if value is None:
        return 0
    if isinstance(value, (int, Decimal)):
        return int(value)
    raise TypeError("a moment from the engine is not an integer")


def read_key(value: object) -> KeyValue:
    """A key as the engine hands it over."""
    if value is None:
        return NULL_KEY
    if isinstance(value, (bool, int, float, Decimal, str, date)):
        return value.replace(tzinfo=None) if isinstance(value, datetime) else value
    raise TypeError("a key from the engine has no known type")


def identity(key: Iterable[KeyValue]) -> tuple[object, ...]:
    """Equal for keys that SQL calls equal."""
    return tuple(key_identity(k) for k in key)


def order(value: KeyValue) -> tuple[int, object]:
    """Keys ascending as PostgreSQL sorts them under collation C: NaN after infinity, NULL last."""
    match value:
        case NullKey():
            return (2, 0)
        case str():
            return (0, value.encode("utf-8", "surrogatepass"))
        case float() | Decimal() if math.isnan(value):
            return (1, 0)
        case _:
            return (0, key_identity(value))


def encode(value: KeyValue) -> list[str | bool | int] | None:
    """A key for the store of releases."""
    match value:
        case NullKey():
            return None
        case bool():
            return ["b", value]
        case int():
            return ["i", value]
        case float():
            return ["f", value.hex()]
        case Decimal():
            return ["n", str(value)]
        case str():
            return ["s", value]
        case datetime():
            return ["t", value.isoformat()]
        case date():
            return ["d", value.isoformat()]


def decode(encoded: list[str | bool | int] | None) -> KeyValue:
    """What `encode` was given. Raises LedgerFailed."""
    if encoded is None:
        return NULL_KEY
    kind, value = encoded
    match kind:
        case "b":
            return bool(value)
        case "i":
            return int(value)
        case "f":
            return float.fromhex(str(value))
        case "n":
            return Decimal(str(value))
        case "t":
            return datetime.fromisoformat(str(value))
        case "d":
            return date.fromisoformat(str(value))
        case "s":
            return str(value)
        case _:
            raise LedgerFailed("a stored release cannot be read")
