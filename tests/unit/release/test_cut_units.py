"""Do the two numbers of units leave with their noise, and is what is said of them true as often as it is claimed?"""

from __future__ import annotations

import math

import pytest

from proxy.dp.accuracy import half_width_95
from proxy.dp.mechanisms import Distribution
from proxy.dp.samplers import NoisePool
from proxy.plan.sets.sets import SetsPlan
from proxy.release.cut_units import CutShare, cut_share, cut_words, share_of
from proxy.release.noisy import NoisyCell, NoisyCells, NoisyCut, publish
from proxy.release.raw import RawResult
from proxy.release.sets import publish_plan
from tests.unit.plan.shop import any_plan, context, plan
from tests.unit.release.make import Counted, Scripted

TELLING = context(tell_cut=True)
COUNT = "select count(*) from orders"


def rows(keys: int, moments: int, cut: int, whole: int) -> list[tuple[object, ...]]:
    """What an engine says of units."""
    rest = (None,) * (moments - 1)
    return [(2, *(None,) * keys, cut, *rest), (3, *(None,) * keys, whole, *rest)]


def test_both_numbers_get_noise_of_their_own_behind_the_cells() -> None:
    of, noise = plan(COUNT, TELLING), Counted()
    cells = publish(of, RawResult(2, ((0, 7), *rows(0, 1, 100, 200))), noise)
    assert cells.cells == (NoisyCell((), (8,)),)
    assert cells.cut == (NoisyCut(0, 102, 203),)
    assert noise.taken == [1, 2, 3]


def test_what_is_said_of_units_is_no_cell_and_no_key() -> None:
    of = plan("select store_id, count(*) from orders group by 1", TELLING)
    cells = publish(of, RawResult(4, tuple(rows(1, 2, 2**70, 2**70))), Scripted([]))
    assert cells.cells == ()
    assert cells.cut == (NoisyCut(0, 2**70, 2**70),)


def test_without_the_numbers_nothing_is_published() -> None:
    with pytest.raises(KeyError):
        publish(plan(COUNT, TELLING), RawResult(2, ((0, 7),)), Scripted([]))


def test_stored_releases_keep_them_and_older_ones_are_read() -> None:
    cells = NoisyCells((NoisyCell(("x",), (1, -2)),), (NoisyCut(0, -3, 2**90), NoisyCut(4, 5, 6)))
    assert NoisyCells.of_payload(cells.payload()) == cells
    without = NoisyCells(cells.cells)
    assert without.payload() == b'[[[["s","x"]],[1,-2]]]'
    assert NoisyCells.of_payload(without.payload()) == without


def test_each_set_that_counts_has_its_number() -> None:
    of = any_plan("select status, store_id, count(*) from orders group by cube(status, store_id)", TELLING)
    assert isinstance(of, SetsPlan)
    sizes = [(len(p.analysed.keys), len(p.vector.moments)) for p in of.plans if p.cut_weight]
    results = iter(sizes)

    def run(stage: int, _: object) -> RawResult:
        one = of.plans[stage]
        return RawResult(0, tuple(rows(*next(results), stage, 2**80)) if one.cut_weight else ())

    cells = publish_plan(of, run, Scripted([]))
    assert [(c.number, c.cut) for c in cells.cut] == [(n, n) for n, p in enumerate(of.plans) if p.cut_weight]
    assert NoisyCells.of_payload(cells.payload()) == cells
    assert cut_share(of, cells) is not None


def test_the_set_in_which_most_are_cut_is_told() -> None:
    of = any_plan("select status, store_id, count(*) from orders group by cube(status, store_id)", TELLING)
    assert isinstance(of, SetsPlan)
    unit = round(of.plans[2].scale * of.plans[2].cut_weight)
    cells = NoisyCells((), (NoisyCut(0, 10 * unit, 90_000 * unit), NoisyCut(2, 50_000 * unit, 50_000 * unit)))
    found = cut_share(of, cells)
    assert found is not None
    assert found.share == pytest.approx(0.5)
    assert cut_share(of, NoisyCells(())) is None


# --- what is said -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cut", "whole", "words"),
    [(2842, 7158, "about 28 % of customers have rows left out (27 to 30 %)"),
     (310, 9690, "about 3.1 % of customers have rows left out (2.1 to 4.1 %)"),
     (20, 9980, "less than 1.2 % of customers have rows left out"),
     (-60, 10_060, "less than 1 % of customers have rows left out"),
     (60, 9940, "less than 1.6 % of customers have rows left out"),
     (9990, 10, "nearly all customers have rows left out"),
     (100, 60, "about 62 % of customers have rows left out (3.1 to 100 %)"),
     (40, 30, "too few customers to tell how many have rows left out"),
     (-400, 40, "too few customers to tell how many have rows left out")],
)  # fmt: skip
def test_words(cut: float, whole: float, words: str) -> None:
    """The noise is 50 units, 95 % of it within 98."""
    assert cut_words(share_of(cut, whole, 98.0), "customer") == words


def test_little_is_not_worth_a_notice() -> None:
    assert not share_of(-60, 10_060, 98.0).is_worth_saying
    assert share_of(60, 9940, 98.0).is_worth_saying
    assert share_of(0, 0, 98.0) == CutShare(0.0, 0.0, 1.0)


@pytest.mark.statistical
@pytest.mark.parametrize(("pure", "cut"), [(False, 0.284), (False, 0.0), (False, 0.9), (True, 0.284), (True, 0.0)])
def test_the_law_of_the_numbers_and_of_the_interval(cut: float, *, pure: bool) -> None:
    """3,000 releases, 20,000 units. Means: 5 sd, false alarm 6e-7 each; the variance: 6 sd of its own; the interval
    holds the truth in 95 of 100 or more: below 2,790 once in 10^6 if it is 95 of 100.
    """
    of, draws, units = plan(COUNT, context(pure=pure, tell_cut=True)), 3_000, 20_000
    each = math.floor(of.cut_weight * of.scale)
    exact = RawResult(2, ((0, 0), *rows(0, 1, round(cut * units) * each, round((1 - cut) * units) * each)))
    noise = NoisePool(of.distribution, batches_ahead=1)
    found, held = [], 0
    for _ in range(draws):
        cells = publish(of, exact, noise)
        found.append((cells.cut[0].cut / each, cells.cut[0].whole / each))
        share = cut_share(of, cells)
        assert share is not None
        held += share.least <= cut <= share.most
    kurtosis = 6.0 if pure else 3.0
    for values, true in zip(zip(*found, strict=True), (round(cut * units), units - round(cut * units)), strict=True):
        errors = [v - true for v in values]
        assert abs(math.fsum(errors) / draws) < 5 * of.cut_sd / math.sqrt(draws)
        variance = math.fsum(e * e for e in errors) / draws
        assert abs(variance / of.cut_sd**2 - 1) < 6 * math.sqrt((kurtosis - 1) / draws)
    assert held >= 2_790
    assert (of.distribution is Distribution.LAPLACE) is pure


def test_the_interval_is_of_the_noise_of_the_plan() -> None:
    of = plan(COUNT, TELLING)
    unit = of.scale * of.cut_weight
    cells = NoisyCells((), (NoisyCut(0, round(3000 * unit), round(7000 * unit)),))
    found = cut_share(of, cells)
    expected = share_of(3000.0, 7000.0, half_width_95(of.distribution, of.cut_sd))
    assert found is not None
    assert (found.share, found.least) == pytest.approx((expected.share, expected.least))
