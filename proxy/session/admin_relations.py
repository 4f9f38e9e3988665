"""What do hush.admin_history and hush.admin_budget show an administrator?

Every login's charged statements, and what accounts were charged by day and tables, from the ledger's own entries. Any
other login has to do with the public PostgreSQL's relations of these names, which nobody may read: what is asked tells
of who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from proxy.dp.accounting import ATTO, PICO, epsilon_spent
from proxy.events import tables_together
from proxy.ledger.balances import in_present
from proxy.ledger.base import Ledger
from proxy.ledger.chain import Entry, Line
from proxy.plan.charge import AccountKind, Cost, dataset_of, within_dataset
from proxy.policy.model import Accounting, Policy

AdminRow = tuple[str | None, ...]

_SHOWN = (AccountKind.DATASET, AccountKind.ROLE, AccountKind.USER)
_NOTHING = Cost(0, 0)


def admin_rows(name: str, policy: Policy, ledger: Ledger) -> tuple[AdminRow, ...]:
    """The rows of a relation of `ADMIN_RELATIONS`. Raises LedgerFailed."""
    return tuple(_ROWS[name](policy, ledger))


@dataclass(frozen=True, slots=True)
class _Charge:
    """An entry of a dataset with its costs in the accounting of today."""

    entry: Entry
    paid: Mapping[AccountKind, tuple[Line, Cost]]
    tables: str | None


def _charges(policy: Policy, ledger: Ledger) -> Iterator[_Charge]:
    now = policy.privacy.accounting
    for entry in ledger.entries():
        if not isinstance(entry, Entry):
            continue
        lines = [line for line in entry.lines if dataset_of(line.name) == policy.dataset]
        if lines:
            paid = {line.kind: (line, in_present(line.cost, entry.accounting, now)) for line in lines}
            yield _Charge(entry, paid, tables_together(entry.query, policy.tables) or None)


def _history(policy: Policy, ledger: Ledger) -> Iterator[AdminRow]:
    """The newest first."""
    for charge in reversed(tuple(_charges(policy, ledger))):
        role, own, dataset = (
            charge.paid.get(kind) for kind in (AccountKind.ROLE, AccountKind.USER, AccountKind.DATASET)
        )
        yield (
            charge.entry.at.isoformat(), within_dataset(charge.entry.login),
            within_dataset(role[0].name) if role else None, charge.tables, charge.entry.query,
            *_figures(own[1] if own else _NOTHING, policy),
            *_figures(dataset[1] if dataset else _NOTHING, policy)[:2],
        )  # fmt: skip


def _budget(policy: Policy, ledger: Ledger) -> Iterator[AdminRow]:
    """Charges of each account but those of sessions, by day and tables; they add up to what the account has spent.

    What counts more since more was promised is a row without a day.
    """
    sums: dict[tuple[str, AccountKind, str, str | None], tuple[int, Cost]] = {}
    left = {(t.kind, t.name): t.spent for t in ledger.all_accounts()
            if t.kind in _SHOWN and dataset_of(t.name) == policy.dataset}  # fmt: skip
    for charge in _charges(policy, ledger):
        for kind, (line, cost) in charge.paid.items():
            if kind in _SHOWN:
                row = charge.entry.at.date().isoformat(), kind, line.name, charge.tables
                times, so_far = sums.get(row, (0, _NOTHING))
                sums[row] = times + 1, so_far + cost
                spent = left[kind, line.name]
                left[kind, line.name] = Cost(spent.pico - cost.pico, spent.atto - cost.atto)
    for (day, kind, name, tables), (times, cost) in sorted(sums.items(), key=str):
        yield day, kind.value, within_dataset(name), tables, str(times), *_figures(cost, policy)
    for (kind, name), beyond in left.items():
        if beyond.pico > 0 or beyond.atto > 0:
            more = Cost(max(0, beyond.pico), max(0, beyond.atto))
            yield None, kind.value, within_dataset(name), None, "0", *_figures(more, policy)


def _figures(cost: Cost, policy: Policy) -> tuple[str, str | None, str]:
    """Epsilon, which does not add up, rho, which does, and delta."""
    is_pure = policy.privacy.accounting is Accounting.PURE
    rho = None if is_pure else f"{cost.pico // PICO}.{cost.pico % PICO:012d}"
    return repr(float(epsilon_spent(policy.privacy, cost.pico))), rho, repr(cost.atto / ATTO)


_ROWS: Mapping[str, Callable[[Policy, Ledger], Iterator[AdminRow]]] = MappingProxyType(
    {"admin_history": _history, "admin_budget": _budget}
)
