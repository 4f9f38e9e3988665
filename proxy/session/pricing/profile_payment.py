"""Who pays, beside the dataset, for what profiles tell?

Nobody where the policy says that they are known. Where they are charged, every other account of an asker pays the whole
price of a table's profile once, before the first statement, EXPLAIN or estimate that may use it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from proxy.dp.accounting import epsilon_spent
from proxy.errors import HushError, LedgerFailed, PolicyForbids
from proxy.ledger.base import AccountSpent, Ledger, Outcome, Question, Wanted
from proxy.pipeline.settings import Settings
from proxy.plan.charge import Account, AccountKind, Cost, Request
from proxy.plan.profile.profile import TableProfile
from proxy.policy.figures import figure
from proxy.policy.model import ProfileUse
from proxy.session.answering.notices import budget_spent
from proxy.session.asker import Asker
from proxy.session.contract import Notice
from proxy.session.dataset import Version
from proxy.session.pricing.price import Due, dues, is_above_cap, own_cost
from proxy.wire.exchange import CHARGED

_NOTHING = Cost(0, 0)
_SQL = "-- a profile that is there"  # never run: it is stored


@dataclass(frozen=True, slots=True)
class ProfilesPaid:
    """What was charged just now for profiles of these tables: the most that one of the asker's own accounts paid."""

    tables: tuple[str, ...]
    epsilon: float

    @property
    def notice(self) -> Notice:
        """For whoever reads it before the charge of the statement itself."""
        return Notice(severity="NOTICE", sqlstate=CHARGED, message=f"{self.words}, once", detail=_WHY)

    @property
    def words(self) -> str:
        return f"charged epsilon {figure(self.epsilon)} for the profile of {', '.join(self.tables)}"

    def tell(self, error: HushError) -> None:
        """Say it in the error of the statement, which says of itself alone whether anything was charged."""
        error.detail = f"{error.detail} Before that, the session {self.words}, once.".strip()


_WHY = (
    "The policy says profile: charged, so your accounts pay for what it tells before EXPLAIN, estimates and answers"
    " that use it."
)


def is_paid(profile: TableProfile, version: Version, accounts: tuple[Account, ...], ledger: Ledger) -> bool:
    """Whether accounts may be told what a profile says.

    Claim (docs/claims/profile.md): under `profile: charged` only where all of them have paid all of its price.
    """
    if version.policy.privacy.profile is ProfileUse.KNOWN:
        return True
    return all(cost == _NOTHING for cost in ledger.quote(accounts, _requests([profile]), datetime.now(UTC)))


def pay_for_profiles(tables: Collection[str], asker: Asker, settings: Settings) -> tuple[ProfilesPaid, ...]:
    """Charge the asker for the profiles of these tables, as far as it has not paid; what was charged, if anything was.

    Claim (docs/claims/profile.md): under `profile: charged`, when this returns every account of the asker has paid the
    whole price of these profiles. Raises BudgetSpent, PolicyForbids, with nothing charged, and LedgerFailed.
    """
    version, privacy = asker.version, asker.version.policy.privacy
    named = [p for p in version.profiles_for(asker.login) if p.table in tables]
    if privacy.profile is ProfileUse.KNOWN or not named:
        return ()
    requests = _requests(named)
    due = dues(requests, asker, fresh=False)
    if all(d.cost == _NOTHING for d in due):
        return ()
    _check_stored(due)
    names = tuple(p.table for p in named if not is_paid(p, version, asker.accounts, asker.dataset.ledger))
    found = ProfilesPaid(names, epsilon_spent(privacy, own_cost(due).pico))
    if is_above_cap(own_cost(due), settings, privacy):
        raise PolicyForbids(
            f"the profile of {', '.join(names)} costs epsilon {figure(found.epsilon)}, once, and hush.max_charge allows"
            f" {figure(settings.max_charge, 6)}",
            detail="Nothing was charged.",
            hint="Raise hush.max_charge for the first statement about the table.",
        )
    _reserve(requests, f"(profile of {', '.join(names)})", asker)
    return (found,)


def _requests(profiles: Sequence[TableProfile]) -> tuple[Request, ...]:
    return tuple(dict.fromkeys(one.request for profile in profiles for one in profile.paid))


def _check_stored(due: Sequence[Due]) -> None:
    """What is served was paid for by the dataset's account: it is never drawn anew here. Raises LedgerFailed."""
    if any(d.cost != _NOTHING for d in due if d.account.kind is AccountKind.DATASET):
        raise LedgerFailed("a profile is served that the dataset's account has not paid for")


def _reserve(requests: tuple[Request, ...], text: str, asker: Asker) -> None:
    """Charge all of it, durably; what was made under one policy at a time. Raises BudgetSpent, LedgerFailed."""
    ledger, now = asker.dataset.ledger, datetime.now(UTC)
    question = Question(login=asker.version.user_name(asker.login), query=text, at=now)
    for some in _by_policy(requests):
        try:
            receipt = ledger.reserve(asker.accounts, tuple(Wanted(one, _SQL) for one in some), question)
        except AccountSpent as error:
            raise budget_spent(error, asker.version.policy.privacy) from None
        ledger.note_outcome(receipt.statement, Outcome.ANSWERED)
        ledger.settle(receipt.statement)


def _by_policy(requests: Sequence[Request]) -> Iterator[tuple[Request, ...]]:
    ordered = sorted(requests, key=lambda one: one.key.policy_digest)
    for _, some in groupby(ordered, key=lambda one: one.key.policy_digest):
        yield tuple(some)
