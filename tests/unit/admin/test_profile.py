"""What does `hushql profile` ask, charge, keep and tell; and who uses what was kept?"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import duckdb
import pytest

from proxy import app
from proxy.admin import control
from proxy.admin.commands.profile import Profiled, wishes_of
from proxy.admin.guests import Guests
from proxy.admin.hosting import Hosted, PublicSource
from proxy.admin.profiles.file import is_kept, keep_profiles, path_of, read_profiles
from proxy.admin.profiles.request import Profiling
from proxy.config import EveryFilter, ExplainRequest, Filters
from proxy.dp.accounting import knob_pico
from proxy.dp.mechanisms import Distribution
from proxy.errors import BudgetSpent, ConfigError, HushError
from proxy.front.front import Front
from proxy.identity.passes import Passes
from proxy.identity.vouchers import Voucher
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.pipeline.alone import read_alone
from proxy.pipeline.outline import Cuts, Outline
from proxy.pipeline.plans import Task, plan_statement
from proxy.pipeline.premises import Terms
from proxy.pipeline.statements import Understood
from proxy.plan.profile.profile import BUCKETS, ColumnShares, Sizes, TableProfile
from proxy.plan.words.explain_sets import explain_plan, plan_lines
from proxy.session.asking.plancache import PlanCache
from proxy.session.dataset import Dataset, Version
from proxy.session.learning.profiling import profile
from proxy.sql.algebra.constants import Constants
from tests.unit.admin.command_line import CommandLine
from tests.unit.admin.profile_shop import LARGE, POLICY, UNITS, NoNoise, config, made, opener_of, policy_of, spent
from tests.unit.session.make import version as others_version


@pytest.fixture
def version(filled: Path) -> Iterator[Version]:
    """As a proxy opens it after `profile`."""
    app.profile(config(filled, epsilon=1.0))
    with closing(SqliteLedger(filled / "state")) as ledger:
        opened = asyncio.run(opener_of(filled, ledger).open(policy_of(filled)))
    yield opened
    opened.engine.close()


def counted(sizes: Sizes) -> dict[float, int]:
    """Units by the edge of their bucket."""
    edges = (*sizes.tail.edges, float("inf"))
    return {round(e, 6): round(n) for e, n in zip(edges, sizes.counts, strict=True) if round(n)}


def test_units_are_counted_by_size_charged_once_and_kept(filled: Path) -> None:
    asked = config(filled, columns=(("users", "age"),))
    findings = app.profile(asked).findings
    users, orders, items = sorted(findings.profiles, key=lambda p: ("users", "orders", "items").index(p.table))
    assert (users.allowed, orders.allowed, items.allowed) == (1, 1000, 40)
    assert counted(orders.rows) == {4.0: UNITS - LARGE, 362.038672: LARGE}
    ((column, largest, sums),) = orders.sums
    assert (column, largest) == ("amount", 10000.0)
    edges = {e * largest: n for e, n in counted(sums).items()}
    assert sorted(edges.values()) == [LARGE, UNITS - LARGE]
    assert 100 <= min(edges) <= 100 * 2**0.5, "four times 25"
    assert 7500 <= max(edges) <= 7500 * 2**0.5, "rows above the policy's bounds count too"
    assert counted(items.rows) == {1.0: UNITS}
    assert users.rows.counts[0] == pytest.approx(UNITS, abs=5), "as many as have a sum"
    assert [(v.table, v.column, sum(counted(v.sizes).values())) for v in findings.values] == [("users", "age", UNITS)]
    whole = knob_pico(policy_of(filled).privacy, 4.0)
    assert spent(filled) == findings.pico == sum(whole * w // (6 * 25 + 3 * 6 + 2) for w in (*[25] * 6, *[6] * 3, 1, 1))
    kept, said = read_profiles(path_of(filled / "state", "shop"), policy_of(filled))
    assert (sorted(kept, key=lambda p: p.table), said) == (sorted(findings.profiles, key=lambda p: p.table), ())
    again = app.profile(asked).findings
    assert (again.profiles, again.values, again.reused) == (findings.profiles, findings.values, findings.pico)
    assert spent(filled) == findings.pico, "what is stored is free"


def test_shares_of_rows_and_of_pairs_are_added_up_at_a_small_part_of_the_price(filled: Path) -> None:
    asked = config(filled, filters=EveryFilter(), epsilon=8.0)
    findings = app.profile(asked).findings
    of = {p.table: p for p in findings.profiles}
    assert [s.column for s in of["orders"].shares] == ["amount", "kind"]
    kind = of["orders"].shares_of("kind")
    assert kind is not None
    small, large = UNITS - LARGE, LARGE
    assert kind.rows == pytest.approx((small / 4 + large * 297 / 300, small / 4 + large / 300, small / 2 + large / 150))
    rest = large * 297 * 296 / (300 * 299)
    assert kind.pairs == pytest.approx((rest, 0.0, small / 6 + large * 2 / (300 * 299)), rel=1e-5, abs=1e-5)
    age = of["users"].shares_of("age")
    assert age is not None
    assert sum(age.rows) == pytest.approx(UNITS)
    assert not any(age.pairs), "of one row there is no pair"
    whole = knob_pico(policy_of(filled).privacy, 8.0)
    weights = 5 * 25 + 3 * 6 + 2 + 1 + 2 + 2 + 2
    assert findings.pico == sum(whole * w // weights for w in (*[25] * 5, 6, 6, 6, 1, 1, 1, 2, 2, 2)) == spent(filled)
    assert kind.sd == pytest.approx(1 / (whole * 2 // weights / 1e12) ** 0.5, rel=1e-6), "a vector of length sqrt 2"
    kept, said = read_profiles(path_of(filled / "state", "shop"), policy_of(filled))
    assert (sorted(kept, key=lambda p: p.table), said) == (sorted(findings.profiles, key=lambda p: p.table), ())
    assert is_kept(path_of(filled / "state", "shop"), policy_of(filled), wishes_of(asked, policy_of(filled)))


def test_columns_to_filter_by_can_be_named(filled: Path) -> None:
    findings = app.profile(config(filled, filters=Filters((("orders", "kind"),)), tables=("items",))).findings
    assert {p.table: [s.column for s in p.shares] for p in findings.profiles} == {"items": [], "orders": ["kind"]}


def test_what_is_kept_of_the_same_data_need_not_be_counted_again(filled: Path) -> None:
    path, policy = path_of(filled / "state", "shop"), policy_of(filled)
    all_of_it = wishes_of(config(filled), policy)
    assert not is_kept(path, policy, all_of_it)
    app.profile(config(filled, tables=("orders",)))
    assert not is_kept(path, policy, all_of_it), "users and items are missing"
    app.profile(config(filled))
    assert is_kept(path, policy, all_of_it)
    assert not is_kept(path, replace(policy, data_version="2"), all_of_it), "other data"
    text = (filled / "p.yaml").read_text().replace("bounds: [-10000, 10000]", "bounds: [0, 10000]")
    (filled / "p.yaml").write_text(text)
    assert not is_kept(path, policy_of(filled), all_of_it), "what the policy says of amounts is another thing"


def test_how_far_it_is_is_told_before_and_after_each_step(filled: Path) -> None:
    told: list[tuple[int, int]] = []
    app.profile(config(filled), lambda done, steps: told.append((done, steps)))
    assert told == [(done, 20) for done in range(21)], "ten questions, each planned and computed"


def test_noise_is_that_of_a_share_of_the_price(filled: Path) -> None:
    """Six counts of weight 1, three of about 1/2 and two of 1/5, each of one unit that moves one number by one."""
    findings = app.profile(config(filled, columns=(("users", "age"),))).findings
    rho = knob_pico(policy_of(filled).privacy, 4.0) / (6 * 25 + 3 * 6 + 2) / 1e12
    for one in findings.profiles:
        for sizes in (one.rows, *(s for _, _, s in one.sums)):
            assert sizes.sd == pytest.approx(1 / (2 * 25 * rho) ** 0.5, rel=1e-6)
        for means in one.means:
            assert means.sd == pytest.approx(1 / (2 * 6 * rho) ** 0.5, rel=1e-6)
        for _, groups in one.groups:
            assert groups.sd == pytest.approx(1 / (2 * rho) ** 0.5, rel=1e-6)


def test_it_is_counted_how_many_unlisted_values_units_have(filled: Path) -> None:
    findings = app.profile(config(filled)).findings
    orders = next(p for p in findings.profiles if p.table == "orders")
    ids, notes = orders.groups_of("order_id"), orders.groups_of("note")
    assert ids is not None
    assert notes is not None
    assert counted(ids) == {4.0: UNITS - LARGE, 362.038672: LARGE}, "each row has its own"
    assert counted(notes) == {1.0: UNITS}
    assert orders.groups_of("amount") is None


def test_averages_of_units_of_several_rows_are_counted(filled: Path) -> None:
    findings = app.profile(config(filled)).findings
    orders, items = (next(p for p in findings.profiles if p.table == t) for t in ("orders", "items"))
    amount, price = orders.means_of("amount"), items.means_of("price")
    assert amount is not None
    assert price is not None
    assert (amount.ends[0], amount.ends[-1], price.ends[0], price.ends[-1]) == (-10000.0, 10000.0, 0.0, 100.0)
    assert sum(amount.counts) == pytest.approx(UNITS)
    assert amount.centre == pytest.approx(25.0, rel=0.25), "a cell is half an octave wide"
    assert not price.are_told, "nobody has as many as four items"


def test_nothing_is_learned_that_cannot_be_paid(filled: Path) -> None:
    with pytest.raises(BudgetSpent, match="budget of this dataset is spent"):
        app.profile(config(filled, epsilon=50.0))
    assert spent(filled) == 0
    assert not path_of(filled / "state", "shop").exists()


def test_nothing_follows_from_too_few_units(filled: Path, command: CommandLine) -> None:
    """The noise of each number is larger than all units together."""
    with duckdb.connect(filled / "shop.duckdb") as database:
        database.execute("delete from orders where user_id > 20")
    command.profiled = app.profile(config(filled, epsilon=0.002, tables=("items",)))
    assert [p.rows.tail.units for p in command.profiled.findings.profiles] <= [40.0]
    assert command("profile", str(filled / "p.yaml"), "--epsilon", "0.002") == 0
    assert "charged to the dataset: epsilon 0.002" in command.out


@pytest.mark.parametrize(
    ("old", "new", "kept", "said"),
    [
        ("epsilon: 20", "epsilon: 30", ["orders amount", "items"], []),
        ("values: [a, b]", "values: [a, b, c]", ["orders amount", "items"], ['shares of "orders"."kind"']),
        ("bounds: [0, 100]", "bounds: [0, 90]", ["orders amount", "items"], []),  # nobody asked about it
        ("max_rows_per_unit: 1000", "max_rows_per_unit: 900", ["orders amount", "items"], []),
        ('data_version: "1"', 'data_version: "2"', ["orders amount", "items"], ["data version 1", "data version 1"]),
        ("[-10000, 10000]", "[-10000, 20000]", ["orders", "items"], ['sums of "orders"."amount"']),
        ("  items:", "  lines:\n    relation: items", ["orders amount"], ['table "items"']),
        ("unit: {via: orders, on: order_id}", "unit: order_id", ["orders amount"], ['table "items"']),
    ],
)
def test_what_fits_the_policy_no_longer_is_left_out_and_said(
    folder: Path, old: str, new: str, kept: list[str], said: list[str]
) -> None:
    path = folder / "b.json"
    sums = (("amount", 10000.0, made(3.0)),)
    shares = (ColumnShares(column="kind", rows=(1.0, 2.0, 3.0), pairs=(0.0, 1.0, 1.0), sd=2.0),)
    orders = TableProfile(
        table="orders", allowed=1000, rows=made(5.0, -9.5), sums=sums, shares=shares, data_version="1"
    )
    items = TableProfile(table="items", allowed=40, rows=made(7.0), sums=(), data_version="1")
    keep_profiles(path, policy_of(folder), (orders, items))
    assert read_profiles(path, policy_of(folder)) == ((orders, items), ())
    (folder / "p.yaml").write_text(POLICY.replace(old, new).replace("{order_id: {type: bigint}, price",
                                   "{order_id: {type: bigint, key: true}, price"), encoding="utf-8")  # fmt: skip
    found, lines = read_profiles(path, policy_of(folder))
    assert [" ".join((p.table, *(c for c, _, _ in p.sums))) for p in found] == kept
    assert len(lines) == len(said)
    for line, words in zip(lines, said, strict=True):
        assert words in line
        assert line.endswith("; hushql profile makes a new one")
    assert [p.newer for p in found] == (["2"] * len(found) if "data_version" in old else [""] * len(found))


def test_a_new_profile_takes_the_place_of_the_old(tmp_path: Path, folder: Path) -> None:
    path, policy = tmp_path / "b.json", policy_of(folder)
    sums = (("amount", 10000.0, made(70.0)),)
    first = TableProfile(table="orders", allowed=1000, rows=made(5.0), sums=sums, data_version="1")
    for new in ((), (("amount", 10000.0, made(80.0)),)):
        keep_profiles(path, policy, [first])
        again = replace(first, rows=made(6.0), sums=new)
        keep_profiles(path, policy, [again])
        assert read_profiles(path, policy) == ((replace(again, sums=new or sums),), ())
    assert path.stat().st_mode & 0o777 == 0o600


UNLIKE = json.dumps({
    "dataset": "shop",
    "tables": [{
        "table": "orders", "rows": {"least": 1.0, "counts": [0.0] * BUCKETS, "sd": 1.0}, "sums": [],
        "data_version": "1",
        "shares": [{"column": "kind", "rows": [1.0, 2.0], "pairs": [1.0], "sd": 1.0, "of": ""}], "of": "",
    }],
})  # fmt: skip


HUGE = UNLIKE.replace('"counts": [0.0,', '"counts": [1e13,').replace('"pairs": [1.0]', '"pairs": [1.0, 1.0]')


@pytest.mark.parametrize("text", ["", "{}", '{"tables": [{}]}', UNLIKE, HUGE, '{"tables": [], "more": 1}', "\x00"])
def test_a_damaged_file_is_an_error(tmp_path: Path, folder: Path, text: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="is damaged"):
        read_profiles(path, policy_of(folder))


def planned_lines(version: Version, text: str, epsilon: float) -> list[str]:
    """What EXPLAIN says of a statement's only release."""
    served = replace(version, users=others_version().users)
    premises = served.premises("ann")
    handle = read_alone(Cuts(), text, premises).handle
    assert isinstance(handle, Understood)
    assert isinstance(handle.query, Outline)
    task = Task(query=handle.query, premises=premises, terms=Terms(epsilon=epsilon),
                constants=Constants({}, datetime(2026, 1, 1, tzinfo=UTC)))  # fmt: skip
    (plan,) = plan_statement(Cuts(), task).plans
    return plan_lines(explain_plan(plan, served.policy.privacy))


