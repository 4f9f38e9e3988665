"""What does one served dataset consist of, and which version of it does a query use?

A `Version` is immutable: a query keeps the one it was prepared with, a reload replaces the current one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from proxy.analysis.units import UniqueKeys
from proxy.dp.accounting import limit_pico, pool_atto
from proxy.dp.mechanisms import Distribution
from proxy.dp.samplers import Noise
from proxy.engines.base import Engine
from proxy.errors import AuthenticationFailed
from proxy.front.relations import ADMIN_RELATIONS, RELATIONS
from proxy.ledger.base import Ledger
from proxy.pipeline.premises import Premises
from proxy.plan.charge import Account, AccountKind, Cost
from proxy.plan.profile.learned import with_limits
from proxy.plan.profile.profile import TableProfile
from proxy.policy.model import AccountLimit, EpsilonLimit, Guest, Login, Policy, Privacy, Role, Table, Users
from proxy.policy.rights import tables_of
from proxy.session.asking.reading import NoReader, TextReader
from proxy.session.asking.seen_releases import SeenReleases
from proxy.session.asking.single_flight import Underway
from proxy.session.uses import Uses
from proxy.sql.render.dialects import dialect_of

DataStamp = tuple[tuple[str | int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Version:
    """One policy with the data it was checked against; equal only to itself.

    salt: hexadecimal, per dataset, orders keys above K. in_force_since: when a dataset began to serve this very policy,
    whatever was loaded again meanwhile. profiles: what an administrator had released of these tables' units.
    better_known: tables of which the data say more than the policy: a column's precision, or the values that it holds.
    data_stamp: which files hold the data; empty if that is not known.
    """

    policy: Policy
    users: Users
    engine: Engine
    unique: UniqueKeys
    salt: str
    loaded_at: datetime
    in_force_since: datetime
    profiles: tuple[TableProfile, ...] = ()
    better_known: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))
    data_stamp: DataStamp = ()
    _premises: dict[str, Premises] = field(default_factory=dict, init=False, repr=False)

    def role_of(self, login: str) -> Role:
        """The role of a login. Raises AuthenticationFailed when the login was removed meanwhile."""
        return self.users.roles[self._found(login).role]

    def _found(self, login: str) -> Login | Guest:
        found = self.users.find(login)
        if found is None:
            raise AuthenticationFailed(f'the login "{login}" was removed')
        return found

    def with_guests(self, guests: Mapping[str, Guest]) -> Version:
        """The same with other guests. What is known of roles stays, since they are the same."""
        changed = replace(self, users=replace(self.users, guests=guests))
        object.__setattr__(changed, "_premises", self._premises)  # also what is only found later
        return changed

    def is_same_for(self, login: str, other: Version) -> bool:
        """Whether a login's statements are planned from the same in both, whichever guests have come or gone.

        Raises AuthenticationFailed when the login was removed.
        """
        return self.premises(login) is other.premises(login)

    def visible_tables(self, login: str) -> Mapping[str, Table]:
        """The tables a login may name, as they are for its role."""
        return tables_of(self.role_of(login), self.policy.tables)

    def profiles_for(self, login: str) -> tuple[TableProfile, ...]:
        """The profiles that a login's statements may be planned with.

        Claim (docs/claims/roles.md): none is of a table of which the login's role has some rows: it tells of all.
        """
        rows = self.role_of(login).rows
        return tuple(p for p in self.profiles if p.table not in rows)

    def premises(self, login: str) -> Premises:
        """What the login's statements are planned from: one object for each role."""
        role = self.role_of(login).name
        if role not in self._premises:
            self._premises.setdefault(role, self._premises_of(self.role_of(login), self.profiles_for(login)))
        return self._premises[role]

    def _premises_of(self, role: Role, profiles: tuple[TableProfile, ...]) -> Premises:
        relations = frozenset((*RELATIONS, *(ADMIN_RELATIONS if role.is_admin else ())))
        policy, known = self.policy, {n: self.better_known.get(n, t) for n, t in self.policy.tables.items()}
        return Premises(
            dataset=policy.dataset, tables=with_limits(policy.tables, profiles), relations=relations,
            unique=self.unique, named=with_limits(tables_of(role, known), profiles),
            privacy=policy.privacy, dialect=dialect_of(policy.source), salt=self.salt, profiles=profiles,
        )  # fmt: skip

    def user_name(self, login: str) -> str:
        """Of a login's account and history in the ledger."""
        return f"{self.policy.dataset}/{login}"

    def accounts(self, login: str, session_account: str) -> tuple[Account, ...]:
        """The accounts of one charge: dataset, role, user, session. Names are unique over datasets and logins."""
        privacy, budgets, name, role = (
            self.policy.privacy,
            self.policy.budgets,
            self.user_name(login),
            self.role_of(login),
        )
        own = self._found(login).budget
        user = own if isinstance(own, EpsilonLimit) else budgets.user
        shared = role.shared if isinstance(role.shared, EpsilonLimit) else budgets.role
        return (
            self.dataset_account(),
            _account(AccountKind.ROLE, f"{self.policy.dataset}/{role.name}", shared, privacy),
            _account(AccountKind.USER, name, user, privacy),
            _account(AccountKind.SESSION, f"{name}/{session_account}", budgets.session, privacy),
        )

    def dataset_account(self) -> Account:
        return dataset_account(self.policy)


def dataset_account(policy: Policy) -> Account:
    """The account that pays for whatever anybody is shown."""
    return _account(AccountKind.DATASET, policy.dataset, policy.budgets.dataset, policy.privacy)


def _account(kind: AccountKind, name: str, limit: AccountLimit, privacy: Privacy) -> Account:
    if isinstance(limit, EpsilonLimit):
        most = Cost(limit_pico(privacy, limit.epsilon), pool_atto(privacy))
        return Account(
            kind=kind, name=name, limited=True, limit=most, refresh=limit.refresh, accounting=privacy.accounting,
            promise=privacy.promise,
        )  # fmt: skip
    return Account(
        kind=kind, name=name, limited=False, limit=Cost(0, 0), accounting=privacy.accounting, promise=privacy.promise
    )


@dataclass(slots=True, kw_only=True)
class Dataset:
    """A served database: its current version, and what all versions share.

    trouble: why the last edited policy was not taken, "" if it was; for administrators, since private rows may be why.
    reader: of texts that only PostgreSQL understands.
    """

    ledger: Ledger
    noise: Mapping[Distribution, Noise]
    current: Version
    trouble: str = ""
    reader: TextReader = NoReader()  # noqa: RUF009 - an immutable value
    underway: Underway = field(default_factory=Underway)
    known: SeenReleases = field(default_factory=SeenReleases)
    uses: Uses = field(default_factory=Uses)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def used(self) -> Iterator[Version]:
        """The current version, whose engine stays open until this is left."""
        with ExitStack() as held:
            with self._lock:  # nobody swaps between the two
                version = self.current
                held.enter_context(self.uses.of(version.engine))
            yield version

    def admit(self, guests: Mapping[str, Guest]) -> None:
        """Know these guests from now on, and no others."""
        with self._lock:
            self.current = self.current.with_guests(guests)

    def swap(self, version: Version) -> Version:
        """Serve another version from now on; returns the replaced one."""
        with self._lock:
            old, self.trouble = self.current, ""
            is_same = version.policy == old.policy
            self.current = replace(version, in_force_since=old.in_force_since) if is_same else version
        return old
