"""What is one estimate over randomized values, and how far may it be from the truth?

Two sources of error are independent: the noise of the release, and what became of the values before they were stored,
whose variance is estimated from the released numbers. Estimates are shown as they are, below zero too: brought to zero
they would be too large on average. See docs/claims/local-answers.md.
"""

from __future__ import annotations

import math

from proxy.dp.accuracy import Noisy, half_width_95, ratio_interval
from proxy.dp.mechanisms import Distribution
from proxy.plan.vector.noise import sd_of
from proxy.plan.vector.recipes import Count, Linear, Mean, ResponseError, Spread, SpreadKind, SpreadOf, Total
from proxy.release.figure import Figure
from proxy.release.solved import Solved
from proxy.release.spreads import Drawn, FormReader, no_spread, root_of, rows_weight, spread_figure

_NORMAL = half_width_95(Distribution.GAUSSIAN, 1.0)


def estimated_figures(recipe: Count | Total | Mean | Spread, of: Solved) -> list[Figure]:
    """The estimate of each group."""
    match recipe:
        case Count(form, response) | Total(form, _, response):
            return [_linear(form, response, of, place) for place in range(len(of.vectors))]
        case Mean():
            return [_mean(recipe, of, place) for place in range(len(of.vectors))]
        case Spread():
            return [_spread(recipe, of, place) for place in range(len(of.vectors))]


def _read(form: Linear, vector: list[float]) -> float:
    return math.fsum(c * vector[i] for i, c in form.terms)


def _linear(form: Linear, response: ResponseError, of: Solved, place: int) -> Figure:
    value, noise = _read(form, of.vectors[place]), sd_of(form, of.plan.sds)
    drawn = math.sqrt(of.variance(response, place))
    reach = math.hypot(half_width_95(of.plan.distribution, noise), _NORMAL * drawn)
    return Figure(value + 0.0, math.hypot(noise, drawn), value - reach, value + reach)


def _mean(recipe: Mean, of: Solved, place: int) -> Figure:
    """NULL where the number of rows cannot be told from its errors, as for other averages."""
    (lo, hi), sds, vector = recipe.ends, of.plan.sds, of.vectors[place]
    number, total = _read(recipe.number, vector), _read(recipe.total, vector)
    of_total, crossed, of_number = of.parts(recipe.response, place)
    under = Noisy(number, math.hypot(sd_of(recipe.number, sds), math.sqrt(max(0.0, of_number))))
    if number < max(1.0, 2.0 * under.sd):
        return Figure(None, math.inf, lo, hi)
    ratio = total / number
    over = Noisy(total, math.hypot(sd_of(recipe.total, sds), math.sqrt(max(0.0, of_total))))
    covariance = _covariance(recipe, sds) - crossed / 2.0
    wide = (number * over.sd) ** 2 + (total * under.sd) ** 2 - 2.0 * total * number * covariance
    drawn = of_total + crossed * ratio + of_number * ratio * ratio
    widths = _widths(of.plan.distribution, max(0.0, wide) / number**2, max(0.0, drawn))
    interval = ratio_interval(over, under, covariance, max(0.0, wide), widths)
    shown = (recipe.middle + recipe.half * v for v in (ratio, interval.low, interval.high))
    value, low, high = (min(max(v, lo), hi) for v in shown)
    return Figure(value, recipe.half * math.sqrt(max(0.0, wide)) / number**2, low, high)


def _spread(recipe: Spread, of: Solved, place: int) -> Figure:
    if recipe.of is SpreadOf.TWO:
        return _spread_of_two(recipe, of, place)
    reader, vector = FormReader(recipe, of.plan), of.vectors[place]
    n, s, q = (_read(f, vector) for f in (recipe.number, recipe.measured.total, recipe.measured.squares))
    if n <= 0.0:
        return no_spread(recipe)
    mean = s / n
    square = max(0.0, q / n - mean * mean - recipe.own.variance)  # of z
    if recipe.of is SpreadOf.CONSTANTS:
        a, b, c = mean * mean - square, -2.0 * mean, 1.0  # (z - mean)^2 less the variance, by powers of z
        of_number, *_ = parts = of.parts(recipe.response, place)
        found = math.fsum(x * y for x, y in zip((a * a, a * b, a * c, b * b, b * c, c * c), parts, strict=True))
    else:
        found, of_number = _of_values(recipe, of, place, mean, square)
    area = recipe.measured.half**2
    drawn = Drawn(math.sqrt(max(0.0, of_number)), area * math.sqrt(max(0.0, found)) / n)
    return spread_figure(recipe, reader, vector, drawn)


def _of_values(recipe: Spread, of: Solved, place: int, mean: float, square: float) -> tuple[float, float]:
    """The variances of the sum of squares about the mean, and of the number of rows.

    A row with weight w, whose z was x before noise e, adds w (x + e - mean)^2. Its noise adds w^2 times the variance of
    that, its weight the variance of w times ((x - mean)^2 - square)^2, which is at most the largest such difference
    times (x - mean)^2 + square.
    """
    own, response = recipe.own, recipe.response
    seconds = [_read(p.second, of.squared[place]) for p in response.parts]
    firsts = [_read(p.first, of.vectors[place]) for p in response.parts]

    def about_mean(n: float, s: float, q: float) -> float:
        return q - 2.0 * mean * s + (mean * mean - own.variance) * n

    far, near = about_mean(*seconds), about_mean(*firsts)
    of_number = seconds[0] - firsts[0]
    largest = max((1.0 + abs(mean)) ** 2 - square, square)
    of_noise = max(0.0, 4.0 * own.variance * far + own.variance_of_square * seconds[0])
    return of_noise + max(0.0, largest * (far - near + square * of_number)), of_number


def _spread_of_two(recipe: Spread, of: Solved, place: int) -> Figure:
    """Of two values, brought to -1 and 1: 1 less the square of their average. It is as sure as that is."""
    number, area = _read(recipe.number, of.vectors[place]), recipe.measured.half**2
    mean = _mean(Mean(recipe.number, recipe.measured.total, 0.0, 1.0, response=recipe.response), of, place)
    if mean.value is None or (recipe.is_sample and number < 2.0):
        return no_spread(recipe)
    times = area * rows_weight(number, is_sum=False, is_sample=recipe.is_sample)
    squares = [end * end for end in (mean.low, mean.high)]
    least = 0.0 if mean.low <= 0.0 <= mean.high else min(squares)
    sd = mean.sd * math.hypot(2.0 * mean.value, math.sqrt(2.0) * mean.sd)  # as of any square of a noisy number
    found = Figure(times * (1.0 - mean.value**2), times * sd, times * (1.0 - max(squares)), times * (1.0 - least))
    return root_of(found) if recipe.kind is SpreadKind.DEVIATION else found


def _widths(distribution: Distribution, whole: float, drawn: float) -> float:
    """How many standard deviations hold a sum of noise and of what was drawn, which is nearly normal. Of variances."""
    share = min(1.0, drawn / whole) if whole > 0.0 else 1.0
    return math.sqrt(share * _NORMAL**2 + (1.0 - share) * half_width_95(distribution, 1.0) ** 2)


def _covariance(recipe: Mean, sds: tuple[float, ...]) -> float:
    """Of the noises of total and number."""
    number = dict(recipe.number.terms)
    return math.fsum(c * number.get(i, 0.0) * sds[i] ** 2 for i, c in recipe.total.terms)
