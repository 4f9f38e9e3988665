"""Data within what a policy declares, questions about them, and further questions that may follow from those."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType

from proxy.analysis.units import UniqueKeys
from proxy.policy.model import Accounting, Bounded, Column, Listed, Neighbors, Privacy, Table, UnitColumns, WrittenBound
from proxy.sqltypes import SqlType as T
from tests.fuzz.worlds import Cell, Row, Stored, World

UNITS = 60
_KINDS = ("a", "b", "zz", None)
_PLANS = ("free", "pro", "max")
_FIRST = datetime(2024, 1, 1)
_COLUMNS = (
    Column(name="u0", type=T.INT4, key=True),
    Column(name="plan", type=T.TEXT, domain=Listed(_PLANS), nullable=False),
    Column(name="kind", type=T.TEXT, domain=Listed(_KINDS[:3])),
    Column(name="blind", type=T.TEXT, domain=Listed(("x", "y")), case_blind=True),
    Column(name="told", type=T.BOOL, domain=Listed((False, True)), nullable=False),
    Column(name="age", type=T.INT4, domain=Bounded(0, 15)),
    Column(name="grade", type=T.NUMERIC, domain=Listed((1, 2))),
    Column(name="day", type=T.DATE, domain=Bounded(date(2024, 1, 1), date(2024, 3, 31))),
    Column(name="at", type=T.TIMESTAMP, domain=Bounded(_FIRST, datetime(2024, 3, 31, 23)), nullable=False),
    Column(name="height", type=T.FLOAT8, domain=Bounded(0, 250), nullable=False),
    Column(name="weight", type=T.FLOAT8, domain=Bounded(-20, 100)),
    Column(name="free", type=T.FLOAT8),
    Column(name="note", type=T.TEXT),
)
_TYPES = MappingProxyType({
    "u0": "INTEGER", "plan": "VARCHAR", "kind": "VARCHAR", "blind": "VARCHAR COLLATE NOCASE", "told": "BOOLEAN",
    "age": "INTEGER", "grade": "DECIMAL(12,3)", "day": "DATE", "at": "TIMESTAMP", "height": "DOUBLE",
    "weight": "DOUBLE", "free": "DOUBLE", "note": "VARCHAR",
})  # fmt: skip

_FINE = (
    "plan", "kind", "told", "age", "day", "blind", "grade", "date_trunc('day', at)", "date_trunc('month', at)",
    "at::date", "extract(month from day)", "date_trunc('month', day)", "extract(dow from at)", "age % 4", "upper(kind)",
    "note", "note", "note",
)  # fmt: skip
_COARSE = (
    *_FINE, "case when age < 5 then 'low' when age < 10 then 'middle' else 'high' end", "age between 3 and 7",
    "plan = 'pro'", "plan in ('pro', 'max')", "coalesce(kind, 'none')", "extract(quarter from day)", "blind = 'x'",
    "date_trunc('week', day)", "extract(month from at)", "extract(isodow from at)", "kind is null", "grade = 1",
    "date_trunc('month', at) = '2024-02-01'", "case when told then plan else 'none' end", "age / 4", "kind || plan",
    "date_trunc('hour', at)", "extract(year from at)", "nullif(plan, 'pro')",
)  # fmt: skip
_CONDITIONS = (
    "age > 3", "age between 2 and 9", "plan <> 'free'", "plan in ('pro', 'max')", "told", "not told", "kind is null",
    "kind is not null", "kind = 'a' or plan = 'pro'", "day >= '2024-02-01'", "day = '2024-01-07'", "blind = 'X'",
    "extract(month from day) = 2", "at >= '2024-02-01'", "date_trunc('month', at) = '2024-02-01'", "free > 0",
    "kind not in ('a', 'b')", "age % 2 = 0", "grade > 1", "weight > 0", "plan = 'max' and age < 8",
    "coalesce(kind, 'a') = 'a'", "at < '2024-03-01'", "age is distinct from 4", "told = (age > 4)",
    "note <> 'q'", "note not in ('q', 'r')", "note is not null", "note > 'q'",
)  # fmt: skip
_AGGREGATES = (
    "count(*)", "count(weight)", "sum(height)", "avg(height)", "sum(weight)", "avg(weight)", "sum(age)", "avg(age)",
    "var_pop(height)", "stddev_pop(weight)", "count(*) filter (where told)", "bool_or(told)", "corr(height, weight)",
    "sum(weight) filter (where age > 4)", "avg(weight) filter (where age > 4)", "count(distinct age)", "max(weight)",
    "percentile_disc(0.5) within group (order by age)", "hush.low(percentile_disc(0.5) within group (order by age))",
    "count(distinct kind)", "count(distinct u0)",
)  # fmt: skip


def make_tame_world(rng: random.Random) -> World:
    """One row of each person in `p`, up to four in `v`; all values are as the policy declares them."""
    one = Table(name="p", relation=("p",), ownership=UnitColumns(("u0",)), unit_unique=True, columns=_COLUMNS)
    bounds = {"rows_per_unit": WrittenBound(4), "rows_per_group": WrittenBound(4), "groups_per_unit": WrittenBound(4)}
    many = Table(name="v", relation=("v",), ownership=UnitColumns(("u0",)), columns=_COLUMNS, **bounds)  # type: ignore[arg-type]
    rows = {"p": [(u, _row(rng, u)) for u in range(UNITS)]}
    rows["v"] = [(u, _row(rng, u)) for u in range(UNITS) for _ in range(rng.randint(0, 4))]
    pure = rng.random() < 0.4
    return World(
        seed=0, tables=MappingProxyType({"p": one, "v": many}),
        data=MappingProxyType({t: Stored(tuple(r for _, r in of), tuple(u for u, _ in of)) for t, of in rows.items()}),
        engine_types=MappingProxyType({(t, c): kind for t in ("p", "v") for c, kind in _TYPES.items()}),
        unique=UniqueKeys(frozenset()), units=UNITS,
        privacy=Privacy(
            unit="person", accounting=Accounting.PURE if pure else Accounting.ZCDP, neighbors=Neighbors.ADD_REMOVE,
            delta=0.0 if pure else 1e-6, delta_pool=0.0 if pure else 5e-7, time_zone="UTC",
        ),
    )  # fmt: skip


def _row(rng: random.Random, unit: int) -> Row:
    def maybe(value: Cell) -> Cell:
        return value if rng.random() < 0.85 else None

    day = (_FIRST + timedelta(days=rng.randrange(91))).date()
    at = _FIRST + timedelta(minutes=rng.randrange(90 * 24 * 60))
    return (
        unit, rng.choice(_PLANS), rng.choice(_KINDS), rng.choice(("x", "y", None)), rng.random() < 0.4,
        maybe(rng.randint(0, 15)), maybe(Decimal(rng.randint(1, 2))), maybe(day), at,
        rng.uniform(0, 250), maybe(rng.uniform(-20, 100)), maybe(rng.uniform(-9, 9)),
        maybe(rng.choice(("q", "r", "s", "t"))),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """A SELECT in parts."""

    table: str
    keys: tuple[str, ...]
    aggregates: tuple[str, ...]
    conditions: tuple[str, ...]

    @property
    def text(self) -> str:
        where = f" where {' and '.join(self.conditions)}" if self.conditions else ""
        group = f" group by {', '.join(map(str, range(1, len(self.keys) + 1)))}" if self.keys else ""
        return f"select {', '.join([*self.keys, *self.aggregates])} from {self.table}{where}{group}"


def make_source(rng: random.Random, table: str) -> Question:
    """A grouped question."""
    keys = _some(rng, _FINE, 2) or ("plan",)
    conditions = _some(rng, _CONDITIONS, 2) if rng.random() < 0.3 else ()
    return Question(table, keys, _some(rng, _AGGREGATES, 3) or ("count(*)",), conditions)


def make_wanted(rng: random.Random, table: str) -> Question:
    """A question about fewer, or coarser, groups."""
    conditions = _some(rng, _CONDITIONS, 2) if rng.random() < 0.6 else ()
    return Question(table, _some(rng, _COARSE, 1), _some(rng, _AGGREGATES, 2) or ("count(*)",), conditions)


def make_again(rng: random.Random, of: Question) -> Question:
    """A question about some of the groups, and some of the numbers, of another one."""
    keys = tuple(rng.sample(of.keys, len(of.keys)))
    aggregates = tuple(rng.sample(of.aggregates, rng.randint(1, len(of.aggregates))))
    about = [c for c in _CONDITIONS if any(k in c for k in keys)] if rng.random() < 0.6 else []
    return Question(of.table, keys, aggregates, (*of.conditions, *_some(rng, about, min(1, len(about)))))


def _some(rng: random.Random, of: Sequence[str], most: int) -> tuple[str, ...]:
    return tuple(rng.sample(of, rng.randint(0, most)))
