"""Run as a program: reserve in a child, kill -9 it, compare what it answered with what the books say.

Usage: python -m tests.unit.ledger.kill_loop DIRECTORY ROUNDS. Prints one line per problem; status 1 if there are any.
Forks of a small program start in milliseconds, so that many moments can be tried.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import MethodType

from proxy.dp.accounting import PICO
from proxy.ledger.base import Receipt
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.plan.charge import Cost, Reserved
from proxy.release.store import StoredRelease
from tests.unit.ledger.make import account, ask, want

ACCOUNTS = (account("dataset", pico=PICO), account("user", pico=PICO))
PRICE = 1000
OPENED, ANSWERED = b"o", b"x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """When a child dies: some time after it said so many bytes, or (0 seconds) by its own hand.

    A child says one byte when its books are open and one for each answer.
    """

    after_s: float = 0.0
    after_bytes: int = 0
    prepare: Callable[[SqliteLedger], None] = lambda _ledger: None


def spend(directory: Path, number: int, pipe: int, prepare: Callable[[SqliteLedger], None]) -> None:
    """The child: reserve new releases for ever; write one byte per release it could have answered."""
    ledger = SqliteLedger(directory)
    prepare(ledger)
    os.write(pipe, OPENED)
    for step in count():
        receipt = ledger.reserve(ACCOUNTS, want(f"{number}.{step}", PRICE), ask())
        answer(ledger, receipt)
        os.write(pipe, ANSWERED)


def answer(ledger: SqliteLedger, receipt: Receipt) -> None:
    for item in receipt.items:
        if isinstance(item, Reserved):
            ledger.store.put(item, b"noise" * 100)


def answered_by_killed_child(directory: Path, number: int, plan: Plan) -> int:
    """Fork a spender and kill it by plan; how many releases it answered."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            spend(directory, number, writing, plan.prepare)
        finally:
            os._exit(3)
    os.close(writing)
    said = b"".join(os.read(reading, 1) for _ in range(plan.after_bytes))
    if plan.after_s:
        time.sleep(plan.after_s)
        os.kill(child, signal.SIGKILL)
    said += b"".join(iter(lambda: os.read(reading, 65536), b""))
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if os.WTERMSIG(status) != signal.SIGKILL:
        raise SystemExit(f"the child of round {number} ended by itself")
    return said.count(ANSWERED)


def problems_after(directory: Path, answered: int, spent_before: int, number: int) -> tuple[list[str], int]:
    """Open the books as the next process would; what is wrong, and what is spent now."""
    ledger = SqliteLedger(directory)
    ledger.verify()
    found = {balance.spent.pico for balance in ledger.balances(ACCOUNTS)}
    spent = max(found)
    charged = (spent - spent_before) // PRICE
    problems = [] if len(found) == 1 else [f"round {number}: the accounts differ: {found}"]
    if not answered <= charged <= answered + 1:
        problems.append(f"round {number}: {answered} answered, {charged} charged")
    receipt = ledger.reserve(ACCOUNTS, want(f"{number}.0", PRICE), ask())
    if isinstance(receipt.items[0], StoredRelease) != (receipt.charged[0] == Cost(0, 0)):
        problems.append(f"round {number}: a stored release was charged, or a new one was free")
    answer(ledger, receipt)
    spent = ledger.balances(ACCOUNTS)[0].spent.pico
    ledger.close()
    return problems, spent


def killing_itself_at(step: int) -> Callable[[SqliteLedger], None]:
    """What makes a child die at its third charge: before the commit, before the marker, after it, after the store."""

    def prepare(ledger: SqliteLedger) -> None:
        calls = count(1)
        patched: tuple[object, str] = (
            (ledger._history, "write"),
            (ledger._marker, "write"),
            (ledger._tickets, "item"),
            (ledger.store, "put"),
        )[step]
        owner, name = patched
        original = getattr(type(owner), name)

        def die_third(self: object, *arguments: object) -> object:
            if next(calls) == 3 and step < 3:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(self, *arguments)
            if step == 3 and next(calls) > 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(owner, name, MethodType(die_third, owner))

    return prepare


def main() -> int:
    directory, rounds = Path(sys.argv[1]), int(sys.argv[2])
    delays = random.Random(20260102)  # any moments do; the same ones each time
    spent, problems, total = 0, list[str](), 0
    plans = [Plan(prepare=killing_itself_at(step)) for step in range(4)]
    plans += [
        Plan(after_s=delays.uniform(0.001, 0.03), after_bytes=(0, 1, 2, 4)[number % 4]) for number in range(rounds)
    ]
    for number, plan in enumerate(plans):
        answered = answered_by_killed_child(directory, number, plan)
        total += answered
        found, spent = problems_after(directory, answered, spent, number)
        problems += found
    print(*problems, f"{len(plans)} kills, {total} answers", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
