"""A promise that is made stronger, weaker or for another unit while clients ask: what becomes of what was spent."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from proxy.dp.accounting import knob_pico
from proxy.dp.selection import shown_atto_up
from proxy.ledger.chain import Entry
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.policy.load import load_policy
from proxy.policy.model import Promise
from tests.e2e.served import Client, Served, hushql, serving, shop_policy, write_users, write_yaml
from tests.e2e.shop_data import write_shop

WAIT_S = 200.0
BUDGETS = {"dataset": {"epsilon": 50}, "user": {"epsilon": 3}, "session": {"epsilon": 3}}
GROUPS = "SELECT city, count(*) FROM users GROUP BY city"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    write_shop(tmp_path / "shop.duckdb")
    write_users(tmp_path / "users.yaml", {"ann": "analyst", "bob": "analyst", "boss": "boss"})
    edit(tmp_path)
    return tmp_path


@pytest.fixture
def running(shop: Path) -> Iterator[Served]:
    with serving(shop, [shop / "shop.yaml"]) as served:
        yield served


def edit(folder: Path, **changes: object) -> Path:
    privacy = {"unit": "customer", "delta": 1e-6, "query_epsilon": 0.5, "time_grid": "0ms", **changes}
    return write_yaml(folder / "shop.yaml", shop_policy(privacy=privacy, budgets=BUDGETS))


def reloaded(served: Served, folder: Path, **changes: object) -> str:
    """Edit the policy, send SIGHUP and wait; what the proxy says of it."""
    before = len(served.log.read_text())
    edit(folder, **changes)
    served.process.send_signal(signal.SIGHUP)
    until(lambda: "is in force" in said(served, before) or "was not taken" in said(served, before))
    return said(served, before)


def said(served: Served, start: int) -> str:
    return served.log.read_text()[start:]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.05)


def accounts(client: Client) -> dict[str, dict[str, object]]:
    with client.cursor(row_factory=dict_row) as cursor:
        return {str(row["kind"]): row for row in cursor.execute("SELECT * FROM hush.budget")}


def rho(client: Client) -> dict[str, float]:
    return {kind: float(str(row["rho_spent"])) for kind, row in accounts(client).items()}


def test_a_stronger_promise_counts_what_was_spent_and_a_weaker_one_gives_nothing(shop: Path, running: Served) -> None:
    with running.connect("shop") as ann, running.connect("shop", "boss") as boss:
        first = ann.execute(GROUPS).fetchall()
        ann.execute("SELECT plan, count(*) FROM users GROUP BY plan")
        before = rho(boss) | rho(ann)
        text = reloaded(running, shop, group_size=5)
        assert "what was spent counts for what is promised now: epsilon " in text
        assert "the user account shop/ann is overspent: epsilon " in text
        now = rho(boss) | rho(ann)
        for kind in ("dataset", "role", "user", "session"):
            assert now[kind] == pytest.approx(25 * before[kind], rel=1e-9), kind
        assert float(str(accounts(ann)["user"]["epsilon_remaining"])) == 0
        with pytest.raises(psycopg.Error) as refused:
            ann.execute("SELECT count(*) FROM orders")
        assert refused.value.sqlstate == "DP001"
        assert float(str(accounts(boss)["dataset"]["lifetime_epsilon"])) > 0
        weaker = reloaded(running, shop)
        assert "more was promised before (group_size 5) and stays so for the accounts" in weaker
        assert rho(boss) | rho(ann) == now
        dataset = accounts(boss)["dataset"]
        left = Decimal(str(dataset["rho_limit"])) - Decimal(str(dataset["rho_spent"]))
        one = knob_pico(load_policy((shop / "shop.yaml").read_text(), filename="s.yaml", environment={}).privacy, 0.5)
        assert dataset["queries_left"] == left * 10**12 // (25 * one)
        assert ann.execute(GROUPS).fetchall() == first, "what was paid for is free"
        assert rho(ann) == {kind: now[kind] for kind in ("user", "session")}


def test_statements_in_flight_count_for_what_is_promised_when_they_are_charged(shop: Path, running: Served) -> None:
    numbers, is_over = count(10), threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            try:
                with running.connect("shop", "bob") as bob:
                    for _ in range(20):
                        bob.execute("SET hush.epsilon = 0.01")
                        bob.execute(f"SELECT count(*) FROM orders WHERE amount > {next(numbers)}".encode())
            except psycopg.Error as error:
                assert error.sqlstate in ("DP001", "DP008", "57P01", "42501"), error  # noqa: PT017 all others fail

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for size in (6, 1, 8, 1):
        reloaded(running, shop, group_size=size)
    is_over.set()
    for asker in askers:
        asker.join()
    # every charge counts for groups of 8, whichever policy it was planned under
    done = hushql("ledger", "show", "--state", str(shop / "state"), "--json")
    assert done.returncode == 0, done.stderr
    with closing(_copied(shop)) as ledger:
        charged = [e for e in ledger.entries() if isinstance(e, Entry)]
        made_for = {e.promise.group_size for e in charged if isinstance(e.promise, Promise)}
        assert {1, 8} <= made_for
        spent = {t.name: t.spent for t in ledger.verify().totals}
    for name in ("shop", "shop/bob"):
        paid = [
            (entry.promise.group_size, release)
            for entry in charged if isinstance(entry.promise, Promise)
            for line in entry.lines if line.name == name
            for release in entry.releases if release.release_id in line.releases
        ]  # fmt: skip
        pico = sum(Fraction(r.cost.pico) * Fraction(8, size) ** 2 for size, r in paid)
        shown = [sum(shown_atto_up(rule, 8) for rule in r.keys) if size < 8 else r.cost.atto for size, r in paid]
        assert pico <= spent[name].pico <= pico + 30 * len(paid), name
        assert spent[name].atto == sum(shown), name


def _copied(folder: Path) -> SqliteLedger:
    """The books beside a running proxy, through an export."""
    lines, state = folder / "books.jsonl", folder / "copy"
    lines.unlink(missing_ok=True)
    done = hushql("ledger", "export", "--state", str(folder / "state"), "--output", str(lines))
    assert done.returncode == 0, done.stderr
    done = hushql("ledger", "import", str(lines), "--state", str(state))
    assert done.returncode == 0, done.stderr
    return SqliteLedger(state)


def test_another_unit_is_refused_and_an_acknowledged_break_is_shown_for_ever(shop: Path, running: Served) -> None:
    with running.connect("shop", "boss") as boss:
        refused = reloaded(running, shop, unit="household")
        assert "was not taken" in refused
        assert 'the unit of dataset "shop" is not the one that its accounts were kept for' in refused
        boss.execute("SELECT count(*) FROM users")
        before = rho(boss)
        assert accounts(boss)["dataset"]["outside_promise"] is None
        checked = hushql("policy", "check", str(shop / "shop.yaml"), "--state", str(shop / "state"))
        assert checked.returncode == 1
        assert "unit_changed_from: customer" in checked.stderr
        text = reloaded(running, shop, unit="household", unit_changed_from="customer")
        assert "unit customer until " in text
        assert rho(boss) == before
    reloaded(running, shop, unit="household")
    with running.connect("shop", "boss") as boss, running.connect("shop") as ann:
        for row in (*accounts(boss).values(), *accounts(ann).values()):
            words = str(row["outside_promise"])
            assert words.startswith("unit customer until ")
            assert "spent before is outside the promise" in words
        plan = "\n".join(str(line) for (line,) in boss.execute("EXPLAIN SELECT count(*) FROM items").fetchall())
        assert "Remaining, dataset: unit customer until " in plan


def test_a_start_keeps_what_was_promised_and_refuses_what_was_given_up(shop: Path, running: Served) -> None:
    with running.connect("shop") as ann:
        ann.execute("SELECT count(*) FROM users")
    reloaded(running, shop, unit="household", unit_changed_from="customer", group_size=8)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(WAIT_S) == 0
    edit(shop)
    refused = hushql("serve", str(shop / "shop.yaml"), "--listen", "127.0.0.1:0", "--state", str(shop / "state"))
    assert refused.returncode == 1
    assert "is not the one that its accounts were kept for" in refused.stderr
    shown = hushql("ledger", "show", "--state", str(shop / "state"))
    assert "group_size 8" in shown.stdout
    assert "unit customer until " in shown.stdout
    edit(shop, unit="household")
    with serving(shop, [shop / "shop.yaml"]) as again, again.connect("shop", "boss") as boss:
        assert "more was promised before (group_size 8)" in again.log.read_text()
        assert str(accounts(boss)["dataset"]["outside_promise"]).startswith("unit customer until ")
