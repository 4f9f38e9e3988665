"""Numbers that public rows ask for, each about itself: as an SQL engine has them; mistakes are found."""

from __future__ import annotations

import pytest

from proxy.sql.query.public_rows import aggregate_below_series as spines
from proxy.sql.query.public_rows import lookups, series
from tests.fuzz.constant_queries import Tables
from tests.fuzz.lifted_queries import make_lifted_query
from tests.fuzz.promises import Plant, compare_answers

FIRST, WORLDS, QUERIES = 97_000, 3, 40
MOST_WORLDS = 12


def wrong(seeds: range) -> tuple[list[str], int]:
    return compare_answers("lifted", seeds, Tables.of, make_lifted_query, QUERIES)


def test_what_is_lifted_means_the_same() -> None:
    found, answered = wrong(range(FIRST, FIRST + WORLDS))
    assert not found, "\n".join(found)
    assert answered > WORLDS * QUERIES / 5, "too few statements are answered"


@pytest.mark.long
def test_more_of_what_is_lifted_means_the_same() -> None:
    found, _ = wrong(range(FIRST + 100, FIRST + 300))
    assert not found, "\n".join(found)


def repeated_constants_meet_their_rows_once(patch: pytest.MonkeyPatch) -> None:
    original = lookups.GroupedSelect.value
    patch.setattr(lookups.GroupedSelect, "value", lambda self, node, _="": original(self, node))


def rows_that_are_missing_are_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spines, "_is_nothing_without", lambda *_: True)


def groups_hold_several_constants(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spines, "_is_one_group", lambda *_: True)


def series_lack_their_first_value(patch: pytest.MonkeyPatch) -> None:
    original = series.Series.within
    patch.setattr(series.Series, "within", lambda self, m: [c.replace(">=", ">") for c in original(self, m)])


def nothing_is_counted_as_null(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lookups, "_COUNTS", ())


@pytest.mark.parametrize("plant", [
    repeated_constants_meet_their_rows_once, rows_that_are_missing_are_counted, groups_hold_several_constants,
    series_lack_their_first_value, nothing_is_counted_as_null,
])  # fmt: skip
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(wrong(range(seed, seed + 1))[0] for seed in range(FIRST, FIRST + MOST_WORLDS))
