"""`make wire-fuzz`: made-up conversations through the relay until so many messages have passed.

Prints what was said and how memory grew, and each million of messages on the way. Fails at the first conversation that
breaks a rule, naming its seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.unit.wire.fuzz.conversation import Tally, converse

_EARLY = 2000
_SAID_EVERY = 1_000_000


def resident_kib() -> int:
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.unit.wire.fuzz", description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000_000, help="of clients")
    parser.add_argument("--seed", type=int, default=0, help="of the first conversation; the next ones count up")
    options = parser.parse_args()
    tally, seed, started, early, said = Tally(), options.seed, time.monotonic(), 0, 0
    while tally.from_clients < options.messages:
        try:
            converse(seed, tally)
        except Exception:
            print(f"conversation {seed} broke a rule", file=sys.stderr)
            raise
        seed += 1
        if tally.conversations == _EARLY:
            early = resident_kib()
        if tally.from_clients // _SAID_EVERY > said:
            said = tally.from_clients // _SAID_EVERY
            print(f"seed {seed - 1}: {tally.from_clients} messages, {resident_kib()} KiB", file=sys.stderr, flush=True)
    print(
        f"seeds {options.seed} to {seed - 1}: {tally.conversations} conversations in {time.monotonic() - started:.0f} s"
    )
    print(f"{tally.from_clients} messages of clients, {tally.greetings} before logins, {tally.from_fronts} of fronts")
    print(f"{tally.charged} charges, {tally.ended} sessions ended before their client was done")
    print(f"resident {early} KiB after {_EARLY} conversations, {resident_kib()} KiB in the end")
    print("errors shown:", ", ".join(f"{state} {count}" for state, count in sorted(tally.sqlstates.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
