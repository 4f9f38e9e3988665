"""Does a plan's exact vector keep its promises on one world's data?

Every promise is checked on integers, without tolerance other than the one the claims page states.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from proxy.analysis.keys import PrivateKey
from proxy.dp.accounting import ATTO
from proxy.plan.release_plan import ReleasePlan, Threshold
from proxy.plan.vector.moments import UnitCount
from proxy.policy.model import Accounting, Neighbors
from tests.fuzz.duck import Databases
from tests.fuzz.worlds import World
from tests.oracle.shown import of_any, unit_length

# Relative error of the doubles that bring a unit's cells to the grid; see docs/claims/integer-grid.md.
SLACK = 1 + Fraction(1, 2**30)

UNITS = (2, 3)  # the first column of what is said of units: how many are cut, and how many are not

Coordinate = tuple[object, ...]
Vector = Mapping[Coordinate, int]
Raw = list[tuple[object, ...]]


class Broken(AssertionError):
    """A promise does not hold; the message says which."""


@dataclass(frozen=True, slots=True)
class Case:
    """One plan over one world."""

    world: World
    plan: ReleasePlan
    databases: Databases

    def raw(self, units: Iterable[int]) -> Raw:
        return self.databases.run(self.plan.sql, units) if self.plan.vector.moments else []


def spelled(key: object) -> object:
    """A key value that equals another iff type and text are the same; 0.0 and -0.0 differ."""
    return (type(key).__name__, repr(key))


def vector_of(plan: ReleasePlan, raw: Raw) -> Vector:
    """All exact integers a noisy release would be made of, by coordinate."""
    size = len(plan.analysed.keys)
    found: dict[Coordinate, int] = {}
    for row in raw:
        key = tuple(spelled(k) for k in row[1 : 1 + size])
        for index, value in enumerate(row[1 + size :]):
            coordinate = (row[0], key, index)
            if coordinate in found:
                raise Broken(f"two result rows for one key: {key}")
            found[coordinate] = 0 if value is None else _integer(value)
    return found


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Broken(f"a moment is not an integer: {type(value).__name__}")


def parts_of(plan: ReleasePlan, raw: Raw) -> dict[object, int]:
    """The private parts of a result with their unit counts on the grid."""
    selection = plan.selection
    if not isinstance(selection, Threshold):
        return {}
    size = len(plan.analysed.keys)
    is_private = [isinstance(k, PrivateKey) for k in plan.analysed.keys]
    has_parts = any(isinstance(m, UnitCount) and m.per_part for m in plan.vector.moments)
    found: dict[object, int] = {}
    for row in raw:
        if row[0] in UNITS or (has_parts and row[0] != 1):
            continue
        part = tuple(spelled(k) for k, p in zip(row[1 : 1 + size], is_private, strict=True) if p)
        if part in found:
            raise Broken(f"two unit counts for one private part: {part}")
        value = row[1 + size + selection.moment]
        found[part] = 0 if value is None else _integer(value)
    return found


def difference(left: Vector, right: Vector) -> Vector:
    return {c: d for c in left.keys() | right.keys() if (d := left.get(c, 0) - right.get(c, 0))}


# --- the promises ---------------------------------------------------------------------------------------


def check(case: Case) -> None:
    """All promises. Raises Broken; an engine error is a broken promise too."""
    everybody = case.databases.everybody()
    whole = case.raw(everybody)
    alone = {u: case.raw((u,)) for u in sorted(everybody)}
    check_additivity(case.plan, whole, alone)
    for unit, raw in alone.items():
        check_unit_norm(case, vector_of(case.plan, raw), f"unit {unit}")
        check_parts(case, raw)
        check_shown(case, raw, f"unit {unit}")
    group = frozenset(range(min(case.world.privacy.group_size, len(everybody))))
    check_shown(case, case.raw(group), f"{len(group)} units")
    leaving = [frozenset((u,)) for u in sorted(everybody)][:2]
    if case.world.privacy.group_size > 1 and len(everybody) > 1:
        leaving.append(frozenset((0, 1)))
    for gone in leaving:
        check_neighbours(case, whole, case.raw(everybody - gone), len(gone), alone, gone)


def check_neighbours(
    case: Case, whole: Raw, smaller: Raw, gone: int, alone: Mapping[int, Raw], leaving: frozenset[int]
) -> None:
    """The vector moves by at most S * B per unit that leaves; keys disappear only if it alone held them."""
    moved = difference(vector_of(case.plan, whole), vector_of(case.plan, smaller))
    _check_norm(case, moved, gone, f"{sorted(leaving)} leave")
    held = {p for u, raw in alone.items() if u not in leaving for p in keys_of(case.plan, raw)}
    if keys_of(case.plan, smaller) != held:
        raise Broken("keys that other units hold depend on who leaves")


def check_unit_norm(case: Case, vector: Vector, who: str) -> None:
    """A unit alone weighs at most B."""
    _check_norm(case, vector, 1, who)


def _check_norm(case: Case, moved: Vector, units: int, what: str) -> None:
    """How far is told by the charge and the policy alone, not by what the plan calls its bound."""
    limit = Fraction(_length(case)) * units * SLACK
    if case.world.privacy.accounting is Accounting.PURE:
        size, most = Fraction(sum(abs(d) for d in moved.values())), limit
    else:
        size, most = Fraction(sum(d * d for d in moved.values())), limit * limit
    if size > most:
        raise Broken(f"{what}: the vector moves by {float(size / most):.6g} of what is allowed")


def _length(case: Case) -> float:
    """Of the vector of a unit, in released integers, at most."""
    plan, privacy = case.plan, case.world.privacy
    takers = 1 + len(plan.parts)
    pico = plan.cost.pico // takers + plan.cost.pico % takers
    return unit_length(
        pico, privacy.group_size, is_exchanged=privacy.neighbors is Neighbors.REPLACE_ONE,
        is_pure=privacy.accounting is Accounting.PURE,
    )  # fmt: skip


def check_additivity(plan: ReleasePlan, whole: Raw, alone: Mapping[int, Raw]) -> None:
    """The database's vector is the sum of what each unit gives alone: nobody's cells depend on others."""
    total: dict[Coordinate, int] = defaultdict(int)
    for raw in alone.values():
        for coordinate, value in vector_of(plan, raw).items():
            total[coordinate] += value
    moved = difference(vector_of(plan, whole), total)
    if moved:
        raise Broken(f"units are not independent: {len(moved)} coordinates differ, by up to "
                     f"{max(abs(d) for d in moved.values())}")  # fmt: skip
    if plan.analysed.keys and keys_of(plan, whole) != {k for raw in alone.values() for k in keys_of(plan, raw)}:
        raise Broken("the keys of the whole are not the keys of its units")


def keys_of(plan: ReleasePlan, raw: Raw) -> set[object]:
    """The keys of an engine's rows; none where all are public, which are shown whatever is found."""
    size = len(plan.analysed.keys)
    if not any(isinstance(k, PrivateKey) for k in plan.analysed.keys):
        return set()
    return {(row[0], *(spelled(k) for k in row[1 : 1 + size])) for row in raw if row[0] not in UNITS}


