"""Random queries with NATURAL joins, rows of constants, constant arrays, spines and SELECT DISTINCT.

What they mean is asked of an SQL engine, as for the joins of `kept_queries`: the binder alone reads them, and the slow
definition and the private SQL share what it made of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import duckdb

from proxy.policy.model import UnitColumns, limit_or
from tests.fuzz.kept_queries import Answer, Shop
from tests.fuzz.worlds import NOBODY, World

_AGGREGATES = (
    "count(*)",
    "count({c})",
    "coalesce(sum({c}), 0)",
    "count(*) filter (where {c} > 0)",
    "count(nullif({c}, 1))",
)
_SERIES = re.compile(r"select (generate_series\([^)]*\))")
_ARRAY = re.compile(r"'\{([0-9,]*)\}'(::int\[\])?")


def make_constant_query(world: World, rng: random.Random) -> str:
    """One random query. Its tables are as they are in `Tables`."""
    made = rng.choice((_natural, _natural, _listed, _listed, _among, _among, _spine, _different, _thresholds))
    return made(world, rng)


def units_of(world: World) -> tuple[str, ...]:
    ownership = world.tables["e"].ownership
    assert isinstance(ownership, UnitColumns)
    return ownership.columns


def _asked(rng: random.Random, column: str) -> str:
    return rng.choice(_AGGREGATES).format(c=column)


def _grouped(rng: random.Random, rest: str, columns: tuple[str, ...]) -> str:
    """Aggregates over rows, grouped by a column now and then."""
    asked = ", ".join(f"{_asked(rng, rng.choice(columns))} as a{n}" for n in range(rng.choice((1, 2))))
    if rng.random() < 0.4:
        return f"select {asked} {rest}"
    key = rng.choice((*columns, f"{columns[0]} is null"))
    return f"select {key} as k, {asked} {rest} group by {rng.choice(('1', key))}"


# --- joins by names ----------------------------------------------------------------------------------------------


def _natural(world: World, rng: random.Random) -> str:
    """Rows of one unit, or those of a public table, that agree in all names that they share."""
    where = rng.choice(("", "", " where code > 0", " where code is not null"))
    if rng.random() < 0.3:
        how = rng.choice(("natural join", "natural left join", "natural inner join"))
        return _grouped(rng, f"from (select code from {rng.choice('pe')}) x {how} s{where}", ("code",))
    units = ", ".join(units_of(world))
    named, renamed = f"{units}, code", f"{units}, code as other"
    left, right = rng.choice(((named, named), (named, renamed), (renamed, named)))
    shared = f"{units}, code" if left == right else units
    how, using = rng.choice((("natural join", ""), ("natural left join", ""), ("natural right join", ""),
                             ("join", f" using ({shared})"), ("natural join", "")))  # fmt: skip
    sides = f"(select {left} from {rng.choice('pe')}) x {how} (select {right} from {rng.choice('ep')}) y{using}"
    columns = ("code",) if left == right else ("code", "other")
    return _grouped(rng, f"from {sides}{where}", columns)


# --- rows of constants -------------------------------------------------------------------------------------------


def _listed(_: World, rng: random.Random) -> str:
    """Private rows that meet one row of constants at most, or are refused."""
    table, how = rng.choice("pe"), rng.choice(("join", "join", "left join"))
    if rng.random() < 0.3:
        low, middle, high = sorted(rng.choices((-1, 0, 1, 2, 3), k=3))
        first, second = rng.choice((("<=", "<"), ("<", "<="), ("<=", "<=")))
        rows = f"(values ({low}, {middle}, 5), ({middle}, {high}, 6)) v(low, high, c)"
        on = f"v.low {first} x.code and x.code {second} v.high"
    else:
        values = rng.choices(("0", "1", "2", "3", "null"), k=rng.choice((1, 2, 3)))
        alone = ", ".join(f"({v})" for v in values)
        selects = " union all ".join(f"select {v} as c" for v in values)
        rows = rng.choice((f"(values {alone}) v(c)", f"({selects}) v", f"unnest(array[{', '.join(values)}]) v(c)"))
        on = rng.choice(("x.code = v.c", "v.c = x.code", "x.code = v.c and x.code > 0"))
    if how == "join" and rng.random() < 0.3:
        return _grouped(rng, f"from {table} x, {rows} where {on}", ("v.c", "x.code"))
    return _grouped(rng, f"from {table} x {how} {rows} on {on}", ("v.c", "x.code"))


def _thresholds(_: World, rng: random.Random) -> str:
    """Private rows that meet several rows of constants."""
    table = rng.choice("pe")
    few = rng.choices(("-1", "0", "1", "2", "3"), k=rng.choice((2, 3)))
    rows = rng.choice((
        f"(values {', '.join(f'({v})' for v in few)}) v(c)",
        f"unnest(array[{', '.join(few)}]) v(c)",
        f"generate_series(0, {rng.choice('123')}{rng.choice(('', ', 2'))}) v(c)",
        f"(values {', '.join(f'({v}, {v})' for v in few)}) v(c, d)",
    ))  # fmt: skip
    on = rng.choice(("x.code >= v.c", "v.c < x.code", "x.code <> v.c", "x.code = v.c or x.code > 1", "true"))
    keys = rng.choice((("v.c",), ("v.c", "x.code"), ("x.code",), ("v.c + x.code", "v.c > 0")))
    return _grouped(rng, f"from {table} x join {rows} on {on}", keys)


# --- constant arrays ---------------------------------------------------------------------------------------------


def _among(_: World, rng: random.Random) -> str:
    """Conditions on arrays, in WHERE, in FILTER, and as a group."""
    table = rng.choice("pe")
    test, other = _test(rng), _test(rng)
    if rng.random() < 0.2:
        return f"select {test} as k, count(*) as a0 from {table} x group by 1" if "select" not in test else (
            f"select count(*) filter (where {test}) as a0, count(x.code) as a1 from {table} x")  # fmt: skip
    return _grouped(rng, f"from {table} x where {test}{rng.choice(('', f' and {other}', f' or {other}'))}", ("x.code",))


def _test(rng: random.Random) -> str:
    few = rng.choices(("0", "1", "2", "3"), k=rng.choice((1, 2, 3)))
    numbers, alone = ",".join(few), ", ".join(f"({n})" for n in few)
    choices: list[Callable[[], str]] = [
        lambda: f"x.code = any ('{{{numbers}}}')",
        lambda: f"x.code <> all ('{{{numbers}}}'::int[])",
        lambda: f"x.code {rng.choice(('<', '>=', '<>'))} any (array[{numbers}])",
        lambda: f"x.code {rng.choice(('>', '<='))} all (array[{numbers}])",
        lambda: f"x.code {rng.choice(('', 'not '))}in (values {alone})",
        lambda: f"x.code {rng.choice(('', 'not '))}in (select unnest(array[{numbers}]))",
        lambda: f"x.code in (select unnest(array[{numbers}, null]))",
        lambda: f"x.code {rng.choice(('', 'not '))}in (select generate_series({few[0]}, {few[-1]}))",
        lambda: f"x.code = any (array[{numbers}, null])",
    ]
    return rng.choice(choices)()


# --- around a release --------------------------------------------------------------------------------------------


def _spine(_: World, rng: random.Random) -> str:
    """Groups beside rows that are made of nothing, so that none is missing."""
    rows = rng.choice(
        ("generate_series(0, 3) as d(k)", "(values (0), (2), (7)) as d(k)", "unnest(array[0, 1]) as d(k)")
    )
    inner = f"(select code as k, {_asked(rng, 'code')} as n from {rng.choice('pe')} group by code) q"
    how = rng.choice(("left join", "right join", "full join", "join"))
    return f"select d.k as g, coalesce(q.n, 0) as a from {rows} {how} {inner} on q.k = d.k"


def _different(world: World, rng: random.Random) -> str:
    table, units = rng.choice("pe"), ", ".join(units_of(world))
    if rng.random() < 0.4:
        is_first = rng.random() < 0.4 and limit_or(world.tables[table].rows_per_unit, 1) > 1  # else every row is
        return _first(table, units, rng) if is_first else _common(world, rng)
    if rng.random() < 0.4:
        rows = rng.choice((f"select distinct {units}, code from {table}",
                           f"select {units}, code from p union select {units}, code from e",
                           f"select {units}, code from e union all select {units}, code from p"))  # fmt: skip
        return _grouped(rng, f"from ({rows}) q", ("code",))
    columns = rng.choice(("code as k", "code as k, code > 1 as l", "code is null as k", "coalesce(code, 5) as k"))
    where = rng.choice(("", " where code > 0", " where code = any ('{0,1}')"))
    if rng.random() < 0.3:
        return f"select count(*) as a, coalesce(sum(k), 0) as b from (select distinct code as k from {table}{where}) q"
    return f"select distinct {columns} from {table}{where}"


def _common(world: World, rng: random.Random) -> str:
    """Units that are, or are not, among those of another sub-select; composite ones are refused."""
    units = ", ".join(units_of(world))
    sides = [f"select {units} from {rng.choice('pe')}{rng.choice(('', ' where code > 0'))}" for _ in range(3)]
    if rng.random() < 0.3:
        sides[1] = f"select distinct {units} from {rng.choice('pe')} where code <> 1"
    rows = f"{sides[0]} {rng.choice(('intersect', 'except'))} {sides[1]}"
    if rng.random() < 0.2:
        rows = rng.choice((f"{rows} intersect {sides[2]}", f"({rows}) except {sides[2]}"))
    if rng.random() < 0.4:
        return f"select count(*) as a from ({rows}) q"
    return _grouped(rng, f"from ({rows}) q join {rng.choice('pe')} x using ({units})", ("x.code",))


def _first(table: str, units: str, rng: random.Random) -> str:
    """The first row of each unit, by all that is shown of it."""
    end = rng.choice(("", " desc nulls last", " nulls first"))
    rows = f"select distinct on ({units}) {units}, code from {table} order by {units}, code{end}"
    return _grouped(rng, f"from ({rows}) q", ("code",))


# --- what an SQL engine says -------------------------------------------------------------------------------------


class Tables(Shop):
    """The units and codes of a world's tables as an SQL engine has them, without rows that are nobody's."""

    @classmethod
    def of(cls, world: World) -> Tables:
        connection = duckdb.connect(config={"threads": 1})
        connection.execute("create schema public")
        for name in ("s", "p", "e"):
            names = ("code", "region") if name == "s" else (*units_of(world), "code")
            places = [[c.name for c in world.tables[name].columns].index(n) for n in names]
            kinds = [world.engine_types[name, n].partition(" ")[0] for n in names]
            declared = ", ".join(f"{n} {kind}" for n, kind in zip(names, kinds, strict=True))
            connection.execute(f"create table public.{name} ({declared})")
            stored = world.data[name]
            for row, owner in zip(stored.rows, stored.owners, strict=True):
                if name == "s" or owner != NOBODY:
                    marks = ", ".join("?" for _ in names)
                    connection.execute(f"insert into public.{name} values ({marks})", [row[p] for p in places])
        connection.execute("set search_path = 'public'")
        return cls(world, connection)

    def expected(self, query: str) -> Answer:
        return super().expected(_SERIES.sub(r"select unnest(\1)", _ARRAY.sub(r"[\1]::int[]", query)))
