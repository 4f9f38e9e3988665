"""What do hush.budget, hush.history, hush.last_query, hush.messages and hush.policy show this session?

A user sees own figures only; those of the dataset's account and of the role's are for admins, because they also depend
on what others asked. What became of an edited policy is for admins too, because what the data do not
keep is a fact of private rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from proxy.dp.accounting import ATTO, PICO, epsilon_spent, knob_pico
from proxy.front.relations import ADMIN_RELATIONS, RELATIONS
from proxy.ledger.balances import in_present
from proxy.ledger.base import Balance
from proxy.ledger.lifetime import everyone_epsilon, lifetime_epsilon
from proxy.ledger.restated import outside_words
from proxy.plan.charge import Account, AccountKind, Cost
from proxy.plan.profile.learned import told_of
from proxy.plan.unpromised import protected_words
from proxy.plan.words.outputs import OutputNoise
from proxy.policy.model import (
    Accounting,
    Bounded,
    Column,
    Listed,
    LocalTable,
    ProfileUse,
    PublicTable,
    RowUnit,
    Table,
    UnitColumns,
    UnitVia,
)
from proxy.session.admin_relations import admin_rows
from proxy.session.contract import Notice
from proxy.session.dataset import Dataset, Version
from proxy.session.pricing.profile_payment import is_paid
from proxy.session.pricing.windows import refreshes, window_ends
from proxy.sql.query.front.splice import InjectedColumn
from proxy.sqltypes import SqlType

IN_FORCE = "in force"
_MOST_HISTORY = 1000
_NOT_SHOWN = "a column that is not shown"
RelationRow = tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastQuery:
    """The session's latest private statement. left_out: what its bounds leave out, in words."""

    outputs: tuple[OutputNoise, ...]
    cost: Cost
    is_reused: bool
    notices: tuple[Notice, ...]
    left_out: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who looks, at what, with which accounts. epsilon: the current knob, for queries_left."""

    dataset: Dataset
    version: Version
    login: str
    accounts: tuple[Account, ...]
    last: tuple[LastQuery, ...]
    epsilon: float


def system_columns(name: str, viewer: Viewer) -> tuple[InjectedColumn, ...]:
    """The contents of hush.<name> as columns.

    Claim: relations of administrators are read for a login of such a role alone.
    """
    if name in ADMIN_RELATIONS:
        assert viewer.version.role_of(viewer.login).is_admin, "no other login's premises have them"
        return columns_of(ADMIN_RELATIONS[name], admin_rows(name, viewer.version.policy, viewer.dataset.ledger))
    return columns_of(RELATIONS[name], _ROWS[name](viewer))


def columns_of(columns: Sequence[tuple[str, SqlType]], rows: Sequence[RelationRow]) -> tuple[InjectedColumn, ...]:
    """Rows as columns."""
    return tuple(
        InjectedColumn(column, kind, tuple(row[i] for row in rows)) for i, (column, kind) in enumerate(columns)
    )


def own_accounts(viewer: Viewer) -> tuple[Account, ...]:
    """The accounts whose figures the viewer may see."""
    if viewer.version.role_of(viewer.login).is_admin:
        return viewer.accounts
    return tuple(a for a in viewer.accounts if a.kind.is_own)


def _budget(viewer: Viewer) -> Sequence[RelationRow]:
    knob = knob_pico(viewer.version.policy.privacy, viewer.epsilon)
    balances = viewer.dataset.ledger.balances(viewer.accounts, datetime.now(UTC))
    shown = own_accounts(viewer)
    return [*(_balance(b, balances, viewer, knob) for b in balances if b.account in shown), *_local(viewer)]


def _local(viewer: Viewer) -> Iterator[RelationRow]:
    """What protects the rows of local tables, about which no account says anything."""
    for table in viewer.version.visible_tables(viewer.login).values():
        if table.is_local:
            words = f"protected when collected: {protected_words(table, viewer.version.policy.privacy)}"
            said = {"account": table.name, "kind": "local", "outside_promise": words}
            yield tuple(said.get(name) for name, _ in RELATIONS["budget"])


def _balance(balance: Balance, balances: Sequence[Balance], viewer: Viewer, knob: int) -> RelationRow:
    privacy = viewer.version.policy.privacy
    account, spent, left = balance.account, balance.spent, balance.remaining
    is_pure = privacy.accounting is Accounting.PURE
    epsilon_limit = epsilon_spent(privacy, balance.limit.pico)
    epsilon_used = epsilon_spent(privacy, spent.pico)
    return (
        _shown_name(account),
        account.kind,
        number(epsilon_limit) if account.limited else None,
        number(epsilon_used),
        number(epsilon_spent(privacy, left.pico)) if account.limited else None,
        decimal(balance.limit.pico) if account.limited and not is_pure else None,
        None if is_pure else decimal(spent.pico),
        number(privacy.delta + _beyond(balance) / ATTO),
        str(left.pico // balance.counted(knob)) if account.limited else None,
        window_ends(balance) if refreshes(balance) else None,
        number(lifetime_epsilon(balance, balances, privacy)) if account.limited else None,
        number(everyone_epsilon(balances, privacy)),
        outside_words(balance, privacy) or None,
        number(epsilon_spent(privacy, _told_beside(account, viewer))),
    )


def _told_beside(account: Account, viewer: Viewer) -> int:
    """What all versions of the profiles of the viewer's tables cost that its accounts have not paid for."""
    if account.kind is AccountKind.DATASET or viewer.version.policy.privacy.profile is ProfileUse.CHARGED:
        return 0
    visible = viewer.version.visible_tables(viewer.login)
    return sum(p.all_pico for p in viewer.version.profiles_for(viewer.login) if p.table in visible)


