"""How large is the noise that a summed number had before it was stored?

Closed world: the number itself, or that and constants, added or multiplied, as `sql.measured` accepts it. See
docs/claims/local-answers.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from proxy.analysis.channels import column_of
from proxy.policy.response import GaussianNoise, LaplaceNoise
from proxy.sql.algebra.nodes import Block, Call, ColumnRef, Literal, Scalar, columns_of


@dataclass(frozen=True, slots=True)
class OwnNoise:
    """The noise of one value: its standard deviation, and that of its square."""

    sd: float
    sd_of_square: float

    @property
    def variance(self) -> float:
        return self.sd * self.sd

    @property
    def variance_of_square(self) -> float:
        return self.sd_of_square * self.sd_of_square

    def scaled(self, factor: float) -> OwnNoise:
        """That of a multiple."""
        return OwnNoise(self.sd * factor, self.sd_of_square * factor * factor)


NO_NOISE = OwnNoise(0.0, 0.0)


def own_noise(scalar: Scalar, block: Block) -> OwnNoise:
    """The noise of one value; none for what reads no column with noise of its own."""
    for reference in columns_of(scalar):
        mechanism = column_of(reference, block).randomized
        if isinstance(mechanism, (LaplaceNoise, GaussianNoise)):
            whole = OwnNoise(math.sqrt(mechanism.variance), math.sqrt(mechanism.variance_of_square))
            return whole.scaled(_size_of_slope(scalar))
    return NO_NOISE


def _size_of_slope(scalar: Scalar) -> float:
    """By how much the scalar moves where its column moves by 1. 0 for a quotient by 0, which has no value."""
    match scalar:
        case ColumnRef():
            return 1.0
        case Call("*", (Literal() as factor, inner)) | Call("*", (inner, Literal() as factor)):
            return _size(factor) * _size_of_slope(inner)
        case Call("/", (inner, Literal() as divisor)):
            size = _size(divisor)
            return _size_of_slope(inner) / size if size else 0.0
        case Call("+" | "-", (Literal(), inner)) | Call("+" | "-", (inner, Literal())):
            return _size_of_slope(inner)
        case _:
            raise AssertionError("a number with noise is summed by itself, or with constants")


def _size(constant: Literal) -> float:
    return abs(float(constant.value))  # type: ignore[arg-type]  # no number with noise is multiplied by anything else
