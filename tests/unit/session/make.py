"""Versions, accounts and receipts for tests of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

from proxy.analysis.units import UniqueKeys
from proxy.engines.base import Engine
from proxy.ledger.base import Balance
from proxy.plan.charge import Account, AccountKind, Cost
from proxy.policy.model import EpsilonLimit, Login, NoLimit, Policy, Privacy, Role, Users
from proxy.session.dataset import Version
from tests.unit.sql.corpus import policy

PRIVACY = Privacy(unit="customer")
LOADED_AT = datetime(2026, 11, 21, tzinfo=UTC)
#: an account of epsilon 2, in 1e-12 of rho
LIMIT = 83_438_437_215


def account(kind: str = "user", *, limited: bool = True) -> Account:
    return Account(kind=AccountKind(kind), name=f"shop/{kind}", limited=limited, limit=Cost(LIMIT if limited else 0, 0))


def balance(spent: float, kind: str = "user", *, limited: bool = True) -> Balance:
    """A balance of which this share is spent."""
    return Balance(account=account(kind, limited=limited), spent=Cost(round(spent * LIMIT), 0))


def version(served: Policy | None = None, roles: Mapping[str, Role] | None = None) -> Version:
    """The cases' policy with logins ann, boss and clerk; its engine must not be asked.

    Units that are cut are not counted: engines that are made up have no rows that tell of them.
    """
    served = served or policy()
    served = replace(served, privacy=replace(served.privacy, tell_cut=False))
    known = {"analyst": Role(name="analyst"), "boss": Role(name="boss", is_admin=True),
             "clerk": Role(name="clerk", tables=("orders", "stores")), **(roles or {})}  # fmt: skip
    logins = {
        name: Login(name=name, scram="", role=role, budget=budget)
        for name, role, budget in (
            ("ann", "analyst", NoLimit()), ("boss", "boss", EpsilonLimit(5)), ("clerk", "clerk", NoLimit()),
        )
    }  # fmt: skip
    return Version(
        policy=served, users=Users(logins=logins, roles=known), engine=cast(Engine, None),
        unique=UniqueKeys(frozenset()), salt="", loaded_at=LOADED_AT, in_force_since=LOADED_AT,
    )  # fmt: skip
