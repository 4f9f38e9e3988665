"""How many rows can a unit have, whatever the data hold, since the statement itself leaves no more?

A bound like all others: were a unit to have more rows, they would count less, and nothing of privacy rests on it.
"""

from __future__ import annotations

from proxy.analysis.domains import Domains
from proxy.analysis.owned import Owned
from proxy.policy.model import Bounded, Listed
from proxy.sql.algebra.nodes import ColumnRef, Place, Placed, Scan, UnionRows, Windowed, WindowValue


def implied_rows(owned: Owned, domains: Domains) -> int:
    """The most rows of a unit: the first few of each, or a row for each SELECT of a UNION ALL; 0 where more may be."""
    scans = (*owned.block.scans, *(s for j in owned.block.joins for s in j.scans))
    several = [s for s in scans if not s.table.is_public and not s.table.unit_unique]
    if owned.fan_out or len(several) != 1:
        return 0
    match several[0].rows:
        case UnionRows(branches=branches, is_one_row_in_branch=True):
            return len(branches)
        case Windowed(windows=windows):
            return min(filter(None, (_places(several[0], w, domains) for w in windows)), default=0)
        case _:
            return 0


def _places(scan: Scan, window: WindowValue, domains: Domains) -> int:
    """How many row numbers of a unit the conditions leave; 0 for all. The last one may be that of many rows."""
    if window.of != Placed(Place.ROW_NUMBER) or window.partition:
        return 0
    match domains.of(ColumnRef(scan.number, window.name, window.type)):
        case Bounded(int() as lo, int() as hi) if hi < window.most:
            return max(1, hi - lo + 1)
        case Listed(values) if all(isinstance(n, int) and n < window.most for n in values):
            return max(1, len(values))
        case _:
            return 0
