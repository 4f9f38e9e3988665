"""How do totals of a release of grouping sets become the sums of their parts?

Post-processing: reads noisy numbers, kept keys and public facts alone. Sets are brought together that have the same
private keys, for each combination of those that more than one set shows: a hidden key tells nothing about a total, nor
a total about it. See docs/claims/grouping-sets.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from proxy.analysis.keys import PublicKey, key_identity
from proxy.dp.margins import MarginTable, agreed_sds, agreeing, settle
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.sets.sets import GroupingSet, SetsPlan
from proxy.plan.vector.moments import Moment
from proxy.plan.vector.recipes import Count, Total
from proxy.release.digits import last_digit, with_digits
from proxy.release.noisy import Check, NoisyCells

Places = NDArray[np.int64]  # of cells among those of a set: a row for each private part, a column for each public key
Parts = dict[tuple[object, ...], Places]


@dataclass(slots=True)
class Adjusted:
    """What is shown of a set in place of its own noisy moments, and the numbers that are final.

    sds: by moment, the noise of those that agree with other sets in every cell.
    """

    vectors: list[list[float]]
    sds: dict[int, float] = field(default_factory=dict)
    settled: dict[int, list[float | None]] = field(default_factory=dict)

    def agreed(self, plan: ReleasePlan) -> tuple[float, ...]:
        """The noise of each moment of the set's plan."""
        return tuple(self.sds.get(i, sd) for i, sd in enumerate(plan.sds))


@dataclass(frozen=True, slots=True)
class _Shared:
    """Sets that show the same private parts. places: of their cells, by the number of the set."""

    places: Mapping[int, Places]


def make_consistent(
    plan: SetsPlan,
    cells: list[NoisyCells],
    adjusted: list[Adjusted],
    *,
    nonnegative: bool,
    check: Check,
    is_rounded: bool = False,
) -> None:
    """Bring the moments of all sets together, then the whole numbers that are made of them.

    is_rounded: all counts and sums become multiples of the last digit that the least of their noises leaves.
    """
    for family in plan.families():
        moments = plan.additive(family)
        for shared in _shared(plan, family, cells):
            work = _Family(plan, shared, adjusted)
            for moment in moments:
                check()
                work.bring_together(moment)
            work.settle(frozenset(moments), nonnegative=nonnegative, check=check, is_rounded=is_rounded)


