"""How is one private statement charged, computed and answered?

Plan, reserve, execute, noise, store, finish: in that order, each statement under one policy version.
Runs in worker threads; nothing here awaits.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType

from proxy.dp.accounting import knob_pico, pool_atto
from proxy.dp.selection import delta_share
from proxy.engines.base import Cancellation
from proxy.errors import HushError, PolicyForbids, QueryCanceled
from proxy.ledger.base import AccountSpent, Ledger, Outcome, Question, Receipt, Wanted
from proxy.metrics import Metrics
from proxy.plan.charge import Account, AccountKind, Cost, Reserved
from proxy.plan.derive import Derived
from proxy.plan.explain_sets import output_noises
from proxy.plan.outputs import OutputNoise
from proxy.plan.release_plan import PlanContext
from proxy.plan.sets import Plan, plan_block
from proxy.policy.model import Privacy
from proxy.release.derived import derived_cells
from proxy.release.finish import Release
from proxy.release.noisy import NoisyCells
from proxy.release.sets import finish_plan, publish_plan
from proxy.release.store import Stored
from proxy.session.dataset import Dataset, Version
from proxy.session.known import Owner
from proxy.session.notices import budget_spent
from proxy.session.price import Due, check_cap, own_cost, release_key, request_of
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
class Asker:
    """Whose statement it is, what it pays with, and who counts it."""

    dataset: Dataset
    version: Version
    login: str
    accounts: tuple[Account, ...]
    metrics: Metrics

    @property
    def owner(self) -> Owner:
        """Under which name it is known what was shown."""
        return self.login, self.version.policy.digest, self.version.policy.data_version


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
        """Plans that publish different numbers."""
        return _distinct(self.plans)

    def cost(self) -> Cost:
        total = Cost(0, 0)
        for plan in self.distinct():
            total += plan.cost
        return total


def _distinct(plans: Sequence[Plan]) -> tuple[Plan, ...]:
    return tuple({p.fingerprint: p for p in plans}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One release for each block, and what was charged."""

    releases: tuple[Release, ...]
    receipt: Receipt


def plan_statement(query: Split, asker: Asker, settings: Settings, parameters: Bindings, now: datetime) -> Planned:
    """Bind and plan every block of a statement. Costs nothing. Raises HushError."""
    with limited_depth():
        return _plan(query, asker, settings, Constants(parameters, now))


def _plan(query: Split, asker: Asker, settings: Settings, constants: Constants) -> Planned:
    catalog = asker.version.catalog(asker.login)
    blocks = []
    for text in query.blocks:
        with _pointing_at(text):
            blocks.append(bind_block(text, catalog, constants, query.text))
    if not settings.target.amount or not blocks:
        return _at(settings.epsilon, query, tuple(blocks), asker, settings)
    return _near_enough(lambda epsilon: _at(epsilon, query, tuple(blocks), asker, settings), asker, settings)


