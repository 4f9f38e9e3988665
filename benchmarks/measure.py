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
    """Median milliseconds of two works, elapsed and of this process's processor time."""

    plain_ms: float
    other_ms: float
    plain_cpu_ms: float
    other_cpu_ms: float

    @property
    def ratio(self) -> float:
        return self.other_ms / self.plain_ms

    @property
    def cpu_ratio(self) -> float:
        return self.other_cpu_ms / self.plain_cpu_ms


def interleaved(plain: Work, other: Work, runs: int) -> Pair:
    """Each work once to warm up, then in turn."""
    plain()
    other()
    times = [(*_both_times(plain), *_both_times(other)) for _ in range(runs)]
    elapsed, cpu, other_elapsed, other_cpu = (statistics.median(t) for t in zip(*times, strict=True))
    return Pair(elapsed, other_elapsed, cpu, other_cpu)


def _both_times(work: Work) -> tuple[float, float]:
    """Elapsed time, and processor time of all threads."""
    start = time.process_time()
    elapsed = milliseconds(work)
    return elapsed, (time.process_time() - start) * 1e3


def milliseconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3
