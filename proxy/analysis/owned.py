"""Whose are the rows of a block, once that is known?"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.policy.model import Table
from proxy.sql.algebra.nodes import Block, ColumnRef, Scan


@dataclass(frozen=True, slots=True)
class EveryRow:
    """Each row is its own unit."""


@dataclass(frozen=True, slots=True)
class UnitOf:
    """The unit is the value of these columns, none of them NULL."""

    columns: tuple[ColumnRef, ...]


UnitIdentity = EveryRow | UnitOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """A block whose rows all have a unit.

    block: with the scans and conditions of completed paths added.
    bounds_from: the most detailed private table, whose contribution bounds apply.
    is_one_row_per_unit: no unit can own two rows of the join.
    constant_scans: scans whose every column is the same in all rows of a unit.
    enforced_constants: columns declared constant per unit, to be enforced in SQL.
    repeated: private scans whose rows meet several of another of them; see `multiplied`.
    fan_out: public scans of which several rows may meet one row of a unit.
    is_local: the rows are those of a local table, about which nothing is promised; each counts as a unit.
    """

    block: Block
    unit: UnitIdentity
    bounds_from: Table
    is_one_row_per_unit: bool
    constant_scans: frozenset[int]
    enforced_constants: frozenset[ColumnRef]
    repeated: tuple[Scan, ...] = ()
    fan_out: tuple[Scan, ...] = ()
    is_local: bool = False
