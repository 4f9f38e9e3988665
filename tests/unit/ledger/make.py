"""Values for ledger tests: accounts, wanted releases, questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

from proxy.dp.accounting import ATTO, PICO
from proxy.dp.selection import KeyRule
from proxy.ledger.base import Gift, Question, Wanted
from proxy.plan.charge import Account, AccountKind, Cost, ReleaseKey, Request, Reserved
from proxy.policy.model import Accounting, Promise, Refresh
from proxy.policy.pledge import Pledge, RowsOwner

RULE = KeyRule(tau=30.5, sigma_n=5.0, norm_ratio=1.5, keys_per_unit=10, min_units=0)
EARLIER = Path(__file__).with_name("earlier.jsonl")  # an export of the version before entries said what is promised
START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def account(
    kind: str,
    name: str = "",
    *,
    pico: int = PICO,
    atto: int = ATTO,
    limited: bool = True,
    refresh: Refresh = Refresh.LIFETIME,
    accounting: Accounting = Accounting.ZCDP,
) -> Account:
    return Account(
        kind=AccountKind(kind),
        name=name or f"the {kind}",
        limited=limited,
        limit=Cost(pico, atto),
        refresh=refresh,
        accounting=accounting,
    )


def payers(pico: int = PICO, user: str = "alice", session: str = "s1") -> tuple[Account, ...]:
    """A dataset account with plenty, a user's and a session's with `pico`."""
    return (account("dataset", "shop", pico=1000 * PICO), account("user", user, pico=pico), account("session", session))


def key(name: str = "a") -> ReleaseKey:
    return ReleaseKey(fingerprint=f"plan {name}", policy_digest="policy", data_version="1")


def want(
    name: str = "a", pico: int = 1000, atto: int = 7, sql: str = "select 1", keys: tuple[KeyRule, ...] = (),
    digest: str = "policy",
) -> tuple[Wanted, ...]:  # fmt: skip
    of = replace(key(name), policy_digest=digest)
    return (Wanted(Request(key=of, cost=Cost(pico, atto), keys=keys), sql),)


def pledge(
    promise: Promise = Promise(), *, dataset: str = "shop", unit: str = "customer", owners: str = "the unit is id",  # noqa: B008 a value
    changed_from: str = "", digest: str = "",
) -> Pledge:  # fmt: skip
    """A policy's promise; each promise has a policy of its own."""
    return Pledge(
        dataset=dataset, policy_digest=digest or f"policy of {promise}", promise=promise, unit=unit,
        owners=(("table orders", RowsOwner(owners)),), changed_from=changed_from,
    )  # fmt: skip


def ask(query: str = "select count(*) from users", login: str = "alice", after_s: float = 0) -> Question:
    return Question(login=login, query=query, at=START + timedelta(seconds=after_s))


def gift(account: Account, pico: int, atto: int = 0, after_s: float = 0) -> Gift:
    at = START + timedelta(seconds=after_s)
    cost = Cost(pico, atto)
    return Gift(
        kind=account.kind, name=account.name, accounting=account.accounting, cost=cost, by="root", reason="why", at=at
    )


def reserved_of(item: object) -> Reserved:
    assert isinstance(item, Reserved)
    return item


@contextmanager
def full_disk(largest: Path) -> Iterator[None]:
    """No file of this process can grow beyond the size of `largest`, as on a full disk."""
    soft, hard = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (largest.stat().st_size, hard))
    try:
        yield
    finally:
        setrlimit(RLIMIT_FSIZE, (soft, hard))
