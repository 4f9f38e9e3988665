"""A proxy that is killed when it has written that an attempt ended: `python -m tests.faults.dying serve ...`."""

from __future__ import annotations

import os
import signal

from proxy.__main__ import main
from proxy.ledger.base import Ending
from proxy.ledger.sqlite.ledger import SqliteLedger


def prepare() -> None:
    original = SqliteLedger.end

    def end(self: SqliteLedger, ending: Ending) -> None:
        original(self, ending)
        os.kill(os.getpid(), signal.SIGKILL)

    SqliteLedger.end = end  # type: ignore[method-assign]  # that is what it is for


if __name__ == "__main__":
    prepare()
    main()
