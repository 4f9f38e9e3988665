"""The shop of the cases in DuckDB and in PostgreSQL: its own rows, odd ones, and nothing but extreme values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import duckdb
import psycopg

from proxy.analysis.analyse import Lowered
from proxy.analysis.keys import PrivateKey
from proxy.engines.duckdb_open import set_optimizer
from proxy.errors import HushError
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.sets.sets import SetsPlan
from proxy.plan.sql.salting import spelled
from proxy.policy.model import NotGiven, Policy, Unknown, WrittenBound
from proxy.sql.render.dialect import Dialect
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sql.render.postgres.dialect import POSTGRES
from proxy.sql.render.spark.dialect import KEPT_KEYS
from proxy.sqltypes import SqlType
from tests.e2e import shop_data
from tests.postgres_server import private_server
from tests.unit.engines.extremes import IN_DUCKDB, IN_POSTGRES, insertion
from tests.unit.engines.odd_rows import odd_rows
from tests.unit.sql import corpus
from tests.unit.sql.corpus import Case

Client = psycopg.Connection[tuple[object, ...]]
Rows = list[tuple[object, ...]]


def policy(*, is_tight: bool = False) -> Policy:
    """The policy of the cases, its relations without a schema.

    is_tight: rows and unlisted keys have to be cut, and each column may be NULL.
    """
    served = corpus.policy()
    tables = {name: replace(table, relation=table.relation[-1:]) for name, table in served.tables.items()}
    for name, table in tables.items() if is_tight else ():
        rows = NotGiven() if table.is_public or table.unit_unique else WrittenBound(3)
        columns = tuple(replace(c, nullable=True) for c in table.columns)
        tables[name] = replace(table, columns=columns, keys_per_unit=1, rows_per_unit=rows)
    return replace(served, tables=tables)


def unbounded(served: Policy) -> Policy:
    """The same with nothing known about any column."""
    tables = {
        name: replace(t, columns=tuple(replace(c, domain=Unknown(), nullable=True) for c in t.columns))
        for name, t in served.tables.items()
    }
    return replace(served, tables=tables)


def limited(served: Policy) -> Policy:
    """The same, as a start of the proxy finds numeric columns that say how many digits they have."""
    tables = {
        name: replace(t, columns=tuple(replace(c, limited_digits=c.type is SqlType.NUMERIC) for c in t.columns))
        for name, t in served.tables.items()
    }
    return replace(served, tables=tables)


@dataclass(frozen=True, slots=True)
class Stage:
    """One statement. private: columns of keys, in the vector's rows, whose values it takes as parameters."""

    sql: str
    private: tuple[int, ...]


def statements(case: Case, served: Policy, dialect: Dialect, lowered: Lowered) -> list[list[Stage]]:
    """The stages of each release for an engine; none if the statement is refused."""
    try:
        plans = corpus.plan(case, served, corpus.setting_of(served, dialect, lowered))
    except HushError:
        return []
    return [_stages(one) for plan in plans for one in (plan.plans if isinstance(plan, SetsPlan) else (plan,))]


def _stages(plan: ReleasePlan) -> list[Stage]:
    private = tuple(1 + n for n, k in enumerate(plan.analysed.keys) if isinstance(k, PrivateKey))
    return [Stage(sql, private if "$1" in sql or KEPT_KEYS in sql else ()) for sql in plan.stages]


def released(stage: Stage, vector: Rows) -> list[list[object]]:
    """Some private keys, as if they had been kept, column by column."""
    keys = sorted({tuple(row[n] for n in stage.private) for row in vector}, key=repr)[:40]
    return [list(column) for column in zip(*keys, strict=True)] if keys else [[] for _ in stage.private]


