"""Make the case that shows a planted mistake: find it, or take a query of one's own, and keep it as small as it gets.

    python -m tests.fuzz.keep PLANT sensitivity|meaning [SEED [QUERY]]

Random queries are tried on the worlds from SEED on, or QUERY alone on the world of SEED. The case, a minute later, is
in tests/fuzz/planted; the mistake breaks a promise there, and without the mistake every promise holds or the query
is refused.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from proxy.analysis.analyse import Lowered
from proxy.errors import HushError
from tests.fuzz.examine import QUERIES
from tests.fuzz.grammar import make_query
from tests.fuzz.kept import FOLDER, Kept, write
from tests.fuzz.mutants import PLANTS, Plant
from tests.fuzz.planning import context_of, make_context, plan_query
from tests.fuzz.shrink import fails, smallest
from tests.fuzz.worlds import World, make_world

FIRST = 30_000


@contextmanager
def planted(plant: Plant) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        yield


def shows(plant: Plant, kept: Kept) -> bool:
    """Whether the mistake, and nothing else, breaks a promise. Without it the query may be refused."""
    with planted(plant):
        if not fails(kept.world, kept.query, kept.context, kept.how):
            return False
    return not fails(kept.world, kept.query, kept.context, "both")


def is_refused(kept: Kept) -> bool:
    try:
        plan_query(kept.world, kept.query, kept.context)
    except HushError:
        return True
    return False


def random_cases(how: str, first: int) -> Iterator[Kept]:
    for seed in count(first):
        world = make_world(seed)
        for number in range(QUERIES):
            rng = random.Random(f"query {seed} {number}")
            query = make_query(world, rng)
            yield Kept(how, query, world, make_context(world, rng))


def made_small(plant: Plant, kept: Kept) -> Kept:
    refused = is_refused(kept)

    def case(world: World, query: str, lowered: Lowered) -> Kept:
        return Kept(kept.how, query, world, context_of(world, lowered))

    def still_shows(smaller: Kept) -> bool:
        return shows(plant, smaller) and is_refused(smaller) is refused

    lowered = Lowered() if still_shows(case(kept.world, kept.query, Lowered())) else kept.context.lowered
    world, query = smallest(kept.world, kept.query, lambda w, q: still_shows(case(w, q, lowered)))
    return case(world, query, lowered)


def main() -> None:
    name, how, *more = sys.argv[1:]
    (plant,) = (p for p in PLANTS if p.__name__ == name)
    first = int(more[0]) if more else FIRST
    world = make_world(first)
    own = [Kept(how, query, world, context_of(world, Lowered())) for query in more[1:]]
    kept = made_small(plant, next(k for k in (own or random_cases(how, first)) if shows(plant, k)))
    FOLDER.mkdir(exist_ok=True)
    write(FOLDER / f"{name}.json", kept)
    print(f"{name}: {kept.query}")


if __name__ == "__main__":
    main()
