"""DuckDB computes what was reserved and lets nothing else through."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from proxy.engines.base import Cancellation, Engine, EngineStopped
from proxy.engines.duckdb import DuckDBEngine
from proxy.errors import ConfigError
from proxy.plan.charge import Reserved
from proxy.policy.model import Column, DuckDBFile, Limits, PostgresSource
from proxy.release.raw import KeptKeys, RawResult
from proxy.sqltypes import SqlType
from tests.unit.engines.make import CITIES, USERS, database, first_stage, paying, policy, renamed, staged

Pay = Callable[..., Reserved]
Run = Callable[[str], RawResult]


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Pay:
    return paying(tmp_path_factory.mktemp("ledger") / "state")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engine")
    (folder / "secret.csv").write_text("name\nalice-secret\n")
    return folder


@pytest.fixture(scope="module")
def engine(data: Path) -> Iterator[DuckDBEngine]:
    source = database(data / "shop.duckdb")
    opened = DuckDBEngine(policy(source, time_zone="Europe/Paris"), data / "spill")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def run(engine: Engine, pay: Pay) -> Run:
    return lambda sql: first_stage(engine, pay(sql), timeout_s=60, cancellation=Cancellation())


# --- results --------------------------------------------------------------------------------------


def test_rows_come_back_as_tuples_of_python_integers(run: Run) -> None:
    sql = (
        "select city, count(*), sum(age::hugeint * 100000000000000000000), sum(age)::decimal(38, 0) from main.users"
        " group by city order by city nulls last"
    )
    result = run(sql)
    assert result.columns == 4
    assert [row[:3] for row in result.rows] == [
        ("Oslo", 2, 90 * 10**20),
        ("Paris", 1, 30 * 10**20),
        (None, 1, 10**20),
    ]
    assert type(result.rows[0][2]) is int
    assert int(str(result.rows[0][3])) == 90


def test_no_rows_still_have_columns(run: Run) -> None:
    assert run("select age, city from users where false") == RawResult(2, ())


def test_a_raw_result_does_not_print_its_rows(run: Run) -> None:
    assert "Paris" not in repr(run("select city from users"))


def test_time_zone_is_the_policys(run: Run) -> None:
    assert run("select extract(hour from timestamptz '2026-01-01 00:00:00+00')").rows == ((1,),)


def test_many_threads_at_once_get_their_own_answers(run: Run) -> None:
    answers: dict[int, tuple[tuple[object, ...], ...]] = {}

    def work(number: int) -> None:
        answers[number] = run(f"select {number}, count(*) from users").rows

    threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: ((n, 4),) for n in range(20)}


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "select cast(city as integer) from users",
        "select error(secret) from users",
        "select * from nowhere",
        "select (select age from users)",
        "this is not sql",
    ],
)
def test_engine_words_never_leave(run: Run, sql: str) -> None:
    with pytest.raises(EngineStopped) as failed:
        run(sql)
    error = failed.value
    chain = "".join(traceback.format_exception(error)) + repr(error.__cause__) + repr(error.__context__)
    assert "Paris" not in chain + error.text()
    assert error.__context__ is None
    assert error.__cause__ is None
    assert error.exception_name.endswith(("Exception", "Error"))
    assert error.text() == EngineStopped("x").text()


def test_one_text_gives_its_rows_again_and_again_and_to_many(engine: DuckDBEngine, pay: Pay) -> None:
    sql = "select city, count(*) from users group by city order by 1"
    reserved, found = pay(sql), list[RawResult]()

    def ask_often() -> None:
        found.extend(first_stage(engine, reserved, timeout_s=60, cancellation=Cancellation()) for _ in range(20))

    threads = [threading.Thread(target=ask_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert len(set(found)) == 1
    assert found[0].rows


def test_few_texts_are_kept(engine: DuckDBEngine, run: Run) -> None:
    for number in range(140):
        assert run(f"select {number}").rows == ((number,),)
    assert len(engine._parsed) == 128
    assert run("select 0").rows == ((0,),)


@pytest.mark.parametrize(
    "sql",
    [
        "select 1; select 2",
        "",
        "begin",
        "insert into memory.t values (1)",
        "create table memory.t (i integer)",
        "explain select 1",
        "pragma database_list",
        "use memory",
        "attach ':memory:' as other",
        "create function f(x) as x",
        "detach source",
        "checkpoint",
        "call enable_logging()",
    ],
)
def test_only_one_select_is_run(run: Run, sql: str) -> None:
    with pytest.raises(EngineStopped) as failed:
        run(sql)
    assert failed.value.exception_name == "NotOneSelect"


LOCKED_OUT = (
    "select * from read_csv('{root}/secret.csv')",
    "select * from '{root}/secret.csv'",
    "select * from read_text('{root}/secret.csv')",
    "select * from read_blob('{root}/secret.csv')",
    "select * from glob('{root}/*')",
    "copy users to '{root}/out.csv'",
    "copy (select 1) to '{root}/out.csv'",
    "export database '{root}/out'",
    "attach '{root}/other.duckdb' as other",
    "install httpfs",
    "load httpfs",
    "set threads = 1",
    "set global enable_external_access = true",
    "set session TimeZone = 'UTC'",
    "reset lock_configuration",
    "pragma enable_profiling",
    "create persistent secret (type s3)",
    "create table source.main.mine (i integer)",
    "delete from users",
)


@pytest.mark.parametrize("template", LOCKED_OUT)
def test_files_settings_extensions_and_the_data_are_out_of_reach(
    engine: DuckDBEngine, data: Path, run: Run, template: str
) -> None:
    """Even of SQL that is no SELECT and would not get here: tried on the engine's own connection."""
    sql = template.format(root=data)
    with pytest.raises(EngineStopped):
        run(sql)
    with closing(engine._cursor()) as cursor, pytest.raises(duckdb.Error):
        cursor.execute(sql)
    assert sorted(path.name for path in data.iterdir()) == ["secret.csv", "shop.duckdb", "spill"]
    assert run("select count(*) from users").rows == ((4,),)


