"""What was released of how much the units of a table have, and what does it say of their sizes?

A profile is noisy numbers that the dataset's account has paid for. All that is made of them here is post-processing,
and decides about accuracy alone: bounding is right for any bound. See docs/claims/profile.md.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from proxy.plan.charge import Request

Doubles = npt.NDArray[np.float64]

BUCKETS = 64
STEP = math.sqrt(2.0)  # from one edge of a ladder to the next

_WINDOW = 4  # buckets that are looked at together: one alone seldom stands out of the noise
_AFAR, _GOES_ON, _ONE = 6.0, 2.5, 4.0  # standard deviations: of a window anywhere, of the next one, of one bucket
_FITTED = 8  # buckets that the end of the ladder is guessed from
_BENDS = 0.06  # how much the logarithm of numbers is expected to bend from bucket to bucket, at most
_FALLS = 0.4  # and to fall, at least
_MORE = 0.5  # standard deviations of how many units are behind the last bucket that was seen
ENOUGH = 10.0  # standard deviations of a number, which all units must exceed
_SEEN = 2.0  # standard deviations of the number of averages in a bucket, above which it counts
_LEAST_SPREAD = 2.0**-10  # of averages, as a part of the column's range
_FEWEST = 0.3  # units; fewer are nobody
_MOST = 2.0**50  # units; more are noise


def edges(least: float) -> tuple[float, ...]:
    """The upper ends of all buckets but the last, which has none."""
    return tuple(least * STEP**place for place in range(BUCKETS - 1))


@dataclass(frozen=True)
class Sizes:
    """Noisy numbers of units, by size.

    The first bucket holds units of at most `least`, each further one those up to the next edge, the last all above.
    sd: standard deviation of the noise of each number.
    """

    least: float
    counts: tuple[float, ...]
    sd: float

    def __post_init__(self) -> None:
        if len(self.counts) != BUCKETS or not all(map(math.isfinite, (self.least, self.sd, *self.counts))):
            raise ValueError("a ladder of sizes has 64 finite numbers")
        if self.least <= 0 or self.sd <= 0:
            raise ValueError("sizes and noise are positive")

    @property
    def is_told(self) -> bool:
        """Whether there are enough units for their sizes to be told from noise."""
        return self.tail.units > ENOUGH * self.sd

    @cached_property
    def tail(self) -> Tail:
        """About how many units are above each edge."""
        return _tail(self)

    @property
    def largest(self) -> int:
        """About the size that one unit of all exceeds, as a whole number of at least 1."""
        return max(1, math.ceil(float(self.tail.sizes_at(np.array([1.0]))[0])))


@dataclass(frozen=True)
class Tail:
    """About how many units are larger than each edge of a ladder, never rising.

    units: of any size. seen: the last edge up to which the numbers stand out of their noise; beyond is a guess.
    """

    edges: tuple[float, ...]
    above: tuple[float, ...]
    units: float
    seen: int

    def __hash__(self) -> int:
        return hash((self.units, self.above[0], self.edges[0]))  # a plan asks for it dozens of times

    def sizes_at(self, ranks: Doubles) -> Doubles:
        """The sizes that about so many units exceed."""
        above = np.array((self.units, *self.above))[::-1]
        return np.asarray(np.interp(ranks, above, np.array((0.0, *self.edges))[::-1]))

    @cached_property
    def ranked(self) -> tuple[Doubles, Doubles, Doubles]:
        """Ranks from all units to hardly one, by equal factors; how many units each stands for; and their sizes."""
        count = 1 + math.ceil(2.0 * math.log2(self.units / _FEWEST))
        ranks: Doubles = self.units * 2.0 ** (-np.arange(count) / 2.0)
        between = np.append(ranks[:-1] - ranks[1:], 2.0 * ranks[-1])
        steps: Doubles = (np.append(0.0, between[:-1]) + between) / 2.0
        return ranks, steps, self.sizes_at(ranks)

    def within(self, most: float) -> Tail:
        """The same where no unit is larger than a size that is declared."""
        kept = sum(edge < most for edge in self.edges)
        return replace(self, above=(*self.above[:kept], *([0.0] * (len(self.above) - kept))))

    def units_above(self, size: float) -> float:
        """About how many units are larger."""
        return float(np.interp(size, (0.0, *self.edges), (self.units, *self.above)))

    def share_above(self, size: float) -> float:
        """About which share of the whole units have beyond a size."""
        ends, above = np.array((0.0, *self.edges)), np.array((self.units, *self.above))
        pieces = np.diff(ends) * (above[1:] + above[:-1]) / 2.0
        beyond = np.append(np.cumsum(pieces[::-1])[::-1], 0.0)
        return float(np.interp(size, ends, beyond) / beyond[0]) if beyond[0] > 0 else 0.0


@dataclass(frozen=True)
class UnitMeans:
    """Noisy numbers of units by their average of a column.

    ends: of the cells, one more than there are. sd: standard deviation of the noise of each number.
    """

    column: str
    ends: tuple[float, ...]
    counts: tuple[float, ...]
    sd: float

    def __post_init__(self) -> None:
        if len(self.ends) != len(self.counts) + 1 or not all(map(math.isfinite, (*self.ends, *self.counts, self.sd))):
            raise ValueError("each cell of averages has two ends and a number")
        if self.sd <= 0 or any(a >= b for a, b in pairwise(self.ends)):
            raise ValueError("noise is positive, and ends rise")

    @cached_property
    def are_told(self) -> bool:
        """Whether there are enough units to tell them from noise."""
        return bool(self._seen.any())

    @cached_property
    def centre(self) -> float:
        """About the average of the units' averages."""
        return float(self._told @ self._middles / self._told.sum())

    @cached_property
    def spread(self) -> float:
        """About how far from it a unit's average is, as a root mean square."""
        return math.sqrt(float(self._told @ self._apart(self.centre) ** 2 / self._told.sum()))

    def distances(self, middle: float, parts: Doubles) -> Doubles:
        """About how far units' averages are from a value, for each of these parts of all units, the nearest first."""
        apart = self._apart(middle)
        order = np.argsort(apart)
        reached = (np.cumsum(self._told[order]) - self._told[order] / 2.0) / self._told.sum()
        return np.asarray(np.interp(np.cumsum(parts) - parts / 2.0, reached, apart[order]))

    def _apart(self, middle: float) -> Doubles:
        """How far the values of each cell are from a value, as a root mean square."""
        widths = np.diff(np.array(self.ends, dtype=np.float64))
        least = _LEAST_SPREAD * (self.ends[-1] - self.ends[0])
        return np.asarray(np.maximum(np.hypot(self._middles - middle, widths / math.sqrt(12.0)), least))

    @cached_property
    def _middles(self) -> Doubles:
        ends = np.array(self.ends, dtype=np.float64)
        return np.asarray((ends[1:] + ends[:-1]) / 2.0)

    @cached_property
    def _seen(self) -> Doubles:
        counts = np.array(self.counts, dtype=np.float64)
        return np.asarray(np.where(counts > _SEEN * self.sd, counts, 0.0))

    @cached_property
    def _told(self) -> Doubles:
        """The numbers that stand out of the noise, and on either side of them what the others add up to, falling."""
        seen = np.flatnonzero(self._seen)
        first, last = int(seen[0]), int(seen[-1])
        found = self._seen.copy()
        found[last + 1 :] = _falling(np.array(self.counts[last + 1 :]), self._seen[last])
        found[:first] = _falling(np.array(self.counts[:first][::-1]), self._seen[first])[::-1]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnShares:
    """Sums over units, with noise: of the share of a unit's rows, and of pairs of its rows, that are in a cell.

    rows, pairs: by cell, as `cells` numbers those of the column; units of one row have no pairs. sd: of each number.
    """

    column: str
    rows: tuple[float, ...]
    pairs: tuple[float, ...]
    sd: float

    def __post_init__(self) -> None:
        if not self.rows or len(self.rows) != len(self.pairs):
            raise ValueError("each cell has a share of rows and one of pairs")
        if not all(map(math.isfinite, (self.sd, *self.rows, *self.pairs))) or self.sd <= 0:
            raise ValueError("shares and their noise are finite")

    def __hash__(self) -> int:
        return hash((self.column, self.sd, self.rows[0]))


