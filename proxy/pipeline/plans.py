"""Which releases does a statement ask for that was cut at the noise line?

The one way from a cut statement to its plans: for answers and EXPLAIN, for `hushql explain`, for profiles of units,
and for tests. Costs nothing. Claim: what is planned, how long that takes and how it fails depend on the text,
its parameters, the policy, public facts and the asker's terms; nothing here can see a row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from proxy.analysis.keys import PrivateKey
from proxy.analysis.local import reads_local
from proxy.dp.accounting import knob_pico
from proxy.errors import HushError, PolicyForbids, Unsupported
from proxy.pipeline.outline import Cuts, Outline
from proxy.pipeline.premises import Premises, Terms, atto_for_keys
from proxy.pipeline.target import Shown, is_met, smallest, unmet
from proxy.plan.charge import Cost
from proxy.plan.profile.learned import usable
from proxy.plan.release_plan import PlanContext
from proxy.plan.reuse.derive import Derived
from proxy.plan.sets.sets import Plan, plan_block
from proxy.plan.words.explain_sets import output_noises
from proxy.plan.words.outputs import OutputNoise
from proxy.sql.algebra.constants import Constants, InputText, Unread
from proxy.sql.algebra.nodes import types_in
from proxy.sql.query.block import BoundBlock, bind_block
from proxy.sql.query.split import BlockText
from proxy.sql.syntax.parse import limited_depth
from proxy.sqltypes import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The releases of one statement: a bound block and its plan for each piece of the noise line.

    outputs: the public accuracy of each number. types: of all that is computed below the noise line. derived: by place,
    the blocks whose answer is computed from another question's release, which is then the plan in that place. epsilon:
    what it was planned at. is_lasting: whether it depends on nothing but the statement, its settings and its asker.
    """

    blocks: tuple[BoundBlock, ...]
    plans: tuple[Plan, ...]
    outputs: tuple[OutputNoise, ...]
    types: frozenset[SqlType]
    epsilon: float = 0.0
    is_lasting: bool = True
    derived: Mapping[int, Derived] = field(default_factory=lambda: MappingProxyType({}))

    def distinct(self) -> tuple[Plan, ...]:
        """Plans that publish different numbers, those included that answers are computed from."""
        return _distinct((*(p for d in self.derived.values() for p in d.plans), *self.plans))

    def cost(self) -> Cost:
        total = Cost(0, 0)
        for plan in self.distinct():
            total += plan.cost
        return total


def together(parts: Sequence[Planned]) -> Planned:
    """What several stages of a statement release."""
    if len(parts) == 1:
        return parts[0]
    return Planned(
        blocks=tuple(b for p in parts for b in p.blocks),
        plans=tuple(plan for p in parts for plan in p.plans),
        outputs=tuple(dict.fromkeys(o for p in parts for o in p.outputs)),
        types=frozenset[SqlType]().union(*(p.types for p in parts)),
    )