def test_statements_choose_their_bound_and_say_so(version: Version) -> None:
    told = " ".join(" ".join(planned_lines(version, "select count(*) from orders", 0.5)).split())
    found = re.search(r"Bounds: (\d+) rows per unit.* of 1000 rows by the profile of data version 1", told)
    assert found is not None
    assert 4 <= int(found[1]) <= 8, "nearly everybody has four; a chosen bound would gain little"
    told = " ".join(" ".join(planned_lines(version, "select sum(amount) from orders", 0.5)).split())
    found = re.search(r"counts up to that of ([\d.]+) rows, by the profile of data version 1", told)
    assert found is not None
    assert 0.01 <= float(found[1]) <= 0.04, "four rows of 25, in rows of 10,000"


def test_statements_choose_a_bound_for_the_rows_that_where_keeps(filled: Path, version: Version) -> None:
    def told(text: str) -> str:
        return " ".join(" ".join(planned_lines(seeing, text, 0.5)).split())

    app.profile(config(filled, epsilon=8.0, filters=EveryFilter()))
    seeing = replace(version, profiles=read_profiles(path_of(filled / "state", "shop"), policy_of(filled))[0])
    kept = re.search(
        r"WHERE keeps about ([\d.]+) % of a unit's rows", told("select count(*) from orders where kind = 'a'")
    )
    assert kept is not None
    assert 24 <= float(kept[1]) <= 28, "a quarter, and what may be noise"
    assert 'no profile of "order_id": bound of the whole table' in told(
        "select sum(amount) from orders where order_id > 5"
    )
    assert "no profile of" not in told("select count(*) from orders where kind is null")


