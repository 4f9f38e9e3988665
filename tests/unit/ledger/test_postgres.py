"""The ledger in PostgreSQL: the shared suite, and what only a server and a way to it can do wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.dp.selection import shown_atto_up
from proxy.errors import ConfigError, LedgerFailed
from proxy.ledger import history
from proxy.ledger.base import AccountSpent, Ledger, Outcome
from proxy.ledger.postgres import chain as postgres_chain
from proxy.ledger.postgres import link as postgres_link
from proxy.ledger.postgres.books import foretell_at, inspect_at
from proxy.ledger.postgres.ledger import PostgresLedger
from proxy.ledger.promises import PolicyOutdated, UnitChanged
from proxy.ledger.sqlite.head import Marker
from proxy.plan.charge import Cost
from proxy.policy.model import Promise
from proxy.release.store import StoredRelease
from tests.unit.ledger.make import RULE, account, ask, gift, key, payers, pledge, reserved_of, want
from tests.unit.ledger.relay import Cut, Relay, relayed
from tests.unit.ledger.server import Database
from tests.unit.ledger.suite import LedgerSuite

ROOT = Path(__file__).parents[3]
NOTHING, PRICE = Cost(0, 0), Cost(1000, 7)


class TestPostgresLedger(LedgerSuite):
    @pytest.fixture
    def open_ledger(self, database: Database, tmp_path: Path) -> Callable[[], Ledger]:
        return lambda: PostgresLedger(tmp_path / "state", database.url)


def spent(shared: Ledger) -> int:
    return shared.balances(payers())[0].spent.pico


# --- several proxies ------------------------------------------------------------------------------


def test_of_unlike_policies_the_stronger_promise_counts_for_all(shared: PostgresLedger, other: PostgresLedger) -> None:
    """One proxy promises groups of 5, the other goes on with single units: both count for 5, in either order."""
    weak = (account("dataset", "shop", pico=100_000), account("user", "shop/ann"))
    strong = tuple(replace(a, promise=Promise(5)) for a in weak)
    shared.pledge(pledge(), weak[0], ask().at)
    other.reserve(weak, want("a"), ask())
    other.pledge(pledge(Promise(5)), strong[0], ask().at)
    assert shared.reserve(weak, want("b", keys=(RULE,)), ask()).charged[0] == Cost(25_000, shown_atto_up(RULE, 5))
    assert other.reserve(strong, want("c"), ask()).charged[0] == PRICE
    shared.pledge(pledge(), weak[0], ask().at)
    for one, accounts in ((shared, weak), (other, strong)):
        assert one.balances(accounts)[0].spent == Cost(51_000, 14 + shown_atto_up(RULE, 5))
        assert one.verify().totals == one.all_accounts()
    shared.reserve(weak, want("d", pico=1900, atto=0), ask())
    with pytest.raises(AccountSpent):
        shared.reserve(weak, want("e", pico=80, atto=0), ask())
    other.reserve(strong, want("f", pico=80), ask())


def test_a_unit_that_one_proxy_gave_up_is_not_charged_by_another(shared: PostgresLedger, other: PostgresLedger) -> None:
    accounts = (account("dataset", "shop"),)
    for one in (shared, other):
        one.pledge(pledge(digest="policy"), accounts[0], ask().at)
    ticket = reserved_of(shared.reserve(accounts, want(sql=""), ask()).items[0])
    other.pledge(pledge(unit="household", changed_from="customer", digest="new"), accounts[0], ask().at)
    with pytest.raises(PolicyOutdated):
        shared.reserve(accounts, want("b"), ask())
    assert other.reserve(accounts, want("b", digest="new"), ask()).charged == (PRICE,)
    with pytest.raises(UnitChanged):
        shared.pledge(pledge(digest="policy 2"), accounts[0], ask().at)
    shared.bind(ticket, want("c", keys=(RULE,))[0], ask().at)
    assert shared.verify().totals == other.verify().totals


def test_what_a_promise_would_do_is_told_beside_running_proxies(shared: PostgresLedger, database: Database) -> None:
    dataset = account("dataset", "shop")
    shared.reserve((dataset,), want(), ask())
    told = foretell_at(database.url, pledge(Promise(5)), replace(dataset, promise=Promise(5)), ask().at)
    assert (told.before, told.balance.spent) == (PRICE, Cost(25_000, 7))
    assert shared.balances((dataset,))[0].spent == PRICE


def test_what_one_proxy_charges_the_other_counts(shared: PostgresLedger, other: PostgresLedger) -> None:
    accounts = (account("dataset", pico=2500), account("user"))
    first = shared.reserve(accounts, want("a"), ask("one", after_s=1))
    other.reserve(accounts, want("b"), ask("two", after_s=2))
    for one in (shared, other):
        with pytest.raises(AccountSpent):
            one.reserve(accounts, want("c"), ask())
        assert one.balances(accounts)[0].spent.pico == 2000
        assert one.all_accounts() == one.verify().totals
    shared.grant(gift(accounts[0], 1000))
    assert reserved_of(other.reserve(accounts, want("c"), ask()).items[0]).release_id == 3
    shared.store.put(reserved_of(first.items[0]), b"noise")
    assert other.reserve(accounts, want("a"), ask("three", after_s=3)).charged == (NOTHING, NOTHING)
    assert isinstance(other.seen(accounts, key("a")), StoredRelease)
    other.note_outcome(first.statement, Outcome.ANSWERED)
    assert [a.query for a in other.history("alice", 9)] == ["three", "two", "one", ask().query]
    assert shared.history("alice", 9)[2].outcome is Outcome.ANSWERED


def test_who_is_overtaken_every_time_is_told(shared: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_chain, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(postgres_chain, "_LEAST_TRIES", 2)

    def overtaken() -> None:
        raise postgres_chain.Overtaken("others were faster")

    with pytest.raises(LedgerFailed):
        shared._chain.first(overtaken)


def test_an_end_that_is_not_that_of_the_entries_is_noticed(
    shared: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_chain, "_TIP", "SELECT 0, 'another', 0")
    with pytest.raises(LedgerFailed):
        shared._chain.check_end()


def test_a_reply_that_is_full_is_followed_by_the_rest(shared: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_chain, "AT_MOST", 1)
    shared.reserve(payers(), want("a"), ask())
    assert spent(shared) == 1000


def test_secrets_are_shared(shared: PostgresLedger, other: PostgresLedger) -> None:
    assert shared.shared_secret("salt", b"first") == b"first"
    assert other.shared_secret("salt", b"second") == b"first"
    assert other.shared_secret("another", b"second") == b"second"


def test_a_repeat_waits_for_no_lock(database: Database, shared: PostgresLedger) -> None:
    shared.store.put(reserved_of(shared.reserve(payers(), want(), ask()).items[0]), b"noise")
    with closing(shared._link.get().__class__.connect(database.url)) as holder:
        holder.execute("select * from hushql.tip for update")
        assert shared.reserve(payers(), want(), ask()).charged == (NOTHING,) * 3


def test_a_release_that_was_finished_meanwhile_is_not_taken_for_a_new_one(
    shared: PostgresLedger, other: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread books the number that a reader of the books took for the next new one."""
    original = PostgresLedger._are_paid

    def late(self: PostgresLedger, *arguments: object) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(PostgresLedger, "_are_paid", original)
            self.reserve(payers(), want("b"), ask())
        return original(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgresLedger, "_are_paid", late)
    receipt = shared.reserve(payers(), want("a"), ask())
    assert receipt.charged == (Cost(1000, 7),) * 3
    assert reserved_of(receipt.items[0]).key == key("a")


