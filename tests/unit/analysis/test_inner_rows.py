"""Whose are the rows of sub-selects that are scans of their own?"""

from __future__ import annotations

import math

import duckdb
import pytest

from proxy.errors import UnitNotJoined
from proxy.policy.model import Bounded
from tests.unit.plan.shop import plan


def test_a_table_whose_rows_are_units_is_read_once_in_a_union() -> None:
    with pytest.raises(UnitNotJoined, match="stands twice"):
        plan("select count(*) from (select hours from census union all select hours + 1 from census) t")


def test_units_of_different_kinds_do_not_meet_in_a_union() -> None:
    with pytest.raises(UnitNotJoined, match="different types"):
        plan("select count(*) from (select hours from census union all select age from users) t")


def test_rows_found_along_a_path_have_the_unit_at_its_end() -> None:
    found = plan("select count(*) from (select qty from items union all select age from users) t").analysed
    assert (found.bounds.rows, found.bounds.groups) == (101, 1)
    (scan,) = found.owned.block.scans
    assert [c.name for c in scan.table.columns if c.key] == ["user_id"]


def test_a_value_that_a_condition_bounds_on_one_side_has_no_domain_as_a_column() -> None:
    inner = "select user_id, first_value(case when store_id >= 5 then store_id end) over (partition by user_id) as w"
    outer = f"select user_id, first_value(w <= 2.5) over (partition by user_id) as b from ({inner} from orders) i"
    found = plan(f"select count(*) from ({outer}) q where b")
    columns = [c for scan in found.analysed.owned.block.every_scan for c in scan.table.columns]
    assert [c.domain for c in columns if c.name.startswith("first_value(CASE") or "first_value(...)" in c.name]
    ends = [end for c in columns if isinstance(c.domain, Bounded) for end in (c.domain.lo, c.domain.hi)]
    assert all(math.isfinite(end) for end in ends if isinstance(end, (int, float)))


@pytest.mark.parametrize(
    ("total", "least", "most"),
    [
        ("sum(amount)", 0, 60_000),
        ("sum(amount - 10)", -600, 59_400),
        ("sum(amount + 5)", 5, 60_300),
        ("sum(least(amount, 100))", 0, 6_000),
        ("sum(-amount)", -60_000, 0),
    ],
)
def test_a_units_sum_lies_within_its_rows_bounds_and_is_clamped_to_them(total: str, least: float, most: float) -> None:
    found = plan(f"select avg(s) from (select user_id, {total} as s from orders group by user_id) t")
    (column,) = (c for scan in found.analysed.owned.block.scans for c in scan.table.columns if not c.key)
    assert column.domain == Bounded(least, most)
    with duckdb.connect(":memory:") as engine:
        engine.execute("create table orders (user_id integer, amount decimal(12, 2), status varchar)")
        engine.execute("insert into orders select 1, 1000, 'paid' from range(100000)")
        (beyond,) = engine.execute(found.sql).fetchall()
        engine.execute("delete from orders")
        engine.execute("insert into orders select 1, 1000, 'paid' from range(60)")
        (within,) = engine.execute(found.sql).fetchall()
    assert beyond == within, "what is more than a unit may have adds nothing"
