"""What would a policy's typical questions cost and err, and what does it give away at most?

Told of the policy in force and of an edit of it. Touches no data and no account: plans come from `hushql explain`, what
an attacker gains from what accounts allow (docs/claims/attacker.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from proxy.dp.accounting import epsilon_spent, limit_pico, pool_atto
from proxy.dp.attacker import fewest_accounts, right_guess_of_secret_up, right_guess_up
from proxy.errors import HushError
from proxy.plan.charge import Cost
from proxy.policy.figures import figure
from proxy.policy.model import AccountLimit, Bounded, EpsilonLimit, Listed, Policy, Privacy, Table
from proxy.session.pricing.dry_run import dry_run
from proxy.sql.syntax.names import spelled

MOST_QUESTIONS = 40
LEVEL = 0.95
_CERTAIN = "100 %"


@dataclass(frozen=True, slots=True)
class ComparedQuestion:
    """A typical question, and in words what its answer would cost and be off by, now and after."""

    statement: str
    now: str
    after: str


def compared(before: Policy, after: Policy) -> Iterator[Callable[[], ComparedQuestion]]:
    """Typical questions of the edited policy, each to be planned twice when it is called, which takes a moment."""
    statements = [s for table in after.private_tables() for s in _of_table(table)]
    return (partial(_compared, before, after, s) for s in statements[:MOST_QUESTIONS])


def _compared(before: Policy, after: Policy, statement: str) -> ComparedQuestion:
    return ComparedQuestion(statement, _told(before, statement), _told(after, statement))


def _of_table(table: Table) -> Iterator[str]:
    """Its count, its count by each listed key, sum and average of each measure."""
    name = spelled(table.name)
    yield f"SELECT count(*) FROM {name}"
    for column in table.columns:
        quoted = spelled(column.name)
        if column.hidden or column.key:
            continue
        if isinstance(column.domain, Listed):
            yield f"SELECT {quoted}, count(*) FROM {name} GROUP BY {quoted}"
        elif isinstance(column.domain, Bounded) and column.type.is_number:
            yield f"SELECT sum({quoted}), avg({quoted}) FROM {name}"


def _told(policy: Policy, statement: str) -> str:
    """What `hushql explain` says, in short; or why it would be refused."""
    try:
        plan = json.loads(dry_run(policy, statement, as_json=True))
    except HushError as error:
        return f"refused: {error.message}"
    errors = [_error(output) for release in plan["releases"] for output in release["outputs"]]
    return f"epsilon {figure(plan['epsilon'], 6)}; {', '.join(errors)}"


def _error(output: dict[str, float | str | None]) -> str:
    name, width, per_row = output["aggregate"], output.get("half_width_95"), output.get("half_width_95_times_rows")
    if isinstance(width, int | float):
        return f"{name} off by {width:,.4g}"
    if isinstance(per_row, int | float):
        return f"{name} off by {per_row:,.4g} divided by its rows"
    return f"{name}: told with the answer"


# --- what an attacker gains -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The most that somebody who knows everybody else learns of one person from an account.

    odds: how many times as likely something may become, but with a chance of delta. present, secret: shares of guesses
    that are right, of two cases that are as likely. accounts: how many reach 95 % at the earliest; "" if that is not
    asked of this account.
    """

    account: str
    epsilon: str
    odds: str
    delta: str
    present: str
    secret: str
    accounts: str


def gains(policy: Policy, spent: Mapping[str, Cost]) -> tuple[Gain, ...]:
    """Of each account of the policy, and of what was spent so far.

    spent: by what the account is called.
    """
    budgets = policy.budgets
    limits = (
        ("dataset", budgets.dataset),
        ("role", budgets.role),
        ("user", budgets.user),
        ("session", budgets.session),
    )
    allowed = tuple(_of_limit(policy, name, limit) for name, limit in limits)
    return (*allowed, *(_gain(policy, f"spent so far: {name}", cost) for name, cost in spent.items()))


def _of_limit(policy: Policy, name: str, limit: AccountLimit) -> Gain:
    if not isinstance(limit, EpsilonLimit):
        return Gain(
            account=name,
            epsilon="no limit",
            odds="no bound of its own",
            delta="",
            present=_CERTAIN,
            secret=_CERTAIN,
            accounts="",
        )
    return _gain(policy, name, _pool(policy.privacy, limit))


def _pool(privacy: Privacy, limit: EpsilonLimit) -> Cost:
    return Cost(limit_pico(privacy, limit.epsilon), pool_atto(privacy))


def _gain(policy: Policy, account: str, cost: Cost) -> Gain:
    privacy = policy.privacy
    epsilon = epsilon_spent(privacy, cost.pico)
    return Gain(
        account=account, epsilon=figure(epsilon), odds=_odds(epsilon),
        delta=f"{privacy.delta:.3g}" if privacy.delta else "",
        present=_percent_up(right_guess_up(privacy, cost.pico, cost.atto)),
        secret=_percent_up(right_guess_of_secret_up(privacy, cost.pico, cost.atto)),
        accounts=_accounts(policy, cost) if account == "user" else "",
    )  # fmt: skip


def _odds(epsilon: float) -> str:
    return f"1 to 1 becomes at most {_power(epsilon)} to 1"


def _power(epsilon: float) -> str:
    """exp(epsilon) for people, rounded up."""
    if epsilon > 20:
        return f"10^{math.ceil(epsilon / math.log(10))}"
    value = math.exp(epsilon)
    return f"{math.ceil(value):,}" if value >= 100 else f"{math.ceil(value * 100) / 100:.2f}"


def _percent_up(share: float) -> str:
    """To a tenth of a percent, rounded up."""
    return f"{min(1000, math.ceil(share * 1000)) / 10:.1f} %"


def _accounts(policy: Policy, cost: Cost) -> str:
    """How many logins would have to share their answers for a guess that is right 95 times in 100."""
    privacy, dataset = policy.privacy, policy.budgets.dataset
    needed = fewest_accounts(privacy, cost.pico, cost.atto, LEVEL)
    if isinstance(dataset, EpsilonLimit):
        whole = _pool(privacy, dataset)
        most = right_guess_of_secret_up(privacy, whole.pico, whole.atto)
        if most < LEVEL:
            return f"never: the dataset's account allows {_percent_up(most)} at most"
    return f"{needed:,} at least"
