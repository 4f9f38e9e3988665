"""Which joint vector of moments answers a block's aggregates, and how is each finished from it?

Equal moments are released once. Every row moment has absolute value at most 1; a unit count is 1 per
cell. See docs/claims/bounding.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from proxy.analysis.analyse import Analysed, measure_bounds
from proxy.sql.algebra import TRUE, Aggregate, AggregateKind, Call, Scalar, conjunction, conjuncts
from proxy.sqltypes import SqlType


@dataclass(frozen=True, slots=True)
class RowCount:
    """n: rows that pass `where` and for which `of` is present (TRUE: any row) or, if `absent`, missing."""

    where: Scalar
    of: Scalar
    absent: bool = False


@dataclass(frozen=True, slots=True)
class ScaledSum:
    """s: sum of (x - middle)/half, clamped to [least, most], over rows that pass `where` and have x.

    least, most: -1 and 1, or closer where x is not centred.
    """

    where: Scalar
    of: Scalar
    middle: float
    half: float
    least: float = -1.0
    most: float = 1.0


@dataclass(frozen=True, slots=True)
class HalfSum:
    """(n + s)/2 or (n - s)/2: the pair that pure accounting releases instead of (n, s)."""

    scaled: ScaledSum
    sign: int


@dataclass(frozen=True, slots=True)
class UnitCount:
    """1 per cell if any of its rows passes `where`. per_part: once per private part of the key."""

    where: Scalar
    per_part: bool = False


Moment = RowCount | ScaledSum | HalfSum | UnitCount


def is_linear(moment: Moment) -> bool:
    """Whether the moment is a sum over rows, scaled with the rows of its cell."""
    return not isinstance(moment, UnitCount)


def condition_of(moment: RowCount | ScaledSum | HalfSum) -> Scalar:
    """The condition under which a row contributes to the moment, for telling moments apart.

    A measure is missing under another rule than `IS NULL`: a test sees NULL outside the declared domain
    where a measure is clamped, and infinity where a measure has nothing. So the two are never compared.
    """
    match moment:
        case RowCount(where, of, absent):
            return conjunction((*conjuncts(where), *_presence(of, absent)))
        case ScaledSum(where, of):
            return conjunction((*conjuncts(where), *_presence(of, False)))
        case HalfSum(scaled):
            return condition_of(scaled)
        case _ as never:
            assert_never(never)


def _presence(of: Scalar, absent: bool) -> tuple[Scalar, ...]:
    if of == TRUE:
        return ()
    missing = Call("has no measure", (of,), SqlType.BOOL)
    return (missing,) if absent else (Call("not", (missing,), SqlType.BOOL),)


# --- finishing ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Linear:
    """A value that is a fixed linear combination of moments: ((index, coefficient), ...)."""

    terms: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Count:
    """A count: rounded, and non-negative where it goes straight to the client."""

    number: Linear


@dataclass(frozen=True, slots=True)
class Total:
    """A sum, between count*lo and count*hi only in truth; finished as it is."""

    value: Linear


@dataclass(frozen=True, slots=True)
class Mean:
    """middle + half * total/number, clamped to [lo, hi]."""

    number: Linear
    total: Linear
    middle: float
    half: float


Finish = Count | Total | Mean


@dataclass(frozen=True, slots=True)
class MomentVector:
    """Distinct moments in canonical order and one recipe for each aggregate of the block."""

    moments: tuple[Moment, ...]
    finishes: tuple[Finish, ...]


def moments_of(analysed: Analysed, *, pure: bool) -> MomentVector:
    """The joint vector of a block. Raises MissingBounds."""
    return _Vector(analysed, pure).build()


def sorted_vector(vector: MomentVector) -> MomentVector:
    """The same vector in an order that does not depend on the order of the select list."""
    order = sorted(range(len(vector.moments)), key=lambda i: repr(vector.moments[i]))
    place = {old: new for new, old in enumerate(order)}
    return MomentVector(tuple(vector.moments[i] for i in order), tuple(moved(f, place) for f in vector.finishes))


def moved(finish: Finish, place: Mapping[int, int]) -> Finish:
    """The recipe after moments were renumbered; terms of moments that became one are added."""

    def move(linear: Linear) -> Linear:
        terms: dict[int, float] = {}
        for index, coefficient in linear.terms:
            terms[place[index]] = terms.get(place[index], 0.0) + coefficient
        return Linear(tuple(sorted(terms.items())))

    match finish:
        case Count(number):
            return Count(move(number))
        case Total(value):
            return Total(move(value))
        case Mean(number, total, middle, half):
            return Mean(move(number), move(total), middle, half)
        case _ as never:
            assert_never(never)


class _Vector:
    def __init__(self, analysed: Analysed, pure: bool) -> None:
        self._analysed = analysed
        self._pure = pure
        self._aggregates = analysed.owned.block.aggregates
        self._moments: dict[Moment, int] = {}

    def build(self) -> MomentVector:
        finishes = tuple(self._finish(a) for a in self._aggregates)
        if not self._moments:
            self._add(RowCount(TRUE, TRUE))
        return sorted_vector(MomentVector(tuple(self._moments), finishes))

    def _add(self, moment: Moment) -> int:
        return self._moments.setdefault(moment, len(self._moments))

    def _finish(self, aggregate: Aggregate) -> Finish:
        match aggregate.kind:
            case AggregateKind.COUNT_UNITS:
                return Count(Linear(((self._add(UnitCount(aggregate.where)), 1.0),)))
            case AggregateKind.COUNT_ROWS | AggregateKind.COUNT:
                return Count(self._number(aggregate.where, self._counted(aggregate)))
            case AggregateKind.SUM:
                return self._sum(aggregate)
            case AggregateKind.AVG:
                lo, hi = measure_bounds(aggregate.argument, self._analysed, aggregate.where)
                middle, half = _centre(lo, hi)
                number, total = self._centred(aggregate, middle, half)
                return Mean(number, total, middle, half)
            case _ as never:
                assert_never(never)

    def _counted(self, aggregate: Aggregate) -> Scalar:
        """What must be present for a row to count: TRUE when it always is."""
        return aggregate.argument if self._is_nullable(aggregate.argument) else TRUE

    def _is_nullable(self, scalar: Scalar) -> bool:
        return scalar != TRUE and self._analysed.domains.may_be_null(scalar)

    def _number(self, where: Scalar, of: Scalar) -> Linear:
        """A count, from (n_x, n_null) where a nullable x is measured beside all rows."""
        pair = self._counting_pair(where)
        if self._pure and (half := self._half_pair(where, of)) is not None:
            return Linear(tuple((self._add(HalfSum(half, sign)), 1.0) for sign in (1, -1)))
        if of == TRUE and pair is not None:
            present = self._number(where, pair)
            return Linear((*present.terms, (self._add(RowCount(where, pair, absent=True)), 1.0)))
        return Linear(((self._add(RowCount(where, of)), 1.0),))

    def _counting_pair(self, where: Scalar) -> Scalar | None:
        """The one nullable argument counted or measured under `where` beside COUNT(*), if there is one."""
        same = [a for a in self._aggregates if a.where == where and a.kind is not AggregateKind.COUNT_UNITS]
        if not any(self._counted(a) == TRUE for a in same):
            return None
        nullable = {a.argument for a in same if self._is_nullable(a.argument)}
        return nullable.pop() if len(nullable) == 1 else None

    def _half_pair(self, where: Scalar, of: Scalar) -> ScaledSum | None:
        """In pure accounting: the measure whose pair already gives this count."""
        measured = [
            a for a in self._aggregates
            if a.where == where and a.kind in (AggregateKind.SUM, AggregateKind.AVG)
            and self._counted(a) == of and not self._is_alone(a)
        ]  # fmt: skip
        arguments = {a.argument for a in measured}
        if len(arguments) != 1:
            return None
        argument = arguments.pop()
        middle, half = _centre(*measure_bounds(argument, self._analysed, where))
        return ScaledSum(where, argument, middle, half) if half > 0 else None

    def _is_alone(self, aggregate: Aggregate) -> bool:
        """A SUM with no count or average of the same rows beside it."""
        if aggregate.kind is not AggregateKind.SUM:
            return False
        counted = self._counted(aggregate)
        pair = self._counting_pair(aggregate.where)
        for other in self._aggregates:
            if other.where != aggregate.where or other.kind is AggregateKind.COUNT_UNITS:
                continue
            shares = self._counted(other) == counted or (pair is not None and aggregate.argument == pair)
            if shares and other.kind is not AggregateKind.SUM:
                return False
        return True

    def _sum(self, aggregate: Aggregate) -> Finish:
        lo, hi = measure_bounds(aggregate.argument, self._analysed, aggregate.where)
        if self._is_alone(aggregate):
            largest = max(abs(lo), abs(hi))
            if largest == 0:
                return Total(Linear(()))
            index = self._add(ScaledSum(aggregate.where, aggregate.argument, 0.0, largest, lo / largest, hi / largest))
            return Total(Linear(((index, largest),)))
        middle, half = _centre(lo, hi)
        number, total = self._centred(aggregate, middle, half)
        terms = [(i, c * middle) for i, c in number.terms] + [(i, c * half) for i, c in total.terms]
        merged: dict[int, float] = {}
        for index, coefficient in terms:
            merged[index] = merged.get(index, 0.0) + coefficient
        return Total(Linear(tuple(merged.items())))

    def _centred(self, aggregate: Aggregate, middle: float, half: float) -> tuple[Linear, Linear]:
        """(n_x, s) of one measure, as linear forms over the released moments."""
        number = self._number(aggregate.where, self._counted(aggregate))
        if half == 0:
            return number, Linear(())
        scaled = ScaledSum(aggregate.where, aggregate.argument, middle, half)
        if self._pure and self._half_pair(aggregate.where, self._counted(aggregate)) == scaled:
            return number, Linear(tuple((self._add(HalfSum(scaled, sign)), float(sign)) for sign in (1, -1)))
        return number, Linear(((self._add(scaled), 1.0),))


def _centre(lo: float, hi: float) -> tuple[float, float]:
    return lo / 2 + hi / 2, (hi - lo) / 2
