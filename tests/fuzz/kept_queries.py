"""Random outer joins that keep rows of a public table, and what they should give by the words of SQL itself.

The block's rows, read by the slow definition, and the text that is left for the front must give together what an SQL
engine makes of the client's own statement.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from dataclasses import dataclass

import duckdb

from proxy.analysis.analyse import Lowered
from proxy.plan.release_plan import plan_release
from proxy.sql.algebra.nodes import TRUE, Aggregate, AggregateKind
from proxy.sql.query.block import BoundBlock, Carries
from tests.fuzz.planning import SALT, bind, block_of, context_of, split_query
from tests.fuzz.worlds import NOBODY, World
from tests.oracle.bounded import Oracle
from tests.oracle.scalars import Reading, Row

Answer = Counter[tuple[object, ...]]
_ON = ("", " and x.code > 0", " and s.region = 'north'", " and x.code <> 2 and s.region <> 'south'")
_WHERE = (
    "", "", "s.region <> 'south'", "s.code is not null", "s.code in (0, 1)", "x.code = 1", "s.code = 1 or x.code > 0",
    "x.code is null", "x.code > 0 or x.code is null", "s.region = 'north' and x.code < 3", "not (x.code = 1)",
    "coalesce(x.code, 5) = 5", "x.code = 1 or x.code = 2",
)  # fmt: skip
_AGGREGATES = (
    "count(x.code)", "count(x.code)", "count(*) filter (where x.code = 1)", "count(case when x.code > 1 then 1 end)",
    "coalesce(sum(case when x.code = 1 then 1 else 0 end), 0)", "coalesce(sum(coalesce(x.code, 0)), 0)", "count(*)",
    "count(s.region)", "count(coalesce(x.code, 1))", "count(*) filter (where x.code is null)",
    "coalesce(sum(case when x.code = 1 then 0 else 1 end), 0)", "count(nullif(x.code, s.code))",
    "count(nullif(1, x.code))", "count(*) filter (where x.code = 1 or s.code = 1)",
)  # fmt: skip
_FURTHER = (
    "", "", "", " left join s t on t.code = x.code", " left join s t on t.code = s.code",
    " join s t on t.code = x.code", " join s t on t.code = s.code", " right join s t on t.code = x.code",
)  # fmt: skip
_KEYS = ((), ("s.region",), ("s.code",), ("s.code", "s.region"), ("s.code is null",))


def make_kept_query(world: World, rng: random.Random) -> str:
    """One random outer join of a public table with a private one."""
    private, on = rng.choice("pew"), f"s.code = x.code{rng.choice(_ON)}"
    tables = rng.choice((f"s left join {private} x", f"{private} x right join s", f"s full join {private} x"))
    tables, further = f"{tables} on {on}", rng.choice(_FURTHER)
    keys, asked = rng.choice(_KEYS), rng.choice(_AGGREGATES + ("count(t.region)",) * (4 if further else 0))
    items = [*(f"{k} as g{i}" for i, k in enumerate(keys)), f"{asked} as a"]
    where = rng.choice(_WHERE)
    text = f"select {', '.join(items)} from {tables}{further}{f' where {where}' if where else ''}"
    return f"{text} group by {', '.join(keys)}" if keys else text


@dataclass(slots=True)
class Shop:
    """The tables of a world as an SQL engine has them, without rows that are nobody's."""

    world: World
    connection: duckdb.DuckDBPyConnection

    @classmethod
    def of(cls, world: World) -> Shop:
        connection = duckdb.connect(config={"threads": 1})
        connection.execute("create schema public")
        for name in ("s", "p", "e", "w"):
            stored, place = world.data[name], [c.name for c in world.tables[name].columns].index("code")
            rows = [row for row, o in zip(stored.rows, stored.owners, strict=True) if name == "s" or o != NOBODY]
            connection.execute(f"create table public.{name} (code integer, region varchar)")
            for row in rows:
                connection.execute(
                    f"insert into public.{name} values (?, ?)", [row[place], row[1] if name == "s" else ""]
                )
        connection.execute("set search_path = 'public'")
        return cls(world, connection)

    def expected(self, query: str) -> Answer:
        return Counter(self.connection.execute(query).fetchall())

    def given(self, query: str) -> Answer:
        """What the rest of the statement makes of the exact release. Raises HushError."""
        bound = bind(self.world, query)
        cells = self._cells(bound)
        names = [c.name for c in bound.columns]
        rows = [[(key[c.number] if c.carries is Carries.KEY else cell[c.number]) for c in bound.columns]
                for key, cell in cells.items()]  # fmt: skip
        spelled = ", ".join("(" + ", ".join(map(_spelled, row)) + ")" for row in rows)
        head = ", ".join(f'"{n}"' for n in names)
        relation = f'(values {spelled}) as "hush_r"({head})' if rows else _nothing(bound)
        cut, text = split_query(self.world, query), bound.outer.replace(bound.marker, relation)
        span = block_of(cut).span
        whole = (cut.text[: span.start] + text + cut.text[span.end :]).replace("::pg_catalog.", "::")
        return Counter(self.connection.execute(whole).fetchall())

    def _cells(self, bound: BoundBlock) -> dict[tuple[object, ...], list[int]]:
        """The exact cells of the rows that were found, and of all groups of the public table."""
        plan = plan_release(bound.block, context_of(self.world, Lowered()))
        tables = {
            name: [dict(zip([c.name for c in table.columns], row, strict=True)) for row in self.world.data[name].rows]
            for name, table in self.world.tables.items()
        }
        oracle = Oracle(plan, tables, self.world.privacy.time_zone, SALT)
        aggregates = plan.analysed.owned.block.aggregates
        found: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0] * len(aggregates))
        if not bound.block.keys:
            found[()] = [0] * len(aggregates)
        for key, row in oracle.unbounded_rows():
            cell = found[key]
            for number, aggregate in enumerate(aggregates):
                cell[number] += _counted(oracle, aggregate, row)
        if bound.keeps_groups:
            kinds = [{True, False} if k.type.pg_name == "boolean" else {None, 0, 1, 2, 7} if k.type.is_integer else
                     {None, "north", "south", "twin", "nowhere", "none"} for k in bound.block.keys]  # fmt: skip
            for combination in itertools.product(*kinds):
                found[tuple(combination)]
        return found


def _counted(oracle: Oracle, aggregate: Aggregate, row: Row) -> int:
    """What one row adds to a count or a sum."""
    if not oracle.evaluator.passes(aggregate.where, row):
        return 0
    value = True if aggregate.argument == TRUE else oracle.evaluator.value(aggregate.argument, row, Reading.TEST)
    if aggregate.kind is AggregateKind.SUM:
        return value if isinstance(value, int) else 0
    assert aggregate.kind in (AggregateKind.COUNT, AggregateKind.COUNT_ROWS)
    return int(value is not None)


def _spelled(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return f"'{value}'"
        case _:
            return str(value)


def _nothing(bound: BoundBlock) -> str:
    columns = ", ".join(f'NULL as "{c.name}"' for c in bound.columns)
    return f'(select {columns} where false) as "hush_r"'
