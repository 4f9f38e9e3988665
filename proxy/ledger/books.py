"""How much has every account spent, what has it paid for, and may it pay this?

Books are a pure function of the entries booked so far: nothing is read or written here, and the same `book` takes a
new charge and an old one that is replayed.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from proxy.dp.selection import KeyRule
from proxy.errors import LedgerFailed
from proxy.ledger.attempts import Attempts, owner_of
from proxy.ledger.balances import Tab, total
from proxy.ledger.base import (
    LATEST,
    NOTHING,
    AccountingChanged,
    AccountSpent,
    AccountTotal,
    Balance,
    Ending,
    Gift,
    Question,
    Shortfall,
)
from proxy.ledger.chain import (
    GENESIS,
    Ended,
    Entry,
    Event,
    Grant,
    Keyed,
    Limit,
    Line,
    Pledged,
    Priced,
    Try,
    Unlimited,
    decode,
    digest,
    preview,
)
from proxy.ledger.promises import PolicyOutdated, PromiseRefused, Promises
from proxy.ledger.verifying import problem_of, uncounted_by
from proxy.ledger.windows import day_of
from proxy.plan.charge import Account, AccountKind, Cost, Request, dataset_of
from proxy.policy.model import Accounting
from proxy.policy.pledge import Pledge

_EMPTY = Tab()
_NO_RELEASES: frozenset[int] = frozenset()
FINISHED = 0


@dataclass(frozen=True, slots=True)
class Pick:
    """The release that answers a request: a finished one, or one that is attempted now.

    attempt: its number, above 1 for a release that was paid for before; FINISHED for none.
    """

    request: Request
    release_id: int
    attempt: int = 1


class Books:
    """Tabs and paid releases by account, the latest day, and the end of the chain. Not thread-safe for writers."""

    def __init__(self) -> None:
        self.seq = 0
        self.head = GENESIS
        self.last_release = 0
        self.day = 1
        self.promises = Promises()
        self.attempts = Attempts()
        self._tabs: dict[tuple[AccountKind, str], Tab] = {}
        self._paid: dict[tuple[AccountKind, str], set[int]] = {}

    def has_paid(self, account: Account, release_id: int) -> bool:
        return release_id in self.paid_by(account)

    def paid_by(self, who: Account | Line) -> Set[int]:
        """The releases that an account paid for."""
        return self._paid.get((who.kind, who.name), _NO_RELEASES)

    def tab_of(self, who: Account | Line) -> Tab:
        return self._tabs.get((who.kind, who.name), _EMPTY)

    def day_at(self, at: datetime) -> int:
        """The day on which an entry of that time is booked: days never go backwards."""
        return max(self.day, day_of(at))

    def balances(self, accounts: tuple[Account, ...], at: datetime = LATEST) -> tuple[Balance, ...]:
        """Each account's figures in the window of `at`, or of the latest entry if that is later."""
        return tuple(self._balance(account, self.day_at(at)) for account in accounts)

    def spent_before(self, account: Account, at: datetime) -> Cost:
        """What an account has spent. Raises AccountingChanged if that cannot be told in its accounting."""
        if not self._can_pay(account):
            raise AccountingChanged
        return self._balance(account, self.day_at(at)).spent

    def _can_pay(self, account: Account) -> bool:
        return self.tab_of(account).can_pay(account.accounting)

    def totals(self) -> tuple[AccountTotal, ...]:
        """All that each account spent, under pure accounting as long as nothing else was charged to it."""
        return tuple(self._total(*who, tab) for who, tab in sorted(self._tabs.items(), key=lambda t: t[0]))

    def due(self, account: Account, picks: tuple[Pick, ...]) -> Cost:
        """What an account has to pay for the picked releases."""
        return self._line(account, picks).cost

    def draft(self, accounts: tuple[Account, ...], picks: tuple[Pick, ...], question: Question) -> Entry:
        """The entry that charges each account for the picked releases it has not paid yet. Changes nothing.

        Raises AccountSpent when an account that would pay has too little left, AccountingChanged, PolicyOutdated when
        the accounts are kept for another promise since the releases were planned.
        """
        self._check_promise(accounts, picks)
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
            taken=tuple((pick.release_id, pick.attempt) for pick in picks if pick.attempt > 1),
        )

    def draft_ended(self, ending: Ending) -> Ended:
        """The entry that says that attempts have ended without noise. Changes nothing. Raises LedgerFailed."""
        ended = Ended(
            seq=self.seq + 1,
            previous=self.head,
            at=ending.at,
            reason=ending.reason,
            is_fresh=ending.is_fresh,
            after=ending.after,
            tries=tuple(
                Try(release_id=r.release_id, attempt=r.attempt, key=r.key, is_ticket=not r.sql) for r in ending.reserved
            ),
        )
        if problem := self.attempts.problem_of_ended(ended, self.last_release):
            raise LedgerFailed(f"the end of an attempt cannot be booked: {problem}")
        return ended

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
        """The entry that says by which rules a charged release shows private keys. Changes nothing.

        Raises PolicyOutdated when more was promised since it was charged.
        """
        if self.promises.is_too_late(release_id):
            raise PolicyOutdated
        return Keyed(seq=self.seq + 1, previous=self.head, at=at, release_id=release_id, keys=keys)

    def draft_pledge(self, pledge: Pledge, at: datetime) -> Pledged:
        """The entry that states what is promised of a dataset. Changes nothing. Raises UnitChanged, PromiseRefused."""
        if stuck := uncounted_by(pledge, at, self):
            raise PromiseRefused(pledge, stuck)
        return Pledged(seq=self.seq + 1, previous=self.head, at=at, pledge=pledge)

    def apply(self, body: str) -> Event:
        """Book the entry with this canonical text. Raises LedgerFailed, changing nothing, unless it follows on."""
        event = decode(body)
        self.book(event, body)
        return event

    def check(self, body: str) -> None:
        """Whether a text can be applied now; to be asked before it is written. Raises LedgerFailed.

        Claim (docs/claims/filter.md): what is written was read back and verified as everybody will who reads it, so no
        entry makes the books unreadable.
        """
        self._check(decode(body))

    def _check(self, event: Event) -> None:
        if problem := problem_of(event, self):
            raise LedgerFailed(f"entry {event.seq} of the ledger does not verify: {problem}")

    def book(self, event: Event, body: str) -> None:
        """Book an entry whose canonical text is known to be `body`. Raises as `apply` does."""
        self._check(event)
        self.day = self.day_at(event.at)
        match event:
            case Entry():
                self._book_charge(event)
            case Grant():
                tab = self._tabs.setdefault((event.kind, event.name), Tab())
                tab.granted[event.accounting].add(self.day, event.cost)
            case Keyed():
                self.promises.tell_rules(event.release_id, event.keys)
            case Pledged():
                self._book_pledge(event)
            case Ended():
                self.attempts.end(event, (self._owner(one.release_id) for one in event.tries))
            case _ as never:
                assert_never(never)
        self.seq, self.head = event.seq, digest(body)

    def _book_charge(self, entry: Entry) -> None:
        self.promises.keep_rules(entry)
        releases = {r.release_id: r for r in entry.releases}
        for line in entry.lines:
            payer = line.kind, line.name
            terms = self.promises.terms(dataset_of(line.name))
            tab = self._tabs.setdefault(payer, Tab())
            tab.charge(entry.accounting, entry.promise, self.day, [releases[i] for i in line.releases], terms)
            self._paid.setdefault(payer, set()).update(line.releases)
        self.last_release = max((self.last_release, *releases))
        self.attempts.charge(entry, self.day)

    def _owner(self, release_id: int) -> str:
        return owner_of(payer for payer, paid in self._paid.items() if release_id in paid)

    def _book_pledge(self, event: Pledged) -> None:
        """From now on all that the dataset's accounts were charged counts for what is promised."""
        dataset = event.pledge.dataset
        before = self.promises.standing(dataset)
        self.promises.state(event.pledge, event.at)
        terms = self.promises.terms(dataset)
        if not before.covers_as_much(terms.standing):
            for tab in self.tabs_of(dataset):
                tab.recount(terms)
        if len(terms.standing.breaks) > len(before.breaks):
            for tab in self.tabs_of(dataset):
                tab.leave_behind()

    def tabs_of(self, dataset: str) -> list[Tab]:
        return [tab for (_, name), tab in self._tabs.items() if dataset_of(name) == dataset]

    def _balance(self, account: Account, day: int) -> Balance:
        tab = self.tab_of(account)
        return Balance(
            account=account,
            spent=tab.spent[account.accounting].within(account.refresh, day),
            granted=tab.granted[account.accounting].within(account.refresh, day),
            day=day,
            standing=self.promises.standing(dataset_of(account.name)),
            outside=tab.outside[account.accounting],
        )

    def _total(self, kind: AccountKind, name: str, tab: Tab) -> AccountTotal:
        is_pure = tab.is_pure and tab.granted[Accounting.ZCDP].total == NOTHING
        accounting = Accounting.PURE if is_pure else Accounting.ZCDP
        return AccountTotal(
            kind=kind,
            name=name,
            spent=tab.spent[accounting].total,
            granted=tab.granted[accounting].total,
            accounting=accounting,
            standing=self.promises.standing(dataset_of(name)),
            outside=tab.outside[accounting],
        )

    def _line(self, account: Account, picks: tuple[Pick, ...]) -> Line:
        due = [pick for pick in picks if not self.has_paid(account, pick.release_id)]
        terms = self.promises.terms(dataset_of(account.name))
        cost = total(terms.counted(account.promise, account.accounting, _priced(pick)) for pick in due)
        return Line(
            kind=account.kind,
            name=account.name,
            releases=tuple(pick.release_id for pick in due),
            cost=cost,
            total=self.tab_of(account).spent[account.accounting].total + cost,
            limit=Limit(account.limit, account.refresh) if account.limited else Unlimited(),
        )

    def _check_promise(self, accounts: tuple[Account, ...], picks: tuple[Pick, ...]) -> None:
        promise, digest = accounts[0].promise, picks[0].request.key.policy_digest
        for account in accounts:
            terms = self.promises.terms(dataset_of(account.name))
            if not terms.standing.covers(promise):
                raise LedgerFailed("a charge is for a promise that was never stated")
            uncounted = terms.is_more(promise) and any(p.request.cost.atto and not p.request.keys for p in picks)
            if uncounted or not terms.standing.allows(digest):
                raise PolicyOutdated

    def _check_limits(self, accounts: tuple[Account, ...], lines: tuple[Line, ...], at: datetime) -> None:
        payers = {(a.kind, a.name): a for a in accounts}
        if not all(self._can_pay(payers[line.kind, line.name]) for line in lines):
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


def _priced(pick: Pick) -> Priced:
    key = pick.request.key
    return Priced(
        release_id=pick.release_id,
        fingerprint=key.fingerprint,
        data_version=key.data_version,
        cost=pick.request.cost,
        keys=pick.request.keys,
    )
