"""Are the values among which quantiles are looked for public, few and spread over the whole domain?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise

import pytest

from proxy.errors import BadGroups, MissingBounds
from proxy.plan.parts.quantile_grid import (
    MOST_CELLS,
    Days,
    Moments,
    QuantileGrid,
    Reals,
    Wholes,
    describe,
    grid_of,
    most_cells,
)
from proxy.policy.model import Bounded, Column, Listed
from proxy.sql.algebra.nodes import TRUE
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import TABLES, context, plan


def grid(
    expression: str, table: str = "users", *, most: int = 1000, where: str = "true", zone: str = "UTC"
) -> QuantileGrid:
    of = context(time_zone=zone)
    found = plan(f"select count({expression}) from {table} where {where}", of)
    (aggregate,) = found.analysed.owned.block.aggregates
    return grid_of(aggregate.argument, TRUE, found.analysed, zone, most)


@pytest.mark.parametrize(
    ("found", "values"),
    [
        (Wholes(0, 4, 1), [0, 1, 2, 3, 4]),
        (Wholes(0, 10, 5), [2, 7, 10]),
        (Wholes(-3, 3, 2), [-3, -1, 1, 3]),
        (Wholes(-(2**63), 2**63 - 1, 10**19), [-4223372036854775809, 4999999999999999999]),
        (Reals(0.0, 1.0, Decimal("0.5")), [Decimal("0.25"), Decimal("0.75")]),
        (Reals(0.0, 1.1, Decimal("0.5")), [Decimal("0.25"), Decimal("0.75"), Decimal("1.1")]),
        (Reals(2.0, 2.0, Decimal(1)), [Decimal(2)]),
        (Days(date(2024, 2, 28), date(2024, 3, 1), 1), [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)]),
        (Days(date(2024, 1, 1), date(2024, 1, 10), 7), [date(2024, 1, 4), date(2024, 1, 9)]),
        (Days(date(9999, 12, 30), date(9999, 12, 31), 7), [date(9999, 12, 30)]),
        (Moments(datetime(2024, 1, 1), datetime(2024, 1, 1, 1), 1_800_000_000),
         [datetime(2024, 1, 1, 0, 15), datetime(2024, 1, 1, 0, 45), datetime(2024, 1, 1, 1)]),
    ],
)  # fmt: skip
def test_an_answer_is_the_middle_of_a_cell(found: QuantileGrid, values: list[object]) -> None:
    assert [found.value(i) for i in range(found.cells)] == values


@pytest.mark.parametrize("most", [256, 1000, 1024, MOST_CELLS])
@pytest.mark.parametrize(
    ("expression", "table"),
    [("age", "users"), ("age * 100000", "users"), ("height", "users"), ("height / 7.0", "users"), ("joined", "users"),
     ("amount", "orders"), ("made", "orders"), ("price * 1e90", "items"), ("price * 1e-9", "items"),
     ("age::bigint * 99999999999999999", "users")],
)  # fmt: skip
def test_cells_are_few_and_rise(expression: str, table: str, most: int) -> None:
    found = grid(expression, table, most=most)
    assert most // 12 < found.cells <= most or isinstance(found, (Wholes, Days))
    assert found.cells <= most
    some = [found.value(i) for i in range(0, found.cells, max(1, found.cells // 50))]
    assert all(a < b for a, b in pairwise(some))  # type: ignore[operator]  # of one kind
    assert describe(found)


def test_steps_are_those_that_people_use() -> None:
    assert grid("age", most=256) == Wholes(0, 110, 1)
    assert grid("age * 10", most=256) == Wholes(0, 1100, 5)
    assert grid("height") == Reals(0.0, 250.0, Decimal("0.5"))
    assert grid("joined", most=256) == Days(date(2019, 1, 1), date(2020, 12, 31), 3)
    assert grid("made", "orders") == Moments(datetime(2024, 1, 1), datetime(2024, 12, 31), 12 * 3600 * 10**6)
    assert grid("made", "orders", most=256) == Moments(datetime(2024, 1, 1), datetime(2024, 12, 31), 2 * 86400 * 10**6)


def test_conditions_narrow_the_grid() -> None:
    assert grid("age", where="age between 20 and 29") == Wholes(20, 29, 1)
    assert grid("weight", where="weight >= 40 and weight < 90") == Reals(40.0, 90.0, Decimal("0.05"))
    assert grid("born", where="born between '2000-01-01' and '2000-01-31'").cells == 31


def test_instants_are_looked_for_as_local_times() -> None:
    orders = TABLES["orders"]
    column = Column(name="made", type=SqlType.TIMESTAMPTZ, domain=Bounded(
        datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)))  # fmt: skip
    of = replace(context(time_zone="Asia/Tokyo"), tables={**TABLES, "orders": replace(
        orders, columns=(*(c for c in orders.columns if c.name != "made"), column))})  # fmt: skip
    found = plan("select count(made) from orders", of)
    (aggregate,) = found.analysed.owned.block.aggregates
    shown = grid_of(aggregate.argument, TRUE, found.analysed, "Asia/Tokyo", 1000)
    assert isinstance(shown, Moments)
    assert (shown.low, shown.high) == (datetime(2024, 1, 1, 9), datetime(2024, 1, 2, 9))
    listed = replace(column, domain=Listed((datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 5, tzinfo=UTC))))
    of = replace(of, tables={**of.tables, "orders": replace(
        orders, columns=(*(c for c in orders.columns if c.name != "made"), listed))})  # fmt: skip
    found = plan("select count(made) from orders", of)
    (aggregate,) = found.analysed.owned.block.aggregates
    shown = grid_of(aggregate.argument, TRUE, found.analysed, "Asia/Tokyo", 1000)
    assert isinstance(shown, Moments)
    assert (shown.low, shown.high) == (datetime(2024, 1, 1, 9), datetime(2024, 1, 5, 9))


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York"])
def test_instants_without_a_local_time_are_no_bounds(zone: str) -> None:
    ends = Bounded(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
    column = Column(name="made", type=SqlType.TIMESTAMPTZ, domain=ends)
    columns = (*(c for c in TABLES["orders"].columns if c.name != "made"), column)
    of = replace(context(time_zone=zone), tables={**TABLES, "orders": replace(TABLES["orders"], columns=columns)})
    assert plan("select count(made), count(distinct made) from orders where made > '2024-01-01'", of).sql
    with pytest.raises(MissingBounds, match="made"):
        plan("select max(made) from orders", of)


def test_what_has_no_bounds_has_no_grid() -> None:
    with pytest.raises(MissingBounds, match=r'"users"\."weight"') as refused:
        grid("weight")
    assert "bounds: [0, 100] at tables.users.columns.weight" in refused.value.hint
    with pytest.raises(MissingBounds, match=r'"users"\."born"') as refused:
        grid("born")
    assert "bounds: [2020-01-01, 2029-12-31] at tables.users.columns.born" in refused.value.hint
    with pytest.raises(MissingBounds, match="inferred"):
        grid("case when age > 5 then born else born end")


def test_many_groups_have_fewer_cells_each() -> None:
    assert most_cells(1, has_private_keys=False) == MOST_CELLS
    assert most_cells(100, has_private_keys=False) == 10485
    assert most_cells(1, has_private_keys=True) == 1024
    assert most_cells(4096, has_private_keys=True) == 256
    with pytest.raises(BadGroups, match="too many possible keys"):
        most_cells(4097, has_private_keys=False)