# --- the way to the server ----------------------------------------------------------------------------


@pytest.fixture
def relay(database: Database) -> Iterator[Relay]:
    with relayed(database.socket) as opened:
        yield opened


@pytest.fixture
def far(database: Database, relay: Relay, tmp_path: Path) -> Iterator[PostgresLedger]:
    """A ledger behind the relay, with one charge."""
    url = f"postgresql://hush@127.0.0.1:{relay.port}/postgres"
    with closing(PostgresLedger(tmp_path / "far", url)) as opened:
        opened.reserve(payers(), want("a"), ask())
        yield opened


@pytest.mark.parametrize(
    ("cuts", "is_charged", "is_answered"),
    [
        ((Cut.BEFORE,), True, True),
        ((Cut.AFTER,), True, False),
        ((Cut.BEFORE, Cut.BEFORE), False, False),
        ((Cut.BEFORE, Cut.AFTER), True, False),
        ((Cut.AFTER, Cut.AFTER), True, False),
    ],
)
def test_a_charge_whose_commit_is_unknown_is_not_answered_and_counts_if_it_happened(
    far: PostgresLedger, relay: Relay, cuts: tuple[Cut, ...], is_charged: bool, is_answered: bool
) -> None:
    """What was lost is sent once more: the end of the chain says whether the first one arrived."""
    for when in cuts:
        relay.cut(b"insert into entry", when)
    try:
        far.settle(far.reserve(payers(), want("b"), ask()).statement)
        was_answered = True
    except LedgerFailed:
        was_answered = False
    assert relay.has_cut
    assert was_answered is is_answered
    assert spent(far) == 1000 + 1000 * is_charged
    assert far.reserve(payers(), want("c"), ask()).balances[0].spent.pico == 2000 + 1000 * is_charged
    assert far.verify().totals == far.all_accounts()


