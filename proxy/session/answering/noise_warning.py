"""How many numbers of an answer are smaller than their noise, or are none because of it?

Decided from noisy numbers and public noise, so saying so tells nothing more. Numbers of groups that the client's own
HAVING or LIMIT leaves out count as well.
"""

from __future__ import annotations

from typing import NamedTuple

from proxy.dp.accuracy import half_width_95
from proxy.pipeline.plans import Planned
from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.noise import noise_of
from proxy.plan.vector.recipes import Apart, Count, Finish, Mean, Relation, Spread, Total
from proxy.release.finish import Release
from proxy.session.answering.answer import StageAnswer
from proxy.sql.query.block import Carries

_MOST_ROWS = 2_000  # of a release that is looked at: an answer to a person has fewer


class Doubt(NamedTuple):
    """Numbers that are smaller than half their 95 % interval, of all counts and sums.

    empty: averages and the like that are NULL, as their noise left nothing of them, of all in answers of several rows.
    far: quantiles whose rank may be off by more than a tenth of the rows, of all.
    """

    lost: int
    all: int
    empty: int = 0
    averages: int = 0
    far: int = 0
    quantiles: int = 0


def doubt_of(planned: Planned, answer: StageAnswer) -> Doubt:
    """The counts and sums of an answer that cannot be told from 0. Averages are NULL then."""
    found = [Doubt(0, 0)]
    for place, (plan, release) in enumerate(zip(planned.plans, answer.releases, strict=True)):
        shown = planned.derived[place].shown if place in planned.derived else plan
        if shown.several is None and not shown.elects and release.rows <= _MOST_ROWS:
            found += (_of_release(one, release) for one in shown.plans)
            found.append(Doubt(0, 0, far=release.far, quantiles=release.quantiles))
    return Doubt(*(sum(numbers) for numbers in zip(*found, strict=True)))


def _of_release(plan: ReleasePlan, release: Release) -> Doubt:
    lost = count = empty = averages = 0
    for column in release.columns:
        if column.column.carries is not Carries.VALUE:
            continue
        recipe = plan.vector.finishes[column.column.number]
        if isinstance(recipe, (Mean, Spread, Relation)) and release.rows > 1:
            empty += column.values.count(None)
            averages += release.rows
        least = _reach(recipe, plan)
        values = [abs(float(v)) for v in column.values if v is not None] if least > 0 else []
        count += len(values)
        lost += sum(v < least for v in values)
    return Doubt(lost, count, empty, averages)


def _reach(recipe: Finish, plan: ReleasePlan) -> float:
    """Half the 95 % interval of a count or a sum; 0 for what has another kind of noise."""
    match recipe:
        case Count() | Total():
            return half_width_95(plan.distribution, noise_of(recipe, plan.sds))
        case Apart(part):
            counted = plan.parts[part]
            assert isinstance(counted, DistinctPart), "what is counted apart is computed by such a part"
            return half_width_95(plan.distribution, counted.sd)
        case _:
            return 0.0
