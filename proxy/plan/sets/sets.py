"""How are several grouping sets of one SELECT planned as one release?

The joint vector of all sets is that of each set, divided by the set's own bound: then every set weighs the same in the
norm, and its noise is that of a release of its own at an equal share of the charge. So each set is planned as such a
release; all are charged, stored and given again as one. See docs/claims/grouping-sets.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from proxy.analysis.analyse import Analysed, analyse
from proxy.analysis.key_values import MOST_KEYS
from proxy.analysis.keys import Key, PrivateKey, PublicKey
from proxy.analysis.local import reads_local
from proxy.dp.mechanisms import Distribution
from proxy.dp.selection import KeyRule
from proxy.errors import BadGroups
from proxy.plan.charge import Cost
from proxy.plan.parts.parts import shares
from proxy.plan.release_plan import PlanContext, ReleasePlan, plan_analysed, plan_release, statement_of, with_sql
from proxy.plan.sets.shared_bounds import Summed, bounded_by_parts, render_together
from proxy.plan.sql.unit_totals import possible_totals
from proxy.plan.unpromised import plan_unpromised
from proxy.plan.vector.moments import Moment, UnitCount
from proxy.plan.vector.vector import NO_TOTALS
from proxy.sql.algebra.nodes import Block

MOST_KEYS_OF_A_SET = 10  # what is made consistent is taken apart into all their combinations

KeyNumbers = tuple[int, ...]  # of keys, ascending


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingSet:
    """One set. keys: numbers of its keys in the block. plan: of what a statement with this set alone would release."""

    keys: KeyNumbers
    plan: ReleasePlan

    @property
    def private(self) -> KeyNumbers:
        """Those of its keys that are private."""
        return self._those(PrivateKey)

    @property
    def public(self) -> KeyNumbers:
        return self._those(PublicKey)

    def _those(self, kind: type[Key]) -> KeyNumbers:
        return tuple(n for n, k in zip(self.keys, self.plan.analysed.keys, strict=True) if isinstance(k, kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetsPlan:
    """One release of several grouping sets, each once.

    shown: for each set of the statement, in its order, the number of the set that answers it.
    together: numbers of sets whose statements bound a unit alike, since it may be in several of their groups.
    """

    sets: tuple[GroupingSet, ...]
    shown: tuple[int, ...]
    together: tuple[int, ...] = ()
    is_unpromised: ClassVar[bool] = False  # local tables have no grouping sets

    @property
    def several(self) -> SetsPlan:
        """Itself; None for the plan of one set."""
        return self

    @property
    def plans(self) -> tuple[ReleasePlan, ...]:
        return tuple(s.plan for s in self.sets)

    @property
    def distribution(self) -> Distribution:
        return self.sets[0].plan.distribution

    @property
    def cost(self) -> Cost:
        """Of all sets together."""
        total = Cost(0, 0)
        for plan in self.plans:
            total += plan.cost
        return total

    @property
    def key_rules(self) -> tuple[KeyRule, ...]:
        """Of each set with private keys."""
        return tuple(rule for plan in self.plans for rule in plan.key_rules)

    @property
    def stages(self) -> tuple[str, ...]:
        """The SQL of each set after that of the one before."""
        return tuple(sql for plan in self.plans for sql in plan.stages)

    @property
    def fingerprint(self) -> str:
        """Equal for plans that would publish the same noisy numbers."""
        content = [[s.keys, s.plan.fingerprint] for s in self.sets]
        return hashlib.sha256(json.dumps(["grouping sets", content]).encode()).hexdigest()

    def families(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of sets of which totals are sums of parts, for every unit: those with the same private keys.

        A unit may be in several groups of sets with private keys: then each bounds it in its own way, and nothing is
        said of them.
        """
        found: dict[KeyNumbers, list[int]] = {}
        for number, one in enumerate(self.sets):
            found.setdefault(one.private, []).append(number)
        return tuple(tuple(f) for f in found.values() if len(f) > 1 and self._is_alike(f))

    def _is_alike(self, family: list[int]) -> bool:
        """Whether a unit counts alike in all these sets, whatever its rows are."""
        return set(family) <= set(self.together) or _count_alike([self.sets[n].plan.analysed for n in family])

    def additive(self, family: tuple[int, ...]) -> tuple[Moment, ...]:
        """The moments of a family's sets whose totals are the sums of their parts.

        A unit counts once in each group that it is in, so its counts add up only where it is in one.
        """
        plans = [self.sets[n].plan for n in family]
        constant = all(p.analysed.has_constant_keys for p in plans)
        return tuple(
            m
            for m in plans[0].vector.moments
            if all(m in p.vector.moments for p in plans) and (constant or not isinstance(m, UnitCount))
        )


Plan = ReleasePlan | SetsPlan  # told apart by `several`, where they must be


def promised(plans: Iterable[Plan]) -> tuple[Plan, ...]:
    """Those that are charged; the others are about local tables."""
    return tuple(p for p in plans if not p.is_unpromised)


def unpromised(plans: Iterable[Plan]) -> tuple[ReleasePlan, ...]:
    """Those that nothing is charged for."""
    return tuple(one for p in plans if p.is_unpromised for one in p.plans)