def test_a_put_that_may_have_arrived_is_put_once(far: PostgresLedger, relay: Relay) -> None:
    item = reserved_of(far.reserve(payers(), want("b"), ask()).items[0])
    far.store.get(key("b"))  # so that the store is connected
    relay.cut(b"insert into release", Cut.AFTER)
    far.store.put(item, b"noise")
    assert relay.has_cut
    assert far.store.get(key("b")) == StoredRelease(release_id=item.release_id, key=key("b"), payload=b"noise")


def test_a_server_that_crashed_is_used_again_when_it_is_back(database: Database, shared: PostgresLedger) -> None:
    paid = shared.reserve(payers(), want("a"), ask())
    database.stop(signal.SIGQUIT)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: shared.reserve(payers(), want("b"), ask(), fresh=True),
        lambda: shared.balances(payers()),
        lambda: shared.history("alice", 1),
        lambda: shared.store.get(key()),
        lambda: shared.store.put(reserved_of(paid.items[0]), b"noise"),
        lambda: shared.shared_secret("salt", b""),
        lambda: list(shared._chain.bodies(0, 1)),
        lambda: inspect_at(database.url),
    )
    for attempt in attempts:
        with pytest.raises(LedgerFailed, match=r"PostgreSQL|reached|read|durable"):
            attempt()
    for number in range(history.MAX_WAITING + 5):
        shared.note_outcome(number, Outcome.ANSWERED)
    database.start()
    assert spent(shared) == 1000
    shared.store.put(reserved_of(paid.items[0]), b"noise")
    assert shared.reserve(payers(), want("b"), ask()).balances[0].spent.pico == 2000
    assert shared.verify().releases == 1


def test_nobody_waits_for_ever(database: Database, shared: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_link, "_SETTINGS", (*postgres_link._SETTINGS, "set lock_timeout = '50ms'"))
    shared._link.drop()
    with closing(shared._link.get().__class__.connect(database.url)) as holder:
        holder.execute("select * from hushql.tip for update")
        with pytest.raises(LedgerFailed, match="cannot be charged now"):
            shared.reserve(payers(), want("a"), ask())
    assert shared.reserve(payers(), want("a"), ask()).balances[0].spent.pico == 1000


# --- the marker -----------------------------------------------------------------------------------------


