"""How is one private statement charged, computed and answered?

Plan, reserve, execute, noise, store, finish: in that order, each statement under one policy version.
Runs in worker threads; nothing here awaits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType

from proxy.analysis.keys import PrivateKey
from proxy.dp.accounting import knob_pico, pool_atto
from proxy.dp.selection import delta_share
from proxy.engines.base import Cancellation
from proxy.errors import HushError, PolicyForbids, Unsupported
from proxy.ledger.base import Question
from proxy.plan.charge import Cost, Reserved
from proxy.plan.derive import Derived
from proxy.plan.explain_sets import output_noises
from proxy.plan.learned import usable
from proxy.plan.outputs import OutputNoise
from proxy.plan.release_plan import PlanContext, ReleasePlan
from proxy.plan.sets import Plan, plan_block
from proxy.release.derived import finish_derived
from proxy.release.finish import Release
from proxy.release.noisy import NoisyCells
from proxy.release.sets import finish_plan, publish_plan
from proxy.release.store import Missing, Stored
from proxy.session.asker import Asker
from proxy.session.payment import WHOLE, Stage, note_end, noting_failure, pay
from proxy.session.price import release_key
from proxy.session.settings import Settings
from proxy.session.target import is_met, shown_of, smallest, unmet
from proxy.sql.algebra import types_in
from proxy.sql.block import BoundBlock, bind_block
from proxy.sql.constants import Bindings, Constants
from proxy.sql.dialects import dialect_of
from proxy.sql.parse import limited_depth
from proxy.sql.split import BlockText, Split
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
class Answer:
    """One release for each block, what was charged for this stage, and the stage after it."""

    releases: tuple[Release, ...]
    items: tuple[Reserved | Stored, ...]
    next: Stage
    is_charged: bool


def plan_statement(
    query: Split, asker: Asker, settings: Settings, parameters: Bindings, now: datetime, share: int = 0
) -> Planned:
    """Bind and plan every block of a statement. Costs nothing. Raises HushError.

    share: what each release may cost if earlier stages of the statement have decided it.
    """
    with limited_depth():
        return _plan(query, asker, settings, Constants(parameters, now), share)


def _plan(query: Split, asker: Asker, settings: Settings, constants: Constants, share: int) -> Planned:
    catalog = asker.version.catalog(asker.login)
    blocks = []
    for text in query.blocks:
        with _pointing_at(text):
            blocks.append(bind_block(text, catalog, constants, query.text))
    if share or not settings.target.amount or not blocks:
        return _at(settings.epsilon, query, tuple(blocks), asker, settings, share)
    return _near_enough(lambda epsilon: _at(epsilon, query, tuple(blocks), asker, settings), asker, settings)


def _at(
    epsilon: float, query: Split, blocks: tuple[BoundBlock, ...], asker: Asker, settings: Settings, share: int = 0
) -> Planned:
    """The statement planned at an epsilon."""
    version, privacy = asker.version, asker.version.policy.privacy
    share = share or share_of(knob_pico(privacy, epsilon), len({b.block for b in blocks}))
    context = PlanContext(
        tables=version.policy.tables,
        unique=version.unique,
        privacy=privacy,
        lowered=replace(settings.lowered, learned=usable(version.learned, privacy, share)),
        pico=share,
        atto_for_keys=atto_for_keys(asker, share),
        salt=version.salt,
        shares=settings.shares,
        dialect=dialect_of(version.policy.source),
    )
    plans = []
    for text, bound in zip(query.blocks, blocks, strict=True):
        with _pointing_at(text):
            plans.append(plan_block(bound.block, context))
            _check_groups(bound, plans[-1])
    return Planned(
        blocks=blocks,
        plans=tuple(plans),
        outputs=tuple(o for p in _distinct(plans) for o in output_noises(p)),
        types=frozenset[SqlType]().union(*(types_in(b.block) for b in blocks)),
        epsilon=epsilon,
    )


def _check_groups(bound: BoundBlock, plan: Plan) -> None:
    """Whether all groups are shown that a public table has. Raises Unsupported."""
    keys = plan.analysed.keys if isinstance(plan, ReleasePlan) else ()
    if bound.keeps_groups and any(isinstance(k, PrivateKey) for k in keys):
        raise Unsupported(
            "all groups of a public table can be shown only where its values are known",
            hint="Declare values or bounds of the grouping columns in the policy, or use JOIN.",
        )


def _near_enough(at: Callable[[float], Planned], asker: Asker, settings: Settings) -> Planned:
    """The statement at the smallest epsilon that makes it as accurate as hush.target_error says."""
    target, largest = settings.target, asker.version.policy.privacy.max_query_epsilon
    most = min(largest, settings.max_charge or largest)
    precise = at(largest)
    sources = asker.dataset.known.sources(asker.owner)
    shown = tuple(s for p in precise.distinct() for s in shown_of(p, sources, lambda of: _shown_to(of, asker)))

    def meets(epsilon: float) -> bool:
        try:
            planned = at(epsilon)
        except PolicyForbids:
            return False  # too little to be divided among the parts; the largest is not
        return is_met(target, planned.outputs, shown)

    is_possible = is_met(target, precise.outputs, shown)
    if not is_possible or not meets(most):
        raise unmet(target, most, smallest(meets, largest) if is_possible else None)
    is_lasting = not target.is_share and not any(o.is_per_row for o in precise.outputs)
    return replace(at(smallest(meets, most)), is_lasting=is_lasting)


def _shown_to(plan: Plan, asker: Asker) -> Stored | None:
    """The release of a plan if all accounts of the asker paid for it."""
    found = asker.dataset.ledger.seen(asker.accounts, release_key(plan, asker.version))
    return found if isinstance(found, Stored) else None


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


def atto_for_keys(asker: Asker, pico: int) -> int:
    """The least share over the accounts, so that no account's pool runs out before its rho."""
    privacy = asker.version.policy.privacy
    pool = pool_atto(privacy)
    limited = [a.limit.pico for a in asker.accounts if a.limited and a.limit.pico > 0]
    if not limited:
        return delta_share(pool, pico, max(pico, knob_pico(privacy, privacy.max_query_epsilon)))
    return min(delta_share(pool, min(pico, limit), limit) for limit in limited)