# --- stages ---------------------------------------------------------------------------------------


def test_a_later_stage_is_given_the_keys_that_were_kept(engine: Engine, pay: Pay) -> None:
    paid = pay("select 1", "select unnest($1::varchar[]), unnest($2::bigint[])", "select 3")
    with staged(engine, paid, timeout_s=60, cancellation=Cancellation()) as stages:
        assert stages.rows(0, KeptKeys()).rows == ((1,),)
        assert stages.rows(1, KeptKeys((("Oslo", None, "O'x"), (1, None, 2)))).rows == (
            ("Oslo", 1),
            (None, None),
            ("O'x", 2),
        )
        assert stages.rows(2, KeptKeys()).rows == ((3,),)
    with staged(engine, pay("select 4"), timeout_s=60, cancellation=Cancellation()) as stages:
        assert stages.rows(0, KeptKeys()).rows == ((4,),)


def test_all_stages_of_a_charge_see_one_version_of_the_data(tmp_path: Path, pay: Pay) -> None:
    engine = DuckDBEngine(policy(database(tmp_path / "shop.duckdb")), tmp_path / "spill")
    with closing(engine._connection.cursor()) as writer:
        writer.execute("create schema memory.moving")
        writer.execute("create table memory.moving.t as select 1 as x")
        paid = pay("select sum(x) from memory.moving.t", "select count(*) from memory.moving.t")
        with staged(engine, paid, timeout_s=60, cancellation=Cancellation()) as stages:
            assert stages.rows(0, KeptKeys()).rows == ((1,),)
            writer.execute("insert into memory.moving.t values (2)")
            assert stages.rows(1, KeptKeys()).rows == ((1,),)
        with staged(engine, paid, timeout_s=60, cancellation=Cancellation()) as stages:
            assert stages.rows(1, KeptKeys()).rows == ((2,),)
    engine.close()


def test_a_stage_that_fails_ends_the_charge_and_its_connection(engine: DuckDBEngine, pay: Pay, run: Run) -> None:
    paid = pay("select error('secret')", "select 2")
    running = staged(engine, paid, timeout_s=60, cancellation=Cancellation())
    with pytest.raises(EngineStopped) as failed, running as stages:
        stages.rows(0, KeptKeys())
    assert "secret" not in "".join(traceback.format_exception(failed.value))
    assert run("select 5").rows == ((5,),)


# --- public tables --------------------------------------------------------------------------------


def test_public_rows_have_the_policys_columns(engine: Engine) -> None:
    assert sorted(engine.public_rows(CITIES), key=str) == [("Oslo",), ("Paris",)]


