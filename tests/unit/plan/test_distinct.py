"""COUNT(DISTINCT x): a unit brings at most C values into each of at most G groups, T in all, whatever others do."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import duckdb
import pytest

from proxy.analysis.analyse import Lowered
from proxy.dp.mechanisms import SCALE, Distribution
from proxy.errors import HushError, PolicyForbids
from proxy.plan.parts.distinct import DistinctLimits, DistinctPart
from proxy.plan.parts.part_requests import DistinctValues
from proxy.plan.release_plan import ReleasePlan
from proxy.policy.model import Column, Neighbors
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import USERS, context, plan

GAUSSIAN, LAPLACE = Distribution.GAUSSIAN, Distribution.LAPLACE
Rows = list[tuple[object, ...]]


def only_part(of: ReleasePlan) -> DistinctPart:
    (part,) = of.parts
    assert isinstance(part, DistinctPart)
    return part


def limits(query: str, lowered: Lowered | None = None) -> tuple[int, int, int]:
    found = only_part(plan(query, context(lowered=lowered or Lowered()))).limits
    return found.values, found.groups, found.in_all


# --- bounds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "groups", "in_all"), [(1, 1, 1), (2, 3, 6), (3, 4, 5), (2, 2, 3), (4, 5, 4), (3, 2, 9)]
)
def test_the_norm_is_the_most_that_any_unit_can_move(values: int, groups: int, in_all: int) -> None:
    bounds = DistinctLimits(values=values, groups=groups, in_all=in_all)
    possible = [c for c in product(range(values + 1), repeat=groups) if sum(c) <= in_all]
    assert bounds.norm(GAUSSIAN) == pytest.approx(max(math.sqrt(sum(n * n for n in c)) for c in possible))
    assert bounds.norm(LAPLACE) == max(sum(c) for c in possible)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(DISTINCT order_id) FROM orders", (60, 1, 60)),
        ("SELECT status, count(DISTINCT order_id) FROM orders GROUP BY 1", (10, 3, 60)),
        ("SELECT store_id, count(DISTINCT order_id) FROM orders GROUP BY 1", (10, 12, 60)),
        ("SELECT store_id, count(DISTINCT status) FROM orders GROUP BY 1", (2, 12, 60)),
        ("SELECT count(DISTINCT qty) FROM items", (20, 1, 100)),
        ("SELECT count(DISTINCT qty) FILTER (WHERE qty < 4) FROM items", (3, 1, 100)),
        ("SELECT count(DISTINCT qty > 3) FROM items", (2, 1, 100)),
        ("SELECT count(DISTINCT extract(month FROM made)) FROM orders", (12, 1, 60)),
        ("SELECT count(DISTINCT price) FROM items", (100, 1, 100)),
        ("SELECT count(DISTINCT u.city) FROM orders o JOIN users u ON u.user_id = o.user_id", (1, 1, 60)),
        ("SELECT count(DISTINCT age) FROM users", (1, 1, 1)),
        ("SELECT count(DISTINCT job) FROM census", (1, 1, 1)),
    ],
)
def test_the_bounds_are_the_policys_and_no_more_values_than_there_are(query: str, expected: tuple[int, ...]) -> None:
    assert limits(query) == expected


def test_a_client_may_lower_the_bounds() -> None:
    query = "SELECT store_id, count(DISTINCT order_id) FROM orders GROUP BY 1"
    assert limits(query, Lowered(rows_per_group=2, groups=3)) == (2, 3, 60)


def test_neighbours_that_differ_in_more_than_one_unit_mean_more_noise() -> None:
    query = "SELECT count(DISTINCT order_id) FROM orders"
    one = only_part(plan(query))
    for more in (context(neighbors=Neighbors.REPLACE_ONE), context(group_size=2)):
        assert only_part(plan(query, more)).sensitivity == 2 * one.sensitivity
        assert only_part(plan(query, more)).sd == pytest.approx(2 * one.sd)
    assert one.sd == pytest.approx(60 / math.sqrt(2 * 0.01))
    assert only_part(plan(query, context(pure=True))).sd == pytest.approx(math.sqrt(2) * 60 / 0.1)


# --- shares ---------------------------------------------------------------------------------------------------


def test_the_parts_and_the_vector_share_the_charge_equally() -> None:
    of = plan("SELECT count(*), count(DISTINCT age), count(DISTINCT city), count(DISTINCT age) FROM users")
    shares = [p.pico for p in of.parts]
    assert shares == [of.cost.pico // 3] * 2
    alone = plan("SELECT count(*) FROM users", replace(context(), pico=of.cost.pico - sum(shares)))
    assert of.sds == alone.sds
    scales = [p.scale for p in of.parts if isinstance(p, DistinctPart)]
    assert scales == pytest.approx([SCALE * math.sqrt(2 * s / 1e12) for s in shares])


def test_distinct_counts_alone_need_no_vector() -> None:
    of = plan("SELECT status, count(DISTINCT store_id), count(DISTINCT order_id) FROM orders GROUP BY 1")
    assert of.vector.moments == ()
    assert of.stages == tuple(p.sql for p in of.parts)
    assert sum(p.pico for p in of.parts) == of.cost.pico
    assert of.cost.atto == 0


def test_a_private_key_comes_with_a_count_of_units() -> None:
    of = plan("SELECT city, count(DISTINCT age) FROM users GROUP BY 1")
    assert len(of.vector.moments) == 1
    assert of.stages == (of.sql, only_part(of).sql)
    assert "$1::VARCHAR[]" in only_part(of).sql


def test_a_charge_that_cannot_be_divided_is_refused() -> None:
    with pytest.raises(PolicyForbids, match="too small for the 2 parts"):
        plan("SELECT count(*), count(DISTINCT age) FROM users", replace(context(), pico=1))


def test_the_order_of_the_select_list_changes_nothing() -> None:
    one = plan("SELECT count(DISTINCT age), count(DISTINCT city), count(*) FROM users")
    other = plan("SELECT count(*), count(DISTINCT city), count(DISTINCT age) FROM users")
    assert one.fingerprint == other.fingerprint
    assert [p.asked for p in one.parts] == [p.asked for p in other.parts]
    assert all(isinstance(p.asked, DistinctValues) for p in one.parts)


def test_an_interval_is_not_counted() -> None:
    with_interval = replace(USERS, columns=(*USERS.columns, Column(name="since", type=SqlType.INTERVAL)))
    of = replace(context(), tables={"users": with_interval})
    with pytest.raises(HushError, match=r"COUNT\(DISTINCT interval\) is not supported"):
        plan("SELECT count(DISTINCT since) FROM users", of)


# --- SQL ------------------------------------------------------------------------------------------------------

ORDERS = """
create table orders (user_id int, order_id bigint, store_id int, amount double, status varchar, made timestamptz);
insert into orders select 1, i, i % 40, i, 'paid', '2024-03-01' from range(200) t(i);
insert into orders select 2, i, 1, i, 'paid', '2024-03-01' from range(5) t(i);
insert into orders values (3, null, 2, 1, 'refunded', '2024-03-01'), (null, 77, 3, 1, 'paid', '2024-03-01'),
                          (4, 1, 2, 1, 'unheard of', '2024-03-01'), (5, 900, 2, -0.0, null, '2024-03-01'),
                          (5, 900, 2, 0.0, null, '2024-03-01');
