"""CSV and Parquet files become tables once, with the policy's columns and types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from proxy.engines.base import Cancellation
from proxy.engines.duckdb import DuckDBEngine
from proxy.engines.duckdb_facts import accepts
from proxy.engines.duckdb_files import _CSV_TYPES
from proxy.errors import ConfigError
from proxy.plan.charge import Reserved
from proxy.policy.model import Column, DataFiles, Limits, Table, UnitColumns
from proxy.sql.render.dialect import text_literal
from proxy.sqltypes import SqlType
from tests.unit.engines.make import first_stage, paying, policy

Pay = Callable[[str], Reserved]

PEOPLE = Table(
    name="people",
    relation=("census", "people"),
    ownership=UnitColumns(("id",)),
    columns=(
        Column(name="id", type=SqlType.INT4, key=True),
        Column(name="income", type=SqlType.NUMERIC),
        Column(name="born", type=SqlType.DATE),
        Column(name="seen", type=SqlType.TIMESTAMPTZ),
        Column(name="note", type=SqlType.TEXT),
        Column(name="ok", type=SqlType.BOOL),
    ),
)
CSV = 'id,unlisted,income,born,seen,note,ok\n1,x,10.5,2000-02-29,2026-01-01 12:00:00,"a, b",true\n2,y,,,,"",f\n'


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Pay:
    return paying(tmp_path_factory.mktemp("ledger") / "state")


@contextmanager
def serving(path: Path, table: Table = PEOPLE, limits: Limits | None = None) -> Iterator[DuckDBEngine]:
    served = policy(DataFiles(((table.name, str(path)),)), table, limits=limits, time_zone="Europe/Paris")
    engine = DuckDBEngine(served, path.parent / "spill")
    try:
        engine.check_facts(served)
        yield engine
    finally:
        engine.close()


def rows(engine: DuckDBEngine, reserved: Reserved) -> tuple[tuple[object, ...], ...]:
    return first_stage(engine, reserved, timeout_s=60, cancellation=Cancellation()).rows


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_files_are_loaded_with_the_policys_columns(tmp_path: Path, pay: Pay, ending: str) -> None:
    path = tmp_path / f"it's people{ending}"
    plain = tmp_path / "plain.csv"
    plain.write_text(CSV)
    if ending == ".csv":
        plain.rename(path)
    else:
        kind = "format parquet" if ending == ".parquet" else "format csv, compression gzip"
        types = "{'income': 'decimal(12, 2)', 'id': 'int', 'born': 'date', 'seen': 'timestamptz', 'ok': 'bool'}"
        with duckdb.connect() as connection:
            connection.execute("set TimeZone = 'Europe/Paris'")
            source = f"read_csv({text_literal(str(plain))}, types = {types})"
            connection.execute(f"copy (from {source}) to {text_literal(str(path))} ({kind})")
    with serving(path) as engine:
        path.unlink()  # read once
        sql = "select id, income, born, epoch_ms(seen), note, ok from census.people order by id"
        first, second = rows(engine, pay(sql))
        noon_in_paris = int(datetime(2026, 1, 1, 11, tzinfo=UTC).timestamp() * 1000)
        assert first == (1, Decimal("10.5"), date(2000, 2, 29), noon_in_paris, "a, b", True)
        assert second[:4] == (2, None, None, None)
        assert second[5] is False


def test_the_census_loads_whole(adult_csv: Path, tmp_path: Path, pay: Pay) -> None:
    names = ("age", "final_weight", "capital_gain")
    columns = (*(Column(name=n, type=SqlType.INT4) for n in names), Column(name="class", type=SqlType.TEXT))
    adult = Table(name="adult", relation=("adult",), ownership=UnitColumns(("final_weight",)), columns=columns)
    served = policy(DataFiles((("adult", str(adult_csv)),)), adult)
    engine = DuckDBEngine(served, tmp_path / "spill")
    engine.check_facts(served)
    sql = "select count(*), count(*) filter (age >= 40), min(age), max(age), count(distinct class) from adult"
    assert rows(engine, pay(sql)) == ((32561, 14237, 17, 90, 2),)
    engine.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CSV.replace("10.5", "alice-secret"), r"not of the policy's type in people\.income \(numeric\)$"),
        (
            CSV.replace("2000-02-29", "alice-secret").replace("\n1,", "\nalice-secret,"),
            r"in people\.id \(integer\), people\.born \(date\)$",
        ),
        (CSV.replace("income", "alice"), r"has no column for people\.income$"),
        ("", "no column for|cannot be read"),
    ],
)
def test_a_wrong_csv_file_is_described_without_its_values(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message) as refused, serving(path):
        pass
    assert "alice-secret" not in refused.value.text()
    assert refused.value.__context__ is None


def test_a_csv_file_that_breaks_off_is_described_without_its_values(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    good = "1,x,10.5,2000-02-29,2026-01-01 12:00:00,n,true\n" * 30_000
    path.write_text("id,unlisted,income,born,seen,note,ok\n" + good + "1,alice-secret\n")
    with pytest.raises(ConfigError, match="cannot be read as CSV") as refused, serving(path):
        pass
    assert "alice-secret" not in refused.value.text()
    assert refused.value.__context__ is None


def test_a_file_that_is_no_parquet_is_described(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    path.write_text(CSV)
    with pytest.raises(ConfigError, match="cannot be read; is it what its name says"), serving(path):
        pass


def test_a_parquet_file_that_is_damaged_inside_is_described(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (select i::int as id, i::decimal(12, 2) as income, date '2000-01-01' as born, now() as seen,"
            f" md5(i::varchar) as note, true as ok from range(50000) t(i)) to '{path}' (format parquet)"
        )
    content = bytearray(path.read_bytes())
    content[4:3000] = b"\xff" * 2996  # the first page and its header
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be read as Parquet"), serving(path):
        pass


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"people\.csv of table people does not exist"),
        serving(tmp_path / "people.csv"),
    ):
        pass
    (tmp_path / "people.csv").mkdir()
    with (
        pytest.raises(ConfigError, match=r"people\.csv of table people is not a file"),
        serving(tmp_path / "people.csv"),
    ):
        pass


def test_a_file_larger_than_the_memory_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (select i::int as id, i::decimal(12, 2) as income, date '2000-01-01' as born, now() as seen,"
            f" md5(i::varchar) || md5((i + 1)::varchar) as note, true as ok from range(600000) t(i))"
            f" to '{path}' (format parquet)"
        )
    limits = Limits(engine_memory="20MB", engine_threads=1)
    with pytest.raises(ConfigError, match=r"does not fit into limits\.engine_memory"), serving(path, limits=limits):
        pass


def test_csv_types_are_ones_that_the_policys_types_accept() -> None:
    with duckdb.connect() as connection:
        for wanted in SqlType:
            connection.execute(f"create or replace table t (x {_CSV_TYPES[wanted]})")
            (described,) = connection.execute("describe t").fetchall()
            assert accepts(wanted, str(described[1]))
