"""Whose work is done next?

Work waits at one of several levels. Each login has its turn at each level, in the order in which they came; of one
login the oldest goes first. Knows neither time nor processes.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Generic, TypeVar

Waiting = TypeVar("Waiting")


class Turns(Generic[Waiting]):
    """Works that wait, by level and login."""

    def __init__(self, levels: int) -> None:
        self._levels: tuple[OrderedDict[str, deque[Waiting]], ...] = tuple(OrderedDict() for _ in range(levels))

    def add(self, level: int, login: str, work: Waiting) -> None:
        """Let a work wait."""
        self._levels[level].setdefault(login, deque()).append(work)

    def take(self, levels: Iterable[int]) -> Iterable[Waiting]:
        """The next work of the first of these levels that has one, at most one; its login's next turn is the last."""
        for level in levels:
            logins = self._levels[level]
            if logins:
                login, works = logins.popitem(last=False)
                work = works.popleft()
                if works:
                    logins[login] = works
                return (work,)
        return ()

    def remove(self, level: int, login: str, work: Waiting) -> bool:
        """Let a work wait no more; whether it did."""
        works = self._levels[level].get(login, deque())
        if work not in works:
            return False
        works.remove(work)
        if not works:
            del self._levels[level][login]
        return True

    def __len__(self) -> int:
        return sum(len(works) for logins in self._levels for works in logins.values())
