"""What does a release cost, who pays, and what proves that it was paid?

`Reserved` is the ticket for what is promised, built by `ledger` alone; `Unpromised` that for what is outside the
promise. An engine accepts no other.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from proxy.dp.selection import KeyRule
from proxy.policy.model import Accounting, Promise, Refresh


@dataclass(frozen=True, slots=True)
class Cost:
    """An exact privacy charge. zcdp: (rho in 1e-12, delta in 1e-18); pure: (epsilon in 1e-12, 0)."""

    pico: int
    atto: int

    def __post_init__(self) -> None:
        if self.pico < 0 or self.atto < 0:
            raise ValueError("a cost is never negative")

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.pico + other.pico, self.atto + other.atto)

    def fits(self, limit: Cost) -> bool:
        """Whether neither part is more than that of the limit."""
        return self.pico <= limit.pico and self.atto <= limit.atto


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseKey:
    """Identity of a release for reuse: two equal keys ask for the same noisy numbers."""

    fingerprint: str  # SHA-256 of canonical plan, parameters, privacy parameters and cost
    policy_digest: str
    data_version: str


class AccountKind(enum.StrEnum):
    """Who pays for a statement: all users of the dataset together, those of a role, the login, its session."""

    DATASET = "dataset"
    ROLE = "role"
    USER = "user"
    SESSION = "session"

    @property
    def is_own(self) -> bool:
        """Whether it is the caller's alone, so that its figures tell nothing about others."""
        return self in (AccountKind.USER, AccountKind.SESSION)


def dataset_of(account: str) -> str:
    """The dataset whose account it is: `shop` of `shop`, of `shop/analyst` and of `shop/ann/1`."""
    return account.partition("/")[0]


def within_dataset(account: str) -> str:
    """Its name without the dataset's: `ann` of `shop/ann`, and of the dataset's own account `shop`."""
    return account.partition("/")[2] or account


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Somebody who pays. `limit` of pico/atto is rounded down; a `limited` False never refuses.

    refresh: what the limit is for. accounting: what pico counts, of this limit and of the costs booked to it.
    promise: for which all these costs are computed.
    """

    kind: AccountKind
    name: str
    limited: bool
    limit: Cost
    refresh: Refresh = Refresh.LIFETIME
    accounting: Accounting = Accounting.ZCDP
    promise: Promise = Promise()  # noqa: RUF009 - a value


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One new or stored release that a statement needs, with its price if new.

    keys: the rules by which it shows private keys.
    """

    key: ReleaseKey
    cost: Cost
    keys: tuple[KeyRule, ...] = ()


@dataclass(frozen=True, slots=True)
class Unpromised:
    """Proof that a SELECT reads nothing that the dataset's promise is about. Built by `plan.unpromised` alone."""

    sql: str

    @property
    def further(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """Proof that `key`'s release is charged, durably, to every account. Built by `ledger` alone.

    further: the SQL of its later stages. attempt: how often it was handed out.
    """

    release_id: int
    key: ReleaseKey
    cost: Cost
    sql: str
    further: tuple[str, ...] = ()
    attempt: int = 1
