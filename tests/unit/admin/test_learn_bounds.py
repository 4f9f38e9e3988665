"""What does learn-bounds ask, charge, keep and tell; and who uses what was kept?"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import duckdb
import numpy as np
import pytest

from proxy import app
from proxy.admin import control
from proxy.admin.bounds_file import keep_learned, path_of, read_learned
from proxy.admin.files import read_policy
from proxy.admin.hosting import Hosted, Opener, PublicSource
from proxy.admin.learn_command import Taught, wishes_of
from proxy.admin.learn_request import Learning
from proxy.config import ExplainRequest, LearnConfig
from proxy.dp.accounting import knob_pico
from proxy.dp.mechanisms import Distribution
from proxy.dp.quantiles import Draw, Weights
from proxy.errors import BudgetSpent, ConfigError, HushError
from proxy.front.front import Front
from proxy.ledger import replay
from proxy.ledger.sqlite import SqliteLedger
from proxy.pipeline.plans import plan_statement
from proxy.pipeline.premises import Terms
from proxy.plan.explain_sets import explain_plan, plan_lines
from proxy.plan.learned import LearnedBound, LearnedTable
from proxy.policy.model import Policy
from proxy.session.dataset import Dataset, Version
from proxy.session.learning import learn
from proxy.session.plancache import PlanCache
from proxy.sql.constants import Constants
from proxy.sql.parse import split_statements
from proxy.sql.split import split
from tests.unit.admin.command_line import CommandLine
from tests.unit.session.make import version as others_version

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
  select u.range as user_id, u.range * 1000 + o.range as order_id, 25.0::double as amount, 'x' as note
  from range({UNITS}) u, range(300) o where o.range < case when u.range < {LARGE} then 300 else 4 end;
create table items as select order_id, 2.5::decimal(6, 2) as price from orders where order_id % 1000 = 0;
create table stores as select 1 as store_id;
"""


class NoNoise:
    """Zeros."""

    def take(self, n: int) -> tuple[int, ...]:
        return (0,) * n


