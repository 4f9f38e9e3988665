"""Books that move into PostgreSQL and out of it, and processes that race for them."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from proxy.config import LedgerAt
from proxy.errors import ConfigError, LedgerFailed
from proxy.ledger.books import Books
from proxy.ledger.exchange import read, verified, written
from proxy.ledger.moving import items_of, take_in
from proxy.ledger.postgres import chain as postgres_chain
from proxy.ledger.postgres.books import grant_at, inspect_at, items_at, take_in_at
from proxy.ledger.postgres.ledger import PostgresLedger
from proxy.plan.charge import Cost
from proxy.release.store import NotStored
from tests.e2e.served import write_users
from tests.unit.admin.command_line import CommandLine
from tests.unit.ledger.make import account, ask, gift, key, payers, reserved_of, want
from tests.unit.ledger.race import PRICE as RACE_PRICE
from tests.unit.ledger.server import Database
from tests.unit.policy.case_files import BASE

ROOT = Path(__file__).parents[3]
NOTHING = Cost(0, 0)


def change(database: Database, sql: str) -> None:
    database.execute(f"set search_path = hushql; {sql}")


# --- moving ---------------------------------------------------------------------------------------------


def test_books_move_from_files_to_a_server_and_back(database: Database, tmp_path: Path) -> None:
    from proxy.ledger.sqlite.ledger import SqliteLedger

    with pytest.raises(ConfigError, match="no ledger in that database"):
        inspect_at(database.url)
    with closing(SqliteLedger(tmp_path / "files")) as files:
        for name in "abc":
            receipt = files.reserve(payers(), want(name), ask())
            files.store.put(reserved_of(receipt.items[0]), name.encode() * 100)
        files.grant(gift(payers()[1], 5))
    lines = list(written(items_of(tmp_path / "files", Books())))
    report = take_in_at(database.url, read(lines))
    assert report == verified(lines) == inspect_at(database.url)
    assert list(written(items_at(database.url, Books()))) == lines
    with pytest.raises(ConfigError, match="holds a ledger already"):
        take_in_at(database.url, read(lines))
    assert grant_at(database.url, gift(payers()[1], 6)).granted == Cost(11, 0)
    with closing(PostgresLedger(tmp_path / "state", database.url)) as shared:
        assert shared.reserve(payers(), want("b"), ask()).charged == (NOTHING,) * 3
        assert shared.reserve(payers(), want("d"), ask()).balances[1].granted == Cost(11, 0)
    assert take_in(tmp_path / "back", read(written(items_at(database.url, Books())))).entries == 6
    change(database, "update release set release_id = 9 where release_id = 3")
    with pytest.raises(LedgerFailed, match="never charged"):
        inspect_at(database.url)
    assert verified(written(items_at(database.url, Books()))).releases == 2


def test_commands_take_an_address(
    database: Database, shared: PostgresLedger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared.reserve((account("dataset", "shop"), account("user", "shop/alice")), want("a"), ask())
    command, policy, file = CommandLine(capsys), tmp_path / "p.yaml", tmp_path / "books"
    policy.write_text(BASE, encoding="utf-8")
    write_users(tmp_path / "users.yaml", {"alice": "analyst"})
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


def test_an_import_that_is_cut_short_leaves_nothing(database: Database, shared: PostgresLedger) -> None:
    shared.reserve(payers(), want("a"), ask())
    lines = list(written(items_at(database.url, Books())))
    database.execute("drop schema hushql cascade")
    with pytest.raises(LedgerFailed, match="cut short"):
        take_in_at(database.url, read(lines[:-1]))
    assert inspect_at(database.url).entries == 0
    assert take_in_at(database.url, read(lines)).entries == 1


def test_many_entries_are_read_in_parts(
    database: Database, shared: PostgresLedger, other: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_chain, "_AT_A_TIME", 2)
    for name in "abcde":
        shared.reserve(payers(), want(name), ask())
    assert [entry.seq for entry in other.entries(after=1)] == [2, 3, 4, 5]
    for name in "fghij":
        shared.reserve(payers(), want(name), ask())
    assert other.reserve(payers(), want("k"), ask()).balances[0].spent.pico == 11_000
    assert inspect_at(database.url) == other.verify()


def test_a_commit_that_the_server_refuses_is_no_charge(shared: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deferred trigger makes COMMIT itself fail, as a full disk may."""
    shared._link.get().execute("create function no() returns trigger language plpgsql as 'begin raise disk_full; end'")
    shared._link.get().execute(
        "create constraint trigger no after insert on entry deferrable initially deferred for each row"
        " execute function no()"
    )
    with pytest.raises(LedgerFailed, match="could not be made durable"):
        shared.reserve(payers(), want("a"), ask())
    assert shared.store.get(key("a")) == NotStored()
    shared._link.get().execute("drop trigger no on entry")
    assert shared.reserve(payers(), want("a"), ask()).balances[0].spent.pico == 1000


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
        "from proxy.ledger.postgres.ledger import PostgresLedger\n"
        "from tests.unit.ledger.make import ask, payers, want\n"
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
