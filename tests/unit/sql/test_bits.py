"""Bits of integers lie where they are said to lie."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import combinations_with_replacement, product

import pytest

from proxy.policy.model import Bounded, Unknown
from proxy.sql.functions import decimals
from proxy.sql.functions.domains import bits as bit_rules
from proxy.sql.functions.domains.intervals import number_range
from proxy.sql.functions.domains.rules import Argument, DomainRule

_ENDS = tuple(combinations_with_replacement((-9, -8, -1, 0, 1, 3, 4, 7, 8, 10), 2))


@pytest.mark.parametrize(
    ("rule", "compute"),
    [
        (bit_rules.common, decimals.common_bits), (bit_rules.either, decimals.any_bits),
        (bit_rules.either, decimals.other_bits),
    ],
)  # fmt: skip
def test_bounds_hold_whatever_the_numbers_are(
    rule: DomainRule, compute: Callable[[tuple[Decimal, ...]], Decimal]
) -> None:
    for (a, b), (c, d) in product(_ENDS, repeat=2):
        ends = number_range(rule((Argument(Bounded(a, b)), Argument(Bounded(c, d)))))
        numbers = product(map(Decimal, range(a, b + 1)), map(Decimal, range(c, d + 1)))
        found = [int(compute(pair)) for pair in numbers]
        assert ends is None or (ends[0] <= min(found) and max(found) <= ends[1]), (a, b, c, d)


@pytest.mark.parametrize("places", range(5))
def test_shifted_bounds_are_those_of_the_ends(places: int) -> None:
    by = Argument(Bounded(places, places), is_constant=True)
    for a, b in _ENDS:
        found = [int(decimals.shifted_bits((Decimal(x), Decimal(places)))) for x in range(a, b + 1)]
        assert number_range(bit_rules.shifted((Argument(Bounded(a, b)), by))) == (min(found), max(found))


def test_nothing_is_known_of_numbers_without_bounds() -> None:
    unknown, few = Argument(Unknown()), Argument(Bounded(0, 5))
    assert bit_rules.common((unknown, few)) == Bounded(0, 5)
    assert bit_rules.either((unknown, few)) == Unknown()
    assert bit_rules.shifted((unknown, few)) == Unknown()
