"""The ledger in PostgreSQL: the shared suite, and what only a server and a way to it can do wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proxy.config import LedgerAt
from proxy.errors import ConfigError, LedgerFailed
from proxy.ledger import history, postgres_chain, postgres_link
from proxy.ledger.base import AccountSpent, Ledger, Outcome
from proxy.ledger.exchange import read, verified, written
from proxy.ledger.head import Marker
from proxy.ledger.moving import items_of, take_in
from proxy.ledger.postgres import PostgresLedger
from proxy.ledger.postgres_books import grant_at, inspect_at, items_at, take_in_at
from proxy.plan.charge import Cost
from proxy.release.store import Missing, Stored
from tests import places
from tests.unit.admin.command_line import CommandLine
from tests.unit.ledger.make import account, ask, gift, key, payers, reserved_of, want
from tests.unit.ledger.race import PRICE as RACE_PRICE
from tests.unit.ledger.relay import Cut, Relay, relayed
from tests.unit.ledger.server import Database, running_database
from tests.unit.ledger.suite import LedgerSuite
from tests.unit.policy.case_files import BASE

ROOT = Path(__file__).parents[3]
NOTHING = Cost(0, 0)


@pytest.fixture(scope="module")
def server() -> Iterator[Database]:
    with running_database(places.fast()) as database:
        yield database


@pytest.fixture
def database(server: Database) -> Database:
    """The server without a ledger."""
    server.execute("drop schema if exists hushql cascade")
    return server


class TestPostgresLedger(LedgerSuite):
    @pytest.fixture
    def open_ledger(self, database: Database, tmp_path: Path) -> Callable[[], Ledger]:
        return lambda: PostgresLedger(tmp_path / "state", database.url)


@pytest.fixture
def ledger(database: Database, tmp_path: Path) -> Iterator[PostgresLedger]:
    with closing(PostgresLedger(tmp_path / "state", database.url)) as opened:
        yield opened


@pytest.fixture
def other(database: Database, tmp_path: Path, ledger: PostgresLedger) -> Iterator[PostgresLedger]:
    """A second proxy's."""
    with closing(PostgresLedger(tmp_path / "other", database.url)) as opened:
        yield opened


def spent(ledger: Ledger) -> int:
    return ledger.balances(payers())[0].spent.pico


# --- several proxies ------------------------------------------------------------------------------


def test_what_one_proxy_charges_the_other_counts(ledger: PostgresLedger, other: PostgresLedger) -> None:
    accounts = (account("dataset", pico=2500), account("user"))
    first = ledger.reserve(accounts, want("a"), ask("one", after_s=1))
    other.reserve(accounts, want("b"), ask("two", after_s=2))
    for one in (ledger, other):
        with pytest.raises(AccountSpent):
            one.reserve(accounts, want("c"), ask())
        assert one.balances(accounts)[0].spent.pico == 2000
        assert one.all_accounts() == one.verify().totals
    ledger.grant(gift(accounts[0], 1000))
    assert reserved_of(other.reserve(accounts, want("c"), ask()).items[0]).release_id == 3
    ledger.store.put(reserved_of(first.items[0]), b"noise")
    assert other.reserve(accounts, want("a"), ask("three", after_s=3)).charged == (NOTHING, NOTHING)
    assert isinstance(other.seen(accounts, key("a")), Stored)
    other.note_outcome(first.statement, Outcome.ANSWERED)
    assert [a.query for a in other.history("alice", 9)] == ["three", "two", "one", ask().query]
    assert ledger.history("alice", 9)[2].outcome is Outcome.ANSWERED


def test_secrets_are_shared(ledger: PostgresLedger, other: PostgresLedger) -> None:
    assert ledger.shared_secret("salt", b"first") == b"first"
    assert other.shared_secret("salt", b"second") == b"first"
    assert other.shared_secret("another", b"second") == b"second"


def test_a_repeat_waits_for_no_lock(database: Database, ledger: PostgresLedger) -> None:
    ledger.store.put(reserved_of(ledger.reserve(payers(), want(), ask()).items[0]), b"noise")
    with closing(ledger._link.get().__class__.connect(database.url)) as holder:
        holder.execute("select * from hushql.tip for update")
        assert ledger.reserve(payers(), want(), ask()).charged == (NOTHING,) * 3


