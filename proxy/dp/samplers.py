"""Where does randomness come from? From here alone.

Noise is drawn ahead of need by OpenDP's integer mechanisms and handed out once. Nothing here is derived
from a seed, a setting or data, and nothing here knows what the noise is for.
The argument is in docs/claims/noise.md.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
import weakref
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, assert_never

import numpy as np
import opendp.prelude as opendp
from numpy.typing import NDArray

from proxy.dp.mechanisms import SCALE, Distribution
from proxy.dp.quantiles import Draw, Weights
from proxy.policy.response import KeptOrUniform, Response, TwoCoins

__all__ = [
    "Distribution",
    "Noise",
    "NoisePool",
    "PoolCounts",
    "batches_of",
    "choose",
    "noised",
    "order_keys",
    "responded",
    "salt_bytes",
]

_BATCH = 4096  # values per call of the sampler: about 50 ms
_LOW = 8  # below an eighth of a full pool the background draws without a pause
_PAUSE_S = 2.0  # else after each batch: a proxy that just began should not look busy
_CLOSE_TIMEOUT_S = 5.0
_SPENT = 1.0 - 2.0**-30  # of what a choice is charged, it spends at least this part
_ALMOST = 2.0**-20  # a chance as a double moves what the library grants by less
_WIDER = 1.0 + 2.0**-40  # of declared noise: what the library rounds up stays within what is declared
_FAR = 2**61  # noise beyond it is cut, so that no sum leaves 64 bits

_Draw = Callable[[int], list[int]]


class Noise(Protocol):
    """A source of independent noise in grid units (scale 2**40)."""

    def take(self, n: int) -> tuple[int, ...]:
        """The next n values: all or none, and none of them ever again."""
        ...


def batches_of(values: int) -> int:
    """How many batches of a pool hold this many values, from 1."""
    return max(1, -(-values // _BATCH))


def salt_bytes(size: int = 32) -> bytes:
    """Fresh bytes from the operating system, for a dataset's salt. ValueError below 16."""
    if size < 16:
        raise ValueError(f"a salt of {size} bytes can be guessed")
    return os.urandom(size)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCounts:
    """Values since this process began to use the pool: drawn = removed + ready at every moment.

    For the operator alone: how many values a query takes can depend on how many groups its data has.
    """

    drawn: int
    removed: int
    ready: int


class NoisePool:
    """Noise of one distribution, drawn in batches ahead of need.

    Claim: every value is an independent draw of the distribution at scale 2**40 and is returned by at most
    one `take`, in one process: a value leaves the pool before it is returned, nothing puts it back,
    and a forked child starts with an empty pool. Assumes OpenDP's samplers and the system's random source.
    Thread-safe. A warm pool answers at once; a dry one draws whole batches, never single values, so that
    time shows only how many batches were needed.
    """

    def __init__(self, distribution: Distribution, *, batch: int = _BATCH, batches_ahead: int) -> None:
        if batch < 1 or batches_ahead < 1:
            raise ValueError("a pool holds at least one batch of one value")
        self._draw = _sampler(distribution, float(SCALE))
        self._batch = batch
        self._full = batch * batches_ahead
        self._stock = self._new_stock()
        _renew_after_fork(self)
        atexit.register(self.close)  # a sampler must not run while its library is being unloaded

    def take(self, n: int) -> tuple[int, ...]:
        """The next n values: all or none, and none of them ever again. ValueError for a negative n.

        What was removed stays removed if drawing the rest fails. If the process forks meanwhile, both
        sides drop what they hold here, so that no value is used by two processes.
        """
        if n < 0:
            raise ValueError(f"cannot take {n} values")
        while True:
            stock = self._of_this_process()
            values = stock.take(n)
            if os.getpid() == stock.process:
                return values

    def warm(self) -> None:
        """Begin to draw ahead in the background."""
        self._of_this_process().warm()

    def fill(self) -> None:
        """Draw until the pool is full, in the caller's thread."""
        self._of_this_process().fill()

    def counts(self) -> PoolCounts:
        """How many values were drawn and removed, and how many are ready, at one moment."""
        return self._of_this_process().counts()

    def close(self) -> None:
        """Stop drawing and drop what is left; `take` raises RuntimeError from now on. Waits for a running batch."""
        self._of_this_process().close()
        atexit.unregister(self.close)

    def renew(self) -> None:
        """Drop everything, as a child does after a fork: its parent holds the same values."""
        self._stock = self._new_stock()

    def _of_this_process(self) -> _Stock:
        if self._stock.process != os.getpid():  # a fork that ran no Python hook
            self.renew()
        return self._stock

    def _new_stock(self) -> _Stock:
        return _Stock(self._draw, self._batch, self._full)