def test_public_times_with_zone_are_told_as_text(tmp_path: Path) -> None:
    source = database(tmp_path / "shop.duckdb", "alter table cities add column founded timestamptz",
                      "update cities set founded = '2024-02-03 04:05:06+01' where city = 'Oslo'")  # fmt: skip
    table = renamed(CITIES, columns=(Column(name="city", type=SqlType.TEXT),
                                     Column(name="founded", type=SqlType.TIMESTAMPTZ)))  # fmt: skip
    with closing(DuckDBEngine(policy(source), tmp_path / "spill")) as engine:
        found: dict[object, object] = dict(engine.public_rows(table))  # type: ignore[arg-type]  # two columns
    assert found["Paris"] is None
    assert datetime.fromisoformat(str(found["Oslo"])) == datetime(2024, 2, 3, 3, 5, 6, tzinfo=UTC)


def test_private_rows_are_not_given_out(engine: Engine) -> None:
    with pytest.raises(ValueError, match="private"):
        list(engine.public_rows(USERS))


def test_a_public_table_that_is_missing_is_the_admins_problem(engine: Engine) -> None:
    with pytest.raises(ConfigError, match="public table cities cannot be read"):
        list(engine.public_rows(renamed(CITIES, relation=("elsewhere",))))


# --- opening --------------------------------------------------------------------------------------


def test_a_missing_data_file_is_named(tmp_path: Path) -> None:
    source = database(tmp_path / "shop.duckdb")
    (tmp_path / "shop.duckdb").unlink()
    with pytest.raises(ConfigError, match=r"shop\.duckdb does not exist"):
        DuckDBEngine(policy(source), tmp_path / "spill")
    (tmp_path / "shop.duckdb").mkdir()
    with pytest.raises(ConfigError, match=r"shop\.duckdb is not a file"):
        DuckDBEngine(policy(source), tmp_path / "spill")


def test_a_data_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    source = database(tmp_path / "shop.duckdb")
    (tmp_path / "shop.duckdb").write_text("alice-secret")
    with pytest.raises(ConfigError, match="cannot be opened as a DuckDB database"):
        DuckDBEngine(policy(source), tmp_path / "spill")


def test_a_replaced_data_file_is_seen_by_a_new_engine(tmp_path: Path, pay: Pay) -> None:
    old = DuckDBEngine(policy(database(tmp_path / "shop.duckdb")), tmp_path / "spill old")
    database(tmp_path / "next.duckdb", "delete from users where user_id = 1")
    (tmp_path / "next.duckdb").replace(tmp_path / "shop.duckdb")
    new = DuckDBEngine(policy(DuckDBFile(str(tmp_path / "shop.duckdb"))), tmp_path / "spill new")
    counts = [
        first_stage(e, pay("select count(*) from users"), timeout_s=60, cancellation=Cancellation()) for e in (old, new)
    ]
    assert [c.rows for c in counts] == [((4,),), ((3,),)]
    old.close()
    new.close()


def test_threads_are_all_cores_unless_limited(tmp_path: Path, pay: Pay) -> None:
    source = database(tmp_path / "shop.duckdb")
    found = []
    for number, threads in enumerate((0, 3)):
        limits = Limits(engine_memory="1GB", engine_threads=threads)
        opened = DuckDBEngine(policy(source, limits=limits), tmp_path / f"spill {number}")
        sql = pay(f"select current_setting('threads') as threads_{number}")
        found.append(first_stage(opened, sql, timeout_s=60, cancellation=Cancellation()).rows[0][0])
        opened.close()
    with duckdb.connect() as unlimited:
        assert found == [unlimited.execute("select current_setting('threads')").fetchall()[0][0], 3]


@pytest.mark.parametrize("limits", [Limits(engine_memory="plenty"), Limits(engine_threads=-1)])
def test_limits_that_duckdb_does_not_know_are_named(tmp_path: Path, limits: Limits) -> None:
    with pytest.raises(ConfigError, match=r"limits\.engine"):
        DuckDBEngine(policy(database(tmp_path / "shop.duckdb"), limits=limits), tmp_path / "spill")


def test_a_time_zone_that_duckdb_does_not_know_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'Mars/Olympus'"):
        DuckDBEngine(policy(database(tmp_path / "shop.duckdb"), time_zone="Mars/Olympus"), tmp_path / "spill")


def test_a_spill_directory_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="temporary files"):
        DuckDBEngine(policy(database(tmp_path / "shop.duckdb")), tmp_path / "file" / "spill")


def test_a_postgres_source_is_not_for_duckdb(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="source is a server"):
        DuckDBEngine(policy(PostgresSource("postgresql://secret")), tmp_path / "spill")
