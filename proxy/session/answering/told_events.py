"""What does the operator's log say of a statement that was answered or refused, and of an account that runs low?

Claim: all of it follows from what the client was told, from the policy and from the ledger's amounts.
"""

from __future__ import annotations

import logging
import re

from proxy.dp.accounting import ATTO, epsilon_spent
from proxy.errors import HushError
from proxy.events import EventValue, LoggedEvent, fingerprint_of, tell
from proxy.ledger.base import Balance, Receipt
from proxy.plan.charge import Cost
from proxy.policy.figures import figure
from proxy.session.asker import Asker
from proxy.session.dataset import Version

#: Shares of an account that are told when they are passed, in hundredths.
TOLD_SHARES = (80, 95)
_WORDS = re.compile(r"\w+")


def tell_answered(text: str, asker: Asker, session: str, receipt: Receipt, *, is_reused: bool) -> None:
    """A statement was answered; what it was charged and what is left is that of the login's account."""
    privacy, of_user = asker.version.policy.privacy, 2
    cost, left = receipt.charged[of_user], {b.account.kind.value: _left(b, asker) for b in receipt.balances}
    outcome = "reused" if is_reused else "answered"
    epsilon = epsilon_spent(privacy, cost.pico)
    tell(
        LoggedEvent.STATEMENT, f"{asker.version.user_name(asker.login)}: {outcome}, epsilon {figure(epsilon)}",
        {**_common(text, asker.version, asker.login, session), "outcome": outcome, "epsilon": epsilon,
         "delta": cost.atto / ATTO, "left": {kind: rest for kind, rest in left.items() if rest >= 0}},
    )  # fmt: skip
    for charge, balance in zip(receipt.charged, receipt.balances, strict=True):
        _tell_low(charge, balance, asker)


def tell_refused(text: str, version: Version, login: str, session: str, error: HushError) -> None:
    """A statement was refused; its message is not repeated, since it quotes the statement."""
    code = type(error).sqlstate
    tell(
        LoggedEvent.STATEMENT, f"{version.user_name(login)}: refused, {code}",
        {**_common(text, version, login, session), "outcome": "refused", "code": code},
    )  # fmt: skip


def _common(text: str, version: Version, login: str, session: str) -> dict[str, EventValue]:
    words = frozenset(_WORDS.findall(text.lower()))
    known = version.visible_tables(login) if login in version.users.logins else {}
    return {
        "dataset": version.policy.dataset, "login": login, "session": session,
        "role": version.users.logins[login].role if login in version.users.logins else "",
        "fingerprint": fingerprint_of(text), "statement": text,
        "tables": sorted(name for name in known if name.lower() in words),
        "policy": version.policy.digest[:12],
    }  # fmt: skip


def _left(balance: Balance, asker: Asker) -> float:
    """Epsilon that is left, less than zero where there is no limit."""
    return epsilon_spent(asker.version.policy.privacy, balance.remaining.pico) if balance.account.limited else -1.0


def _tell_low(charge: Cost, balance: Balance, asker: Asker) -> None:
    """A warning for each share of the limit that this charge has passed; of sessions none."""
    limit = balance.limit.pico
    if not balance.account.limited or not limit or balance.account.kind.value == "session":
        return
    before, now = balance.spent.pico - balance.counted(charge.pico), balance.spent.pico
    for share in TOLD_SHARES:
        if before * 100 < share * limit <= now * 100:
            tell(
                LoggedEvent.ACCOUNT,
                f"the {balance.account.kind.value} account {balance.account.name} has spent {share} % of its limit",
                {"dataset": asker.version.policy.dataset, "kind": balance.account.kind.value,
                 "account": balance.account.name, "percent": float(share)}, logging.WARNING,
            )  # fmt: skip
