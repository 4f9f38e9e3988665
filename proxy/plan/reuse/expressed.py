"""Which moments follow from others that were released, and how is an aggregate finished from those?

Linear combinations alone: a number of rows is that of those with a value and of those without one, a sum of values is
that of values centred elsewhere and the number of rows. Only moments of the very same rows, with the same clamps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from proxy.plan.vector.moments import HalfSum, Moment, QuarterSum, RowCount, ScaledSum, rows_of
from proxy.plan.vector.noise import sd_of
from proxy.plan.vector.recipes import Finish, Linear, Mean, substituted
from proxy.sql.algebra.nodes import TRUE, Scalar

_SAME = 1e-12  # of the size of what is compared: as equal as doubles can be
_UNCORRELATED = 1e-9  # the most that a correlation may be
_Rows = tuple[Scalar, frozenset[Scalar]]  # their condition, and what must be present of what may be missing


class NotExpressed(Exception):
    """A moment does not follow from those that are there."""


class Expressed:
    """What follows from some moments. sds: of the noise of each. may_be_null: whether a measure may be missing."""

    def __init__(
        self, moments: Sequence[Moment], sds: tuple[float, ...], may_be_null: Callable[[Scalar], bool]
    ) -> None:
        self._places: dict[Moment, int] = {}
        for place, moment in enumerate(moments):
            if moment not in self._places or sds[place] < sds[self._places[moment]]:
                self._places[moment] = place
        self._sds = sds
        self._may_be_null = may_be_null

    def finish(self, recipe: Finish, moments: Sequence[Moment]) -> Finish:
        """A recipe over `moments` as one over the moments that are there. Raises NotExpressed.

        An average whose number of rows has noise that is in its total as well is centred elsewhere.
        """
        found = self.near(recipe, moments)
        if isinstance(found, Mean) and not self._are_uncorrelated(found.number, found.total):
            return self._centred(found, _averaged(recipe, moments))
        return found

    def near(self, recipe: Finish, moments: Sequence[Moment]) -> Finish:
        """The same with an average centred as it was: what its noise is compared by. Raises NotExpressed."""
        return substituted(recipe, lambda form: self._combined(form, moments))

    def _combined(self, form: Linear, moments: Sequence[Moment]) -> Linear:
        found = Linear(())
        for index, coefficient in form.terms:
            found = found.plus(self._linear(moments[index]), coefficient)
        return found

    def _are_uncorrelated(self, left: Linear, right: Linear) -> bool:
        """Whether the noises of two forms are: those of different moments are independent."""
        ours, theirs = dict(left.terms), dict(right.terms)
        common = math.fsum(ours[i] * theirs[i] * self._sds[i] ** 2 for i in ours.keys() & theirs.keys())
        return abs(common) <= _UNCORRELATED * sd_of(left, self._sds) * sd_of(right, self._sds)

    def _centred(self, mean: Mean, measure: ScaledSum) -> Mean:
        """An average centred as a sum that is there. Raises NotExpressed."""
        for other, total in self._sums(measure):
            if self._are_uncorrelated(mean.number, total):
                lo, hi = mean.ends
                least, most = (lo - other.middle) / other.half, (hi - other.middle) / other.half
                return replace(mean, total=total, middle=other.middle, half=other.half, least=least, most=most)
        raise NotExpressed

    # --- moments ------------------------------------------------------------------------------------------

    def _linear(self, moment: Moment) -> Linear:
        if moment in self._places:
            return self._one(moment)
        match moment:
            case RowCount():
                return self._count(moment)
            case ScaledSum():
                return self._sum(moment)
            case HalfSum(scaled, sign):
                number = self._number((scaled.where, self._present(scaled)))
                return number.times(0.5).plus(self._sum(scaled), 0.5 * sign)
            case _:
                raise NotExpressed

    def _one(self, moment: Moment) -> Linear:
        return Linear(((self._places[moment], 1.0),))

    def _count(self, moment: RowCount) -> Linear:
        every = (moment.where, frozenset[Scalar]())
        if moment.absent:
            return self._number(every).plus(self._number((moment.where, _named(moment))), -1.0)
        return self._number((moment.where, _named(moment)))

    def _number(self, rows: _Rows) -> Linear:
        found = self._counted(rows)
        if found is not None:
            return found
        where, present = rows
        for moment in self._places:
            if not isinstance(moment, RowCount) or not moment.absent or moment.where != where:
                continue
            other = self._counted((where, _named(moment) if not present else frozenset()))
            if other is not None and (not present or _named(moment) == present):
                return other.plus(self._one(moment), -1.0 if present else 1.0)
        raise NotExpressed

    def _counted(self, rows: _Rows) -> Linear | None:
        """A number of rows that was counted, or divided among moments."""
        for moment in self._places:
            if isinstance(moment, RowCount) and not moment.absent and (moment.where, _named(moment)) == rows:
                return self._one(moment)
        for moment in self._places:
            if isinstance(moment, (HalfSum, QuarterSum)):
                parts = _parts(moment)
                if (moment.scaled.where, self._present(moment.scaled)) == rows and self._places.keys() >= set(parts):
                    return Linear(tuple((self._places[p], 1.0) for p in parts))
        return None

    def _sum(self, wanted: ScaledSum) -> Linear:
        """The sum of a measure, centred as is wanted."""
        for other, total in self._sums(wanted):
            moved = (other.middle - wanted.middle) / wanted.half
            found = total.times(other.half / wanted.half)
            if abs(moved) <= _SAME:
                return found
            return found.plus(self._number((wanted.where, self._present(wanted))), moved)
        raise NotExpressed

    def _sums(self, wanted: ScaledSum) -> list[tuple[ScaledSum, Linear]]:
        """Sums of a measure of the same rows within the same bounds."""
        found: list[tuple[ScaledSum, Linear]] = []
        for moment in self._places:
            if isinstance(moment, ScaledSum) and self._is_same(moment, wanted):
                found.append((moment, self._one(moment)))
            elif isinstance(moment, (HalfSum, QuarterSum)) and self._is_same(moment.scaled, wanted):
                parts = _parts(moment)
                if self._places.keys() >= set(parts):
                    terms = tuple((self._places[p], float(p.sign)) for p in parts if p.sign)
                    found.append((moment.scaled, Linear(terms)))
        return found

    def _is_same(self, one: ScaledSum, other: ScaledSum) -> bool:
        if (one.where, one.of, self._present(one)) != (other.where, other.of, self._present(other)):
            return False
        slack = _SAME * (one.half + other.half + abs(one.middle) + abs(other.middle))
        return all(abs(a - b) <= slack for a, b in zip(_ends(one), _ends(other), strict=True))

    def _present(self, scaled: ScaledSum) -> frozenset[Scalar]:
        return frozenset(s for s in (scaled.of, scaled.given) if s != TRUE and self._may_be_null(s))


def _averaged(recipe: Finish, moments: Sequence[Moment]) -> ScaledSum:
    """The sum that an average divides."""
    assert isinstance(recipe, Mean), "other recipes have no total"
    moment = moments[recipe.total.terms[0][0]]
    assert isinstance(moment, (ScaledSum, HalfSum, QuarterSum)), "a total is a sum of values"
    return rows_of(moment)


def _named(moment: RowCount) -> frozenset[Scalar]:
    return frozenset(s for s in (moment.of, moment.given) if s != TRUE)


def _parts(moment: HalfSum | QuarterSum) -> tuple[HalfSum | QuarterSum, ...]:
    """All that a row is divided among."""
    kind, signs = (HalfSum, (1, -1)) if isinstance(moment, HalfSum) else (QuarterSum, (1, -1, 0))
    return tuple(kind(moment.scaled, sign) for sign in signs)


def _ends(scaled: ScaledSum) -> tuple[float, float]:
    return scaled.middle + scaled.half * scaled.least, scaled.middle + scaled.half * scaled.most