def answer_statement(
    query: Split,
    planned: Planned,
    asker: Asker,
    settings: Settings,
    cancellation: Cancellation,
    text: str,
    stage: Stage = WHOLE,
) -> Answer:
    """Reserve, execute, add noise, store, finish, settle. Raises HushError; what was reserved stays charged."""
    plans = tuple(p for p in planned.distinct() if p.fingerprint not in stage.cells)
    question = Question(login=asker.version.user_name(asker.login), query=text, at=datetime.now(UTC))
    keys = () if settings.is_fresh else tuple(release_key(p, asker.version) for p in plans)
    with asker.dataset.underway.alone(keys, cancellation):
        paid = pay(plans, asker, settings, question, stage)
        with noting_failure(paid.stage, asker.dataset.ledger):
            computed = {
                plan.fingerprint: _compute(plan, item, asker, settings, cancellation)
                for plan, item in zip(plans, paid.items, strict=True)
            }
    cells = {**stage.cells, **computed}
    with noting_failure(paid.stage, asker.dataset.ledger):
        nonnegative = settings.is_nonnegative and not query.feeds_aggregation
        finishing = _Finishing(planned, cells, asker, cancellation, settings.is_consistent, nonnegative)
        releases = tuple(finishing.release(place) for place in range(len(planned.blocks)))
        asker.dataset.ledger.settle(paid.stage.statement)
    note_end(paid.stage, asker.dataset.ledger)
    asker.dataset.known.add(asker.owner, plans)
    receipts = paid.stage.receipts[len(stage.receipts) :]
    is_charged = any(c.pico for r in receipts for c in r.charged) or any(isinstance(i, Reserved) for i in paid.items)
    return Answer(releases=releases, items=paid.items, next=replace(paid.stage, cells=cells), is_charged=is_charged)


@dataclass(frozen=True, slots=True)
class _Finishing:
    """How the answer of each block is made of what was released. cells: by fingerprint."""

    planned: Planned
    cells: Mapping[str, NoisyCells]
    asker: Asker
    cancellation: Cancellation
    is_consistent: bool
    nonnegative: bool

    def release(self, place: int) -> Release:
        plan, columns = self.planned.plans[place], self.planned.blocks[place].columns
        zone, check = self.asker.version.policy.privacy.time_zone, self.cancellation.check
        derived = self.planned.derived.get(place)
        if derived is None:
            return finish_plan(
                plan, self.cells[plan.fingerprint], columns, is_consistent=self.is_consistent,
                nonnegative=self.nonnegative, time_zone=zone, check=check,
            )  # fmt: skip
        found = [self.cells[p.fingerprint] for p in derived.plans]
        return finish_derived(
            derived, found, columns, nonnegative=self.nonnegative, time_zone=zone, check=check,
            is_consistent=self.is_consistent,
        )  # fmt: skip


def is_paid(planned: Planned, asker: Asker, settings: Settings) -> bool:
    """Whether a statement would be answered from the store, free."""
    ledger, keys = asker.dataset.ledger, [release_key(p, asker.version) for p in planned.distinct()]
    return not settings.is_fresh and all(isinstance(ledger.seen(asker.accounts, k), Stored) for k in keys)


def _compute(
    plan: Plan, item: Reserved | Stored, asker: Asker, settings: Settings, cancellation: Cancellation
) -> NoisyCells:
    """What was stored, or a new release. A ticket may turn out to have paid for what is stored: that is copied."""
    if isinstance(item, Stored):
        return NoisyCells.of_payload(item.payload)
    version, store = asker.version, asker.dataset.ledger.store
    found = Missing() if settings.is_fresh else store.get(item.key)
    if isinstance(found, Stored):
        store.put(item, found.payload)
        return NoisyCells.of_payload(found.payload)
    limit_s, noise = version.policy.limits.statement_timeout_s, asker.dataset.noise[plan.distribution]
    with version.engine.stages(item, timeout_s=limit_s, cancellation=cancellation) as stages:
        cells = publish_plan(plan, stages.rows, noise, cancellation.check)
    store.put(item, cells.payload())
    return cells
