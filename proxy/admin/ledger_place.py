"""Where are the books that a command is about: files of a state directory, or PostgreSQL?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, assert_never

import typer

from proxy.errors import ConfigError
from proxy.ledger import grants, moving, replay
from proxy.ledger.base import NOTHING, AccountTotal, Gift, Restated, VerifiedLedger
from proxy.ledger.books import Books
from proxy.ledger.exchange import Item
from proxy.ledger.postgres import books as postgres_books
from proxy.plan.charge import Account, AccountKind, Cost
from proxy.policy.pledge import Pledge

StateOption = Annotated[
    Path | None,
    typer.Option("--state", metavar="DIR", help="State directory of the proxy.", envvar="HUSHQL_STATE"),
]
LedgerOption = Annotated[
    str, typer.Option("--ledger", metavar="URL", help="Books in PostgreSQL instead.", envvar="HUSHQL_LEDGER")
]


@dataclass(frozen=True, slots=True)
class InFiles:
    """The files of a state directory."""

    directory: Path

    def __str__(self) -> str:
        return str(self.directory)


@dataclass(frozen=True, slots=True)
class InPostgres:
    """A database that proxies share."""

    url: str

    def __str__(self) -> str:
        return self.url


LedgerPlace = InFiles | InPostgres


def place_of(state: Path | None, ledger: str) -> LedgerPlace:
    """The place that the options name; PostgreSQL if both do. Raises ConfigError if none does."""
    if ledger:
        return InPostgres(ledger)
    if state is None:
        raise ConfigError("there are no books to look at", hint="Give --state, or --ledger.")
    return InFiles(state)


def inspect(place: LedgerPlace) -> VerifiedLedger:
    match place:
        case InFiles(directory):
            return replay.inspect(directory)
        case InPostgres(url):
            return postgres_books.inspect_at(url)
        case _ as never:
            assert_never(never)


def foretell(place: LedgerPlace, pledge: Pledge, account: Account) -> Restated:
    """What stating a promise would make of what was spent. Raises ConfigError, LedgerFailed."""
    at = datetime.now(UTC)
    match place:
        case InFiles(directory):
            return replay.foretell(directory, pledge, account, at)
        case InPostgres(url):
            return postgres_books.foretell_at(url, pledge, account, at)
        case _ as never:
            assert_never(never)


def items_of(place: LedgerPlace, books: Books) -> Iterator[Item]:
    """All entries, then the releases stored for them, in one reading.

    books: new ones; from the first item on they have it all added up. Raises ConfigError, LedgerFailed.
    """
    match place:
        case InFiles(directory):
            return moving.items_of(directory, books)
        case InPostgres(url):
            return postgres_books.items_at(url, books)
        case _ as never:
            assert_never(never)


def take_in(place: LedgerPlace, items: Iterable[Item]) -> VerifiedLedger:
    match place:
        case InFiles(directory):
            return moving.take_in(directory, items)
        case InPostgres(url):
            return postgres_books.take_in_at(url, items)
        case _ as never:
            assert_never(never)


def granted_to(place: LedgerPlace, kind: AccountKind, account: str) -> Cost:
    """What an account was given so far. Raises ConfigError, LedgerFailed."""
    found = (total.granted for total in inspect(place).totals if (total.kind, total.name) == (kind, account))
    return next(found, NOTHING)


def grant(place: LedgerPlace, gift: Gift) -> AccountTotal:
    match place:
        case InFiles(directory):
            return grants.grant_in_files(directory, gift)
        case InPostgres(url):
            return postgres_books.grant_at(url, gift)
        case _ as never:
            assert_never(never)
