"""Are the units counted of which bounds leave rows out, at the price and with the bound that are claimed?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import duckdb
import psycopg
import pytest
from psycopg.rows import TupleRow

from proxy.dp.accounting import of_atto_down
from proxy.dp.mechanisms import Distribution, grid_scale, noise_sd
from proxy.dp.selection import key_rule
from proxy.plan.parts.cut_units import CUT, WHOLE, growth, norm_up, weight_beside
from proxy.plan.profile.left_out import COMPLETE, Untold
from proxy.plan.release_plan import PlanContext, ReleasePlan, Threshold
from proxy.plan.sets.sets import Plan, SetsPlan
from proxy.plan.words.explain import explain_block
from proxy.plan.words.explain_lines import explain_lines
from proxy.policy.model import Bounded, Neighbors, WrittenBound
from proxy.sql.render.postgres.dialect import POSTGRES
from tests.postgres_server import private_server
from tests.unit.plan.shop import any_plan, context, plan, with_bounds
from tests.unit.plan.test_profile import PROFILE

COUNT = "select count(*) from orders"
BY_STATUS = "select status, count(*), sum(amount) from orders group by status"
BY_STORE = "select store_id, count(*) from orders group by store_id"
BY_BOTH = "select store_id, status, count(*) from orders group by store_id, status"
SETS = "select status, store_id, count(*) from orders group by cube(status, store_id)"
PUBLIC_SETS = "select status, date_trunc('month', made), count(*) from orders group by rollup(1, 2)"
SHAPES = (COUNT, BY_STATUS, BY_STORE, BY_BOTH)
TELLING = context(tell_cut=True)


def narrow(rows: int, per_group: int, groups: int, keys: int = 1000, of: PlanContext = TELLING) -> PlanContext:
    """The shop with other bounds of a unit's orders."""
    orders = replace(
        of.tables["orders"], rows_per_unit=WrittenBound(rows), rows_per_group=WrittenBound(per_group),
        groups_per_unit=WrittenBound(groups), keys_per_unit=keys,
    )  # fmt: skip
    return replace(of, tables=MappingProxyType({**of.tables, "orders": orders}))


# --- the price ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1e-9, 1.0, 17.5, 1e12])
def test_the_pair_takes_a_fiftieth_of_the_charge(bound: float) -> None:
    w = weight_beside(bound, Distribution.GAUSSIAN)
    assert w * w / (bound * bound + w * w) == pytest.approx(1 / 50)
    assert growth(w, bound, Distribution.GAUSSIAN) == pytest.approx(math.sqrt(50 / 49) - 1)
    w = weight_beside(bound, Distribution.LAPLACE)
    assert w / (bound + w) == pytest.approx(1 / 50)
    assert growth(w, bound, Distribution.LAPLACE) == pytest.approx(50 / 49 - 1)


@pytest.mark.parametrize("distribution", list(Distribution))
def test_a_vector_and_the_pair_are_no_longer_than_is_said(distribution: Distribution) -> None:
    for bound in (1e-7, 0.3, 1.0, 7.745966692414834, 3e9):
        w = weight_beside(bound, distribution)
        length = Fraction(norm_up(bound, w, distribution))
        if distribution is Distribution.GAUSSIAN:
            assert length**2 >= Fraction(bound) ** 2 + Fraction(w) ** 2
        else:
            assert length >= Fraction(bound) + Fraction(w)
        assert norm_up(bound, 0.0, distribution) == bound


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("query", [COUNT, BY_STATUS])
def test_the_grid_counts_the_pair_and_the_bound_of_a_unit_does_not(
    query: str, neighbors: Neighbors, *, pure: bool
) -> None:
    of = context(pure=pure, neighbors=neighbors, group_size=3, tell_cut=True)
    found, without = plan(query, of), plan(query, replace(of, privacy=replace(of.privacy, tell_cut=False)))
    assert found.allocation == without.allocation
    reach = 3 * (2 if neighbors is Neighbors.REPLACE_ONE else 1)
    bound, w = found.allocation.unit_norm, found.cut_weight
    length = bound + w if pure else math.hypot(bound, w)
    assert found.sensitivity == pytest.approx(reach * length, rel=1e-12)
    assert found.scale == pytest.approx(grid_scale(found.distribution, 0.1 if pure else 0.01, reach * length))
    assert found.sds[0] / without.sds[0] == pytest.approx(50 / 49 if pure else math.sqrt(50 / 49))
    assert found.cost == without.cost
    assert found.fingerprint != without.fingerprint


