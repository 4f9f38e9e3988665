"""Random queries over rows that FULL JOIN makes of rows of one unit, and over columns that outer joins may lack."""

from __future__ import annotations

import random

from proxy.policy.model import Bounded, Listed
from proxy.sqltypes import SqlType
from tests.fuzz.expressions import From, Name
from tests.fuzz.unit_queries import UnitWriter, under
from tests.fuzz.worlds import World


def make_full_query(world: World, rng: random.Random) -> str:
    """One random aggregate query."""
    return _FullWriter(world, rng).query()


class _FullWriter(UnitWriter):
    def _relation(self) -> From:
        rng = self._rng
        shape = rng.choice((self._full, self._full, self._full, self._full_path, self._computed, self._counted))
        return shape()

    def _side(self, alias: str) -> From:
        """One side of a join with the columns of the unit: a table, or rows of each unit."""
        if self._rng.random() < 0.4:
            table = self._rng.choice("pe")
            return From(f"{table} {alias}", self._columns(table, alias), "")
        rows = self._rows_of_units(0)
        return From(f"({rows.text}) {alias}", under(alias, rows), "")

    def _full(self) -> From:
        rng = self._rng
        left, right = self._side("a"), self._side("b")
        columns = (*left.columns, *right.columns)
        self._from = From("", columns, "")
        one = self._units()[0]
        absent = tuple(Name(f"({side}.{one} is {word}null)", SqlType.BOOL, Listed((False, True)))
                       for side, word in (("a", ""), ("b", "not ")))  # fmt: skip
        if rng.random() < 0.3:
            using = ", ".join(self._units())
            return From(f"{left.text} full join {right.text} using ({using})", (*columns, *absent), "u0")
        on = [*self._same_unit("a", "b"), *(self._bool(1) for _ in range(rng.choice((0, 0, 0, 1))))]
        rng.shuffle(on)
        text = f"{left.text} full outer join {right.text} on {' and '.join(on)}"
        if rng.random() < 0.2:
            third = " and ".join(f"coalesce(a.{c}, b.{c}) = c.{c}" for c in self._units())
            text += f" {rng.choice(('full', 'left', ''))} join p c on {third}"
            columns = (*columns, *self._columns("p", "c"))
        return From(text, (*columns, *absent), "")

    def _full_path(self) -> From:
        columns = (*self._columns("d", "d"), *self._columns("e", "e"))
        text = self._rng.choice(("d full join e on d.ref = e.id", "e full join d on e.id = d.ref"))
        return From(text, columns, "")

    def _counted(self) -> From:
        """Rows of units grouped once more, by the unit of either side."""
        full = self._from = self._full()
        units = ", ".join(f"coalesce(a.{c}, b.{c})" for c in self._units())
        named = ", ".join(f"coalesce(a.{c}, b.{c}) as {c}" for c in self._units())
        items = ", ".join(f"{self._unit_value()[0]} as v{i}" for i in range(2))
        text = f"(select {named}, count(*) as n, {items} from {full.text} group by {units}) q"
        return From(text, (Name("q.n", SqlType.INT8, Bounded(0, 10)),), "q.u0")

    def _computed(self) -> From:
        """Rows of units with computed columns, which another row may lack."""
        rng, table = self._rng, self._rng.choice("pe")
        rows = self._rows_of_units(0)
        self._from = From("", under("i", rows), "")
        names = ", ".join(f"i.{c}" for c in self._units())
        computed = rng.choice(("1", self._int(1), f"coalesce({self._int(1)}, 3)"))
        inner = f"(select {names}, {computed} as f, {self._bool(1)} as g from ({rows.text}) i) q"
        on = " and ".join(self._same_unit("x", "q"))
        how = rng.choice((f"{table} x left join {inner}", f"{inner} right join {table} x"))
        columns = (*self._columns(table, "x"), Name("q.f", SqlType.INT4, Bounded(0, 10)),
                   Name("q.g", SqlType.BOOL, Listed((False, True))))  # fmt: skip
        return From(f"{how} on {on}", columns, self._unit(table, "x"))
