"""Kill a proxy in the middle of its work, again and again, and compare what it answered with what its books say.

Run as a program: python -m tests.faults.kill_rounds FOLDER ROUNDS. Prints a line for each problem; ends with status 1
if there are any.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Thread

import psycopg

from tests.faults.proxied import (
    COUNT,
    DATASET,
    LOGINS,
    PATIENCE_S,
    Client,
    Proxied,
    Site,
    launch,
    running,
    wait_until_it_listens,
    write_site,
)

#: Longest life of a proxy after its first answer, in seconds. An answer takes about 5 ms.
LONGEST_S = 0.08
#: Every so many rounds a proxy dies while it starts, too.
EARLY_DEATHS = 5
START_S = 0.9


@dataclass(slots=True)
class Tally:
    """What clients asked and were told, by login. latest: statement and answer."""

    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    asked: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    latest: dict[str, tuple[int, object]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


# --- clients ----------------------------------------------------------------------------------------------


def _as_text(client: Client, number: int) -> object:
    row = client.execute(f"{COUNT} where score < {number}".encode()).fetchone()
    assert row is not None
    return row[0]


def _with_parameter(client: Client, number: int) -> object:
    row = client.execute(f"{COUNT} where score < %s::bigint".encode(), [number], prepare=number % 2 == 0).fetchone()
    assert row is not None
    return row[0]


def _as_copy(client: Client, number: int) -> object:
    with client.cursor().copy(f"copy ({COUNT} where score < {number}) to stdout".encode()) as copy:
        return int(b"".join(bytes(part) for part in copy))


#: Every way of asking has its own login, and each login one client.
WAYS: dict[str, Callable[[Client, int], object]] = {"ann": _as_text, "bob": _with_parameter, "cat": _as_copy}


def ask_until_it_dies(proxied: Proxied, login: str, tally: Tally) -> None:
    """Ask what nobody has asked before, one statement after the other."""
    try:
        with proxied.connect(login) as client:
            while True:
                number = next(tally.numbers)
                tally.asked[login] += 1
                value = WAYS[login](client, number)
                tally.answered[login] += 1
                tally.latest[login] = number, value
    except psycopg.OperationalError:
        return


# --- rounds -----------------------------------------------------------------------------------------------


def repeat_latest(proxied: Proxied, tally: Tally) -> None:
    """What was answered before the kill has the same answer after it."""
    for login, (number, value) in tally.latest.items():
        with proxied.connect(login) as client:
            again = WAYS[login](client, number)
        if again != value:
            tally.problems.append(f"{login} was told {value} and then {again} for statement {number}")


def check_books(site: Site, tally: Tally, price: int) -> None:
    """Nobody is charged less than what was answered, nor more than what was asked."""
    totals = {total.name: total.spent.pico for total in site.report().totals}
    for login in WAYS:
        spent = totals.get(f"{DATASET}/{login}", 0)
        least, most = tally.answered[login] * price, tally.asked[login] * price
        if not least <= spent <= most:
            tally.problems.append(f"{login} has paid {spent}, not between {least} and {most}")
    together = sum(totals.get(f"{DATASET}/{login}", 0) for login in LOGINS)
    if totals.get(DATASET, 0) != together:
        tally.problems.append(f"the dataset has paid {totals.get(DATASET, 0)}, its users {together}")


def kill_while_it_answers(proxied: Proxied, tally: Tally, after_s: float) -> None:
    clients = [Thread(target=ask_until_it_dies, args=(proxied, login, tally)) for login in WAYS]
    before = tally.answered.total()
    for client in clients:
        client.start()
    while tally.answered.total() == before:
        time.sleep(0.001)
    time.sleep(after_s)
    die(proxied)
    for client in clients:
        client.join()


def die(proxied: Proxied) -> None:
    proxied.process.kill()
    proxied.process.wait(PATIENCE_S)


def kill_rounds(site: Site, rounds: int) -> Tally:
    """Start, ask, kill, `rounds` times; then start once more and end as one should."""
    moments = random.Random(20261121)  # any will do; the same ones each time
    tally, price = Tally(), site.price()
    for number in range(rounds):
        if number % EARLY_DEATHS == EARLY_DEATHS - 1:
            early = launch(site)
            time.sleep(moments.uniform(0, START_S))
            die(early)
            check_books(site, tally, price)
        proxied = launch(site)
        try:
            proxied = wait_until_it_listens(proxied)
            repeat_latest(proxied, tally)
            kill_while_it_answers(proxied, tally, moments.uniform(0, LONGEST_S))
        finally:
            die(proxied)
        check_books(site, tally, price)
    with running(site) as proxied:
        repeat_latest(proxied, tally)
    check_books(site, tally, price)
    return tally


def main() -> int:
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True)
    started = time.monotonic()
    tally = kill_rounds(write_site(folder), rounds)
    seconds = time.monotonic() - started
    print(*tally.problems, sep="\n")
    print(f"{rounds} kills in {seconds:.0f} s: {tally.asked.total()} asked, {tally.answered.total()} answered")
    return 1 if tally.problems else 0


if __name__ == "__main__":
    sys.exit(main())