def test_explain_without_a_server_uses_them_where_it_is_told_where_they_are(version: Version, filled: Path) -> None:
    asked = ExplainRequest(policy=filled / "p.yaml", sql="select count(*) from orders", state=filled / "state")
    told = [" ".join(app.explain(replace(asked, state=s)).split()) for s in (None, asked.state)]
    assert ["by the profile of data version 1" in t for t in told] == [False, True]


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
            opener = opener_of(folder, ledger)
            dataset = Dataset(ledger=ledger, noise={}, current=await opener.open(policy_of(folder)))
            front, public = cast(Front, Applying(ask)), PublicSource(dataset.uses)
            public.engine = dataset.current.engine
            guests = Guests(
                dataset=dataset, front=front, threads=ThreadPoolExecutor(1), looking=ThreadPoolExecutor(1),
                passes=Passes(bytes, float), clock=float, voucher=Voucher(),
            )  # fmt: skip
            hosted = Hosted(path=folder / "p.yaml", users_path=folder / "users.yaml", dataset=dataset, front=front,
                            public=public, plans=PlanCache(), guests=guests)  # fmt: skip
            noise = {d: NoNoise() for d in Distribution}
            profiling = Profiling(
                state=folder / "state", hosted=[hosted], ledger=ledger, noise=noise, profile=profile
            )  # fmt: skip
            listening = await control.Control.start(folder / "state", profiling.answer)
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