def test_the_threshold_has_the_noise_of_the_grid_and_the_weight_of_the_bound() -> None:
    """tau is that of the noise with the pair; a(t) is min(1, B / (w_n sqrt t)), as without it."""
    found = plan(BY_STORE, TELLING)
    assert isinstance(found.selection, Threshold)
    weight = found.allocation.weights[found.selection.moment]
    expected = key_rule(
        delta_r=of_atto_down(TELLING.atto_for_keys), sigma_n=noise_sd(found.distribution, found.scale * weight),
        norm_ratio=found.allocation.unit_norm / weight, keys_per_unit=found.analysed.bounds.keys, group_size=1,
        min_units=0,
    )  # fmt: skip
    assert found.selection.rule == expected
    assert found.scale == pytest.approx(grid_scale(found.distribution, 0.01, found.sensitivity), rel=2**-48)


# --- which statements ------------------------------------------------------------------------------------------


def test_units_are_counted_where_nothing_else_tells_and_some_may_be_cut() -> None:
    for query in (*SHAPES, "select avg(amount), count(*) from orders", "select sum(qty) from items"):
        assert plan(query, TELLING).cut_weight > 0, query


@pytest.mark.parametrize(
    "query",
    ["select count(*) from users", "select city, count(*) from users group by city", "select count(*) from census",
     "select count(distinct user_id) from orders", "select count(distinct store_id) from orders",
     "select status, count(distinct user_id) from orders group by status"],
)  # fmt: skip
def test_nobody_is_counted_where_nobody_can_be_cut(query: str) -> None:
    found = plan(query, TELLING)
    assert (found.cut_weight, found.left_out) == (0.0, COMPLETE)
    assert found.sql == plan(query).sql


def test_a_profile_or_the_policy_or_an_imposed_bound_tell_or_need_nothing() -> None:
    assert plan(COUNT, replace(TELLING, profiles=(PROFILE,))).cut_weight == 0.0
    assert plan(COUNT, context()).cut_weight == 0.0
    assert plan(COUNT, replace(TELLING, bound=3.0)).cut_weight == 0.0


def test_units_that_are_counted_in_groups_may_lose_groups() -> None:
    by_store = plan("select store_id, count(distinct user_id) from orders group by store_id", narrow(60, 10, 12, 5))
    assert isinstance(by_store.left_out, Untold)
    assert (by_store.left_out.groups, by_store.cut_weight > 0) == (5, True)
    by_month = plan("select date_trunc('month', made), count(distinct user_id) from orders group by 1",
                    narrow(60, 10, 2))  # fmt: skip
    assert isinstance(by_month.left_out, Untold)
    assert (by_month.left_out.groups, by_month.cut_weight > 0) == (2, True)


def test_one_of_the_sets_that_are_bounded_together_counts_for_all() -> None:
    found = any_plan(PUBLIC_SETS, TELLING)
    assert isinstance(found, SetsPlan)
    assert [p.cut_weight > 0 for p in found.plans] == [True, False, False]
    assert len({p.left_out for p in found.plans}) == 1
    each = any_plan(SETS, TELLING)
    assert isinstance(each, SetsPlan)
    assert [p.cut_weight > 0 for p in each.plans] == [True, False, True, True], "two with private keys, two without"


def test_it_is_said_before_and_with_what_it_costs() -> None:
    lines = " ".join(" ".join(explain_lines(explain_block(plan(COUNT, TELLING), TELLING.privacy))).split())
    assert "the answer tells how many customers have rows left out, which makes its noise 1 % larger" in lines
    assert "beside it for whether rows of it are left out" in lines
    pure = context(pure=True, tell_cut=True)
    assert "makes its noise 2 % larger" in " ".join(
        " ".join(explain_lines(explain_block(plan(COUNT, pure), pure.privacy))).split()
    )


