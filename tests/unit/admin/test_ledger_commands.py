"""Are the books shown and verified from the files alone?"""

from __future__ import annotations

import getpass
import io
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from proxy.admin.commands.report import entries_of, paid_by
from proxy.admin.files import read_policy
from proxy.admin.ledger_place import InFiles
from proxy.dp.accounting import ATTO, PICO, limit_pico
from proxy.errors import LedgerFailed
from proxy.ledger.balances import in_rho
from proxy.ledger.base import AccountSpent, Question, Wanted
from proxy.ledger.books import Books
from proxy.ledger.chain import Grant
from proxy.ledger.sqlite import schema
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.ledger.sqlite.schema import FILE_NAME
from proxy.plan.charge import Account, AccountKind, Cost, ReleaseKey, Request
from proxy.policy.model import Accounting, Promise
from proxy.policy.pledge import pledge_of
from proxy.session.dataset import dataset_account
from tests.e2e.served import write_users
from tests.unit.admin.command_line import CommandLine
from tests.unit.ledger.make import pledge
from tests.unit.policy.case_files import BASE

RHO = 6_220_000_000  # of epsilon 0.5 at delta 1e-6 with half of it for keys, about
LIMIT = Cost(10 * PICO, ATTO)


ACCOUNTS = (
    Account(kind=AccountKind.DATASET, name="shop", limited=True, limit=LIMIT),
    Account(kind=AccountKind.USER, name="shop/alice", limited=False, limit=LIMIT),
)