def _distinct(plans: Sequence[Plan]) -> tuple[Plan, ...]:
    return tuple({p.fingerprint: p for p in plans}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One statement to be planned.

    Raises HushError, and Unread if PostgreSQL is to read texts of it first.
    share: what each release may cost if that is decided already, as by earlier stages of the statement.
    """

    query: Outline
    premises: Premises
    terms: Terms
    constants: Constants
    share: int = 0


def plan_statement(cuts: Cuts, task: Task) -> Planned:
    """Bind and plan every block of a statement, at the epsilon of its terms.

    Raises HushError, and Unread if PostgreSQL is to read texts of it first.
    """
    with limited_depth():
        return _Planner(cuts, task).at(task.terms.epsilon)


def plan_near_enough(cuts: Cuts, task: Task, precise: Sequence[OutputNoise], shown: Sequence[Shown | None]) -> Planned:
    """The statement at the smallest epsilon that makes it as accurate as its terms want. Raises HushError.

    precise: its accuracy at the largest epsilon. shown: what its asker was shown of each of its numbers.
    """
    target, largest = task.terms.target, task.premises.privacy.max_query_epsilon
    most = min(largest, task.terms.max_charge or largest)
    with limited_depth():
        planner = _Planner(cuts, task)

        def meets(epsilon: float) -> bool:
            try:
                planned = planner.at(epsilon)
            except PolicyForbids:
                return False  # too little to be divided among the parts; the largest is not
            return is_met(target, planned.outputs, shown)

        is_possible = is_met(target, precise, shown)
        if not is_possible or not meets(most):
            raise unmet(target, most, smallest(meets, largest) if is_possible else None)
        found = planner.at(smallest(meets, most))
        is_lasting = found.is_lasting and not target.is_share and not any(o.is_per_row for o in precise)
        return replace(found, is_lasting=is_lasting)


class _Planner:
    """A statement whose blocks are bound, to be planned at one epsilon or another."""

    def __init__(self, cuts: Cuts, task: Task) -> None:
        """Raises HushError, Unread."""
        self._task = task
        self._texts = cuts.of(task.premises, task.query.text).blocks
        self._blocks = self._bound()

    def _bound(self) -> tuple[BoundBlock, ...]:
        catalog, source = self._task.premises.catalog, self._task.query.text
        found, unread = [], list[InputText]()
        for text in self._texts:
            try:
                with _pointing_at(text):
                    found.append(bind_block(text, catalog, self._task.constants, source))
            except Unread as wanted:
                unread += wanted.texts
        if unread:
            raise Unread(tuple(dict.fromkeys(unread)))
        return tuple(found)

    def at(self, epsilon: float) -> Planned:
        """The statement planned at an epsilon. Raises HushError."""
        task, blocks = self._task, self._blocks
        different = len({b.block for b in blocks if not reads_local(b.block)})
        share = task.share or share_of(knob_pico(task.premises.privacy, epsilon), different)
        context = context_of(task.premises, task.terms, share)
        plans = []
        for text, bound in zip(self._texts, blocks, strict=True):
            with _pointing_at(text):
                plans.append(plan_block(bound.block, context))
                if task.premises.has_looked:
                    _check_groups(bound, plans[-1])
        return Planned(
            blocks=blocks,
            plans=tuple(plans),
            outputs=tuple(o for p in _distinct(plans) for o in output_noises(p)),
            types=frozenset[SqlType]().union(*(types_in(b.block) for b in blocks)),
            epsilon=epsilon,
            is_lasting=not any(b.reads_clock for b in blocks),
        )


def context_of(premises: Premises, terms: Terms, share: int) -> PlanContext:
    """What a release rests on that may cost so much."""
    privacy = premises.privacy
    return PlanContext(
        tables=premises.tables,
        unique=premises.unique,
        privacy=privacy,
        lowered=replace(terms.lowered, learned=usable(premises.profiles, privacy, share)),
        pico=share,
        atto_for_keys=atto_for_keys(terms.limits, privacy, share),
        salt=premises.salt,
        shares=terms.shares,
        dialect=premises.dialect,
        profiles=premises.profiles,
        bound=terms.bound,
    )


def _check_groups(bound: BoundBlock, plan: Plan) -> None:
    """Whether all groups are shown that a public table has. Raises Unsupported."""
    one = plan.plans[0]
    keys = () if plan.several is not None else one.analysed.keys
    if one.elects:
        keys = keys[:-1]  # the last is what is counted for mode(), of which each group shows one value
    if bound.keeps_groups and any(isinstance(k, PrivateKey) for k in keys):
        raise Unsupported(
            "all groups of a public table can be shown only where its values are known",
            hint="Declare values or bounds of the grouping columns in the policy, or use JOIN.",
        )


@contextlib.contextmanager
def _pointing_at(text: BlockText) -> Iterator[None]:
    """Give errors that name no position that of the SELECT they are about."""
    try:
        yield
    except HushError as error:
        error.position = error.position or text.span.start + 1
        raise


def share_of(whole: int, releases: int) -> int:
    """What each of so many releases may cost. Raises PolicyForbids if that is nothing."""
    share = whole // max(1, releases)
    if share == 0:
        raise PolicyForbids(
            f"epsilon is too small for the {releases} releases of this statement",
            hint="Raise hush.epsilon, or ask in several statements.",
        )
    return share
