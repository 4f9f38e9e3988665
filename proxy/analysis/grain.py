"""How finely does an expression read a time: by days, hours, minutes?

Claim: the expression has one value for all times between two of the moments, so it has no values but those at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from proxy.policy.model import Domain
from proxy.sql.algebra.nodes import Call, ColumnRef, Literal, Null, Scalar, Span, children
from proxy.sql.functions.domains.intervals import time_range
from proxy.sql.functions.domains.times import next_step, truncate_time

UNITS = ("minute", "hour", "day", "month", "year")  # each starts where those before it do
_COARSER = {"quarter": "month", "decade": "year", "century": "year", "millennium": "year"}
#: By which unit a time is read for a field of it.
FIELDS = {"hour": "hour", "minute": "minute", "month": "month", "quarter": "month", "year": "year", "decade": "year",
           "century": "year", "millennium": "year",
           **dict.fromkeys(("day", "dow", "isodow", "doy", "week", "isoyear"), "day")}  # fmt: skip
_SAME = ("cast time to timestamp", "cast time to timestamptz")
_FINEST = ""


def moments(scalars: Sequence[Scalar], column: ColumnRef, domain: Domain, most: int) -> tuple[datetime, ...] | None:
    """The starts of all minutes, hours, days, months or years of the column's domain, if it is read by them."""
    ends, unit = time_range(domain), _finest([u for s in scalars if (u := grain(s, column)) is not None])
    if ends is None or unit not in UNITS:
        return None
    found = [truncate_time(unit, ends[0])]
    last = truncate_time(unit, ends[1])
    while found[-1] < last and len(found) <= most:
        found.append(next_step(unit, found[-1]))
    return tuple(found) if len(found) <= most else None


def grain(scalar: Scalar, column: ColumnRef) -> str | None:
    """The finest unit by which the column is read; none where it is not read, "" where it is read as it is."""
    match scalar:
        case ColumnRef():
            return _FINEST
        case Call(function, (inner,)) if _is_column(inner, column):
            name, _, word = function.partition(" ")
            if name == "date_trunc":
                return _finest([_COARSER.get(word, "day" if word == "week" else word)])
            if name == "extract":
                return FIELDS.get(word, _FINEST)
            return {"cast time to date": "day", "is null": None}.get(function, _FINEST)
        case Literal() | Null() | Span():
            return None
        case _:
            return _finest([unit for child in children(scalar) if (unit := grain(child, column)) is not None])


def _is_column(scalar: Scalar, column: ColumnRef) -> bool:
    match scalar:
        case Call(function, (inner,)) if function in _SAME:
            return _is_column(inner, column)
        case _:
            return scalar == column


def _finest(units: list[str]) -> str | None:
    if not units:
        return None
    return _FINEST if not all(u in UNITS for u in units) else min(units, key=UNITS.index)
