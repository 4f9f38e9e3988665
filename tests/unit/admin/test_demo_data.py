"""Is the made-up shop the same each time, within its policy where it should be, and beyond where it should be?"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from proxy.admin.demo.data import Summary, generate
from proxy.admin.files import read_policy
from proxy.errors import ConfigError
from proxy.policy.model import Bounded, Listed, Policy, Table, UnitColumns, WrittenBound
from tests.unit.admin.command_line import CommandLine
from tests.unit.ledger.make import full_disk

POLICY = Path(__file__).parents[3] / "policies" / "shop.yaml"
SCALE = 0.02
HASHES = {
    "users": "select md5(string_agg(t::text, '|' order by user_id)) from users t",
    "orders": "select md5(string_agg(t::text, '|' order by order_id)) from orders t",
    "items": "select md5(string_agg(t::text, '|' order by order_id, line)) from items t",
    "visits": "select md5(string_agg(t::text, '|' order by t::text)) from visits t",
}


def silent(_table: str, _done: int, _rows: int) -> None:
    pass


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.duckdb"
    generate(path, SCALE, silent)
    return path


@pytest.fixture(scope="module")
def policy() -> Policy:
    return read_policy(POLICY, {})


def ask(path: Path, sql: str) -> tuple[object, ...]:
    with duckdb.connect(str(path), read_only=True) as connection:
        found = connection.execute(sql).fetchone()
    assert found is not None
    return tuple(found)


def number(path: Path, sql: str) -> int:
    (found,) = ask(path, sql)
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("table", ["orders", "visits"])
def test_rows_lie_in_the_order_of_customers_and_of_time(shop: Path, table: str) -> None:
    before = 'lag(user_id, 1, 0) over (order by rowid), lag("at", 1, "at") over (order by rowid)'
    moved = f'select user_id, "at", {before} from {table}'
    steps = f"from ({moved}) t(unit, moment, previous, earlier) where unit < previous"
    assert number(shop, f"select count(*) {steps} or unit = previous and moment < earlier") == 0


def test_orders_are_numbered_in_the_order_of_time(shop: Path) -> None:
    moved = 'select "at", lag("at", 1, "at") over (order by order_id) from orders'
    assert number(shop, f"select count(*) from ({moved}) t(moment, earlier) where moment < earlier") == 0
    assert number(shop, "select count(*) - count(distinct order_id) + min(order_id) - 1 from orders") == 0


def test_same_data_each_time(shop: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.duckdb"
    generate(again, SCALE, silent)
    for table, sql in HASHES.items():
        assert ask(shop, sql) == ask(again, sql), table


def test_scale(shop: Path, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    summary = generate(tmp_path / "s.duckdb", 0.04, lambda *step: steps.append(step))
    assert summary.users == 2000
    assert 15_000 < summary.orders < 25_000
    assert [table for table, done, rows in steps if done == rows] == ["users", "orders", "items", "visits"]
    assert number(shop, "select count(*) from users") == 1000


def test_every_column_of_the_policy_has_its_type(shop: Path, policy: Policy) -> None:
    names = {"numeric": "DECIMAL(10,2)", "text": "VARCHAR", "double precision": "DOUBLE", "real": "FLOAT"}
    names["timestamp without time zone"] = "TIMESTAMP"
    for table in policy.tables.values():
        with duckdb.connect(str(shop), read_only=True) as connection:
            rows = connection.execute(f'describe "{table.name}"').fetchall()
        found = {row[0]: row[1] for row in rows}
        for column in table.columns:
            wanted = names.get(column.type.pg_name, column.type.pg_name.upper())
            assert found[column.name] == wanted, f"{table.name}.{column.name}"


def test_declared_facts_hold(shop: Path, policy: Policy) -> None:
    for table in policy.tables.values():
        for column in table.columns:
            place = f'from "{table.name}" where "{column.name}"'
            if not column.nullable:
                assert number(shop, f"select count(*) {place} is null") == 0, column.name
            if isinstance(column.domain, Listed) and column.type.is_text:
                known = ", ".join(f"'{value}'" for value in column.domain.values)
                assert number(shop, f"select count(*) {place} not in ({known})") == 0, column.name
    assert number(shop, "select count(*) - count(distinct user_id) from users") == 0
    assert number(shop, "select count(*) - count(distinct order_id) from orders") == 0
    assert number(shop, "select count(*) from orders anti join users using (user_id)") == 0
    assert number(shop, "select count(*) from items anti join orders using (order_id)") == 0
    assert number(shop, "select count(*) from orders anti join stores using (store_id)") == 0


def test_every_time_lies_within_its_bounds(shop: Path, policy: Policy) -> None:
    for name in ("orders", "visits"):
        found = policy.tables[name].column("at")
        assert found is not None
        assert isinstance(found.domain, Bounded)
        outside = f"\"at\" not between '{found.domain.lo}' and '{found.domain.hi}'"
        assert number(shop, f"select count(*) from {name} where {outside}") == 0


def most_rows(shop: Path, table: Table) -> int:
    return number(shop, f"select max(n) from (select count(*) as n from {table.name} group by user_id)")


def test_a_few_customers_exceed_the_bound_of_the_policy(shop: Path, policy: Policy) -> None:
    orders = policy.tables["orders"]
    assert isinstance(orders.ownership, UnitColumns)
    assert isinstance(orders.rows_per_unit, WrittenBound)
    limit = orders.rows_per_unit.limit
    assert most_rows(shop, orders) > limit
    per_unit = "select count(*) as n from orders group by user_id"
    assert number(shop, f"select count(*) from ({per_unit}) where n > {limit}") < 1000 * 0.05


def test_nobody_orders_before_joining(shop: Path) -> None:
    assert number(shop, 'select count(*) from orders join users using (user_id) where "at"::date < joined') == 0


def test_there_are_nulls_rare_places_and_values_beyond_bounds(shop: Path) -> None:
    assert number(shop, "select count(*) from users where city is null") > 0
    assert number(shop, "select count(*) from orders where status is null") > 0
    per_city = "select count(*) as n from users where city is not null group by city"
    assert number(shop, f"select count(*) from ({per_city}) where n = 1") >= 10
    assert number(shop, f"select count(*) from ({per_city}) where n > 100") >= 1
    assert number(shop, "select max(age) from users") == 999


def test_existing_file_is_not_replaced_silently(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="exists already"):
        generate(path, 0.01, silent)
    assert path.read_text(encoding="utf-8") == "mine"
    assert generate(path, 0.01, silent, replace=True).users == 500


def test_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(_table: str, _done: int, _rows: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ConfigError, match="cannot be written"):
        generate(tmp_path / "shop.duckdb", 0.01, fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1_000, 100_000])
def test_a_full_disk_is_told_in_one_line(tmp_path: Path, command: CommandLine, size: int) -> None:
    """DuckDB tells of it in several ways, depending on where it happens."""
    (tmp_path / "largest").write_bytes(b"x" * size)
    with full_disk(tmp_path / "largest"):
        assert command("demo-data", str(tmp_path / "shop.duckdb"), "--scale", "0.01") == 2
    path = tmp_path / "shop.duckdb"
    assert command.err == f"hushql: {path} cannot be written. Look at the free space and rights of its folder.\n"
    assert [found.name for found in tmp_path.iterdir()] == ["largest"]


@pytest.mark.parametrize("scale", [0.0, -1.0, 101.0, float("nan"), float("inf")])
def test_scale_out_of_range(tmp_path: Path, scale: float) -> None:
    with pytest.raises(ConfigError, match="out of range"):
        generate(tmp_path / "x", scale, silent)


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        generate(tmp_path / "no" / "x", 1.0, silent)


def test_command(command: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    assert command("demo-data", str(path), "--scale", "0.01") == 0
    expected = Summary(users=500, orders=number(path, "select count(*) from orders"), items=0, visits=0)
    assert command.out.startswith(f"{path}: 500 users, {expected.orders} orders, ")
    assert command("demo-data", str(path)) == 2
    assert command("demo-data", str(path), "--scale", "0.01", "--force") == 0
