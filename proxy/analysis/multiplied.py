"""Which private tables does a join bring together so that rows of a unit meet other rows of it, and are repeated?

What is beyond the policy's bounds is cut off, so that an answer over such rows is far too small. It is told from the
query, the policy and which columns are unique; it decides about words alone.
"""

from __future__ import annotations

from proxy.analysis.meeting import Pairs, UniqueKeys, links
from proxy.policy.model import UnitColumns
from proxy.sql.algebra.nodes import Block, JoinKind, Scan, Stored


def multiplied(block: Block, unique: UniqueKeys) -> tuple[Scan, ...]:
    """Two private scans, or more, of which each may have several rows for a row of another; else none."""
    left = [j for j in block.joins if j.kind is JoinKind.LEFT]
    pairs = (*links(block.where), *(pair for j in left for pair in links(j.on)))
    scans = [s for s in (*block.scans, *(s for j in left for s in j.scans)) if not s.table.is_public]
    several = [s for s in scans if not s.table.unit_unique]
    found_by: dict[int, int] = {}
    for scan in several:
        for other in several:
            is_new = scan.number not in found_by and not _leads_to(other.number, scan.number, found_by)
            if scan is not other and is_new and _is_found(scan, other, pairs, unique):
                found_by[scan.number] = other.number
    free = tuple(s for s in several if s.number not in found_by)
    return free if len(free) > 1 else ()


def _is_found(scan: Scan, other: Scan, pairs: Pairs, unique: UniqueKeys) -> bool:
    """Whether a row of the other finds at most one of this scan: by a column that is unique, or by its whole key."""
    if not isinstance(scan.rows, Stored):
        return _has_equal_columns(scan, other, pairs)
    return any(
        ours.scan == scan.number and theirs.scan == other.number and (scan.table.name, ours.name) in unique.columns
        for pair in pairs
        for ours, theirs in (pair, pair[::-1])
    )


def _has_equal_columns(scan: Scan, other: Scan, pairs: Pairs) -> bool:
    """Whether rows of a sub-select are met by more than their unit, which may well be all that tells them apart."""
    owner = scan.table.ownership
    units = owner.columns if isinstance(owner, UnitColumns) else ()
    return any(
        ours.scan == scan.number and theirs.scan == other.number and ours.name not in units
        for pair in pairs
        for ours, theirs in (pair, pair[::-1])
    )


def _leads_to(start: int, end: int, found_by: dict[int, int]) -> bool:
    """Whether what finds a scan is in the end found by another one."""
    while start in found_by and start != end:
        start = found_by[start]
    return start == end
