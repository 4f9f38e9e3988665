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
from proxy.plan.vector.recipes import Count, Linear, Mean, Response, Total
from proxy.release.figure import Figure
from proxy.release.solved import Solved

_NORMAL = half_width_95(Distribution.GAUSSIAN, 1.0)


def estimated_figures(recipe: Count | Total | Mean, of: Solved) -> list[Figure]:
    """The estimate of each group."""
    match recipe:
        case Count(form, response) | Total(form, _, response):
            return [_linear(form, response, of, place) for place in range(len(of.vectors))]
        case Mean():
            return [_mean(recipe, of, place) for place in range(len(of.vectors))]


def _read(form: Linear, vector: list[float]) -> float:
    return math.fsum(c * vector[i] for i, c in form.terms)


def _linear(form: Linear, response: Response, of: Solved, place: int) -> Figure:
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


def _widths(distribution: Distribution, whole: float, drawn: float) -> float:
    """How many standard deviations hold a sum of noise and of what was drawn, which is nearly normal. Of variances."""
    share = min(1.0, drawn / whole) if whole > 0.0 else 1.0
    return math.sqrt(share * _NORMAL**2 + (1.0 - share) * half_width_95(distribution, 1.0) ** 2)


def _covariance(recipe: Mean, sds: tuple[float, ...]) -> float:
    """Of the noises of total and number."""
    number = dict(recipe.number.terms)
    return math.fsum(c * number.get(i, 0.0) * sds[i] ** 2 for i, c in recipe.total.terms)