def test_a_release_that_was_finished_meanwhile_is_not_taken_for_a_new_one(
    ledger: PostgresLedger, other: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread books the number that a reader of the books took for the next new one."""
    original = PostgresLedger._are_paid

    def late(self: PostgresLedger, *arguments: object) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(PostgresLedger, "_are_paid", original)
            self.reserve(payers(), want("b"), ask())
        return original(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgresLedger, "_are_paid", late)
    receipt = ledger.reserve(payers(), want("a"), ask())
    assert receipt.charged == (Cost(1000, 7),) * 3
    assert reserved_of(receipt.items[0]).key == key("a")


# --- the way to the server ----------------------------------------------------------------------------


@pytest.fixture
def relay(database: Database) -> Iterator[Relay]:
    with relayed(database.port) as opened:
        yield opened


@pytest.fixture
def far(database: Database, relay: Relay, tmp_path: Path) -> Iterator[PostgresLedger]:
    """A ledger behind the relay, with one charge."""
    url = database.url.replace(str(database.port), str(relay.port))
    with closing(PostgresLedger(tmp_path / "far", url)) as opened:
        opened.reserve(payers(), want("a"), ask())
        yield opened


@pytest.mark.parametrize(
    ("words", "when", "is_charged", "is_answered"),
    [
        (b"begin", Cut.BEFORE, True, True),
        (b"begin", Cut.AFTER, True, True),
        (b"commit", Cut.BEFORE, False, False),
        (b"commit", Cut.AFTER, True, False),
    ],
)
def test_a_charge_whose_commit_is_unknown_is_not_answered_and_counts_if_it_happened(
    far: PostgresLedger, relay: Relay, words: bytes, when: Cut, is_charged: bool, is_answered: bool
) -> None:
    relay.cut(words, when)
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
    assert far.store.get(key("b")) == Stored(release_id=item.release_id, key=key("b"), payload=b"noise")


def test_a_server_that_crashed_is_used_again_when_it_is_back(database: Database, ledger: PostgresLedger) -> None:
    paid = ledger.reserve(payers(), want("a"), ask())
    database.stop(signal.SIGQUIT)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: ledger.reserve(payers(), want("b"), ask(), fresh=True),
        lambda: ledger.balances(payers()),
        lambda: ledger.history("alice", 1),
        lambda: ledger.store.get(key()),
        lambda: ledger.store.put(reserved_of(paid.items[0]), b"noise"),
        lambda: ledger.shared_secret("salt", b""),
        lambda: list(ledger._chain.bodies(0, 1)),
        lambda: inspect_at(database.url),
    )
    for attempt in attempts:
        with pytest.raises(LedgerFailed, match=r"PostgreSQL|reached|read|charged"):
            attempt()
    for number in range(history.MAX_WAITING + 5):
        ledger.note_outcome(number, Outcome.ANSWERED)
    database.start()
    assert spent(ledger) == 1000
    ledger.store.put(reserved_of(paid.items[0]), b"noise")
    assert ledger.reserve(payers(), want("b"), ask()).balances[0].spent.pico == 2000
    assert ledger.verify().releases == 1


def test_nobody_waits_for_ever(database: Database, ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_link, "_SETTINGS", (*postgres_link._SETTINGS, "set lock_timeout = '50ms'"))
    ledger._link.drop()
    with closing(ledger._link.get().__class__.connect(database.url)) as holder:
        holder.execute("select * from hushql.tip for update")
        with pytest.raises(LedgerFailed, match="cannot be charged now"):
            ledger.reserve(payers(), want("a"), ask())
    assert ledger.reserve(payers(), want("a"), ask()).balances[0].spent.pico == 1000


# --- the marker -----------------------------------------------------------------------------------------


def test_a_marker_that_fails_stops_charges_until_it_works(
    ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_handle: int) -> None:
        raise OSError(5, "input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        paid = ledger.reserve(payers(), want("a"), ask())
        with pytest.raises(LedgerFailed, match="marked"):
            ledger.settle(paid.statement)
        with pytest.raises(LedgerFailed, match="marked"):
            ledger.reserve(payers(), want("b"), ask())
    assert spent(ledger) == 1000
    after = ledger.reserve(payers(), want("b"), ask())
    ledger.settle(paid.statement)
    ledger.settle(after.statement)


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
    with closing(PostgresLedger(tmp_path / "state", database.url)) as ledger:
        for name in "ab":
            ledger.reserve(payers(), want(name), ask())
        ledger.store.put(reserved_of(ledger.reserve(payers(), want("c"), ask()).items[0]), b"noise")
    change(database, sql)
    for _ in range(2):  # and the directory is free again
        with pytest.raises(LedgerFailed, match=message):
            PostgresLedger(tmp_path / "state", database.url)


def test_a_server_that_forgot_is_noticed_by_a_running_proxy(database: Database, ledger: PostgresLedger) -> None:
    for name in "ab":
        ledger.reserve(payers(), want(name), ask())
    tip = database.execute("select seq, digest from hushql.tip")
    change(database, "delete from entry where seq = 2; update tip set seq = 1")
    for attempt in (lambda: ledger.reserve(payers(), want("c"), ask()), ledger.verify, lambda: list(ledger.entries())):
        with pytest.raises(LedgerFailed, match="vanished"):
            attempt()
    assert tip != database.execute("select seq, digest from hushql.tip")


def test_verify_compares_with_what_was_seen(database: Database, ledger: PostgresLedger) -> None:
    ledger.reserve(payers(), want("a"), ask())
    change(database, "update entry set body = replace(body, 'alice', 'bobby')")
    with pytest.raises(LedgerFailed, match="differs from what this process has seen"):
        ledger.verify()


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
        PostgresLedger(tmp_path / "state", database.url.replace("/postgres", "/nowhere"))
    assert 'database "nowhere" does not exist' in refused.value.detail


def test_a_server_that_may_lose_commits_is_refused(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("alter role hush set synchronous_commit = off")
    try:
        with closing(PostgresLedger(tmp_path / "state", database.url)) as ledger:
            assert ledger._link.get().execute("show synchronous_commit").fetchone() == ("on",)
            ledger.store.get(key())
            assert ledger.store._link.get().execute("show synchronous_commit").fetchone() == ("off",)  # type: ignore[attr-defined]
    finally:
        database.execute("alter role hush reset synchronous_commit")
    unsafe = postgres_link._PROMISES.replace("current_setting('fsync')", "'off'")
    monkeypatch.setattr(postgres_link, "_PROMISES", unsafe)
    with pytest.raises(LedgerFailed, match="may lose what it has committed"):
        PostgresLedger(tmp_path / "state", database.url)


# --- moving ---------------------------------------------------------------------------------------------


def test_books_move_from_files_to_a_server_and_back(database: Database, tmp_path: Path) -> None:
    from proxy.ledger.sqlite import SqliteLedger

    with pytest.raises(ConfigError, match="no ledger in that database"):
        inspect_at(database.url)
    with closing(SqliteLedger(tmp_path / "files")) as files:
        for name in "abc":
            receipt = files.reserve(payers(), want(name), ask())
            files.store.put(reserved_of(receipt.items[0]), name.encode() * 100)
        files.grant(gift(payers()[1], 5))
    lines = list(written(items_of(tmp_path / "files")))
    report = take_in_at(database.url, read(lines))
    assert report == verified(lines) == inspect_at(database.url)
    assert list(written(items_at(database.url))) == lines
    with pytest.raises(ConfigError, match="holds a ledger already"):
        take_in_at(database.url, read(lines))
    assert grant_at(database.url, gift(payers()[1], 6)).granted == Cost(11, 0)
    with closing(PostgresLedger(tmp_path / "state", database.url)) as ledger:
        assert ledger.reserve(payers(), want("b"), ask()).charged == (NOTHING,) * 3
        assert ledger.reserve(payers(), want("d"), ask()).balances[1].granted == Cost(11, 0)
    assert take_in(tmp_path / "back", read(written(items_at(database.url)))).entries == 6
    change(database, "update release set release_id = 9 where release_id = 3")
    with pytest.raises(LedgerFailed, match="never charged"):
        inspect_at(database.url)
    assert verified(written(items_at(database.url))).releases == 2


def test_commands_take_an_address(
    database: Database, ledger: PostgresLedger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger.reserve((account("dataset", "shop"), account("user", "shop/alice")), want("a"), ask())
    command, policy, file = CommandLine(capsys), tmp_path / "p.yaml", tmp_path / "books"
    policy.write_text(BASE, encoding="utf-8")
    why = ("--epsilon", "0.5", "--reason", "report", "--policy", str(policy))
    assert command("ledger", "top-up", "user", "shop/alice", *why, "--ledger", database.url) == 0
    assert command.out.startswith("user shop/alice: granted so far epsilon 0.5")
    assert command("ledger", "show", "--ledger", database.url) == 0
    assert command.out.count("shop") == 2
    assert command("ledger", "export", "--output", str(file), "--ledger", database.url) == 0
    assert command("ledger", "verify", "--ledger", database.url) == 0
    assert command.out.startswith(f"{database.url}: 2 charges and 0 releases verified")
    database.execute("drop schema hushql cascade")
    assert command("ledger", "import", str(file), "--ledger", database.url) == 0
    assert command("serve", str(policy), "--ledger", database.url) == 0
    assert [config.ledger for config in command.served] == [LedgerAt(database.url)]
    assert command("serve", str(policy), "--ledger", "postgresql://me:secret@host/db") == 2


def test_an_import_that_is_cut_short_leaves_nothing(database: Database, ledger: PostgresLedger) -> None:
    ledger.reserve(payers(), want("a"), ask())
    lines = list(written(items_at(database.url)))
    database.execute("drop schema hushql cascade")
    with pytest.raises(LedgerFailed, match="cut short"):
        take_in_at(database.url, read(lines[:-1]))
    assert inspect_at(database.url).entries == 0
    assert take_in_at(database.url, read(lines)).entries == 1


def test_many_entries_are_read_in_parts(
    database: Database, ledger: PostgresLedger, other: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_chain, "_AT_A_TIME", 2)
    for name in "abcde":
        ledger.reserve(payers(), want(name), ask())
    assert [entry.seq for entry in other.entries(after=1)] == [2, 3, 4, 5]
    for name in "fghij":
        ledger.reserve(payers(), want(name), ask())
    assert other.reserve(payers(), want("k"), ask()).balances[0].spent.pico == 11_000
    assert inspect_at(database.url) == other.verify()


def test_a_commit_that_the_server_refuses_is_no_charge(ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deferred trigger makes COMMIT itself fail, as a full disk may."""
    ledger._link.get().execute("create function no() returns trigger language plpgsql as 'begin raise disk_full; end'")
    ledger._link.get().execute(
        "create constraint trigger no after insert on entry deferrable initially deferred for each row"
        " execute function no()"
    )
    with pytest.raises(LedgerFailed, match="could not be made durable"):
        ledger.reserve(payers(), want("a"), ask())
    assert ledger.store.get(key("a")) == Missing()
    ledger._link.get().execute("drop trigger no on entry")
    assert ledger.reserve(payers(), want("a"), ask()).balances[0].spent.pico == 1000


# --- races of processes ---------------------------------------------------------------------------------


def race(database: Database, folder: Path, processes: int, clients: int, statements: int) -> float:
    """Let all of them spend one budget at once; statements per second. Fails if it was passed or not used up."""
    limit = statements * RACE_PRICE + RACE_PRICE // 2
    command = [sys.executable, "-m", "tests.unit.ledger.race", database.url]
    running = [
        subprocess.Popen(
            [*command, str(folder / f"p{n}"), f"p{n}", str(clients), str(limit)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )
        for n in range(processes)
    ]  # fmt: skip
    for one in running:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    ended = list[tuple[int, int, float]]()

    def finish(one: subprocess.Popen[str]) -> None:
        out, _ = one.communicate("go\n", timeout=280)
        charged, different, seconds = out.split()
        ended.append((int(charged), int(different), float(seconds)))

    threads = [threading.Thread(target=finish, args=(one,)) for one in running]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(charged for charged, _, _ in ended) == sum(different for _, different, _ in ended) == statements
    report = inspect_at(database.url)
    (total,) = (t.spent.pico for t in report.totals if t.kind == "dataset")
    assert total == statements * RACE_PRICE <= limit
    return statements / max(seconds for _, _, seconds in ended)


def test_processes_race_for_the_last_of_a_budget(database: Database, tmp_path: Path) -> None:
    assert race(database, tmp_path, processes=2, clients=10, statements=101) > 0


@pytest.mark.long
def test_four_proxies_with_200_clients_race_for_the_last_of_a_budget(database: Database, tmp_path: Path) -> None:
    print(f"{race(database, tmp_path, processes=4, clients=50, statements=5000):.0f} charges a second")


def test_never_less_charged_than_answered_after_kill_9(database: Database, tmp_path: Path) -> None:
    """Proxies die at any moment of a charge; those that go on are not held up, and every answer is counted."""
    code = (
        "import sys; from itertools import count; from pathlib import Path\n"
        "from proxy.ledger.postgres import PostgresLedger; from tests.unit.ledger.make import ask, payers, want\n"
        "ledger = PostgresLedger(Path(sys.argv[1]), sys.argv[2])\n"
        "for n in count():\n"
        "    ledger.reserve(payers(), want(f'{sys.argv[3]}.{n}'), ask())\n"
        "    print('x', flush=True)\n"
    )
    answered = 0
    for number in range(4):
        command = [sys.executable, "-c", code, str(tmp_path / "state"), database.url, str(number)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
            assert child.stdout is not None
            for _ in range(3 + 7 * number):
                child.stdout.readline()
            child.kill()
            answered += 3 + 7 * number + child.stdout.read().count(b"x")
        charged = next(t.spent.pico for t in inspect_at(database.url).totals if t.kind == "dataset") // 1000
        assert answered <= charged <= answered + number + 1
