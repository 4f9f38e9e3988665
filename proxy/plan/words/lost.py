"""Which answers of a release are expected to be lost, in their noise or below the threshold of groups?

From profiles, the price, the policy and the text, never from data: it can be said before anything is charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from proxy.analysis.keys import Key, PublicKey
from proxy.analysis.units import UnitOf
from proxy.dp.accounting import epsilon_spent
from proxy.plan.profile.usual import Usual
from proxy.plan.release_plan import ReleasePlan, Threshold
from proxy.plan.sets.sets import Plan
from proxy.plan.vector.noise import sd_of
from proxy.plan.vector.recipes import Finish, Mean, Relation, Spread
from proxy.plan.words.describe import counted
from proxy.plan.words.outputs import OutputNoise, output_noise
from proxy.policy.figures import figure
from proxy.policy.model import Privacy
from proxy.sql.algebra.describe import describe_scalar
from proxy.sql.algebra.nodes import columns_of

_OF_95 = 1.96  # standard deviations that half of an interval is
_MOST = 0.5  # of a size, that noise may be
_USEFUL = 0.15  # of a size: noise that leaves a number of use, also where a larger epsilon goes with a larger bound


@dataclass(frozen=True, slots=True)
class Lost:
    """what: is expected to say nothing. instead: what would help."""

    what: str
    instead: str


def lost_in(plans: Iterable[Plan], privacy: Privacy) -> tuple[Lost, ...]:
    """What is said of each such answer.

    Claim: a function of the profiles, the price, the policy and the text.
    """
    every = (p for plan in plans for p in plan.plans)
    return tuple(dict.fromkeys(found for plan in every for found in _of_release(plan, privacy)))


def _of_release(plan: ReleasePlan, privacy: Privacy) -> Iterator[Lost]:
    usual = plan.usual
    if usual is None:
        return
    if isinstance(plan.selection, Threshold) and usual.units < plan.selection.tau:
        words = (
            f"a usual group has about {_about(usual.units)} {privacy.unit}s, and those of fewer than about"
            f" {_about(plan.selection.tau)} are not shown"
        )
        yield Lost(words, _instead(plan, privacy, plan.selection.tau / max(usual.units, 1.0)))
        return
    for noise, recipe, size in zip(output_noise(plan), plan.vector.finishes, usual.sizes, strict=True):
        sd = _sd(noise, recipe, plan)
        if size > 0.0 and sd > _MOST * size:
            yield Lost(_words(noise, recipe, size, sd, usual), _instead(plan, privacy, sd / (_USEFUL * size)))


def _sd(noise: OutputNoise, recipe: Finish, plan: ReleasePlan) -> float:
    """Of what is compared with the usual size: of averages and statistics that of their number of rows."""
    if isinstance(recipe, (Mean, Spread, Relation)):
        return sd_of(recipe.number, plan.sds)
    return noise.half_width_95 / _OF_95 if noise.is_of_rows else noise.sd


def _words(noise: OutputNoise, recipe: Finish, size: float, sd: float, usual: Usual) -> str:
    where = " in a usual group" if usual.groups > 1 else ""
    is_of_rows = noise.is_of_rows or isinstance(recipe, (Mean, Spread, Relation))
    what = f"of about {_about(size)} rows{where}" if is_of_rows else f"about {_about(size)}{where}"
    return f"{noise.aggregate} is expected to be all noise: {what}, with a noise of {_about(sd)}"


def _instead(plan: ReleasePlan, privacy: Privacy, times: float) -> str:
    """times: as much epsilon makes an answer of use."""
    epsilon = epsilon_spent(privacy, plan.cost.pico) * times
    found = [f"SET hush.epsilon = {_about(epsilon)}"] if epsilon <= privacy.max_query_epsilon else []
    keys = [k for k in plan.analysed.keys if _values(k) > 1]
    if keys:
        key = max(keys, key=_values)
        listed = f" ({counted(len(key.values), 'value')})" if isinstance(key, PublicKey) else ""
        found.append(f"GROUP BY something coarser than {describe_scalar(key.scalar)}{listed}")
    owned = plan.analysed.owned
    units = owned.unit.columns if isinstance(owned.unit, UnitOf) else ()
    if any(columns_of(c) - {*units} for c in owned.block.where):  # more than that there is a unit
        found.append("a WHERE that keeps more rows")
    return f"What helps: {', or '.join(found) or 'more data'}."


def _values(key: Key) -> float:
    """How many a key has, as far as that is known."""
    return len(key.values) if isinstance(key, PublicKey) else math.inf


def _about(number: float) -> str:
    return figure(number, 2)