class ProfilePart(enum.StrEnum):
    """What one release of a profile tells of a table's units, or of one of its columns."""

    ROWS = "rows"
    SUM = "sum"
    SHARES = "shares"
    MEANS = "means"
    GROUPS = "groups"


@dataclass(frozen=True, slots=True)
class PaidPart:
    """The release that tells a part of a profile, and what the dataset paid for it. column: "" for rows."""

    part: ProfilePart
    column: str
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProfile:
    """What is known of the units of one private table.

    allowed: rows of a unit by the policy, None if it does not say, 1 where there cannot be more. rows: of a unit.
    sums: by column, the largest size of one value by the policy, and the sums of the sizes of a unit's values, in
    multiples of it. shares: of rows with the values of a column. means: averages of units, by column. groups: how many
    different values of a column units have. data_version: of the data that was looked at. newer: that of the data now,
    "" if it is the same. paid: for all of this. earlier_pico: what the dataset paid for what it has replaced.
    """

    table: str
    allowed: int | None
    rows: Sizes
    sums: tuple[tuple[str, float, Sizes], ...]
    data_version: str
    shares: tuple[ColumnShares, ...] = ()
    means: tuple[UnitMeans, ...] = ()
    groups: tuple[tuple[str, Sizes], ...] = ()
    newer: str = ""
    paid: tuple[PaidPart, ...] = ()
    earlier_pico: int = 0

    def __hash__(self) -> int:
        return hash((self.table, self.data_version, self.earlier_pico, self.rows.counts[0]))

    @property
    def all_pico(self) -> int:
        """What all versions of it cost together: in the unit of the dataset's accounting."""
        return self.earlier_pico + sum(one.request.cost.pico for one in self.paid)

    @property
    def most_rows(self) -> int:
        """Rows of a unit that count where no bound is chosen: by the policy, else those of about the largest."""
        return self.rows.largest if self.allowed is None else self.allowed

    def sum_of(self, column: str) -> tuple[float, Sizes] | None:
        """What is known of the sums of a column."""
        return next(((largest, sizes) for name, largest, sizes in self.sums if name == column), None)

    def groups_of(self, column: str) -> Sizes | None:
        """What is known of how many different values of a column units have."""
        return dict(self.groups).get(column)

    def means_of(self, column: str) -> UnitMeans | None:
        """What is known of the averages that units have of a column."""
        return next((m for m in self.means if m.column == column), None)

    def shares_of(self, column: str) -> ColumnShares | None:
        """What is known of how often the values of a column occur."""
        return next((s for s in self.shares if s.column == column), None)


