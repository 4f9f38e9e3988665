"""How is a profile told to people: in sentences, and as charts?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from proxy.plan.parts.cells import Cells, cells_of
from proxy.plan.profile.profile import ColumnShares, Sizes, TableProfile, Tail
from proxy.policy.model import Table

_WIDTH = 40
_RANKS = ((2.0, "half"), (10.0, "90 %"), (100.0, "99 %"), (1000.0, "99.9 %"))


def lines_of(profile: TableProfile) -> Iterator[str]:
    """What a profile says of its table, a line for each kind of size."""
    tail = profile.rows.tail
    if tail.units < 1:
        yield f"{profile.table}: too few units to tell; nothing follows from this profile"
        return
    yield f"{profile.table}: about {_count(tail.units)} units"
    if profile.allowed != 1:
        yield f"  rows of a unit: {_shares(tail, 1.0)}"
        yield f"  {_of_policy(tail, profile.most_rows, is_given=profile.allowed is not None)}"
    for column, largest, sizes in profile.sums:
        yield f"  sum of the sizes of {column}: {_shares(sizes.tail, largest)}"


@dataclass(frozen=True, slots=True)
class Bar:
    """A line of a chart. part: of the longest one, from 0 to 1; words: what stands behind it."""

    label: str
    part: float
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars under a heading."""

    heading: str
    bars: tuple[Bar, ...]

    def drawn(self) -> Iterator[str]:
        """For a terminal."""
        yield f"  {self.heading}"
        wide = max((len(bar.label) for bar in self.bars), default=0)
        for bar in self.bars:
            block = "█" * max(bar.part > 0, round(_WIDTH * bar.part))
            yield f"    {bar.label:>{wide}}  {block} {bar.words}"


def charts_of(profile: TableProfile, table: Table) -> Iterator[Chart]:
    """What a profile says of a table, in pictures: units by size, and rows by value."""
    if profile.allowed != 1:
        yield Chart("units by rows", tuple(_size_bars(profile.rows, 1.0)))
    for column, largest, sizes in profile.sums:
        yield Chart(f"units by sum of the sizes of {column}", tuple(_size_bars(sizes, largest)))
    for shares in profile.shares:
        if (of := table.column(shares.column)) is not None:
            yield Chart(f"share of rows by {shares.column}", tuple(_share_bars(shares, cells_of(of))))


def _size_bars(sizes: Sizes, unit: float) -> Iterator[Bar]:
    """Units by size, from the smallest bucket to the last one that was seen. unit: what a size of 1 is worth."""
    tail = sizes.tail
    numbers = [max(0.0, c) for c in sizes.counts[: tail.seen + 1]]
    most = max(numbers, default=0.0)
    first = next((j for j, n in enumerate(numbers) if n > 2 * sizes.sd), 0)
    for place in range(first, len(numbers)):
        edge = tail.edges[min(place, len(tail.edges) - 1)] * unit
        yield Bar(f"up to {edge:,.3g}", numbers[place] / most if most > 0 else 0.0, _count(numbers[place]))
    if tail.seen + 1 < len(sizes.counts) and tail.above[tail.seen] >= 1:
        yield Bar("more", 0.0, f"about {_count(tail.above[tail.seen])}")


def _share_bars(of: ColumnShares, cells: Cells) -> Iterator[Bar]:
    """The share of a unit's rows that have the values of a cell, on average, where it exceeds its noise."""
    units, most = max(sum(of.rows), 1.0), max(of.rows)
    for number, rows in enumerate(of.rows):
        if rows > 2 * of.sd:
            yield Bar(cells.words(number), rows / most, f"{100 * rows / units:.2g} %")


def _shares(tail: Tail, unit: float) -> str:
    """What most units have at most."""
    told = [f"{words} at most {_whole(tail_size(tail, tail.units / part) * unit)}" for part, words in _RANKS]
    return f"of units {', '.join(told)}"


def tail_size(tail: Tail, rank: float) -> float:
    """The size that about `rank` units exceed."""
    return float(tail.sizes_at(np.array([rank]))[0])


def _of_policy(tail: Tail, allowed: int, *, is_given: bool) -> str:
    """How many units have more rows than the policy counts, and how many rows those are."""
    above = float(np.interp(allowed, tail.edges, tail.above))
    ranks = np.geomspace(0.3, max(tail.units, 0.6), 200)
    sizes = tail.sizes_at(ranks)
    whole, lost = (float(np.trapezoid(np.maximum(sizes - b, 0.0), ranks)) for b in (0.0, float(allowed)))
    share = lost / whole if whole > 0 else 0.0
    what = f"max_rows_per_unit {allowed}" if is_given else f"{allowed} rows, as the policy gives no max_rows_per_unit"
    return (
        f"{what}: about {100 * above / tail.units:.2g} % of units have more,"
        f" with about {100 * share:.2g} % of the rows beyond it"
    )


def _whole(size: float) -> str:
    """A size for people: rounded up to three digits."""
    digits = min(2 - math.floor(math.log10(size)), 0) if size >= 1 else 3
    return f"{math.ceil(size * 10.0**digits) / 10.0**digits:,.{max(digits, 0)}f}"


def _count(number: float) -> str:
    digits = 3 - len(str(round(abs(number))))
    return f"{round(number, min(digits, 0)):,.0f}"
