"""By which weights are the stored values of a randomized column turned into estimates of the true ones?

A channel keeps a true value x with probability `stays` and gives each other value with the same probability. The weight
of a row with the stored value y for the true value x is `on[x]` where y is x and `off[x]` elsewhere: its mean over the
randomization is 1 for rows whose true value is x, and 0 for all others. See docs/claims/local-answers.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from proxy.analysis.evaluate import MISSING, Choice
from proxy.policy.model import Column, Listed
from proxy.policy.response import KeptOrUniform, TwoCoins
from proxy.sql.algebra.nodes import Block, ColumnRef, Scalar, columns_of
from proxy.sqltypes import SqlType


@dataclass(frozen=True, slots=True)
class ResponseChannel:
    """One column whose values were drawn anew before they were stored. values: all, NULL included if it is one.

    stays: of each true value, the probability that it is stored as it is.
    """

    column: ColumnRef
    values: tuple[Choice, ...]
    stays: tuple[float, ...]
    on: tuple[float, ...]
    off: tuple[float, ...]

    def weight(self, stored: int, wanted: frozenset[int]) -> float:
        """Of a row with this stored value, in the number of rows whose true value is one of `wanted`."""
        return sum(self.on[x] if x == stored else self.off[x] for x in wanted)

    def chance(self, stored: frozenset[int], true: int) -> float:
        """The probability that this true value is stored as one of these."""
        others = (1.0 - self.stays[true]) / (len(self.values) - 1)
        return sum(self.stays[true] if y == true else others for y in stored)

    @property
    def growth(self) -> float:
        """How many times the noise of one value's number the noise of an estimate is, at most."""
        others = len(self.values) - 1
        return max(math.sqrt(on * on + others * off * off) for on, off in zip(self.on, self.off, strict=True))


def channel_of(reference: ColumnRef, column: Column) -> ResponseChannel | None:
    """The channel of a column; None where it has none: it is stored as it was, or noise was added to numbers."""
    values = _values(column)
    match column.randomized:
        case KeptOrUniform() as response:
            p, q = float(response.p), float(response.q)
            here, elsewhere = (1.0 - q) / (p - q), -q / (p - q)
            many = len(values)
            return ResponseChannel(reference, values, (p,) * many, (here,) * many, (elsewhere,) * many)
        case TwoCoins() as response:
            p, q = float(response.p), float(response.q)
            yes, no = ((1.0 - q) / (p - q), -q / (p - q)), (p / (p - q), (p - 1.0) / (p - q))
            told = True if column.type is SqlType.BOOL else values[0]  # by the policy, the first of two values is yes
            of = [yes if v == told else no for v in values]
            stays = tuple(p if v == told else 1.0 - q for v in values)
            return ResponseChannel(reference, values, stays, tuple(on for on, _ in of), tuple(off for _, off in of))
        case _:
            return None


def _values(column: Column) -> tuple[Choice, ...]:
    listed: tuple[Choice, ...] = (False, True) if column.type is SqlType.BOOL else ()
    if isinstance(column.domain, Listed):
        listed = column.domain.values
    return (*listed, MISSING) if column.nullable else listed


def randomized_in(scalar: Scalar, block: Block) -> tuple[ColumnRef, ...]:
    """The randomized columns that a scalar reads, always in the same order."""
    found = (c for c in columns_of(scalar) if column_of(c, block).is_randomized)
    return tuple(sorted(found, key=lambda c: (c.scan, c.name)))


def column_of(reference: ColumnRef, block: Block) -> Column:
    """The policy's column behind a reference of the block."""
    column = block.scan(reference.scan).table.column(reference.name)
    assert column is not None, "the binder made a reference to a column that the policy lacks"
    return column