def _falling(counts: Doubles, before: float) -> Doubles:
    """As many as noisy numbers add up to, falling by equal factors from the number before them."""
    whole = max(0.0, float(counts.sum()))
    return np.asarray(before * (whole / (whole + before)) ** np.arange(1, len(counts) + 1))


def _tail(sizes: Sizes) -> Tail:
    counts = [max(-_MOST, min(c, _MOST)) for c in sizes.counts]
    last = _last_seen(counts, sizes.sd)
    if last < 0:
        return Tail(edges(sizes.least), (0.0,) * (BUCKETS - 1), max(0.0, math.fsum(counts[:_WINDOW])), 0)
    beyond = [n if n >= _FEWEST else 0.0 for n in _sums_from_the_end(_guessed(counts, last, sizes.sd))]
    above = [*_sums_from_the_end([max(0.0, c) for c in counts[1 : last + 1]], beyond[0]), *beyond]
    return Tail(edges(sizes.least), tuple(above[: BUCKETS - 1]), above[0] + max(0.0, counts[0]), last)


def _last_seen(counts: Sequence[float], sd: float) -> int:
    """The last bucket whose number stands out of the noise, where it and its neighbours do together; -1 if none does.

    Far from others a window must stand out more, or noise alone would make a few units of a huge size.
    """
    windows = [math.fsum(counts[j : j + _WINDOW]) / (sd * math.sqrt(_WINDOW)) for j in range(BUCKETS)]
    first = max((j for j, w in enumerate(windows) if w > _AFAR), default=-1)
    if first < 0:
        return -1
    last = max(range(first, min(first + _WINDOW, BUCKETS)), key=lambda j: counts[j])
    end = next((j for j in range(first, BUCKETS) if windows[j] <= _GOES_ON), BUCKETS)
    seen = (j for j in range(first, min(end + _WINDOW, BUCKETS)) if counts[j] > _ONE * sd)
    return max(last, *seen, 0)


