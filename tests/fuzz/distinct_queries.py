"""Random client SQL with distinct counts."""

from __future__ import annotations

import random

from tests.fuzz.grammar import Writer
from tests.fuzz.worlds import World


def make_distinct_query(world: World, rng: random.Random) -> str:
    """One random query with one or two distinct counts, and sometimes what else is asked beside them."""
    return _DistinctWriter(world, rng).query()


class _DistinctWriter(Writer):
    def query(self) -> str:
        rng = self._rng
        keys = [self._key() for _ in range(rng.choice((0, 1, 1, 2)))]
        counted = [f"count(distinct {self._any(rng.choice((0, 0, 1, 2)))})" for _ in range(rng.choice((1, 1, 2)))]
        aggregates = [f"{c} filter (where {self._bool(1)})" if rng.random() < 0.3 else c for c in counted]
        aggregates += [self._aggregate() for _ in range(rng.choice((0, 0, 1)))]
        rng.shuffle(aggregates)
        where = [*self._from.conditions, *(self._bool(1) for _ in range(rng.choice((0, 0, 1))))]
        text = f"{self._from.prefix}select {', '.join([*keys, *aggregates])} from {self._from.text}"
        if where:
            text += " where " + " and ".join(f"({w})" for w in where)
        return text + (f" group by {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else "")
