"""What does a plan compute, bound and charge, and is a plan a function of public things alone?"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.analysis.analyse import Lowered
from proxy.analysis.patterns import heaviest_together_up
from proxy.dp.mechanisms import Distribution, grid_scale
from proxy.errors import HushError, MissingBounds
from proxy.plan.charge import Cost
from proxy.plan.release_plan import AllKeys, Threshold
from proxy.plan.vector.moments import HalfSum, RowCount, ScaledSum, UnitCount, condition_of
from proxy.plan.vector.noise import sd_of
from proxy.plan.vector.recipes import Count, Mean, Relation, Spread, Total, linear_parts
from proxy.policy.model import Column, Neighbors, RowUnit, Table
from proxy.sql.algebra.nodes import TRUE, ColumnRef, Scalar
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import CENSUS, context, plan, plans


def kinds(query: str, *, pure: bool = False) -> list[str]:
    return sorted(type(m).__name__ for m in plan(query, context(pure=pure)).vector.moments)


@pytest.mark.parametrize(
    ("aggregates", "expected"),
    [
        ("count(*)", ["RowCount"]),
        ("count(*), count(plan), count(height)", ["RowCount"]),
        ("count(age)", ["RowCount"]),
        ("count(age), avg(age), sum(age)", ["RowCount", "ScaledSum"]),
        ("count(*), avg(age)", ["RowCount", "RowCount", "ScaledSum"]),
        ("avg(height), count(*), sum(height)", ["RowCount", "ScaledSum"]),
        ("sum(height)", ["ScaledSum"]),
        ("sum(age), sum(height)", ["ScaledSum", "ScaledSum"]),
        ("sum(age - age)", ["ScaledSum"]),
        ("sum(0 * age)", ["RowCount"]),
        ("count(distinct user_id), count(*)", ["RowCount"]),
        ("avg(age) filter (where plan = 'pro'), avg(age)", ["RowCount", "RowCount", "ScaledSum", "ScaledSum"]),
        ("variance(height)", ["RowCount", "ScaledSum", "SquareSum"]),
        (
            "count(*), sum(height), avg(height), variance(height), stddev(height), regr_syy(height, 5)",
            ["RowCount", "ScaledSum", "SquareSum"],
        ),
        ("count(age), avg(age), var_pop(age)", ["RowCount", "ScaledSum", "SquareSum"]),
        ("count(*), var_pop(age)", ["RowCount", "RowCount", "ScaledSum", "SquareSum"]),
        ("covar_pop(height, height * 2)", ["ProductSum", "RowCount", "ScaledSum", "ScaledSum"]),
        ("regr_sxy(height * 2, height)", ["ProductSum", "RowCount", "ScaledSum", "ScaledSum"]),
        ("regr_slope(height, height * 2)", ["ProductSum", "RowCount", "ScaledSum", "ScaledSum", "SquareSum"]),
        (
            "corr(height, height * 2), avg(height), var_samp(height * 2)",
            ["ProductSum", "RowCount", "ScaledSum", "ScaledSum", "SquareSum", "SquareSum"],
        ),
        (
            "corr(height, height * 2), corr(height * 2, height)",
            ["ProductSum", "RowCount", "ScaledSum", "ScaledSum", "SquareSum", "SquareSum"],
        ),
        ("corr(height, height)", ["RowCount", "ScaledSum", "SquareSum"]),
        ("regr_count(height, age), avg(age), count(age)", ["RowCount", "ScaledSum"]),
        ("regr_avgx(height, age), regr_avgy(age, age)", ["RowCount", "ScaledSum"]),
        ("corr(height, 5), regr_slope(5, 5)", ["RowCount", "ScaledSum", "SquareSum"]),
        ("bool_or(age > 5), bool_and(age > 5), every(age > 5)", ["RowCount", "RowCount"]),
        ("count(*) filter (where age > 5), bool_or(age > 5)", ["RowCount", "RowCount"]),
        ("sum(height), bool_or(age > 5)", ["RowCount", "RowCount", "ScaledSum"]),
    ],
)
def test_equal_moments_are_released_once(aggregates: str, expected: list[str]) -> None:
    assert kinds(f"select {aggregates} from users") == expected


def test_pure_accounting_releases_the_pair() -> None:
    assert kinds("select avg(height) from users", pure=True) == ["HalfSum", "HalfSum"]
    assert kinds("select count(*), avg(height) from users", pure=True) == ["HalfSum", "HalfSum"]
    assert kinds("select avg(height), avg(height * 2) from users", pure=True) == ["RowCount", "ScaledSum", "ScaledSum"]
    of = plan("select avg(height) from users", context(pure=True))
    assert of.allocation.row_norm == of.allocation.weights[0], "a row's pair has 1-norm 1"


def test_pure_accounting_divides_a_row_into_the_parts_of_its_square() -> None:
    def of(aggregates: str) -> tuple[list[str], float]:
        found = plan(f"select {aggregates} from users", context(pure=True))
        return sorted(type(m).__name__ for m in found.vector.moments), found.allocation.row_norm

    parts = ["QuarterSum"] * 3
    for aggregates in ("variance(height)", "count(*), avg(height), stddev(height)", "variance(age)", "corr(age, age)",
                       "regr_sxx(5, age), regr_avgx(5, age)"):  # fmt: skip
        assert of(aggregates) == (parts, 1.0), "the three parts have 1-norm 1"
    assert of("sum(height), variance(height)") == (parts, 1.0)
    assert of("avg(height), variance(height * 2)")[1] == 4.0
    assert of("variance(height) filter (where plan = 'pro'), avg(height)")[1] == 2.0
    assert of("covar_pop(height, age)") == (["ProductSum", "RowCount", "ScaledSum", "ScaledSum"], 4.0)
    assert of("count(*), variance(age)") == ([*parts, "RowCount"], 1.0), "a row has the measure or lacks it"


def test_a_row_with_two_measures_pays_for_having_them_or_not() -> None:
    of = plan("select count(*), corr(qty, price) from items", context(lowered=Lowered(rows_per_group=1)))
    both = next(m for m in of.vector.moments if isinstance(m, RowCount) and not m.absent)
    assert {both.of, both.given} == set(of.analysed.owned.block.aggregates[1].arguments)
    squares = [w * w for w, m in zip(of.allocation.weights, of.vector.moments, strict=True)
               if not (isinstance(m, RowCount) and m.absent)]  # fmt: skip
    assert of.allocation.row_norm == pytest.approx(math.sqrt(sum(squares)))


def test_a_row_without_one_measure_may_have_the_other() -> None:
    def are_disjoint(*conditions: Scalar) -> bool:
        return heaviest_together_up(conditions, (1.0, 1.0)).weight == 1.0

    y, x = (ColumnRef(0, name, SqlType.INT4) for name in ("y", "x"))
    lacking = condition_of(RowCount(TRUE, y, True, x))
    for given in (TRUE, x):
        has_y = condition_of(ScaledSum(TRUE, y, 0.0, 1.0, given=given))
        assert are_disjoint(lacking, has_y) is (given == x)
    assert are_disjoint(lacking, condition_of(RowCount(TRUE, y, False, x)))
    assert not are_disjoint(lacking, condition_of(RowCount(TRUE, x, True)))
    assert are_disjoint(condition_of(RowCount(TRUE, x, True)), condition_of(RowCount(TRUE, y, False, x)))


def test_conditions_of_all_rows_cost_a_row_once() -> None:
    of = plan("select bool_or(age > 5), every(age > 5) from users")
    assert of.allocation.row_norm == pytest.approx(of.allocation.weights[0])
    assert len(set(of.allocation.weights)) == 1


def test_recipes() -> None:
    of = plan("select count(*), sum(height), avg(height) from users")
    count, total, mean = of.vector.finishes
    assert isinstance(count, Count)
    assert isinstance(total, Total)
    assert isinstance(mean, Mean)
    assert (mean.middle, mean.half) == (125.0, 125.0)
    assert dict(total.value.terms) == {mean.number.terms[0][0]: 125.0, mean.total.terms[0][0]: 125.0}
    assert mean.number == count.number


def test_an_average_uses_the_same_weight_above_and_below() -> None:
    of = plan("select count(*), count(*) filter (where age > 5), avg(height), avg(age) from users")
    mean = of.vector.finishes[2]
    assert isinstance(mean, Mean)
    indexes = [i for form in (mean.number, mean.total) for i, _ in form.terms]
    assert len({of.allocation.weights[i] for i in indexes}) == 1


@pytest.mark.parametrize("aggregate", ["variance(height)", "corr(height, age)", "regr_slope(age, height)"])
def test_a_statistic_uses_the_same_weight_for_all_its_moments(aggregate: str) -> None:
    of = plan(f"select {aggregate}, sum(height), count(*) filter (where age > 5) from users")
    finish = of.vector.finishes[0]
    assert isinstance(finish, (Spread, Relation))
    indexes = {i for form in linear_parts(finish) for i, _ in form.terms}
    assert len({of.allocation.weights[i] for i in indexes}) == 1


def test_the_order_of_the_select_list_does_not_matter() -> None:
    one = plan("select count(*), avg(age), sum(height), corr(age, height) from users where age > 5")
    other = plan("select corr(age, height), sum(height), count(*), avg(age) from users where age > 5")
    assert one.sql == other.sql
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize(
    "other",
    [
        plan("select count(*) from orders where amount > 6"),
        plan("select sum(amount) from orders where amount > 5"),
        plan("select status, count(*) from orders where amount > 5 group by 1"),
        plan("select count(*) from orders where amount > 5", context(lowered=Lowered(rows_per_group=3))),
        plan("select count(*) from orders where amount > 5", context(neighbors=Neighbors.REPLACE_ONE)),
        plan("select count(*) from orders where amount > 5", context(pure=True)),
    ],
)
def test_plans_that_publish_other_numbers_have_other_fingerprints(other: object) -> None:
    assert plan("select count(*) from orders where amount > 5").fingerprint != getattr(other, "fingerprint", None)


# --- bounds -----------------------------------------------------------------------------------------------


def test_contribution_bounds_follow_the_shape_of_the_query() -> None:
    def bounds(query: str, rows_per_group: int = 0, groups: int = 0) -> tuple[int, int, int]:
        lowered = Lowered(rows_per_group=rows_per_group, groups=groups)
        found = plan(query, context(lowered=lowered)).analysed.bounds
        return found.rows, found.rows_per_group, found.groups

    assert bounds("select count(*) from users") == (1, 1, 1)
    assert bounds("select count(*) from orders") == (60, 60, 1)
    assert bounds("select status, count(*) from orders group by 1") == (60, 10, 3)
    assert bounds("select store_id, count(*) from orders group by 1") == (60, 10, 12)
    assert bounds("select count(*) from items") == (100, 100, 1)
    assert bounds("select hours > 40, count(*) from census group by 1") == (1, 1, 1)
    joined = "select plan, count(*) from users u join orders o on u.user_id = o.user_id group by 1"
    assert bounds(joined) == (60, 60, 1), "a unit has one plan"
    assert bounds("select status, count(*) from orders group by 1", rows_per_group=4, groups=2) == (60, 4, 2)
    assert bounds("select status, count(*) from orders group by 1", rows_per_group=400, groups=200) == (60, 10, 3)
    assert bounds("select count(*) from orders", rows_per_group=5) == (5, 5, 1)


def test_norms_of_one_row_cell_and_unit() -> None:
    of = plan("select store_id, count(*) from orders group by 1")
    weights = {type(m).__name__: w for m, w in zip(of.vector.moments, of.allocation.weights, strict=True)}
    rows, units = weights["RowCount"], weights["UnitCount"]
    assert of.allocation.row_norm == rows
    assert of.allocation.cell_norm == pytest.approx(math.hypot(10 * rows, units))
    assert units == pytest.approx(10 * rows), "the selecting count has half of W squared"
    assert of.allocation.unit_norm == pytest.approx(math.sqrt(12) * of.allocation.cell_norm)


def test_rows_in_all_bound_a_unit_without_unit_counts() -> None:
    of = plan("select status, count(*) from orders group by 1", context(lowered=Lowered(rows_per_group=10)))
    assert of.allocation.unit_norm == pytest.approx(min(math.sqrt(3) * 10, 60) * of.allocation.row_norm)
    loose = plan("select store_id in (1, 2), status, count(*) from orders group by 1, 2")
    assert loose.allocation.unit_norm <= 60 * loose.allocation.row_norm


def test_each_count_of_units_has_its_own_part_of_the_norm() -> None:
    filters = ", ".join(f"count(distinct user_id) filter (where amount > {i})" for i in range(4))
    of = plan(f"select {filters} from orders")
    assert all(isinstance(m, UnitCount) for m in of.vector.moments)
    assert of.allocation.unit_norm == pytest.approx(math.sqrt(sum(w * w for w in of.allocation.weights)))
    pure = plan(f"select {filters} from orders", context(pure=True))
    assert pure.allocation.unit_norm == pytest.approx(sum(pure.allocation.weights))


@pytest.mark.parametrize(("neighbors", "factor"), [(Neighbors.ADD_REMOVE, 1), (Neighbors.REPLACE_ONE, 2)])
@pytest.mark.parametrize("group_size", [1, 3])
@pytest.mark.parametrize("pure", [False, True])
def test_sensitivity_counts_the_group_and_the_replacement(
    neighbors: Neighbors, factor: int, group_size: int, pure: bool
) -> None:
    of = plan("select status, count(*) from orders group by 1",
              context(pure=pure, neighbors=neighbors, group_size=group_size))  # fmt: skip
    assert of.sensitivity == pytest.approx(of.allocation.unit_norm * factor * group_size)
    kind = Distribution.LAPLACE if pure else Distribution.GAUSSIAN
    assert of.scale == pytest.approx(grid_scale(kind, 0.1 if pure else 0.01, of.sensitivity), rel=2**-48)
    noise = [sd / unit for sd, unit in zip(of.sds, of.units_per_grid, strict=True)]
    assert noise == pytest.approx([2**40 * (math.sqrt(2) if pure else 1)] * len(noise))


# --- selection ----------------------------------------------------------------------------------------------


def test_public_keys_cost_no_delta_and_private_ones_do() -> None:
    public = plan("select status, count(*) from orders group by 1")
    assert public.selection == AllKeys()
    assert public.cost.atto == 0
    private = plan("select city, count(*) from users group by 1")
    assert isinstance(private.selection, Threshold)
    assert private.cost.atto == 5 * 10**9
    assert private.cost.pico == 10**10


@pytest.mark.parametrize(
    ("query", "moment"),
    [
        ("select city, count(*) from users group by 1", RowCount),
        ("select city, sum(age) from users group by 1", RowCount),
        ("select city, plan, sum(age) from users group by 1, 2", UnitCount),
        ("select store_id, count(*) from orders group by 1", UnitCount),
        ("select store_id, status, count(*) from orders group by 1, 2", UnitCount),
        ("select job, count(*) from census group by 1", RowCount),
    ],
)
def test_units_are_what_selects_private_keys(query: str, moment: type) -> None:
    of = plan(query)
    assert isinstance(of.selection, Threshold)
    chosen = of.vector.moments[of.selection.moment]
    assert isinstance(chosen, moment)
    if isinstance(chosen, UnitCount):
        assert chosen.per_part is (len(of.public_keys) > 1)
        assert chosen.where.value is True  # type: ignore[union-attr]  # TRUE is a literal


def test_a_plan_says_by_which_rule_it_shows_private_keys() -> None:
    of = plan("select city, count(*) from users group by 1", context(min_units=3))
    assert isinstance(of.selection, Threshold)
    (rule,) = of.key_rules
    weight = of.allocation.weights[of.selection.moment]
    assert (rule.tau, rule.min_units, rule.keys_per_unit) == (of.selection.tau, 3, 1)
    assert rule.norm_ratio == of.allocation.unit_norm / weight
    assert rule.sigma_n * of.scale * weight == pytest.approx(2**40)
    assert plan("select status, count(*) from orders group by 1").key_rules == ()


def test_a_larger_group_raises_the_threshold() -> None:
    one, two = (plan("select city, count(*) from users group by 1", context(group_size=k)) for k in (1, 2))
    assert isinstance(one.selection, Threshold)
    assert isinstance(two.selection, Threshold)
    assert two.selection.tau > one.selection.tau


# --- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measured", "table", "name"),
    [("weight", "users", '"users"."weight"'), ("order_id", "orders", '"orders"."order_id"'),
     ("weight * 2", "users", '"users"."weight"'), ("length(city)", "users", "this expression"),
     ("age / (height - 5)", "users", "this expression")],
)  # fmt: skip
def test_a_sum_without_bounds_is_refused_with_advice_that_is_accepted(measured: str, table: str, name: str) -> None:
    with pytest.raises(MissingBounds) as refusal:
        plans(f"select sum({measured}) from {table}")
    hint = refusal.value.hint
    assert refusal.value.message.endswith(f"for {name}")
    clamp = re.search(r"least\(greatest\(.*?\), 100\)", hint)
    assert clamp
    plans(f"select sum({clamp[0].replace('<expression>', measured)}) from {table}")
    condition = re.search(r"WHERE .* AND 100", hint)
    assert (condition is None) == (name == "this expression")
    if condition:
        plans(f"select avg({measured}) from {table} {condition[0]}")


@pytest.mark.parametrize("aggregate", ["avg", "sum"])
@pytest.mark.parametrize(
    ("low", "high"), [("-1.7e308", "1.7e308"), ("1e308", "1.7e308"), ("0", "1e200"), ("-1e100", "1.1e100")]
)
def test_bounds_whose_squares_no_double_holds_are_refused(aggregate: str, low: str, high: str) -> None:
    with pytest.raises(MissingBounds, match="too large"):
        plans(f"select {aggregate}(least(greatest(weight, {low}), {high})) from users")
    with pytest.raises(MissingBounds, match="too large"):
        plans(f"select {aggregate}(weight), count(*) from users where weight between {low} and {high}")


def test_the_largest_bounds_have_finite_noise() -> None:
    of = plan("select sum(weight), avg(weight), count(*) from users where weight between -1e100 and 1e100")
    assert all(math.isfinite(sd) for sd in of.sds)
    assert all(math.isfinite(sd_of(f.value, of.sds)) for f in of.vector.finishes if isinstance(f, Total))


def test_a_column_with_an_odd_name_is_advised_in_quotes() -> None:
    odd = Table(name="odd", relation=("odd",), ownership=RowUnit(), columns=(Column(name="My N", type=SqlType.INT4),))
    of = replace(context(), tables=MappingProxyType({"odd": odd}))
    with pytest.raises(MissingBounds, match="My N") as refusal:
        plans('select sum("My N") from odd', of)
    assert 'WHERE "My N" BETWEEN 0 AND 100' in refusal.value.hint
    plans('select sum("My N") from odd WHERE "My N" BETWEEN 0 AND 100', of)


def test_too_many_public_keys_are_refused() -> None:
    with pytest.raises(HushError, match="possible public keys"):
        plans("select joined, age, plan, count(*) from users group by 1, 2, 3")


def test_half_sums_follow_one_measure() -> None:
    of = plan("select avg(amount), count(amount) from orders", context(pure=True))
    halves = [m for m in of.vector.moments if isinstance(m, HalfSum)]
    assert [m.sign for m in sorted(halves, key=lambda m: m.sign)] == [-1, 1]
    assert {m.scaled for m in halves} == {halves[0].scaled}
    assert isinstance(halves[0].scaled, ScaledSum)


@pytest.mark.parametrize(
    ("query", "pure"),
    [
        ("select avg(amount) filter (where status = 'paid'), avg(amount) filter (where amount > 5) from orders", True),
        ("select count(distinct user_id), avg(amount) from orders", True),
        ("select count(distinct user_id), avg(amount) from orders", False),
        ("select store_id, status, count(distinct user_id) from orders group by 1, 2", False),
        ("select count(*), avg(height), sum(height) from users where height in (5)", False),
        ("select count(*), avg(height), sum(height) from users where height in (5)", True),
        ("select sum(height) from users where height in (0)", False),
        ("select store_id, count(*) from orders where store_id between 1 and 3 group by 1", False),
        ("select store_id, variance(amount), count(distinct user_id) from orders group by 1", False),
        ("select status, corr(amount, amount * 2), bool_or(amount > 5) from orders group by 1", False),
        ("select status, corr(amount, amount * 2), bool_or(amount > 5) from orders group by 1", True),
        ("select store_id, status, variance(amount), every(amount > 5) from orders group by 1, 2", False),
        ("select variance(amount) filter (where status = 'paid') from orders", True),
    ],
)  # fmt: skip
def test_every_kind_of_vector_has_a_bound_and_sql(query: str, pure: bool) -> None:
    of = plan(query, context(pure=pure))
    assert of.allocation.unit_norm >= of.allocation.cell_norm * (1 - 1e-12)
    assert of.sql.count("SELECT") >= 1
    if "height in (5)" in query:
        mean = next(f for f in of.vector.finishes if isinstance(f, Mean))
        assert (mean.middle, mean.half, mean.total.terms) == (5.0, 0.0, ())


def test_exclusive_averages_cost_a_row_once_in_pure_accounting() -> None:
    one = plan("select avg(amount) filter (where status = 'paid') from orders", context(pure=True))
    two = plan("select avg(amount) filter (where status = 'paid'), avg(amount) filter (where status = 'refunded')"
               " from orders", context(pure=True))  # fmt: skip
    assert one.allocation.unit_norm == two.allocation.unit_norm


def test_a_key_column_without_null_and_bounds_drops_null() -> None:
    strict = replace(CENSUS, columns=(*CENSUS.columns, Column(name="region", type=SqlType.TEXT, nullable=False)))
    of = replace(context(), tables=MappingProxyType({"census": strict}))
    assert 's0."region" IS NOT NULL' in plan("select region, count(*) from census group by 1", of).sql


def test_costs_are_never_negative_and_add_up() -> None:
    assert Cost(1, 2) + Cost(3, 4) == Cost(4, 6)
    with pytest.raises(ValueError, match="negative"):
        Cost(-1, 0)
