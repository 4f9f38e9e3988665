"""Random queries over rows with window functions whose frames are counted in rows of the unit."""

from __future__ import annotations

import random

from proxy.policy.model import Bounded, Domain, Unknown
from proxy.sqltypes import SqlType
from tests.fuzz.expressions import From, Name
from tests.fuzz.unit_queries import UnitWriter
from tests.fuzz.worlds import World

_STARTS = ("unbounded preceding", "2 preceding", "1 preceding", "current row", "1 following")
_ENDS = ("2 preceding", "1 preceding", "current row", "1 following", "unbounded following")


def make_framed_query(world: World, rng: random.Random) -> str:
    """One random aggregate query."""
    return _FramedWriter(world, rng).query()


class _FramedWriter(UnitWriter):
    def _rows_of_units(self, depth: int) -> From:
        below = self._below(depth)
        rng, self._from = self._rng, below
        units, items, names, windows = self._unit_texts(), [], [], []
        for number, column in enumerate(below.columns):
            items.append(f"{column.text} as c{number}")
            names.append(Name(f"c{number}", column.type, column.domain))
        for number in range(rng.choice((1, 1, 2))):
            order = [f"{self._inner_key().text}{rng.choice(('', ' desc', ' nulls first'))}"
                     for _ in range(rng.choice((0, 1, 1, 2)))]  # fmt: skip
            ordered = f" order by {', '.join(order)}" if order else ""
            call, kind, domain = self._framed_call()
            over = f"partition by {', '.join(units)}{ordered} {self._frame()}"
            called = f"n{number}" if rng.random() < 0.2 else ""
            windows += [f"{called} as ({over})"] if called else []
            items.append(f"{call} over {called or f'({over})'} as w{number}")
            names.append(Name(f"w{number}", kind, domain))
        chosen = ", ".join([*(f"{t} as {c}" for t, c in zip(units, self._units(), strict=True)), *items])
        where = f" where {self._bool(1)}" if rng.random() < 0.3 else ""
        named = f" window {', '.join(windows)}" if windows else ""
        return From(f"select {chosen} from {below.text}{where}{named}", tuple(names), "")

    def _framed_call(self) -> tuple[str, SqlType, Domain]:
        rng = self._rng
        if rng.random() < 0.35:
            key = self._inner_key()
            return f"{rng.choice(('first_value', 'last_value'))}({key.text})", key.type, key.domain
        if rng.random() < 0.3:
            return "count(*)", SqlType.INT8, Bounded(0, 10)
        text, kind = self._unit_value()
        return text.replace("distinct ", ""), kind, Unknown() if text.startswith("sum") else Bounded(0, 10)

    def _frame(self) -> str:
        rng = self._rng
        if rng.random() < 0.2:
            return rng.choice(("rows unbounded preceding", "rows 1 preceding", "range unbounded preceding",
                               "range between unbounded preceding and unbounded following"))  # fmt: skip
        return f"rows between {rng.choice(_STARTS)} and {rng.choice(_ENDS)}"


def make_share_query(world: World, rng: random.Random) -> str:
    """One random aggregate query over places that are told in shares, and rows of a frame that are counted."""
    return _ShareWriter(world, rng).query()


def make_peers_query(world: World, rng: random.Random) -> str:
    """One random aggregate query over frames that are counted in groups of equal rows."""
    return _PeersWriter(world, rng).query()


class _PeersWriter(_FramedWriter):
    def _framed_call(self) -> tuple[str, SqlType, Domain]:
        text, kind = self._unit_value()
        return text.replace("distinct ", ""), kind, Unknown() if text.startswith("sum") else Bounded(0, 10)

    def _frame(self) -> str:
        rng = self._rng
        if rng.random() < 0.3:
            return rng.choice(("range current row", "range between current row and unbounded following"))
        return f"groups between {rng.choice(_STARTS[:4])} and {rng.choice(_ENDS[2:])}"


class _ShareWriter(_FramedWriter):
    _is_framed = False

    def _framed_call(self) -> tuple[str, SqlType, Domain]:
        rng = self._rng
        self._is_framed = rng.random() < 0.4
        if self._is_framed:
            key = self._inner_key()
            return f"nth_value({key.text}, {rng.choice((1, 2, 2, 3))})", key.type, key.domain
        if rng.random() < 0.5:
            return f"ntile({rng.choice((1, 2, 3, 7))})", SqlType.INT4, Bounded(1, 7)
        return f"{rng.choice(('percent_rank', 'cume_dist'))}()", SqlType.FLOAT8, Bounded(0.0, 1.0)

    def _frame(self) -> str:
        return f"rows between {self._rng.choice(_STARTS)} and {self._rng.choice(_ENDS)}" if self._is_framed else ""
