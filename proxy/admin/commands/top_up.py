"""What does `hushql ledger top-up` give to an account, and who is written down for it?"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from proxy.admin.files import read_policy, read_users
from proxy.config import UsersAt, UsersSource
from proxy.dp.accounting import as_written, atto_down, epsilon_spent, limit_pico
from proxy.errors import ConfigError
from proxy.ledger.base import AccountTotal, Gift
from proxy.plan.charge import AccountKind, Cost
from proxy.policy.figures import figure
from proxy.policy.model import Accounting, AccountLimit, EpsilonLimit, Policy, Refresh, Users
from proxy.policy.outside.logins import NoSuchName, login_name
from proxy.policy.users import UNCHECKED

_LARGEST_EPSILON, _LARGEST_DELTA = 1e6, 1e-2


@dataclass(frozen=True, slots=True)
class By:
    """What an account of this epsilon may spend is added."""

    epsilon: float


@dataclass(frozen=True, slots=True)
class Onto:
    """The account becomes one of this epsilon."""

    epsilon: float


@dataclass(frozen=True, slots=True)
class NoLastingLimit:
    """The account's budget has no limit, or one that comes back."""


@dataclass(frozen=True, slots=True)
class LimitChange:
    """What an account may spend before and after, in 1e-12."""

    policy: Policy
    ends: tuple[int, int] | NoLastingLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUp:
    """The options of the command. users: where the logins stand.

    by: the login that grants, in the console; "" for whoever runs the command.
    """

    policy: Path
    kind: AccountKind
    account: str
    amount: By | Onto
    delta: float
    reason: str
    users: UsersSource
    by: str = ""


def gift_of(wish: TopUp, granted: Cost) -> tuple[Gift, LimitChange]:
    """The grant that is meant, at the policy's delta and in its accounting. Raises ConfigError.

    granted: what the account was given before.
    """
    policy = read_policy(wish.policy, os.environ)
    privacy = policy.privacy
    if not _is_account(wish.kind, wish.account, policy.dataset):
        forms = {AccountKind.DATASET: "", AccountKind.ROLE: "/ROLE", AccountKind.USER: "/LOGIN"}
        form = policy.dataset + forms.get(wish.kind, "/LOGIN/SESSION")
        raise ConfigError(f"'{wish.account}' is no {wish.kind} account of this policy", hint=f"Write {form}.")
    limit, epsilon = _limit(wish, policy), wish.amount.epsilon
    if not 0 < epsilon <= _LARGEST_EPSILON or not 0 <= wish.delta <= _LARGEST_DELTA:
        raise ConfigError(
            f"epsilon is more than 0 and at most {figure(_LARGEST_EPSILON, 6)}, delta 0 to {_LARGEST_DELTA:g}"
        )
    if wish.delta and privacy.accounting is Accounting.PURE:
        raise ConfigError("pure accounting has delta 0", hint="Leave out --delta.")
    if not wish.reason.strip():
        raise ConfigError("a top-up needs a reason", hint="Say in --reason why the promise becomes weaker.")
    now = limit if isinstance(limit, NoLastingLimit) else limit + granted.pico
    pico = limit_pico(privacy, epsilon)
    if isinstance(wish.amount, Onto):
        if isinstance(now, NoLastingLimit):
            raise ConfigError(
                "--to needs a budget with a limit that does not come back", hint="Say --epsilon: what is added."
            )
        if pico <= now:
            has = figure(epsilon_spent(privacy, now), 6)
            raise ConfigError(f"the account has a limit of epsilon {has} already", hint="Give more with --to.")
        pico -= now
    cost = Cost(pico, atto_down(as_written(wish.delta)))
    if not cost.pico:
        raise ConfigError(f"epsilon {figure(epsilon, 6)} is too little to count")
    gift = Gift(
        kind=wish.kind, name=wish.account, accounting=privacy.accounting, cost=cost,
        by=wish.by or _operator(), reason=wish.reason.strip(), at=datetime.now(UTC),
    )  # fmt: skip
    return gift, LimitChange(policy, now if isinstance(now, NoLastingLimit) else (now, now + cost.pico))


def told(total: AccountTotal, limits: LimitChange) -> str:
    """What the account has now. Epsilon is of all grants together, at the policy's delta."""
    privacy = limits.policy.privacy
    granted, spent = (epsilon_spent(privacy, cost.pico) for cost in (total.granted, total.spent))
    words = f"{total.kind} {total.name}: granted so far epsilon {figure(granted)}, spent in all epsilon {figure(spent)}"
    if isinstance(limits.ends, NoLastingLimit):
        return words
    before, after = (figure(epsilon_spent(privacy, pico)) for pico in limits.ends)
    return f"{words}; its limit was epsilon {before} and is {after}"


def _is_account(kind: AccountKind, name: str, dataset: str) -> bool:
    parts = name.split("/")
    if parts[0] != dataset or not all(parts):
        return False
    return len(parts) == 1 if kind is AccountKind.DATASET else (len(parts) == 2) is (kind is not AccountKind.SESSION)


def _limit(wish: TopUp, policy: Policy) -> int | NoLastingLimit:
    """What the policy and the users file let the account spend, in 1e-12.

    Raises ConfigError for the account of a login or role that is not there: a grant is never taken back.
    """
    budgets = policy.budgets
    if wish.kind is AccountKind.DATASET:
        return _lasting(budgets.dataset, policy)
    path = wish.users.path if isinstance(wish.users, UsersAt) else Path(policy.users_file)
    if not path.exists():
        raise ConfigError(f"users file {path} does not exist", hint="Where are the logins? Say --users FILE.")
    users, name = read_users(path, UNCHECKED), wish.account.split("/")[1]
    is_role = wish.kind is AccountKind.ROLE
    if not is_role and name not in users.logins and _may_be_guest(name, users):
        return _lasting(budgets.session, policy) if wish.kind is AccountKind.SESSION else _of_guest(name, users, policy)
    kind, known = ("role", set(users.roles)) if is_role else ("login", set(users.logins))
    if name not in known:
        raise ConfigError(f"there is no {kind} {name} in {path}", hint="Are they in another file? Say --users FILE.")
    if wish.kind is AccountKind.SESSION:
        return _lasting(budgets.session, policy)
    own = users.roles[name].shared if is_role else users.logins[name].budget
    usual = budgets.role if is_role else budgets.user
    return _lasting(own if isinstance(own, EpsilonLimit) else usual, policy)


def _may_be_guest(name: str, users: Users) -> bool:
    """Whether a directory or an issuer of the users file could know somebody by that name."""
    try:
        return bool(users.roles_of_guests) and login_name(name) == name and not users.is_of_file(name)
    except NoSuchName:
        return False


def _of_guest(name: str, users: Users, policy: Policy) -> int | NoLastingLimit:
    """The limit of a login from outside, whose role is known while it is logged in only. Raises ConfigError."""
    limits = {_lasting(r.budget if isinstance(r.budget, EpsilonLimit) else policy.budgets.user, policy)
              for r in users.roles_of_guests}  # fmt: skip
    if len(limits) != 1:
        raise ConfigError(
            f"{name} is no login of the users file, and roles that groups give have different budgets",
            hint="So the limit is not known. Give these roles the same budget, or name the account of a role.",
        )
    return limits.pop()


def _lasting(limit: AccountLimit, policy: Policy) -> int | NoLastingLimit:
    if not isinstance(limit, EpsilonLimit) or limit.refresh is not Refresh.LIFETIME:
        return NoLastingLimit()
    return limit_pico(policy.privacy, limit.epsilon)


def _operator() -> str:
    """Who runs the command, for the books."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
