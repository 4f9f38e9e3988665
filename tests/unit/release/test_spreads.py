"""Are variances, relations and verdicts what statistics says they are, when are they NULL, and do intervals hold?"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from proxy.plan.release_plan import PlanContext
from proxy.release.finish import finish
from proxy.release.noisy import NoisyCell, NoisyCells
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import context
from tests.unit.release.answered import Asked, Row, answers
from tests.unit.release.make import planned

LINE = [{"age": float(20 + i % 60), "height": 100.0 + i % 60 + i * 7 % 40} for i in range(3000)]
FLAT = [{"age": 30.0, "height": 120.0 + i % 50} for i in range(3000)]
STILL = [{"age": 20.0 + i % 60, "height": 150.0} for i in range(3000)]


PRECISE = replace(context(), pico=10**16)
PRECISE_PURE = replace(context(pure=True), pico=10**15)


def answer(aggregate: str, rows: Sequence[Row], of: PlanContext | None = None) -> float:
    (text,) = answers((aggregate,), rows, of)
    assert text is not None
    return float(text)


def truth(aggregate: str, rows: Sequence[Row]) -> float:
    """By the standard library, or by definition."""
    y, x = [r["height"] for r in rows], [r["age"] for r in rows]
    n, mean_y, mean_x = len(rows), statistics.fmean(y), statistics.fmean(x)
    products = statistics.covariance(y, x) * (n - 1)
    return {
        "var_pop(age)": lambda: statistics.pvariance(x),
        "var_samp(age)": lambda: statistics.variance(x),
        "variance(height)": lambda: statistics.variance(y),
        "stddev_pop(age)": lambda: statistics.pstdev(x),
        "stddev_samp(age)": lambda: statistics.stdev(x),
        "stddev(height)": lambda: statistics.stdev(y),
        "covar_pop(height, age)": lambda: products / n,
        "covar_samp(height, age)": lambda: products / (n - 1),
        "corr(height, age)": lambda: statistics.correlation(y, x),
        "regr_slope(height, age)": lambda: statistics.linear_regression(x, y).slope,
        "regr_intercept(height, age)": lambda: statistics.linear_regression(x, y).intercept,
        "regr_r2(height, age)": lambda: statistics.correlation(y, x) ** 2,
        "regr_count(height, age)": lambda: float(n),
        "regr_avgx(height, age)": lambda: mean_x,
        "regr_avgy(height, age)": lambda: mean_y,
        "regr_sxx(height, age)": lambda: math.fsum((v - mean_x) ** 2 for v in x),
        "regr_syy(height, age)": lambda: math.fsum((v - mean_y) ** 2 for v in y),
        "regr_sxy(height, age)": lambda: products,
        "count(*)": lambda: float(n),
        "sum(height)": lambda: math.fsum(y),
        "avg(age)": lambda: mean_x,
    }[aggregate]()


AGGREGATES = (
    "var_pop(age)", "var_samp(age)", "variance(height)", "stddev_pop(age)", "stddev_samp(age)", "stddev(height)",
    "covar_pop(height, age)", "covar_samp(height, age)", "corr(height, age)", "regr_slope(height, age)",
    "regr_intercept(height, age)", "regr_r2(height, age)", "regr_count(height, age)", "regr_avgx(height, age)",
    "regr_avgy(height, age)", "regr_sxx(height, age)", "regr_syy(height, age)", "regr_sxy(height, age)",
)  # fmt: skip


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_moments_without_noise_give_the_statistic(aggregate: str, pure: bool) -> None:
    assert answer(aggregate, LINE, PRECISE_PURE if pure else PRECISE) == pytest.approx(truth(aggregate, LINE), rel=1e-4)


def test_one_release_of_all_gives_them_all() -> None:
    for aggregate, text in zip(AGGREGATES, answers(AGGREGATES, LINE, PRECISE), strict=True):
        assert float(text or "nan") == pytest.approx(truth(aggregate, LINE), rel=1e-3), aggregate


def test_a_measure_with_itself_is_wholly_related() -> None:
    for of in (PRECISE, PRECISE_PURE):
        assert answer("corr(age, age)", LINE, of) == pytest.approx(1)
        assert answer("regr_slope(age, age)", LINE, of) == pytest.approx(1)
        assert answer("regr_intercept(age, age)", LINE, of) == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(
    "aggregate",
    ["corr(height, age)", "regr_slope(height, age)", "regr_intercept(height, age)", "regr_r2(height, age)",
     "corr(height, 5)", "regr_slope(height, 5)"],
)  # fmt: skip
def test_a_relation_to_a_constant_is_null(aggregate: str) -> None:
    assert answers((aggregate,), FLAT) == [None]


def test_a_constant_has_no_variance_and_relates_to_nothing() -> None:
    assert answers(("corr(height, age)", "regr_r2(height, age)"), STILL) == [None, None]
    assert answer("regr_slope(height, age)", STILL) == pytest.approx(0, abs=1e-6)
    assert answer("variance(3)", LINE) == 0
    assert answer("regr_slope(5, age)", LINE) == 0
    assert answer("stddev(height)", STILL) == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("aggregate", [a for a in AGGREGATES if "count" not in a])
def test_too_few_rows_give_null(aggregate: str) -> None:
    assert answers((aggregate,), LINE[:5]) == [None]


def shown(aggregate: str, values: Mapping[str, float]) -> str | None:
    """The answer if the moments, by name of their class, have these values."""
    plan, bound = planned(f"select {aggregate} from users")
    names = [type(m).__name__ for m in plan.vector.moments]
    grid = tuple(round(values[n] / u) for n, u in zip(names, plan.units_per_grid, strict=True))
    release = finish(plan, NoisyCells((NoisyCell((), grid),)), bound.columns, nonnegative=True, time_zone="UTC")
    return release.columns[0].values[0]


def test_noise_does_not_lead_out_of_the_possible_range() -> None:
    many = {"RowCount": 1e4, "ScaledSum": 0.0, "SquareSum": 5e4, "ProductSum": 5e4}
    none = {"RowCount": 1e4, "ScaledSum": 0.0, "SquareSum": -5e4, "ProductSum": 0.0}
    assert shown("var_pop(height)", many) == str(125.0**2)
    assert shown("stddev_pop(height)", many) == "125.0"
    assert float(shown("var_samp(height)", many) or "nan") == pytest.approx(125**2 * 1e4 / (1e4 - 1))
    assert float(shown("regr_syy(height, 5)", many) or "nan") == pytest.approx(125**2 * 1e4)
    assert shown("var_pop(height)", none) == "0.0"
    assert shown("stddev_samp(height)", none) == "0.0"
    assert shown("corr(height, height * 2)", many) == "1.0"
    assert shown("regr_r2(height, height * 2)", many) == "1.0"
    assert shown("corr(height, -height)", {**many, "ProductSum": -5e4}) == "-1.0"
    assert shown("covar_pop(height, height * 2)", many) == str(125.0 * 250.0)
    assert float(shown("regr_sxy(height, height * 2)", many) or "nan") == pytest.approx(125.0 * 250.0 * 1e4)


def test_every_null_has_an_interval_of_all_that_is_possible() -> None:
    def ends(aggregate: str) -> list[str | None]:
        return answers((f"hush.low({aggregate})", f"hush.high({aggregate})", f"hush.sd({aggregate})"), LINE[:3])

    assert ends("var_pop(height)") == ["0.0", str(125.0**2), None]
    assert ends("var_samp(height)") == ["0.0", str(2 * 125.0**2), None]
    assert ends("stddev_pop(height)") == ["0.0", "125.0", None]
    assert ends("regr_syy(height, age)") == ["0.0", None, None]
    assert ends("regr_sxy(height, age)") == [None, None, None]
    assert ends("covar_samp(height, age)") == [str(-2 * 125.0 * 55.0), str(2 * 125.0 * 55.0), None]
    assert ends("corr(height, age)") == ["-1.0", "1.0", None]
    assert ends("regr_r2(height, age)") == ["0.0", "1.0", None]
    assert ends("regr_slope(height, age)") == [None, None, None]
    assert ends("bool_or(age > 3)") == [None, None, None]


INTERVALS = (*AGGREGATES, "count(*)", "sum(height)", "avg(age)")


@pytest.mark.parametrize("aggregate", INTERVALS)
@pytest.mark.parametrize(
    ("runs", "least", "most"), [(300, 0.90, 0.995), pytest.param(2_000, 0.93, 0.97, marks=pytest.mark.long)]
)
def test_intervals_hold_as_often_as_they_say(aggregate: str, runs: int, least: float, most: float) -> None:
    """At 95 %, 300 runs leave the first band once in 5,000 times, 2,000 the second once in 20,000; seeds are fixed."""
    rng = random.Random(aggregate)
    exact = truth(aggregate, LINE)
    held = asked = 0
    query = Asked((f"hush.low({aggregate})", f"hush.high({aggregate})"), LINE)
    for _ in range(runs):
        low, high = query.answer(rng)
        if low is not None and high is not None:
            asked += 1
            held += float(low) <= exact <= float(high)
    assert asked > runs / 2
    assert least <= held / asked <= most, held / asked


@pytest.mark.parametrize(
    ("runs", "least", "most"), [(2_000, 0.932, 0.968), pytest.param(40_000, 0.9465, 0.9545, marks=pytest.mark.long)]
)
def test_averages_under_laplace_noise_hold_as_often_as_they_say(runs: int, least: float, most: float) -> None:
    """At 95 %, 2,000 runs leave the first band once in 4,000 times, 40,000 the second once in 1,000; seeded."""
    aggregate, rng = "avg(age)", random.Random(4)
    exact = math.fsum(row["age"] for row in LINE) / len(LINE)
    query = Asked((f"hush.low({aggregate})", f"hush.high({aggregate})"), LINE, context(pure=True))
    found = [query.answer(rng) for _ in range(runs)]
    held = sum(float(low or "-inf") <= exact <= float(high or "inf") for low, high in found)
    assert least <= held / runs <= most, held / runs


@pytest.mark.parametrize(
    ("aggregate", "rows", "expected"),
    [
        ("bool_or(age > 50)", LINE, "t"),
        ("bool_or(age > 90)", LINE, "f"),
        ("bool_and(age > 10)", LINE, "t"),
        ("every(age > 50)", LINE, "f"),
        ("bool_and(age > -1)", LINE, "t"),
        ("bool_or(age > 50)", LINE[:3], None),
        ("every(age > 10)", [], None),
    ],
)
def test_conditions_of_all_rows_are_decided_by_noisy_counts(
    aggregate: str, rows: Sequence[Row], expected: str | None
) -> None:
    assert answers((aggregate,), rows) == [expected]


def test_a_few_rows_decide_nothing_beside_their_noise() -> None:
    rows = [*({"age": 20.0} for _ in range(3000)), {"age": 99.0}]
    assert answers(("bool_or(age > 90)",), rows, PRECISE) == ["t"]
    assert answers(("bool_or(age > 90)",), rows) == ["f"]


def test_types_are_those_of_postgresql() -> None:
    def kinds(aggregates: str, table: str = "users") -> list[SqlType]:
        return [c.type for c in planned(f"select {aggregates} from {table}")[1].columns]

    assert kinds("variance(age), stddev(age), variance(height), stddev(height)") == [
        SqlType.NUMERIC, SqlType.NUMERIC, SqlType.FLOAT8, SqlType.FLOAT8]  # fmt: skip
    assert kinds("stddev(amount), corr(amount, amount), regr_count(amount, amount)", "orders") == [
        SqlType.NUMERIC, SqlType.FLOAT8, SqlType.INT8]  # fmt: skip
    assert kinds("every(age > 5)") == [SqlType.BOOL]
