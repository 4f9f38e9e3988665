"""Are estimates over randomized columns right on average, and do their intervals hold as often as they say?

Draws are of whole answers: values are randomized anew, their moments get the noise of the plan, and the answer is
finished. Over 8,000 draws a coverage has a standard deviation of 0.24 %, so that one that is 95 % is outside of 94 to
96 % once in 25,000 checks, and a bias of a tenth of a standard deviation is 9 of its own. For groups, 2,000 draws and
93.4 to 96.6 % have one false alarm in 1,000. Seeds are fixed, so that a test that passed passes again. Each question is
asked in one setting here, and by `make fuzz` in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle, product

import numpy as np
import pytest

from proxy.analysis.evaluate import choices
from proxy.analysis.keys import NullKey
from proxy.dp.modes import elect
from proxy.dp.quantiles import ROW_WEIGHT
from proxy.plan.parts.modes import ModePart
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.sets.sets import plan_block
from proxy.plan.vector.moments import (
    HalfSum,
    Moment,
    QuarterSum,
    RowCount,
    SquareSum,
    UnitCount,
    UnitTotal,
    measures_of,
    rows_of,
)
from proxy.policy.model import Listed
from proxy.policy.response import KeptOrUniform, TwoCoins
from proxy.release.finish import finish
from proxy.release.noisy import NoisyCell, NoisyCells
from proxy.sql.algebra.nodes import Grouped, Scalar, columns_of, conjuncts
from proxy.sql.query.block import BoundBlock, Carries
from proxy.sql.relations.scope import Catalog
from proxy.sqltypes import Value
from tests.unit.plan.survey import LARGE, PEOPLE, SMALL, WITH_LOCAL, of_local, of_survey
from tests.unit.release.make import bound as bound_to
from tests.unit.release.make import planned_over

DRAWS = 8_000
BASE_SEED = 20_260
Row = Mapping[str, Value]
SIZES = (-10.0, 30.0)


def people() -> list[tuple[Row, int]]:
    """How many have which true values, which go together."""
    found: list[tuple[Row, int]] = []
    votes, towns = (0.4, 0.3, 0.2, 0.07, 0.03), [0.5**i for i in range(1, 5)]
    for ill, smokes, vote, town, size, plan in product((0, 1), (0, 1), range(5), range(4), (0, 1), (0, 1)):
        share = abs(1 - ill - (0.15 + 0.1 * plan)) * abs(1 - smokes - (0.2 + 0.4 * ill)) * votes[vote]
        share *= towns[town] * abs(1 - size - (0.3 + 0.3 * ill)) * 0.5
        row: Row = {"ill": bool(ill), "smokes": bool(smokes), "vote": SMALL[vote], "town": LARGE[town],
               "size": SIZES[size], "plan": ("free", "pro")[plan]}  # fmt: skip
        rows = round(5_000 * share)
        if rows:
            found.append((row, rows))
    return found


def chance(column: str, true: Value, stored: Value) -> float:
    """What becomes of a value, by the definition of each way to randomize."""
    match PEOPLE.column(column).randomized:  # type: ignore[union-attr]
        case TwoCoins(truth, yes):
            return float(truth) * (true == stored) + (1 - float(truth)) * (float(yes) if stored else 1 - float(yes))
        case KeptOrUniform(keep, size):
            return float(keep) * (true == stored) + (1 - float(keep)) / int(size)
        case _:
            return float(true == stored)


def domain(column: str) -> tuple[Value, ...]:
    if column == "size":
        return SIZES
    of = PEOPLE.column(column)
    assert of is not None
    assert isinstance(of.domain, Listed)
    return of.domain.values


def stored_rows(columns: list[str], draws: int, random: np.random.Generator) -> tuple[list[Row], np.ndarray]:
    """Rows by their stored values, and how many there are in each draw."""
    true: dict[tuple[Value, ...], int] = {}
    for row, rows in PEOPLE_ROWS:
        key = tuple(row[c] for c in columns)
        true[key] = true.get(key, 0) + rows
    stored = list(product(*map(domain, columns)))
    found = np.zeros((draws, len(stored)))
    for values, rows in true.items():
        chances = [math.prod(chance(*each) for each in zip(columns, values, s, strict=True)) for s in stored]
        found += random.multinomial(rows, np.array(chances) / math.fsum(chances), size=draws)
    return [dict(zip(columns, s, strict=True)) for s in stored], found


def read(plan: ReleasePlan) -> list[str]:
    """The columns that a plan reads."""
    scalars = [*plan.analysed.owned.block.keys]
    for moment in plan.vector.moments:
        scalars += [where_of(moment), *(m.of for m in measures_of(moment))]
    return sorted({c.name for s in scalars for c in columns_of(s)})


def where_of(moment: Moment) -> Scalar:
    assert not isinstance(moment, (UnitCount, UnitTotal))
    return moment.where if isinstance(moment, RowCount) else rows_of(moment).where


def added(moment: Moment, row: Row) -> float:
    """What one row adds to a moment."""
    if not all(passes(c, row) for c in conjuncts(where_of(moment))):
        return 0.0
    if isinstance(moment, RowCount):
        return 1.0
    (scaled,) = measures_of(moment)
    return of_measure(moment, (float(row["size"]) - scaled.middle) / scaled.half)  # type: ignore[arg-type]


def of_measure(moment: Moment, z: float) -> float:
    """What a row with this z adds to a moment of a measure."""
    match moment:
        case HalfSum(_, sign):
            return (1.0 + sign * z) / 2.0
        case SquareSum():
            return 2.0 * z * z - 1.0
        case QuarterSum(_, sign):
            return (1.0 + sign * z) ** 2 / 4.0 if sign else (1.0 - z * z) / 2.0
        case _:
            return z


def passes(condition: Scalar, row: Row) -> bool:
    return choices(condition, {c: row[c.name] for c in columns_of(condition)}) == (True,)


def answers(query: str, *, pure: bool = False, is_noisy: bool = True, draws: int = DRAWS) -> np.ndarray:
    """What is shown: of each draw and group, the number of each column."""
    plan, bound = planned_over(query, of_survey(pure=pure))
    shown = plan if is_noisy else replace(plan, agreed=(1e-9,) * len(plan.sds))
    return answers_of(plan, bound, shown, pure=pure, is_noisy=is_noisy, draws=draws)


def answers_of(
    plan: ReleasePlan, bound: BoundBlock, shown: ReleasePlan, *, pure: bool = False, is_noisy: bool = False,
    draws: int = DRAWS,
) -> np.ndarray:  # fmt: skip
    """The same of a plan. shown: as which the answer is finished."""
    random = np.random.default_rng(BASE_SEED)
    rows, counts = stored_rows(read(plan), draws, random)
    keys = [next(iter(columns_of(k))).name for k in plan.analysed.owned.block.keys]
    adds = np.array([[added(m, row) for m in plan.vector.moments] for row in rows])
    groups = [
        np.array([all(row[n] == v for n, v in zip(keys, key, strict=True)) for row in rows]) for key in plan.public_keys
    ]
    exact = np.stack([counts @ (adds * inside[:, None]) for inside in groups], axis=1)
    sds = np.array(plan.sds)
    noise = random.laplace(0.0, sds / math.sqrt(2.0), exact.shape) if pure else random.normal(0.0, sds, exact.shape)
    grid = np.rint((exact + noise * is_noisy) / np.array(plan.units_per_grid))
    columns = tuple(c for c in bound.columns if c.carries is not Carries.KEY)
    found = []
    for draw in [grid[:, 0]] if len(groups) == 1 else grid:  # groups of one draw are finished together
        names = plan.public_keys if len(groups) > 1 else [()] * draws
        cells = tuple(NoisyCell(k, tuple(map(int, m))) for k, m in zip(names, draw, strict=True))
        release = finish(shown, NoisyCells(cells), columns, nonnegative=True, time_zone="UTC")
        found.append([[float("nan" if v is None else v) for v in column.values] for column in release.columns])
    return np.swapaxes(np.array(found), 1, 2).reshape(draws, len(groups), len(columns))


PEOPLE_ROWS = tuple(people())


def number(*tests: str) -> float:
    """How many have these true values."""
    return sum(
        rows for row, rows in PEOPLE_ROWS if all(f"{n}={row[n]}" in tests for n in {t.split("=")[0] for t in tests})
    )


def mean_size(*tests: str) -> float:
    chosen = [(row["size"], rows) for row, rows in PEOPLE_ROWS
              if all(f"{n}={row[n]}" in tests for n in {t.split("=")[0] for t in tests})]  # fmt: skip
    return math.fsum(float(s) * n for s, n in chosen) / sum(n for _, n in chosen)  # type: ignore[arg-type]


def with_interval(aggregate: str) -> str:
    return f"{aggregate}, hush.low({aggregate}), hush.high({aggregate}), hush.sd({aggregate})"


def check(found: np.ndarray, truth: float, most: float) -> None:
    value, low, high, sd = found.T
    spread = value.std()
    held = ((low <= truth) & (truth <= high)).mean()
    assert abs(value.mean() - truth) < 0.1 * spread
    assert 0.94 <= held <= most
    assert 0.95 * spread < sd.mean() < (1.05 if most == 0.96 else 6.0) * spread


ALL = number()


def share(p: float) -> float:
    """The variance of what is 1 in so many rows, else 0."""
    return p * (1.0 - p)


#: Accounting and whether the release has noise.
SETTINGS = ((False, True), (True, True), (False, False), (True, False))
AGGREGATES: tuple[tuple[str, float, float], ...] = (
    ("count(*) filter (where ill)", number("ill=True"), 0.96),
    ("count(*) filter (where not ill and plan = 'pro')", number("ill=False", "plan=pro"), 0.96),
    ("count(*) filter (where smokes)", number("smokes=True"), 0.96),
    ("count(*) filter (where vote = 'a')", number("vote=a"), 0.96),
    ("count(*) filter (where vote in ('a', 'b'))", number("vote=a", "vote=b"), 0.96),
    ("count(*) filter (where town = 'v00')", number("town=v00"), 0.96),
    ("count(*) filter (where ill and smokes)", number("ill=True", "smokes=True"), 0.96),
    ("count(*) filter (where ill or smokes)", ALL - number("ill=False", "smokes=False"), 0.96),
    ("count(*) filter (where vote <> 'a' and not smokes)",
     number("smokes=False") - number("smokes=False", "vote=a"), 0.96),
    ("count(*) filter (where town = 'v01' and ill)", number("town=v01", "ill=True"), 0.96),
    ("avg(ill::int)", number("ill=True") / ALL, 0.96),
    ("avg(case when vote = 'a' then 3 when vote = 'b' then 1 else 0 end)",
     (3 * number("vote=a") + number("vote=b")) / ALL, 0.96),
    ("sum(case when smokes then 2 end)", 2 * number("smokes=True"), 0.96),
    ("avg(smokes::int) filter (where ill)", number("ill=True", "smokes=True") / number("ill=True"), 0.96),
    ("sum(size) filter (where smokes)", mean_size("smokes=True") * number("smokes=True"), 1.0),
    ("avg(size) filter (where smokes)", mean_size("smokes=True"), 0.96),
    ("avg(size) filter (where ill and smokes)", mean_size("ill=True", "smokes=True"), 0.96),
    ("count(*) filter (where vote = 'b' and town = 'v00')", number("vote=b", "town=v00"), 0.96),
    ("count(*) filter (where smokes and town = 'v02')", number("smokes=True", "town=v02"), 0.96),
    ("avg(ill::int) filter (where town = 'v00')", number("ill=True", "town=v00") / number("town=v00"), 0.96),
    ("var_pop(ill::int)", share(number("ill=True") / ALL), 0.96),
    ("stddev(case when vote = 'a' then 5 else 2 end)", 3 * math.sqrt(share(number("vote=a") / ALL)), 0.96),
    ("var_pop(case when vote = 'a' then 3 when vote = 'b' then 1 else 0 end)",
     (9 * number("vote=a") + number("vote=b")) / ALL - ((3 * number("vote=a") + number("vote=b")) / ALL) ** 2, 0.96),
)  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "aggregate", "truth", "most"), [(s, *a) for s, a in zip(cycle(SETTINGS), AGGREGATES)]
)
def test_estimates_are_right_on_average_and_their_intervals_hold(
    setting: tuple[bool, bool], aggregate: str, truth: float, most: float
) -> None:
    """8,000 draws; bias below a tenth of the standard deviation, coverage 94 to 96 %.

    Sums and variances of values take each square for the largest, so that their intervals may hold more often.
    """
    pure, is_noisy = setting
    check(answers(f"select {with_interval(aggregate)} from people", pure=pure, is_noisy=is_noisy)[:, 0], truth, most)


@pytest.mark.parametrize(("pure", "is_noisy"), SETTINGS)
def test_variances_of_values_are_right_on_average(pure: bool, is_noisy: bool) -> None:
    """8,000 draws. Sizes are at the ends of their bounds: many variances are above the largest that there can be."""
    truth = 1600 * share((mean_size("smokes=True") + 10) / 40)
    query = f"select {with_interval('var_pop(size) filter (where smokes)')} from people"
    check(answers(query, pure=pure, is_noisy=is_noisy)[:, 0], truth, 1.0)


@pytest.mark.long
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("aggregate", "truth", "most"), AGGREGATES)
def test_estimates_are_right_in_every_setting(
    setting: tuple[bool, bool], aggregate: str, truth: float, most: float
) -> None:
    """As above."""
    pure, is_noisy = setting
    check(answers(f"select {with_interval(aggregate)} from people", pure=pure, is_noisy=is_noisy)[:, 0], truth, most)


GROUPED: tuple[tuple[str, int, float], ...] = (
    (f"select ill, {with_interval('count(*)')} from people group by 1", 1, number("ill=True")),
    (f"select vote, {with_interval('count(*)')} from people group by 1", 0, number("vote=a")),
    (f"select town, {with_interval('count(*)')} from people group by 1", 0, number("town=v00")),
    (f"select vote, smokes, {with_interval('count(*)')} from people group by 1, 2", 1,
     number("vote=a", "smokes=True")),
    (f"select plan, smokes, {with_interval('count(*)')} from people where ill group by 1, 2", 3,
     number("plan=pro", "smokes=True", "ill=True")),
    (f"select vote, {with_interval('avg(size)')} from people group by 1", 0, mean_size("vote=a")),
    (f"select vote, {with_interval('avg(ill::int)')} from people group by 1", 1,
     number("vote=b", "ill=True") / number("vote=b")),
)  # fmt: skip


@pytest.mark.parametrize(("setting", "query", "place", "truth"), [(s, *g) for s, g in zip(cycle(SETTINGS), GROUPED)])
def test_groups_of_true_values_are_right_on_average(
    setting: tuple[bool, bool], query: str, place: int, truth: float
) -> None:
    """2,000 draws of whole answers, of which one group is looked at; coverage 93.4 to 96.6 %."""
    check_group(setting, query, place, truth)


@pytest.mark.long
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("query", "place", "truth"), GROUPED)
def test_groups_of_true_values_are_right_in_every_setting(
    setting: tuple[bool, bool], query: str, place: int, truth: float
) -> None:
    """As above."""
    check_group(setting, query, place, truth)


def check_group(setting: tuple[bool, bool], query: str, place: int, truth: float) -> None:
    pure, is_noisy = setting
    value, low, high, sd = answers(query, pure=pure, is_noisy=is_noisy, draws=2_000)[:, place].T
    assert abs(value.mean() - truth) < 0.1 * value.std()
    assert 0.934 <= ((low <= truth) & (truth <= high)).mean() <= 0.966
    assert sd.mean() == pytest.approx(value.std(), rel=0.1)


@pytest.mark.parametrize(("column", "best"), [("smokes", False), ("vote", "a"), ("town", "v00")])
def test_the_most_frequent_stored_value_is_the_true_one_on_average(column: str, best: Value) -> None:
    """Of 2, 5 and 50 values: numbers are apart by what the plan says of those of the true ones.

    8,000 draws; means within five standard deviations of theirs. A fair share of draws has another value in front where
    two are near, and none has here: the best leads by more than ten standard deviations.
    """
    plan, _ = planned_over(f"select mode() within group (order by {column}) from people", of_survey())
    (part,) = plan.parts
    assert isinstance(part, ModePart)
    rows, counts = stored_rows([column], DRAWS, np.random.default_rng(BASE_SEED))
    place = {row[column]: i for i, row in enumerate(rows)}
    true = {row[column]: number(f"{column}={row[column]}") for row in rows}
    for value in place:
        apart = counts[:, place[best]] - counts[:, place[value]]
        wanted = part.nearer * (true[best] - true[value])
        assert abs(apart.mean() - wanted) <= 5 * apart.std() / math.sqrt(DRAWS)
    weights = (
        counts[:200, [place[c] for c in part.candidates if not isinstance(c, NullKey)]].astype(np.int64) * ROW_WEIGHT
    )
    found = {part.candidates[elect(part.poll, w, lambda given, _: int(given.argmax()))] for w in weights}
    assert found == {best}


@pytest.mark.parametrize(
    ("query", "place", "truth", "most"),
    [
        (f"select {with_interval('count(*)')} from answers where ill", 0, number("ill=True"), 0.96),
        (f"select {with_interval('count(*)')} from answers where ill and smokes", 0,
         number("ill=True", "smokes=True"), 0.96),
        (f"select {with_interval('avg(ill::int)')} from answers", 0, number("ill=True") / ALL, 0.96),
        (f"select {with_interval('avg(size)')} from answers where smokes", 0, mean_size("smokes=True"), 0.96),
        (f"select {with_interval('sum(size)')} from answers where smokes", 0,
         mean_size("smokes=True") * number("smokes=True"), 1.0),
        (f"select vote, {with_interval('count(*)')} from answers group by 1", 0, number("vote=a"), 0.966),
        (f"select town, {with_interval('count(*)')} from answers group by 1", 0, number("town=v00"), 0.966),
        (f"select vote, {with_interval('avg(ill::int)')} from answers group by 1", 1,
         number("vote=b", "ill=True") / number("vote=b"), 0.966),
    ],
)  # fmt: skip
def test_estimates_over_local_tables_have_the_error_of_the_randomization_alone(
    query: str, place: int, truth: float, most: float
) -> None:
    """No noise is added and none is stated; of groups 2,000 draws, else 8,000, with the same bounds as above."""
    of = bound_to(query, Catalog(WITH_LOCAL))
    plan = plan_block(of.block, of_local())
    assert isinstance(plan, ReleasePlan)
    draws = 2_000 if "group by" in query else DRAWS
    found = answers_of(plan, of, plan, draws=draws)[:, place]
    value, low, high, sd = found.T
    assert abs(value.mean() - truth) < 0.1 * value.std()
    assert 0.934 <= ((low <= truth) & (truth <= high)).mean() <= most
    assert sd.mean() == pytest.approx(value.std(), rel=0.1 if most < 1.0 else 1.0)


@pytest.mark.parametrize(("pure", "is_noisy"), SETTINGS)
def test_counts_of_units_are_right_on_average(pure: bool, is_noisy: bool) -> None:
    """8,000 draws of an average and a sum of what a sub-select counts for each unit; the same bounds as above."""
    units, paid, unpaid = 400, 1_500, 2_500
    query = (
        f"select {with_interval('avg(c)')}, {with_interval('sum(c)')} from"
        " (select id, count(*) filter (where paid) as c from visits group by id) as t"
    )
    plan, bound = planned_over(query, of_survey(pure=pure))
    random = np.random.default_rng(BASE_SEED)
    yes = random.binomial(paid, 0.875, DRAWS) + random.binomial(unpaid, 0.125, DRAWS)
    (scan,) = plan.analysed.owned.block.scans
    assert isinstance(scan.rows, Grouped)
    stored = {v.name: yes if passes(v.where, {"paid": True}) else paid + unpaid - yes for v in scan.rows.values[1:]}

    def moment(of: Moment) -> np.ndarray:
        if isinstance(of, RowCount):
            return np.full(DRAWS, float(units))
        (scaled,) = measures_of(of)
        (column,) = columns_of(scaled.of)
        z: np.ndarray = (stored[column.name] - units * scaled.middle) / scaled.half
        return (units + of.sign * z) / 2.0 if isinstance(of, HalfSum) else z

    exact = np.stack([moment(m) for m in plan.vector.moments], axis=1)
    sds = np.array(plan.sds)
    noise = random.laplace(0.0, sds / math.sqrt(2.0), exact.shape) if pure else random.normal(0.0, sds, exact.shape)
    grid = np.rint((exact + noise * is_noisy) / np.array(plan.units_per_grid))
    shown = plan if is_noisy else replace(plan, agreed=(1e-9,) * len(plan.sds))
    cells = NoisyCells(tuple(NoisyCell((), tuple(map(int, m))) for m in grid))
    release = finish(shown, cells, bound.columns, nonnegative=True, time_zone="UTC")
    found = np.array([[float("nan" if v is None else v) for v in c.values] for c in release.columns]).T
    check(found[:, :4], paid / units, 0.96)
    check(found[:, 4:], paid, 0.96)
