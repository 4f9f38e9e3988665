"""Every value of a pool is used once: by one caller, one thread, one process."""

from __future__ import annotations

import atexit
import gc
import itertools
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from proxy.analysis.key_values import MOST_KEYS
from proxy.config import NOISE_AHEAD
from proxy.dp import samplers
from proxy.dp.mechanisms import SCALE, Distribution
from proxy.dp.samplers import Noise, NoisePool, PoolCounts, batches_of, salt_bytes


class Counter:
    """Stands for the sampler: 0, 1, 2, ... so that a value used twice, or lost, is seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = itertools.count()
        self.calls: list[int] = []

    def __call__(self, count: int) -> list[int]:
        with self._lock:
            self.calls.append(count)
            return list(itertools.islice(self._next, count))


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    draw = Counter()
    monkeypatch.setattr(samplers, "_sampler", lambda *_: draw)
    return draw


Make = Callable[..., NoisePool]


@pytest.fixture
def make() -> Iterator[Make]:
    pools: list[NoisePool] = []

    def build(distribution: Distribution = Distribution.GAUSSIAN, **sizes: int) -> NoisePool:
        pools.append(NoisePool(distribution, **sizes))
        return pools[-1]

    yield build
    for pool in pools:
        pool.close()


def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread, at most a minute."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the other thread did not get there"
        threading.Event().wait(0.001)


def in_child(work: Callable[[], list[int]]) -> list[int]:
    """What `work` returns in a forked copy of this process; a child that hangs is killed by its alarm."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of fork beside threads
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        status = 1
        try:
            with os.fdopen(writer, "w") as pipe:
                pipe.write(" ".join(map(str, work())))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "the child failed"
    return [int(word) for word in text.split()]


def take_list(pool: NoisePool, n: int) -> list[int]:
    return list(pool.take(n))


# --- taking -----------------------------------------------------------------------------------------


def test_a_pool_is_a_source_of_noise(counter: Counter, make: Make) -> None:
    noise: Noise = make(batches_ahead=1)
    assert noise.take(0) == ()
    assert len(noise.take(3)) == 3


def test_no_value_is_taken_twice_and_none_is_lost(counter: Counter, make: Make) -> None:
    pool = make(batch=7, batches_ahead=3)
    taken = [value for n in (1, 5, 0, 30, 2, 7, 100) for value in pool.take(n)]
    assert len(taken) == len(set(taken)) == 145
    pool.fill()
    rest = pool.take(pool.counts().ready)
    assert sorted([*taken, *rest]) == list(range(max([*taken, *rest]) + 1))


def test_draws_are_whole_batches_whatever_is_taken(counter: Counter, make: Make) -> None:
    pool = make(batch=16, batches_ahead=2)
    for n in (1, 3, 40, 16, 0):
        pool.take(n)
    assert set(counter.calls) == {16}


def test_threads_never_share_a_value(counter: Counter, make: Make) -> None:
    pool = make(batch=64, batches_ahead=4)
    taken: list[list[int]] = [[] for _ in range(8)]
    start = threading.Barrier(8)

    def work(mine: list[int]) -> None:
        start.wait()
        for n in range(120):
            mine.extend(pool.take(n % 30))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = [value for mine in taken for value in mine]
    assert len(together) == len(set(together)) == 8 * sum(n % 30 for n in range(120))
    counts = pool.counts()
    assert counts.removed == len(together)


def test_counts_add_up(counter: Counter, make: Make) -> None:
    pool = make(batch=8, batches_ahead=2)
    assert pool.counts() == PoolCounts(drawn=0, removed=0, ready=0)
    pool.fill()
    assert pool.counts() == PoolCounts(drawn=16, removed=0, ready=16)
    pool.take(3)
    assert pool.counts() == PoolCounts(drawn=16, removed=3, ready=13)


def test_a_pool_refills_in_the_background_before_it_is_dry(counter: Counter, make: Make) -> None:
    pool = make(batch=10, batches_ahead=4)
    pool.fill()
    pool.take(9)
    assert pool.counts().drawn == 40  # more than three quarters are left
    pool.take(5)
    until(lambda: pool.counts().ready >= 40)
    assert pool.counts().removed == 14


