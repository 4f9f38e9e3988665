"""Does a right policy come out as the values it means?"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from proxy.policy.document import schema
from proxy.policy.load import load_policy
from proxy.policy.model import (
    Accounting,
    Bounded,
    Column,
    DataFiles,
    DuckDBFile,
    EpsilonLimit,
    JoinKey,
    Limits,
    Listed,
    Neighbors,
    NoLimit,
    NotGiven,
    PerKey,
    Policy,
    PostgresSource,
    PublicTable,
    Refresh,
    RowsPer,
    RowUnit,
    SparkSource,
    UnitColumns,
    UnitVia,
    Unknown,
    WrittenBound,
)
from proxy.policy.problems import FileProblems
from proxy.policy.tree import read_tree
from proxy.sqltypes import SqlType
from tests.unit.policy.case_files import BASE
from tests.unit.policy.schema_reader import fits

POLICIES = Path(__file__).parents[3] / "policies"


def load(text: str, **environment: str) -> Policy:
    return load_policy(text, filename="etc/p.yaml", environment=environment)


def edited(*edits: tuple[str, str]) -> Policy:
    text = BASE
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return load(text)


def test_bounds_of_rows_may_be_left_out_be_ceilings_or_be_of_values() -> None:
    said = (
        "    max_rows_per_unit: {at_most: 60}\n    max_rows_per_group: 10\n    max_groups_per_unit: {at_most: 12}\n"
        "    max_rows_per: {amount: 2, month(at): 3, [ Day( at ), amount]: 1, '[year(at)]': 4}\n"
    )
    written = "    max_rows_per_unit: 60\n    max_rows_per_group: 10\n    max_groups_per_unit: 12\n"
    policy = edited((written, said), ("    max_rows_per_unit: 100\n", ""))
    orders, at = policy.tables["orders"], "at"
    assert orders.rows_per_unit == WrittenBound(60, is_ceiling=True)
    assert orders.rows_per_group == WrittenBound(10)
    assert orders.groups_per_unit == WrittenBound(12, is_ceiling=True)
    assert orders.rows_per == (
        RowsPer((PerKey("amount"),), 2), RowsPer((PerKey(at, "month"),), 3),
        RowsPer((PerKey(at, "day"), PerKey("amount")), 1), RowsPer((PerKey(at, "year"),), 4),
    )  # fmt: skip
    assert policy.tables["items"].rows_per_unit == NotGiven()


def test_a_join_may_be_declared_to_be_complete() -> None:
    policy = edited(("    joins: {user_id: users.user_id}\n",
                     "    joins: {user_id: users.user_id}\n    complete_joins: [user_id]\n"))  # fmt: skip
    assert policy.tables["orders"].complete_joins == (JoinKey("user_id", "users", "user_id"),)
    assert policy.tables["items"].complete_joins == ()


def column(policy: Policy, table: str, name: str) -> Column:
    found = policy.tables[table].column(name)
    assert found is not None
    return found


def test_defaults() -> None:
    policy = load(BASE)
    assert policy.source == DuckDBFile("etc/data/shop.duckdb")
    assert policy.users_file == "etc/users.yaml"
    assert policy.data_version == "v1"
    assert policy.limits == Limits()
    assert (policy.privacy.neighbors, policy.privacy.accounting) == (Neighbors.ADD_REMOVE, Accounting.ZCDP)
    assert (policy.privacy.delta, policy.privacy.delta_pool) == (1e-6, 5e-7)
    assert (policy.privacy.query_epsilon, policy.privacy.time_grid_s) == (0.5, 0.01)
    assert policy.budgets.session == NoLimit()
    assert policy.budgets.user == EpsilonLimit(10.0)
    assert list(policy.tables) == ["users", "orders", "items", "stores"]
    assert [t.name for t in policy.private_tables()] == ["users", "orders", "items"]


def test_ownership() -> None:
    tables = load(BASE).tables
    assert tables["users"].ownership == UnitColumns(("user_id",))
    assert tables["items"].ownership == UnitVia("orders", "order_id", "order_id")
    assert tables["stores"].ownership == PublicTable()


def test_path_is_a_declared_join() -> None:
    assert load(BASE).tables["items"].joins == (JoinKey("order_id", "orders", "order_id"),)


def test_unlisted_unit_column_has_the_type_of_what_it_joins() -> None:
    found = load(BASE).tables["orders"].columns[0]
    assert found == Column(name="user_id", type=SqlType.INT4, key=True)


def test_unlisted_unit_column_has_the_type_of_its_namesake() -> None:
    policy = edited(("    joins: {user_id: users.user_id}\n", ""))
    assert column(policy, "orders", "user_id").type is SqlType.INT4
    assert policy.tables["orders"].joins == ()


def test_unlisted_reference_column_is_a_key_of_its_parents_type() -> None:
    policy = edited(("      order_id: {type: bigint}\n      price", "      price"))
    assert policy.tables["items"].columns[0] == Column(name="order_id", type=SqlType.INT8, key=True)


def test_parent_key_from_joins() -> None:
    policy = edited(
        ("{via: orders, on: order_id}", "{via: orders, on: ref}\n    joins: {ref: [orders.order_id, stores.store_id]}"),
        ("      order_id: {type: bigint}\n      price", "      ref: {type: integer, hidden: true}\n      price"),
    )
    assert policy.tables["items"].ownership == UnitVia("orders", "ref", "order_id")
    assert policy.tables["items"].joins == (
        JoinKey("ref", "orders", "order_id"),
        JoinKey("ref", "stores", "store_id"),
    )


def test_parent_key_is_the_unit_of_a_parent_with_one_row_per_unit() -> None:
    policy = edited(
        ("{via: orders, on: order_id}", "{via: users, on: buyer}"),
        ("      order_id: {type: bigint}\n      price", "      buyer: {type: bigint}\n      price"),
    )
    assert policy.tables["items"].ownership == UnitVia("users", "buyer", "user_id")


def test_composite_unit() -> None:
    policy = edited(
        ("unit: user_id\n    unit_unique", "unit: [user_id, city]\n    unit_unique"),
        ("unit: user_id\n    joins: {user_id: users.user_id}", "unit: [user_id, city]"),
    )
    assert policy.tables["orders"].ownership == UnitColumns(("user_id", "city"))
    assert [c.name for c in policy.tables["orders"].columns[:2]] == ["user_id", "city"]


def test_row_unit() -> None:
    text = BASE[: BASE.index("tables:")].replace("unit: customer", "unit: row")
    policy = load(text + "tables:\n  t:\n    columns: {a: {type: integer, bounds: [0, 1]}}\n")
    assert policy.tables["t"].ownership == RowUnit()
    assert policy.privacy.delta_pool == 0.0


def test_limits_of_contribution() -> None:
    orders, items = load(BASE).tables["orders"], load(BASE).tables["items"]
    assert (orders.rows_per_unit, orders.rows_per_group, orders.groups_per_unit) == (
        WrittenBound(60),
        WrittenBound(10),
        WrittenBound(12),
    )
    assert (items.rows_per_group, items.groups_per_unit) == (NotGiven(), NotGiven())
    assert items.keys_per_unit == 1000


LAST = (23, 59, 59, 999999)
SIX = datetime(2024, 1, 1, 6)
NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)
HALF_PAST = datetime(2024, 1, 1, 7, 30, 15, 250000)
FIVE_MONTHS = Bounded(NEW_YEAR, datetime(2024, 6, 1, 10, tzinfo=UTC))
UUID = "9f0c1e5a-7c1d-4b0e-8a64-0d5f2f7a1b11"
DOMAINS: tuple[tuple[str, object], ...] = (
    ("smallint, bounds: [-5, 5]", Bounded(-5, 5)),
    ("bigint, values: [3, 0x10, 0o17, 1_000]", Listed((3, 16, 15, 1000))),
    ("numeric, bounds: [0.10, 2.50]", Bounded(Decimal("0.1"), Decimal("2.5"))),
    ("numeric, bounds: [1.0, 1e3]", Bounded(1, 1000)),
    ("numeric, bounds: [-1e-3, 1234567890123456789.5]", Bounded(Decimal("-0.001"), Decimal("1234567890123456789.5"))),
    ("double precision, bounds: [-0.0, 1]", Bounded(0.0, 1.0)),
    ("float4, bounds: [.5, 1e3]", Bounded(0.5, 1000.0)),
    ("text, values: ['', a, \"b\"]", Listed(("", "a", "b"))),
    ("text, values: [yes, no, 2024-01-01]", Listed(("yes", "no", "2024-01-01"))),
    ("text, case_blind: true, values: [Free, PRO]", Listed(("free", "pro"))),
    ("char, values: ['a  ', b]", Listed(("a", "b"))),
    (f"uuid, values: [{UUID.upper()}]", Listed((UUID,))),
    ("boolean", Listed((False, True))),
    ("boolean, values: [true]", Listed((True,))),
    ("boolean, key: true", Unknown()),
    ("text", Unknown()),
    ("date, values: [2024-02-29]", Listed((date(2024, 2, 29),))),
    ("timestamp, bounds: [2024-01-01, 2024-12-31]", Bounded(datetime(2024, 1, 1), datetime(2024, 12, 31, *LAST))),
    ("timestamp, bounds: [2024-01-01 6:00, 2024-01-01T07:30:15.25]", Bounded(SIX, HALF_PAST)),
    ("timestamp, values: [2024-01-01T6:00, 2024-01-01]", Listed((SIX, datetime(2024, 1, 1)))),
    ("timestamptz, bounds: [2024-01-01, 2024-06-01 12:00:00 +02:00]", FIVE_MONTHS),
    ("timestamptz, bounds: [2024-01-01 00:00Z, 2024-06-01 12:00:00+02]", FIVE_MONTHS),
)  # fmt: skip


@pytest.mark.parametrize("written, expected", DOMAINS, ids=[written for written, _ in DOMAINS])
def test_domain(written: str, expected: object) -> None:
    found = column(edited(("{type: text}", f"{{type: {written}}}")), "users", "city").domain
    assert found == expected
    assert repr(found) == repr(expected)  # also the same types: 1 is not 1.0


def test_time_zone_of_the_policy_is_used_where_none_is_written() -> None:
    policy = edited(
        ("delta: 1e-6", "time_zone: Europe/Zurich"),
        ("{type: text}", "{type: timestamptz, bounds: [2024-07-01, 2024-07-01]}"),
    )
    assert column(policy, "users", "city").domain == Bounded(
        datetime(2024, 6, 30, 22, tzinfo=UTC), datetime(2024, 7, 1, 21, 59, 59, 999999, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    "written, expected",
    [
        ("{type: smallint, sum_bounds: [0, 100000]}", Bounded(0, 100000)),
        ("{type: real, sum_bounds: [0, 2.5]}", Bounded(0.0, 2.5)),
        ("{type: real}", Unknown()),
    ],
)
def test_sum_bounds(written: str, expected: object) -> None:
    assert column(edited(("{type: text}", written)), "users", "city").sum_bounds == expected


def test_every_privacy_key() -> None:
    keys = (
        "neighbors: replace_one, group_size: 3, accounting: pure, query_epsilon: 0.25, max_query_epsilon: 2, "
        "confirm: true, tell_cut: false, profile: charged, raw_select: empty, time_zone: UTC, time_grid: 0, "
        "min_units: 20, reuse_factor: 3"
    )
    policy = edited(("  delta: 1e-6", "  " + keys.replace(", ", "\n  ")))
    assert repr(policy.privacy) == (
        "Privacy(unit='customer', neighbors=<Neighbors.REPLACE_ONE: 'replace_one'>, group_size=3, "
        "accounting=<Accounting.PURE: 'pure'>, delta=0.0, delta_pool=0.0, query_epsilon=0.25, questions=(), "
        "max_query_epsilon=2.0, confirm=True, tell_cut=False, "
        "profile=<ProfileUse.CHARGED: 'charged'>, raw_select=<RawSelect.EMPTY: 'empty'>, time_zone='UTC', "
        "time_grid_s=0.0, min_units=20, reuse_factor=3.0)"
    )


def test_delta_pool_is_zero_without_private_keys() -> None:
    listed = (
        ("{type: text}", "{type: text, values: [a]}"),
        ("      order_id: {type: bigint}\n      amount", "      amount"),
    )
    policy = edited(*listed, ("      order_id: {type: bigint}\n", ""), ("{via: orders, on: order_id}", "user_id"))
    assert policy.privacy.delta_pool == 0.0


def test_delta_pool_as_written() -> None:
    assert edited(("delta: 1e-6", "delta: 1e-2\n  delta_pool: 0")).privacy.delta_pool == 0.0


def test_limits() -> None:
    times = "statement_timeout: 1.5min, idle_timeout: 1d"
    policy = edited(
        ("budgets:", f"limits: {{max_sessions: 5, {times}, engine_memory: 500 MB, engine_threads: 2}}\nbudgets:")
    )
    assert policy.limits == Limits(
        max_sessions=5, statement_timeout_s=90.0, idle_timeout_s=86400.0, engine_memory="500MB", engine_threads=2
    )


@pytest.mark.parametrize("refresh", [Refresh.DAY, Refresh.WEEK, Refresh.MONTH])
def test_a_refresh_that_is_acknowledged_is_accepted(refresh: Refresh) -> None:
    budget = f"{{epsilon: 10, refresh: {refresh}, acknowledge_lifetime_loss: true}}"
    assert edited(("{epsilon: 10}", budget)).budgets.user == EpsilonLimit(10.0, refresh)


def test_a_role_has_an_account_of_its_own() -> None:
    with_role = ("  user: {epsilon: 10}", "  user: {epsilon: 10}\n  role: {epsilon: 12}")
    assert edited(with_role).budgets.role == EpsilonLimit(12.0)
    assert edited(("{epsilon: 10}", "{epsilon: 9}")).budgets.role == NoLimit()


def test_refresh_lifetime_is_accepted() -> None:
    assert edited(("{epsilon: 10}", "{epsilon: 10, refresh: lifetime}")).budgets.user == EpsilonLimit(10.0)


@pytest.mark.parametrize(
    "written, expected",
    [
        ("stores2", ("stores2",)),
        ("main.stores", ("main", "stores")),
        ('db."Odd ""x"".y".T', ("db", 'Odd "x".y', "T")),
    ],
)
def test_relation(written: str, expected: tuple[str, ...]) -> None:
    assert edited(("public: true", f"public: true\n    relation: '{written}'")).tables["stores"].relation == expected


def test_quoted_and_mixed_case_names() -> None:
    policy = edited(("  stores:", '  "My Stores":'), ("store_id:", '"Größe (cm)":'))
    assert policy.tables["My Stores"].columns[0].name == "Größe (cm)"


def test_environment() -> None:
    text = BASE.replace("data/shop.duckdb", "${DIR}/$${x}/${FILE:-a.duckdb}${EMPTY:-}")
    text = text.replace("dataset: {epsilon: 20}", "dataset:\n    epsilon: ${E}")
    policy = load(text, DIR="/data", E="30")
    assert policy.source == DuckDBFile("/data/${x}/a.duckdb")
    assert policy.budgets.dataset == EpsilonLimit(30.0)


def test_value_of_a_variable_is_not_searched_again() -> None:
    assert load(BASE.replace("v1", "${A}"), A="${B}").data_version == "${B}"


def test_quoted_reference_stays_text() -> None:
    assert load(BASE.replace("v1", '"${A}"'), A="7").data_version == "7"


def test_postgres_source_hides_its_secret() -> None:
    dsn = "postgresql://app:hunter2@db:5432/shop"
    policy = load(BASE.replace("duckdb\n  path: data/shop.duckdb", "postgres\n  dsn: ${DSN}"), DSN=dsn)
    assert policy.source == PostgresSource(dsn)
    assert "hunter2" not in repr(policy)


def test_data_files() -> None:
    files = "files: {users: u.parquet, orders: /d/o.csv, items: i.csv.gz, stores: s.csv}"
    assert edited(("path: data/shop.duckdb", files)).source == DataFiles(
        (("users", "etc/u.parquet"), ("orders", "/d/o.csv"), ("items", "etc/i.csv.gz"), ("stores", "etc/s.csv"))
    )


@pytest.mark.parametrize("written, expected", [("7", "7"), ("2026-11-21", "2026-11-21"), ("1.50", "1.50")])
def test_data_version_is_a_label(written: str, expected: str) -> None:
    assert edited(("data_version: v1", f"data_version: {written}")).data_version == expected


# --- what is shipped ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["shop", "adult"])
def test_shipped_policy_loads_and_fits_the_schema(name: str) -> None:
    text = (POLICIES / f"{name}.yaml").read_text(encoding="utf-8")
    assert load(text).dataset == name
    assert fits(read_tree(text, name, {}).root, schema(), schema())


@pytest.mark.parametrize(
    "old, new",
    [
        ("version: 1", "version: 2"),
        ("dataset: shop", "dataset: shop\nx: 1"),
        ("unit: customer", "unit: 1"),
        ("bounds: [0, 110]", "bounds: 0"),
        ("{type: text}", "{}"),
        ("public: true", "public: 1"),
        ("max_rows_per_unit: 60", "max_rows_per_unit: 0"),
        ("unit: {via: orders, on: order_id}", "unit: {via: orders}"),
    ],
)
def test_schema_refuses(old: str, new: str) -> None:
    assert fits(read_tree(BASE, "p", {}).root, schema(), schema())
    assert not fits(read_tree(BASE.replace(old, new, 1), "p", {}).root, schema(), schema())


def test_schema_describes_every_key() -> None:
    definitions = [schema(), *_definitions().values()]
    for one in definitions:
        properties = one["properties"]
        assert isinstance(properties, dict)
        assert all("description" in key or "$ref" in key for key in properties.values())
        assert "description" in one


def _definitions() -> dict[str, dict[str, object]]:
    found = schema()["$defs"]
    assert isinstance(found, dict)
    return found


def test_relations_of_two_schemas_have_different_rows() -> None:
    two = edited(
        ("  orders:\n", "  orders:\n    relation: main.orders\n"),
        ("public: true", "public: true\n    relation: old.orders"),
    )
    assert two.tables["stores"].relation == ("old", "orders")


def test_files_of_a_private_table_are_not_those_of_a_public_one() -> None:
    listed = "  files: {users: u.csv, orders: o.csv, items: i.csv, stores: o.csv}"
    with pytest.raises(FileProblems, match=r"stores.*rows of table 'orders'"):
        edited(("  path: data/shop.duckdb", listed))


_LAKE = (
    "spark\n  url: sc://lake:443/;use_ssl=true\n  token: ${TOKEN}\n  immutable: true\n  files: {users: /lake/users,"
    " orders: s3a://lake/shop/orders, items: '/lake/items.parquet', stores: /lake/stores}"
)


def test_a_lake_reads_tables_by_their_paths() -> None:
    policy = load(BASE.replace("duckdb\n  path: data/shop.duckdb", _LAKE), TOKEN="hunter2")
    assert policy.source == SparkSource("sc://lake:443/;use_ssl=true", "hunter2")
    assert policy.tables["orders"].relation == ("parquet", "s3a://lake/shop/orders")


def test_a_catalogue_has_tables_by_their_names() -> None:
    named = "spark\n  url: sc://lake:15002\n  immutable: true\n  may_write: true"
    policy = load(BASE.replace("duckdb\n  path: data/shop.duckdb", named))
    assert policy.source == SparkSource("sc://lake:15002", may_write=True)
    assert policy.tables["users"].relation == load(BASE).tables["users"].relation


def test_a_cluster_serves_no_randomized_columns() -> None:
    lake = BASE.replace("duckdb\n  path: data/shop.duckdb", _LAKE)
    with pytest.raises(FileProblems) as refused:
        load(lake.replace("values: [free, pro, team]", "values: [free, pro, team], randomized: {keep: 0.5}"), TOKEN="x")
    assert "users.columns.plan.randomized: engine spark serves no randomized columns" in refused.value.message
