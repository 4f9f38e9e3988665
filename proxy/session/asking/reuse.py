"""Which blocks of a statement are answered from releases of other questions, which its asker has paid for?

The decision rests on public figures and the asker's own past. See docs/claims/reuse.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from proxy.pipeline.plans import Planned
from proxy.pipeline.settings import Settings
from proxy.plan.charge import AccountKind
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.reuse.derive import Derived, derive
from proxy.plan.sets.sets import Plan
from proxy.plan.words.explain_sets import output_noises
from proxy.release.store import StoredRelease
from proxy.session.asker import Asker
from proxy.session.asking.seen_releases import is_source
from proxy.session.pricing.price import NOTHING, dues, release_key, request_of


def resolved(planned: Planned, asker: Asker, settings: Settings, assumed: Sequence[Plan] = ()) -> Planned:
    """The statement with derived answers in the place of new releases where that is near enough and paid.

    assumed: releases that count as paid and known already.
    """
    if settings.is_fresh:
        return planned
    is_exacting = bool(settings.shares or settings.target.amount)  # then noise is as wanted, or less
    factor = 1.0 if is_exacting else asker.version.policy.privacy.reuse_factor
    found = {
        place: derived
        for place, plan in enumerate(planned.plans)
        if (derived := _derived(plan, asker, factor, assumed)) is not None
    }
    if not found:
        return planned
    shown = {(p.fingerprint, found[i].shown.vector.finishes if i in found else ()): found[i].shown if i in found else p
             for i, p in enumerate(planned.plans)}  # fmt: skip
    return replace(
        planned,
        plans=tuple(found[i].plans[0] if i in found else plan for i, plan in enumerate(planned.plans)),
        derived=MappingProxyType(found),
        outputs=tuple(o for p in shown.values() for o in output_noises(p)),
    )


def _derived(plan: Plan, asker: Asker, factor: float, assumed: Sequence[Plan]) -> Derived | None:
    known, version = asker.dataset.known, asker.version
    if (
        plan.several is not None
        or plan.is_unpromised
        or known.has(asker.owner, plan.fingerprint)
        or any(p.fingerprint == plan.fingerprint for p in assumed)
    ):
        return None
    sources = (*filter(is_source, assumed), *known.sources(asker.owner))
    found = derive(plan, sources, factor)
    if not found:
        return None
    own = tuple(a for a in asker.accounts if a.kind is AccountKind.USER)
    if isinstance(asker.dataset.ledger.seen(own, release_key(plan, version)), StoredRelease):
        return None  # its own answer is there
    best = found[0]
    return best if all(s in assumed or _is_paid(s, plan, asker) for s in best.plans) else None


def _is_paid(source: Plan, plan: ReleasePlan, asker: Asker) -> bool:
    """Whether all accounts paid for the source; that of a new session may still have to, if it is no dearer."""
    for due in dues((request_of(source, asker.version),), asker, fresh=False):
        is_session = due.account.kind is AccountKind.SESSION
        if due.cost != NOTHING and not (is_session and due.cost.pico <= plan.cost.pico):
            return False
    return True
