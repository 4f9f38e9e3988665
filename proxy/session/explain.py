"""What does EXPLAIN of a private statement print?"""

from __future__ import annotations

import json

from proxy.dp.accounting import epsilon_spent
from proxy.ledger.base import Balance
from proxy.plan.charge import Cost
from proxy.plan.describe import counted
from proxy.plan.explain import Json, explain_block
from proxy.plan.explain_lines import explain_lines
from proxy.plan.release_plan import ReleasePlan
from proxy.release.store import Stored
from proxy.session.answer import Asker, Planned, release_key
from proxy.session.relations import Viewer, own_accounts
from proxy.session.settings import Settings


def explain_text(planned: Planned, asker: Asker, viewer: Viewer, settings: Settings) -> list[str]:
    """The privacy plan as lines."""
    data = explain_data(planned, asker, viewer, settings)
    releases = _listed(data, "releases")
    lines = [
        f"Privacy plan: {counted(len(releases), 'release')}, epsilon {data['epsilon']:g} at delta {data['delta']:g}",
        f"Charge to your accounts if run now: epsilon {data['charge_epsilon']:.4g}",
    ]
    lines += [f"Remaining, {a['account']}: {a['remaining']}" for a in _listed(data, "accounts")]
    for release in releases:
        lines += explain_lines(release)
        if release["reused"]:
            lines.append("  Reuse: your accounts paid for this release already; the same numbers come back free")
    return lines


def explain_json(planned: Planned, asker: Asker, viewer: Viewer, settings: Settings) -> str:
    """The privacy plan as one JSON document."""
    return json.dumps([explain_data(planned, asker, viewer, settings)], indent=2)


def explain_data(planned: Planned, asker: Asker, viewer: Viewer, settings: Settings) -> Json:
    """The privacy plan as data."""
    privacy = asker.version.policy.privacy
    due = Cost(0, 0)
    releases: list[Json] = []
    for plan in planned.distinct():
        is_paid = not settings.is_fresh and _is_paid(plan, asker, viewer)
        due += Cost(0, 0) if is_paid else plan.cost
        releases.append({**explain_block(plan, privacy), "reused": is_paid})
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


def _listed(data: Json, name: str) -> list[Json]:
    found = data[name]
    assert isinstance(found, list)
    return found


def _remaining(balance: Balance, asker: Asker) -> str:
    if not balance.account.limited:
        return "unlimited"
    privacy = asker.version.policy.privacy
    limit, left = (epsilon_spent(privacy, c.pico) for c in (balance.account.limit, balance.remaining))
    return f"epsilon {left:.4g} of {limit:.4g}"


def _is_paid(plan: ReleasePlan, asker: Asker, viewer: Viewer) -> bool:
    """Whether the viewer's own accounts all paid for the stored release: no other account is looked at."""
    own = tuple(a for a in own_accounts(viewer) if a.kind.is_own)
    return isinstance(asker.dataset.ledger.seen(own, release_key(plan, asker.version)), Stored)
