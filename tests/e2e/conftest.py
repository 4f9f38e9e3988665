"""A proxy in front of a small shop, its public twin and the census."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import places
from tests.e2e.served import (
    ROOT,
    Document,
    Served,
    public_twin,
    read_yaml,
    serving,
    shop_policy,
    write_users,
    write_yaml,
)
from tests.e2e.shop_data import KEYS, POSTGRES, fill_postgres, write_shop
from tests.postgres_server import private_server

# One login for each test that looks at what it has spent: u1, u2, ...
LOGINS = {
    "ann": "analyst",
    "bob": "analyst",
    "eve": "analyst",
    "boss": "boss",
    "clerk": "clerk",
    **{f"u{n}": "analyst" for n in range(1, 61)},
}
ELSEWHERE = "shop elsewhere"
PLENTY = {"dataset": {"epsilon": 1_000_000}}
MONTHLY = "analyst, budget: {epsilon: 3, refresh: month, acknowledge_lifetime_loss: true}"
LITTLE = {"dataset": {"epsilon": 20}, "user": {"epsilon": 3}, "session": {"epsilon": 2}}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places.leave_uncounted(items, Path(__file__).parent)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, adult_csv: Path) -> Iterator[Served]:
    """Datasets: shop (private, plenty of budget), truth (its public twin), spend (shop with little), adult; elsewhere
    is shop once more, with its rows in a PostgreSQL. No noise is far out: see `tests.e2e.tamed`. Lines are counted in
    the proxies that single tests start.
    """
    folder = tmp_path_factory.mktemp("served")
    policies = write_policies(folder)
    environment = {**places.UNCOUNTED, "ADULT_CSV": str(adult_csv), "ELSEWHERE_DSN": private_rows()}
    with serving(folder, policies, environment, ("-m", "tests.e2e.tamed")) as running:
        yield running


def private_rows() -> str:
    """The shop in the tests' own PostgreSQL: the connection string of a login that only reads."""
    server = private_server()
    server.create(ELSEWHERE, POSTGRES + KEYS + "create role shop_reader login;")
    with server.owner(ELSEWHERE) as owner:
        fill_postgres(owner)
        owner.execute("grant select on all tables in schema public to shop_reader")
    return server.dsn(ELSEWHERE, "shop_reader")


def elsewhere_policy() -> Document:
    shop = shop_policy(dataset="elsewhere")
    tables: dict[str, dict[str, object]] = shop["tables"]  # type: ignore[assignment]  # a mapping by the schema
    tables['Odd "Table']["relation"] = 'public."Odd ""Table"'
    source = {"engine": "postgres", "dsn": "${ELSEWHERE_DSN}", "data_version": "1"}
    return {**shop, "source": source, "limits": {"statement_timeout": "3s"}}


def write_policies(folder: Path) -> list[Path]:
    write_shop(folder / "shop.duckdb")
    write_users(folder / "users.yaml", {**LOGINS, "monthly": MONTHLY}, "tables: [stores, orders]")
    write_users(folder / "census.yaml", LOGINS)
    shop = shop_policy()
    privacy = {**shop["privacy"], "query_epsilon": 0.5}  # type: ignore[dict-item]  # a mapping by the schema
    spend = shop_policy(dataset="spend", budgets=LITTLE, privacy=privacy)
    adult = {**read_yaml(ROOT / "policies" / "adult.yaml"), "budgets": PLENTY,
             "access": {"users_file": "census.yaml"}}  # fmt: skip
    named = {"shop": shop, "truth": public_twin(shop), "spend": spend, "adult": adult, "elsewhere": elsewhere_policy()}
    return [write_yaml(folder / f"{name}.yaml", document) for name, document in named.items()]