# --- who is cut ------------------------------------------------------------------------------------------------

Orders = Sequence[tuple[int, int, str, float]]  # user, store, status, amount

_TABLE = (
    "create table orders (user_id integer, order_id bigint, store_id integer, amount numeric(12, 2), status varchar,"
    " made timestamptz)"
)


def _insertion(rows: Orders) -> str:
    values = (f"({u}, {i}, {s}, {a}, '{k}', '2024-05-05')" for i, (u, s, k, a) in enumerate(rows))
    return f"insert into orders values {', '.join(values)}"


def orders(*units: tuple[int, ...]) -> Orders:
    """Units with so many rows in store 1, store 2, ...; half of each paid, of amount 10."""
    return [
        (user, store, "paid" if row % 2 else "refunded", 10.0)
        for user, stores in enumerate(units)
        for store, rows in enumerate(stores, start=1)
        for row in range(rows)
    ]


def engine_rows(of: Plan, rows: Orders) -> list[list[tuple[object, ...]]]:
    """What DuckDB gives for each statement of a plan."""
    connection = duckdb.connect()
    connection.execute(_TABLE)
    if rows:
        connection.execute(_insertion(rows))
    return [connection.execute(sql).fetchall() for sql in of.stages]


def cut_and_whole(of: ReleasePlan, rows: Orders) -> tuple[int, int]:
    """The numbers of units that a statement gives, which are exact multiples of one unit's."""
    (found,) = engine_rows(of, rows)
    place = 1 + len(of.analysed.keys)
    values = {row[0]: row[place] for row in found if row[0] in (CUT, WHOLE)}
    each, numbers = math.floor(of.cut_weight * of.scale), (values[CUT], values[WHOLE])
    assert all(isinstance(n, int) and n % each == 0 for n in numbers)
    assert all(row[place + 1 :] == (None,) * (len(of.vector.moments) - 1) for row in found if row[0] in (CUT, WHOLE))
    return int(str(values[CUT])) // each, int(str(values[WHOLE])) // each


def test_rows_above_t_are_cut_where_a_unit_has_one_cell() -> None:
    of = plan(COUNT, narrow(3, 3, 1))
    assert cut_and_whole(of, orders((1,), (3,), (4,), (2, 2), (9,))) == (3, 2)
    assert cut_and_whole(of, ()) == (0, 0)


def test_rows_above_c_are_cut_in_any_group_of_a_unit_that_is_counted_once() -> None:
    of = plan(BY_STORE, narrow(60, 2, 30))
    assert cut_and_whole(of, orders((1, 1, 1), (3, 1), (3, 3, 3), (2, 2))) == (2, 2)


def test_units_in_too_many_groups_are_cut_by_their_factor() -> None:
    of = plan(BY_STORE, narrow(60, 5, 2))
    few, many = (5, 5), (5, 5, 5)
    assert cut_and_whole(of, orders(few, many, many, (1,))) == (2, 2)


def test_units_with_a_key_dropped_are_cut() -> None:
    for query in (BY_STORE, BY_BOTH):
        of = plan(query, narrow(60, 10, 10, 2))
        assert cut_and_whole(of, orders((1, 1), (1, 1, 1), (1,), (0, 1, 1, 1, 1))) == (2, 2), query


def test_public_keys_that_need_no_factor_are_told_too() -> None:
    of = plan("select status, count(*) from orders group by status", narrow(10, 2, 3))
    assert "heavy" not in of.sql
    assert cut_and_whole(of, orders((4,), (5,), (1,), (9,))) == (2, 2)


@pytest.mark.parametrize(
    "query",
    ["select sum(amount) from orders", "select status, sum(amount) from orders group by 1",
     "select store_id, sum(amount) from orders group by 1"],
)  # fmt: skip
def test_a_clipped_total_is_cut_and_one_at_its_end_is_not(query: str) -> None:
    of = narrow(60, 60, 12)
    tables = {**of.tables, "orders": with_bounds(of.tables["orders"], "amount", Bounded(0, 30))}
    found = plan(query, replace(of, tables=MappingProxyType(tables)))
    rows = [(1, 1, "paid", 30.0), (2, 1, "paid", 10.0), (2, 1, "paid", 20.0), (3, 1, "paid", 20.0),
            (3, 1, "paid", 10.5), (4, 2, "paid", 900.0)]  # fmt: skip
    assert cut_and_whole(found, rows) == (2, 2)


