"""Random queries over rows of FULL JOIN, and planted mistakes about them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from proxy.sql.algebra.nodes import JoinKind
from proxy.sql.relations import full_joins
from tests.fuzz.full_queries import make_full_query
from tests.fuzz.promises import CHUNK, Plant, always, find_mistake, keep_promises
from tests.fuzz.twins import TwinExaminer

WORLDS = range(110_000, 110_004)
MOST_WORLDS = 20


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_rows_of_full_joins_keep_all_promises(first: int) -> None:
    keep_promises(range(first, first + CHUNK), make_full_query)


def test_units_of_other_types_and_collations_are_met_alike() -> None:
    keep_promises(range(112_000, 112_004), make_full_query, of=TwinExaminer, part=5)


@pytest.mark.long
def test_more_rows_of_full_joins() -> None:
    keep_promises(range(111_000, 111_300), make_full_query)
    keep_promises(range(112_000, 112_300), make_full_query, of=TwinExaminer, part=5)


def a_unit_has_rows_on_one_side_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(full_joins, "_is_unit_alone", lambda *_: True)


def rows_that_were_met_come_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(full_joins, "JoinKind", SimpleNamespace(ANTI=JoinKind.SEMI))


PLANTS: tuple[tuple[Plant, str, str], ...] = (
    (a_unit_has_rows_on_one_side_only, "sensitivity",
     "select count(*) from p x full join p y on {same} and x.code < y.code"),
    (rows_that_were_met_come_again, "sensitivity",
     "select count(*), count(x.code) from p x full join p y on {same}"),
)  # fmt: skip


@pytest.mark.parametrize(("plant", "how", "query"), PLANTS, ids=[p.__name__ for p, _, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, how: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    find_mistake(range(WORLDS.start, WORLDS.start + MOST_WORLDS), how, always(query))
