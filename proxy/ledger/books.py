"""How much has every account spent, what has it paid for, and may it pay this?

Books are a pure function of the entries booked so far: nothing is read or written here, and the same `book` takes a
new charge and an old one that is replayed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from proxy.dp.selection import KeyRule
from proxy.errors import LedgerFailed
from proxy.ledger.base import (
    LATEST,
    NOTHING,
    AccountingChanged,
    AccountSpent,
    Balance,
    Gift,
    Question,
    Shortfall,
    Total,
)
from proxy.ledger.chain import (
    GENESIS,
    Entry,
    Event,
    Grant,
    Keyed,
    Limit,
    Line,
    NoLimit,
    Priced,
    decode,
    digest,
    preview,
)
from proxy.ledger.tabs import Tab
from proxy.ledger.windows import day_of
from proxy.plan.charge import Account, AccountKind, Cost, Request
from proxy.policy.model import Accounting

_EMPTY = Tab()


@dataclass(frozen=True, slots=True)
class Pick:
    """The release that answers a request: a finished one, or a new one with the next free id."""

    request: Request
    release_id: int


class Books:
    """Tabs and paid releases by account, the latest day, and the end of the chain. Not thread-safe for writers."""

    def __init__(self) -> None:
        self.seq = 0
        self.head = GENESIS
        self.last_release = 0
        self.day = 1
        self._tabs: dict[tuple[AccountKind, str], Tab] = {}
        self._paid: dict[tuple[AccountKind, str], set[int]] = {}
        self._keys: dict[int, tuple[KeyRule, ...]] = {}

    def has_paid(self, account: Account, release_id: int) -> bool:
        return release_id in self._paid.get((account.kind, account.name), ())

    def balances(self, accounts: tuple[Account, ...], at: datetime = LATEST) -> tuple[Balance, ...]:
        """Each account's figures in the window of `at`, or of the latest entry if that is later."""
        return tuple(self._balance(account, self._day(at)) for account in accounts)

    def can_pay(self, account: Account) -> bool:
        """Whether all that it spent can be told in its accounting."""
        return self._tab(account).can_pay(account.accounting)

    def totals(self) -> tuple[Total, ...]:
        """All that each account spent, under pure accounting as long as nothing else was charged to it."""
        return tuple(_total(kind, name, tab) for (kind, name), tab in sorted(self._tabs.items(), key=lambda t: t[0]))

    def due(self, account: Account, picks: tuple[Pick, ...]) -> Cost:
        """What an account has to pay for the picked releases."""
        return self._line(account, picks).cost

    def draft(self, accounts: tuple[Account, ...], picks: tuple[Pick, ...], question: Question) -> Entry:
        """The entry that charges each account for the picked releases it has not paid yet. Changes nothing.

        Raises AccountSpent when an account that would pay has too little left, AccountingChanged.
        """
        lines = tuple(line for a in accounts if (line := self._line(a, picks)).releases)
        self._check_limits(accounts, lines, question.at)
        due = {release for line in lines for release in line.releases}
        start, query_sha256 = preview(question.query)
        return Entry(
            seq=self.seq + 1,
            previous=self.head,
            at=question.at,
            login=question.login,
            query=start,
            query_sha256=query_sha256,
            policy_digest=picks[0].request.key.policy_digest,
            accounting=accounts[0].accounting,
            promise=accounts[0].promise,
            releases=tuple(_priced(pick) for pick in picks if pick.release_id in due),
            lines=lines,
        )

    def draft_grant(self, gift: Gift) -> Grant:
        """The entry that gives an account more. Changes nothing."""
        return Grant(
            seq=self.seq + 1,
            previous=self.head,
            at=gift.at,
            by=gift.by,
            reason=gift.reason,
            kind=gift.kind,
            name=gift.name,
            accounting=gift.accounting,
            cost=gift.cost,
        )

    def draft_keyed(self, release_id: int, keys: tuple[KeyRule, ...], at: datetime) -> Keyed:
        """The entry that says by which rules a charged release shows private keys. Changes nothing."""
        return Keyed(seq=self.seq + 1, previous=self.head, at=at, release_id=release_id, keys=keys)

    def apply(self, body: str) -> Event:
        """Book the entry with this canonical text. Raises LedgerFailed, changing nothing, unless it follows on."""
        event = decode(body)
        self.book(event, body)
        return event

    def book(self, event: Event, body: str) -> None:
        """Book an entry whose canonical text is known to be `body`. Raises as `apply` does."""
        problem = self._problem(event)
        if problem:
            raise LedgerFailed(f"entry {event.seq} of the ledger does not verify: {problem}")
        self.day = self._day(event.at)
        match event:
            case Entry():
                self._book_charge(event)
            case Grant():
                tab = self._tabs.setdefault((event.kind, event.name), Tab())
                tab.granted[event.accounting].add(self.day, event.cost)
            case Keyed():
                self._keys[event.release_id] = event.keys
            case _ as never:
                assert_never(never)
        self.seq, self.head = event.seq, digest(body)

    def _book_charge(self, entry: Entry) -> None:
        costs = {r.release_id: r.cost for r in entry.releases}
        for line in entry.lines:
            payer = line.kind, line.name
            tab = self._tabs.setdefault(payer, Tab())
            tab.charge(entry.accounting, self.day, tuple(costs[i] for i in line.releases))
            self._paid.setdefault(payer, set()).update(line.releases)
        self.last_release = max(self.last_release, *costs)
        for release in entry.releases:
            if release.keys:
                self._keys.setdefault(release.release_id, release.keys)

    def _tab(self, who: Account | Line) -> Tab:
        return self._tabs.get((who.kind, who.name), _EMPTY)

    def _day(self, at: datetime) -> int:
        return max(self.day, day_of(at))

    def _balance(self, account: Account, day: int) -> Balance:
        tab = self._tab(account)
        return Balance(
            account=account,
            spent=tab.spent[account.accounting].within(account.refresh, day),
            granted=tab.granted[account.accounting].within(account.refresh, day),
            day=day,
        )

    def _line(self, account: Account, picks: tuple[Pick, ...]) -> Line:
        due = [pick for pick in picks if not self.has_paid(account, pick.release_id)]
        cost = _sum(pick.request.cost for pick in due)
        return Line(
            kind=account.kind,
            name=account.name,
            releases=tuple(pick.release_id for pick in due),
            cost=cost,
            total=self._tab(account).spent[account.accounting].total + cost,
            limit=Limit(account.limit, account.refresh) if account.limited else NoLimit(),
        )

    def _check_limits(self, accounts: tuple[Account, ...], lines: tuple[Line, ...], at: datetime) -> None:
        payers = {(a.kind, a.name): a for a in accounts}
        if not all(self.can_pay(payers[line.kind, line.name]) for line in lines):
            raise AccountingChanged
        balances = {(b.account.kind, b.account.name): b for b in self.balances(accounts, at) if b.account.limited}
        short = [
            Shortfall(balance=balance, needed=line.cost)
            for line in lines
            if (balance := balances.get((line.kind, line.name))) is not None
            and not (balance.spent + line.cost).fits(balance.limit)
        ]
        if short:
            raise AccountSpent.of(short)

    def _problem(self, event: Event) -> str:
        """Why `event` cannot be the next one; empty when it can."""
        if event.seq != self.seq + 1:
            return f"number {self.seq + 1} is missing"
        if event.previous != self.head:
            return "it does not continue the entry before it"
        match event:
            case Entry():
                return self._charge_problem(event)
            case Grant():
                return "" if event.cost != NOTHING and event.reason else "it grants nothing, or gives no reason"
            case Keyed():
                return self._keys_problem(event)
            case _ as never:
                assert_never(never)

    def _keys_problem(self, event: Keyed) -> str:
        if not event.keys or not 0 < event.release_id <= self.last_release:
            return "it tells of no release that was charged"
        return "the keys of a release are told twice" if event.release_id in self._keys else ""

    def _charge_problem(self, entry: Entry) -> str:
        ids = [r.release_id for r in entry.releases]
        costs = {r.release_id: r.cost for r in entry.releases}
        new = [i for i in ids if i > self.last_release]
        payers = {(line.kind, line.name) for line in entry.lines}
        if not entry.lines or not ids or len(costs) != len(ids) or len(payers) != len(entry.lines):
            return "it charges nothing, or something twice"
        if new != list(range(self.last_release + 1, self.last_release + 1 + len(new))):
            return "its release numbers have a gap"
        return next((reason for line in entry.lines if (reason := self._line_problem(line, costs, entry))), "")

    def _line_problem(self, line: Line, costs: dict[int, Cost], entry: Entry) -> str:
        already = self._paid.get((line.kind, line.name), set())
        tab = self._tab(line)
        if not set(line.releases) <= costs.keys() or len(set(line.releases)) != len(line.releases):
            return "an account pays for a release that is not in it"
        if already.intersection(line.releases):
            return "an account pays twice for one release"
        if line.cost != _sum(costs[i] for i in line.releases):
            return "a charge is not the sum of its releases"
        if not tab.can_pay(entry.accounting):
            return "an account cannot be told in its accounting"
        if line.total != tab.spent[entry.accounting].total + line.cost:
            return "an account's total is not the sum of its charges"
        return "" if self._is_within(line, tab, entry) else "a charge goes beyond its account's limit"

    def _is_within(self, line: Line, tab: Tab, entry: Entry) -> bool:
        if isinstance(line.limit, NoLimit):
            return True
        refresh, day = line.limit.refresh, self._day(entry.at)
        spent = tab.spent[entry.accounting].within(refresh, day) + line.cost
        return spent.fits(line.limit.cost + tab.granted[entry.accounting].within(refresh, day))


def _sum(costs: Iterable[Cost]) -> Cost:
    return sum(costs, start=NOTHING)


def _total(kind: AccountKind, name: str, tab: Tab) -> Total:
    is_pure = tab.is_pure and tab.granted[Accounting.ZCDP].total == NOTHING
    accounting = Accounting.PURE if is_pure else Accounting.ZCDP
    return Total(
        kind=kind,
        name=name,
        spent=tab.spent[accounting].total,
        granted=tab.granted[accounting].total,
        accounting=accounting,
    )


def _priced(pick: Pick) -> Priced:
    key = pick.request.key
    return Priced(
        release_id=pick.release_id,
        fingerprint=key.fingerprint,
        data_version=key.data_version,
        cost=pick.request.cost,
        keys=pick.request.keys,
    )
