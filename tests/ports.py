"""A port that a test may name, without a race for it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port of this machine that is given to no other process meanwhile, and that a server may listen on all the same.

    A socket that is bound and does not listen keeps it; servers set SO_REUSEADDR. Before one listens, and after it has
    ended, connections are refused.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])