def test_a_running_proxy_profiles_charges_and_uses_it_at_once(filled: Path) -> None:
    profiled: list[Profiled] = []
    asked = config(filled)
    dataset = beside_a_proxy(filled, lambda: profiled.append(app.profile(asked)))
    findings = profiled[0].findings
    assert [p.table for p in findings.profiles] == ["users", "orders", "items"]
    assert dataset.current.profiles == findings.profiles
    assert read_profiles(path_of(filled / "state", "shop"), policy_of(filled)) == (findings.profiles, ())
    assert spent(filled) == findings.pico > 0
    assert not (filled / "state" / "control").exists()
    again = app.profile(asked).findings
    assert (again.profiles, again.reused) == (findings.profiles, findings.pico), "as without a proxy, and paid"


@pytest.mark.parametrize("damaged", [False, True])
def test_a_reload_at_the_same_time_misses_nothing(filled: Path, damaged: bool) -> None:
    """What is made after the data were opened and before versions change is used; a damaged file changes nothing."""
    profiled: list[Profiled] = []

    def ask() -> None:
        profiled.append(app.profile(config(filled)))
        if damaged:
            path_of(filled / "state", "shop").write_text("{", encoding="utf-8")

    dataset = beside_a_proxy(filled, ask, reloads=True)
    assert profiled[0].findings.profiles
    assert dataset.current.profiles == (() if damaged else profiled[0].findings.profiles)


