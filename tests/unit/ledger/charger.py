"""Run as a program: one proxy charges, from several threads, until its input ends.

Usage: python -m tests.unit.ledger.charger URL STATE NAME THREADS. Says that it is ready; then a line for each attempt:
the number of the release that was charged, 0 if it was refused, and when it was begun and ended by the clock of all
processes. What was charged is marked before it is told.
"""

from __future__ import annotations

import sys
import threading
import time
from itertools import count
from pathlib import Path

from proxy.errors import LedgerFailed
from proxy.ledger.postgres.ledger import PostgresLedger
from tests.unit.ledger.make import ask, payers, reserved_of, want


def main() -> int:
    url, state, name, threads = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    ledger = PostgresLedger(state, url)
    over = threading.Event()

    def charge(thread: int) -> None:
        for number in count():
            if over.is_set():
                return
            began, release_id = time.monotonic(), 0
            try:
                receipt = ledger.reserve(payers(user=name), want(f"{name}.{thread}.{number}"), ask())
                release_id = reserved_of(receipt.items[0]).release_id
                ledger.settle(receipt.statement)
            except LedgerFailed as failed:
                print(f"{name}: {failed} {failed.detail} {failed.__cause__!r}", file=sys.stderr, flush=True)
            sys.stdout.write(f"{release_id} {began} {time.monotonic()}\n")
            sys.stdout.flush()

    print("ready", flush=True)
    running = [threading.Thread(target=charge, args=(thread,)) for thread in range(threads)]
    for thread in running:
        thread.start()
    sys.stdin.read()
    over.set()
    for thread in running:
        thread.join()
    ledger.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
