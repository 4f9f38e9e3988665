"""A release's stages: the vector first, then each part for the keys that were kept, each with noise of its own."""

from __future__ import annotations

import math
from datetime import datetime

from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.release_plan import ReleasePlan
from proxy.release.finish import finish
from proxy.release.noisy import NoisyCell, NoisyCells
from proxy.release.parts import publish_release
from proxy.release.raw import KeptKeys, RawResult
from proxy.sql.query.block import Carries, Injected
from proxy.sqltypes import SqlType
from tests.thresholds import lowered
from tests.unit.plan.shop import plan
from tests.unit.release.make import Counted, Scripted

MIXED = "SELECT city, plan, count(*), count(DISTINCT age) FROM users GROUP BY 1, 2"


class Engine:
    """Gives prepared rows for each stage and remembers what it was asked."""

    def __init__(self, *stages: tuple[tuple[object, ...], ...]) -> None:
        self._stages = stages
        self.asked: list[tuple[int, KeptKeys]] = []

    def run(self, stage: int, kept: KeptKeys) -> RawResult:
        self.asked.append((stage, kept))
        return RawResult(0, self._stages[stage])


def parts(cells: NoisyCells) -> dict[tuple[object, ...], tuple[tuple[int, ...], ...]]:
    return {c.key: c.parts for c in cells.cells}


def test_every_public_key_gets_a_count_of_its_own_noise() -> None:
    of = plan("SELECT plan, count(DISTINCT age), count(DISTINCT city) FROM users GROUP BY 1")
    engine = Engine((("free", 10**6), ("elsewhere", 9)), (("pro", 10**9),))
    noise = Counted()
    cells = publish_release(of, engine.run, noise)
    assert engine.asked == [(0, KeptKeys()), (1, KeptKeys())]
    drawn = list(range(1, 5))
    assert parts(cells) == {("free",): ((10**6 + drawn[0],), (drawn[2],)), ("pro",): ((drawn[1],), (10**9 + drawn[3],))}
    assert all(c.moments == () for c in cells.cells)


def test_parts_are_computed_for_the_keys_that_the_vector_kept() -> None:
    of = lowered(plan(MIXED), 1.0)
    size, many = len(of.vector.moments), 10**15
    counts = {"Oslo": many, None: many, "few": 0}
    vector = (
        *((0, city, "pro", *(1,) * size) for city in counts),
        *((1, city, None, *(n,) * size) for city, n in counts.items()),
    )
    engine = Engine(vector, (("Oslo", "pro", 5), (None, "free", 6)))
    cells = publish_release(of, engine.run, Scripted([]))
    assert engine.asked == [(0, KeptKeys()), (1, KeptKeys((("Oslo", None),)))]
    assert {repr(k): p for k, p in parts(cells).items()} == {
        "('Oslo', 'free')": ((0,),), "('Oslo', 'pro')": ((5,),), "(NullKey(), 'free')": ((6,),),
        "(NullKey(), 'pro')": ((0,),),
    }  # fmt: skip


def test_nothing_is_computed_for_no_keys() -> None:
    engine = Engine(())
    assert publish_release(plan(MIXED), engine.run, Scripted([])) == NoisyCells(())
    assert engine.asked == [(0, KeptKeys())]


def test_a_stored_release_has_its_parts() -> None:
    cells = NoisyCells((NoisyCell((datetime(2024, 1, 1),), (1, -2), ((3,), (4, 5))), NoisyCell(("x",), (6,))))
    assert NoisyCells.of_payload(cells.payload()) == cells
    assert NoisyCells.of_payload(b'[[[["s","x"]],[1,2]]]') == NoisyCells((NoisyCell(("x",), (1, 2)),))


def shown(of: ReleasePlan, counts: list[int], *, nonnegative: bool) -> list[list[str | None]]:
    columns = (
        Injected(Carries.VALUE, 0, SqlType.INT8), Injected(Carries.LOW, 0, SqlType.FLOAT8),
        Injected(Carries.HIGH, 0, SqlType.FLOAT8), Injected(Carries.SD, 0, SqlType.FLOAT8),
    )  # fmt: skip
    (part,) = of.parts
    assert isinstance(part, DistinctPart)
    results = [((round(n * part.scale),),) for n in counts]
    cells = NoisyCells(tuple(NoisyCell(k, (), r) for k, r in zip(of.public_keys, results, strict=True)))
    release = finish(of, cells, columns, nonnegative=nonnegative, time_zone="UTC")
    return [list(values) for values in zip(*(c.values for c in release.columns), strict=True)]


def test_a_distinct_count_is_finished_as_a_count() -> None:
    of = plan("SELECT plan, count(DISTINCT age) FROM users GROUP BY 1")
    (part,) = of.parts
    assert isinstance(part, DistinctPart)
    sd = part.sd
    for nonnegative, expected in ((True, ["68", "0"]), (False, ["70", "-2"])):
        rows = shown(of, [70, -2], nonnegative=nonnegative)
        assert [row[0] for row in rows] == expected
        value, low, high, noise = rows[0]
        assert float(str(noise)) == sd
        assert math.isclose(float(str(high)) - 70, 1.96 * sd, rel_tol=0.01)
        assert float(str(low)) < 70
        assert value is not None
