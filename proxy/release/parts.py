"""How does a whole release come out of its stages: the vector first, then each part for the keys it kept?

What leaves is a function of noisy results and the plan. See docs/claims/distinct.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from proxy.analysis.keys import NullKey, PrivateKey
from proxy.dp.quantiles import Choose
from proxy.dp.samplers import Noise
from proxy.dp.samplers import choose as drawn
from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.parts.modes import ModePart
from proxy.plan.parts.parts import Part
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.release_plan import ReleasePlan
from proxy.release.keys import identity, read_integer, read_key
from proxy.release.modes import drawn_values
from proxy.release.noisy import Check, NoisyCells, draws, every_public_key, publish
from proxy.release.ranks import check_sizes, chosen
from proxy.release.raw import KeptKeys, RawResult

Results = list[tuple[int, ...]]  # of one part, for each cell


def publish_release(
    plan: ReleasePlan,
    run: Callable[[int, KeptKeys], RawResult],
    noise: Noise,
    check: Check = lambda: None,
    choose: Choose = drawn,
) -> NoisyCells:
    """Compute all stages of a plan and add noise to each. run: gives the rows of a stage.

    Claim: for databases that differ in one unit (or the policy's group), the result is (rho, delta)-close at the
    plan's cost, if `run` gives the rows of the plan's own SQL, all of one database: the vector is close at its share
    of the cost, and each part is at its own, whatever keys were kept.
    """
    waiting = list(range(len(plan.stages)))
    has_vector = bool(plan.vector.moments)
    cells = publish(plan, run(waiting.pop(0), KeptKeys()), noise, check) if has_vector else every_public_key(plan)
    if not plan.parts or not cells.cells:
        return cells
    check_sizes(plan, cells)
    kept = _kept(plan, cells)
    results = [
        _results(part, cells, run(stage, kept), noise, check, choose)
        for part, stage in zip(plan.parts, waiting, strict=True)
    ]
    together = zip(cells.cells, zip(*results, strict=True), strict=True)
    return NoisyCells(tuple(replace(cell, parts=parts) for cell, parts in together), cells.cut)


def _kept(plan: ReleasePlan, cells: NoisyCells) -> KeptKeys:
    """The private parts of the keys of emitted cells, each once."""
    places = [i for i, k in enumerate(plan.analysed.keys) if isinstance(k, PrivateKey)]
    keys = [tuple(c.key[i] for i in places) for c in cells.cells]
    columns = zip(*{identity(key): key for key in keys}.values(), strict=True)
    return KeptKeys(tuple(tuple(None if isinstance(v, NullKey) else v for v in column) for column in columns))


def _results(part: Part, cells: NoisyCells, raw: RawResult, noise: Noise, check: Check, choose: Choose) -> Results:
    match part:
        case DistinctPart():
            return _counted(cells, raw, noise, check)
        case QuantilePart():
            return chosen(part, cells, raw, choose, check)
        case ModePart():
            return drawn_values(part, cells, raw, choose, check)
        case _ as never:
            assert_never(never)


def _counted(cells: NoisyCells, raw: RawResult, noise: Noise, check: Check) -> Results:
    """A noisy number for each cell; rows of other keys, and keys without rows, give nothing."""
    exact = {identity(read_key(v) for v in row[:-1]): read_integer(row[-1]) for row in raw.rows}
    found = draws(noise, len(cells.cells), check)
    return [(exact.get(identity(c.key), 0) + draw,) for c, draw in zip(cells.cells, found, strict=True)]
