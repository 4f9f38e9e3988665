"""How large are units, once conditions keep some of their rows?

Against numbers drawn from fixed streams of numpy's legacy generator, 40,000 units each.
"""

from __future__ import annotations

import numpy as np
import pytest

from proxy.plan.profile.kept import KeptShare
from proxy.plan.profile.thinning import chances, mean_size, thinned
from tests.unit.plan.test_profile import ROWS, counted

TAIL = counted(ROWS, sd=1e-3).tail
WORTH = 0.05


def of(share: float, stickiness: float) -> KeptShare:
    return KeptShare(share, share**2 + stickiness * share * (1.0 - share))


def drawn(share: float, stickiness: float) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """What is left of each unit's rows."""
    stream = np.random.RandomState(3)
    rows = np.array(ROWS, dtype=np.int64)
    if stickiness in (0.0, 1.0):
        chance = (
            np.full(len(rows), share) if not stickiness else (stream.random_sample(len(rows)) < share).astype(float)
        )
    else:
        most = 1.0 / stickiness - 1.0
        chance = stream.beta(share * most, (1.0 - share) * most, len(rows))
    return stream.binomial(rows, chance)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("stickiness", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_thinned_units_are_about_as_large_as_they_become(share: float, stickiness: float) -> None:
    left, found = drawn(share, stickiness), thinned(TAIL, of(share, stickiness))
    assert found.units == pytest.approx((left > 0).sum(), rel=0.25)
    for size in (1, 2, 5, 11, 32):
        true = int((left > size).sum())
        if true > 100:
            assert found.units_above(size) == pytest.approx(true, rel=0.45)


@pytest.mark.parametrize("share", [0.9, 0.3, 1e-6])
@pytest.mark.parametrize("stickiness", [0.0, 0.3, 1.0])
def test_no_condition_makes_units_larger(share: float, stickiness: float) -> None:
    found = thinned(TAIL, of(share, stickiness))
    assert all(a <= b for a, b in zip(found.above, TAIL.above, strict=True))
    assert list(found.above) == sorted(found.above, reverse=True)
    assert 0 < found.units <= TAIL.units


def test_without_conditions_nothing_changes() -> None:
    assert thinned(TAIL, KeptShare()) is TAIL


def test_sums_are_thinned_by_their_rows() -> None:
    sums = counted([n * WORTH for n in ROWS], 2.0**-12, sd=1e-3).tail
    worth = mean_size(sums, TAIL)
    assert worth == pytest.approx(WORTH, rel=0.1)
    found, left = thinned(sums, of(0.1, 0.2), worth), drawn(0.1, 0.2) * WORTH
    for size in (0.11, 0.26, 0.51):
        assert found.units_above(size) == pytest.approx((left > size).sum(), rel=0.5)
    larger = thinned(sums, of(0.1, 0.2), worth, 4.0)
    assert larger.units_above(0.51) > 1.5 * found.units_above(0.51), "rows that are kept may be larger than others"


@pytest.mark.parametrize("share", [0.999, 0.5, 0.03, 1e-9])
@pytest.mark.parametrize("stickiness", [0.0, 0.002, 0.3, 0.97, 1.0])
def test_kinds_of_units_keep_as_much_together_as_is_known(share: float, stickiness: float) -> None:
    chance, part = chances(share, stickiness)
    assert part.sum() == pytest.approx(1.0)
    assert float(chance @ part) == pytest.approx(share, rel=0.02)
    assert ((chance >= 0) & (chance <= 1)).all()
    second = share**2 + stickiness * share * (1 - share)
    if share > 1e-3:
        assert float((chance * chance) @ part) == pytest.approx(second, rel=0.1)


def test_where_nothing_is_known_of_sizes_a_row_is_worth_the_least() -> None:
    none = counted([], sd=1.0).tail
    assert mean_size(none, none) > 0
