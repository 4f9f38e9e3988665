"""What is an exact aggregate of the rows of one unit, by definition?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from proxy.policy.model import Bounded, Column
from proxy.sql.algebra.nodes import TRUE, Scalar, UnitValue, UnitValueKind
from tests.oracle.scalars import Evaluator, Reading, Row
from tests.oracle.values import Value, order


def unit_value(value: UnitValue, column: Column, rows: Sequence[Row], evaluator: Evaluator) -> Value:
    """The value over one unit's rows, clamped to what was inferred of it."""
    passing = [r for r in rows if value.where == TRUE or evaluator.passes(value.where, r)]
    if value.kind is UnitValueKind.COUNT_DISTINCT:
        return min(len({v for r in passing if (v := _present(value, r, evaluator)) is not None}), value.most)
    if value.kind is UnitValueKind.COUNT:
        counted = [r for r in passing if value.argument == TRUE or _present(value, r, evaluator) is not None]
        return min(len(counted), value.most)
    found = [v for r in passing if (v := _present(value, r, evaluator)) is not None]
    result = _aggregate(value, found)
    if result is None or not isinstance(column.domain, Bounded) or not value.type.is_number:
        return result
    lo, hi = column.domain.lo, column.domain.hi
    assert isinstance(result, (int, float))
    assert isinstance(lo, (int, float))
    assert isinstance(hi, (int, float))
    return min(max(result, lo), hi)


_NAN = math.nan  # one object, which is equal to itself in groups


def inner_key(value: Value, key: Scalar) -> Value:
    """A key of a unit's own rows: one zero and one NaN."""
    if isinstance(value, float) and key.type.is_number:
        return _NAN if math.isnan(value) else value + 0.0
    return value


def _present(value: UnitValue, row: Row, evaluator: Evaluator) -> Value:
    """What a row adds; None where it has nothing, a fraction that is not finite included."""
    found = evaluator.value(value.argument, row, Reading.MEASURE)
    return None if isinstance(found, float) and value.argument.type.is_number and not math.isfinite(found) else found


def _aggregate(value: UnitValue, found: Sequence[Value]) -> Value:
    if not found:
        return None
    if value.kind in (UnitValueKind.MIN, UnitValueKind.MAX):
        best = found[0]
        for other in found[1:]:
            if order(other, best) * (1 if value.kind is UnitValueKind.MAX else -1) > 0:
                best = other
        return best + 0.0 if isinstance(best, float) and value.type.is_number else best
    scale, rows = _on_grid(value, found)
    total = sum(rows)
    if value.kind is UnitValueKind.AVG:
        return float(total) / float(len(rows)) / scale
    if value.argument.type.is_integer:
        return max(min(total, 2**63 - 1), -(2**63))
    return float(total) / scale


def _on_grid(value: UnitValue, found: Sequence[Value]) -> tuple[float, list[int]]:
    """Rows in units of a power of ten, halves rounded away from zero, so that their order does not matter."""
    numbers = [v for v in found if isinstance(v, (int, float))]
    if value.argument.type.is_integer:
        return 1.0, [int(v) for v in numbers]
    lo, hi = value.ends
    largest = max(abs(lo), abs(hi))
    scale = 10.0 ** min(12, math.floor(math.log10(2.0**53 / max(largest, 1.0))))
    return scale, [_rounded(min(max(float(v), lo), hi) * scale) for v in numbers]


def _rounded(number: float) -> int:
    whole = math.trunc(number)
    return (
        whole + (math.copysign(1, number) > 0) - (math.copysign(1, number) < 0) if abs(number - whole) >= 0.5 else whole
    )
