"""What the client sees of a release of grouping sets: rows set by set, and totals that are the sums of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from proxy.errors import BadGroups
from proxy.plan.release_plan import PlanContext
from proxy.plan.sets.sets import Plan, SetsPlan, plan_block
from proxy.plan.vector.moments import RowCount
from proxy.release import noisy
from proxy.release.finish import Release
from proxy.release.noisy import NoisyCells
from proxy.release.raw import KeptKeys, RawResult
from proxy.release.sets import finish_plan, publish_plan
from proxy.sql.algebra.nodes import TRUE
from proxy.sql.query.block import BoundBlock
from tests.thresholds import lowered
from tests.unit.plan.shop import context
from tests.unit.release.make import Counted, Scripted, bound

Rows = list[tuple[str | None, ...]]


def both(query: str, of: PlanContext | None = None) -> tuple[SetsPlan, BoundBlock]:
    """The plan of a query with grouping sets, every private key of which is kept from 1 unit on."""
    block = bound(query)
    found = plan_block(block.block, of or context())
    assert isinstance(found, SetsPlan)
    low = tuple(replace(s, plan=lowered(s.plan, 1.0)) for s in found.sets)
    return replace(found, sets=low), block


def rows(
    plan: Plan, block: BoundBlock, cells: NoisyCells, *, is_consistent: bool = True, nonnegative: bool = True
) -> Rows:
    release: Release = finish_plan(
        plan, cells, block.columns, is_consistent=is_consistent, nonnegative=nonnegative, time_zone="UTC"
    )
    assert all(len(c.values) == release.rows for c in release.columns)
    return list(zip(*(c.values for c in release.columns), strict=True))


def published(plan: SetsPlan, *stages: Sequence[tuple[object, ...]]) -> NoisyCells:
    """From rows of each stage that end with a number of rows, which all moments are on the grid of their set."""
    prepared = []
    for one, given in zip(plan.plans, stages, strict=True):
        counts = [count for *_, count in given if isinstance(count, int)]
        grid = [tuple(round(count / g) for g in one.units_per_grid) for count in counts]
        prepared.append(tuple((*row[:-1], *moments) for row, moments in zip(given, grid, strict=True)))
    cells = publish_plan(plan, lambda stage, _: RawResult(0, prepared[stage]), Scripted([]))
    assert NoisyCells.of_payload(cells.payload()) == cells
    return cells


def test_rows_come_set_by_set_with_nulls_and_grouping() -> None:
    plan, block = both(
        "SELECT plan, grouping(plan, city), grouping(city), count(*), city FROM users"
        " GROUP BY GROUPING SETS ((plan), (), (city), (plan))"
    )
    cells = published(plan, [(0, 30)], [(0, "free", 10), (0, "pro", 20)], [(0, "Oslo", 7), (0, None, 23)])
    shown = [("free", "1", "1", "10", None), ("pro", "1", "1", "20", None)]
    assert rows(plan, block, cells) == [
        *shown,
        (None, "3", "1", "30", None),
        (None, "2", "0", "7", "Oslo"),
        (None, "2", "0", "23", None),
        *shown,
    ]


def test_a_statement_of_one_set_lacks_no_key() -> None:
    block = bound("SELECT grouping(plan), plan, count(*) FROM users GROUP BY plan")
    plan = plan_block(block.block, context())
    assert not isinstance(plan, SetsPlan)
    cells = publish_plan(plan, lambda _stage, _kept: RawResult(0, ()), Scripted([]))
    assert rows(plan, block, cells) == [("0", "free", "0"), ("0", "pro", "0")]


def test_stages_and_noise_go_to_each_set_in_turn() -> None:
    plan, block = both("SELECT plan, count(*), count(DISTINCT age) FROM users GROUP BY ROLLUP (plan)")
    asked: list[tuple[int, KeptKeys]] = []

    def run(stage: int, kept: KeptKeys) -> RawResult:
        asked.append((stage, kept))
        return RawResult(0, ())

    cells = publish_plan(plan, run, Counted())
    assert [stage for stage, _ in asked] == [0, 1, 2, 3] == list(range(len(plan.stages)))
    assert [(c.key, c.moments, c.parts) for c in cells.cells] == [
        ((0,), (1,), ((2,),)), ((1, "free"), (3,), ((5,),)), ((1, "pro"), (4,), ((6,),)),
    ]  # fmt: skip
    assert len(rows(plan, block, cells)) == 3


def test_totals_become_the_sums_of_their_parts_and_setting_keeps_what_was_drawn() -> None:
    plan, block = both("SELECT plan, count(*) FROM users GROUP BY ROLLUP (plan)")
    cells = published(plan, [(0, 33)], [(0, "free", 10), (0, "pro", 20)])
    assert [r[1] for r in rows(plan, block, cells)] == ["11", "21", "32"]
    assert [r[1] for r in rows(plan, block, cells, is_consistent=False)] == ["10", "20", "33"]
    negative = published(plan, [(0, -9)], [(0, "free", 3), (0, "pro", -18)])
    assert [r[1] for r in rows(plan, block, negative)] == ["0", "0", "0"]
    assert [r[1] for r in rows(plan, block, negative, nonnegative=False)] == ["5", "-16", "-11"]


@pytest.mark.parametrize(("of", "sign"), [("amount", 1), ("-amount", -1), ("amount - 500", 0)])
def test_sums_of_one_sign_agree_and_keep_it(of: str, sign: int) -> None:
    plan, block = both(f"SELECT status, sum({of}) FROM orders GROUP BY ROLLUP (status)")
    turned = sign or 1
    cells = published(plan, [(0, turned * 4)], [(0, "paid", turned * 9), (0, "refunded", -turned * 5)])
    raw = [float(r[1] or "nan") for r in rows(plan, block, cells, nonnegative=False)]
    found = [float(r[1] or "nan") for r in rows(plan, block, cells)]
    assert raw[3] == pytest.approx(sum(raw[:3]), rel=1e-6)
    assert found[3] == pytest.approx(sum(found[:3]), rel=1e-6)
    assert found[3] == pytest.approx(raw[3], rel=1e-6)
    assert min(turned * v for v in raw) < 0
    if sign:
        assert min(sign * v for v in found) == 0
    else:
        assert found == raw


def test_sums_and_averages_are_of_the_same_rows_and_intervals_know_that_they_agree() -> None:
    plan, block = both("SELECT plan, sum(age), avg(age), hush.sd(count(*)), hush.low(count(*)), hush.high(count(*)),"
                       " count(*) FROM users WHERE age IS NOT NULL GROUP BY ROLLUP (plan)")  # fmt: skip
    one = plan.plans[0]
    index = {type(m).__name__: i for i, m in enumerate(one.vector.moments)}
    prepared = []
    for of in plan.plans:
        stage = []
        for key in of.public_keys:
            moments = [0] * len(of.vector.moments)
            moments[index["RowCount"]] = round((3000 if key else 7500) / of.units_per_grid[index["RowCount"]])
            stage.append((0, *key, *moments))
        prepared.append(tuple(stage))
    cells = publish_plan(plan, lambda stage, _: RawResult(0, prepared[stage]), Scripted([]))
    shown = rows(plan, block, cells)
    counts = [float(r[-1] or 0) for r in shown]
    assert counts == [3500, 3500, 7000]
    assert [r[1] for r in shown] == [str(55 * int(c)) for c in counts]
    assert {r[2] for r in shown} == {"55"} or all(float(r[2] or 0) == 55 for r in shown)
    for row, count, number in zip(shown, counts, (1, 1, 0), strict=True):
        drawn = plan.plans[number].sds[index["RowCount"]]
        sd = drawn * (2 / 3) ** 0.5  # of a total, and of as noisy a sum of two parts, a third is gained
        low, high = float(row[4] or 0), float(row[5] or 0)
        assert float(row[3] or 0) == pytest.approx(sd)
        assert (low + high) / 2 == pytest.approx(count, rel=1e-3)
        assert high - low == pytest.approx(2 * 1.96 * sd, rel=5e-3)


def test_totals_never_derive_from_hidden_keys() -> None:
    """One city is kept in one set only: it is in no sum. The total of all knows nothing of cities."""
    plan, block = both("SELECT city, plan, count(*) FROM users GROUP BY ROLLUP (city, plan)")
    assert [s.keys for s in plan.sets] == [(), (0,), (0, 1)]
    part, whole = (p.sds[p.vector.moments.index(RowCount(TRUE, TRUE))] for p in (plan.plans[2], plan.plans[1]))
    moved = 9 * part**2 / (whole**2 + 2 * part**2)
    oslo = [(0, "Oslo", "free", 40), (0, "Oslo", "pro", 41), (1, "Oslo", None, 80)]
    hidden = [(0, "Bergen", "free", 1000), (0, "Bergen", "pro", 1000), (1, "Bergen", None, -5)]
    cells = published(plan, [(0, 2100)], [(0, "Bergen", 2000), (0, "Oslo", 90)], [*oslo, *hidden])
    free, pro, *totals = rows(plan, block, cells)
    assert totals == [("Bergen", None, "2000"), ("Oslo", None, str(round(81 + 2 * moved))), (None, None, "2100")]
    assert (free[:2], pro[:2]) == (("Oslo", "free"), ("Oslo", "pro"))
    parts = [int(row[2] or 0) for row in (free, pro)]
    assert sum(parts) == round(81 + 2 * moved)
    assert abs(parts[0] - 40 - moved) < 1


def test_sets_without_an_order_agree_but_for_rounding() -> None:
    plan, block = both("SELECT plan, age, count(*) FROM users WHERE age IN (1, 2) AND height IN (5, 6)"
                       " GROUP BY GROUPING SETS ((plan, age), (age, height), (plan), (age), (height))")  # fmt: skip
    assert len(plan.sets) == 5
    stages: list[list[tuple[object, ...]]] = [[(0, *k, 10) for k in one.plan.public_keys] for one in plan.sets]
    cells = published(plan, *stages)
    assert len(rows(plan, block, cells)) == len(cells.cells)


def test_an_answer_of_too_many_groups_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, _ = both("SELECT city, count(*) FROM users GROUP BY GROUPING SETS ((city), ())")
    monkeypatch.setattr(noisy, "MOST_CELLS", 2)
    with pytest.raises(BadGroups, match="too many groups"):
        published(plan, [(0, 4)], [(0, "Oslo", 2), (0, "Bergen", 2)])