def plan_block(block: Block, context: PlanContext) -> Plan:
    """Plan the release of a block with or without grouping sets. Raises HushError."""
    if reads_local(block):
        return plan_unpromised(block, context)
    return _plan_sets(block, context) if block.sets else plan_release(block, context)


def _plan_sets(block: Block, context: PlanContext) -> SetsPlan:
    """Every set at an equal share of the charge; the delta is shared by the sets with private keys."""
    sets = sorted(set(block.sets), key=lambda s: (len(s), s))
    if len(sets[-1]) > MOST_KEYS_OF_A_SET:
        raise BadGroups(
            f"a grouping set has more than {MOST_KEYS_OF_A_SET} expressions",
            hint="Group by fewer expressions, or in several statements.",
        )
    analysed = [_analysed(block, numbers, context) for numbers in sets]
    finest = _finest(block, sets, analysed, context)
    plans = _plans(analysed, sets, finest, context)
    if sum(len(p.public_keys) for p in plans) > MOST_KEYS:
        raise BadGroups(
            f"the grouping sets have more than {MOST_KEYS} possible public keys together",
            hint="Group by fewer columns, or by coarser values such as date_trunc('month', x).",
        )
    found = tuple(GroupingSet(keys=s, plan=p) for s, p in zip(sets, plans, strict=True))
    together = finest.numbers if finest is not None else ()
    return SetsPlan(sets=found, shown=tuple(sets.index(s) for s in block.sets), together=together)


def _plans(
    analysed: Sequence[Analysed], sets: Sequence[KeyNumbers], finest: _Finest | None, context: PlanContext
) -> list[ReleasePlan]:
    pico = shares(context.pico, len(sets), has_vector=False)[1]
    atto = context.atto_for_keys // max(1, sum(bool(a.private_keys) for a in analysed))
    # a bound that is chosen for one set would cut a unit otherwise than that of another
    others = finest.numbers[1:] if finest is not None else ()  # the first counts cut units for all of them
    contexts = [
        replace(context, pico=p, atto_for_keys=atto, may_choose=False, may_count_cut=n not in others)
        for n, p in enumerate(pico)
    ]
    bounded = [finest.bounded(n, a) if finest is not None else a for n, a in enumerate(analysed)]
    each = list(zip(bounded, contexts, analysed, strict=True))
    plans = [plan_analysed(b, of, possible_totals(b, of.lowered.learned), a) for b, of, a in each]
    if len({_row_moments(p) for p in plans}) > 1:  # a sum is bounded alike in all sets, or its parts would not add up
        plans = [plan_analysed(b, of, NO_TOTALS, a) for b, of, a in each]
    return plans if finest is None else finest.rendered(plans, context)


def _row_moments(plan: ReleasePlan) -> frozenset[Moment]:
    return frozenset(m for m in plan.vector.moments if not isinstance(m, UnitCount))


def _analysed(block: Block, numbers: KeyNumbers, context: PlanContext) -> Analysed:
    """Some keys as a block of their own, of rows within the domains of all keys."""
    one = replace(block, keys=tuple(block.keys[n] for n in numbers), sets=())
    return analyse(one, context.tables, context.unique, context.privacy, context.lowered, block.keys)


# --- sets that bound a unit alike -------------------------------------------------------------------------------


def _count_alike(analysed: Sequence[Analysed]) -> bool:
    """Whether a unit is in one group of each of these sets, by the same rows."""
    return all(a.has_constant_keys or a.owned.is_one_row_per_unit for a in analysed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finest:
    """Groups by all keys of some sets without private ones. numbers: of these sets. places: of their keys."""

    numbers: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]
    analysed: Analysed

    def bounded(self, number: int, analysed: Analysed) -> Analysed:
        """A set with the bounds that it has beside the others."""
        if number not in self.numbers:
            return analysed
        return bounded_by_parts(analysed, self.places[self.numbers.index(number)], self.analysed)

    def rendered(self, plans: list[ReleasePlan], context: PlanContext) -> list[ReleasePlan]:
        """The plans with statements that bound a unit alike."""
        of = [statement_of(plans[n], context) for n in self.numbers]
        if not of[0].moments:
            return plans
        texts = render_together(replace(of[0], analysed=self.analysed), list(map(Summed, self.places, of)))
        changed = dict(zip(self.numbers, texts, strict=True))
        told = plans[self.numbers[0]].left_out
        return [replace(with_sql(p, changed[n]), left_out=told) if n in changed else p for n, p in enumerate(plans)]


def _finest(
    block: Block, sets: Sequence[KeyNumbers], analysed: Sequence[Analysed], context: PlanContext
) -> _Finest | None:
    """The groups in which sets without private keys are bounded together; None where a unit counts alike anyway."""
    numbers = tuple(n for n, a in enumerate(analysed) if not a.private_keys)
    if len(numbers) < 2 or _count_alike([analysed[n] for n in numbers]):
        return None
    keys = tuple(sorted({k for n in numbers for k in sets[n]}))
    places = tuple(tuple(keys.index(k) for k in sets[n]) for n in numbers)
    return _Finest(numbers=numbers, places=places, analysed=_analysed(block, keys, context))
