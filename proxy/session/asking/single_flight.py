"""Who computes a release now, so that others who ask for the same wait for it instead of paying for another?"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from proxy.engines.base import Cancellation
from proxy.plan.charge import ReleaseKey


class Underway:
    """The keys of releases that are being reserved and computed. Safe to call from any thread."""

    def __init__(self) -> None:
        self._keys: set[ReleaseKey] = set()
        self._changed = threading.Condition()

    @contextmanager
    def alone(self, keys: Iterable[ReleaseKey], cancellation: Cancellation) -> Iterator[None]:
        """Nobody else is between these brackets with one of these keys. Raises QueryCanceled while it waits.

        All keys are taken at once, so two statements never wait for each other.
        """
        wanted = frozenset(keys)
        with self._changed:
            if not wanted.isdisjoint(self._keys):
                cancellation.listen(self._wake)
                self._changed.wait_for(lambda: cancellation.is_requested or wanted.isdisjoint(self._keys))
                cancellation.check()
            self._keys |= wanted
        try:
            yield
        finally:
            with self._changed:
                self._keys -= wanted
                self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
