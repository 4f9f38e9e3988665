"""How is a balance whose limit comes back told to a client: its window, and the worst case over all of them?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from proxy.dp.accounting import epsilon_spent
from proxy.ledger.base import Balance
from proxy.ledger.lifetime import lifetime_epsilon
from proxy.ledger.windows import window_end
from proxy.policy.figures import figure
from proxy.policy.model import Privacy, Refresh


def refreshes(balance: Balance) -> bool:
    return balance.account.limited and balance.account.refresh is not Refresh.LIFETIME


def left_of(balance: Balance, balances: Sequence[Balance], privacy: Privacy) -> str:
    """`2.9 of 3`, and for a limit that comes back also for how long and with what lifetime loss at worst."""
    limit = epsilon_spent(privacy, balance.limit.pico)
    text = f"{figure(epsilon_spent(privacy, balance.remaining.pico))} of {figure(limit)}"
    if not refreshes(balance):
        return text
    most = lifetime_epsilon(balance, balances, privacy)
    loss = f"at worst {figure(most)}" if math.isfinite(most) else "without bound"
    return f"{text} this {balance.account.refresh} ({loss} over the lifetime)"


def window_ends(balance: Balance) -> str:
    """When a refreshing limit comes back, as a timestamp of SQL."""
    return window_end(balance.account.refresh, balance.day).isoformat()