def best(scores: Weights, _: Draw) -> int:
    """The first of the cells that the mechanism likes best."""
    return int(np.argmax(scores))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy and logins; answers have no noise, and cells are chosen without chance."""
    (tmp_path / "p.yaml").write_text(POLICY, encoding="utf-8")
    users = tmp_path / "users.yaml"
    users.write_text("roles: {analyst: {}}\nusers: {}\n", encoding="utf-8")
    users.chmod(0o600)
    monkeypatch.setattr(app, "learn_sizes", lambda v, ledger, _, w, e: learn(v, ledger, NoNoise(), w, e, best))
    return tmp_path


@pytest.fixture
def filled(folder: Path) -> Path:
    """The same with data."""
    with duckdb.connect(folder / "shop.duckdb") as database:
        database.execute(FILL)
    return folder


def config(folder: Path, **changes: object) -> LearnConfig:
    plain = LearnConfig(policy=folder / "p.yaml", state=folder / "state", epsilon=4.0)
    return replace(plain, **changes)  # type: ignore[arg-type]  # names of its fields


def policy_of(folder: Path) -> Policy:
    return read_policy(folder / "p.yaml", {})


def spent(folder: Path) -> int:
    return sum(t.spent.pico for t in replay.inspect(folder / "state").totals)


@pytest.fixture
def version(filled: Path) -> Iterator[Version]:
    """As a proxy opens it after `learn`."""
    app.learn(config(filled, columns=(("orders", "amount"),), epsilon=1.0))
    opener = Opener(state=filled / "state", users=config(filled).users, open_engine=app._open_engine,
                    secret=lambda _: bytes(32))  # fmt: skip
    opened = asyncio.run(opener.open(policy_of(filled)))
    yield opened
    opened.engine.close()


def test_what_few_units_are_above_is_learned_charged_once_and_kept(filled: Path) -> None:
    asked = config(filled, columns=(("orders", "amount"), ("users", "age")))
    lesson = app.learn(asked).lesson
    orders, items = lesson.tables
    assert orders.rows is not None
    assert (orders.table, orders.allowed, items.table, items.allowed) == ("orders", 1000, "items", 40)
    assert 4 <= orders.rows.value <= 5, "the least candidate that holds all but the large units"
    assert orders.rows.above > LARGE
    ((column, largest, total),) = orders.totals
    assert (column, largest) == ("amount", 10000.0)
    assert 100 <= total.value <= 125, "four times 25"
    assert items.rows == LearnedBound(1.0, items.rows.above if items.rows else 0)
    values = {(v.table, v.column): v.bound.value for v in lesson.values}
    assert 25 <= values["orders", "amount"] <= 30
    assert 69 <= values["users", "age"] <= 80
    assert read_learned(path_of(filled / "state", "shop"), policy_of(filled)) == (lesson.tables, ())
    share = knob_pico(policy_of(filled).privacy, 4.0) // 5
    assert spent(filled) == lesson.pico == 5 * share
    again = app.learn(asked).lesson
    assert (again.tables, again.values, again.reused) == (lesson.tables, lesson.values, lesson.pico)
    assert spent(filled) == lesson.pico, "what is stored is free"


def test_nothing_is_learned_that_cannot_be_paid(filled: Path) -> None:
    with pytest.raises(BudgetSpent, match="budget of this dataset is spent"):
        app.learn(config(filled, epsilon=50.0))
    assert spent(filled) == 0
    assert not path_of(filled / "state", "shop").exists()


def test_too_few_units_teach_nothing(filled: Path, command: CommandLine) -> None:
    """The offset from the end is larger than all units together."""
    command.taught = app.learn(config(filled, epsilon=0.002, tables=("items",)))
    assert [t.rows for t in command.taught.lesson.tables] == [None]
    assert command("learn-bounds", str(filled / "p.yaml")) == 0
    assert command.out.splitlines()[0] == "items: too few units to tell; the policy's 40 rows stay"


@pytest.mark.parametrize(
    ("old", "new", "kept", "said"),
    [
        ("epsilon: 20", "epsilon: 30", ["orders amount", "items"], []),
        ("bounds: [0, 100]", "bounds: [0, 90]", ["orders amount", "items"], []),  # nobody asked about it
        ('data_version: "1"', 'data_version: "2"', ["orders amount", "items"], ["data version 1", "data version 1"]),
        ("max_rows_per_unit: 1000", "max_rows_per_unit: 900", ["items"], ["under another policy"]),
        ("[-10000, 10000]", "[-10000, 20000]", ["orders", "items"], ['sums of "orders"."amount"']),
        ("  items:", "  lines:\n    relation: items", ["orders amount"], ['table "items"']),
        ("unit: {via: orders, on: order_id}", "unit: order_id", ["orders amount"], ['table "items"']),
    ],
)
def test_what_fits_the_policy_no_longer_is_left_out_and_said(
    folder: Path, old: str, new: str, kept: list[str], said: list[str]
) -> None:
    path, few = folder / "b.json", LearnedBound(5.0, 9)
    orders = LearnedTable(table="orders", allowed=1000, rows=few, totals=(("amount", 10000.0, few),), data_version="1")
    items = LearnedTable(table="items", allowed=40, rows=None, totals=(), data_version="1")
    keep_learned(path, policy_of(folder), (orders, items))
    assert read_learned(path, policy_of(folder)) == ((orders, items), ())
    (folder / "p.yaml").write_text(POLICY.replace(old, new).replace("{order_id: {type: bigint}, price",
                                   "{order_id: {type: bigint, key: true}, price"), encoding="utf-8")  # fmt: skip
    found, lines = read_learned(path, policy_of(folder))
    assert [" ".join((t.table, *(c for c, _, _ in t.totals))) for t in found] == kept
    assert len(lines) == len(said)
    for line, words in zip(lines, said, strict=True):
        assert words in line
        assert line.endswith("; hushql learn-bounds learns anew")


def test_what_is_learned_again_takes_the_place_of_the_old(tmp_path: Path, folder: Path) -> None:
    path, policy = tmp_path / "b.json", policy_of(folder)
    sums = (("amount", 10000.0, LearnedBound(70.0, 3)),)
    first = LearnedTable(table="orders", allowed=1000, rows=LearnedBound(5.0, 9), totals=sums, data_version="1")
    for totals in ((), (("amount", 10000.0, LearnedBound(80.0, 2)),)):
        keep_learned(path, policy, [first])
        again = replace(first, rows=LearnedBound(6.0, 8), totals=totals)
        keep_learned(path, policy, [again])
        assert read_learned(path, policy) == ((replace(again, totals=totals or sums),), ())
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "{}", '{"tables": [{}]}', '{"tables": [], "more": 1}', "\x00"])
def test_a_damaged_file_is_an_error(tmp_path: Path, folder: Path, text: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="is damaged"):
        read_learned(path, policy_of(folder))


def planned_lines(version: Version, text: str, epsilon: float) -> list[str]:
    """What EXPLAIN says of a statement's only release."""
    served = replace(version, users=others_version().users)
    premises = served.premises("ann")
    query = split(split_statements(text)[0], premises.catalog, frozenset())
    constants = Constants({}, datetime(2026, 1, 1, tzinfo=UTC))
    (plan,) = plan_statement(query, premises, Terms(epsilon=epsilon), constants).plans
    return plan_lines(explain_plan(plan, served.policy.privacy))


