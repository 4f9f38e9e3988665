"""Which statements were understood and planned already?

Pure results by their complete inputs, forgotten least recently used first. A plan holds no data and no
charge, so keeping it is only a matter of time saved.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from proxy.pipeline.plans import Planned
from proxy.pipeline.statements import QueryString
from proxy.session.contract import Piece

Kept = TypeVar("Kept")
_LONGEST_TEXT = 20_000


class _Recent(Generic[Kept]):
    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[Hashable, Kept] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Kept | None:
        with self._lock:
            found = self._items.get(key)
            if found is not None:
                self._items.move_to_end(key)
            return found

    def put(self, key: Hashable, value: Kept) -> None:
        with self._lock:
            self._items[key] = value
            while len(self._items) > self._most:
                self._items.popitem(last=False)


class PlanCache:
    """Pieces by text, and plans by text, parameters and settings; shared by the sessions of a dataset."""

    def __init__(self, most: int = 512) -> None:
        self._pieces: _Recent[tuple[Piece, ...]] = _Recent(most)
        self._planned: _Recent[Planned] = _Recent(most)

    def pieces(self, asked: QueryString) -> tuple[Piece, ...] | None:
        return self._pieces.get(asked)

    def keep_pieces(self, asked: QueryString, pieces: tuple[Piece, ...]) -> None:
        told = sum(len(cell or "") for rows in asked.told for row in rows for cell in row)
        if len(asked.text) + told <= _LONGEST_TEXT:
            self._pieces.put(asked, pieces)

    def planned(self, key: Hashable) -> Planned | None:
        return self._planned.get(key)

    def keep_planned(self, key: Hashable, planned: Planned, chars: int) -> None:
        """chars: of the statement."""
        if chars <= _LONGEST_TEXT:
            self._planned.put(key, planned)
