"""Do the checks find each planted mistake? And does the search come to it?"""

from __future__ import annotations

from contextlib import suppress

import pytest

from proxy.errors import HushError
from tests.fuzz.checks import Broken
from tests.fuzz.examine import run_worlds
from tests.fuzz.keep import FIRST, planted
from tests.fuzz.kept import FOLDER, read
from tests.fuzz.mutants import PLANTS, Plant
from tests.fuzz.shrink import examine

NAMES = [p.__name__ for p in PLANTS]
MOST_WORLDS = 600


@pytest.mark.parametrize("plant", PLANTS, ids=NAMES)
def test_a_planted_mistake_is_found(plant: Plant) -> None:
    """In its own case, where nothing is found without it."""
    kept = read(FOLDER / f"{plant.__name__}.json")
    with planted(plant), pytest.raises(Broken):
        examine(kept.world, kept.query, kept.context, kept.how)
    with suppress(HushError):  # some mistakes are to answer at all
        examine(kept.world, kept.query, kept.context, "both")


def test_each_case_has_its_mistake() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(NAMES)


@pytest.mark.long
@pytest.mark.parametrize("plant", PLANTS, ids=NAMES)
def test_random_queries_come_to_a_planted_mistake(plant: Plant) -> None:
    how = read(FOLDER / f"{plant.__name__}.json").how
    with planted(plant):
        for seed in range(FIRST, FIRST + MOST_WORLDS):
            if run_worlds((seed,), how, stop=True).failures:
                return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")
