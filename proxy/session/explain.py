"""What does EXPLAIN of a private statement print?"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime

from proxy.dp.accounting import ATTO, PICO, epsilon_spent
from proxy.ledger.base import Balance
from proxy.ledger.lifetime import lifetime_epsilon
from proxy.plan.charge import Cost
from proxy.plan.describe import counted
from proxy.plan.explain import Json
from proxy.plan.explain_sets import explain_plan, plan_lines
from proxy.plan.sets import Plan
from proxy.policy.model import Accounting, Privacy
from proxy.session.answer import Asker, Planned, dues
from proxy.session.price import NOTHING, Due, is_above_cap, own_cost
from proxy.session.relations import Viewer, own_accounts
from proxy.session.settings import Settings
from proxy.session.windows import left_of, refreshes, window_ends


def explain_text(planned: Planned, asker: Asker, viewer: Viewer, settings: Settings) -> list[str]:
    """The privacy plan as lines."""
    data = explain_data(planned, asker, viewer, settings)
    releases = _listed(data, "releases")
    lines = [
        f"Privacy plan: {counted(len(releases), 'release')}, epsilon {data['epsilon']:g} at delta {data['delta']:g}",
        f"Charge to your accounts if run now: epsilon {data['charge_epsilon']:.4g}{_payers(data)}",
    ]
    if data["is_above_max_charge"]:
        lines.append(f"It is refused if run now: hush.max_charge allows {settings.max_charge:g}")
    lines += [f"Remaining, {a['account']}: {a['remaining']}" for a in _listed(data, "accounts")]
    for release in releases:
        lines += plan_lines(release)
        if release["added_up"] is not None:
            cells = f", {release['added_up']} of its numbers added up for each" if release["added_up"] != 1 else ""
            lines.append(f"  Reuse: computed from a release that your accounts paid for{cells}; hush.fresh asks anew")
        elif release["reused"]:
            lines.append("  Reuse: your accounts paid for this release already; the same numbers come back free")
    return lines


def explain_json(planned: Planned, asker: Asker, viewer: Viewer, settings: Settings) -> str:
    """The privacy plan as one JSON document."""
    return json.dumps([explain_data(planned, asker, viewer, settings)], indent=2)


def explain_data(planned: Planned, asker: Asker, viewer: Viewer, settings: Settings) -> Json:
    """The privacy plan as data."""
    privacy, is_fresh = asker.version.policy.privacy, settings.is_fresh
    plans = planned.distinct()
    releases: list[Json] = [
        {
            **explain_plan(shown, privacy),
            "reused": own_cost(dues((plan,), asker, fresh=is_fresh)) == NOTHING,
            "added_up": added,
        }
        for plan, shown, added in _shown(planned)
    ]
    due = dues(plans, asker, fresh=is_fresh)
    charged = own_cost(due)
    shown = own_accounts(viewer)
    balances = asker.dataset.ledger.balances(viewer.accounts, datetime.now(UTC))
    accounts: list[Json] = [
        {"account": d.account.kind, "charge": _amounts(d.cost, privacy), **_remaining(b, balances, privacy)}
        for d, b in zip(_of(due, shown), (b for b in balances if b.account in shown), strict=True)
    ]
    return {
        "epsilon": planned.epsilon or settings.epsilon,
        "delta": privacy.delta,
        "charge_epsilon": epsilon_spent(privacy, charged.pico),
        "is_above_max_charge": is_above_cap(charged, settings, privacy),
        "accounts": accounts,
        "releases": releases,
    }


def _shown(planned: Planned) -> list[tuple[Plan, Plan, int | None]]:
    """Each release with how it is read, and how many of its numbers are added up if that is another question's."""
    found: dict[object, tuple[Plan, Plan, int | None]] = {}
    for place, plan in enumerate(planned.plans):
        derived = planned.derived.get(place)
        if derived is None:
            found[plan.fingerprint] = (plan, plan, None)
        else:
            found[plan.fingerprint, derived.shown.vector.finishes] = (plan, derived.shown, derived.shown.added)
    return list(found.values())


def _of(due: tuple[Due, ...], accounts: tuple[object, ...]) -> list[Due]:
    return [d for d in due if d.account in accounts]


def _amounts(cost: Cost, privacy: Privacy) -> Json:
    is_pure = privacy.accounting is Accounting.PURE
    return {"epsilon" if is_pure else "rho": cost.pico / PICO, "delta": cost.atto / ATTO}


def _payers(data: Json) -> str:
    """Which of the accounts pay, if not all of them do."""
    accounts = _listed(data, "accounts")
    paying = [str(a["account"]) for a in accounts if any(_figures(a))]
    return f" ({' and '.join(paying)} alone)" if 0 < len(paying) < len(accounts) else ""


def _figures(account: Json) -> list[object]:
    charge = account["charge"]
    assert isinstance(charge, dict)
    return list(charge.values())


def _listed(data: Json, name: str) -> list[Json]:
    found = data[name]
    assert isinstance(found, list)
    return found


def _remaining(balance: Balance, balances: Sequence[Balance], privacy: Privacy) -> Json:
    """Words for people; of a limit that comes back also data. lifetime_epsilon null: nothing bounds it."""
    account = balance.account
    if not account.limited:
        return {"remaining": "unlimited"}
    told: Json = {"remaining": f"epsilon {left_of(balance, balances, privacy)}"}
    if refreshes(balance):
        most = lifetime_epsilon(balance, balances, privacy)
        told |= {"refresh": account.refresh, "window_ends": window_ends(balance)}
        told["lifetime_epsilon"] = most if math.isfinite(most) else None
    return told
