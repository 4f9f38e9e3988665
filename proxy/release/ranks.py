"""Which values answer quantiles, MIN and MAX: what is chosen from exact histograms, and how is it shown?

The one place where choices meet private results. Nothing of a histogram is read after its cells were chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from proxy.analysis.keys import NULL_KEY, KeyValue
from proxy.dp.accuracy import Noisy
from proxy.dp.brackets import brackets
from proxy.dp.quantiles import Choose, Weights, is_near_end, select
from proxy.errors import BadGroups
from proxy.plan.parts.modes import ModePart
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.recipes import Ranked
from proxy.release.keys import identity, read_integer, read_key
from proxy.release.noisy import NoisyCells
from proxy.release.raw import RawResult
from proxy.sql.query.block import Carries

MOST_CELLS = 1 << 22  # of all groups that are shown

RankedRows = list[tuple[object, ...]]
_CONFIDENCE = 0.95
_FAR_OFF = 0.1  # of the rows: from where an answer is another one than was asked for


def check_sizes(plan: ReleasePlan, cells: NoisyCells) -> None:
    """Refuse histograms that would take the memory of all sessions. Looks at keys that are shown, at nothing else."""
    of_ranks = (p.ladder.cells for p in plan.parts if isinstance(p, QuantilePart))
    of_modes = (p.poll.candidates for p in plan.parts if isinstance(p, ModePart))
    most = max((*of_ranks, *of_modes), default=0)
    if len(cells.cells) * most > MOST_CELLS:
        raise BadGroups(
            "the answer has too many groups for quantiles, MIN, MAX and mode()",
            detail=f"At most {MOST_CELLS // most} groups can each have one. What was reserved stays charged.",
            hint="Group by fewer or coarser expressions.",
        )


def chosen(
    part: QuantilePart, cells: NoisyCells, raw: RawResult, choose: Choose, check: Callable[[], None]
) -> list[tuple[int, ...]]:
    """The number of the chosen cell of each fraction, then those of the ends that are wanted, for each emitted key.

    Claim: for databases that differ in one unit (or the policy's group) this is close at the part's share of the cost,
    if `raw` is the result of the part's own SQL and `choose` draws as it is told. See docs/claims/quantiles.md.
    """
    rows: dict[tuple[object, ...], RankedRows] = {}
    for row in raw.rows:
        rows.setdefault(row[:-2], []).append(row)
    found: dict[tuple[object, ...], RankedRows] = {}
    for key, of in rows.items():  # few keys of many rows; but NaN is told to be another each time
        found.setdefault(identity(read_key(v) for v in key), []).extend(of)
    results = []
    for cell in cells.cells:
        check()
        weights = _weights(part, found.get(identity(cell.key), []))
        results.append((*select(part.ladder, weights, choose), *brackets(part.ladder, weights, choose)))
    return results


def _weights(part: QuantilePart, rows: RankedRows) -> Weights:
    size = part.ladder.cells
    weights = np.zeros(size, dtype=np.int64)
    for *_, cell, weight in rows:
        place = read_integer(cell)
        if not 0 <= place < size:
            raise TypeError("a row from the engine is in no cell")
        weights[place] += read_integer(weight)
    return weights


@dataclass(frozen=True, slots=True)
class RankedColumn:
    """One quantile in each cell, NULL where the noisy number of rows says that there is none, and its 95 % interval.

    quantiles: how many there are; far: of them, that may be further from what was asked for than a tenth of the
    noisy number of rows.
    """

    values: list[KeyValue]
    lows: list[KeyValue]
    highs: list[KeyValue]
    quantiles: int = 0
    far: int = 0

    def shown(self, carries: Carries) -> list[KeyValue]:
        match carries:
            case Carries.VALUE:
                return self.values
            case Carries.LOW:
                return self.lows
            case Carries.HIGH:
                return self.highs
            case _:
                return [NULL_KEY] * len(self.values)


def ranked_column(recipe: Ranked, part: QuantilePart, cells: NoisyCells, numbers: list[Noisy]) -> RankedColumn:
    """What is shown of one quantile. numbers: the noisy rows that it is of."""
    intervals = [_interval(recipe, part, cell.parts[recipe.part]) for cell in cells.cells]
    lows, highs = [low for low, _ in intervals], [high for _, high in intervals]
    found = _answers(recipe, part, cells, numbers)
    off = part.ladder.distance_up(part.asked.fractions[recipe.place], _CONFIDENCE)
    rows = [n.value for v, n in zip(found, numbers, strict=True) if v != NULL_KEY]
    return RankedColumn(found, lows, highs, len(rows), sum(off > _FAR_OFF * n for n in rows))


def _answers(recipe: Ranked, part: QuantilePart, cells: NoisyCells, numbers: list[Noisy]) -> list[KeyValue]:
    offset = part.ladder.offset if is_near_end(part.asked.fractions[recipe.place]) else 0
    found: list[KeyValue] = []
    for cell, number in zip(cells.cells, numbers, strict=True):
        is_there = number.value >= max(1.0, 2 * number.sd, offset)
        found.append(part.grid.value(cell.parts[recipe.part][recipe.place]) if is_there else NULL_KEY)
    return found


def _interval(recipe: Ranked, part: QuantilePart, chosen: tuple[int, ...]) -> tuple[KeyValue, KeyValue]:
    """The ends of one quantile's interval, and of the grid where none were drawn or there is no such end.

    It holds the answer: ends and answer are drawn each for itself.
    """
    fractions, bracketed, last = part.ladder.fractions, part.ladder.bracketed, part.grid.cells - 1
    cell, fraction = chosen[recipe.place], fractions[recipe.place]
    if fraction not in bracketed:
        return part.grid.ends(0, last)
    place = len(fractions) + 2 * bracketed.index(fraction)
    low, high = chosen[place : place + 2]
    return part.grid.ends(max(0, min(low, cell)), min(last, max(high, cell)))
