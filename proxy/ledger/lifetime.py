"""How much can an account lose over the life of the data, if its limit comes back?

A limit that refreshes bounds each window only. Over all windows rho (epsilon in pure accounting) and the delta of
unlisted groups add up, so the loss has no bound unless the dataset's account has one, which pays for every release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from proxy.dp.accounting import ATTO, epsilon_spent, limit_pico, pool_atto
from proxy.ledger.base import Balance
from proxy.ledger.windows import most_in_a_year
from proxy.plan.charge import AccountKind
from proxy.policy.figures import figure
from proxy.policy.model import AccountLimit, EpsilonLimit, Policy, Privacy, Refresh, Users


def lifetime_epsilon(balance: Balance, balances: Sequence[Balance], privacy: Privacy) -> float:
    """The most epsilon that the account's holder is ever shown, rounded up; infinite if nothing bounds it.

    balances: of all accounts of the charge. What a refreshing account is shown, the dataset's account has paid for.
    An account that is overspent has no more than it has spent.
    """
    account = balance.account
    if account.limited and account.refresh is Refresh.LIFETIME:
        return epsilon_spent(privacy, max(balance.limit.pico, balance.spent.pico))
    return everyone_epsilon([b for b in balances if b is not balance], privacy)


def everyone_epsilon(balances: Sequence[Balance], privacy: Privacy) -> float:
    """The most epsilon that all logins together are ever shown; infinite if nothing bounds it.

    A promise of the policy and of top-ups: what was spent is not in it, but that more was spent than may be.
    """
    dataset = (b for b in balances if b.account.kind is AccountKind.DATASET and not b.is_overspent)
    return min((lifetime_epsilon(b, (), privacy) for b in dataset), default=math.inf)


def worst_case_lines(policy: Policy, users: Users | None = None) -> Iterable[str]:
    """A sentence for each limit of a policy, and of its users file, that comes back."""
    privacy, budgets = policy.privacy, policy.budgets
    for name, limit in (
        *(("budgets.dataset", budgets.dataset), ("budgets.role", budgets.role)),
        *(("budgets.user", budgets.user), ("budgets.session", budgets.session)),
        *((f"budget of {x.name}", x.budget) for x in (users.logins.values() if users else ())),
        *((f"budget of each {x.name} from outside", x.budget) for x in (users.roles_of_guests if users else ())),
        *((f"shared_budget of {x.name}", x.shared) for x in (users.roles.values() if users else ())),
    ):
        if isinstance(limit, EpsilonLimit) and limit.refresh is not Refresh.LIFETIME:
            yield f"{name}: {_sentence(limit, budgets.dataset, privacy)}"


def _sentence(limit: EpsilonLimit, dataset: AccountLimit, privacy: Privacy) -> str:
    times = most_in_a_year(limit.refresh)
    year = epsilon_spent(privacy, times * limit_pico(privacy, limit.epsilon))
    delta = privacy.delta + (times - 1) * pool_atto(privacy) / ATTO
    bound = (
        f"epsilon {figure(dataset.epsilon, 6)} by budgets.dataset"
        if isinstance(dataset, EpsilonLimit) and dataset.refresh is Refresh.LIFETIME
        else "no bound"
    )
    return (
        f"epsilon {figure(limit.epsilon, 6)} comes back every {limit.refresh}; worst case in a calendar year:"
        f" epsilon {figure(year)} at delta {delta:.3g}; over the lifetime of the data: {bound}"
    )
