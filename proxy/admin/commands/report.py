"""What has been charged, by whom, about what and when? The command `hushql ledger report`.

Each charge counts for the dataset's account once, so its parts add up to that account; beside it stands what the login,
or the role, has paid for itself, which is more where several were shown the same.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Annotated

import typer

from proxy.admin.files import read_policy
from proxy.admin.ledger_place import LedgerOption, LedgerPlace, StateOption, items_of, place_of
from proxy.admin.output import print_json, print_table
from proxy.dp.accounting import PICO, epsilon_spent
from proxy.events import tables_together
from proxy.ledger.balances import in_present
from proxy.ledger.books import Books
from proxy.ledger.chain import Entry, Grant, decode
from proxy.ledger.exchange import Body
from proxy.plan.charge import AccountKind, dataset_of, within_dataset
from proxy.policy.figures import figure
from proxy.policy.model import Accounting, Policy

HEADINGS = ("what", "statements", "epsilon of the dataset", "own epsilon")
RESTATED = "(counts more since more was promised)"
_NONE = "(none)"


class ReportedBy(enum.Enum):
    """What the rows of a report are."""

    USER = "user"
    ROLE = "role"
    TABLE = "table"
    DAY = "day"


@dataclass(slots=True)
class ReportRow:
    """What the dataset's account paid for it, what its own account did, and in how many statements. In 1e-12."""

    name: str
    dataset: int = 0
    own: int = 0
    statements: int = 0


def report(
    by: Annotated[ReportedBy, typer.Option("--by", help="What the rows are.")],
    policy: Annotated[Path, typer.Option("--policy", metavar="FILE", help="The policy of the dataset.")],
    state: StateOption = None,
    ledger: LedgerOption = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Say what was charged to a dataset by login, role, table or day.

    The parts add up to the dataset's account in what --json prints, rho or pure epsilon; epsilon of rho does not add
    up. Verifies first; exit status 1 if the books are not right.
    """
    read, place = read_policy(policy, os.environ), place_of(state, ledger)
    rows = rows_of(place, read, by)
    if as_json:
        print_json([_data(row) for row in rows])
        return
    said = [cells_of(row, read) for row in rows]
    total = ReportRow("in all", sum(r.dataset for r in rows), 0, sum(r.statements for r in rows))
    print_table(HEADINGS, [*said, cells_of(total, read)], right=frozenset(range(1, len(HEADINGS))))


class Tally:
    """Adds up what a dataset's charges have in common: their login, role, table or day."""

    def __init__(self, policy: Policy, by: ReportedBy) -> None:
        self._policy = policy
        self._by = by
        self._rows: dict[str, ReportRow] = {}

    def add(self, entry: Entry) -> None:
        """Count one charge."""
        name = _name(entry, self._by, self._policy)
        row = self._rows.setdefault(name, ReportRow(name))
        row.statements += 1
        present = self._policy.privacy.accounting
        row.dataset += paid_by(entry, AccountKind.DATASET, present)
        row.own += paid_by(entry, AccountKind.ROLE if self._by is ReportedBy.ROLE else AccountKind.USER, present)

    def rows(self, spent: int) -> list[ReportRow]:
        """The most charged first, days in their order. spent: what the dataset's account has spent in all, in 1e-12."""
        is_by_day = self._by is ReportedBy.DAY
        found = sorted(
            self._rows.values(), key=lambda row: row.name if is_by_day else (-row.dataset, -row.own, row.name)
        )
        beyond = spent - sum(row.dataset for row in found)
        return [*found, ReportRow(RESTATED, beyond)] if beyond else found


def rows_of(place: LedgerPlace, policy: Policy, by: ReportedBy) -> list[ReportRow]:
    """The rows, the most charged first, days in their order. Raises ConfigError, LedgerFailed."""
    books, tally = Books(), Tally(policy, by)
    for entry in entries_of(place, policy.dataset, books):
        tally.add(entry)
    return tally.rows(spent_in(books, policy))


def spent_in(books: Books, policy: Policy) -> int:
    """What the dataset's account has spent, in 1e-12."""
    account = AccountKind.DATASET, policy.dataset
    return next((t.spent.pico for t in books.totals() if (t.kind, t.name) == account), 0)


def entries_of(place: LedgerPlace, dataset: str, books: Books) -> Iterator[Entry]:
    """The charges of a dataset, the first first, by one reading. Raises ConfigError, LedgerFailed.

    books: new ones, which have the same charges added up at the end.
    """
    return (event for event in charges_and_grants(place, dataset, books) if isinstance(event, Entry))


def charges_and_grants(place: LedgerPlace, dataset: str, books: Books) -> Iterator[Entry | Grant]:
    """Both in their order, by one reading. Raises and fills `books` as `entries_of` does."""
    bodies = takewhile(lambda item: isinstance(item, Body), items_of(place, books))
    for event in (decode(item.text) for item in bodies if isinstance(item, Body)):
        match event:
            case Entry(lines=lines) if any(dataset_of(line.name) == dataset for line in lines):
                yield event
            case Grant(name=name) if dataset_of(name) == dataset:
                yield event
            case _:
                continue


def paid_by(entry: Entry, kind: AccountKind, present: Accounting) -> int:
    """What the account of a kind paid of a charge, in 1e-12 of rho or of pure epsilon, as the present accounting is."""
    paid = (in_present(line.cost, entry.accounting, present).pico for line in entry.lines if line.kind is kind)
    return next(paid, 0)


def login_of(entry: Entry) -> str:
    """Who was charged, without the dataset's name."""
    return within_dataset(entry.login) or _NONE


def _name(entry: Entry, by: ReportedBy, policy: Policy) -> str:
    names: Mapping[AccountKind, str] = {line.kind: within_dataset(line.name) for line in entry.lines}
    match by:
        case ReportedBy.DAY:
            return entry.at.date().isoformat()
        case ReportedBy.ROLE:
            return names.get(AccountKind.ROLE, _NONE)
        case ReportedBy.USER:
            return login_of(entry)
        case ReportedBy.TABLE:
            return tables_together(entry.query, policy.tables) or _NONE


def cells_of(row: ReportRow, policy: Policy) -> list[str]:
    """Epsilon of each: it does not add up, as rho does, which --json prints."""
    own = figure(epsilon_spent(policy.privacy, row.own)) if row.own else ""
    return [row.name, str(row.statements), figure(epsilon_spent(policy.privacy, row.dataset)), own]


def _data(row: ReportRow) -> dict[str, str | int]:
    """spent, own: rho, or epsilon in pure accounting, exact decimals as text."""
    return {
        "name": row.name, "statements": row.statements, "spent": _decimal(row.dataset), "own": _decimal(row.own),
    }  # fmt: skip


def _decimal(pico: int) -> str:
    return f"{pico // PICO}.{pico % PICO:012d}"