"""


def counts(query: str, *, without: int = -1, kept: list[list[object]] | None = None) -> dict[object, int]:
    """The exact counts of a part's SQL by key, with or without one unit."""
    part = only_part(plan(query))
    with duckdb.connect() as connection:
        connection.execute(ORDERS)
        connection.execute("delete from orders where user_id = ?", [without])
        rows = connection.execute(part.sql, kept or []).fetchall()
    each = math.floor(part.scale)
    assert all(row[-1] % each == 0 for row in rows)
    return {row[:-1]: row[-1] // each for row in rows}


def test_values_of_one_unit_above_its_bound_are_not_counted() -> None:
    query = "SELECT count(DISTINCT order_id) FROM orders"
    assert counts(query, without=1) == {(): 6}
    assert 60 <= counts(query)[()] <= 66
    of_nothing = "SELECT count(DISTINCT amount) FROM orders WHERE status IS NULL"  # or outside its values
    assert counts(of_nothing) == {(): 2}
    assert counts(of_nothing, without=4) == {(): 1}


def test_a_unit_enters_few_groups_with_few_values_each() -> None:
    query = "SELECT store_id, count(DISTINCT order_id) FROM orders GROUP BY 1"
    stores: list[list[object]] = [list(range(40))]
    everybody, others = counts(query, kept=stores), counts(query, without=1, kept=stores)
    moved = {k: everybody[k] - others.get(k, 0) for k in everybody}
    assert len([d for d in moved.values() if d]) <= 12
    assert all(0 <= d <= 10 for d in moved.values())
    assert others == {(1,): 5, (2,): 2}


def test_only_groups_that_were_kept_are_counted_and_null_may_be_one() -> None:
    query = "SELECT order_id, count(DISTINCT store_id) FROM orders GROUP BY 1"
    assert counts(query, kept=[[900, None, 12345]]) == {(900,): 1, (None,): 1}


def test_rows_of_unknown_keys_and_of_nobody_are_not_counted() -> None:
    assert counts("SELECT status, count(DISTINCT order_id) FROM orders GROUP BY 1", without=1) == {
        ("paid",): 5,
        (None,): 1,
    }
