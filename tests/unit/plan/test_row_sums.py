"""Are the rows of a unit added up one by one only where they weigh no more than the bound, and to the right sums?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

import duckdb
import pytest

from proxy.analysis.analyse import Lowered
from proxy.dp.mechanisms import Distribution
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.sql import statement
from proxy.plan.sql.row_sums import UnitSizes
from proxy.plan.vector.moments import is_further_part
from tests.unit.plan.shop import ORDERS, context, plan
from tests.unit.plan.test_statement_speed import shop

QUERIES = (
    "select status, count(*), sum(amount) from orders group by status",
    "select amount > 500, status, sum(amount) from orders group by 1, 2",
    "select amount > 500, avg(amount), count(*) filter (where amount > 3) from orders where amount < 900 group by 1",
    "select status, stddev(amount), sum(amount * 2) from orders group by status",
    "select plan, status, sum(amount) from orders o join users u on o.user_id = u.user_id group by 1, 2",
    "select upper(status), count(*) from orders group by 1",
)
BOUNDS = (Lowered(groups=2), Lowered(rows_per_group=4, groups=2), Lowered(rows_per_group=1, groups=2),
          Lowered(rows_per_group=1, groups=9))  # fmt: skip


@pytest.fixture(scope="module")
def shops() -> Iterator[list[duckdb.DuckDBPyConnection]]:
    made = [shop(seed) for seed in range(3)]
    yield made
    for connection in made:
        connection.close()


def planned(query: str, lowered: Lowered, *, pure: bool) -> ReleasePlan:
    found = plan(query, context(pure=pure, lowered=lowered))
    assert (found.whole_rows > 0) == ("FROM size" in found.sql)
    return found


def length(of: ReleasePlan) -> tuple[Fraction, Fraction, Fraction]:
    """A row with every moment at its end, B and W; of the 2-norm, their squares."""
    weights = [
        Fraction(w) for m, w in zip(of.vector.moments, of.allocation.weights, strict=True) if not is_further_part(m)
    ]
    ends = Fraction(of.allocation.unit_norm), Fraction(of.allocation.cell_norm)
    if of.distribution is Distribution.GAUSSIAN:
        return sum((w * w for w in weights), Fraction()), ends[0] ** 2, ends[1] ** 2
    return sum(weights, Fraction()), *ends


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("lowered", BOUNDS)
@pytest.mark.parametrize("query", QUERIES)
def test_rows_that_count_as_they_are_weigh_no_more_than_the_bound(query: str, lowered: Lowered, pure: bool) -> None:
    """Also if each of their cells had its norm rounded up; and hardly any unit that could be told so is left out."""
    of = planned(query, lowered, pure=pure)
    row, bound, cell = length(of)
    power = 1 if pure else 2
    n = of.whole_rows
    assert n**power * row + (n + 1) * cell / 2**40 <= bound
    if n:
        assert (n + 2) ** power * row > bound


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("lowered", BOUNDS)
@pytest.mark.parametrize("query", QUERIES)
def test_it_changes_no_integer_whose_cells_are_looked_at(
    query: str, lowered: Lowered, pure: bool, shops: list[duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which units have cells is told by counters that several groups share. It saves work and decides no number."""
    quick = planned(query, lowered, pure=pure)
    monkeypatch.setattr(UnitSizes, "is_large", lambda _: "TRUE")
    slow = planned(query, lowered, pure=pure)
    assert quick.whole_rows == 0 or quick.sql != slow.sql
    for connection in shops:
        found, wanted = (sorted(connection.execute(p.sql).fetchall(), key=repr) for p in (quick, slow))
        assert found == wanted


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("lowered", BOUNDS)
@pytest.mark.parametrize("query", QUERIES)
def test_a_row_loses_less_than_a_unit_of_the_grid(
    query: str, lowered: Lowered, pure: bool, shops: list[duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the form that rounds whole cells: that, too, loses less than one of each row."""
    by_row = planned(query, lowered, pure=pure)
    monkeypatch.setattr(statement, "most_rows", lambda _: 0)
    by_cell = plan(query, context(pure=pure, lowered=lowered))
    keys = len(by_cell.analysed.keys) + 1
    for connection in shops:
        found, wanted = (sorted(connection.execute(p.sql).fetchall(), key=repr) for p in (by_row, by_cell))
        assert [row[:keys] for row in found] == [row[:keys] for row in wanted]
        rows = connection.execute("select count(*) from orders").fetchone()
        assert rows is not None
        for ours, theirs in zip(found, wanted, strict=True):
            pairs = [(a, b) for a, b in zip(ours[keys:], theirs[keys:], strict=True) if (a, b) != (None, None)]
            assert all(abs(a - b) <= rows[0] for a, b in pairs)


def test_a_unit_without_end_makes_no_statement_fail() -> None:
    """Counters of a unit run over into 128 bits; such a unit is told by its number of rows."""
    of = planned(QUERIES[1], Lowered(rows_per_group=4, groups=2), pure=False)
    with duckdb.connect() as connection:
        connection.execute("create table orders as select 1::integer as user_id, 'paid' as status, 7.5 as amount"
                           " from range(300000)")  # fmt: skip
        ((_, _, _, found),) = connection.execute(of.sql).fetchall()
    weight = of.allocation.weights[0] * of.scale
    assert 0 < abs(found) <= math.ceil(4 * weight)


@pytest.mark.parametrize(
    "query",
    [
        "select city, count(*) from orders o join users u on u.user_id = o.user_id group by city",
        "select status, count(distinct user_id) from orders group by status",
        "select plan, count(*) from users group by plan",
        "select count(*) from orders",
    ],
)
def test_where_units_are_counted_or_have_one_cell_there_are_other_ways(query: str) -> None:
    assert planned(query, Lowered(rows_per_group=4, groups=2), pure=False).whole_rows == 0


@pytest.mark.parametrize(("groups", "is_used"), [(2, False), (5, True)])
def test_where_a_unit_of_two_rows_may_be_above_the_bound_all_have_cells(groups: int, is_used: bool) -> None:
    of = planned(QUERIES[1], Lowered(rows_per_group=1, groups=groups), pure=False)
    assert (of.whole_rows > 0) == is_used


def test_conditions_stand_where_rows_are_in_sight(shops: list[duckdb.DuckDBPyConnection]) -> None:
    """A listed key without NULL takes rows out of sight; a count with a condition reads its column all the same."""
    of = context(lowered=Lowered(rows_per_group=4, groups=2))
    columns = tuple(replace(c, nullable=False) if c.name == "status" else c for c in of.tables["orders"].columns)
    listed = replace(of, tables={**of.tables, "orders": replace(of.tables["orders"], columns=columns)})
    for groups in ("status", "status, amount > 500"):
        sql = f"select {groups}, count(*) filter (where amount > 3) from orders group by all"
        found = plan(sql.replace("all", groups), listed).sql
        assert "count(k0) > 0" in found
        assert {row[1] for row in shops[0].execute(found).fetchall()} == {"paid", "refunded"}


@pytest.mark.parametrize("name", ["size", "Large", "cell", "scored", "heavy", "summed", "present", "norms", "counted"])
def test_a_table_may_be_called_as_a_relation_of_the_statement(
    name: str, shops: list[duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a statement makes for itself hides no table of the data, whose rows it would read in its place."""
    of = context(lowered=Lowered(rows_per_group=4, groups=2), tell_cut=True)
    called = replace(ORDERS, name=name, relation=(name,))
    named = replace(of, tables=MappingProxyType({**of.tables, name: called}))
    sql = "select status, count(*), sum(amount) from {} group by status"
    found = plan(sql.format(f'"{name}"'), named)
    assert (found.whole_rows > 0) == (name in {"summed", "present", "norms"})
    if not found.whole_rows:
        monkeypatch.setattr(statement, "most_rows", lambda _: 0)
    usual = plan(sql.format("orders"), of)
    with shops[0].cursor() as cursor:
        cursor.execute(f'create table "{name}" as select * from orders')
        try:
            rows = (sorted(cursor.execute(p.sql).fetchall(), key=repr) for p in (found, usual))
            assert next(rows) == next(rows)
        finally:
            cursor.execute(f'drop table "{name}"')