class _Family:
    """Some sets with the same private parts."""

    def __init__(self, plan: SetsPlan, shared: _Shared, adjusted: list[Adjusted]) -> None:
        self._sets = {n: plan.sets[n] for n in shared.places}
        self._shared = shared
        self._adjusted = adjusted

    def bring_together(self, moment: Moment) -> None:
        """Least squares over one moment of all sets."""
        index = {n: s.plan.vector.moments.index(moment) for n, s in self._sets.items()}
        tables = {s.public: self._table(n, [v[index[n]] for v in self._adjusted[n].vectors])
                  for n, s in self._sets.items()}  # fmt: skip
        sds = {s.public: s.plan.sds[index[n]] for n, s in self._sets.items()}
        found, agreed = agreeing(tables, sds), agreed_sds(tables, sds)
        for number, one in self._sets.items():
            places, vectors = self._shared.places[number], self._adjusted[number].vectors
            for place, value in zip(places.flat, found[one.public].flat, strict=True):
                vectors[place][index[number]] = float(value)
            if places.size == len(vectors):
                self._adjusted[number].sds[index[number]] = agreed[one.public]

    def settle(self, moments: frozenset[Moment], *, nonnegative: bool, check: Check, is_rounded: bool) -> None:
        """Numbers that add up, whole or of one sign or both, for every count and sum of these moments."""
        one = next(iter(self._sets.values())).plan
        for place, (aggregate, recipe) in enumerate(
            zip(one.analysed.owned.block.aggregates, one.vector.finishes, strict=True)
        ):
            check()
            used = [i for i, _ in _terms(recipe)]
            sign = _sign(recipe) if nonnegative else 0
            is_whole = aggregate.type.is_integer
            if used and {one.vector.moments[i] for i in used} <= moments:
                last = self._last_digit(place) if is_rounded else None
                if is_whole:
                    last = min(last or 0, 0)
                if last is not None or sign:
                    self._settle(place, sign, last)

    def _last_digit(self, place: int) -> int | None:
        """That of the number with the least noise."""
        sds = [
            math.sqrt(math.fsum((c * self._adjusted[n].agreed(s.plan)[i]) ** 2 for i, c in _terms(recipe)))
            for n, s in self._sets.items()
            for recipe in (s.plan.vector.finishes[place],)
        ]
        return last_digit(min(sds))

    def _settle(self, place: int, sign: int, last: int | None) -> None:
        """last: the place of the last digit; None leaves all."""
        tables, turned, step = {}, -1.0 if sign < 0 else 1.0, 1.0 if last is None else 10.0**-last
        for number, one in self._sets.items():
            terms = _terms(one.plan.vector.finishes[place])
            values = [turned * sum(c * v[i] for i, c in terms) / step for v in self._adjusted[number].vectors]
            tables[one.public] = self._table(number, values)
        found = settle(tables, nonnegative=sign != 0, whole=last is not None)
        if found is None:
            return
        for number, one in self._sets.items():
            settled = self._adjusted[number].settled.setdefault(place, [None] * len(self._adjusted[number].vectors))
            for at, value in zip(self._shared.places[number].flat, found[one.public].flat, strict=True):
                settled[at] = with_digits(turned * float(value) * step, last) + 0.0

    def _table(self, number: int, values: list[float]) -> MarginTable:
        places = self._shared.places[number]
        return np.array(values, dtype=np.float64)[places].reshape(len(places), *_sizes(self._sets[number]))


def _terms(recipe: object) -> tuple[tuple[int, float], ...]:
    """Of what is one linear form; nothing for other recipes."""
    match recipe:
        case Count(number):
            return number.terms
        case Total(value):
            return value.terms
        case _:
            return ()


def _sign(recipe: object) -> int:
    """The sign that every part of what is counted or added up has; 0 where both are possible."""
    match recipe:
        case Count():
            return 1
        case Total(sign=sign):
            return sign
        case _:
            return 0


# --- which cells belong together --------------------------------------------------------------------------------


def _shared(plan: SetsPlan, family: tuple[int, ...], cells: list[NoisyCells]) -> Iterator[_Shared]:
    """Private parts by the sets that show them."""
    parts = {n: _parts(plan.sets[n], cells[n]) for n in family}
    showing: dict[tuple[int, ...], list[tuple[object, ...]]] = {}
    for part in dict.fromkeys(part for found in parts.values() for part in found):
        showing.setdefault(tuple(n for n in family if part in parts[n]), []).append(part)
    for numbers, shown in ((n, s) for n, s in showing.items() if len(n) > 1):
        yield _Shared({n: np.stack([parts[n][part] for part in shown]) for n in numbers})


def _parts(one: GroupingSet, cells: NoisyCells) -> Parts:
    """Where the cells of each private part stand, in the order of the public product."""
    keys = one.plan.analysed.keys
    listed = [{key_identity(v): i for i, v in enumerate(k.values)} if isinstance(k, PublicKey) else None for k in keys]
    sizes = _sizes(one)
    found: Parts = {}
    for number, cell in enumerate(cells.cells):
        private, at = list[object](), 0
        for value, places in zip(cell.key, listed, strict=True):
            if places is None:
                private.append(key_identity(value))
            else:
                at = at * len(places) + places[key_identity(value)]
        part = tuple(private)
        if part not in found:
            found[part] = np.zeros(int(np.prod(sizes, dtype=np.int64)), dtype=np.int64)
        found[part][at] = number
    return found


def _sizes(one: GroupingSet) -> tuple[int, ...]:
    return tuple(len(k.values) for k in one.plan.analysed.keys if isinstance(k, PublicKey))
