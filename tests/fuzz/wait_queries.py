"""Random queries for sums, averages and quantiles of differences of times."""

from __future__ import annotations

import random
from collections.abc import Callable

from proxy.policy.model import Unknown
from proxy.sqltypes import SqlType
from tests.fuzz.expressions import TIMES, From, Name
from tests.fuzz.unit_queries import UnitWriter
from tests.fuzz.worlds import World

_STEPS = ("0", "1 day", "-2 days", "1 month", "3 hours 20 minutes", "2 years 1 month")


def make_wait_query(world: World, rng: random.Random) -> str:
    """One random aggregate query whose numbers can be found again in the vector."""
    return _WaitWriter(world, rng).query()


def make_wait_quantiles(world: World, rng: random.Random) -> str:
    """One random query for quantiles of differences."""
    return _QuantileWriter(world, rng).query()


class _WaitWriter(UnitWriter):
    def _relation(self) -> From:
        rng = self._rng
        shape = rng.random()
        if shape < 0.3:
            rows = self._gaps() if rng.random() < 0.5 else self._rows_of_units(0)
            return From(f"({rows.text}) q", tuple(Name(f"q.{c.text}", c.type, c.domain) for c in rows.columns), "q.u0")
        return self._people_events() if shape < 0.6 else self._one()

    def _gaps(self) -> From:
        """Rows with the time since the unit's row before, or of how long its rows last."""
        rng, self._from = self._rng, self._below(0)
        units = self._unit_texts()
        chosen = ", ".join(f"{t} as {c}" for t, c in zip(units, self._units(), strict=True))
        time = self._stamp(0)
        if rng.random() < 0.5:
            text = f"select {chosen}, max({time}) - min({time}) as d from {self._from.text} group by {', '.join(units)}"
        else:
            gap = f"{time} - lag({time}) over (partition by {', '.join(units)} order by {self._time(0)})"
            text = f"select {chosen}, {gap} as d from {self._from.text}"
        return From(text, (Name("d", SqlType.INTERVAL, Unknown()),), "")

    def query(self) -> str:
        rng = self._rng
        keys = [self._key() for _ in range(rng.choice((0, 0, 1)))]
        self._is_measuring = rng.random() < 0.97
        aggregates = [self._of_waits() for _ in range(rng.choice((1, 1, 2)))]
        self._is_measuring = False
        items = [*(f"{k} as k{i}" for i, k in enumerate(keys)), *(f"{a} as a{i}" for i, a in enumerate(aggregates))]
        where = [*self._from.conditions, *(self._test() for _ in range(rng.choice((0, 0, 1))))]
        text = f"{self._from.prefix}select {', '.join(items)} from {self._from.text}"
        text += " where " + " and ".join(f"({w})" for w in where) if where else ""
        return text + (f" group by {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else "")

    def _key(self) -> str:
        plain = [c for c in self._from.columns if c.type is not SqlType.INTERVAL]
        return super()._key() if plain else "true"

    def _of_waits(self) -> str:
        rng = self._rng
        call = rng.choice((f"sum({self._wait(2)})", f"avg({self._wait(2)})", f"count({self._wait(1)})"))
        if rng.random() < 0.2:
            field = rng.choice(("epoch", "epoch", "year", "month", "day", "hour", "minute", "second"))
            call = f"avg(extract({field} from {self._wait(2) if field == 'epoch' else self._age()}))"
        return f"{call} filter (where {self._test()})" if rng.random() < 0.3 else call

    def _test(self) -> str:
        rng = self._rng
        operator = rng.choice(("<", "<=", ">", ">=", "="))
        if rng.random() < 0.2:
            return f"{self._stamp(0)}::time {operator} time '{rng.choice(('00:00', '12:30', '23:59:59'))}'"
        return f"{self._wait(1)} {operator} interval '{rng.choice(_STEPS)}'"

    def _stamp(self, depth: int) -> str:
        """A time that is no date, so that subtracting another gives an interval."""
        found = [c.text for c in self._from.columns if c.type is SqlType.TIMESTAMP]
        return self._rng.choice(found) if found and self._rng.random() < 0.3 else f"({self._time(depth)})::timestamp"

    def _time(self, depth: int) -> str:
        """Mostly as it is stored: bounds of what leaves the calendar are not known."""
        return super()._time(depth) if self._rng.random() < 0.2 else self._column(TIMES)

    def _wait(self, depth: int) -> str:
        rng = self._rng
        made = [c.text for c in self._from.columns if c.type is SqlType.INTERVAL]
        if made and rng.random() < 0.8:
            return rng.choice(made)
        inner = depth - 1
        choices: list[Callable[[], str]] = [
            lambda: f"({self._stamp(max(inner, 0))} - {self._time(max(inner, 0))})",
            lambda: f"({self._stamp(0)} - ({self._time(0)})::timestamp)",
            lambda: f"(now()::timestamp - {self._time(max(inner, 0))})",
            self._age,
        ]
        return self._made(inner) if depth > 0 and rng.random() < 0.5 else rng.choice(choices)()

    def _age(self) -> str:
        end = f"{self._time(0)}, " if self._rng.random() < 0.7 else ""
        return f"age({end}{self._time(0)})"

    def _made(self, depth: int) -> str:
        """An interval made of others."""
        rng, step = self._rng, f"interval '{self._rng.choice(_STEPS)}'"
        choices: list[Callable[[], str]] = [
            lambda: f"case when {self._test()} then {self._wait(depth)} end",
            lambda: f"case when {self._test()} then {step} else {self._wait(depth)} end",
            lambda: f"coalesce({self._wait(depth)}, {step})",
            lambda: f"nullif({self._wait(depth)}, {step})",
            lambda: f"{rng.choice(('greatest', 'least'))}({self._wait(depth)}, {self._wait(0)}, {step})",
            lambda: f"({self._wait(depth)} {rng.choice('+-')} {rng.choice((step, self._wait(0)))})",
            lambda: f"(- {self._wait(depth)})",
            lambda: f"({self._wait(depth)} * {rng.choice((2, 0, -3, self._int(0)))})",
            lambda: f"({rng.choice((2, self._int(0)))} * {self._wait(depth)})",
        ]
        return rng.choice(choices)()


class _QuantileWriter(_WaitWriter):
    def _of_waits(self) -> str:
        rng = self._rng
        of, fraction = self._wait(2), rng.choice(("0.5", "0.9", "0", "array[0.25, 0.75]"))
        order = rng.choice(("", " desc"))
        call = rng.choice((f"min({of})", f"max({of})",
                           f"percentile_cont({fraction}) within group (order by {of}{order})",
                           f"percentile_disc({fraction}) within group (order by {of}{order})"))  # fmt: skip
        return f"{call} filter (where {self._test()})" if rng.random() < 0.25 else call
