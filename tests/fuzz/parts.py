"""Do the parts of a release, computed beside its vector, keep their promises on one world's data?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from proxy.analysis.keys import PrivateKey
from proxy.dp.accounting import PICO
from proxy.dp.mechanisms import SCALE, Distribution
from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.parts.modes import ModePart
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.release_plan import ReleasePlan
from proxy.policy.model import Neighbors
from tests.fuzz.checks import SLACK, UNITS, Broken, Raw, spelled
from tests.fuzz.duck import Databases
from tests.fuzz.worlds import World
from tests.oracle.bounded import Oracle
from tests.oracle.compare import key_value
from tests.oracle.distinct import DistinctOracle, part_counts

Counts = Mapping[object, int]
Columns = list[list[object]]  # of kept private keys


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one plan over one world, for all but one of the private keys that somebody holds."""

    plan: ReleasePlan
    databases: Databases
    world: World

    def check(self) -> None:
        """What one unit may move, and that the noise covers it. Raises Broken."""
        _check_shares(self.plan)
        everybody = self.databases.everybody()
        kept = self.kept()
        for number, part in enumerate(self.plan.parts):
            match part:
                case DistinctPart():
                    self._check_noise(part)
                    whole = self._counts(number, everybody, kept)
                    for unit in sorted(everybody):
                        alone = self._counts(number, (unit,), kept)
                        _check_alone(part, alone, unit)
                        if unit < 2:
                            _check_without(whole, self._counts(number, everybody - {unit}, kept), alone, unit)
                case QuantilePart() | ModePart():
                    pass  # examined by tests.fuzz.ranked and tests.fuzz.elected
                case _ as never:
                    assert_never(never)

    def _check_noise(self, part: DistinctPart) -> None:
        """S times the bound of all units that neighbours differ in is at most what the share of the charge allows."""
        privacy = self.world.privacy
        units = privacy.group_size * (2 if privacy.neighbors is Neighbors.REPLACE_ONE else 1)
        share, moved = Fraction(part.pico, PICO), Fraction(part.scale) * Fraction(_norm(part)) * units
        is_covered = (
            moved * moved <= Fraction(SCALE) ** 2 * 2 * share
            if part.distribution is Distribution.GAUSSIAN
            else moved <= SCALE * share
        )
        if not is_covered:
            raise Broken("the noise of a distinct count is too small for its bound")

    def check_meaning(self, oracle: Oracle, salt: str) -> None:
        """The engine's results are the oracle's. Raises Broken."""
        kept = self.kept()
        chosen = {tuple(key_value(v) for v in key) for key in zip(*kept, strict=True)}
        private = [isinstance(k, PrivateKey) for k in self.plan.analysed.keys]

        def keeps(key: tuple[object, ...]) -> bool:
            return not any(private) or tuple(k for k, p in zip(key, private, strict=True) if p) in chosen

        for number, part in enumerate(self.plan.parts):
            match part:
                case DistinctPart():
                    engine = part_counts(part, self.rows(number, self.databases.everybody(), kept), key_value)
                    expected = DistinctOracle(oracle, self.plan, part, salt, keeps).counts()
                    if engine != expected:
                        raise Broken(f"distinct values: engine {engine}, oracle {expected}")
                case QuantilePart() | ModePart():
                    pass  # examined by tests.fuzz.ranked and tests.fuzz.elected
                case _ as never:
                    assert_never(never)

    def rows(self, number: int, units: Iterable[int], kept: Columns) -> Raw:
        """What the engine gives for a part."""
        return self.databases.run(self.plan.parts[number].sql, units, kept)

    def kept(self) -> Columns:
        """Private keys as if they had been released: those of everybody's vector, the last one left out."""
        places = [i for i, k in enumerate(self.plan.analysed.keys, start=1) if isinstance(k, PrivateKey)]
        if not places or not self.plan.parts:
            return []
        rows = self.databases.run(self.plan.sql, self.databases.everybody())
        keys = {tuple(spelled(row[i]) for i in places): [row[i] for i in places] for row in rows if row[0] not in UNITS}
        chosen = [keys[k] for k in sorted(keys, key=repr)]
        chosen = chosen[:-1] if len(chosen) > 1 else chosen
        return [list(column) for column in zip(*chosen, strict=True)] or [[] for _ in places]

    def _counts(self, number: int, units: Iterable[int], kept: Columns) -> Counts:
        found: dict[object, int] = {}
        for row in self.rows(number, units, kept):
            key, value = tuple(spelled(k) for k in row[:-1]), row[-1]
            if key in found or not isinstance(value, int):
                raise Broken(f"two results for one key, or none that is an integer: {key}")
            found[key] = value
        return found


def _check_shares(plan: ReleasePlan) -> None:
    """The parts and the vector together cost what is charged."""
    left = plan.cost.pico - sum(p.pico for p in plan.parts)
    if left != 0 if not plan.vector.moments else left <= 0:
        raise Broken(f"the shares of the parts leave {left} for the vector")


def _check_alone(part: DistinctPart, alone: Counts, unit: int) -> None:
    """A unit alone weighs at most its bound, on the grid."""
    limit = Fraction(part.scale) * Fraction(_norm(part)) * SLACK
    is_gaussian = part.distribution is Distribution.GAUSSIAN
    size = sum(v * v for v in alone.values()) if is_gaussian else sum(alone.values())
    if size > (limit * limit if is_gaussian else limit):
        raise Broken(f"unit {unit} moves a distinct count by more than its bound")


def _norm(part: DistinctPart) -> float:
    """C values in each of G groups, T in all: by one unit after another, not by formula."""
    limits, left, total = part.limits, part.limits.in_all, 0
    is_gaussian = part.distribution is Distribution.GAUSSIAN
    for _ in range(limits.groups):
        full = min(limits.values, left)
        left -= full
        total += full * full if is_gaussian else full
    return math.nextafter(math.sqrt(total), math.inf) if is_gaussian else float(total)


def _check_without(whole: Counts, smaller: Counts, alone: Counts, unit: int) -> None:
    """Without a unit each count loses at most what the unit alone would bring, and gains nothing."""
    for key in {*whole, *smaller}:
        moved = whole.get(key, 0) - smaller.get(key, 0)
        if not 0 <= moved <= alone.get(key, 0):
            raise Broken(f"without unit {unit} the distinct count of {key} moves by {moved}")


def stages(plan: ReleasePlan) -> list[tuple[str, Columns]]:
    """Every statement of a plan, those of parts for no keys."""
    nothing: Columns = [[] for k in plan.analysed.keys if isinstance(k, PrivateKey)]
    return [*([(plan.sql, [])] if plan.vector.moments else []), *((p.sql, nothing) for p in plan.parts)]
