"""What are the cells of an answer that is computed from another question's release?

A function of noisy numbers and the plan alone: see docs/claims/reuse.md.
"""

from __future__ import annotations

from proxy.plan.derive import Derived
from proxy.release.keys import identity
from proxy.release.noisy import NoisyCell, NoisyCells, in_order


def derived_cells(derived: Derived, cells: NoisyCells) -> NoisyCells:
    """Each key with the sums of the cells that make it up."""
    moments = {identity(cell.key): cell.moments for cell in cells.cells}
    return in_order(
        NoisyCell(key, tuple(map(sum, zip(*(moments[identity(part)] for part in parts), strict=True))))
        for key, parts in derived.groups
    )
