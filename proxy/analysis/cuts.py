"""At which values must an expression be looked at that only compares a part of it with constants?

Claim: to every value of the part one of these stands in the same order to all of the constants, equal ones included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from proxy.policy.model import Domain, Listed, Unknown
from proxy.sql.algebra.nodes import Scalar
from proxy.sql.conditions.whole import is_whole
from proxy.sql.functions.domains.intervals import as_datetime, number_ends, time_range
from proxy.sqltypes import SqlType, Value

_MOST_LISTED = 50
_MICROSECOND, _DAY = timedelta(microseconds=1), timedelta(days=1)
_FLOATS = (SqlType.FLOAT4, SqlType.FLOAT8)


def values_between(part: Scalar, domain: Domain, constants: Sequence[Value], *, ordered: bool) -> tuple[Value, ...]:
    """None where they are not known. ordered: whether a constant is asked to be larger or smaller."""
    match domain:
        case Listed(values) if 0 < len(values) <= _MOST_LISTED:
            return values
        case _ if part.type is SqlType.BOOL:
            return (False, True)
        case _ if part.type.is_number:
            return _numbers(domain, constants, whole=is_whole(part), kind=part.type)
        case _ if part.type.is_time:
            return _times(domain, constants, step=_DAY if part.type is SqlType.DATE else _MICROSECOND)
        case Unknown() if part.type.is_text and not ordered:
            return _texts(constants)
        case _:
            return ()


def _texts(constants: Sequence[Value]) -> tuple[Value, ...]:
    """The constants, and another text."""
    texts = tuple(c for c in constants if isinstance(c, str))
    return (*dict.fromkeys(texts), "".join((*texts, "."))) if len(texts) == len(constants) else ()


# --- numbers ------------------------------------------------------------------------------------------------------


def _numbers(domain: Domain, constants: Sequence[Value], *, whole: bool, kind: SqlType) -> tuple[Value, ...]:
    """A number that no double holds, or that is none, is NULL where a numeric is read: it has to have bounds."""
    ends, points = number_ends(domain) or (-math.inf, math.inf), list(map(_decimal, constants))
    is_known = all(map(math.isfinite, ends)) or kind.is_integer or kind in _FLOATS
    if not is_known or not all(p.is_finite() for p in points):
        return ()
    low, high = map(_decimal, ends)
    marks = sorted({low, high, *(p for p in points if low < p < high)})
    inner = [m for m in marks if m.is_finite()]
    found = [*(m for m in inner if not whole or m == m.to_integral_value())]
    found += [middle for pair in pairwise(marks) for middle in _middle(*pair, whole=whole)]
    return tuple(int(v) if v == v.to_integral_value() else v for v in found)


def _decimal(constant: Value) -> Decimal:
    match constant:
        case float():
            return Decimal(repr(constant))
        case int() | Decimal():
            return Decimal(constant)
        case _:
            return Decimal("NaN")


def _middle(low: Decimal, high: Decimal, *, whole: bool) -> Iterable[Decimal]:
    """A number between two others, either of which may be infinite; none if there is none."""
    if not low.is_finite() and not high.is_finite():
        return (Decimal(0),)
    if not low.is_finite():
        return (high.to_integral_value() - 2,)
    if not high.is_finite():
        return (low.to_integral_value() + 2,)
    if whole:
        above = Decimal(math.floor(low) + 1)
        return (above,) if above < high else ()
    return ((low + high) / 2,) if low < high else ()


# --- times --------------------------------------------------------------------------------------------------------


def _times(domain: Domain, constants: Sequence[Value], *, step: timedelta) -> tuple[Value, ...]:
    ends, points = time_range(domain), [as_datetime(c) for c in constants if isinstance(c, date)]
    if ends is None or len(points) < len(constants):
        return ()
    marks = sorted({*ends, *(p for p in points if ends[0] < p < ends[1])})
    found = [m for m in marks if step is _MICROSECOND or m == _midnight(m)]
    for low, high in pairwise(marks):
        above = _midnight(low) + step if step is _DAY else low + step
        found += [above] if above < high else []
    return tuple(found)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
