"""Random queries with ROLLUP, CUBE and GROUPING SETS."""

from __future__ import annotations

import random

from tests.fuzz.grammar import Writer
from tests.fuzz.worlds import World


def make_sets_query(world: World, rng: random.Random) -> str:
    """One random query that groups by several sets."""
    return _SetsWriter(world, rng).query()


class _SetsWriter(Writer):
    def query(self) -> str:
        rng = self._rng
        keys = [self._key() if rng.random() < 0.3 else self._public_key() for _ in range(rng.choice((1, 2, 2, 3)))]
        aggregates = [self._aggregate() for _ in range(rng.choice((1, 1, 2, 3)))]
        if rng.random() < 0.15:
            aggregates.append(f"count(distinct {self._any(0)})")
        where = [*self._from.conditions, *(self._bool(1) for _ in range(rng.choice((0, 0, 1))))]
        text = f"{self._from.prefix}select {', '.join([*keys, *aggregates])} from {self._from.text}"
        if where:
            text += " where " + " and ".join(f"({w})" for w in where)
        return f"{text} group by {self._grouping([str(i + 1) for i in range(len(keys))])}"

    def _grouping(self, keys: list[str]) -> str:
        rng, listed = self._rng, ", ".join(keys)
        subsets = [[k for k in keys if rng.random() < 0.5] for _ in range(rng.choice((2, 3)))]
        sets = ", ".join(f"({', '.join(s)})" for s in [*subsets, *([[]] if rng.random() < 0.5 else [])])
        shapes = [f"rollup({listed})", f"rollup({listed})", f"cube({listed})", f"grouping sets ({sets}, ({listed}))",
                  f"grouping sets ({sets}, {keys[0]})", f"{keys[0]}, rollup({listed})",
                  f"grouping sets (rollup({listed}), ({keys[-1]}))"]  # fmt: skip
        return rng.choice(shapes)
