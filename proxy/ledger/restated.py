"""What is said of accounts that were kept for other promises before?"""

from __future__ import annotations

from collections.abc import Iterable

from proxy.dp.accounting import ATTO, epsilon_spent
from proxy.ledger.base import Balance, Restated
from proxy.ledger.promises import Standing
from proxy.plan.charge import Cost
from proxy.policy.figures import figure
from proxy.policy.model import Neighbors, Privacy


def restated_lines(restated: Restated, privacy: Privacy) -> Iterable[str]:
    """For the log of a start or a reload: what the policy's promise makes of the dataset's account."""
    before, balance = restated.before, restated.balance
    if balance.spent != before:
        amounts = f"{_amount(balance.spent, privacy)} in place of {_amount(before, privacy)}"
        yield f"what was spent counts for what is promised now: {amounts}"
    if balance.standing.reach > privacy.promise.reach or balance.standing.group_size > privacy.group_size:
        times = balance.counted(10**12) / 10**12
        yield (
            f"more was promised before ({promise_words(balance.standing)}) and stays so for the accounts:"
            f" each charge under this policy counts {figure(times, 6)} times"
        )
    if broken := outside_words(balance, privacy):
        yield broken


def overspent_lines(balances: Iterable[Balance], privacy: Privacy) -> Iterable[str]:
    """For the log, a sentence for each account that has spent more than it may."""
    for balance in balances:
        if balance.is_overspent:
            yield (
                f"the {balance.account.kind} account {balance.account.name} is overspent:"
                f" {_amount(balance.spent, privacy)}, of {_amount(balance.limit, privacy)};"
                " new questions are refused, what was answered is answered again"
            )


def promise_words(standing: Standing) -> str:
    """For what charges count, in the words of a policy."""
    words = f"group_size {standing.group_size}"
    if standing.reach == standing.group_size:
        return words
    if standing.reach == 2 * standing.group_size:
        return f"{words}, {Neighbors.REPLACE_ONE.value}"
    return f"{words}, and noise for {standing.reach} units"


def outside_words(balance: Balance, privacy: Privacy) -> str:
    """Which units were given up, and what had been spent by then; "" if there was always one."""
    breaks = breaks_words(balance.standing)
    return f"{breaks}: {_amount(balance.outside, privacy)} spent before is outside the promise" if breaks else ""


def breaks_words(standing: Standing) -> str:
    """Each change of the unit that was acknowledged, "" if there was none."""
    return ", ".join(f"unit {b.was} until {b.at:%Y-%m-%d}, {b.now} since" for b in standing.breaks)


def _amount(cost: Cost, privacy: Privacy) -> str:
    delta = f" and delta {figure(cost.atto / ATTO, 3)}" if cost.atto else ""
    return f"epsilon {figure(epsilon_spent(privacy, cost.pico))}{delta}"
