"""Cells that are added up are the sums of the cells, and their intervals hold."""

from __future__ import annotations

import random

from proxy.plan.derive import derive
from proxy.release.derived import derived_cells
from proxy.release.finish import finish
from proxy.release.noisy import NoisyCell, NoisyCells
from tests.unit.plan.shop import plan
from tests.unit.release.make import planned

GROUPS = "select plan, count(*), avg(height) from users group by plan"
TOTAL = (
    "select count(*), hush.low(count(*)), hush.high(count(*)), hush.low(avg(height)), hush.high(avg(height)) from users"
)
RUNS = 300


def test_cells_are_added_up_in_the_order_of_keys() -> None:
    source, wanted = (
        plan("select plan, age, count(*) from users group by 1, 2"),
        plan("select plan, count(*) from users group by 1"),
    )
    found = derive(wanted, source, 1000)
    assert found is not None
    cells = NoisyCells(tuple(NoisyCell(key, (number,)) for number, key in enumerate(source.public_keys)))
    added = derived_cells(found, cells)
    assert [c.key for c in added.cells] == [("free",), ("pro",)]
    assert [c.moments for c in added.cells] == [
        (sum(n for n, key in enumerate(source.public_keys) if key[0] == of),) for of in ("free", "pro")
    ]


def test_intervals_of_what_is_added_up_hold_as_often_as_they_say() -> None:
    """At 95 %, 300 runs leave the band of 0.90 to 0.995 once in 5,000 times; the seed is fixed."""
    source, (wanted, bound) = plan(GROUPS), planned(TOTAL)
    found = derive(wanted, source, 2)
    assert found is not None
    rng, counts, means = random.Random(7), 0, 0
    exact = {("free",): (3000.0, 600.0), ("pro",): (1000.0, -300.0)}  # rows, and their sum of (height - 125)/125
    order = [0, 1] if "RowCount" in repr(source.vector.moments[0]) else [1, 0]
    for _ in range(RUNS):
        cells = []
        for key, values in exact.items():
            noisy = [values[o] + rng.gauss(0, sd) for o, sd in zip(order, source.sds, strict=True)]
            cells.append(NoisyCell(key, tuple(round(v / u) for v, u in zip(noisy, source.units_per_grid, strict=True))))
        columns = finish(found.shown, derived_cells(found, NoisyCells(tuple(cells))), bound.columns, nonnegative=True,
                         time_zone="UTC").columns  # fmt: skip
        _, low, high, least, most = (float(c.values[0] or "nan") for c in columns)
        counts += low <= 4000.0 <= high
        means += least <= 125.0 + 125.0 * 300.0 / 4000.0 <= most
    assert 0.90 <= counts / RUNS <= 0.995
    assert 0.90 <= means / RUNS <= 0.995