def _guessed(counts: Sequence[float], last: int, sd: float) -> list[float]:
    """Numbers of units in the buckets behind the last that was seen: a parabola through the logarithms before it.

    It is lifted, or made steeper, until it holds as many as it and the noisy numbers there say together, and a little
    more: what is forecast to be lost should not be too little.
    """
    level, slope, bend = _parabola(counts, last, sd)
    level = min(level, math.log(max(counts[last], sd)) + 0.5)
    curve = [math.exp(level + slope * k + bend * k * k) for k in range(1, max(2, BUCKETS - last))]
    told = max(math.fsum(curve[:_WINDOW]), 1e-9)
    noisy = zip(curve, counts[last + 1 :], strict=False)
    precision = math.fsum(c * c for c in curve) / (sd * sd) + 1.0  # the parabola may be off by itself
    factor = (math.fsum(c * y for c, y in noisy) / (sd * sd) + 1.0) / precision + _MORE / math.sqrt(precision)
    wanted = max(factor * told, 1.0)
    if wanted > told:
        return [c * wanted / told for c in curve]
    steeper = _steeper(curve[:_WINDOW], wanted)
    return [c * steeper ** (k + 1) for k, c in enumerate(curve)]


def _steeper(window: Sequence[float], wanted: float) -> float:
    """The factor by which each further number is to be smaller than the one before, so that they add up to `wanted`."""
    low, high = 1e-6, 1.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        if math.fsum(c * middle ** (k + 1) for k, c in enumerate(window)) > wanted:
            high = middle
        else:
            low = middle
    return low


def _parabola(counts: Sequence[float], last: int, sd: float) -> tuple[float, float, float]:
    """Level, slope and bend of the logarithm at the last bucket, fitted from the largest number before it on."""
    fitted = [j for j in range(max(0, last - _FITTED + 1), last + 1) if counts[j] > sd]
    largest = max(fitted, key=lambda j: counts[j], default=last)
    fitted = [j for j in fitted if j >= largest]
    if len(fitted) < 3:
        return math.log(max(counts[last], sd)), -0.7, 0.0
    places = np.array(fitted, dtype=np.float64) - last
    found = np.array([counts[j] for j in fitted], dtype=np.float64)
    weights = found * found / (sd * sd + found)
    powers = np.stack([np.ones_like(places), places, places * places], axis=1)
    wanted = powers.T @ (weights * np.log(found))
    level, slope, bend = np.linalg.solve((powers.T * weights) @ powers + np.diag([0, 0, _BENDS**-2]), wanted)
    if bend > 0:
        level, slope = np.linalg.solve((powers[:, :2].T * weights) @ powers[:, :2], wanted[:2])
        bend = 0.0
    return float(level), min(float(slope), -_FALLS), float(bend)


def _sums_from_the_end(numbers: Sequence[float], start: float = 0.0) -> list[float]:
    """For each place, what is there and behind it."""
    return [*reversed([*accumulate(reversed(numbers), initial=start)][1:])]
