"""The shop of the cases in Parquet files, as a policy of engine spark and its public twin serve it."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tests.e2e.served import Document, public_twin, shop_policy, write_users, write_yaml
from tests.e2e.shop_data import write_shop
from tests.unit.engines.spark_shop import file_of, write_parquet


def write_lake(folder: Path, url: str, **source: object) -> list[Path]:
    """Policies of the datasets lake, whose rows a server reads from Parquet, and truth. source: more of its keys."""
    write_shop(folder / "shop.duckdb")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute("set TimeZone = 'UTC'")
        write_parquet(folder, connection)
    write_users(folder / "users.yaml", {"ann": "analyst", "bob": "analyst"}, "tables: [stores, orders]")
    truth = public_twin(shop_policy())
    lake = lake_policy(folder, url, **source)
    return [write_yaml(folder / f"{policy['dataset']}.yaml", policy) for policy in (lake, truth)]


def lake_policy(folder: Path, url: str, **source: object) -> Document:
    shop = shop_policy(dataset="lake")
    tables: dict[str, dict[str, object]] = shop["tables"]  # type: ignore[assignment]  # a mapping by the schema
    tables['Odd "Table'].pop("relation")
    files = {name: str(folder / file_of(name)) for name in tables}
    place = {"engine": "spark", "url": url, "files": files, "immutable": True, "may_write": True, "data_version": "1"}
    return {**shop, "source": {**place, **source}, "limits": {"statement_timeout": "30s"}}