class TwoEngines:
    """Both databases, open."""

    def __init__(self, folder: Path) -> None:
        path = folder / "shop.duckdb"
        shop_data.write_shop(path)
        self._duckdb = duckdb.connect(str(path), config={"threads": 1})
        self._odd_duckdb, self._extreme_duckdb = (duckdb.connect(config={"threads": 1}) for _ in range(2))
        for made in (self._odd_duckdb, self._extreme_duckdb):
            made.execute(shop_data.CREATE)
        for file in (self._duckdb, self._odd_duckdb, self._extreme_duckdb):
            file.execute("set TimeZone = 'UTC'")
            set_optimizer(file)
        server = private_server()
        server.create("same", shop_data.POSTGRES)
        server.create("odd", shop_data.POSTGRES)
        server.create("extreme", shop_data.POSTGRES.replace("decimal(12,2)", "numeric"))
        server.create("digits", shop_data.POSTGRES.replace("decimal(12,2)", "numeric(300,150)"))
        self._postgres, self._extreme, self._digits, self._odd = (
            psycopg.connect(server.dsn(n), autocommit=True) for n in ("same", "extreme", "digits", "odd")
        )
        shop_data.fill_postgres(self._postgres)
        self._fill_with_extremes()
        for table, rows in odd_rows():
            shop_data.insert(self._odd_duckdb, table, list(rows))
        shop_data.copy_rows(self._odd, odd_rows())
        for client in (self._postgres, self._extreme, self._digits, self._odd):
            client.execute("set search_path = pg_catalog")
            client.execute("set TimeZone = 'UTC'")

    def close(self) -> None:
        for client in (self._duckdb, self._odd_duckdb, self._extreme_duckdb):
            client.close()
        for other in (self._postgres, self._odd, self._extreme, self._digits):
            other.close()

    def of_duckdb(self, stage: Stage, vector: Rows, *, is_odd: bool = False) -> Rows:
        client = self._odd_duckdb if is_odd else self._duckdb
        return comparable(client.execute(stage.sql, released(stage, vector)).fetchall())

    def of_postgres(self, stage: Stage, vector: Rows, *, is_odd: bool = False) -> Rows:
        client = self._odd if is_odd else self._postgres
        return comparable(psycopg.RawCursor(client).execute(stage.sql, released(stage, vector)).fetchall())

    def of_extremes(self, stage: Stage, vector: Rows, dialect: Dialect, *, is_limited: bool = False) -> Rows:
        """is_limited: of numerics that say how many digits they have. Raises the engine's error."""
        given = released(stage, vector)
        if dialect is DUCKDB:
            return self._extreme_duckdb.execute(stage.sql, given).fetchall()
        client = self._digits if is_limited else self._extreme
        return psycopg.RawCursor(client).execute(stage.sql, given).fetchall()

    def spelled(self, values: Sequence[str], kind: SqlType) -> tuple[list[str], list[str]]:
        """Texts of values in a salted hash, of each engine."""
        asked = (f"SELECT {spelled('x', kind, d)} FROM (SELECT unnest($1::text[])::{d.types[kind]} AS x) AS v"
                 for d in (DUCKDB, POSTGRES))  # fmt: skip
        ours = self._duckdb.execute(next(asked), [list(values)]).fetchall()
        others = [v.replace("(BC) 03:04:05.6", "03:04:05.6 BC").replace("(BC)", "BC") for v in values]
        theirs = psycopg.RawCursor(self._postgres).execute(next(asked), [others]).fetchall()
        return [str(row[0]) for row in ours], [str(row[0]) for row in theirs]

    def _fill_with_extremes(self) -> None:
        for name, _ in shop_data.rows_of_tables():
            for client in (self._extreme, self._digits):
                columns = client.execute(
                    "select attname, format_type(atttypid, atttypmod) from pg_attribute"
                    " where attrelid = %s::regclass and attnum > 0 order by attnum",
                    [name],
                ).fetchall()
                named = [(str(column), str(kind)) for column, kind in columns]
                client.execute(insertion(name, named, IN_POSTGRES).encode())
            described = self._extreme_duckdb.execute(f"describe {name}").fetchall()
            named = [(column, kind.lower()) for column, kind, *_ in described]
            self._extreme_duckdb.execute(insertion(name, named, IN_DUCKDB))


def comparable(rows: Sequence[tuple[object, ...]]) -> Rows:
    return sorted((tuple(map(_comparable, row)) for row in rows), key=repr)


def _comparable(value: object) -> object:
    match value:
        case Decimal():
            return int(value)
        case float() if math.isnan(value):
            return "NaN"
        case _:
            return value
