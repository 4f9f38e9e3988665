"""When do a unit's rows count as they are, without the cells of its groups?

Such rows are added up by key alone; the units whose cells are needed are told by how many rows they have. See
docs/claims/row-sums.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from proxy.analysis.keys import PrivateKey
from proxy.analysis.units import UnitOf
from proxy.plan.parts.cut_units import COUNTED
from proxy.plan.sql.moment_sql import NORM_UNITS, MomentTerms, VectorStatement
from proxy.plan.sql.selectivity import most_values
from proxy.plan.vector.allocation import is_within_by_cells
from proxy.plan.vector.moments import is_further_part, is_linear

_NORM_ROUNDING = 1.0 / NORM_UNITS  # of W (of W^2): by less than this a cell's norm is rounded up
_CERTAIN = 1.0 - 2.0**-40  # more than what doubles lose
_BITS = 62  # of the whole number in which a unit's rows are counted by key
_FEWEST = 2
_RELATIONS = ("size", "large", "cell", "scored", "heavy", COUNTED)  # that stand before all rows are read


def most_rows(statement: VectorStatement) -> int:
    """N: the rows of a unit with no more are not multiplied by a factor f below 1, whatever they hold; 0: no such form.

    Claim: n <= N rows weigh at most n rho <= B together, rho being the length of a row with every moment at its end;
    also where each row is rounded by itself, and where the norm of each cell is rounded up.
    """
    analysed, allocation = statement.analysed, statement.allocation
    has_units = isinstance(analysed.owned.unit, UnitOf) and not analysed.owned.is_one_row_per_unit
    if not has_units or analysed.has_constant_keys or any(isinstance(k, PrivateKey) for k in analysed.keys):
        return 0
    if (
        _hides_a_table(statement)
        or not statement.dialect.abilities.counts_in_words
        or allocation.is_chosen
        or not all(map(is_linear, statement.moments))
    ):
        return 0
    cells = most_values(analysed.keys, analysed.domains)
    if cells and is_within_by_cells(statement.moments, allocation, analysed.bounds, cells, statement.distribution):
        return 0  # no norms are needed then
    sizes = [w for m, w in zip(statement.moments, allocation.weights, strict=True) if not is_further_part(m)]
    row = math.hypot(*sizes) if MomentTerms(statement).is_gaussian() else math.fsum(sizes)
    found = math.floor(allocation.unit_norm / row)
    while found > 0 and not _is_within(statement, found, row):
        found -= 1
    return found if found >= _FEWEST else 0


def _hides_a_table(statement: VectorStatement) -> bool:
    """Whether a table has the name of a relation of this form, which would be read in its place."""
    source = MomentTerms(statement).source
    read = f"{source.tables()} {source.where()}".lower()
    return any(f"{statement.dialect.quote(name)} as s" in read for name in _RELATIONS)


def _is_within(statement: VectorStatement, rows: int, row: float) -> bool:
    of = statement.allocation
    if MomentTerms(statement).is_gaussian():
        whole = (rows * row) ** 2 + (rows + 1) * _NORM_ROUNDING * of.cell_norm**2
        return whole <= of.unit_norm**2 * _CERTAIN
    return rows * row + (rows + 1) * _NORM_ROUNDING * of.cell_norm <= of.unit_norm * _CERTAIN


class UnitSizes:
    """How many rows a unit has, in all and, at least, in its largest group. most: N."""

    def __init__(self, statement: VectorStatement, terms: MomentTerms, most: int) -> None:
        self._terms, self._most = terms, most
        self._limit = statement.analysed.bounds.rows_per_group
        self._width = most.bit_length()
        self._slots = _BITS // self._width

    def columns(self, listed: Sequence[str]) -> list[str]:
        """Aggregates over a unit's rows. listed: keys that are NULL for rows in no group.

        A word holds a counter for each slot, which a hash of the key chooses: a group has no more rows than its slot.
        With more than N rows counters may run over; the sum, of 128 bits, holds them, and the unit is told by its rows.
        """
        there = " AND ".join(f"{name} IS NOT NULL" for name in listed)
        found = [f"count(*) FILTER (WHERE {there}) AS n" if len(listed) > 1 else f"count({(*listed, '*')[0]}) AS n"]
        if self._limit < self._most:
            word = self._terms.dialect.counters(self._terms.keys, self._slots, self._width, there)
            found.append(f"{word} AS slots")
        return found

    def is_large(self) -> str:
        """Whether a unit has more than N rows, or may have more than C in a group."""
        tests = [f"n > {self._most}"]
        if self._limit < self._most:
            mask = 2**self._width - 1
            tests += [f"((slots >> {i * self._width}) & {mask}) > {self._limit}" for i in range(self._slots)]
        return " OR ".join(tests)
