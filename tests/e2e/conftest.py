"""A proxy in front of a small shop, its public twin and the census."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.served import ROOT, Served, public_twin, read_yaml, serving, shop_policy, write_users, write_yaml
from tests.e2e.shop_data import write_shop

# One login for each test that looks at what it has spent: u1, u2, ...
LOGINS = {
    "ann": "analyst",
    "bob": "analyst",
    "eve": "analyst",
    "boss": "boss",
    "clerk": "clerk",
    **{f"u{n}": "analyst" for n in range(1, 61)},
}
PLENTY = {"dataset": {"epsilon": 1_000_000}}
MONTHLY = "analyst, budget: {epsilon: 3, refresh: month, acknowledge_lifetime_loss: true}"
LITTLE = {"dataset": {"epsilon": 20}, "user": {"epsilon": 3}, "session": {"epsilon": 2}}


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, adult_csv: Path) -> Iterator[Served]:
    """Datasets: shop (private, plenty of budget), truth (its public twin), spend (shop with little), adult."""
    folder = tmp_path_factory.mktemp("served")
    policies = write_policies(folder)
    with serving(folder, policies, {"ADULT_CSV": str(adult_csv)}) as running:
        yield running


def write_policies(folder: Path) -> list[Path]:
    write_shop(folder / "shop.duckdb")
    write_users(folder / "users.yaml", {**LOGINS, "monthly": MONTHLY}, "tables: [stores, orders]")
    write_users(folder / "census.yaml", LOGINS)
    shop = shop_policy()
    privacy = {**shop["privacy"], "query_epsilon": 0.5}  # type: ignore[dict-item]  # a mapping by the schema
    spend = shop_policy(dataset="spend", budgets=LITTLE, privacy=privacy)
    adult = {**read_yaml(ROOT / "policies" / "adult.yaml"), "budgets": PLENTY,
             "access": {"users_file": "census.yaml"}}  # fmt: skip
    named = {"shop": shop, "truth": public_twin(shop), "spend": spend, "adult": adult}
    return [write_yaml(folder / f"{name}.yaml", document) for name, document in named.items()]
