"""How is each aggregate finished from the moments of a release?

Recipes name moments by number; they hold public numbers only. What is done with them: `plan.formulas`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from proxy.analysis.own_noise import NO_NOISE, OwnNoise


@dataclass(frozen=True, slots=True)
class Linear:
    """A value that is a fixed linear combination of moments: ((index, coefficient), ...)."""

    terms: tuple[tuple[int, float], ...]

    def plus(self, other: Linear, factor: float = 1.0) -> Linear:
        """The sum with `factor` times another, each moment named once."""
        terms = dict(self.terms)
        for index, coefficient in other.terms:
            terms[index] = terms.get(index, 0.0) + factor * coefficient
        return Linear(tuple((i, c) for i, c in terms.items() if c != 0.0))

    def times(self, factor: float) -> Linear:
        return Linear(tuple((i, c * factor) for i, c in self.terms))


NOTHING = Linear(())


@dataclass(frozen=True, slots=True)
class Variance:
    """A variance over the randomization of stored values: that of `second` with squared weights, less `first`."""

    second: Linear
    first: Linear


@dataclass(frozen=True, slots=True)
class ResponseError:
    """How far an estimate is from the truth because values were randomized before they were stored.

    parts: its variance is the sum of part k times the k-th power of the ratio, of an average; none: it is no estimate.
    row_sd: the most that one row adds to its standard deviation.
    """

    parts: tuple[Variance, ...] = ()
    row_sd: float = 0.0

    def repeated(self, times: int) -> ResponseError:
        """The same where one stored value stands in so many rows, which are then off together."""
        parts = tuple(Variance(p.second.times(times), p.first.times(times)) for p in self.parts)
        return ResponseError(parts, self.row_sd * math.sqrt(times))


NO_RESPONSE = ResponseError()


@dataclass(frozen=True, slots=True)
class Count:
    """A count: rounded, and non-negative where it goes straight to the client and is no estimate."""

    number: Linear
    response: ResponseError = NO_RESPONSE


@dataclass(frozen=True, slots=True)
class Total:
    """A sum. sign: 1 if its values are never negative, -1 if they are never positive, 0 if both can be.

    Finished with that sign where it goes straight to the client.
    """

    value: Linear
    sign: int = 0
    response: ResponseError = NO_RESPONSE


@dataclass(frozen=True, slots=True)
class Mean:
    """middle + half * total/number, clamped to its ends. least, most: of total/number."""

    number: Linear
    total: Linear
    middle: float
    half: float
    least: float = -1.0
    most: float = 1.0
    response: ResponseError = NO_RESPONSE

    @property
    def ends(self) -> tuple[float, float]:
        """Of all values."""
        return self.middle + self.half * self.least, self.middle + self.half * self.most


@dataclass(frozen=True, slots=True)
class Measured:
    """A measure x with z = (x - middle)/half: the sums of z and, where they are needed, of z*z over its rows."""

    total: Linear
    squares: Linear
    middle: float
    half: float


class SpreadKind(enum.Enum):
    """What is wanted of the squares about the mean: their sum, the variance, or its root."""

    SQUARES = "squares"
    VARIANCE = "variance"
    DEVIATION = "deviation"


class SpreadOf(enum.Enum):
    """What a variance is of, where rows count with weights: two constants, more of them, or a measure."""

    TWO = "two"
    CONSTANTS = "constants"
    VALUES = "values"


@dataclass(frozen=True, slots=True)
class Spread:
    """Variance of one measure. is_sample: divided by n - 1 instead of n.

    own: the noise that each z had before it was stored. of: what rows with weights are of, and with it which parts
    `response` has: of two values those of their average, of constants and of values those that `release.estimates`
    reads.
    """

    kind: SpreadKind
    number: Linear
    measured: Measured
    is_sample: bool
    own: OwnNoise = NO_NOISE
    of: SpreadOf = SpreadOf.VALUES
    response: ResponseError = NO_RESPONSE


class RelationKind(enum.Enum):
    """What is wanted of two measures y and x."""

    PRODUCTS = "products"
    COVARIANCE = "covariance"
    CORRELATION = "correlation"
    SLOPE = "slope"
    INTERCEPT = "intercept"
    DETERMINATION = "determination"


@dataclass(frozen=True, slots=True)
class Relation:
    """How two measures go together over the rows that have both. products: sum of their z. is_sample: as in Spread."""

    kind: RelationKind
    number: Linear
    y: Measured
    x: Measured
    products: Linear
    is_sample: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """bool_or, true where some rows are `holding`; needs_all: bool_and, true where none are `failing`."""

    holding: Linear
    failing: Linear
    needs_all: bool

    @property
    def deciding(self) -> Linear:
        """The number of rows of which one is enough."""
        return self.failing if self.needs_all else self.holding


@dataclass(frozen=True, slots=True)
class Apart:
    """Computed apart from the moments: what stands at `place` in the results of the release's part `part`."""

    part: int
    place: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """A quantile or a mode: the cell or the value that stands at `place` in the results of the release's part `part`.

    number: of its rows.
    """

    part: int
    place: int
    number: Linear


Computed = Mean | Spread | Relation | Verdict  # from several linear forms, not as one of them
Finish = Count | Total | Computed | Apart | Ranked


def response_of(finish: Finish) -> ResponseError:
    """What the randomization of stored values adds to the error of an answer."""
    return finish.response if isinstance(finish, (Count, Total, Mean, Spread)) else NO_RESPONSE


def linear_parts(finish: Computed) -> Iterator[Linear]:
    """Every linear form that a recipe reads."""
    match finish:
        case Mean(number=number, total=total):
            yield from (number, total)
        case Spread(number=number, measured=measured):
            yield from (number, measured.total, measured.squares)
        case Relation(number=number, y=y, x=x, products=products):
            yield from (number, y.total, y.squares, x.total, x.squares, products)
        case Verdict(holding, failing):
            yield from (holding, failing)
        case _ as never:
            assert_never(never)


def moved(finish: Finish, place: Mapping[int, int]) -> Finish:
    """The recipe after moments were renumbered; terms of moments that became one are added."""

    def move(linear: Linear) -> Linear:
        terms: dict[int, float] = {}
        for index, coefficient in linear.terms:
            terms[place[index]] = terms.get(place[index], 0.0) + coefficient
        return Linear(tuple(sorted(terms.items())))

    return substituted(finish, move)


def substituted(finish: Finish, move: Callable[[Linear], Linear]) -> Finish:
    """The recipe with other linear forms in the place of its own."""

    def measure(of: Measured) -> Measured:
        return Measured(move(of.total), move(of.squares), of.middle, of.half)

    def respond(of: ResponseError) -> ResponseError:
        return replace(of, parts=tuple(Variance(move(p.second), move(p.first)) for p in of.parts))

    match finish:
        case Count(number, response):
            return Count(move(number), respond(response))
        case Total(value, sign, response):
            return Total(move(value), sign, respond(response))
        case Mean(number=number, total=total, response=response):
            return replace(finish, number=move(number), total=move(total), response=respond(response))
        case Spread(number=number, measured=measured, response=response):
            return replace(finish, number=move(number), measured=measure(measured), response=respond(response))
        case Relation(kind, number, y, x, products, is_sample):
            return Relation(kind, move(number), measure(y), measure(x), move(products), is_sample)
        case Verdict(holding, failing, needs_all):
            return Verdict(move(holding), move(failing), needs_all)
        case Ranked(part, at, number):
            return Ranked(part, at, move(number))
        case Apart():
            return finish
        case _ as never:
            assert_never(never)
