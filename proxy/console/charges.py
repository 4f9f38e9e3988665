"""Who was charged what?

For administrators: everybody's charges one by one, and added up by table, day and login, and top-ups. The figures are
those of `hushql ledger report`. What somebody asked is shown where the log holds it too, else its fingerprint.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.responses import Response

from proxy.admin.commands.report import (
    HEADINGS,
    ReportedBy,
    Tally,
    cells_of,
    charges_and_grants,
    login_of,
    paid_by,
    spent_in,
)
from proxy.console.visits import Console, Visit
from proxy.dp.accounting import epsilon_spent
from proxy.errors import HushError
from proxy.events import fingerprint_of, tables_together
from proxy.ledger.balances import in_present
from proxy.ledger.books import Books
from proxy.ledger.chain import PREVIEW_CHARS, Entry, Grant
from proxy.plan.charge import AccountKind
from proxy.policy.figures import figure
from proxy.policy.model import Policy

PAGE = 100
_MOST_DIGITS = 18  # of the number of a charge: a ledger holds fewer than 2^63
_PARTS = (ReportedBy.TABLE, ReportedBy.DAY, ReportedBy.USER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One charge. seq: its number in the books. asked: the statement, or its fingerprint. Epsilons: as figures.

    own: what the login paid; dataset: what everybody's account did, which is less where the same was released before.
    """

    seq: int
    at: str
    login: str
    tables: str
    asked: str
    own: str
    dataset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTopUp:
    """One top-up: who gave which account how much epsilon, beside what the policy says, and why."""

    at: str
    by: str
    account: str
    epsilon: str
    reason: str


@dataclass(frozen=True, slots=True)
class Charges:
    """A page of charges, the latest first, and everything by table, day and login. older: whether there are more."""

    page: tuple[Charge, ...]
    grants: tuple[ShownTopUp, ...]
    parts: tuple[tuple[str, Sequence[Sequence[str]]], ...]
    older: bool


@dataclass(frozen=True, slots=True)
class ChargesPage:
    """The page. Its address holds the number of a charge at most."""

    console: Console

    async def page(self, visit: Visit) -> Response:
        """The latest charges, or those before one. Raises HTTPException 404 for what is no number."""
        before = visit.request.query_params.get("before", "")
        if before and not (before.isascii() and before.isdigit() and len(before) <= _MOST_DIGITS):
            raise HTTPException(404, f"the number of a charge has from 1 to {_MOST_DIGITS} digits")
        try:
            found, trouble = await asyncio.to_thread(self._read, visit, int(before) if before else 10**_MOST_DIGITS), ""
        except HushError as error:
            found, trouble = Charges((), (), (), older=False), error.told().text()
        return self.console.page("charges.html", visit, found=found, headings=HEADINGS, trouble=trouble, before=before)

    def _read(self, visit: Visit, before: int) -> Charges:
        """Raises ConfigError, LedgerFailed."""
        policy, books = self.console.served(visit).policy(), self.console.serving.books
        tallies = {by: Tally(policy, by) for by in _PARTS}
        kept: deque[Entry] = deque(maxlen=PAGE + 1)
        read = Books()
        grants: deque[Grant] = deque(maxlen=PAGE)
        for entry in charges_and_grants(books, policy.dataset, read):
            if isinstance(entry, Grant):
                grants.append(entry)
                continue
            for tally in tallies.values():
                tally.add(entry)
            if entry.seq < before:
                kept.append(entry)
        shown, spent = [*kept][-PAGE:], spent_in(read, policy)
        return Charges(
            page=tuple(self._charge(entry, policy) for entry in reversed(shown)),
            grants=tuple(_given(grant, policy) for grant in reversed(grants)),
            parts=tuple((by.value, [cells_of(row, policy) for row in t.rows(spent)]) for by, t in tallies.items()),
            older=len(kept) > PAGE,
        )

    def _charge(self, entry: Entry, policy: Policy) -> Charge:
        own, dataset = (
            figure(epsilon_spent(policy.privacy, paid_by(entry, kind, policy.privacy.accounting)))
            for kind in (AccountKind.USER, AccountKind.DATASET)
        )
        return Charge(
            seq=entry.seq, at=f"{entry.at:%Y-%m-%d %H:%M:%S}", login=login_of(entry), own=own, dataset=dataset,
            tables=tables_together(entry.query, policy.tables),
            asked=entry.query if self.console.serving.shows_statements else fingerprint(entry),
        )  # fmt: skip


def _given(grant: Grant, policy: Policy) -> ShownTopUp:
    present = in_present(grant.cost, grant.accounting, policy.privacy.accounting)
    return ShownTopUp(
        at=f"{grant.at:%Y-%m-%d %H:%M:%S}", by=grant.by, account=f"{grant.kind} {grant.name}", reason=grant.reason,
        epsilon=figure(epsilon_spent(policy.privacy, present.pico)),
    )  # fmt: skip


def fingerprint(entry: Entry) -> str:
    """As the log has it; of a statement of which the books hold the start alone, of its exact text."""
    return fingerprint_of(entry.query) if len(entry.query) < PREVIEW_CHARS else entry.query_sha256[:16]
