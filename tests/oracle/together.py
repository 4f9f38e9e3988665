"""What are the exact integers of sets that bound a unit together, by definition?

In the order in which docs/claims/grouping-sets.md defines them: the finest cells with r, their sums in each set, one
factor for each unit, and the final grid of each set.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from proxy.analysis.analyse import Analysed
from proxy.dp.mechanisms import Distribution
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.moments import RowCount, UnitCount, UnitTotal
from tests.oracle.bounded import NEARLY_ALL, NORM_UNITS, ROW_UNITS, Cell, Exact, Key, Oracle
from tests.oracle.rows import Tables, Unit

Sums = dict[Key, tuple[int, ...]]  # of one unit, by group


class TogetherOracle:
    """Computes some sets. places: of each set's keys among the finest ones."""

    def __init__(
        self,
        plans: Sequence[ReleasePlan],
        places: Sequence[tuple[int, ...]],
        finest: Analysed,
        tables: Tables,
        zone: str,
    ) -> None:
        self._plans = plans
        self._places = places
        self._finest = finest
        self._moments = plans[0].vector.moments
        self._rows = Oracle(replace(plans[0], analysed=finest), tables, zone, "")

    def exact(self) -> list[Exact]:
        """The vector of each set."""
        found: list[dict[Key, list[int]]] = [defaultdict(lambda: [0] * len(self._moments)) for _ in self._plans]
        cut = every = 0
        for (_, held), sets in zip(self._cells(), self._units(), strict=True):
            factor = min(self._factor(plan, sums) for plan, sums in zip(self._plans, sets, strict=True))
            cut += factor < NEARLY_ALL or any(map(self._rows.is_short, held.values()))
            every += 1
            for plan, sums, cells in zip(self._plans, sets, found, strict=True):
                for key, values in sums.items():
                    for index, value in enumerate(self._weighted(plan, values, plan.scale)):
                        cells[key][index] += math.trunc(value * factor)
        each = [math.floor(plan.cut_weight * plan.scale) for plan in self._plans]
        return [
            Exact(cells={k: tuple(v) for k, v in cells.items()}, parts={}, units=(cut * e, (every - cut) * e))
            for cells, e in zip(found, each, strict=True)
        ]

    def changes_nothing(self) -> bool:
        """Whether no unit is over any of its bounds."""
        if any(isinstance(m, UnitTotal) for m in self._moments):
            return False  # a clipped total is not told from one that is whole
        limit = self._finest.bounds.rows_per_group
        return all(cell.used <= limit for _, cells in self._cells() for cell in cells.values()) and all(
            self._factor(plan, sums) == 1.0
            for sets in self._units()
            for plan, sums in zip(self._plans, sets, strict=True)
        )

    def _cells(self) -> Iterator[tuple[Unit, dict[Key, Cell]]]:
        for unit, rows in self._rows.rows_by_unit.items():
            yield unit, self._rows.cells_of(rows)

    def _units(self) -> Iterator[list[Sums]]:
        """The sums of each unit, for each set."""
        for _, cells in self._cells():
            fine = {key: self._fine(cell) for key, cell in cells.items()}
            yield [self._summed(fine, places) for places in self._places]

    def _fine(self, cell: Cell) -> tuple[int, ...]:
        limit = self._finest.bounds.rows_per_group
        r = limit / cell.used if cell.used > limit else 1.0
        found = []
        for moment, value in zip(self._moments, cell.sums, strict=True):
            if isinstance(moment, (UnitCount, UnitTotal)):
                found.append(value)
            else:
                found.append(math.trunc(float(value) * (float(ROW_UNITS) if isinstance(moment, RowCount) else 1.0) * r))
        return tuple(found)

    def _summed(self, fine: Sums, places: tuple[int, ...]) -> Sums:
        found: dict[Key, list[tuple[int, ...]]] = defaultdict(list)
        for key, values in fine.items():
            found[tuple(key[p] for p in places)].append(values)
        return {
            key: tuple(
                max(of) if isinstance(m, UnitCount) else sum(of)
                for m, of in zip(self._moments, zip(*cells, strict=True), strict=True)
            )
            for key, cells in found.items()
        }

    def _weighted(self, plan: ReleasePlan, values: tuple[int, ...], scale: float) -> list[float]:
        return [
            float(value) * (weight * scale / (1 if isinstance(moment, UnitCount) else ROW_UNITS))
            for moment, weight, value in zip(self._moments, plan.allocation.weights, values, strict=True)
        ]

    def _factor(self, plan: ReleasePlan, sums: Sums) -> float:
        """What keeps a unit's vector in one set within its bound, by a norm that is rounded up."""
        is_gaussian, allocation = plan.distribution is Distribution.GAUSSIAN, plan.allocation
        whole = allocation.cell_norm**2 if is_gaussian else allocation.cell_norm
        ratio = allocation.unit_norm / allocation.cell_norm
        limit = math.floor(NORM_UNITS * (ratio * ratio if is_gaussian else ratio))
        total = 0
        for values in sums.values():
            weighted = self._weighted(plan, values, 1.0)
            total += math.ceil(sum(v * v if is_gaussian else abs(v) for v in weighted) * (NORM_UNITS / whole))
        if total <= limit:
            return 1.0
        return math.sqrt(float(limit) / float(total)) if is_gaussian else float(limit) / float(total)