def test_what_a_running_proxy_refuses_is_said(filled: Path) -> None:
    def ask() -> None:
        with pytest.raises(ConfigError, match="budget of this dataset is spent"):
            app.profile(config(filled, epsilon=50.0))
        text = (filled / "p.yaml").read_text()
        changes = {"dataset: shop": "dataset: more", '"1"': '"2"'}
        for (old, new), said in zip(changes.items(), ("does not serve a dataset", "another policy"), strict=True):
            (filled / "p.yaml").write_text(text.replace(old, new))
            with pytest.raises(ConfigError, match=said):
                app.profile(config(filled))
        (filled / "p.yaml").write_text(text)
        assert "does not know this request" in str(control.ask(filled / "state", '{"please": 1}'))

    dataset = beside_a_proxy(filled, ask)
    assert dataset.current.profiles == ()
    assert spent(filled) == 0


def test_a_directory_whose_owner_cannot_be_asked_is_in_use(filled: Path) -> None:
    with closing(SqliteLedger(filled / "state")), pytest.raises(ConfigError, match="in use by process"):
        app.profile(config(filled))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tables": ("stores",)}, 'no private table "stores"'),
        ({"columns": (("orders", "missing"),)}, 'no column "missing"'),
        ({"columns": (("orders", "note"),)}, "no number with bounds"),
        ({"columns": (("nowhere", "x"),)}, 'no private table "nowhere"'),
        ({"filters": Filters((("orders", "note"),))}, "no values, no range"),
        ({"epsilon": 0.0}, "--epsilon"),
        ({"epsilon": float("nan")}, "--epsilon"),
    ],
)
def test_wishes_that_cannot_be_are_refused(folder: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(HushError, match=message):
        wishes_of(config(folder, **changes), policy_of(folder))


def test_a_policy_without_anything_to_count_is_refused(folder: Path) -> None:
    text = (folder / "p.yaml").read_text().replace(", age: {type: bigint, bounds: [0, 1000]}", "")
    (folder / "p.yaml").write_text(re.sub(r"  orders:.*?(?=  stores:)", "", text, flags=re.DOTALL))
    with pytest.raises(ConfigError, match="nothing to count"):
        wishes_of(config(folder), policy_of(folder))


def test_the_command_tells_what_it_counted(filled: Path, command: CommandLine) -> None:
    asked = ("profile", str(filled / "p.yaml"), "--state", str(filled / "state"), "--table", "orders",
             "--column", "orders.amount", "--column", "users.age", "--epsilon", "4")  # fmt: skip
    command.profiled = app.profile(config(filled, tables=("orders",), columns=(("orders", "amount"), ("users", "age"))))
    assert command(*asked) == 0
    (config_of,) = command.profile_configs
    assert (config_of.tables, config_of.columns) == (("orders",), (("orders", "amount"), ("users", "age")))
    lines = command.out.splitlines()
    assert re.fullmatch(r"orders: about (2,9\d\d|3,0\d\d) units", lines[0])
    assert lines[1].startswith("  rows of a unit: of units half at most 4, 90 % at most 4")
    assert lines[2].startswith("  max_rows_per_unit 1000: about ")
    assert [line for line in lines if "write bounds: [0, " in line], "of ages"
    assert lines[-1] == "shop: charged to the dataset: epsilon 4"
    assert command(*asked, "--json") == 0
    told = json.loads(command.out)
    assert [v["column"] for v in told["values"]] == ["amount", "age"]
    command.profiled = Profiled(
        policy_of(filled), replace(command.profiled.findings, reused=command.profiled.findings.pico)
    )
    assert command("learn-bounds", *asked[1:]) == 0, "the word that it had before"
    assert command.out.splitlines()[-1] == "shop: paid for before, nothing was charged"
    assert command("profile", "p.yaml", "--column", "amount") == 2
    assert "TABLE.COLUMN" in command.err
    assert command("profile", "p.yaml", "--by", "kind") == 2
    assert "--by is TABLE.COLUMN" in command.err
    for by, wanted in (("none", ()), ("orders.kind", (("orders", "kind"),))):
        assert command(*asked, "--by", by) == 0
        assert command.profile_configs[-1].filters == Filters(wanted)


def test_what_is_kept_is_shown_with_pictures_and_costs_nothing(filled: Path, command: CommandLine) -> None:
    shown = ("profile", str(filled / "p.yaml"), "--state", str(filled / "state"), "--show")
    assert command(*shown) == 2
    assert "hushql profile makes one" in command.err
    findings = app.profile(config(filled, filters=EveryFilter())).findings
    assert command(*shown) == 0
    assert "units by rows" in command.out
    assert "share of rows by kind" in command.out
    assert re.search(r"NULL or other  █+ 2\d %", command.out)
    assert any("█" * 40 in line and line.endswith("3,000") for line in command.out.splitlines())
    assert command(*shown, "--json") == 0
    assert [t["table"] for t in json.loads(command.out)["tables"]] == ["users", "orders", "items"]
    assert spent(filled) == findings.pico
    assert not command.profile_configs
