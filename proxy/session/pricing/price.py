"""What would a statement cost its asker's own accounts now, to the last unit?

Asks the same books that `reserve` charges, for the same releases: what is shown is what is charged then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from proxy.dp.accounting import epsilon_spent, knob_pico
from proxy.errors import PolicyForbids
from proxy.pipeline.settings import Settings
from proxy.plan.charge import Account, Cost, ReleaseKey, Request
from proxy.plan.sets.sets import Plan
from proxy.policy.figures import figure
from proxy.policy.model import Privacy
from proxy.session.asker import Asker
from proxy.session.dataset import Version

NOTHING = Cost(0, 0)


@dataclass(frozen=True, slots=True)
class Due:
    """What one account would pay."""

    account: Account
    cost: Cost


def release_key(plan: Plan, version: Version) -> ReleaseKey:
    """Under which key the store keeps the release of a plan."""
    return key_of(plan.fingerprint, version)


def key_of(fingerprint: str, version: Version) -> ReleaseKey:
    """A key of this data under this policy."""
    policy = version.policy
    return ReleaseKey(fingerprint=fingerprint, policy_digest=policy.digest, data_version=policy.data_version)


def request_of(plan: Plan, version: Version) -> Request:
    """One release with its price."""
    return Request(key=release_key(plan, version), cost=plan.cost, keys=plan.key_rules)


def dues(requests: tuple[Request, ...], asker: Asker, *, fresh: bool) -> tuple[Due, ...]:
    """What each of the asker's accounts would pay for these releases now."""
    costs = asker.dataset.ledger.quote(asker.accounts, requests, datetime.now(UTC), fresh=fresh)
    return tuple(Due(account, cost) for account, cost in zip(asker.accounts, costs, strict=True))


def largest(costs: Iterable[Cost]) -> Cost:
    """The cost that a client is told: of its own accounts, the one that pays most."""
    return max(costs, key=lambda cost: cost.pico, default=NOTHING)


def own_cost(dues: tuple[Due, ...]) -> Cost:
    """The largest charge to one of the asker's own accounts."""
    return largest(due.cost for due in dues if due.account.kind.is_own)


def check_cap(cost: Cost, settings: Settings, privacy: Privacy) -> None:
    """Raises PolicyForbids when a charge is above hush.max_charge; a repeat that is free never is."""
    if not is_above_cap(cost, settings, privacy):
        return
    charge, most = epsilon_spent(privacy, cost.pico), settings.max_charge
    raise PolicyForbids(
        f"this statement costs epsilon {figure(charge)}, and hush.max_charge allows {figure(most, 6)}",
        detail="Nothing was charged.",
        hint=f"Lower hush.epsilon to {figure(most, 6)}, or raise hush.max_charge.",
    )


def is_above_cap(cost: Cost, settings: Settings, privacy: Privacy) -> bool:
    """Whether hush.max_charge is set and less than a charge."""
    return settings.max_charge > 0 and cost.pico > knob_pico(privacy, settings.max_charge)