def test_sets_that_are_bounded_together_cut_a_unit_if_one_does() -> None:
    found = any_plan(PUBLIC_SETS, narrow(3, 3, 3))
    assert isinstance(found, SetsPlan)
    first, *others = engine_rows(found, orders((1,), (4,), (3,), (5,)))
    each = math.floor(found.plans[0].cut_weight * found.plans[0].scale)
    assert {row[0]: row[1] for row in first if row[0] != 0} == {CUT: 2 * each, WHOLE: 2 * each}
    assert all(row[0] == 0 for rows in others for row in rows)


@pytest.mark.parametrize("query", SHAPES)
@pytest.mark.parametrize("pure", [False, True])
def test_one_unit_moves_all_by_no_more_than_delta(query: str, *, pure: bool) -> None:
    """Any unit alone, cut or not, is at most S Delta (1 + 2^-30) long with the pair, and S B without it."""
    if pure and query in (BY_STORE, BY_BOTH):
        return  # keys that nobody listed need a delta
    of = plan(query, narrow(4, 2, 2, 2, context(pure=pure, tell_cut=True)))
    slack = 1 + Fraction(1, 2**30)
    longest, length, limit = Fraction(0), Fraction(0), Fraction(1)
    for unit in ((1,), (4,), (2, 2), (60, 60, 60), (1, 1, 1, 1, 1), (2, 2, 2), (1000,)):
        (rows,) = engine_rows(of, orders(unit))
        size = 1 + len(of.analysed.keys)
        vector = [v for row in rows if row[0] in (0, 1) for v in row[size:] if isinstance(v, int)]
        pair = [v for row in rows if row[0] in (CUT, WHOLE) for v in row[size:] if isinstance(v, int)]
        assert sorted(pair) == [0, math.floor(of.cut_weight * of.scale)]
        for values, most in ((vector, of.allocation.unit_norm), ([*vector, *pair], of.sensitivity)):
            limit = Fraction(of.scale) * Fraction(most) * slack
            length = Fraction(sum(map(abs, values))) if pure else Fraction(sum(v * v for v in values))
            assert length <= (limit if pure else limit**2)
        longest = max(longest, length / (limit if pure else limit**2))
    assert longest > 0.95, "a unit that is cut is as long as is allowed"


@pytest.fixture(scope="module")
def database() -> Iterator[psycopg.Connection[TupleRow]]:
    server = private_server()
    server.create("cut_units", "")
    with server.owner("cut_units") as connection:
        yield connection


@pytest.mark.parametrize("pure", [False, True])
def test_one_unit_moves_all_by_no_more_than_delta_in_postgres_too(
    database: psycopg.Connection[TupleRow], *, pure: bool
) -> None:
    """The same integers as DuckDB has, of each unit alone and of all together."""
    units = ((1,), (4,), (2, 2), (60, 60, 60), (1, 1, 1, 1, 1), (2, 2, 2), (3, 1))
    of = narrow(4, 2, 2, 2, context(pure=pure, tell_cut=True))
    there = replace(of, dialect=POSTGRES)
    for query in (COUNT, BY_STATUS) if pure else (*SHAPES, PUBLIC_SETS):
        ours, theirs = any_plan(query, of), any_plan(query, there)
        for rows in (*(orders(unit) for unit in units), orders(*units), ()):
            database.execute("drop table if exists orders")
            database.execute(_TABLE.encode())
            if rows:
                database.execute(_insertion(rows).encode())
            for sql, expected in zip(theirs.stages, engine_rows(ours, rows), strict=True):
                found = database.execute(sql.encode()).fetchall()
                assert _integers(found) == _integers(expected), query


def _integers(rows: Iterable[tuple[object, ...]]) -> list[list[int]]:
    """Whole numbers, in an order of their own; keys are texts, times or small."""
    return sorted([int(v) for v in row if isinstance(v, (int, Decimal))] for row in rows)