def test_statements_use_what_was_learned_and_say_so(version: Version) -> None:
    rows = int(version.learned[0].rows.value) if version.learned[0].rows else 0
    for epsilon, most in ((0.5, rows), (90.0, 1000)):
        told = " ".join(" ".join(planned_lines(version, "select count(*) from orders", epsilon)).split())
        assert f"Bounds: {most} rows per unit, {most} per group" in told
        assert (f"{rows} of 1000 rows learned from data version 1" in told) == (most == rows)


def test_explain_without_a_server_uses_them_where_it_is_told_where_they_are(version: Version, filled: Path) -> None:
    asked = ExplainRequest(policy=filled / "p.yaml", sql="select count(*) from orders", state=filled / "state")
    told = [" ".join(app.explain(replace(asked, state=s)).split()) for s in (None, asked.state)]
    assert ["of 1000 rows learned from data version 1" in t for t in told] == [False, True]


# --- beside a running proxy -------------------------------------------------------------------------------


@dataclass
class Applying:
    """A front that takes a policy while something else is done."""

    ask: Callable[[], object]

    async def apply(self, *_: object) -> None:
        await asyncio.to_thread(self.ask)


def beside_a_proxy(folder: Path, ask: Callable[[], object], *, reloads: bool = False) -> Dataset:
    """The dataset of a proxy that owns the state directory while `ask` is called on another thread.

    reloads: whether it takes its files anew at that time.
    """

    async def serve() -> Dataset:
        with closing(SqliteLedger(folder / "state")) as ledger:
            opener = Opener(state=folder / "state", users=config(folder).users, open_engine=app._open_engine,
                            secret=lambda _: bytes(32))  # fmt: skip
            dataset = Dataset(ledger=ledger, noise={}, current=await opener.open(policy_of(folder)))
            hosted = Hosted(path=folder / "p.yaml", users_path=folder / "users.yaml", dataset=dataset,
                            front=cast(Front, Applying(ask)), public=PublicSource(dataset.current.engine),
                            plans=PlanCache())  # fmt: skip
            noise = {d: NoNoise() for d in Distribution}
            learning = Learning(state=folder / "state", hosted=[hosted], ledger=ledger, noise=noise,
                                learn=lambda v, ledger, n, w, e: learn(v, ledger, n, w, e, best))  # fmt: skip
            listening = await control.Control.start(folder / "state", learning.answer)
            try:
                if reloads:
                    old = await hosted.reload(opener)
                    old.engine.close()
                else:
                    await asyncio.to_thread(ask)
            finally:
                listening.close()
                dataset.current.engine.close()
            return dataset

    return asyncio.run(serve())


def test_a_running_proxy_learns_charges_and_uses_it_at_once(filled: Path) -> None:
    taught: list[Taught] = []
    asked = config(filled, columns=(("orders", "amount"),))
    dataset = beside_a_proxy(filled, lambda: taught.append(app.learn(asked)))
    lesson = taught[0].lesson
    assert [t.table for t in lesson.tables] == ["orders", "items"]
    assert dataset.current.learned == lesson.tables
    assert read_learned(path_of(filled / "state", "shop"), policy_of(filled)) == (lesson.tables, ())
    assert spent(filled) == lesson.pico > 0
    assert not (filled / "state" / "control").exists()
    again = app.learn(asked).lesson
    assert (again.tables, again.reused) == (lesson.tables, lesson.pico), "the same as without a proxy, and paid"


