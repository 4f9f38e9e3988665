"""The shop of the cases in DuckDB and in PostgreSQL, and in PostgreSQL once more with nothing but extreme values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import cycle, islice
from pathlib import Path

import duckdb
import psycopg

from proxy.analysis.analyse import Lowered
from proxy.analysis.keys import PrivateKey
from proxy.engines.duckdb_open import set_optimizer
from proxy.errors import HushError
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.salting import spelled
from proxy.plan.sets import SetsPlan
from proxy.policy.model import FromPolicy, NotGiven, Policy, Unknown
from proxy.sql.dialect import DUCKDB, Dialect
from proxy.sql.postgres_dialect import POSTGRES
from proxy.sqltypes import SqlType
from tests.e2e import shop_data
from tests.postgres_server import private_server
from tests.unit.engines.odd_rows import odd_rows
from tests.unit.sql import corpus
from tests.unit.sql.corpus import Case

Client = psycopg.Connection[tuple[object, ...]]
Rows = list[tuple[object, ...]]


#: What is hardest to compute with, type by type; numeric without a scale holds what no double does.
EXTREMES = {
    "integer": "0 1 -1 2147483647 -2147483648",
    "smallint": "0 1 -32768 32767",
    "bigint": "0 1 -1 9223372036854775807 -9223372036854775808",
    "double precision": "0 '-0' 'NaN' 'Infinity' '-Infinity' 1.7976931348623157e308 -1.7976931348623157e308 5e-324"
    " -5e-324 1e-200 1e200 -49.5",
    "real": "'NaN' 'Infinity' 3.4e38 1e-45 1.5",
    "numeric": "0 'NaN' 'Infinity' '-Infinity' 1e400 -1e400 1e-400 1e130000 5.5 0.0000000001",
    "date": "'infinity' '-infinity' '4713-01-01:BC' '5874897-12-31' '2024-02-29' '0001-01-01' '294277-01-01'",
    "timestamp without time zone": "'infinity' '-infinity' '4713-01-01:BC' '294276-12-31:23:59:59.999999' '2024-02-29'",
    "timestamp with time zone": "'infinity' '-infinity' '4713-01-01:BC' '294276-12-31:23:59:59.999999' '2024-02-29'",
    "text": "'' '\\' '%' 'a' repeat('x',20000) 'ß_İ' 'paid' 'free'",
    "boolean": "true false",
}


def policy(*, is_tight: bool = False) -> Policy:
    """The policy of the cases, its relations without a schema. is_tight: rows and unlisted keys have to be cut."""
    served = corpus.policy()
    tables = {name: replace(table, relation=table.relation[-1:]) for name, table in served.tables.items()}
    for name, table in tables.items() if is_tight else ():
        rows = NotGiven() if table.is_public or table.unit_unique else FromPolicy(3)
        tables[name] = replace(table, keys_per_unit=1, rows_per_unit=rows)
    return replace(served, tables=tables)


def unbounded(served: Policy) -> Policy:
    """The same with nothing known about any column."""
    tables = {
        name: replace(t, columns=tuple(replace(c, domain=Unknown(), nullable=True) for c in t.columns))
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
        plans = corpus.plan(case, served, corpus.context_of(served, dialect, lowered))
    except HushError:
        return []
    return [_stages(one) for plan in plans for one in (plan.plans if isinstance(plan, SetsPlan) else (plan,))]


def _stages(plan: ReleasePlan) -> list[Stage]:
    private = tuple(1 + n for n, k in enumerate(plan.analysed.keys) if isinstance(k, PrivateKey))
    return [Stage(sql, private if "$1" in sql else ()) for sql in plan.stages]


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
        self._odd_duckdb = duckdb.connect(config={"threads": 1})
        self._odd_duckdb.execute(shop_data.CREATE)
        for file in (self._duckdb, self._odd_duckdb):
            file.execute("set TimeZone = 'UTC'")
            set_optimizer(file)
        server = private_server()
        server.create("same", shop_data.POSTGRES)
        server.create("odd", shop_data.POSTGRES)
        server.create("extreme", shop_data.POSTGRES.replace("decimal(12,2)", "numeric"))
        self._postgres, self._extreme, self._odd = (
            psycopg.connect(server.dsn(n), autocommit=True) for n in ("same", "extreme", "odd")
        )
        shop_data.fill_postgres(self._postgres)
        self._fill_with_extremes()
        for table, rows in odd_rows():
            shop_data.insert(self._odd_duckdb, table, list(rows))
        shop_data.copy_rows(self._odd, odd_rows())
        for client in (self._postgres, self._extreme, self._odd):
            client.execute("set search_path = pg_catalog")
            client.execute("set TimeZone = 'UTC'")

    def close(self) -> None:
        self._duckdb.close()
        self._postgres.close()
        self._extreme.close()
        self._odd_duckdb.close()
        self._odd.close()

    def of_duckdb(self, stage: Stage, vector: Rows, *, is_odd: bool = False) -> Rows:
        client = self._odd_duckdb if is_odd else self._duckdb
        return _plain(client.execute(stage.sql, released(stage, vector)).fetchall())

    def of_postgres(self, stage: Stage, vector: Rows, *, is_odd: bool = False) -> Rows:
        client = self._odd if is_odd else self._postgres
        return _plain(psycopg.RawCursor(client).execute(stage.sql, released(stage, vector)).fetchall())

    def of_extremes(self, stage: Stage, vector: Rows) -> Rows:
        return psycopg.RawCursor(self._extreme).execute(stage.sql, released(stage, vector)).fetchall()

    def spelled(self, values: Sequence[str], kind: SqlType) -> tuple[list[str], list[str]]:
        """Texts of values in a salted hash, of each engine."""
        asked = (f"SELECT {spelled('x', kind, d)} FROM (SELECT unnest($1::text[])::{d.types[kind]} AS x) AS v"
                 for d in (DUCKDB, POSTGRES))  # fmt: skip
        ours = self._duckdb.execute(next(asked), [list(values)]).fetchall()
        others = [v.replace("(BC) 03:04:05.6", "03:04:05.6 BC").replace("(BC)", "BC") for v in values]
        theirs = psycopg.RawCursor(self._postgres).execute(next(asked), [others]).fetchall()
        return [str(row[0]) for row in ours], [str(row[0]) for row in theirs]

    def _fill_with_extremes(self) -> None:
        """Every value of a column beside many of the others'; a few units have many rows."""
        for name, _ in shop_data.rows_of_tables():
            columns = self._extreme.execute(
                "select attname, format_type(atttypid, null) from pg_attribute"
                " where attrelid = %s::regclass and attnum > 0 order by attnum",
                [name],
            ).fetchall()
            values = [_extremes(name, str(column), str(kind)) for column, kind in columns]
            rows = (f"({', '.join(row)})" for row in islice(zip(*values, strict=False), 180))
            self._extreme.execute(f"insert into {name} values {', '.join(rows)}".encode())


def _extremes(table: str, column: str, kind: str) -> Iterator[str]:
    """A column's values: cycles of different lengths, so that each meets each."""
    if column == "user_id" and table == "users":
        return (str(i) for i in range(200))
    if column in ("user_id", "User", "order_id"):
        return cycle(str(i) for i in (*range(1, 30), 1, 1))
    values = EXTREMES[kind].split()
    texts = ["NULL", *(v.replace(":", " ", 1) if "time" in kind or kind == "date" else v for v in values)]
    length = len(texts) + sum(map(ord, column)) % 5
    return islice(cycle(texts[i % len(texts)] for i in range(length)), 200)


def _plain(rows: Sequence[tuple[object, ...]]) -> Rows:
    return sorted((tuple(map(_comparable, row)) for row in rows), key=repr)


def _comparable(value: object) -> object:
    match value:
        case Decimal():
            return int(value)
        case float() if math.isnan(value):
            return "NaN"
        case _:
            return value