class _Stock:
    """The values that one process holds, with their lock and the thread that draws more.

    Never shared by two processes, so a lock held elsewhere at the moment of a fork cannot block the child.
    """

    def __init__(self, draw: _Draw, batch: int, full: int) -> None:
        self.process = os.getpid()
        self._draw = draw
        self._batch = batch
        self._full = full
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._urgent = threading.Event()
        self._refiller: threading.Thread | None = None
        self._closed = False
        self._ready = array("q")  # OpenDP's values are 64-bit integers
        self._drawn = 0

    def warm(self) -> None:
        with self._lock:
            self._ask_for_refill()

    def take(self, n: int) -> tuple[int, ...]:
        values = self._remove(n)
        while len(values) < n:
            self._add(self._draw(self._batch))
            values += self._remove(n - len(values))
        return tuple(values)

    def fill(self) -> None:
        while not self._closed and not self._is_full():
            self._add(self._draw(self._batch))

    def counts(self) -> PoolCounts:
        with self._lock:
            ready = len(self._ready)
            return PoolCounts(drawn=self._drawn, removed=self._drawn - ready, ready=ready)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._ready = array("q")
            refiller = self._refiller
        self._wanted.set()
        self._urgent.set()
        if refiller is not None:
            refiller.join(_CLOSE_TIMEOUT_S)

    def _remove(self, most: int) -> list[int]:
        with self._lock:
            if self._closed:
                raise RuntimeError("the noise pool is closed")
            start = max(0, len(self._ready) - most)
            values = self._ready[start:].tolist()
            del self._ready[start:]
            if 4 * len(self._ready) < 3 * self._full:
                self._ask_for_refill()
        return values

    def _add(self, values: list[int]) -> None:
        with self._lock:
            self._drawn += len(values)
            self._ready.extend(values)

    def _is_full(self) -> bool:
        return len(self._ready) >= self._full

    def _is_low(self) -> bool:
        return _LOW * len(self._ready) < self._full

    def _ask_for_refill(self) -> None:
        """Wake the drawing thread; start it if there is none, or if a failed draw ended it. The lock is held."""
        if self._refiller is None or not self._refiller.is_alive():
            self._refiller = threading.Thread(target=self._refill_forever, name="noise", daemon=True)
            self._refiller.start()
        self._wanted.set()
        if self._is_low():
            self._urgent.set()

    def _refill_forever(self) -> None:
        while not self._closed:
            self._wanted.wait()
            self._wanted.clear()
            self._refill()

    def _refill(self) -> None:
        while not self._closed and not self._is_full():
            self._add(self._draw(self._batch))
            if not self._is_low():
                self._urgent.clear()
                self._urgent.wait(_PAUSE_S)


def _sampler(distribution: Distribution, scale: float) -> _Draw:
    """OpenDP's sampler, after checking that the library grants exactly the privacy that is charged.

    The scale is checked first because OpenDP accepts a scale of 0 and then returns the exact value.
    """
    if not (math.isfinite(scale) and scale >= 1):
        raise ValueError(f"a noise scale of {scale} protects nobody")
    opendp.enable_features("contrib")
    mechanism, expected = _mechanism(distribution, scale)
    granted = mechanism.map(1)  # type: ignore[no-untyped-call]  # OpenDP's own annotation is missing
    if granted != expected:
        raise RuntimeError(f"the noise library grants {granted} where {expected} is charged")

    def draw(count: int) -> list[int]:
        values: list[int] = mechanism([0] * count)
        if len(values) != count:
            raise RuntimeError(f"the noise library returned {len(values)} values instead of {count}")
        return values

    return draw


