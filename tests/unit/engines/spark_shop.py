"""The shop of the cases in Parquet, for both DuckDB and a Spark server: its own rows, odd and extreme ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb

from proxy.engines.duckdb_open import set_optimizer
from proxy.policy.model import Policy
from proxy.sql.render.spark.dialect import KEPT_KEYS
from tests.e2e import shop_data
from tests.spark_client import Client
from tests.unit.engines.extremes import IN_DUCKDB, insertion
from tests.unit.engines.odd_rows import odd_rows
from tests.unit.engines.two_engines import Rows, Stage, comparable, released

_TABLES = ("users", "orders", "items", "stores", 'Odd "Table')
_FINITE = {kind: texts.replace("'infinity' '-infinity' ", "") for kind, texts in IN_DUCKDB.items()}  # Spark has none


def write_parquet(folder: Path, connection: duckdb.DuckDBPyConnection) -> None:
    """A file for each table of the shop."""
    for name in _TABLES:
        quoted = '"' + name.replace('"', '""') + '"'
        connection.execute(f"copy {quoted} to '{folder / file_of(name)}' (format parquet)")


def in_parquet(served: Policy, folder: Path) -> Policy:
    """A policy of the cases whose tables are those files."""
    return replace(served, tables={
        name: replace(table, relation=("parquet", str(folder / file_of(table.relation[-1]))))
        for name, table in served.tables.items()
    })  # fmt: skip


def file_of(table: str) -> str:
    return f"{table.replace(' ', '_').replace(chr(34), '')}.parquet"


class SparkShop:
    """The same rows on both engines."""

    def __init__(self, folder: Path, heavy: tuple[int, float] | None = None) -> None:
        """heavy: so many orders of one person, of such an amount, among the shop's own rows, which are all there is."""
        self.folders = {name: folder / name for name in (("own",) if heavy else ("own", "odd", "extreme"))}
        self._duckdb: dict[str, duckdb.DuckDBPyConnection] = {}
        for name, made in self.folders.items():
            made.mkdir()
            self._duckdb[name] = connection = duckdb.connect(config={"threads": 1})
            connection.execute("set TimeZone = 'UTC'")
            connection.execute(shop_data.CREATE)
            set_optimizer(connection)
            if name == "extreme":
                self._fill_with_extremes(connection)
            else:
                for table, rows in odd_rows() if name == "odd" else shop_data.rows_of_tables():
                    shop_data.insert(connection, table, list(rows))
            if heavy:
                connection.execute(
                    "insert into orders select 1000000 + range, 7, 1 + range % 4, $2, 'paid', '2024-05-05', 'x'"
                    " from range($1)",
                    list(heavy),
                )
            write_parquet(made, connection)
        self._spark = Client()

    def close(self) -> None:
        for connection in self._duckdb.values():
            connection.close()
        self._spark.close()

    def of_duckdb(self, stage: Stage, vector: Rows, rows: str) -> Rows:
        return comparable(self._duckdb[rows].execute(stage.sql, released(stage, vector)).fetchall())

    def of_spark(self, stage: Stage, vector: Rows) -> Rows:
        private = stage.private if KEPT_KEYS in stage.sql else ()
        return comparable(self._spark.rows(stage.sql, released(Stage(stage.sql, private), vector)))

    def _fill_with_extremes(self, connection: duckdb.DuckDBPyConnection) -> None:
        for name, _ in shop_data.rows_of_tables():
            described = connection.execute(f"describe {name}").fetchall()
            named = [(str(column), str(kind).lower()) for column, kind, *_ in described]
            connection.execute(insertion(name, named, _FINITE))


def differences(shop: SparkShop, ours: list[list[Stage]], theirs: list[list[Stage]], rows: str) -> Iterator[str]:
    """Statements of which the two engines give other rows."""
    for mine, others in zip(ours, theirs, strict=True):
        vector: Rows = []
        for one, other in zip(mine, others, strict=True):
            found = shop.of_duckdb(one, vector, rows)
            if found != shop.of_spark(other, vector):
                yield other.sql
            vector = vector or found
