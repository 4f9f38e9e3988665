"""One proxy for all attacks of a test process, one more for rows in PostgreSQL. No lines are counted here.

A test that takes `attacked` or `eve` runs for both engines: in PostgreSQL those of FOR_BOTH always, the others in the
long run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests import places
from tests.attacks.hostile import DUCKDB, ENGINES, Attacked, Client, serving

#: What an engine has a part in: what raises, what is summed, which keys there are, how long it takes, what it says.
FOR_BOTH = frozenset({
    "test_no_row_raises",
    "test_everything_but_noisy_numbers_is_the_same_with_and_without_a_person",
    "test_one_person_moves_an_answer_by_the_bounds_at_most",
    "test_not_a_number_poisons_no_sum",
    "test_twins_of_spelling_are_keys_of_their_own",
    "test_no_number_of_groups_tells_of_a_person",
})  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places.leave_uncounted(items, Path(__file__).parent)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "attacked" in metafunc.fixturenames:
        is_for_both = metafunc.function.__name__ in FOR_BOTH
        marks = {e: [] if e == DUCKDB or is_for_both else [pytest.mark.long] for e in ENGINES}
        engines = [pytest.param(e, marks=marks[e]) for e in ENGINES]
        metafunc.parametrize("attacked", engines, indirect=True, ids=ENGINES)


@pytest.fixture(scope="session")
def proxies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Attacked]]:
    """The proxy for each engine, started when it is first needed: the order of tests mixes engines."""
    with ExitStack() as running:

        @cache
        def of(engine: str) -> Attacked:
            return running.enter_context(serving(tmp_path_factory.mktemp(engine), engine))

        yield of


@pytest.fixture
def attacked(request: pytest.FixtureRequest, proxies: Callable[[str], Attacked]) -> Attacked:
    return proxies(request.param)


@pytest.fixture
def eve(attacked: Attacked) -> Iterator[Client]:
    """A login with plenty of budget and next to no noise."""
    with attacked.connect(epsilon=100) as client:
        yield client
