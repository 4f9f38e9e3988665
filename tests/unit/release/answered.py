"""What is answered about rows of heights and ages, computed without an engine."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from proxy.dp.mechanisms import Distribution
from proxy.plan.release_plan import PlanContext
from proxy.plan.vector.moments import HalfSum, Moment, ProductSum, QuarterSum, RowCount, ScaledSum, SquareSum
from proxy.release.finish import finish
from proxy.release.noisy import NoisyCell, NoisyCells
from proxy.sql.algebra.nodes import Call, ColumnRef, Literal, Scalar, conjuncts
from tests.unit.plan.shop import context
from tests.unit.release.make import planned

Row = Mapping[str, float]


def holds(condition: Scalar, row: Row) -> bool:
    match condition:
        case Call("not", (inner,)):
            return not holds(inner, row)
        case Call(">", (ColumnRef(name=name), Literal(value))):
            assert isinstance(value, (int, float))
            return row[name] > value
        case _:
            raise AssertionError(condition)


def z(scaled: ScaledSum, row: Row) -> float:
    assert isinstance(scaled.of, ColumnRef)
    return (row[scaled.of.name] - scaled.middle) / scaled.half


def row_value(moment: Moment, row: Row) -> float:
    match moment:
        case RowCount(absent=True):
            return 0.0  # every row has all measures
        case RowCount(where):
            return float(all(holds(c, row) for c in conjuncts(where)))
        case ScaledSum():
            return z(moment, row)
        case HalfSum(scaled, sign):
            return (1 + sign * z(scaled, row)) / 2
        case QuarterSum(scaled, 0):
            return (1 - z(scaled, row) ** 2) / 2
        case QuarterSum(scaled, sign):
            return (1 + sign * z(scaled, row)) ** 2 / 4
        case SquareSum(scaled):
            return 2 * z(scaled, row) ** 2 - 1
        case ProductSum(left, right):
            return z(left, row) * z(right, row)
        case _:
            raise AssertionError(moment)


class Asked:
    """Aggregates over some rows, of one release."""

    def __init__(self, aggregates: Sequence[str], rows: Sequence[Row], of: PlanContext | None = None) -> None:
        self._plan, self._bound = planned(f"select {', '.join(aggregates)} from users", of or context())
        self._exact = [math.fsum(row_value(m, row) for row in rows) for m in self._plan.vector.moments]

    def answer(self, noise: random.Random | None = None) -> list[str | None]:
        """The finished texts, with noise of the plan's law or none."""
        plan = self._plan
        noisy = [v + (self._draw(noise, sd) if noise else 0.0) for v, sd in zip(self._exact, plan.sds, strict=True)]
        grid = tuple(round(v / u) for v, u in zip(noisy, plan.units_per_grid, strict=True))
        cells = NoisyCells((NoisyCell((), grid),))
        release = finish(plan, cells, self._bound.columns, nonnegative=True, time_zone="UTC")
        return [c.values[0] for c in release.columns]

    def _draw(self, noise: random.Random, sd: float) -> float:
        if self._plan.distribution is Distribution.GAUSSIAN:
            return noise.gauss(0, sd)
        return noise.choice((-1, 1)) * noise.expovariate(math.sqrt(2) / sd)


def answers(aggregates: Sequence[str], rows: Sequence[Row], of: PlanContext | None = None) -> list[str | None]:
    return Asked(aggregates, rows, of).answer()
