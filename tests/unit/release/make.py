"""Plans with their blocks, and noise that is not random."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType

from proxy.plan.release_plan import PlanContext, ReleasePlan, plan_release
from proxy.sql.algebra.constants import Constants
from proxy.sql.query.block import BoundBlock, bind_block
from proxy.sql.query.split import split
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements
from tests.unit.plan.shop import NOW, TABLES, context


def planned(query: str, of: PlanContext | None = None) -> tuple[ReleasePlan, BoundBlock]:
    found = bound(query)
    return plan_release(found.block, of or context()), found


def planned_over(query: str, of: PlanContext) -> tuple[ReleasePlan, BoundBlock]:
    """The same over the context's own tables."""
    found = bound(query, Catalog(of.tables))
    return plan_release(found.block, of), found


def bound(query: str, catalog: Catalog = Catalog(TABLES)) -> BoundBlock:  # noqa: B008  # holds no state
    """The one block of a statement."""
    (block,) = split(split_statements(query)[0], catalog, frozenset()).blocks
    return bind_block(block, catalog, Constants(MappingProxyType({}), NOW), query)


@dataclass(slots=True)
class Counted:
    """Noise 1, 2, 3, ...: each value shows where it went."""

    taken: list[int] = field(default_factory=list)

    def take(self, n: int) -> tuple[int, ...]:
        values = tuple(range(len(self.taken) + 1, len(self.taken) + n + 1))
        self.taken += values
        return values


@dataclass(slots=True)
class Scripted:
    """These values first, zero after them."""

    first: list[int]

    def take(self, n: int) -> tuple[int, ...]:
        taken, self.first = self.first[:n], self.first[n:]
        return (*taken, *(0,) * (n - len(taken)))