def _beyond(balance: Balance) -> int:
    """The delta that an account was given, or has lost, beyond the policy's."""
    return balance.granted.atto + max(0, balance.spent.atto - balance.limit.atto) * balance.account.limited


def _shown_name(account: Account) -> str:
    """An account's name for people: logins and roles by name, unnamed sessions as the present one."""
    parts = account.name.split("/")
    match account.kind, parts:
        case AccountKind.SESSION, [_, _, "shared", name]:
            return name
        case AccountKind.SESSION, _:
            return "this session"
        case ((AccountKind.USER | AccountKind.ROLE), [_, own]):
            return own
        case _:
            return account.name


def _history(viewer: Viewer) -> Sequence[RelationRow]:
    privacy = viewer.version.policy.privacy
    is_pure = privacy.accounting is Accounting.PURE
    return [
        (
            asked.at.isoformat(),
            asked.query,
            number(epsilon_spent(privacy, cost.pico)),
            None if is_pure else decimal(cost.pico),
            number(cost.atto / ATTO),
            "t" if asked.reused else "f",
            asked.outcome.value,
        )
        for asked in viewer.dataset.ledger.history(viewer.version.user_name(viewer.login), _MOST_HISTORY)
        for cost in [in_present(asked.cost, asked.accounting, privacy.accounting)]
    ]


def _last_query(viewer: Viewer) -> Sequence[RelationRow]:
    privacy = viewer.version.policy.privacy
    is_pure = privacy.accounting is Accounting.PURE
    return [
        (
            o.aggregate, o.mechanism, o.bound, *_noise(o),
            number(epsilon_spent(privacy, last.cost.pico)), None if is_pure else decimal(last.cost.pico),
            number(last.cost.atto / ATTO), "t" if last.is_reused else "f",
            last.left_out or None,
        )
        for last in viewer.last for o in last.outputs
    ]  # fmt: skip


def _messages(viewer: Viewer) -> Sequence[RelationRow]:
    """For who sees no notices: tools that draw tables."""
    return [(n.severity, n.message, n.detail or None) for last in viewer.last for n in last.notices]


def _noise(output: OutputNoise) -> tuple[str | None, str | None]:
    """sd and half width; NULL for an average, whose noise depends on how many rows it is over."""
    return (None, None) if output.is_per_row or output.is_of_rows else (number(output.sd), number(output.half_width_95))


def _policy(viewer: Viewer) -> Sequence[RelationRow]:
    """Claim: for others than admins a function of the policy in force, when it came into force, and of releases."""
    (status, loaded), ledger = _standing(viewer), viewer.dataset.ledger
    profiles = [
        p for p in viewer.version.profiles_for(viewer.login) if is_paid(p, viewer.version, viewer.accounts, ledger)
    ]
    visible = viewer.version.visible_tables(viewer.login)
    return [
        (table.name, column.name, column.type.pg_name, _bounds(column), _values(column), _unit(table, visible),
         "t" if table.is_public else "f", loaded.isoformat(), status, told_of(profiles, table.name, column.name))
        for table in visible.values()
        for column in table.columns if not column.hidden
    ]  # fmt: skip


def _standing(viewer: Viewer) -> tuple[str, datetime]:
    """Whether the policy on disk is in force, and since when what is in force is."""
    if viewer.version.role_of(viewer.login).is_admin:
        return viewer.dataset.trouble or IN_FORCE, viewer.version.loaded_at
    return IN_FORCE, viewer.version.in_force_since


def _bounds(column: Column) -> str | None:
    return f"[{column.domain.lo}, {column.domain.hi}]" if isinstance(column.domain, Bounded) else None


def _values(column: Column) -> str | None:
    return ", ".join(column.domain.words()) if isinstance(column.domain, Listed) else None


def _unit(table: Table, visible: Mapping[str, Table]) -> str | None:
    """How the unit of a row is found, in names that the viewer may see."""
    shown = {c.name for c in table.columns if not c.hidden}
    match table.ownership:
        case PublicTable():
            return None
        case LocalTable():
            return "none: randomized before it was stored"
        case RowUnit():
            return "each row"
        case UnitColumns(columns):
            return ", ".join(c if c in shown else _NOT_SHOWN for c in columns)
        case UnitVia(parent, on):
            path = f"through {parent if parent in visible else 'a table that is not shown'}"
            return f"{path} on {on if on in shown else _NOT_SHOWN}"


def number(value: float) -> str:
    """A double precision value as text."""
    return repr(float(value))


def decimal(pico: int) -> str:
    """An exact number of 1e-12 as text."""
    return f"{pico // PICO}.{pico % PICO:012d}"


_ROWS = {"budget": _budget, "history": _history, "last_query": _last_query, "messages": _messages, "policy": _policy}