def charge(ledger: SqliteLedger, name: str, accounts: tuple[Account, ...] = ACCOUNTS) -> None:
    key = ReleaseKey(fingerprint=name, policy_digest="d", data_version="1")
    wanted = (Wanted(Request(key=key, cost=Cost(RHO, 25_000)), "select 1"),)
    ledger.reserve(accounts, wanted, Question(login="alice", query=name, at=datetime(2026, 1, 1, tzinfo=UTC)))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A ledger of two charges, and logins beside it."""
    folder = tmp_path / "state"
    write_users(tmp_path / "users.yaml", {"alice": "analyst", "bob": "analyst"})
    ledger = SqliteLedger(folder)
    charge(ledger, "one")
    charge(ledger, "two")
    ledger.close()
    return folder


def test_show(command: CommandLine, state: Path) -> None:
    assert command("ledger", "show", "--state", str(state)) == 0
    assert [line.split() for line in command.out.splitlines()] == [
        ["kind", "account", "spent", "delta", "granted", "accounting"],
        ["dataset", "shop", "0.01244", "5e-14", "0", "zcdp"],
        ["user", "shop/alice", "0.01244", "5e-14", "0", "zcdp"],
    ]


def test_show_as_epsilon_of_a_policy(command: CommandLine, state: Path, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(BASE, encoding="utf-8")
    assert command("ledger", "show", "--state", str(state), "--policy", str(policy), "--json") == 0
    shown = json.loads(command.out)
    assert [row["account"] for row in shown] == ["shop", "shop/alice"]
    assert all(0.70 < float(row["epsilon"]) < 0.75 for row in shown)  # 0.5 * sqrt(2), nearly


def test_show_says_for_which_promise_and_unit_accounts_are_kept(command: CommandLine, state: Path) -> None:
    strong = pledge(Promise(5), digest="d"), pledge(Promise(5), unit="household", changed_from="customer", digest="e")
    with closing(SqliteLedger(state)) as ledger:
        # what was charged without a promise was charged for one unit; its groups were shown by no rule
        for one in strong:
            ledger.pledge(one, replace(ACCOUNTS[0], promise=Promise(5)), datetime(2026, 2, 1, tzinfo=UTC))
    assert command("ledger", "show", "--state", str(state)) == 0
    heading, dataset, user = command.out.splitlines()
    assert heading.split()[2:] == ["spent", "delta", "granted", "accounting", "promise", "outside", "unit"]
    kept = "0.311 5e-14 0 zcdp group_size 5 0.311 unit customer until 2026-02-01, household since"
    assert dataset.split()[2:] == kept.split()
    assert user.split()[2:] == dataset.split()[2:]
    assert command("ledger", "show", "--state", str(state), "--json") == 0
    assert {row["promise"] for row in json.loads(command.out)} == {"group_size 5"}


def test_other_policy_says_nothing_about_an_account(command: CommandLine, state: Path, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(BASE.replace("dataset: shop", "dataset: sho"), encoding="utf-8")
    assert command("ledger", "show", "--state", str(state), "--policy", str(policy), "--json") == 0
    assert all("epsilon" not in row for row in json.loads(command.out))


def test_verify(command: CommandLine, state: Path) -> None:
    assert command("ledger", "verify", "--state", str(state)) == 0
    assert command.out.startswith(f"{state}: 2 charges and 0 releases verified, head ")
    assert command("ledger", "verify", "--state", str(state), "--json") == 0
    found = json.loads(command.out)
    assert (found["entries"], found["releases"], len(found["head"])) == (2, 0, 64)


@pytest.mark.parametrize("words", [("verify",), ("show",), ("export", "--output", "books.jsonl")])
def test_reading_leaves_no_file_behind(
    words: tuple[str, ...], command: CommandLine, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in state.iterdir()}
    assert command("ledger", *words, "--state", str(state)) == 0
    assert {path.name: path.stat().st_mtime_ns for path in state.iterdir()} == before


def test_a_proxy_that_begins_while_the_books_are_read_is_noticed(state: Path) -> None:
    """What is read then is no snapshot."""
    with pytest.raises(LedgerFailed, match="has begun"), schema.reading(state / FILE_NAME) as reader:
        reader.execute("select count(*) from entry").fetchone()
        ledger = SqliteLedger(state)
        charge(ledger, "three")
    ledger.close()
    with schema.reading(state / FILE_NAME) as reader:
        assert reader.execute("select count(*) from entry").fetchone() == (3,)


def test_verify_beside_a_running_proxy(command: CommandLine, state: Path) -> None:
    ledger = SqliteLedger(state)
    try:
        charge(ledger, "three")
        assert command("ledger", "verify", "--state", str(state)) == 0
        assert command.out.startswith(f"{state}: 3 charges")
    finally:
        ledger.close()


@pytest.mark.parametrize("name", ["show", "verify"])
def test_changed_books_are_status_1(command: CommandLine, state: Path, name: str) -> None:
    with closing(sqlite3.connect(state / FILE_NAME)) as connection, connection:
        connection.execute("update entry set body = replace(body, '6220000000', '6220000001') where seq = 1")
    assert command("ledger", name, "--state", str(state)) == 1
    assert command.err.startswith("hushql: ")
    assert command.err.count("\n") == 1
    assert command.out == ""


def test_export_verify_and_import(
    command: CommandLine, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, new = tmp_path / "books.jsonl", tmp_path / "new"
    assert command("ledger", "export", "--state", str(state), "--output", str(file)) == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert command("ledger", "export", "--state", str(state)) == 0
    assert command.out == file.read_text(encoding="ascii")
    assert command("ledger", "verify", "--file", str(file)) == 0
    assert command.out.startswith(f"{file}: 2 charges and 0 releases verified, head ")
    assert command("ledger", "import", str(file), "--state", str(new)) == 0
    assert command.out.startswith(f"{new}: 2 entries and 0 releases, head ")
    assert command("ledger", "import", str(file), "--state", str(new)) == 2
    monkeypatch.setattr("sys.stdin", io.StringIO(file.read_text(encoding="ascii")))
    assert command("ledger", "verify", "--file", "-") == 0
    assert command("ledger", "export", "--state", str(state), "--output", str(file)) == 2
    assert command.err == f"hushql: {file} cannot be written: File exists\n"
    assert command("ledger", "verify", "--file", str(tmp_path / "nowhere")) == 2
    assert command("ledger", "verify") == 2
    assert "Give --state, or --ledger" in command.err
    broken = file.read_text(encoding="ascii").replace("shop/alice", "shop/bobby")
    (tmp_path / "forged").write_text(broken, encoding="ascii")
    assert command("ledger", "verify", "--file", str(tmp_path / "forged")) == 1


def test_books_that_do_not_verify_are_not_exported(command: CommandLine, state: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(state / FILE_NAME)) as connection, connection:
        connection.execute("update entry set body = replace(body, '6220000000', '6220000001') where seq = 1")
    assert command("ledger", "export", "--state", str(state), "--output", str(tmp_path / "books")) == 1
    assert not (tmp_path / "books").exists()


def _policy_of(folder: Path) -> Path:
    """One whose logins have a limit of 10 and whose roles have none."""
    path = folder / "limited.yaml"
    path.write_text(BASE, encoding="utf-8")
    return path


def top_up(state: Path, policy: Path, *words: str) -> list[str]:
    rest = ("--epsilon", "0.5", "--reason", "quarterly report", "--policy", str(policy), "--state", str(state))
    return ["ledger", "top-up", *words, *rest]


def test_top_up_beside_a_running_proxy_lets_a_spent_account_go_on(
    command: CommandLine, state: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(BASE, encoding="utf-8")
    poor = (
        Account(kind=AccountKind.DATASET, name="shop", limited=True, limit=LIMIT),
        Account(kind=AccountKind.USER, name="shop/alice", limited=True, limit=Cost(2 * RHO, ATTO)),
    )
    with closing(SqliteLedger(state)) as ledger:
        with pytest.raises(AccountSpent):
            charge(ledger, "three", poor)
        assert command(*top_up(state, policy, "user", "shop/alice")) == 0
        assert command.out.startswith("user shop/alice: granted so far epsilon 0.5, spent in all epsilon 0.722; ")
        assert command.out.endswith("; its limit was epsilon 10 and is 10.02\n")
        assert ledger.balances(poor)[1].granted.pico == limit_pico(read_policy(policy, {}).privacy, 0.5)
        charge(ledger, "three", poor)
        assert command(*top_up(state, policy, "user", "shop/alice", "--delta", "1e-9")) == 0
        charge(ledger, "four")  # its number is that of the grant at first
        with pytest.raises(AccountSpent):
            charge(ledger, "five", poor)
        granted = [(e.by, e.reason, e.cost.atto) for e in ledger.entries() if isinstance(e, Grant)]
        assert granted == [(getpass.getuser(), "quarterly report", atto) for atto in (0, 10**9)]
        assert ledger.verify().entries == 6
    assert command("ledger", "verify", "--state", str(state)) == 0


def test_people_from_outside_are_given_something_where_their_limit_is_known(
    command: CommandLine, state: Path, tmp_path: Path
) -> None:
    policy, users = tmp_path / "p.yaml", tmp_path / "users.yaml"
    policy.write_text(BASE, encoding="utf-8")
    write_users(users, {"ann": "analyst"})
    issuer = "oauth: {issuer: https://i.example, audience: a, keys: k.json, groups: {g: analyst, h: analyst}}\n"
    users.write_text(users.read_text() + issuer)
    for name, kept in (("alice", 0), ("Alice", 2), ("ANN", 2), ("ann", 0), ("a+b", 2)):
        assert command(*top_up(state, policy, "user", f"shop/{name}")) == kept, name
    assert command(*top_up(state, policy, "session", "shop/alice/1")) == 0
    users.write_text(
        users.read_text().replace("h: analyst", "h: clerk").replace("clerk: {", "clerk: {budget: {epsilon: 9}")
    )
    assert command(*top_up(state, policy, "user", "shop/alice")) == 2
    assert "roles that groups give have different budgets" in command.err


def test_only_logins_and_roles_that_are_there_are_given_something(
    command: CommandLine, state: Path, tmp_path: Path
) -> None:
    policy, users = tmp_path / "p.yaml", tmp_path / "elsewhere.yaml"
    policy.write_text(BASE, encoding="utf-8")
    write_users(users, {"alice": "analyst"})
    for kind, name, kept in (("user", "alice", 0), ("user", "alcie", 2), ("role", "clerk", 0), ("role", "alice", 2)):
        assert command(*top_up(state, policy, kind, f"shop/{name}", "--users", str(users))) == kept, name
    assert command.err == (f"hushql: there is no role alice in {users}. Are they in another file? Say --users FILE.\n")
    write_users(tmp_path / "users.yaml", {"bob": "analyst"})
    assert command(*top_up(state, policy, "user", "shop/alice")) == 2
    assert "there is no login alice in" in command.err
    (tmp_path / "users.yaml").unlink()
    assert command(*top_up(state, policy, "user", "shop/bob")) == 2
    assert command.err.endswith("users.yaml does not exist. Where are the logins? Say --users FILE.\n")
    assert command(*top_up(state, policy, "dataset", "shop")) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["user", "shop"], "'shop' is no user account of this policy. Write shop/LOGIN."),
        (["dataset", "shop/alice"], "'shop/alice' is no dataset account of this policy. Write shop."),
        (["session", "shop/alice"], "'shop/alice' is no session account of this policy. Write shop/LOGIN/SESSION."),
        (["role", "other/analyst"], "'other/analyst' is no role account of this policy. Write shop/ROLE."),
        (["role", "shop/"], "'shop/' is no role account of this policy. Write shop/ROLE."),
        (["user", "shop/alice", "--delta", "0.5"], "epsilon is more than 0 and at most 1,000,000, delta 0 to 0.01"),
        (["user", "shop/alice", "--epsilon", "1e-9"], "epsilon 0.000000001 is too little to count"),
        (["user", "shop/alice", "--reason", " "], "a top-up needs a reason. Say in --reason why"),
    ],
)
def test_impossible_top_ups(command: CommandLine, state: Path, tmp_path: Path, words: list[str], message: str) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(BASE, encoding="utf-8")
    usual = top_up(state, policy)[2:]
    assert command("ledger", "top-up", *usual, *words) == 2
    assert command.err.startswith(f"hushql: {message}")
    assert command("ledger", "verify", "--state", str(state)) == 0
    assert command.out.startswith(f"{state}: 2 charges")


def test_a_top_up_to_an_epsilon_says_the_limit_before_and_after(
    command: CommandLine, state: Path, tmp_path: Path
) -> None:
    policy, users = _policy_of(tmp_path), tmp_path / "users.yaml"
    why = ["--reason", "more", "--policy", str(policy), "--users", str(users), "--state", str(state)]
    write_users(users, {"alice": "analyst"})
    account = ["ledger", "top-up", "user", "shop/alice"]
    assert command(*account, "--to", "13", *why) == 0
    assert "; its limit was epsilon 10 and is 13\n" in command.out
    assert command(*account, "--to", "13", *why) == 2
    assert "has a limit of epsilon 13 already" in command.err
    assert command(*account, "--epsilon", "1", *why) == 0
    assert "; its limit was epsilon 13 and is 13." in command.out
    for words in ([], ["--to", "14", "--epsilon", "1"]):
        assert command(*account, *words, *why) == 2
        assert "either of --epsilon or --to" in command.err
    assert command("ledger", "top-up", "role", "shop/analyst", "--to", "3", *why) == 2
    assert "--to needs a budget with a limit that does not come back" in command.err


def test_a_charge_of_pure_accounting_is_reported_in_rho(state: Path) -> None:
    entry = replace(next(entries_of(InFiles(state), "shop", Books())), accounting=Accounting.PURE)
    (paid,) = (line.cost for line in entry.lines if line.kind is AccountKind.DATASET)
    assert paid_by(entry, AccountKind.DATASET, Accounting.ZCDP) == in_rho(paid).pico
    assert paid_by(entry, AccountKind.DATASET, Accounting.PURE) == paid.pico > 0


def test_what_was_charged_is_reported_by_login_role_table_and_day(
    command: CommandLine, state: Path, tmp_path: Path
) -> None:
    policy = _policy_of(tmp_path)
    for by in ("user", "role", "table", "day"):
        assert command("ledger", "report", "--by", by, "--policy", str(policy), "--state", str(state)) == 0
        assert command.out.splitlines()[-1].startswith("in all ")
    assert command("ledger", "report", "--by", "user", "--json", "--policy", str(policy), "--state", str(state)) == 0
    rows = json.loads(command.out)
    assert command("ledger", "show", "--json", "--state", str(state)) == 0
    spent = {row["account"]: row["spent"] for row in json.loads(command.out)}
    assert sum(Decimal(row["spent"]) for row in rows) == Decimal(spent["shop"])
    assert {f"shop/{row['name']}": Decimal(row["own"]) for row in rows} == {
        name: Decimal(amount) for name, amount in spent.items() if name in ("shop/alice", "shop/bob")
    }
    assert command("ledger", "report", "--by", "hour", "--policy", str(policy), "--state", str(state)) == 2
    assert command("ledger", "report", "--by", "user", "--policy", str(policy), "--state", str(tmp_path / "no")) == 2
    assert "there is no ledger in" in command.err


def test_a_top_up_of_pure_accounting_has_no_delta(command: CommandLine, state: Path, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    pure = "\n".join(line for line in BASE.splitlines() if "delta:" not in line)
    policy.write_text(pure.replace("privacy:", "privacy:\n  accounting: pure", 1), encoding="utf-8")
    assert command(*top_up(state, policy, "user", "shop/bob", "--delta", "1e-9")) == 2
    assert "pure accounting has delta 0" in command.err
    assert command(*top_up(state, policy, "user", "shop/bob")) == 0
    assert (
        command.out
        == "user shop/bob: granted so far epsilon 0.5, spent in all epsilon 0; its limit was epsilon 10 and is 10.5\n"
    )


def test_a_top_up_that_cannot_be_written(
    command: CommandLine, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(BASE, encoding="utf-8")
    monkeypatch.setattr(schema, "BUSY_TIMEOUT_S", 0.05)
    with closing(sqlite3.connect(state / FILE_NAME)) as busy:
        busy.execute("begin immediate")
        assert command(*top_up(state, policy, "user", "shop/alice")) == 1
    assert command.err.startswith("hushql: the grant could not be written")


def test_no_ledger_is_status_2(command: CommandLine, tmp_path: Path) -> None:
    assert command("ledger", "show", "--state", str(tmp_path)) == 2
    assert command.err.startswith(f"hushql: there is no ledger in {tmp_path}.")


# --- what an edit would do --------------------------------------------------------------------------------------


def _check(command: CommandLine, state: Path, *edits: tuple[str, str]) -> list[str]:
    """What `policy check` says of an edited policy beside its summary, or of what is wrong."""
    text, policy = BASE, state.parent / "p.yaml"
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    policy.write_text(text, encoding="utf-8")
    status = command("policy", "check", str(policy), "--state", str(state))
    return command.out.splitlines()[2:] if status == 0 else command.err.splitlines()


def test_policy_check_says_what_becomes_of_what_was_spent(command: CommandLine, state: Path) -> None:
    policy = state.parent / "p.yaml"
    policy.write_text(BASE, encoding="utf-8")
    served = read_policy(policy, {})
    with closing(SqliteLedger(state)) as ledger:
        ledger.pledge(pledge_of(served), dataset_account(served), datetime.now(UTC))
    assert _check(command, state) == []
    unit = f"unit: {served.privacy.unit}"
    (counts,) = _check(command, state, (unit, f"{unit}\n  group_size: 2"))
    assert counts.startswith("what was spent counts for what is promised now: epsilon 1.")
    counts, overspent = _check(command, state, (unit, f"{unit}\n  group_size: 100"))
    assert overspent.startswith("the dataset account shop is overspent: epsilon ")
    (refused,) = _check(command, state, (unit, "unit: household"))
    assert refused.startswith(f'{policy}: the unit of dataset "shop" is not the one that its accounts were kept for.')
    acknowledged = f"unit: household\n  unit_changed_from: {served.privacy.unit}"
    (broken,) = _check(command, state, (unit, acknowledged))
    assert broken.startswith(f"unit {served.privacy.unit} until ")
    assert _check(command, state) == [], "nothing was stated"


def test_policy_check_of_no_books_says_that_nothing_was_spent(
    command: CommandLine, state: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(BASE, encoding="utf-8")
    assert command("policy", "check", str(policy), "--state", str(tmp_path / "none")) == 0
    assert command.out.splitlines()[2:] == [f"there is no ledger in {tmp_path / 'none'}: nothing was spent"]


def test_policy_check_of_books_that_cannot_be_read_is_status_1(command: CommandLine, state: Path) -> None:
    (state / FILE_NAME).write_bytes(b"no database" * 1000)
    (wrong,) = _check(command, state)
    assert "the ledger's file cannot be read" in wrong
