"""What does EXPLAIN of a private statement print?"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime

from proxy.dp.accounting import ATTO, PICO, epsilon_spent
from proxy.ledger.base import Balance
from proxy.ledger.lifetime import lifetime_epsilon
from proxy.ledger.restated import outside_words
from proxy.pipeline.plans import Planned
from proxy.pipeline.premises import Premises
from proxy.pipeline.settings import Settings
from proxy.pipeline.shown_names import shown_sql
from proxy.plan.charge import Cost
from proxy.plan.reuse.derive import Derived
from proxy.plan.sets.sets import Plan, promised
from proxy.plan.words.describe import counted
from proxy.plan.words.explain import Json
from proxy.plan.words.explain_lines import broken, charge_text
from proxy.plan.words.explain_sets import explain_plan, plan_lines
from proxy.plan.words.lost import lost_in
from proxy.policy.figures import figure
from proxy.policy.model import Accounting, Privacy
from proxy.session.asker import Asker
from proxy.session.pricing.payment import Wanting
from proxy.session.pricing.price import NOTHING, Due, dues, is_above_cap, own_cost, request_of
from proxy.session.pricing.windows import left_of, refreshes, window_ends
from proxy.session.relations import Viewer, own_accounts


def explain_text(planned: Planned, asked: Wanting, asker: Asker, viewer: Viewer, settings: Settings) -> list[str]:
    """The privacy plan as lines. asked: what would be asked of the ledger, for later stages too."""
    data = explain_data(planned, asked, asker, viewer, settings)
    releases, epsilon = _listed(data, "releases"), figure(data["epsilon"], 6)
    charged = sum("protected_when_collected" not in r for r in releases)
    lines = [
        f"Privacy plan: {counted(charged, 'release')}, epsilon {epsilon} at delta {data['delta']:g}",
        f"Charge to your accounts if run now: epsilon {figure(data['charge_epsilon'])}{_payers(data)}",
    ]
    if data["is_above_max_charge"]:
        lines.append(f"It is refused if run now: hush.max_charge allows {figure(settings.max_charge, 6)}")
    lines += [f"Remaining, {a['account']}: {a['remaining']}" for a in _listed(data, "accounts")]
    lines += [f"Remaining, {a['account']}: {a['outside']}" for a in _listed(data, "accounts") if "outside" in a]
    for release in releases:
        lines += plan_lines(release)
        lines += [p for e in _listed(release, "expected") for p in broken(f"  Expected: {e['what']}. {e['instead']}")]
        if release["added_up"] is not None:
            lines.append(f"  Reuse: computed from {_sources(release)}; hush.fresh asks anew")
        elif release["reused"]:
            lines.append("  Reuse: your accounts paid for this release already; the same numbers come back free")
    return lines + later_lines(_listed(data, "later"))


def explain_json(planned: Planned, asked: Wanting, asker: Asker, viewer: Viewer, settings: Settings) -> str:
    """The privacy plan as one JSON document."""
    return json.dumps([explain_data(planned, asked, asker, viewer, settings)], indent=2)


def explain_data(planned: Planned, asked: Wanting, asker: Asker, viewer: Viewer, settings: Settings) -> Json:
    """The privacy plan as data."""
    privacy, is_fresh = asker.version.policy.privacy, settings.is_fresh
    releases: list[Json] = [
        {
            **_for_role(explain_plan(shown, privacy), asker.premises),
            "expected": [{"what": e.what, "instead": e.instead} for e in lost_in((shown,), privacy)],
            "reused": plans == promised(plans) and _is_free(plans, asker, fresh=is_fresh),
            **_computed(derived),
        }
        for plans, shown, derived in _shown(planned)
    ]
    due = dues(asked.requests, asker, fresh=is_fresh)
    charged = own_cost(due)
    shown = own_accounts(viewer)
    balances = asker.dataset.ledger.balances(viewer.accounts, datetime.now(UTC))
    accounts: list[Json] = [
        {
            "account": d.account.kind,
            "charge": amounts(d.cost, privacy),
            **_remaining(b, balances, privacy),
            **_outside(b, privacy),
        }
        for d, b in zip(_of(due, shown), (b for b in balances if b.account in shown), strict=True)
    ]
    return {
        "epsilon": planned.epsilon or settings.epsilon,
        "delta": privacy.delta,
        "charge_epsilon": epsilon_spent(privacy, charged.pico),
        "is_above_max_charge": is_above_cap(charged, settings, privacy),
        "accounts": accounts,
        "releases": releases,
        "later": [{"charge": amounts(_counted(w.request.cost, balances[0]), privacy)} for w in asked.tickets],
    }


def _for_role(plan: Json, premises: Premises) -> Json:
    """A plan, and those within it, without names that the asker may not see."""
    found: Json = {}
    for name, value in plan.items():
        if name == "private_sql":
            found[name] = shown_sql(str(value), premises)
        elif isinstance(value, list):
            found[name] = [_for_role(one, premises) for one in value]
        else:
            found[name] = _for_role(value, premises) if isinstance(value, dict) else value
    return found


def _counted(cost: Cost, balance: Balance) -> Cost:
    """What a charge counts for what was promised of the accounts."""
    return Cost(balance.counted(cost.pico), cost.atto)


def _computed(derived: Derived | None) -> Json:
    """From how many releases of other questions a release is computed, and how many numbers are added up for each."""
    if derived is None:
        return {"computed_from": 0, "added_up": None}
    return {"computed_from": len(derived.sources), "added_up": derived.shown.added}


def _sources(release: Json) -> str:
    count, added = release["computed_from"], release["added_up"]
    which, whose = ("a release", "its") if count == 1 else (f"{count} releases", "their")
    cells = f", up to {added} of {whose} numbers added up for each" if added != 1 else ""
    return f"{which} that your accounts paid for{cells}"


def _shown(planned: Planned) -> list[tuple[tuple[Plan, ...], Plan, Derived | None]]:
    """The releases of each block with how they are read."""
    found: dict[object, tuple[tuple[Plan, ...], Plan, Derived | None]] = {}
    for place, plan in enumerate(planned.plans):
        derived = planned.derived.get(place)
        if derived is None:
            found[plan.fingerprint] = ((plan,), plan, None)
        else:
            of = (*(p.fingerprint for p in derived.plans), derived.shown.vector.finishes)
            found[of] = (derived.plans, derived.shown, derived)
    return list(found.values())


def _is_free(plans: tuple[Plan, ...], asker: Asker, *, fresh: bool) -> bool:
    """Whether the asker's own accounts have paid for releases."""
    return own_cost(dues(tuple(request_of(p, asker.version) for p in plans), asker, fresh=fresh)) == NOTHING


def later_lines(later: list[Json]) -> list[str]:
    """What is known of releases that wait for the values of sub-queries."""
    if not later:
        return []
    charges = [charge for one in later if isinstance(charge := one["charge"], dict)]
    lines = [f"Later: {counted(len(later), 'release')}, planned once the values of the sub-queries above are known"]
    return lines + [f"  Charge: at most {charge_text(c)}" for c in charges]


def _of(due: tuple[Due, ...], accounts: tuple[object, ...]) -> list[Due]:
    return [d for d in due if d.account in accounts]


def amounts(cost: Cost, privacy: Privacy) -> Json:
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


def _outside(balance: Balance, privacy: Privacy) -> Json:
    """What was spent for another unit, if anything was."""
    words = outside_words(balance, privacy)
    return {"outside": words} if words else {}


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
