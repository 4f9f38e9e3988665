"""Which joint vector of moments answers a block's aggregates?

Equal moments are released once. Every row moment has absolute value at most 1; a unit count is 1 per
cell. See docs/claims/bounding.md and docs/claims/joint-moments.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from proxy.plan.vector.recipes import Finish, moved
from proxy.sql.algebra.canonical import in_order
from proxy.sql.algebra.nodes import TRUE, Call, Scalar, conjunction, conjuncts
from proxy.sqltypes import SqlType


@dataclass(frozen=True, slots=True)
class RowCount:
    """n: rows that pass `where` and for which `of` is present (TRUE: any row) or, if `absent`, missing.

    given: another measure; then both must be present or, if `absent`, not both.
    """

    where: Scalar
    of: Scalar
    absent: bool = False
    given: Scalar = TRUE


@dataclass(frozen=True, slots=True)
class ScaledSum:
    """s: sum of z = (x - middle)/half, clamped to [least, most], over rows that pass `where` and have x.

    least, most: -1 and 1, or closer where x is not centred. given: another measure that the rows must have.
    """

    where: Scalar
    of: Scalar
    middle: float
    half: float
    least: float = -1.0
    most: float = 1.0
    given: Scalar = TRUE


@dataclass(frozen=True, slots=True)
class HalfSum:
    """(n + s)/2 or (n - s)/2: the pair that pure accounting releases instead of (n, s)."""

    scaled: ScaledSum
    sign: int


@dataclass(frozen=True, slots=True)
class QuarterSum:
    """Sum of (1+z)^2/4, (1-z)^2/4 or, for sign 0, (1-z^2)/2: what pure accounting releases instead of (n, s, q).

    For one row the three are never negative and add up to 1.
    """

    scaled: ScaledSum
    sign: int


@dataclass(frozen=True, slots=True)
class SquareSum:
    """q: sum of 2 z^2 - 1, the square centred like the measure itself; z^2 alone would pay for its middle."""

    scaled: ScaledSum


@dataclass(frozen=True, slots=True)
class ProductSum:
    """Sum of z*w of two measures over rows that pass their condition and have both. left and right in fixed order."""

    left: ScaledSum
    right: ScaledSum


@dataclass(frozen=True, slots=True)
class UnitCount:
    """1 per cell if any of its rows passes `where`. per_part: once per private part of the key."""

    where: Scalar
    per_part: bool = False


@dataclass(frozen=True, slots=True)
class UnitTotal:
    """The sum of `scaled` over a unit's rows in one group, clipped to [least, most]; all in units of 2^-30.

    Bounds a unit's sum directly, whatever number of rows it has: they are not scaled with their number.
    """

    scaled: ScaledSum
    least: int
    most: int


RowSum = ScaledSum | HalfSum | QuarterSum | SquareSum | ProductSum  # of numbers that a row's measures give
Moment = RowCount | RowSum | UnitCount | UnitTotal
ROW_UNITS = 2**30  # integer units of a row moment


def is_linear(moment: Moment) -> bool:
    """Whether the moment is a sum over rows, scaled with the rows of its cell."""
    return not isinstance(moment, (UnitCount, UnitTotal))


def size_in_cell(moment: Moment, rows: int) -> float:
    """The largest absolute value that the moment has in one cell of at most `rows` rows, C, after r."""
    match moment:
        case UnitCount():
            return 1.0
        case UnitTotal(least=least, most=most):
            return max(abs(least), abs(most)) / ROW_UNITS
        case _:
            return float(rows)


def is_further_part(moment: Moment) -> bool:
    """Whether the moment is one of several that a row divides 1 among, and not the first: it adds no weight."""
    return isinstance(moment, (HalfSum, QuarterSum)) and moment.sign < 1


def rows_of(moment: RowSum) -> ScaledSum:
    """A measure whose rows are those of the moment."""
    match moment:
        case ScaledSum():
            return moment
        case HalfSum(scaled) | QuarterSum(scaled) | SquareSum(scaled):
            return scaled
        case ProductSum(left):
            return left
        case _ as never:
            assert_never(never)


def measures_of(moment: Moment) -> tuple[ScaledSum, ...]:
    """The measures whose values the moment reads."""
    match moment:
        case RowCount() | UnitCount():
            return ()
        case UnitTotal(scaled):
            return (scaled,)
        case ProductSum(left, right):
            return (left, right)
        case ScaledSum() | HalfSum() | QuarterSum() | SquareSum():
            return (rows_of(moment),)
        case _ as never:
            assert_never(never)


def condition_of(moment: RowCount | RowSum) -> Scalar:
    """The condition under which a row contributes to the moment, for telling moments apart.

    A measure is missing under another rule than `IS NULL`: a test sees NULL outside the declared domain
    where a measure is clamped, and infinity where a measure has nothing. So the two are never compared.
    """
    rows = moment if isinstance(moment, RowCount) else rows_of(moment)
    present = tuple(s for s in in_order((rows.of, rows.given)) if s != TRUE)
    is_absent = isinstance(rows, RowCount) and rows.absent
    return conjunction((*conjuncts(rows.where), *_presence(present, is_absent)))


def row_conditions(moments: tuple[Moment, ...]) -> dict[int, Scalar]:
    """Under which condition a row weighs something in each moment that is a sum over rows; by its number.

    |(1+z)/2| + |(1-z)/2| = 1: the pair weighs as one, and so do the three of a square.
    """
    return {
        i: condition_of(m) for i, m in enumerate(moments)
        if not isinstance(m, (UnitCount, UnitTotal)) and not is_further_part(m)
    }  # fmt: skip


def _presence(of: tuple[Scalar, ...], absent: bool) -> tuple[Scalar, ...]:
    """Of several measures `missing` means that not all are there; all being there, none is missing alone."""
    if not of:
        return ()
    missing = Call("has no measure", of, SqlType.BOOL)
    if absent:
        return (missing,)
    alone = tuple(Call("has no measure", (m,), SqlType.BOOL) for m in of) if len(of) > 1 else ()
    return tuple(Call("not", (m,), SqlType.BOOL) for m in (missing, *alone))


@dataclass(frozen=True, slots=True)
class MomentVector:
    """Distinct moments in canonical order and one recipe for each aggregate of the block."""

    moments: tuple[Moment, ...]
    finishes: tuple[Finish, ...]


def sorted_vector(vector: MomentVector) -> MomentVector:
    """The same vector in an order that does not depend on the order of the select list."""
    if len(vector.moments) < 2:
        return vector
    order = sorted(range(len(vector.moments)), key=lambda i: repr(vector.moments[i]))
    place = {old: new for new, old in enumerate(order)}
    return MomentVector(tuple(vector.moments[i] for i in order), tuple(moved(f, place) for f in vector.finishes))