def test_a_warm_pool_has_noise_for_the_largest_public_domain_with_three_moments(counter: Counter, make: Make) -> None:
    """Also when it has been used a little: the background draws again once a quarter is gone."""
    pool = make(batches_ahead=batches_of(NOISE_AHEAD))
    pool.fill()
    pool.take(pool.counts().ready // 4)
    calls = len(counter.calls)
    assert len(pool.take(3 * MOST_KEYS)) == 300_000
    assert len(counter.calls) <= calls + 1  # the background may have begun


def test_a_new_pool_draws_ahead_without_being_asked_for_a_value(counter: Counter, make: Make) -> None:
    pool = make(batch=10, batches_ahead=16)
    pool.warm()
    until(lambda: pool.counts().ready >= 20)  # at once up to an eighth


def test_the_background_pauses_between_batches_unless_little_is_left(
    counter: Counter, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samplers, "_PAUSE_S", 1000.0)
    pool = make(batch=10, batches_ahead=16)
    pool.warm()
    until(lambda: pool.counts().ready >= 20)
    assert pool.counts().drawn <= 30
    pool.take(15)  # ends the pause
    until(lambda: pool.counts().ready >= 20)
    monkeypatch.setattr(samplers, "_PAUSE_S", 0.0)
    pool.take(15)
    until(lambda: pool.counts().ready >= 160)


def test_values_removed_before_a_failed_draw_never_come_back(
    counter: Counter, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> bool:
        raise OSError("no random source")

    failing = False

    def draw(count: int) -> list[int]:
        return counter(count) if not failing else [fail()]

    monkeypatch.setattr(samplers, "_sampler", lambda *_: draw)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)  # the background thread fails as well
    pool = make(batch=10, batches_ahead=1)
    pool.fill()
    failing = True
    with pytest.raises(OSError):
        pool.take(25)
    until(lambda: not any(thread.name == "noise" for thread in threading.enumerate()))
    assert pool.counts().removed == 10
    failing = False
    assert min(pool.take(25)) == 10
    until(lambda: pool.counts().ready >= 10)  # a new thread draws again


@pytest.mark.parametrize("n", [-1, -100])
def test_a_negative_number_of_values_is_refused(counter: Counter, make: Make, n: int) -> None:
    with pytest.raises(ValueError):
        make(batches_ahead=1).take(n)


@pytest.mark.parametrize(("values", "batches"), [(0, 1), (1, 1), (4096, 1), (4097, 2), (NOISE_AHEAD, 128)])
def test_a_pool_is_given_as_many_batches_as_hold_the_values(values: int, batches: int) -> None:
    assert batches_of(values) == batches


@pytest.mark.parametrize("sizes", [{"batch": 0, "batches_ahead": 1}, {"batches_ahead": 0}])
def test_an_empty_pool_is_refused(counter: Counter, sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        NoisePool(Distribution.GAUSSIAN, **sizes)


# --- ending and forking -----------------------------------------------------------------------------


def test_a_closed_pool_gives_nothing_and_its_thread_ends(counter: Counter) -> None:
    pool = NoisePool(Distribution.GAUSSIAN, batch=4, batches_ahead=2)
    pool.take(5)
    pool.close()
    assert pool.counts().ready == 0
    assert not any(thread.name == "noise" for thread in threading.enumerate())
    with pytest.raises(RuntimeError):
        pool.take(1)
    pool.fill()
    with pytest.raises(RuntimeError):
        pool.take(0)


def test_a_pool_that_never_drew_can_be_closed(counter: Counter) -> None:
    pool = NoisePool(Distribution.GAUSSIAN, batches_ahead=1)
    pool.close()
    assert counter.calls == []


def test_a_forked_child_never_uses_its_parents_values(counter: Counter, make: Make) -> None:
    pool = make(batch=50, batches_ahead=2)
    pool.fill()
    child = in_child(lambda: list(pool.take(60)))
    parent = pool.take(100)
    # the child's copy of the counter goes on at 100: what the parent had drawn before is not among its values
    assert sorted(parent) == list(range(100))
    assert min(child) >= 100
    assert len(set(child)) == 60


def test_a_forked_child_draws_other_noise_than_its_parent(make: Make) -> None:
    # false alarm: 20 * 20 pairs of values of scale 2**40, twice, coincide once with probability below 3e-10
    for distribution in Distribution:
        pool = make(distribution, batch=64, batches_ahead=2)
        pool.fill()
        child = in_child(partial(take_list, pool, 20))
        assert len(child) == 20
        assert not set(child) & set(pool.take(20))


def test_a_child_is_not_blocked_by_a_lock_held_at_the_fork(counter: Counter, make: Make) -> None:
    pool = make(batch=5, batches_ahead=1)
    pool.fill()
    with pool._stock._lock:
        child = in_child(lambda: list(pool.take(3)))
    assert min(child) >= 5


def test_a_fork_without_hooks_is_noticed_by_the_process_id(
    counter: Counter, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make(batch=5, batches_ahead=1)
    pool.fill()
    process = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: process + 1)
    assert pool.counts() == PoolCounts(drawn=0, removed=0, ready=0)
    assert min(pool.take(2)) >= 5


def test_a_fork_in_the_middle_of_taking_drops_what_was_taken(
    counter: Counter, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make(batch=5, batches_ahead=1)
    pool.fill()
    process = os.getpid()
    seen = iter([process])  # asked once before the values are removed; afterwards it is another process
    monkeypatch.setattr(os, "getpid", lambda: next(seen, process + 1))
    assert min(pool.take(2)) >= 5


def test_a_pool_that_is_gone_needs_no_care_at_a_fork(counter: Counter) -> None:
    pool = NoisePool(Distribution.GAUSSIAN, batch=1, batches_ahead=1)
    pool.close()
    del pool
    gc.collect()
    assert in_child(lambda: [1]) == [1]


def test_the_hook_renews_a_pool_and_passes_over_a_dead_one(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: list[Callable[[], None]] = []
    monkeypatch.setattr(os, "register_at_fork", lambda *, after_in_child: hooks.append(after_in_child))
    pool = NoisePool(Distribution.GAUSSIAN, batch=5, batches_ahead=1)
    pool.fill()
    hooks[0]()
    assert pool.counts().drawn == 0
    pool.close()
    atexit.unregister(pool.close)
    del pool
    gc.collect()
    hooks[0]()


# --- the sampler ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.0, 0.5, -1.0, math.nan, math.inf])
def test_a_scale_that_adds_no_noise_is_refused_before_the_library_sees_it(scale: float) -> None:
    for distribution in Distribution:
        with pytest.raises(ValueError):
            samplers._sampler(distribution, scale)


@pytest.mark.parametrize("distribution, loss", [(Distribution.GAUSSIAN, 2.0**-81), (Distribution.LAPLACE, 2.0**-40)])
def test_the_library_grants_what_is_charged(distribution: Distribution, loss: float) -> None:
    samplers._sampler(distribution, float(SCALE))  # switches the library on
    mechanism, expected = samplers._mechanism(distribution, float(SCALE))
    assert expected == loss
    assert mechanism.map(1) == loss  # type: ignore[no-untyped-call]  # OpenDP's own annotation is missing


class Generous:
    """A library that would grant less privacy than it should, or return too few values."""

    def map(self, _: int) -> float:
        return 1.0

    def __call__(self, values: list[int]) -> list[int]:
        return values[1:]


def test_a_library_that_grants_less_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplers, "_mechanism", lambda *_: (Generous(), 0.5))
    with pytest.raises(RuntimeError, match=r"grants 1.0 where 0.5"):
        samplers._sampler(Distribution.GAUSSIAN, 8.0)


def test_a_library_that_returns_too_few_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplers, "_mechanism", lambda *_: (Generous(), 1.0))
    with pytest.raises(RuntimeError, match="returned 4 values"):
        samplers._sampler(Distribution.GAUSSIAN, 8.0)(5)


# --- salt -------------------------------------------------------------------------------------------


def test_salts_differ_and_have_their_size() -> None:
    assert len(salt_bytes()) == 32
    assert len(salt_bytes(16)) == 16
    assert salt_bytes() != salt_bytes()


def test_a_short_salt_is_refused() -> None:
    with pytest.raises(ValueError):
        salt_bytes(15)