def _at(epsilon: float, query: Split, blocks: tuple[BoundBlock, ...], asker: Asker, settings: Settings) -> Planned:
    """The statement planned at an epsilon."""
    version, privacy = asker.version, asker.version.policy.privacy
    share = share_of(knob_pico(privacy, epsilon), len({b.block for b in blocks}))
    context = PlanContext(
        tables=version.policy.tables,
        unique=version.unique,
        privacy=privacy,
        lowered=settings.lowered,
        pico=share,
        atto_for_keys=_atto_for_keys(asker.accounts, privacy, share),
        salt=version.salt,
        shares=settings.shares,
        dialect=dialect_of(version.policy.source),
    )
    plans = []
    for text, bound in zip(query.blocks, blocks, strict=True):
        with _pointing_at(text):
            plans.append(plan_block(bound.block, context))
    return Planned(
        blocks=blocks,
        plans=tuple(plans),
        outputs=tuple(o for p in _distinct(plans) for o in output_noises(p)),
        types=frozenset[SqlType]().union(*(types_in(b.block) for b in blocks)),
        epsilon=epsilon,
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
    """The release of a plan if the asker's accounts paid for it, that of the session aside."""
    payers = tuple(a for a in asker.accounts if a.kind is not AccountKind.SESSION)
    found = asker.dataset.ledger.seen(payers, release_key(plan, asker.version))
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


def _atto_for_keys(accounts: tuple[Account, ...], privacy: Privacy, pico: int) -> int:
    """The least share over the accounts, so that no account's pool runs out before its rho."""
    pool = pool_atto(privacy)
    limited = [a.limit.pico for a in accounts if a.limited and a.limit.pico > 0]
    if not limited:
        return delta_share(pool, pico, max(pico, knob_pico(privacy, privacy.max_query_epsilon)))
    return min(delta_share(pool, min(pico, limit), limit) for limit in limited)


def answer_statement(
    query: Split, planned: Planned, asker: Asker, settings: Settings, cancellation: Cancellation, text: str
) -> Answer:
    """Reserve, execute, add noise, store, finish, settle. Raises HushError; what was reserved stays charged."""
    ledger = asker.dataset.ledger
    plans = planned.distinct()
    if settings.max_charge:
        check_cap(own_cost(dues(plans, asker, fresh=settings.is_fresh)), settings, asker.version.policy.privacy)
    wanted = tuple(_wanted(p, asker.version) for p in plans)
    question = Question(login=asker.version.user_name(asker.login), query=text, at=datetime.now(UTC))
    keys = () if settings.is_fresh else tuple(one.request.key for one in wanted)
    with asker.dataset.underway.alone(keys, cancellation):
        receipt = _reserve(asker, wanted, question, settings)
        with _outcome_noted(ledger, receipt):
            cells = {
                plan.fingerprint: _compute(plan, item, asker, cancellation)
                for plan, item in zip(plans, receipt.items, strict=True)
            }
    with _outcome_noted(ledger, receipt):
        releases = tuple(
            finish_plan(
                *_read(planned, place, cells),
                block.columns,
                is_consistent=settings.is_consistent,
                nonnegative=settings.is_nonnegative and not query.feeds_aggregation,
                time_zone=asker.version.policy.privacy.time_zone,
                check=cancellation.check,
            )
            for place, block in enumerate(planned.blocks)
        )
        ledger.settle(receipt.statement)
    ledger.note_outcome(receipt.statement, Outcome.ANSWERED)
    asker.dataset.known.add(asker.owner, plans)
    return Answer(releases=releases, receipt=receipt)


def _read(planned: Planned, place: int, cells: Mapping[str, NoisyCells]) -> tuple[Plan, NoisyCells]:
    """How a block's answer is finished, and from which numbers."""
    plan, derived = planned.plans[place], planned.derived.get(place)
    found = cells[plan.fingerprint]
    return (plan, found) if derived is None else (derived.shown, derived_cells(derived, found))


@contextlib.contextmanager
def _outcome_noted(ledger: Ledger, receipt: Receipt) -> Iterator[None]:
    """Note how a statement ends that fails; it stays charged."""
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(HushError):
            cancelled = isinstance(error, QueryCanceled)
            ledger.note_outcome(receipt.statement, Outcome.CANCELLED if cancelled else Outcome.FAILED)
        raise


def _wanted(plan: Plan, version: Version) -> Wanted:
    first, *further = plan.stages
    return Wanted(request_of(plan, version), first, tuple(further))


def dues(plans: Sequence[Plan], asker: Asker, *, fresh: bool) -> tuple[Due, ...]:
    """What each of the asker's accounts would pay for the releases of these plans now."""
    requests = tuple(request_of(p, asker.version) for p in plans)
    costs = asker.dataset.ledger.quote(asker.accounts, requests, fresh=fresh)
    return tuple(Due(account, cost) for account, cost in zip(asker.accounts, costs, strict=True))


def _reserve(asker: Asker, wanted: tuple[Wanted, ...], question: Question, settings: Settings) -> Receipt:
    """Charge the statement, and count how long a charge took."""
    started = time.perf_counter()
    try:
        receipt = asker.dataset.ledger.reserve(asker.accounts, wanted, question, fresh=settings.is_fresh)
    except AccountSpent as error:
        raise budget_spent(error, asker.version.policy.privacy) from None
    if any(cost != Cost(0, 0) for cost in receipt.charged):
        asker.metrics.reserved(time.perf_counter() - started)
    return receipt


def _compute(plan: Plan, item: Reserved | Stored, asker: Asker, cancellation: Cancellation) -> NoisyCells:
    if isinstance(item, Stored):
        return NoisyCells.of_payload(item.payload)
    version = asker.version
    limit_s, noise = version.policy.limits.statement_timeout_s, asker.dataset.noise[plan.distribution]
    with version.engine.stages(item, timeout_s=limit_s, cancellation=cancellation) as stages:
        cells = publish_plan(plan, stages.rows, noise, cancellation.check)
    asker.dataset.ledger.store.put(item, cells.payload())
    return cells
