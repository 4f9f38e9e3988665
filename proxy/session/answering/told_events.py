"""What does the operator's log say of a statement that was answered or refused, and of an account that runs low?

Claim: all of it follows from what the client was told, from the policy and from the ledger's amounts.
"""

from __future__ import annotations

import logging

from proxy.dp.accounting import ATTO, epsilon_spent
from proxy.errors import HushError
from proxy.events import EventValue, LoggedEvent, fingerprint_of, tables_in, tell
from proxy.ledger.base import Balance, Receipt
from proxy.plan.charge import AccountKind, Cost
from proxy.policy.figures import figure
from proxy.session.asker import Asker
from proxy.session.dataset import Version

#: Shares of an account that are told when they are passed, in hundredths.
TOLD_SHARES = (80, 95)


def tell_answered(text: str, asker: Asker, session: str, receipt: Receipt, *, is_reused: bool) -> None:
    """A statement was answered; what it was charged and what is left is that of the login's account."""
    privacy, paid = asker.version.policy.privacy, tuple(zip(receipt.charged, receipt.balances, strict=True))
    (cost,) = (charge for charge, balance in paid if balance.account.kind is AccountKind.USER)
    limited = [b for b in receipt.balances if b.account.limited]
    left = {b.account.kind.value: epsilon_spent(privacy, b.remaining.pico) for b in limited}
    outcome = "reused" if is_reused else "answered"
    epsilon = epsilon_spent(privacy, cost.pico)
    tell(
        LoggedEvent.STATEMENT, f"{asker.version.user_name(asker.login)}: {outcome}, epsilon {figure(epsilon)}",
        {**_common(text, asker.version, asker.login, session), "outcome": outcome, "epsilon": epsilon,
         "delta": cost.atto / ATTO, "left": left},
    )  # fmt: skip
    for charge, balance in paid:
        _tell_low(charge, balance, asker)


def tell_refused(text: str, version: Version, login: str, session: str, error: HushError) -> None:
    """A statement was refused; its message is not repeated, since it quotes the statement."""
    code = type(error).sqlstate
    tell(
        LoggedEvent.STATEMENT, f"{version.user_name(login)}: refused, {code}",
        {**_common(text, version, login, session), "outcome": "refused", "code": code},
    )  # fmt: skip


def _common(text: str, version: Version, login: str, session: str) -> dict[str, EventValue]:
    found = version.users.find(login)
    known = version.visible_tables(login) if found else {}
    return {
        "dataset": version.policy.dataset, "login": login, "session": session,
        "role": found.role if found else "",
        "fingerprint": fingerprint_of(text), "statement": text,
        "tables": tables_in(text, known),
        "policy": version.policy.digest[:12],
    }  # fmt: skip


def _tell_low(charge: Cost, balance: Balance, asker: Asker) -> None:
    """A warning for each share of the limit that this charge has passed; of sessions none."""
    limit = balance.limit.pico
    if not balance.account.limited or not limit or balance.account.kind is AccountKind.SESSION:
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
