"""How are two ways of doing the same timed fairly on a machine that is not ours alone?

Warm, one run of each in turn, and the median of each: what slows the machine slows both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Pair:
    """Median milliseconds of two works."""

    plain_ms: float
    other_ms: float

    @property
    def ratio(self) -> float:
        return self.other_ms / self.plain_ms


def interleaved(plain: Work, other: Work, runs: int) -> Pair:
    """Each work once to warm up, then in turn."""
    plain()
    other()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        times[0].append(milliseconds(plain))
        times[1].append(milliseconds(other))
    return Pair(statistics.median(times[0]), statistics.median(times[1]))


def milliseconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3
