"""What do profiles tell of the conditions and keys of a statement, and what follows for its bound?"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from proxy.analysis.units import UniqueKeys
from proxy.plan.parts.cells import Cells, cells_of
from proxy.plan.profile import kept
from proxy.plan.profile.bound_choice import FROM_POLICY, FromProfile
from proxy.plan.profile.kept import FilterShares
from proxy.plan.profile.left_out import About
from proxy.plan.profile.profile import ColumnShares, TableProfile, UnitMeans
from proxy.plan.words.explain_sets import explain_plan, plan_lines
from proxy.policy.model import Bounded, Column
from proxy.sql.algebra.nodes import TRUE, ColumnRef, conjunction
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import ORDERS, TABLES, context, plan
from tests.unit.plan.test_profile import PROFILE, ROWS, counted

UNITS = len(ROWS)
SEVERAL = sum(n > 1 for n in ROWS)
SD = 20.0
AMOUNT = Cells(ends=tuple(float(k) for k in range(65)))


def shares(column: str, rows: tuple[float, ...], likeness: float, sd: float = SD) -> ColumnShares:
    """Exact ones of units that are so much alike in themselves."""
    pairs = tuple(SEVERAL * (p * p + likeness * p * (1 - p)) for p in rows)
    return ColumnShares(column=column, rows=tuple(UNITS * p for p in rows), pairs=pairs, sd=sd)


def even(column: str, likeness: float) -> ColumnShares:
    of = ORDERS.column(column)
    assert of is not None
    number = cells_of(of).number
    return shares(column, (0.0, *([1.0 / (number - 1)] * (number - 1))), likeness)


PLANS = TableProfile(
    table="users", allowed=1, rows=counted([1.0] * UNITS), sums=(), data_version="7",
    shares=(replace(shares("plan", (0.0, 0.9, 0.1), 0.0), pairs=(0.0, 0.0, 0.0)),),
)  # fmt: skip
FILTERED = replace(PROFILE, shares=(shares("status", (0.0, 0.99, 0.01), 0.0), even("amount", 0.2)))
KNOWN = replace(context(), profiles=(FILTERED, PLANS))


def filters(query: str) -> FilterShares:
    return FilterShares(plan(query, KNOWN).analysed.owned, KNOWN.profiles)


@pytest.mark.parametrize(
    ("where", "share", "stickiness"),
    [
        ("true", 1.0, 0.0),
        ("status = 'paid'", 0.99, 0.0),
        ("status = 'refunded'", 0.01, 0.0),
        ("status in ('refunded')", 0.01, 0.0),
        ("status is null", 0.0, 0.0),
        ("status = 'refunded' and status is not null", 0.01, 0.0),
        ("amount between 0 and 0.0001 or amount > 0.001", 1.0, 0.2),
        ("status = 'refunded' and amount > 250", 0.01 / 64 * 8, 0.02),
        ("amount > 1000", 0.0, 0.2),
    ],
)
def test_shares_of_conditions_are_multiplied(where: str, share: float, stickiness: float) -> None:
    kept = filters(f"select count(*) from orders where {where}").kept
    assert kept.share == pytest.approx(share, abs=2e-3 + 0.01 * share)
    if 0.005 < share < 0.99:
        assert kept.stickiness == pytest.approx(stickiness, abs=0.06)
    assert not kept.untold


def test_facts_of_units_keep_whole_units() -> None:
    kept = filters("select count(*) from orders join users using (user_id) where plan = 'pro'").kept
    assert kept.share == pytest.approx(0.1, abs=0.01)
    assert kept.stickiness == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("where", "untold"),
    [
        ("store_id = 3", ("store_id",)),
        ("status = 'paid' or amount < 3", ("amount", "status")),
        ("made > '2024-03-01'", ("made",)),
        ("sqrt(amount) > 5 and order_id = 5", ("amount", "order_id")),
        ("1 = 1", ()),
    ],
)
def test_what_is_not_known_keeps_everything(where: str, untold: tuple[str, ...]) -> None:
    kept = filters(f"select count(*) from orders where {where}").kept
    assert (kept.share, set(kept.untold)) == (1.0, set(untold))


def test_a_column_that_is_cut_otherwise_now_or_has_too_few_units_is_not_known() -> None:
    for other in (
        replace(FILTERED.shares[0], rows=(1e4,) * 4, pairs=(0.0,) * 4),
        shares("status", (0, 0.5, 0.5), 0, 9e3),
    ):
        of = replace(context(), profiles=(replace(FILTERED, shares=(other,)),))
        found = FilterShares(plan("select count(*) from orders where status = 'paid'", of).analysed.owned, of.profiles)
        assert found.kept.untold == ("status",)


def test_where_hardly_anybody_has_several_rows_units_are_kept_whole() -> None:
    one = replace(FILTERED, rows=counted([1.0] * UNITS))
    of = replace(context(), profiles=(one,))
    found = FilterShares(plan("select count(*) from orders where status = 'refunded'", of).analysed.owned, of.profiles)
    assert found.kept.stickiness == pytest.approx(1.0)


def test_rows_of_one_unit_spread_over_the_groups_of_a_key() -> None:
    query = "select status, count(*) from orders {} group by status"
    analysed = plan(query.format(""), KNOWN).analysed
    (key,) = analysed.keys
    assert filters(query.format("")).together(key.scalar) == pytest.approx(0.99**2 + 0.01**2, rel=0.01)
    assert filters(query.format("where status = 'refunded'")).together(key.scalar) == pytest.approx(1.0, abs=0.02)
    assert FilterShares(analysed.owned, ()).together(key.scalar) == 1.0


def test_rows_of_one_unit_spread_over_the_groups_of_a_computed_key() -> None:
    for text, expected in (
        ("upper(status)", 0.99**2 + 0.01**2),
        ("status = 'paid'", 0.99**2 + 0.01**2),
        ("case when status = 'paid' then 1 else 1 end", 1.0),
    ):
        query = f"select {text} as k, count(*) from orders group by 1"
        (key,) = plan(query, KNOWN).analysed.keys
        assert filters(query).together(key.scalar) == pytest.approx(expected, rel=0.05), text


def test_values_of_a_column_that_is_filtered_grow() -> None:
    found = filters("select sum(amount) from orders where amount > 250")
    (aggregate,) = plan("select sum(amount) from orders where amount > 250", KNOWN).analysed.owned.block.aggregates
    column = aggregate.argument
    assert isinstance(column, ColumnRef)
    grows, usual = found.values(column)
    assert 3 < grows < 12
    assert usual > grows
    assert FilterShares(plan("select sum(amount) from orders", context()).analysed.owned, ()).values(column) == (
        1.0,
        1.0,
    )
    nothing = filters("select sum(amount) from orders where amount > 1000")
    assert nothing.values(column) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("rows", "pairs", "sd"), [((), (), 1.0), ((1.0,), (), 1.0), ((1.0,), (math.nan,), 1.0), ((1.0,), (1.0,), 0.0)]
)
def test_shares_that_cannot_be_are_refused(rows: tuple[float, ...], pairs: tuple[float, ...], sd: float) -> None:
    with pytest.raises(ValueError):
        ColumnShares(column="x", rows=rows, pairs=pairs, sd=sd)


def bound_of(query: str, *, of: object = KNOWN) -> FromProfile:
    found = plan(query, of).bound  # type: ignore[arg-type]
    assert isinstance(found, FromProfile)
    return found


@pytest.mark.parametrize("what", ["count(*)", "sum(amount)", "count(*), sum(amount)"])
def test_a_filter_makes_the_bound_smaller(what: str) -> None:
    whole, half, few = (
        bound_of(f"select {what} from orders where {w}").rows
        for w in ("true", "status = 'paid'", "status = 'refunded'")
    )
    assert few < half / 5 < whole
    blind = replace(KNOWN, profiles=(PROFILE,))
    assert bound_of(f"select {what} from orders where status = 'refunded'", of=blind).rows == whole


def test_a_key_that_spreads_rows_makes_the_bound_smaller() -> None:
    spread = replace(KNOWN, profiles=(replace(FILTERED, shares=(shares("status", (0.0, 0.5, 0.5), 0.0),)),))
    query = "select status, count(*) from orders group by status"
    known, blind = bound_of(query, of=spread), bound_of(query, of=replace(KNOWN, profiles=(PROFILE,)))
    assert known.rows < 0.85 * blind.rows


def test_a_public_join_that_may_repeat_rows_uses_no_profile() -> None:
    query = "select count(*) from orders join stores using (store_id)"
    assert isinstance(plan(query, KNOWN).bound, FromProfile)
    assert plan(query, replace(KNOWN, unique=UniqueKeys(frozenset()))).bound == FROM_POLICY


def test_explain_says_what_where_keeps_and_what_is_not_known() -> None:
    def told(where: str) -> str:
        of = plan(f"select count(*) from orders where {where}", KNOWN)
        return " ".join(" ".join(plan_lines(explain_plan(of, KNOWN.privacy))).split())

    assert "WHERE keeps about 1" in told("status = 'refunded'")
    assert 'no profile of "store_id": bound of the whole table' in told("store_id = 3")
    assert "WHERE keeps" not in told("true")


def test_what_is_left_out_is_forecast_of_the_rows_that_are_asked_for() -> None:
    told = plan("select count(*) from orders where status = 'paid'", KNOWN).left_out
    assert isinstance(told, About)
    assert not told.is_filtered
    told = plan("select count(*) from orders where store_id = 3", KNOWN).left_out
    assert isinstance(told, About)
    assert told.is_filtered


def test_what_filter_keeps_decides_as_what_where_keeps() -> None:
    where, beside, whole = (
        plan(text, KNOWN)
        for text in (
            "select count(*) from orders where status = 'refunded'",
            "select count(*) filter (where status = 'refunded') from orders",
            "select count(*) from orders",
        )
    )
    assert beside.sds[0] == pytest.approx(where.sds[0], rel=0.3)
    assert beside.sds[0] < 0.1 * whole.sds[0]
    found = filters("select count(*) from orders where amount > 500")
    assert found.kept_with(TRUE) == found.kept
    condition = conjunction(plan("select count(*) from orders where status = 'refunded'").analysed.owned.block.where)
    assert found.kept_with(condition).share < 0.1 * found.kept.share
    assert found.kept == filters("select count(*) from orders where amount > 500").kept


@pytest.mark.parametrize("likeness", [0.0, 0.5, 1.0])
def test_how_alike_rows_of_a_unit_are_is_told_by_all_cells_where_each_is_noise(likeness: float) -> None:
    """64 cells whose noise is as large as their numbers: 20 draws, none off by more than five standard deviations."""
    rng, sd, units = random.Random(7), 70.0, 6000.0
    rows = (0.0, *([1.0 / 64] * 64))
    pairs = [units * (p * p + likeness * p * (1 - p)) for p in rows]
    reach = 5 * sd * math.sqrt(65) / units
    found = []
    for _ in range(20):
        of = ColumnShares(column="amount", sd=sd, rows=tuple(units * p + rng.gauss(0, sd) for p in rows),
                          pairs=tuple(p + rng.gauss(0, sd) for p in pairs))  # fmt: skip
        known = kept._known(of, units, units, AMOUNT, is_constant=False)
        assert known is not None
        assert abs(known.likeness - likeness) < reach
        found.append(known.likeness)
        assert (known.pairs >= 0.0).all()
        assert (known.pairs <= 1.0).all()
    assert sum(found) / 20 - likeness < 0.1, "half a standard deviation is added, and the noise of single cells is not"


@pytest.mark.parametrize("seed", range(5))
def test_a_tenth_of_many_cells_is_told_where_the_noise_of_each_hides_it(seed: int) -> None:
    """Shares that add up to less than their noise are known too: how many units there are other numbers tell."""
    rng, sd = random.Random(seed), UNITS / 20
    of = even("amount", 0.0)
    noisy = replace(of, sd=sd, rows=tuple(r + rng.gauss(0, sd) for r in of.rows))
    known = replace(context(), profiles=(replace(PROFILE, shares=(noisy,)),))
    where = "amount > 100"  # seven of 64 cells, even by the logarithm
    found = FilterShares(plan(f"select count(*) from orders where {where}", known).analysed.owned, known.profiles).kept
    told = filters(f"select count(*) from orders where {where}").kept.share
    assert not found.untold
    assert found.share == pytest.approx(told, abs=0.1)


def test_shares_that_stand_out_of_their_noise_stay_what_they_are() -> None:
    rng, noise = random.Random(3), 0.004
    rows = np.array([0.0, 0.5, 0.25, 0.125, *([0.125 / 60] * 60)])
    found, left = kept._evened(rows + np.array([rng.gauss(0, noise) for _ in rows]), noise)
    assert found[:4] == pytest.approx(rows[:4], abs=4 * noise)
    assert 0.95 * noise < left <= noise
    assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("noisy", [[0.5, 0.5], [0.25] * 8, [-1.0, -1.0, -2.0, -1.0, -1.0]])
def test_whatever_shares_say_they_add_up_to_one(noisy: list[float]) -> None:
    found, left = kept._evened(np.array(noisy), 0.3)
    assert found.sum() == pytest.approx(1.0)
    assert 0.0 < left <= 0.3


def test_a_sum_of_uneven_values_is_longer_than_one_of_even_values() -> None:
    """By weeks: the largest values make the vector long, so that a larger bound is chosen."""
    week = Column(name="week", type=SqlType.INT4, domain=Bounded(1, 50), nullable=False)
    orders = replace(ORDERS, columns=(*ORDERS.columns, week))
    amount = orders.column("amount")
    assert amount is not None
    number, chosen = cells_of(amount).number, []
    for places in ({number // 2: 1.0}, {1: 0.98, number - 1: 0.02}):
        values = shares("amount", tuple(places.get(k, 0.0) for k in range(number)), 0.0)
        weeks = shares("week", (0.0, *([0.02] * 50)), 0.0)
        of = replace(KNOWN, profiles=(replace(FILTERED, shares=(values, weeks)),),
                     tables=MappingProxyType({**TABLES, "orders": orders}))  # fmt: skip
        found = plan("select week, sum(amount) from orders group by week", of)
        assert isinstance(found.bound, FromProfile)
        chosen.append(found.bound.rows)
    assert chosen[1] > 1.3 * chosen[0]


def test_parts_of_a_profile_about_other_columns_enter_nothing() -> None:
    """So a role that cannot name a column is shown nothing that its part of a profile tells."""
    every = replace(
        FILTERED, groups=(("store_id", counted(ROWS)),),
        means=(UnitMeans("amount", tuple(map(float, range(0, 1100, 100))), (0.0, 9e3, *([0.0] * 8)), 2.0),),
    )  # fmt: skip
    bare = replace(every, sums=(), shares=(), groups=(), means=())
    only_status = replace(bare, shares=tuple(s for s in FILTERED.shares if s.column == "status"))
    for query, known in (
        ("select count(*) from orders", bare),
        ("select count(distinct user_id) from orders", bare),
        ("select status, count(*) from orders group by status", only_status),
        ("select count(*) from orders where status = 'refunded'", only_status),
        ("select sum(amount), avg(amount) from orders", replace(every, groups=(), shares=())),
    ):
        whole, part = (plan(query, replace(context(), profiles=(p,))) for p in (every, known))
        assert whole.fingerprint == part.fingerprint, query
        assert (whole.bound, whole.left_out, whole.usual) == (part.bound, part.left_out, part.usual), query
        assert explain_plan(whole, KNOWN.privacy) == explain_plan(part, KNOWN.privacy), query
