"""What does a piece of a FROM clause stand for: scans, joins, conditions and named columns?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from proxy.sql.algebra.nodes import Join, Scalar, Scan


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A bound relation, as a block has it: all combinations of scans, met by the joins, then filtered.

    columns: by name, in the order of `*`.
    kept: rows of public tables that are in the relation as well, alone, where no private row meets them.
    """

    scans: tuple[Scan, ...]
    joins: tuple[Join, ...] = ()
    where: tuple[Scalar, ...] = ()
    columns: tuple[tuple[str, Scalar], ...]
    kept: KeptRows | None = None

    @property
    def has_units(self) -> bool:
        """Whether each row surely belongs to somebody."""
        return any(not s.table.is_public for s in self.scans)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """All rows of public tables of which some are kept. is_full: whether private rows are kept without them, too."""

    rows: Rows
    is_full: bool = False

    @property
    def scans(self) -> frozenset[int]:
        """The numbers of scans whose columns are there in a row that is kept."""
        return frozenset(s.number for s in self.rows.scans)


def unused_column(name: str, taken: Collection[str]) -> str:
    """The name, or the first of name 2, name 3, ... that no other column has."""
    found = name or "column"
    return next(n for n in (found, *(f"{found} {i}" for i in range(2, len(taken) + 3))) if n not in taken)


@dataclass(frozen=True, slots=True)
class Named:
    """A relation under its alias in a FROM clause."""

    alias: str
    rows: Rows


@dataclass(frozen=True, slots=True)
class Joined:
    """Relations of a FROM clause, and their rows together. The columns of `rows` are those without a prefix."""

    relations: tuple[Named, ...]
    rows: Rows
