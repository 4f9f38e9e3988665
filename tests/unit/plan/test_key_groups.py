"""A key's groups are worked out for a few values of each cell of its column."""

from __future__ import annotations

import numpy as np
import pytest

from proxy.plan.parts.cells import Cells, cells_of
from proxy.plan.profile.key_groups import groups_of_cells
from proxy.sql.algebra.nodes import ColumnRef, Scalar, columns_of
from tests.unit.plan.shop import ORDERS, USERS, plan


def key_of(text: str, name: str = "status") -> tuple[Scalar, ColumnRef, Cells]:
    table = USERS if name == "joined" else ORDERS
    (key,) = plan(f"select {text} as k, count(*) from {table.name} group by 1").analysed.keys
    column = table.column(name)
    assert column is not None
    (found,) = columns_of(key.scalar)
    assert found.name == name
    return key.scalar, found, cells_of(column)


@pytest.mark.parametrize(
    ("text", "name", "groups"),
    [
        ("status", "status", 3),  # and NULL
        ("upper(status)", "status", 3),
        ("status = 'paid'", "status", 3),
        ("case when status = 'paid' then 1 else 2 end", "status", 2),
        ("extract(dow from joined)", "joined", 8),
        ("date_trunc('year', joined)", "joined", 3),
        ("date_trunc('month', joined)", "joined", 25),
    ],
)
def test_each_cell_is_shared_among_groups(text: str, name: str, groups: int) -> None:
    found = groups_of_cells(*key_of(text, name))
    assert found is not None
    assert np.allclose(found.shares.sum(axis=1), 1.0)
    assert found.shares.shape[1] == groups


def test_days_are_finer_than_cells_and_months_coarser() -> None:
    days, months = (groups_of_cells(*key_of(f"date_trunc('{unit}', joined)", "joined")) for unit in ("day", "month"))
    assert days is not None
    assert months is not None
    assert days.within[1:] == pytest.approx(1 / 12, rel=0.15)  # two years in 64 cells
    assert months.within[1:].mean() > 0.7
    assert months.shares.shape[1] == 25


def test_a_long_key_is_not_worked_out() -> None:
    assert (
        groups_of_cells(*key_of(f"case {' '.join(f'when amount > {n} then {n}' for n in range(20))} end", "amount"))
        is None
    )