@pytest.mark.parametrize("damaged", [False, True])
def test_a_reload_at_the_same_time_misses_nothing(filled: Path, damaged: bool) -> None:
    """What is learned after the data were opened and before versions change is used; a damaged file changes nothing."""
    taught: list[Taught] = []

    def ask() -> None:
        taught.append(app.learn(config(filled)))
        if damaged:
            path_of(filled / "state", "shop").write_text("{", encoding="utf-8")

    dataset = beside_a_proxy(filled, ask, reloads=True)
    assert taught[0].lesson.tables
    assert dataset.current.learned == (() if damaged else taught[0].lesson.tables)


def test_what_a_running_proxy_refuses_is_said(filled: Path) -> None:
    def ask() -> None:
        with pytest.raises(ConfigError, match="budget of this dataset is spent"):
            app.learn(config(filled, epsilon=50.0))
        text = (filled / "p.yaml").read_text()
        changes = {"dataset: shop": "dataset: more", '"1"': '"2"'}
        for (old, new), said in zip(changes.items(), ("does not serve a dataset", "another policy"), strict=True):
            (filled / "p.yaml").write_text(text.replace(old, new))
            with pytest.raises(ConfigError, match=said):
                app.learn(config(filled))
        (filled / "p.yaml").write_text(text)
        assert "does not know this request" in str(control.ask(filled / "state", '{"please": 1}'))

    dataset = beside_a_proxy(filled, ask)
    assert dataset.current.learned == ()
    assert spent(filled) == 0


def test_a_directory_whose_owner_cannot_be_asked_is_in_use(filled: Path) -> None:
    with closing(SqliteLedger(filled / "state")), pytest.raises(ConfigError, match="in use by process"):
        app.learn(config(filled))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tables": ("stores",)}, 'no private table "stores"'),
        ({"tables": ("users",)}, "nothing to learn"),
        ({"columns": (("orders", "missing"),)}, 'no column "missing"'),
        ({"columns": (("orders", "note"),)}, "no number with bounds"),
        ({"columns": (("nowhere", "x"),)}, 'no private table "nowhere"'),
        ({"epsilon": 0.0}, "--epsilon"),
        ({"epsilon": float("nan")}, "--epsilon"),
    ],
)
def test_wishes_that_cannot_be_are_refused(folder: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(HushError, match=message):
        wishes_of(config(folder, **changes), policy_of(folder))


def test_the_command_tells_what_it_learned(filled: Path, command: CommandLine) -> None:
    asked = ("learn-bounds", str(filled / "p.yaml"), "--state", str(filled / "state"), "--table", "orders",
             "--column", "orders.amount", "--column", "users.age", "--epsilon", "4")  # fmt: skip
    command.taught = app.learn(config(filled, tables=("orders",), columns=(("orders", "amount"), ("users", "age"))))
    assert command(*asked) == 0
    (config_of,) = command.learned
    assert (config_of.tables, config_of.columns) == (("orders",), (("orders", "amount"), ("users", "age")))
    rows, sums, values, ages, charge = command.out.splitlines()
    assert rows.startswith("orders: all but about ")
    assert rows.endswith(" rows; the policy allows 1000")
    assert "sums of size 1" in sums
    assert "write bounds: [-2" in values
    assert "write bounds: [0, " in ages
    assert charge == "shop: charged to the dataset: epsilon 4"
    assert command(*asked, "--json") == 0
    told = json.loads(command.out)
    assert [v["column"] for v in told["values"]] == ["amount", "age"]
    command.taught = Taught(policy_of(filled), replace(command.taught.lesson, reused=command.taught.lesson.pico))
    assert command(*asked) == 0
    assert command.out.splitlines()[-1] == "shop: paid for before, nothing was charged"
    assert command("learn-bounds", "p.yaml", "--column", "amount") == 2
    assert "TABLE.COLUMN" in command.err
