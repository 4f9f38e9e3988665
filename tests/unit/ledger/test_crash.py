"""After any crash, nobody was charged less than was answered."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from proxy.ledger.attempts import MOST_ATTEMPTS
from proxy.ledger.base import AccountSpent, Ending, Receipt
from proxy.ledger.chain import Reason
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.ledger.windows import first_day
from proxy.plan.charge import Account, Cost, Reserved
from proxy.policy.model import Refresh
from proxy.release.store import StoredRelease
from tests.unit.ledger.make import START, account, ask, gift, want

ROOT = Path(__file__).parents[3]


def test_never_less_charged_than_answered_after_kill_9(tmp_path: Path) -> None:
    """50 kills at any moment and one at each step of a charge."""
    command = [sys.executable, "-m", "tests.unit.ledger.kill_loop", str(tmp_path / "state"), "50"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
    summary = re.search(r"54 kills, (\d+) answers", run.stdout)
    assert summary is not None
    assert int(summary[1]) > 54  # every second round waits for one or three of them


KEYS = tuple("abcd")
PRICES = {"a": 1, "b": 2, "c": 3, "d": 40}
WHO = {
    "alice": (account("dataset", pico=150), account("user", "alice", pico=90), account("session", "s1", pico=60)),
    "alice again": (account("dataset", pico=150), account("user", "alice", pico=90), account("session", "s2", pico=60)),
    "bob": (account("dataset", pico=150), account("user", "bob", pico=50)),
    "carol": (account("dataset", pico=150), account("user", "carol", pico=44, refresh=Refresh.DAY)),
    "carol's policy was edited": (
        account("dataset", pico=150),
        account("user", "carol", pico=60, refresh=Refresh.MONTH),
    ),
}


class LedgerMachine(RuleBasedStateMachine):
    """Random reserve, store, end, crash, reopen, grant and clocks that jump, against books kept in dictionaries."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="ledger-"))
        self.generation = 0
        self.ledger = SqliteLedger(self.root / "0")
        self.spent: dict[tuple[str, str], int] = {}
        self.seen: dict[tuple[str, str], set[int]] = {}
        self.done: dict[str, list[int]] = {k: [] for k in KEYS}
        self.waiting: dict[int, tuple[str, Reserved]] = {}
        self.asked: dict[int, tuple[str, bool, str, int, set[Refresh]]] = {}  # key, fresh, login, day, refreshes
        self.ended: dict[int, int] = {}  # the attempt that ended
        self.order: dict[int, int] = {}  # when, the latest last
        self.clock, self.day = START.toordinal(), 1
        self.booked: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self.grants: dict[tuple[str, str], list[tuple[int, int]]] = {}

    @rule(days=st.sampled_from((-40, -1, 1, 1, 7, 31)))
    def set_the_clock(self, days: int) -> None:
        self.clock += days

    @rule(who=st.sampled_from(sorted(WHO)), pico=st.integers(1, 30))
    def grant(self, who: str, pico: int) -> None:
        payer = WHO[who][-1]
        self.ledger.grant(gift(payer, pico, after_s=self.after_s()))
        self.day = max(self.day, self.clock)
        self.grants.setdefault((payer.kind, payer.name), []).append((self.day, pico))

    def after_s(self) -> float:
        return (self.clock - START.toordinal()) * 86400.0

    def left(self, who: Account, day: int) -> int:
        """What the model leaves of a limit in the window of a day."""
        first, payer = first_day(who.refresh, day), (who.kind, who.name)
        spent, granted = (
            sum(pico for d, pico in kept.get(payer, []) if d >= first) for kept in (self.booked, self.grants)
        )
        return who.limit.pico + granted - spent

    @rule(who=st.sampled_from(sorted(WHO)), keys=st.sets(st.sampled_from(KEYS), min_size=1), fresh=st.booleans())
    def reserve(self, who: str, keys: set[str], fresh: bool) -> None:
        accounts, names = WHO[who], sorted(keys)
        wanted = tuple(one for name in names for one in want(name, PRICES[name], 0))
        chosen = {name: self.chosen(accounts, name, fresh) for name in names}
        due = [sum(PRICES[n] for n in names if not self.paid(a, chosen[n])) for a in accounts]
        day = max(self.day, self.clock)
        fits = all(cost == 0 or cost <= self.left(a, day) for a, cost in zip(accounts, due, strict=True))
        try:
            receipt = self.ledger.reserve(accounts, wanted, ask(after_s=self.after_s()), fresh=fresh)
        except AccountSpent:
            assert not fits
            return
        assert fits
        assert receipt.charged == tuple(Cost(cost, 0) for cost in due)
        is_taken = any(release and release[0] in self.ended for release in chosen.values())
        self.day = day if any(due) or is_taken else self.day
        self.book(accounts, names, receipt, due, fresh)

    def chosen(self, accounts: tuple[Account, ...], name: str, fresh: bool) -> tuple[int, ...]:
        """What answers a key: the finished one, unless the login has paid for another that is not drawn yet."""
        best, login = () if fresh else self.best(accounts, name), accounts[1]
        if self.paid(login, best):
            return best
        again = [i for i in self.ended if self.may_be_taken_up(i, name, fresh, accounts)]
        return (max(again, key=lambda i: self.order[i]),) if again else best

    def may_be_taken_up(self, number: int, name: str, fresh: bool, accounts: tuple[Account, ...]) -> bool:
        key, was_fresh, login, paid_on, refreshes = self.asked[number]
        windows = refreshes | {a.refresh for a in accounts}
        is_in_time = all(first_day(r, max(self.day, self.clock)) <= paid_on for r in windows)
        return (key, was_fresh, login) == (name, fresh, accounts[1].name) and is_in_time

    def best(self, accounts: tuple[Account, ...], name: str) -> tuple[int, ...]:
        """The finished release that most of the accounts know, own ones first, the newest of these."""

        def known(number: int) -> tuple[int, int, int]:
            knows = [a.kind.is_own for a in accounts if number in self.seen.get((a.kind, a.name), ())]
            return sum(knows), len(knows), number

        return tuple(sorted(self.done[name], key=known)[-1:])

    def paid(self, who: Account, release: tuple[int, ...]) -> bool:
        return bool(release) and release[0] in self.seen.get((who.kind, who.name), ())

    def book(
        self, accounts: tuple[Account, ...], names: list[str], receipt: Receipt, due: list[int], fresh: bool
    ) -> None:
        for who, cost in zip(accounts, due, strict=True):
            payer = (who.kind, who.name)
            if cost:
                self.spent[payer] = self.spent.get(payer, 0) + cost
                self.booked.setdefault(payer, []).append((self.day, cost))
            self.seen.setdefault(payer, set()).update(item.release_id for item in receipt.items)
        for name, item in zip(names, receipt.items, strict=True):
            if isinstance(item, Reserved):
                number = item.release_id
                assert number not in self.waiting
                assert item.attempt == self.ended.pop(number, 0) + 1
                self.waiting[number] = (name, item)
                self.asked.setdefault(number, (name, fresh, accounts[1].name, self.day, set()))
                self.asked[number][4].update(a.refresh for a in accounts if a.limited)
            else:
                assert item.payload == f"{name} {item.release_id}".encode()

    @rule(data=st.data())
    def store(self, data: st.DataObject) -> None:
        if self.waiting:
            number = data.draw(st.sampled_from(sorted(self.waiting)))
            name, reserved = self.waiting.pop(number)
            self.ledger.store.put(reserved, f"{name} {number}".encode())
            self.done[name].append(number)

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """The attempt is known to have ended, or it was the last one."""
        if self.waiting:
            number = data.draw(st.sampled_from(sorted(self.waiting)))
            _, reserved = self.waiting.pop(number)
            if reserved.attempt < MOST_ATTEMPTS:
                at = ask(after_s=self.after_s()).at
                self.ledger.end(
                    Ending(reserved=(reserved,), reason=Reason.LOST, is_fresh=self.asked[number][1], after=(), at=at)
                )
                self.day = max(self.day, self.clock)
                self.ended[number] = reserved.attempt
                self.order[number] = max(self.order.values(), default=0) + 1

    @rule()
    def crash(self) -> None:
        """What kill -9 leaves: the files as they are, the lock gone, nothing closed."""
        self.generation += 1
        old, new = self.root / str(self.generation - 1), self.root / str(self.generation)
        shutil.copytree(old, new)
        self.ledger.close()
        self.ledger = SqliteLedger(new)
        self.waiting.clear()

    @rule()
    def reopen(self) -> None:
        self.ledger.close()
        self.ledger = SqliteLedger(self.root / str(self.generation))
        self.waiting.clear()

    @invariant()
    def balances_are_the_models(self) -> None:
        assert {(t.kind, t.name): t.spent.pico for t in self.ledger.all_accounts() if t.spent.pico} == self.spent
        payers = tuple({(a.kind, a.name, a.refresh): a for accounts in WHO.values() for a in accounts}.values())
        for balance in self.ledger.balances(payers):
            assert balance.remaining.pico == max(0, self.left(balance.account, self.day))
        for name, done in self.done.items():
            stored = self.ledger.store.get(want(name)[0].request.key)
            assert (stored.release_id if isinstance(stored, StoredRelease) else 0) == max(done, default=0)

    def teardown(self) -> None:
        self.ledger.verify()
        self.ledger.close()
        shutil.rmtree(self.root)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=25, stateful_step_count=20)
