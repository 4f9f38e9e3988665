"""A shop whose tables are profiled, without noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from proxy import app
from proxy.admin.files import read_policy
from proxy.admin.hosting import Opener
from proxy.config import Filters, ProfileConfig
from proxy.ledger import replay
from proxy.ledger.base import Ledger
from proxy.plan.profile.profile import BUCKETS, Sizes
from proxy.policy.model import Policy
from proxy.session.learning.profiling import profile

POLICY = """
version: 1
dataset: shop
source: {engine: duckdb, path: shop.duckdb, data_version: "1"}
privacy: {unit: customer}
budgets: {dataset: {epsilon: 20}}
access: {users_file: users.yaml}
tables:
  users:
    unit: user_id
    unit_unique: true
    columns: {user_id: {type: bigint, key: true}, age: {type: bigint, bounds: [0, 1000]}}
  orders:
    unit: user_id
    max_rows_per_unit: 1000
    columns:
      user_id: {type: bigint, key: true}
      order_id: {type: bigint}
      amount: {type: double precision, bounds: [-10000, 10000]}
      note: {type: text}
      kind: {type: text, values: [a, b]}
  items:
    unit: {via: orders, on: order_id}
    max_rows_per_unit: 40
    columns: {order_id: {type: bigint}, price: {type: numeric, bounds: [0, 100]}}
  stores:
    public: true
    columns: {store_id: {type: bigint}}
"""
UNITS, LARGE = 3000, 8  # the large ones are fewer than the ranks that are kept from the end
FILL = f"""
create table users as select range as user_id, 30 + range % 40 as age from range({UNITS});
create table orders as
  select u.range as user_id, u.range * 1000 + o.range as order_id, 25.0::double as amount, 'x' as note,
    case o.range when 0 then 'a' when 1 then 'b' when 2 then 'b' end as kind
  from range({UNITS}) u, range(300) o where o.range < case when u.range < {LARGE} then 300 else 4 end;
create table items as select order_id, 2.5::decimal(6, 2) as price from orders where order_id % 1000 = 0;
create table stores as select 1 as store_id;
"""


class NoNoise:
    """Zeros."""

    def take(self, n: int) -> tuple[int, ...]:
        return (0,) * n


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy and logins; answers have no noise."""
    (tmp_path / "p.yaml").write_text(POLICY, encoding="utf-8")
    users = tmp_path / "users.yaml"
    users.write_text("roles: {analyst: {}}\nusers: {}\n", encoding="utf-8")
    users.chmod(0o600)
    monkeypatch.setattr(app, "profile_units", lambda v, ledger, _, *wanted: profile(v, ledger, NoNoise(), *wanted))
    return tmp_path


@pytest.fixture
def filled(folder: Path) -> Path:
    """The same with data."""
    with duckdb.connect(folder / "shop.duckdb") as database:
        database.execute(FILL)
    return folder


def config(folder: Path, **changes: object) -> ProfileConfig:
    plain = ProfileConfig(policy=folder / "p.yaml", state=folder / "state", epsilon=4.0, filters=Filters(()))
    return replace(plain, **changes)  # type: ignore[arg-type]  # names of its fields


def policy_of(folder: Path) -> Policy:
    return read_policy(folder / "p.yaml", {})


def spent(folder: Path) -> int:
    return sum(t.spent.pico for t in replay.inspect(folder / "state").totals)


def opener_of(folder: Path, ledger: Ledger) -> Opener:
    return Opener(state=folder / "state", ledger=ledger, users=config(folder).users, open_engine=app._open_engine,
                  secret=lambda _: bytes(32))  # fmt: skip


def made(*counts: float) -> Sizes:
    """A ladder of sizes that begins so."""
    return Sizes(1.0, (*counts, *([0.0] * (BUCKETS - len(counts)))), 2.0)
