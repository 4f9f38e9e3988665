"""How are the rows of a unit bounded alike in several grouping sets, so that their totals are the sums of their parts?

A unit's rows are first gathered in the finest groups, by the keys of all these sets; there r applies. Every set adds up
these cells, and all of them are multiplied with one factor: the least that any set needs to keep its bound. So each set
is bounded as a release of its own, and every unit counts alike in all. See docs/claims/grouping-sets.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proxy.analysis.analyse import Analysed
from proxy.analysis.keys import Key, PublicKey
from proxy.plan.parts.cut_units import counted_by_units, pair_rows
from proxy.plan.sql.moment_sql import NORM_UNITS, MomentTerms, VectorStatement
from proxy.plan.sql.statement import unit_cells
from proxy.plan.vector.moments import ROW_UNITS, Moment, RowCount, UnitCount, is_linear
from proxy.sqltypes import SqlType


@dataclass(frozen=True, slots=True)
class Summed:
    """A set that is bounded together with others. places: of its keys among the finest ones."""

    places: tuple[int, ...]
    statement: VectorStatement


def bounded_by_parts(analysed: Analysed, places: tuple[int, ...], finest: Analysed) -> Analysed:
    """A set with bounds within which a unit has all rows that its bounds allow in the finest groups."""
    parts = finest.bounds
    split = math.prod(_values(k) for place, k in enumerate(finest.keys) if place not in places)
    most = min(parts.rows, parts.rows_per_group * min(parts.groups, split))
    source = parts.source if split == 1 else f"{parts.source}, of all parts of a group"
    return replace(analysed, bounds=replace(analysed.bounds, rows=parts.rows, rows_per_group=most, source=source))


def _values(key: Key) -> int:
    assert isinstance(key, PublicKey), "sets with private keys are bounded by themselves"
    return max(1, len(key.values))


def render_together(finest: VectorStatement, sets: Sequence[Summed]) -> list[str]:
    """The SQL of each set, with the result rows of `statement.render`. finest: groups by the keys of all."""
    writer = _Writer(finest, sets)
    return [writer.write(number) for number in range(len(sets))]


class _Writer:
    def __init__(self, finest: VectorStatement, sets: Sequence[Summed]) -> None:
        self._finest = finest
        self._terms = MomentTerms(finest)
        self._sets = sets
        self._dialect = finest.dialect
        self._units = ", ".join(self._terms.units)

    def write(self, number: int) -> str:
        """All sets are needed for the factor; this one is shown."""
        of = self._sets[number]
        chosen = ["0 AS is_part", *self._keys(of)]
        for index, moment in enumerate(self._finest.moments):
            value = f"{self._weighted(of, index, moment, of.statement.scale)} * coalesce(f, 1e0)"
            chosen.append(f"{self._dialect.wide_sum(self._dialect.whole(value))} AS m{index}")
        group = f"\nGROUP BY {', '.join(self._keys(of))}" if of.places else ""
        once = self._dialect.once
        ctes = [
            once("cell", f"\n{unit_cells(self._finest)}"),
            once("fine", self._fine()),
            *(once(f"set{n}", self._set(s)) for n, s in enumerate(self._sets)),
            f"above AS ({self._above()})",
        ]
        counted = ""
        if of.statement.cut_weight:
            ctes.append(counted_by_units(self._finest, self._terms, "cell", "above"))
            counted = pair_rows(of.statement, MomentTerms(of.statement))
        return (
            "WITH " + ",\n".join(ctes) + f"\nSELECT {', '.join(chosen)}\n"
            f"FROM set{number} LEFT JOIN above USING ({self._units}){group}{counted}"
        )

    def _keys(self, of: Summed) -> list[str]:
        return [self._terms.keys[place] for place in of.places]

    def _fine(self) -> str:
        """A unit's finest cells in whole units of 2^-30 of a row, after r."""
        chosen = [*self._terms.units, *self._terms.keys]
        for index, moment in enumerate(self._finest.moments):
            scaled = f"m{index}::{self._double} * {self._dialect.double(_scale(moment))} * r"
            chosen.append(f"{self._dialect.whole(scaled)} AS m{index}" if is_linear(moment) else f"m{index}")
        return f"SELECT {', '.join(chosen)} FROM (SELECT *, {self._terms.row_factor()} AS r FROM cell) AS scored"

    def _set(self, of: Summed) -> str:
        """A unit's cells of one set: sums of finest cells; a unit that is in one of these is in the group."""
        by = ", ".join([self._units, *self._keys(of)])
        sums = (
            f"{f'max(m{i})' if isinstance(m, UnitCount) else self._dialect.wide_sum(f'm{i}')} AS m{i}"
            for i, m in enumerate(self._finest.moments)
        )
        return f"SELECT {by}, {', '.join(sums)} FROM fine GROUP BY {by}"

    def _above(self) -> str:
        """Units that are above the bound of some set, with the least factor that one needs."""
        needed = []
        for number, of in enumerate(self._sets):
            terms = MomentTerms(of.statement)
            limit = terms.heavy_limit()
            total = self._dialect.wide_sum("q")
            ratio = self._dialect.ratio(self._dialect.double(float(limit)), total)
            factor = f"sqrt({ratio})" if terms.is_gaussian() else ratio
            norms = f"SELECT {self._units}, {self._norm(of, terms)} AS q FROM set{number}"
            above = f"GROUP BY {self._units} HAVING {total} > {limit}::{self._dialect.huge}"
            needed.append(f"SELECT {self._units}, {factor} AS f FROM ({norms}) AS norms {above}")
        every = "\n  UNION ALL ".join(needed)
        return f"SELECT {self._units}, min(f) AS f FROM (\n  {every}) AS needed\n  GROUP BY {self._units}"

    def _norm(self, of: Summed, terms: MomentTerms) -> str:
        """A cell's squared 2-norm (or 1-norm), rounded up, as in `Terms.norm`; a cell may be above W here."""
        parts = [self._weighted(of, i, m, 1.0) for i, m in enumerate(self._finest.moments)]
        unit = self._dialect.double(NORM_UNITS / terms.norm_unit())
        sizes = [f"({p}) * ({p})" if terms.is_gaussian() else f"abs({p})" for p in parts]
        return self._dialect.rounded_up(f"({' + '.join(sizes)}) * {unit}", self._dialect.huge)

    def _weighted(self, of: Summed, index: int, moment: Moment, scale: float) -> str:
        """A cell's moment as a double: its integer times weight and scale."""
        unit = 1 if isinstance(moment, UnitCount) else ROW_UNITS
        factor = self._dialect.double(of.statement.allocation.weights[index] * scale / unit)
        return f"m{index}::{self._double} * {factor}"

    @property
    def _double(self) -> str:
        return self._dialect.types[SqlType.FLOAT8]


def _scale(moment: Moment) -> float:
    """What a finest cell's sum is multiplied with to be in units of 2^-30: a count of rows is in whole rows."""
    return float(ROW_UNITS) if isinstance(moment, RowCount) else 1.0
