"""A policy whose dataset starts has facts that its data keep."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from proxy.engines.base import EngineColumn, Facts, JoinFact
from proxy.engines.duckdb import DuckDBEngine
from proxy.engines.duckdb_facts import ACCEPTED, accepts
from proxy.errors import ConfigError
from proxy.policy.model import Column, Table, UnitColumns
from proxy.sqltypes import SqlType
from tests.unit.engines.make import CITIES, ITEMS, ORDERS, USERS, database, policy


def check(folder: Path, *tables: Table, statements: tuple[str, ...] = ()) -> Facts:
    served = policy(database(folder / "shop.duckdb", *statements), *tables)
    with closing(DuckDBEngine(served, folder / "spill")) as engine:
        return engine.check_facts(served)


def test_good_data_give_their_types_and_joins(tmp_path: Path) -> None:
    facts = check(tmp_path)
    assert EngineColumn(table="orders", column="amount", engine_type="DECIMAL(12,2)") in facts.columns
    assert len(facts.columns) == 9
    assert facts.joins == (
        JoinFact(table="users", column="city", ref_table="cities", ref_column="city", is_unique=True),
    )


def test_a_public_table_with_twins_is_no_failure(tmp_path: Path) -> None:
    facts = check(tmp_path, statements=("insert into cities values ('Oslo', 3)",))
    assert [fact.is_unique for fact in facts.joins] == [False]


def test_every_missing_or_wrong_column_is_named_at_once(tmp_path: Path) -> None:
    users = replace(
        USERS,
        columns=(
            *USERS.columns,
            Column(name="nick", type=SqlType.TEXT),
            Column(name="secret", type=SqlType.INT4),
        ),
    )
    with pytest.raises(ConfigError) as refused:
        check(
            tmp_path,
            CITIES,
            users,
            replace(ORDERS, relation=("sales", "order_lines")),
            replace(ITEMS, relation=("a", "b", "c")),
        )
    message = refused.value.message
    for part in (
        "users.nick: the data have no such column",
        "users.secret: is VARCHAR in the data, integer in the policy",
        "table orders: the data have no relation sales.order_lines",
        "table items: write relation as schema.table",
    ):
        assert part in message


@pytest.mark.parametrize(("kind", "is_served"), [("decimal(38, 28)", True), ("decimal(38, 29)", False)])
def test_more_decimals_than_a_whole_number_compares_with_are_refused(
    tmp_path: Path, kind: str, is_served: bool
) -> None:
    columns = (Column(name="id", type=SqlType.INT4, key=True), Column(name="x", type=SqlType.NUMERIC))
    measured = Table(
        name="measured", relation=("measured",), ownership=UnitColumns(("id",)), unit_unique=True, columns=columns
    )
    served = policy(database(tmp_path / "shop.duckdb", f"create table measured (id integer, x {kind})"), measured)
    with closing(DuckDBEngine(served, tmp_path / "spill")) as engine:
        if is_served:
            assert engine.check_facts(served).columns[1].engine_type == "DECIMAL(38,28)"
            return
        with pytest.raises(ConfigError, match=r"measured\.x: is DECIMAL with more than 28 digits after the point"):
            engine.check_facts(served)


def test_declared_facts_are_enforced_not_believed(tmp_path: Path) -> None:
    """unit_unique with two rows of a unit, and a path through a key that is not unique."""
    with pytest.raises(ConfigError) as refused:
        check(
            tmp_path,
            statements=(
                "insert into users values (2, 777, 'Quito', 'x')",
                "insert into sales.orders values (12, 1, 9)",
            ),
        )
    message = refused.value.message
    assert "users.user_id: 'unit_unique' is declared, and a unit has more than one row" in message
    assert "orders.order_id: rows find their unit through this key, and it is not unique" in message
    assert not any(value in refused.value.text() for value in ("777", "Quito", "12"))


def test_joins_that_are_declared_complete_are_looked_at(tmp_path: Path) -> None:
    """Every row meets one; neither a row that meets none nor one without a key is read out."""
    users = replace(USERS, complete_joins=USERS.joins)
    kept = "delete from users where city is null"
    check(tmp_path, users, CITIES, statements=(kept,))
    for number, statement in enumerate((
        "insert into users values (777, 777, 'Nowhere', 'x')", "insert into users values (778, 778, null, 'x')",
    )):  # fmt: skip
        (tmp_path / str(number)).mkdir()
        with pytest.raises(ConfigError) as refused:
            check(tmp_path / str(number), users, CITIES, statements=(kept, statement))
        assert refused.value.message.endswith("users.city: 'complete_joins' names it, and a row meets none of cities")
        assert not any(value in refused.value.text() for value in ("777", "778", "Nowhere"))


def test_rows_of_null_units_and_null_keys_are_no_duplicates(tmp_path: Path) -> None:
    check(tmp_path, statements=("insert into users values (null, 1, 'x', 'y')",))


def test_a_composite_unit_is_unique_as_a_whole(tmp_path: Path) -> None:
    users = replace(USERS, ownership=UnitColumns(("user_id", "city")), joins=())
    check(tmp_path, users, statements=("insert into users values (2, 1, 'Lima', 'y'), (2, 1, null, 'y')",))
    (tmp_path / "shop.duckdb").unlink()
    with pytest.raises(ConfigError, match=r"users.user_id, users.city: 'unit_unique'"):
        check(tmp_path, users, statements=("insert into users values (2, 1, 'Oslo', 'y')",))


@pytest.mark.parametrize(
    ("kind", "engine_type", "first", "twin"),
    [
        (SqlType.NUMERIC, "decimal(38, 2)", "10000000000000000.00", "10000000000000000.01"),
        (SqlType.BPCHAR, "varchar", "'a'", "'a  '"),
        (SqlType.TIMESTAMPTZ, "timestamptz", "'2026-10-25 00:30:00+00'", "'2026-10-25 01:30:00+00'"),
    ],
)
def test_keys_that_private_statements_cannot_tell_apart_are_duplicates(
    tmp_path: Path, kind: SqlType, engine_type: str, first: str, twin: str
) -> None:
    people = Table(
        name="people",
        relation=("people",),
        ownership=UnitColumns(("id",)),
        unit_unique=True,
        columns=(Column(name="id", type=kind, key=True),),
    )
    rows = f"create table people as select unnest([{first}::{engine_type}, {twin}::{engine_type}]) as id"
    served = policy(database(tmp_path / "shop.duckdb", rows), people, time_zone="Europe/Paris")
    engine = DuckDBEngine(served, tmp_path / "spill")
    with closing(engine), pytest.raises(ConfigError, match=r"people\.id: 'unit_unique'"):
        engine.check_facts(served)


def test_a_check_that_cannot_be_made_is_a_failure(tmp_path: Path) -> None:
    """A view over a file that is out of reach has columns and cannot be read."""
    (tmp_path / "users.csv").write_text("user_id,age,city\n1,2,alice-secret\n")
    types = "{'user_id': 'int', 'age': 'int', 'city': 'varchar'}"
    view = f"create view users as select * from read_csv('{tmp_path}/users.csv', columns = {types})"
    with pytest.raises(ConfigError, match=r"whether users \(user_id\) is unique could not be found out") as refused:
        check(tmp_path, CITIES, USERS, statements=("drop table users", view))
    assert refused.value.__context__ is None


def test_every_policy_type_has_engine_types_that_exist() -> None:
    samples = {"DECIMAL": "decimal(10,2)", "ENUM": "enum('a', 'b')"}
    with duckdb.connect() as connection:
        for wanted in SqlType:
            for name in ACCEPTED[wanted]:
                connection.execute(
                    f"create or replace table t (x {samples.get(name, name)}, xs {samples.get(name, name)}[])"
                )
                (single, several) = (str(row[1]) for row in connection.execute("describe t").fetchall())
                assert accepts(wanted, single)
                assert not accepts(wanted, several)


@pytest.mark.parametrize(
    ("wanted", "engine_type"),
    [
        (SqlType.INT4, "BIGINT"),
        (SqlType.INT8, "HUGEINT"),
        (SqlType.INT2, "INTEGER"),
        (SqlType.FLOAT4, "DOUBLE"),
        (SqlType.NUMERIC, "DOUBLE"),
        (SqlType.INT4, "VARCHAR"),
        (SqlType.TIMESTAMP, "TIMESTAMP WITH TIME ZONE"),
        (SqlType.TIMESTAMP, "TIMESTAMP_NS"),
        (SqlType.DATE, "TIMESTAMP"),
    ],
)
def test_a_type_that_holds_more_than_the_policys_is_refused(wanted: SqlType, engine_type: str) -> None:
    assert not accepts(wanted, engine_type)
