"""Which bounds of a unit's contribution were learned from noisy answers, and for which rows do they hold?

They are public by then, and decide about accuracy alone: bounding is right for any bound. See
docs/claims/profile.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.analysis.owned import Owned
from proxy.policy.model import UnitVia
from proxy.sql.algebra.nodes import ColumnRef, Stored


@dataclass(frozen=True, slots=True)
class Learned:
    """What one query may use.

    rows: of a unit, by table, with words for where that comes from. totals: size of a unit's sum, by table and column.
    """

    rows: tuple[tuple[str, int, str], ...] = ()
    totals: tuple[tuple[str, str, float], ...] = ()

    def rows_of(self, owned: Owned) -> tuple[int, str] | None:
        """Rows that most units have at most, of the rows of a block; None where nothing is known of them."""
        if not self.rows or not is_of_one_table(owned):
            return None
        return {table: (rows, words) for table, rows, words in self.rows}.get(owned.bounds_from.name)

    def total_of(self, owned: Owned, column: ColumnRef) -> float | None:
        """The size that the sums of most units have at most, of a column of the table that bounds a block."""
        table = owned.block.scan(column.scan).table.name
        if table != owned.bounds_from.name or not is_of_one_table(owned):
            return None
        return {(t, c): most for t, c, most in self.totals}.get((table, column.name))


NOTHING_LEARNED = Learned()


def is_of_one_table(owned: Owned) -> bool:
    """Whether the rows are those of one stored table, some of them, each once.

    Public tables beside it repeat none of them. Private ones have one row for each unit, or are the parents on its
    path, joined by their unique keys.
    """
    scans = owned.block.every_scan
    if owned.fan_out or not all(isinstance(s.rows, Stored) for s in scans):
        return False
    tables = {s.table.name: s.table for s in scans if not s.table.is_public}
    if sum(not s.table.is_public for s in scans) != len(tables):
        return False
    of = owned.bounds_from
    known = {of.name, *(t.name for t in tables.values() if t.unit_unique)}
    while isinstance(of.ownership, UnitVia) and of.ownership.parent in tables:
        of = tables[of.ownership.parent]
        known.add(of.name)
    return tables.keys() <= known
