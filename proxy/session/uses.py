"""Until when is an engine that was replaced still needed?

As long as somebody uses it, and no longer: a time would be too short for a long statement, and hold memory for all
others.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from proxy.engines.base import Engine


class Uses:
    """Who uses which engine. Safe to call from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counter[int]()  # by the engine's id: whoever uses it keeps it
        self._retired: dict[int, Callable[[], object]] = {}

    @contextmanager
    def of(self, engine: Engine) -> Iterator[None]:
        """It is not closed while inside, unless everything ends."""
        with self._lock:
            self._counts[id(engine)] += 1
        try:
            yield
        finally:
            with self._lock:
                self._counts[id(engine)] -= 1
            self._look(id(engine))

    def retire(self, engine: Engine, unused: Callable[[], object]) -> None:
        """Call `unused` once when nobody uses an engine that is given to nobody any more; maybe in another thread."""
        with self._lock:
            self._retired[id(engine)] = unused
        self._look(id(engine))

    def _look(self, number: int) -> None:
        with self._lock:
            if self._counts[number] > 0:
                return
            del self._counts[number]
            unused = self._retired.pop(number, None)
        if unused is not None:
            unused()
