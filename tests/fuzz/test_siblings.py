"""Random queries over rows with one parent and over alternatives, and planted mistakes about them."""

from __future__ import annotations

import pytest

from proxy.analysis import meeting, narrowing
from proxy.policy.model import Domain, UnitVia
from proxy.sql.algebra.nodes import Scalar, Scan, conjuncts
from proxy.sql.conditions import factored
from tests.fuzz.promises import CHUNK, Plant, always, find_mistake, keep_promises
from tests.fuzz.sibling_queries import make_sibling_query

WORLDS = range(70_000, 70_004)
MOST_WORLDS = 40


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_rows_of_one_parent_and_alternatives_keep_all_promises(first: int) -> None:
    keep_promises(range(first, first + CHUNK), make_sibling_query)


@pytest.mark.long
def test_more_rows_of_one_parent_and_alternatives() -> None:
    keep_promises(range(71_000, 71_300), make_sibling_query)


def children_of_any_parent_are_of_one_unit(patch: pytest.MonkeyPatch) -> None:
    original = meeting.has_same_unit

    def same(scan: Scan, other: Scan, pairs: meeting.Pairs) -> bool:
        children = all(isinstance(s.table.ownership, UnitVia) for s in (scan, other))
        return children or original(scan, other, pairs)

    patch.setattr(meeting, "has_same_unit", same)


def the_first_alternative_holds(patch: pytest.MonkeyPatch) -> None:
    def either(domain: Domain, scalar: Scalar, condition: Scalar) -> Domain:
        for part in conjuncts(factored.alternatives(condition)[0]):
            domain = narrowing.narrow(domain, scalar, part)
        return domain

    patch.setattr(narrowing, "_either", either)


PLANTS: tuple[tuple[Plant, str, str], ...] = (
    (children_of_any_parent_are_of_one_unit, "sensitivity",
     "select count(*) from d x where not exists (select 1 from d y where y.ref > x.ref)"),
    (the_first_alternative_holds, "meaning",
     "select code, count(*) from e where (code = 1 and id is not null) or code = 2 group by code"),
)  # fmt: skip


@pytest.mark.parametrize(("plant", "how", "query"), PLANTS, ids=[p.__name__ for p, _, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, how: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    find_mistake(range(WORLDS.start, WORLDS.start + MOST_WORLDS), how, always(query))
