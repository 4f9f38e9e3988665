"""What do the second moments of one or two measures say about their spread and relation?

Formulas alone, over numbers with their noise; when a value is shown is decided where it is finished. A measure x is
middle + half * z. Used with noisy numbers for answers, and with public ones for what EXPLAIN tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from proxy.dp.estimate import Estimate
from proxy.plan.vector.recipes import Linear, Measured, Relation, RelationKind, Spread, SpreadKind

# From a linear form and its value in one row of values spread evenly and independently between their bounds.
LinearReader = Callable[[Linear, float], Estimate]
_EVEN = 1.0 / 3.0  # the mean square of numbers spread evenly over [-1, 1]


@dataclass(frozen=True, slots=True)
class Squares:
    """n, and the sum of squared distances of z from its mean."""

    number: Estimate
    about_mean: Estimate


@dataclass(frozen=True, slots=True)
class Related:
    """n, the sums of both z, and their squares and products about the means."""

    number: Estimate
    y: Estimate
    x: Estimate
    yy: Estimate
    xx: Estimate
    yx: Estimate


def squares_of(recipe: Spread, read: LinearReader) -> Squares:
    """Without what noise that values had before they were stored adds to them: (n - 1) times its variance."""
    number, total = read(recipe.number, 1.0), read(recipe.measured.total, 0.0)
    stored = _about_means(number, total, total, read(recipe.measured.squares, _EVEN))
    return Squares(number, stored.plus(number.plus_constant(-1.0), -recipe.own.variance))


def related(recipe: Relation, read: LinearReader) -> Related:
    """The first and second moments of two measures about their means."""
    number, y, x = read(recipe.number, 1.0), read(recipe.y.total, 0.0), read(recipe.x.total, 0.0)
    return Related(
        number=number,
        y=y,
        x=x,
        yy=_about_means(number, y, y, read(recipe.y.squares, _EVEN)),
        xx=_about_means(number, x, x, read(recipe.x.squares, _EVEN)),
        yx=_about_means(number, y, x, read(recipe.products, 0.0)),
    )


def _about_means(number: Estimate, first: Estimate, second: Estimate, products: Estimate) -> Estimate:
    """The sum of products of distances from the means."""
    return products.plus(first.times(second).over(number), -1.0)


def _per_row(value: Estimate, number: Estimate, *, is_sample: bool) -> Estimate:
    """A sum divided by the number of rows, of a sample by one less."""
    return value.over(number.plus_constant(-1.0) if is_sample else number)


def spread(recipe: Spread, of: Squares, *, is_sample: bool) -> Estimate:
    """The sum of squares or the variance; a deviation is the root of the latter."""
    area = recipe.measured.half * recipe.measured.half
    if recipe.kind is SpreadKind.SQUARES:
        return of.about_mean.scaled(area)
    return _per_row(of.about_mean, of.number, is_sample=is_sample).scaled(area)


def divisors(kind: RelationKind, of: Related) -> tuple[Estimate, ...]:
    """What must be positive for the relation to be defined."""
    match kind:
        case RelationKind.CORRELATION | RelationKind.DETERMINATION:
            return (of.yy, of.xx)
        case RelationKind.SLOPE | RelationKind.INTERCEPT:
            return (of.xx,)
        case RelationKind.PRODUCTS | RelationKind.COVARIANCE:
            return ()
        case _ as never:
            assert_never(never)


def relation(recipe: Relation, of: Related, *, is_sample: bool) -> Estimate:
    """The relation; a determination is the square of the correlation, which is given for it."""
    y, x = recipe.y, recipe.x
    match recipe.kind:
        case RelationKind.PRODUCTS:
            return of.yx.scaled(y.half * x.half)
        case RelationKind.COVARIANCE:
            return _per_row(of.yx, of.number, is_sample=is_sample).scaled(y.half * x.half)
        case RelationKind.CORRELATION | RelationKind.DETERMINATION:
            return of.yx.over(of.yy.root().times(of.xx.root()))
        case RelationKind.SLOPE:
            return _slope(of, y, x)
        case RelationKind.INTERCEPT:
            mean_y, mean_x = _mean(of.y, of, y), _mean(of.x, of, x)
            return mean_y.plus(_slope(of, y, x).times(mean_x), -1.0)
        case _ as never:
            assert_never(never)


def _slope(of: Related, y: Measured, x: Measured) -> Estimate:
    return of.yx.over(of.xx).scaled(y.half / x.half)


def _mean(total: Estimate, of: Related, measured: Measured) -> Estimate:
    return total.over(of.number).scaled(measured.half).plus_constant(measured.middle)


def sd_over_even_values(recipe: Spread | Relation, sds: tuple[float, ...]) -> float:
    """The noise of one row's share, times the number of rows (sums: the noise itself), to first order.

    For values spread evenly and independently between their bounds. sds: of the moments.
    """

    def read(form: Linear, value: float) -> Estimate:
        coefficients = dict(form.terms)
        return Estimate(value, tuple(coefficients.get(i, 0.0) for i in range(len(sds))))

    if isinstance(recipe, Spread):
        found = spread(recipe, squares_of(recipe, read), is_sample=False)
        is_root = recipe.kind is SpreadKind.DEVIATION and found.value > 0
        return (found.root() if is_root else found).sd(sds)
    if 0.0 in (recipe.y.half, recipe.x.half):
        return 0.0
    steepest = 2.0 if recipe.kind is RelationKind.DETERMINATION else 1.0  # of a square, where the correlation is 1
    return steepest * relation(recipe, related(recipe, read), is_sample=False).sd(sds)
