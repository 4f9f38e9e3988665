"""How long does a conversation last at most, with somebody who answers one byte at a time?

Time-outs of sockets begin anew with every byte, and so would hold a thread for as long as the other side likes.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_AGAIN_S = 0.5


@contextmanager
def ended_after(seconds: float, where: Callable[[], socket.socket | None]) -> Iterator[None]:
    """End the conversation on a socket after that time, if it is not over: whoever reads finds its end then.

    where: its socket by then, if there is one. Nothing is said on it: `SSLSocket.shutdown` would first forget its
    encryption, under the hands of whoever writes.
    """
    is_over = threading.Event()

    def wait() -> None:
        wait_s = seconds
        while not is_over.wait(wait_s):
            if (found := where()) is not None:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(found, socket.SHUT_RDWR)
            wait_s = _AGAIN_S  # one that was just made is met too

    threading.Thread(target=wait, name="hushql-patience", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()
