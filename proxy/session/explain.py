"""What does EXPLAIN of a private statement print?"""

from __future__ import annotations

import json

from proxy.dp.accounting import epsilon_spent
from proxy.ledger.base import Balance
from proxy.plan.charge import Cost
from proxy.plan.explain import Json, counted, explain_block, explain_lines
from proxy.release.store import Stored
from proxy.session.answer import Asker, Planned, charge_words, release_key
from proxy.session.relations import Viewer, own_accounts
from proxy.session.settings import Settings


def explain_text(planned: Planned, asker: Asker, viewer: Viewer, settings: Settings) -> list[str]:
    """The privacy plan as lines."""
    data = explain_data(planned, asker, viewer, settings)
    privacy = asker.version.policy.privacy
    releases = counted(len(planned.distinct()), "release")
    lines = [
        f"Privacy plan: {releases}, epsilon {settings.epsilon:g} at delta {privacy.delta:g}",
        f"Charge to your accounts if run now: {charge_words(_due(planned, asker, viewer, settings), privacy)}",
    ]
    balances = asker.dataset.ledger.balances(own_accounts(viewer))
    lines += [f"Remaining, {b.account.kind}: {_remaining(b, asker)}" for b in balances]
    for plan, block in zip(planned.distinct(), _releases(data), strict=True):
        lines += explain_lines(block)
        if _is_paid(asker, viewer, plan.fingerprint, planned, settings):
            lines.append("  Reuse: your accounts paid for this release already; the same numbers come back free")
    return lines


def explain_json(planned: Planned, asker: Asker, viewer: Viewer, settings: Settings) -> str:
    """The privacy plan as one JSON document."""
    return json.dumps([explain_data(planned, asker, viewer, settings)], indent=2)


def explain_data(planned: Planned, asker: Asker, viewer: Viewer, settings: Settings) -> Json:
    """The privacy plan as data."""
    privacy = asker.version.policy.privacy
    due = _due(planned, asker, viewer, settings)
    releases: list[Json] = []
    for plan in planned.distinct():
        block = explain_block(plan, privacy)
        block["reused"] = _is_paid(asker, viewer, plan.fingerprint, planned, settings)
        releases.append(block)
    remaining: list[Json] = [
        {"account": b.account.kind, "remaining": _remaining(b, asker)}
        for b in asker.dataset.ledger.balances(own_accounts(viewer))
    ]
    return {
        "epsilon": settings.epsilon,
        "delta": privacy.delta,
        "charge_epsilon": epsilon_spent(privacy, due.pico),
        "accounts": remaining,
        "releases": releases,
    }


def _releases(data: Json) -> list[Json]:
    found = data["releases"]
    assert isinstance(found, list)
    return found


def _remaining(balance: Balance, asker: Asker) -> str:
    if not balance.account.limited:
        return "unlimited"
    privacy = asker.version.policy.privacy
    return f"epsilon {epsilon_spent(privacy, balance.remaining.pico):.4g} of {_limit(balance, asker):.4g}"


def _limit(balance: Balance, asker: Asker) -> float:
    return epsilon_spent(asker.version.policy.privacy, balance.account.limit.pico)


def _is_paid(asker: Asker, viewer: Viewer, fingerprint: str, planned: Planned, settings: Settings) -> bool:
    """Whether the viewer's own accounts all paid for the stored release: no other account is looked at."""
    plan = next(p for p in planned.plans if p.fingerprint == fingerprint)
    own = tuple(a for a in own_accounts(viewer) if a.kind.is_own)
    found = asker.dataset.ledger.seen(own, release_key(plan, asker.version))
    return isinstance(found, Stored) and not settings.is_fresh


def _due(planned: Planned, asker: Asker, viewer: Viewer, settings: Settings) -> Cost:
    total = Cost(0, 0)
    for plan in planned.distinct():
        if not _is_paid(asker, viewer, plan.fingerprint, planned, settings):
            total += plan.cost
    return total