def _mechanism(distribution: Distribution, scale: float) -> tuple[opendp.Measurement, float]:
    """The mechanism on vectors of int64, and the privacy loss it must state for a move of one grid unit."""
    domain = opendp.vector_domain(opendp.atom_domain(T="i64"))
    match distribution:
        case Distribution.GAUSSIAN:
            return opendp.m.make_gaussian(domain, opendp.l2_distance(T="i64"), scale=scale), 0.5 / scale**2
        case Distribution.LAPLACE:
            return opendp.m.make_laplace(domain, opendp.l1_distance(T="i64"), scale=scale), 1.0 / scale
        case _ as never:
            assert_never(never)


def choose(scores: Weights, draw: Draw) -> int:
    """The number of one candidate, drawn by its score.

    Claim: for GAUSSIAN candidate i is chosen with probability proportional to exp(scores[i] / draw.scale), and scores
    that move by at most draw.sensitivity each, all of them the same way if draw.is_monotone, make this
    draw.charge-zCDP; for LAPLACE it is draw.charge-DP (the permute-and-flip law). Assumes OpenDP's mechanism and the
    system's random source. Everything that OpenDP would let through is checked first: a scale of 0 returns the best
    candidate itself. ValueError for impossible arguments, RuntimeError if the library grants another charge.
    """
    if scores.ndim != 1 or len(scores) == 0 or scores.dtype.name != "int64":
        raise ValueError("scores are a list of 64-bit integers")
    if draw.sensitivity < 1 or not (math.isfinite(draw.scale) and draw.scale > 0):
        raise ValueError(f"a choice of scale {draw.scale} protects nobody")
    mechanism = _noisy_max(draw.distribution, draw.scale, draw.is_monotone)
    granted = mechanism.map(draw.sensitivity)  # type: ignore[no-untyped-call]  # as above
    if not draw.charge * _SPENT <= granted <= draw.charge:
        raise RuntimeError(f"the noise library grants {granted} where {draw.charge} is charged")
    chosen = mechanism(scores)
    if not isinstance(chosen, int) or not 0 <= chosen < len(scores):
        raise RuntimeError("the noise library chose none of the candidates")
    return chosen


@lru_cache(maxsize=256)
def _noisy_max(distribution: Distribution, scale: float, is_monotone: bool) -> opendp.Measurement:
    """Gumbel noise and the zCDP measure: for permute-and-flip epsilon^2/8 does not hold."""
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.linf_distance(T="i64", monotonic=is_monotone)
    return opendp.m.make_noisy_max(*space, _measure(distribution), scale=scale)


def _measure(distribution: Distribution) -> opendp.Measure:
    match distribution:
        case Distribution.GAUSSIAN:
            return opendp.zero_concentrated_divergence()
        case Distribution.LAPLACE:
            return opendp.max_divergence()
        case _ as never:
            assert_never(never)


# --- rows that are randomized one by one ----------------------------------------------------------------

IntegerArray = NDArray[np.int64]


def responded(values: IntegerArray, response: Response) -> IntegerArray:
    """One answer for each value: both are numbers of listed values; of coins 1 is yes and 0 no.

    Claim: each answer has the law of `response`, independent of all others, to 2**-50 of a chance, and a value is kept
    no more often than declared. Assumes OpenDP's bits and the system's random source. ValueError for a value that is
    not listed, RuntimeError if the library grants another epsilon.
    """
    match response:
        case KeptOrUniform(keep, choices):
            _check_listed(values, choices)
            _check_granted(response)
            return np.where(_coins(keep, len(values)), values, _below(choices, len(values)))
        case TwoCoins(truth, yes):
            _check_listed(values, 2)
            return np.where(_coins(truth, len(values)), values, _coins(yes, len(values)))
        case _ as never:
            assert_never(never)


