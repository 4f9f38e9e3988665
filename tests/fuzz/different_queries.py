"""Random queries over the different rows of units: SELECT DISTINCT and UNION in sub-selects."""

from __future__ import annotations

import random
import re

from tests.fuzz.expressions import From, Name
from tests.fuzz.unit_queries import UnitWriter
from tests.fuzz.worlds import World


def make_different_query(world: World, rng: random.Random) -> str:
    """One random aggregate query."""
    return _DifferentWriter(world, rng).query()


class _DifferentWriter(UnitWriter):
    def _rows_of_units(self, depth: int) -> From:
        rows = self._union(depth) if self._rng.random() < 0.4 else self._distinct(self._below(depth))
        order = f" order by {self._rng.choice(rows.columns).text} desc" if self._rng.random() < 0.2 else ""
        return From(rows.text + order, rows.columns, rows.unit)

    def _union(self, depth: int) -> From:
        rows = self._put_together(depth)
        text = rows.text.replace(" union all ", self._rng.choice((" union ", " union distinct ")))
        if self._rng.random() < 0.6:  # else rows of two SELECTs are never alike
            text = re.sub(r"\d as tag", "1 as tag", text)
        return From(text, rows.columns, rows.unit)

    def _distinct(self, below: From) -> From:
        rng, self._from = self._rng, below
        items = [f"{t} as {c}" for t, c in zip(self._unit_texts(), self._units(), strict=True)]
        names: list[Name] = []
        for number in range(rng.choice((1, 1, 2, 3))):
            key = self._inner_key()
            items.append(f"{key.text} as g{number}")
            names.append(Name(f"g{number}", key.type, key.domain))
        where = f" where {self._bool(1)}" if rng.random() < 0.3 else ""
        if rng.random() < 0.1:  # refused, but where its refusal is missing
            items = items[1:]
        return From(f"select distinct {', '.join(items)} from {below.text}{where}", tuple(names), "")