def check_parts(case: Case, raw: Raw) -> None:
    """A unit alone holds at most K private parts, each with a count of at most a(t) = min(1, B / (w_n sqrt t))."""
    plan, selection = case.plan, case.plan.selection
    if not isinstance(selection, Threshold):
        return
    parts = parts_of(plan, raw)
    if len(parts) > plan.analysed.bounds.keys:
        raise Broken(f"a unit holds {len(parts)} private parts, more than K")
    if not parts:
        return
    weight = plan.allocation.weights[selection.moment]
    most = min(1.0, plan.allocation.unit_norm / (weight * math.sqrt(len(parts))))
    if max(parts.values()) > plan.scale * weight * most * float(SLACK):
        raise Broken("a unit adds more to a private part's count than its threshold assumes")


def check_shown(case: Case, raw: Raw, who: str) -> None:
    """Private parts that nobody else holds show with the probability that is charged as delta, at most."""
    plan, selection = case.plan, case.plan.selection
    if not isinstance(selection, Threshold):
        return
    unit = Fraction(plan.scale) * Fraction(plan.allocation.weights[selection.moment])
    others = max(0, case.world.privacy.min_units - 1) * math.floor(unit)  # as many may hold them too
    chance = of_any(parts_of(plan, raw).values(), math.ceil(Fraction(selection.tau) * unit) - others)
    if chance > plan.cost.atto / ATTO:
        raise Broken(f"{who}: private parts show {chance * ATTO / plan.cost.atto:.6g} times as likely as is charged")
