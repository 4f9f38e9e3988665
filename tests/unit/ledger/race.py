"""Run as a program: one proxy's clients race for the last of a budget that other processes spend from too.

Usage: python -m tests.unit.ledger.race URL STATE NAME CLIENTS LIMIT. Says that it is ready, waits for a line of input
and prints how many statements were charged, how many different releases that were, and in how many seconds. Every
client asks until it is refused.
"""

from __future__ import annotations

import sys
import threading
import time
from itertools import count
from pathlib import Path

from proxy.ledger.base import AccountSpent
from proxy.ledger.postgres.ledger import PostgresLedger
from proxy.plan.charge import Reserved
from tests.unit.ledger.make import account, ask, want

PRICE = 1000


def main() -> int:
    url, state, name, clients = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    limit = int(sys.argv[5])
    ledger = PostgresLedger(state, url)
    charged, lock, gate = list[int](), threading.Lock(), threading.Barrier(clients + 1)

    def spend(client: int) -> None:
        accounts = (account("dataset", pico=limit), account("user", f"{name}.{client}"))
        gate.wait()
        for number in count():
            try:
                receipt = ledger.reserve(accounts, want(f"{name}.{client}.{number}", PRICE), ask())
            except AccountSpent:
                return
            (item,) = receipt.items
            assert isinstance(item, Reserved)
            with lock:
                charged.append(item.release_id)

    threads = [threading.Thread(target=spend, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.readline()
    gate.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    print(len(charged), len(set(charged)), time.perf_counter() - started)
    ledger.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
