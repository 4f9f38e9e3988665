"""How is one private statement charged, computed and answered?

Plan, look, reserve, execute, noise, finish, store: in that order, each statement under one policy version.
Runs in worker threads; nothing here awaits. Between finishing and storing there is a wait (`session.grid`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from proxy.engines.base import Cancellation
from proxy.ledger.base import Question
from proxy.pipeline.outline import Outline
from proxy.pipeline.plans import Planned
from proxy.pipeline.settings import Settings
from proxy.plan.charge import AccountKind, Reserved
from proxy.plan.sets.sets import Plan, promised, unpromised
from proxy.release.derived import finish_derived
from proxy.release.finish import Release
from proxy.release.noisy import NoisyCells
from proxy.release.sets import finish_plan
from proxy.release.store import StoredRelease
from proxy.session.answering.attempt import Attempt, attempting
from proxy.session.answering.grid import GridWork
from proxy.session.asker import Asker
from proxy.session.pricing.payment import WHOLE, Paid, Stage, note_end, noting_failure, pay
from proxy.session.pricing.price import release_key


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAnswer:
    """One release for each block, what was charged for this stage, and the stage after it."""

    releases: tuple[Release, ...]
    items: tuple[Reserved | StoredRelease, ...]
    next: Stage


def answer_statement(
    query: Outline,
    planned: Planned,
    asker: Asker,
    settings: Settings,
    cancellation: Cancellation,
    text: str,
    stage: Stage = WHOLE,
) -> GridWork[StageAnswer]:
    """Look, reserve, execute, add noise, finish, wait, store, settle. Raises HushError; what is reserved stays charged.

    Claim (docs/claims/time-grid.md): what follows the wait happens at a time that tells when the private work has
    ended to a step of the grid, and what tells of the end follows the wait.
    """
    wanted = tuple(p for p in planned.distinct() if p.fingerprint not in stage.cells)
    plans, free = promised(wanted), unpromised(wanted)
    question = Question(login=asker.version.user_name(asker.login), query=text, at=datetime.now(UTC))
    keys = () if settings.is_fresh else tuple(release_key(p, asker.version) for p in plans)
    attempt = _attempt(asker, settings, cancellation)
    with asker.dataset.underway.alone(keys, cancellation), attempting(attempt):
        if not stage.tickets and (free or not _are_known(plans, asker, settings)):  # what has tickets is reserved
            attempt.look(wanted, lambda: not free and _are_shown(plans, asker, settings))
            cancellation.check()  # what nobody waits for any more is not charged
        paid = pay(plans, asker, settings, question, stage)
        attempt.hold(paid.items, paid.stage.tickets, stage.shown)
        with noting_failure(paid.stage, asker.dataset.ledger):
            try:
                with attempt.asking():
                    noise = asker.dataset.noise
                    computed = {
                        p.fingerprint: attempt.cells(p, i, noise[p.distribution])
                        for p, i in zip(plans, paid.items, strict=True)
                    }
                    computed |= {p.fingerprint: attempt.unpromised(p) for p in free}
                cells = {**stage.cells, **computed}
                nonnegative = settings.is_nonnegative and not query.feeds_aggregation
                finishing = _Finishing(planned, cells, asker, cancellation, settings.is_consistent, nonnegative,
                                       is_rounded=settings.is_rounded and not query.feeds_aggregation)  # fmt: skip
                releases = tuple(finishing.release(place) for place in range(len(planned.blocks)))
            finally:
                if _is_charged(paid, stage):
                    yield
                attempt.store()
            if paid.stage.statement:  # nothing was charged for local tables alone
                asker.dataset.ledger.settle(paid.stage.statement)
    note_end(paid.stage, asker.dataset.ledger)
    asker.dataset.known.add(asker.owner, plans)
    shown = (*stage.shown, *(item.release_id for item in paid.items))
    return StageAnswer(releases=releases, items=paid.items, next=replace(paid.stage, cells=cells, shown=shown))


def _attempt(asker: Asker, settings: Settings, cancellation: Cancellation) -> Attempt:
    return Attempt(
        version=asker.version, ledger=asker.dataset.ledger, cancellation=cancellation, is_fresh=settings.is_fresh,
        timeout_s=asker.version.policy.limits.statement_timeout_s, count=asker.metrics.engine_failed,
    )  # fmt: skip


def _are_known(plans: Sequence[Plan], asker: Asker, settings: Settings) -> bool:
    """Whether this proxy has shown all of these to the login, so that the engine is not needed."""
    return not settings.is_fresh and all(asker.dataset.known.has(asker.owner, p.fingerprint) for p in plans)


def _are_shown(plans: Sequence[Plan], asker: Asker, settings: Settings) -> bool:
    """Whether the login has paid for all of these, and they are stored. What others have paid for is not looked at."""
    own, ledger = tuple(a for a in asker.accounts if a.kind is AccountKind.USER), asker.dataset.ledger
    keys = [release_key(p, asker.version) for p in plans]
    return not settings.is_fresh and all(isinstance(ledger.seen(own, k), StoredRelease) for k in keys)


def _is_charged(paid: Paid, stage: Stage) -> bool:
    """Whether anything is computed, or could have been for all that the asker may know."""
    receipts = paid.stage.receipts[len(stage.receipts) :]
    return any(c.pico for r in receipts for c in r.charged) or any(isinstance(i, Reserved) for i in paid.items)


@dataclass(frozen=True, slots=True)
class _Finishing:
    """How the answer of each block is made of what was released. cells: by fingerprint."""

    planned: Planned
    cells: Mapping[str, NoisyCells]
    asker: Asker
    cancellation: Cancellation
    is_consistent: bool
    nonnegative: bool
    is_rounded: bool

    def release(self, place: int) -> Release:
        plan, columns = self.planned.plans[place], self.planned.blocks[place].columns
        zone, check = self.asker.version.policy.privacy.time_zone, self.cancellation.check
        derived = self.planned.derived.get(place)
        if derived is None:
            return finish_plan(
                plan, self.cells[plan.fingerprint], columns, is_consistent=self.is_consistent,
                nonnegative=self.nonnegative, time_zone=zone, check=check, is_rounded=self.is_rounded,
            )  # fmt: skip
        found = [self.cells[p.fingerprint] for p in derived.plans]
        return finish_derived(
            derived, found, columns, nonnegative=self.nonnegative, time_zone=zone, check=check,
            is_consistent=self.is_consistent, is_rounded=self.is_rounded,
        )  # fmt: skip


def is_paid(planned: Planned, asker: Asker, settings: Settings) -> bool:
    """Whether a statement would be answered free: from the store, or from local tables."""
    ledger, keys = asker.dataset.ledger, [release_key(p, asker.version) for p in promised(planned.distinct())]
    return not settings.is_fresh and all(isinstance(ledger.seen(asker.accounts, k), StoredRelease) for k in keys)