def test_a_marker_that_fails_stops_charges_until_it_works(
    shared: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_handle: int) -> None:
        raise OSError(5, "input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        paid = shared.reserve(payers(), want("a"), ask())
        with pytest.raises(LedgerFailed, match="marked"):
            shared.settle(paid.statement)
        with pytest.raises(LedgerFailed, match="marked"):
            shared.reserve(payers(), want("b"), ask())
    assert spent(shared) == 1000
    after = shared.reserve(payers(), want("b"), ask())
    shared.settle(paid.statement)
    shared.settle(after.statement)


def change(database: Database, sql: str) -> None:
    database.execute(f"set search_path = hushql; {sql}")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("update entry set body = replace(body, '1000', '1') where seq = 2", "verify"),
        ("update entry set body = replace(body, 'alice', 'bobby') where seq = 1", "entry 2 .* does not continue"),
        (
            "update entry set body = replace(body, 'count(', 'COUNT(') where seq = 3",
            "not the ones this state",
        ),
        ("delete from entry where seq = 1", "number 1 is missing"),
        ("delete from entry where seq = 3", "older copy, or entries were cut off"),
        ("update release set release_id = 9", "never charged"),
        ("update version set number = 2", "another version"),
        ("drop table entry", "cannot be read"),
    ],
)
def test_tampering_is_detected(database: Database, tmp_path: Path, sql: str, message: str) -> None:
    with closing(PostgresLedger(tmp_path / "state", database.url)) as shared:
        for name in "ab":
            shared.reserve(payers(), want(name), ask())
        shared.store.put(reserved_of(shared.reserve(payers(), want("c"), ask()).items[0]), b"noise")
    change(database, sql)
    for _ in range(2):  # and the directory is free again
        with pytest.raises(LedgerFailed, match=message):
            PostgresLedger(tmp_path / "state", database.url)


def test_a_server_that_forgot_is_noticed_by_a_running_proxy(database: Database, shared: PostgresLedger) -> None:
    for name in "ab":
        shared.reserve(payers(), want(name), ask())
    tip = database.execute("select seq, digest from hushql.tip")
    change(database, "delete from entry where seq = 2; update tip set seq = 1")
    for attempt in (lambda: shared.reserve(payers(), want("c"), ask()), shared.verify, lambda: list(shared.entries())):
        with pytest.raises(LedgerFailed, match="vanished"):
            attempt()
    assert tip != database.execute("select seq, digest from hushql.tip")


def test_verify_compares_with_what_was_seen(database: Database, shared: PostgresLedger) -> None:
    shared.reserve(payers(), want("a"), ask())
    change(database, "update entry set body = replace(body, 'alice', 'bobby')")
    with pytest.raises(LedgerFailed, match="differs from what this process has seen"):
        shared.verify()


def test_a_marker_that_cannot_be_written_at_the_start(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_self: object, _mark: object) -> None:
        raise OSError(28, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(Marker, "write", failing)
        with pytest.raises(LedgerFailed, match="marker cannot be written"):
            PostgresLedger(tmp_path / "state", database.url)
    PostgresLedger(tmp_path / "state", database.url).close()


# --- addresses and promises -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("/var/lib/ledger", "none of PostgreSQL"),
        ("postgresql://host:1/db?nonsense=1", "cannot be read"),
        ("postgresql://me:secret@host/db", "a password in the ledger's address"),
        ("postgres://host/db?password=secret", "a password in the ledger's address"),
    ],
)
def test_addresses_that_are_refused(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        inspect_at(url)
    assert "secret" not in refused.value.text()


def test_a_server_that_cannot_be_reached_is_told(database: Database, tmp_path: Path) -> None:
    with pytest.raises(LedgerFailed, match="cannot be used") as refused:
        PostgresLedger(tmp_path / "state", database.url.replace("/postgres?", "/nowhere?"))
    assert 'database "nowhere" does not exist' in refused.value.detail


def test_a_server_that_may_lose_commits_is_refused(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("alter role hush set synchronous_commit = off")
    try:
        with closing(PostgresLedger(tmp_path / "state", database.url)) as shared:
            assert shared._link.get().execute("show synchronous_commit").fetchone() == ("on",)
            shared.store.get(key())
            assert shared.store._link.get().execute("show synchronous_commit").fetchone() == ("off",)  # type: ignore[attr-defined]
    finally:
        database.execute("alter role hush reset synchronous_commit")
    unsafe = postgres_link._PROMISES.replace("current_setting('fsync')", "'off'")
    monkeypatch.setattr(postgres_link, "_PROMISES", unsafe)
    with pytest.raises(LedgerFailed, match="may lose what it has committed"):
        PostgresLedger(tmp_path / "state", database.url)
