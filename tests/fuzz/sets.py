"""One query with grouping sets over one world: each set keeps a release's promises, and all cost what is charged."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

from proxy.analysis.analyse import analyse
from proxy.errors import HushError
from proxy.plan.release_plan import PlanContext, Threshold
from proxy.plan.sets.sets import GroupingSet, SetsPlan, plan_block
from proxy.plan.vector.moments import Moment
from proxy.plan.words.explain_sets import explain_plan, output_noises, plan_lines
from proxy.policy.model import Accounting
from proxy.release.noisy import NoisyCells
from proxy.release.raw import KeptKeys, RawResult
from proxy.release.sets import finish_plan, publish_plan
from proxy.sql.query.block import BoundBlock
from tests.fuzz.checks import SLACK, Broken, Raw, spelled
from tests.fuzz.examine import Examiner, NoNoise
from tests.fuzz.parts import stages
from tests.fuzz.planning import bind
from tests.oracle.bounded import Exact
from tests.oracle.together import TogetherOracle

_MANY_KEYS = 400  # more public keys than this are not published one by one here

Totals = dict[tuple[object, ...], Fraction]


class SetsExaminer(Examiner):
    """Examines queries with grouping sets over one world."""

    def sensitivity(self, query: str, context: PlanContext) -> None:
        """What is charged covers what each set publishes. Raises Broken, HushError when the query is refused."""
        plan = self._planned(query, context)[0]
        _check_charge(plan, context)
        for one in plan.plans:
            self.check_plan(one)

    def meaning(self, query: str, context: PlanContext) -> None:
        """Every set means what it means alone, and totals are the sums of their parts. Raises as `sensitivity`."""
        plan, bound = self._planned(query, context)
        expected = self._bounded_together(plan, bound, context)
        raw = [self.check_meaning(one, expected.get(n)) for n, one in enumerate(plan.plans)]
        _check_totals(plan, raw)
        if sum(len(p.public_keys) for p in plan.plans) <= _MANY_KEYS:
            self._check_published(plan, bound)

    def _bounded_together(
        self, plan: SetsPlan, bound: BoundBlock, context: PlanContext
    ) -> dict[int, tuple[Exact, bool]]:
        """What sets that bound a unit alike must give, and whether that answers the query."""
        if not plan.together or not plan.sets[plan.together[0]].plan.vector.moments:
            return {}
        block, sets = bound.block, [plan.sets[n] for n in plan.together]
        keys = sorted({k for s in sets for k in s.keys})
        finest = analyse(replace(block, keys=tuple(block.keys[k] for k in keys), sets=()), context.tables,
                         context.unique, context.privacy, context.lowered, block.keys)  # fmt: skip
        places = [tuple(keys.index(k) for k in s.keys) for s in sets]
        oracle = TogetherOracle([s.plan for s in sets], places, finest, self.tables, self.world.privacy.time_zone)
        is_answer = oracle.changes_nothing()
        constant = [bool(s.keys) and s.plan.analysed.has_constant_keys for s in sets]  # declared so, whatever is true
        return {
            n: (exact, is_answer and not c) for n, exact, c in zip(plan.together, oracle.exact(), constant, strict=True)
        }

    def _planned(self, query: str, context: PlanContext) -> tuple[SetsPlan, BoundBlock]:
        try:
            bound = bind(self.world, query)
            plan = plan_block(bound.block, context)
        except HushError:
            raise
        except Exception as error:
            raise Broken(f"planning raised {type(error).__name__}: {error}") from error
        if not isinstance(plan, SetsPlan):
            raise Broken("the sets are not planned together")
        return plan, bound

    def _check_published(self, plan: SetsPlan, bound: BoundBlock) -> None:
        """Every row of every set is there, with or without totals that agree, and can be stored and told."""
        sql = [stage for one in plan.plans for stage in stages(one)]
        everybody = self.databases.everybody()

        def run(stage: int, kept: KeptKeys) -> RawResult:
            columns: list[list[object]] = [list(c) for c in kept.columns] or sql[stage][1]
            return RawResult(0, tuple(self.databases.run(sql[stage][0], everybody, columns)))

        cells = publish_plan(plan, run, NoNoise())
        if NoisyCells.of_payload(cells.payload()).payload() != cells.payload():
            raise Broken("a stored release does not read back")
        sizes = [sum(c.key[0] == n for c in cells.cells) for n in range(len(plan.sets))]
        for number, one in enumerate(plan.plans):
            if not isinstance(one.selection, Threshold) and sizes[number] != len(one.public_keys):
                raise Broken("a public key is missing or stands twice")
        for is_consistent in (True, False):
            release = finish_plan(plan, cells, bound.columns, is_consistent=is_consistent, nonnegative=True,
                                  time_zone=self.world.privacy.time_zone)  # fmt: skip
            if release.rows != sum(sizes[n] for n in plan.shown):
                raise Broken("a row of a set is missing")
            if any(len(c.values) != release.rows for c in release.columns):
                raise Broken("columns of a release differ in length")
        told = plan_lines(explain_plan(plan, self.world.privacy))
        if not told or len(output_noises(plan)) != len(plan.sets) * len(bound.block.aggregates):
            raise Broken("a set is not told of")


def _check_charge(plan: SetsPlan, context: PlanContext) -> None:
    """The sets together cost what the statement may cost, and the noise of each covers its bound at its share."""
    if sum(p.cost.pico for p in plan.plans) != context.pico or plan.cost.pico != context.pico:
        raise Broken("the shares of the sets are not the charge")
    if sum(p.cost.atto for p in plan.plans) > context.atto_for_keys:
        raise Broken("the sets together hide their keys with more delta than is charged")
    is_pure = context.privacy.accounting is Accounting.PURE
    left = Fraction(context.pico, 10**12) - sum(Fraction(p.pico, 10**12) for one in plan.plans for p in one.parts)
    for one in plan.plans:
        if one.vector.moments:
            moved = Fraction(one.scale) * Fraction(one.sensitivity) / 2**40
            left -= moved if is_pure else moved * moved / 2
    if left < 0:
        raise Broken("the noise of the sets is too small for the charge")


def _check_totals(plan: SetsPlan, raw: list[Raw]) -> None:
    """Where totals are said to be sums of their parts, the exact ones are, but for what truncation takes."""
    for family in plan.families():
        for total, parts in permutations(family, 2):
            if set(plan.sets[total].keys) < set(plan.sets[parts].keys):
                for moment in plan.additive(family):
                    _check_total(plan.sets[total], raw[total], plan.sets[parts], raw[parts], moment)


def _check_total(total: GroupingSet, ours: Raw, parts: GroupingSet, theirs: Raw, moment: Moment) -> None:
    whole, whole_step = _values(total, ours, total, moment)
    added, added_step = _values(parts, theirs, total, moment)
    for key in whole.keys() | added.keys():
        left, right = whole.get(key, Fraction(0)), added.get(key, Fraction(0))
        if abs(left - right) > whole_step + added_step + (SLACK - 1) * (abs(left) + abs(right)):
            raise Broken(f"the total {float(left)} of {key} is not the sum {float(right)} of its parts")


def _values(one: GroupingSet, raw: Raw, by: GroupingSet, moment: Moment) -> tuple[Totals, Fraction]:
    """A moment added up by the keys of a set, in its own unit, and how far truncation may have moved one."""
    index = one.plan.vector.moments.index(moment)
    unit = Fraction(one.plan.units_per_grid[index])
    places = [one.keys.index(k) for k in by.keys]
    found: Totals = {}
    cells = 0
    for row in raw:
        if row[0] == 0:
            key = tuple(spelled(row[1 + p]) for p in places)
            value = row[1 + len(one.keys) + index]
            found[key] = found.get(key, Fraction(0)) + unit * (value if isinstance(value, int) else 0)
            cells += 1
    return found, unit * _UNITS * max(1, cells)


_UNITS = 64  # more than a world has