def noised(
    values: IntegerArray, distribution: Distribution, scale: float, *, lo: int, hi: int, most: float
) -> IntegerArray:
    """Whole numbers from lo to hi, each with noise of its own.

    Claim: for two values of one number this is `most`-DP for LAPLACE and `most`-zCDP for GAUSSIAN. Assumes OpenDP's
    mechanism. ValueError for a value outside or a scale below 1, RuntimeError if the library does not grant it.
    """
    if len(values) and not (lo <= values.min() and values.max() <= hi and max(-lo, hi) <= _FAR):
        raise ValueError("a number to be randomized lies outside its bounds")
    if not (math.isfinite(scale) and scale >= 1):
        raise ValueError(f"a noise scale of {scale} protects nobody")
    opendp.enable_features("contrib")
    mechanism, _ = _mechanism(distribution, scale * _WIDER)
    granted = mechanism.map(hi - lo)  # type: ignore[no-untyped-call]  # as above
    if not granted <= most:
        raise RuntimeError(f"the noise library grants {granted} where {most} is declared")
    noise = np.array(mechanism([0] * len(values)), dtype=np.int64)
    return values + np.clip(noise, -_FAR, _FAR)


def order_keys(count: int) -> NDArray[np.uint64]:
    """Numbers by which rows are sorted into a random order."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def _check_listed(values: IntegerArray, choices: int) -> None:
    if len(values) and not (values.min() >= 0 and values.max() < choices):
        raise ValueError("a value to be randomized is not listed")


@lru_cache(maxsize=256)
def _check_granted(response: KeptOrUniform) -> None:
    opendp.enable_features("contrib")
    categories = list(range(response.choices))
    mechanism = opendp.m.make_randomized_response(categories, prob=float(response.p))
    granted = mechanism.map(1)  # type: ignore[no-untyped-call]  # as above
    if abs(granted - response.epsilon) > _ALMOST * response.epsilon + _ALMOST**2:
        raise RuntimeError(f"the noise library grants {granted} where {response.epsilon} is declared")


def _coins(chance: Fraction, count: int) -> IntegerArray:
    """Ones with this chance, rounded down to a double, and zeros."""
    is_rare = 2 * chance <= 1
    flipped = _double(2 * chance, is_up=False) if is_rare else _double(2 * (1 - chance), is_up=True)
    bits = _bits(flipped)(bytes(-(-count // 8)))
    drawn = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=count)
    return (drawn if is_rare else 1 - drawn).astype(np.int64)


@lru_cache(maxsize=256)
def _bits(flipped: float) -> opendp.Measurement:
    """Randomized response of many bits at once: each is another one with the chance flipped/2."""
    opendp.enable_features("contrib")
    space = opendp.bitvector_domain(max_weight=1), opendp.discrete_distance()
    mechanism = opendp.m.make_randomized_response_bitvec(*space, f=flipped)
    granted, expected = mechanism.map(1), 2.0 * math.log((2.0 - flipped) / flipped)  # type: ignore[no-untyped-call]
    if abs(granted - expected) > _ALMOST * expected + _ALMOST**2:
        raise RuntimeError(f"the noise library grants {granted} where {expected} is expected")
    return mechanism


def _below(choices: int, count: int) -> IntegerArray:
    """Whole numbers below `choices`, all equally likely: what would make some likelier is drawn again."""
    most = np.uint64(2**64 // choices * choices - 1)
    found = order_keys(count)
    found = found[found <= most]
    while len(found) < count:
        more = order_keys(count - len(found))
        found = np.concatenate((found, more[more <= most]))
    return (found % np.uint64(choices)).astype(np.int64)


def _double(number: Fraction, *, is_up: bool) -> float:
    value = float(number)
    if is_up:
        return math.nextafter(value, 2.0) if Fraction(value) < number else value
    return math.nextafter(value, 0.0) if Fraction(value) > number else value


def _renew_after_fork(pool: NoisePool) -> None:
    """Have a forked child drop the pool's values; the hook does not keep the pool alive."""
    renew = weakref.WeakMethod(pool.renew)

    def in_child() -> None:
        method = renew()
        if method is not None:
            method()

    os.register_at_fork(after_in_child=in_child)
