"""Random queries over rows that share a parent row, and over conditions whose alternatives have something in common."""

from __future__ import annotations

import random

from tests.fuzz.expressions import From
from tests.fuzz.grammar import ENDS, Writer
from tests.fuzz.worlds import World


def make_sibling_query(world: World, rng: random.Random) -> str:
    """One random aggregate query."""
    return _SiblingWriter(world, rng).query()


class _SiblingWriter(Writer):
    def _relation(self) -> From:
        return self._rng.choice((self._siblings, self._siblings, self._asked, self._either, self._either_value))()

    def _siblings(self) -> From:
        """Two rows of one parent, and perhaps the parent too."""
        rng = self._rng
        columns = (*self._columns("d", "x"), *self._columns("d", "y"))
        self._from = From("", columns, "")
        more = f" and {self._bool(1)}" if rng.random() < 0.4 else ""
        how = rng.choice(("join", "join", "left join"))
        text = f"d x {how} d y on x.ref = y.ref{more}"
        if rng.random() < 0.4:
            return From(f"{text} join e on e.id = x.ref", (*columns, *self._columns("e", "e")), self._unit("e", "e"))
        return From(text, columns, "")

    def _asked(self) -> From:
        """Rows with or without another one of the same parent."""
        rng, columns = self._rng, self._columns("d", "x")
        self._from = From("", (*columns, *self._columns("d", "y")), "")
        word = rng.choice(("", "not "))
        more = f" and {self._bool(1)}" if rng.random() < 0.7 else ""
        if rng.random() < 0.3:
            about = self._about("y", "d")
            return From("d x", columns, "", (f"x.ref {word}in (select y.ref from d y where {about})",))
        return From("d x", columns, "", (f"{word}exists (select 1 from d y where y.ref = x.ref{more})",))

    def _either(self) -> From:
        """A join that is written in each alternative."""
        rng = self._rng
        shapes = (("e", "s", "x.code = y.code"), ("d", "e", "x.ref = y.id"), ("d", "d", "x.ref = y.ref"))
        left, right, on = rng.choice(shapes)
        columns = (*self._columns(left, "x"), *self._columns(right, "y"))
        self._from = From("", columns, "")
        parts = [f"({on} and {self._bool(1)})" for _ in range(rng.choice((2, 2, 3)))]
        if rng.random() < 0.1:  # refused: one alternative lacks it
            parts.append(f"({self._bool(1)})")
        either = " or ".join(parts)
        if rng.random() < 0.5:
            return From(f"{left} x join {right} y on {either}", columns, self._unit(left, "x"))
        return From(f"{left} x, {right} y", columns, self._unit(left, "x"), (f"({either})",))

    def _either_value(self) -> From:
        """Alternatives that each fix a value."""
        table = self._rng.choice("pe")
        columns = self._columns(table, "t")
        named = self._rng.choice(columns).text
        self._from = From("", columns, "")
        parts = [f"({named} = {self._of(named)} and {self._bool(1)})" for _ in range(2)]
        return From(f"{table} t", columns, self._unit(table, "t"), (f"({' or '.join(parts)})",))

    def _of(self, named: str) -> str:
        """A constant of the column's kind."""
        (column,) = (c for c in self._from.columns if c.text == named)
        return self._rng.choice(ENDS.get(column.type.family, ("true",)))
