"""What were the groups of a randomized key before the randomization, and how far off is what is computed of them?

Groups are released by their stored values; what is here is done to noisy numbers. A group of true values is a weighted
sum of all groups of stored ones. See docs/claims/local-answers.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proxy.analysis.channels import ResponseChannel
from proxy.analysis.estimated import key_channels, key_growth
from proxy.analysis.evaluate import MISSING, MissingValue
from proxy.analysis.keys import NULL_KEY, key_identity
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.recipes import Linear, ResponseError
from proxy.release.noisy import NoisyCells
from proxy.sql.algebra.nodes import Span

MomentLists = list[list[float]]


@dataclass(frozen=True, slots=True)
class Solved:
    """The moments of each group as they were before the randomization.

    plan: with the noise that they have then. squared: the same with squared weights of the stored groups.
    """

    plan: ReleasePlan
    vectors: MomentLists
    squared: MomentLists

    def variance(self, response: ResponseError, place: int, ratio: float = 0.0) -> float:
        """Of an estimate in one group, over the randomization; never negative. ratio: of an average."""
        found = math.fsum(v * ratio**power for power, v in enumerate(self.parts(response, place)))
        return max(0.0, found)

    def parts(self, response: ResponseError, place: int) -> list[float]:
        """The parts of the variance by the power of the ratio."""
        squared, plain = self.squared[place], self.vectors[place]
        return [_value(p.second, squared) - _value(p.first, plain) for p in response.parts]


def _value(form: Linear, vector: Sequence[float]) -> float:
    return math.fsum(c * vector[i] for i, c in form.terms)


def solved(plan: ReleasePlan, cells: NoisyCells, vectors: MomentLists) -> Solved:
    """Groups of stored values as groups of true ones; as they are where no key is randomized."""
    squared, growth = vectors, key_growth(plan.analysed.owned.block)
    for place, channel in enumerate(key_channels(plan.analysed.owned.block)):
        if channel is not None:
            groups = _groups(cells, place, channel)
            vectors = _apart(vectors, groups, channel.on, channel.off)
            squared = _apart(squared, groups, [on * on for on in channel.on], [off * off for off in channel.off])
    known = plan if growth == 1.0 else replace(plan, agreed=tuple(sd * growth for sd in plan.sds))
    return Solved(known, vectors, squared)


def _groups(cells: NoisyCells, place: int, channel: ResponseChannel) -> list[list[tuple[int, int]]]:
    """Cells that are alike but for one key: the number of each, with that of its value."""
    values = (NULL_KEY if v is MISSING else v for v in channel.values)
    numbers = {key_identity(v): i for i, v in enumerate(values) if not isinstance(v, (MissingValue, Span))}
    found: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for at, cell in enumerate(cells.cells):
        rest = tuple(key_identity(k) for i, k in enumerate(cell.key) if i != place)
        value = numbers.get(key_identity(cell.key[place]))
        if value is not None:
            found.setdefault(rest, []).append((at, value))
    return list(found.values())


def _apart(
    vectors: MomentLists, groups: list[list[tuple[int, int]]], on: Sequence[float], off: Sequence[float]
) -> MomentLists:
    found = list(vectors)
    for group in groups:
        whole = [math.fsum(column) for column in zip(*(vectors[at] for at, _ in group), strict=True)]
        for at, value in group:
            more = on[value] - off[value]
            found[at] = [off[value] * t + more * own for t, own in zip(whole, vectors[at], strict=True)]
    return found
