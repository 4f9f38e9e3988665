"""Random statements over the shop's tables, each around one expression that reads its columns."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from proxy.policy.model import Policy
from tests.fuzz.expressions import From, Name
from tests.fuzz.scalars import ScalarWriter
from tests.unit.sql.corpus import Case

_TABLES = ("users", "users", "orders", "items")
_RESERVED = ("at",)


class _Statements(ScalarWriter):
    """Writes about one table of a policy instead of a world's."""

    def __init__(self, served: Policy, rng: random.Random) -> None:
        self._rng = rng
        self._is_measuring = False
        table = served.tables[rng.choice(_TABLES)]
        columns = tuple(
            Name(f'"{c.name}"' if c.name in _RESERVED else c.name, c.type, c.domain) for c in table.columns if not c.key
        )
        self._from = From(table.name, columns, "user_id")

    def query(self) -> str:
        depth = self._rng.choice((1, 2, 2, 3))
        shapes: tuple[Callable[[], str], ...] = (
            lambda: f"SELECT count(*) FROM {self._from.text} WHERE {self._bool(depth)}",
            lambda: f"SELECT count(*) FROM {self._from.text} WHERE {self._number(depth)} > {self._constant_number()}",
            lambda: f"SELECT count(*) FILTER (WHERE {self._time(depth)} > '2024-02-29') FROM {self._from.text}",
            lambda: f"SELECT {self._any(depth)} AS k, count(*) FROM {self._from.text} GROUP BY 1",
            lambda: f"SELECT count({self._text(depth)}), count(DISTINCT {self._any(1)}) FROM {self._from.text}",
            self._measured,
        )
        return self._rng.choice(shapes)()

    def _measured(self) -> str:
        self._is_measuring = True
        name = self._rng.choice(("sum", "avg", "stddev", "sum"))
        return f"SELECT {name}({self._number(self._rng.choice((1, 2, 3)))}) FROM {self._from.text}"


def generated(served: Policy, seed: int) -> Iterator[Case]:
    """Endless; one in seven is refused."""
    rng = random.Random(seed)
    while True:
        sql = _Statements(served, rng).query()
        yield Case(place=sql, sql=sql, facts={})
