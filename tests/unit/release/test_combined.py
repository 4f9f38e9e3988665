"""Do intervals of arithmetic with several aggregates hold, and where is nothing said?"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest

from proxy.plan.parts.distinct import DistinctPart
from proxy.release.finish import finish
from proxy.release.noisy import NoisyCell, NoisyCells
from tests.unit.release.answered import Asked, answers
from tests.unit.release.make import planned
from tests.unit.release.test_spreads import LINE, truth

FEW = LINE[:3000:50]
Of = Callable[[str], float]
#: SQL, and the same of exact numbers
FORMULAS: dict[str, Callable[[Of], float]] = {
    "sum(age) + sum(height)": lambda of: of("sum(age)") + of("sum(height)"),
    "sum(height) - 2.5 * sum(age)": lambda of: of("sum(height)") - 2.5 * of("sum(age)"),
    "count(*) - (-(count(*)))": lambda of: 2 * of("count(*)"),
    "sum(height) / count(*)": lambda of: of("avg(height)"),
    "100.0 * sum(age) / sum(height)": lambda of: 100 * of("sum(age)") / of("sum(height)"),
    "(sum(age)::numeric / nullif(count(*), 0)) * 7": lambda of: 7 * of("avg(age)"),
    "avg(height) - avg(age)": lambda of: of("avg(height)") - of("avg(age)"),
    "avg(height) / avg(age)": lambda of: of("avg(height)") / of("avg(age)"),
    "avg(height) * count(*)": lambda of: of("sum(height)"),
    "stddev_pop(age) / avg(age)": lambda of: of("stddev_pop(age)") / of("avg(age)"),
    "var_pop(age) + 1": lambda of: of("var_pop(age)") + 1,
}


def exact_of(aggregate: str, rows: Sequence[dict[str, float]]) -> float:
    match aggregate:
        case "sum(age)":
            return math.fsum(r["age"] for r in rows)
        case "avg(height)":
            return truth("sum(height)", rows) / len(rows)
        case _:
            return truth(aggregate, rows)


def held(formula: str, rows: Sequence[dict[str, float]], runs: int) -> float:
    """How often the interval holds the exact number; one without ends does."""
    rng = random.Random(formula)
    exact = FORMULAS[formula](lambda aggregate: exact_of(aggregate, rows))
    query = Asked((f"hush.low({formula})", f"hush.high({formula})"), rows)
    found = 0
    for _ in range(runs):
        low, high = query.answer(rng)
        found += float(low or -math.inf) <= exact <= float(high or math.inf)
    return found / runs


@pytest.mark.parametrize("formula", FORMULAS)
def test_intervals_of_formulas_hold(formula: str) -> None:
    """At 95 %, fewer than 0.85 of 420 runs or all of them hold in less than 1e-9 of all seeds; this one is fixed."""
    assert 0.85 <= held(formula, LINE, 420) < 1.0


@pytest.mark.long
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize(("rows", "most"), [(LINE, 0.97), (FEW, 1.0)])
def test_intervals_of_formulas_hold_as_often_as_they_say(
    formula: str, rows: Sequence[dict[str, float]], most: float
) -> None:
    """Among few rows some are cut, or nothing is said. 2,000 runs leave the band once in 20,000 times."""
    assert 0.93 <= held(formula, rows, 2_000) <= most


@pytest.mark.parametrize("over", ["sum(age)", "-(sum(age) - 10000 * count(*))", "sum(age) - 10000 * count(*)"])
def test_a_quotient_of_whole_numbers_has_the_interval_of_the_uncut_one_cut_off(over: str) -> None:
    """The ends of the uncut one are rounded outwards."""
    cut, whole = (
        [float(str(n)) for n in answers([f"hush.{f}(({over}) / {seven})" for f in ("low", "high", "sd")], LINE)]
        for seven in ("7", "7.0")
    )
    assert cut[2] == whole[2]
    for end, uncut in zip(cut[:2], whole[:2], strict=True):
        assert end == math.trunc(end)
        assert abs(uncut) - 2 < abs(end) < abs(uncut) + 1


def test_a_formula_of_one_aggregate_has_its_interval() -> None:
    for aggregate in ("count(*)", "sum(height)", "avg(age)", "var_samp(age)", "regr_slope(height, age)"):
        same = answers([f"hush.{f}({aggregate})" for f in ("low", "high", "sd")], LINE)
        again = answers([f"hush.{f}({aggregate} * 1)" for f in ("low", "high", "sd")], LINE)
        assert [float(str(v)) for v in again] == pytest.approx([float(str(v)) for v in same], rel=1e-3), aggregate


def test_noises_of_one_number_cancel() -> None:
    low, high, sd = answers([f"hush.{f}(sum(height) - sum(height))" for f in ("low", "high", "sd")], LINE)
    assert (float(str(low)), float(str(high)), float(str(sd))) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "formula",
    [
        "1.0 / count(*) FILTER (WHERE age > 90)",
        "1.5 * stddev_pop(age)",
        "2 * corr(height, age)",
        "1 / (avg(age) - avg(age))",
    ],
)
def test_nothing_is_said_where_noise_is_divided_by(formula: str) -> None:
    assert answers([f"hush.{f}({formula})" for f in ("low", "high", "sd")], LINE[:1]) == [None] * 3


def test_what_is_counted_apart_has_noise_of_its_own() -> None:
    plan, bound = planned("select hush.sd(count(DISTINCT city) - count(*)), hush.sd(count(DISTINCT city)),"
                          " hush.sd(count(*)), hush.low(count(DISTINCT city) - count(*)) from users")  # fmt: skip
    (part,) = plan.parts
    assert isinstance(part, DistinctPart)
    cell = NoisyCell((), (round(400 / plan.units_per_grid[0]),), ((round(9 * part.scale),),))
    release = finish(plan, NoisyCells((cell,)), bound.columns, nonnegative=True, time_zone="UTC")
    both, apart, rows, low = (float(str(c.values[0])) for c in release.columns)
    assert both == pytest.approx(math.hypot(apart, rows))
    assert low == pytest.approx(-391 - 1.96 * both, abs=0.1)
