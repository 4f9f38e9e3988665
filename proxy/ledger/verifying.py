"""Does an entry follow from the books before it?

The same is asked of a charge that was just written and of one that is read back from disk, so that books show by
themselves that no charge went beyond its limit.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import Protocol, assert_never

from proxy.ledger.attempts import Attempts
from proxy.ledger.balances import Tab, total
from proxy.ledger.base import NOTHING
from proxy.ledger.chain import Ended, Entry, Event, Grant, Keyed, Line, Pledged, Priced, Unlimited
from proxy.ledger.promises import Promises, UnitChanged
from proxy.plan.charge import dataset_of
from proxy.policy.model import Promise
from proxy.policy.pledge import Pledge


class Before(Protocol):
    """What the books say before the entry."""

    seq: int
    head: str
    last_release: int
    promises: Promises
    attempts: Attempts

    def paid_by(self, who: Line) -> Set[int]: ...

    def tab_of(self, who: Line) -> Tab: ...

    def tabs_of(self, dataset: str) -> list[Tab]: ...

    def day_at(self, at: datetime) -> int: ...


def problem_of(event: Event, books: Before) -> str:
    """Why `event` cannot be the next one; empty when it can."""
    if event.seq != books.seq + 1:
        return f"number {books.seq + 1} is missing"
    if event.previous != books.head:
        return "it does not continue the entry before it"
    match event:
        case Entry():
            return _of_charge(event, books)
        case Grant():
            return "" if event.cost != NOTHING and event.reason else "it grants nothing, or gives no reason"
        case Keyed():
            return _of_keys(event, books.promises)
        case Pledged():
            return _of_pledge(event, books)
        case Ended():
            return books.attempts.problem_of_ended(event, books.last_release)
        case _ as never:
            assert_never(never)


def uncounted_by(pledge: Pledge, at: datetime, books: Before) -> int:
    """How many accounts have spent what cannot be counted for a promise. Raises UnitChanged."""
    terms = books.promises.terms_after(pledge, at)
    if terms.standing.group_size == books.promises.standing(pledge.dataset).group_size:
        return 0
    return sum(not tab.is_countable(terms) for tab in books.tabs_of(pledge.dataset))


def _of_keys(event: Keyed, promises: Promises) -> str:
    if not event.keys or not promises.awaits_rules(event.release_id):
        return "it tells of no release that was charged and waits for its rules"
    return "more was promised before its rules were told" if promises.is_too_late(event.release_id) else ""


def _of_pledge(event: Pledged, books: Before) -> str:
    try:
        return "what was charged cannot be counted for it" if uncounted_by(event.pledge, event.at, books) else ""
    except UnitChanged:
        return "it is about another unit"


def _of_charge(entry: Entry, books: Before) -> str:
    releases = {r.release_id: r for r in entry.releases}
    new = [i for i in releases if i > books.last_release]
    payers = {(line.kind, line.name) for line in entry.lines}
    if not (entry.lines or entry.taken) or bool(entry.lines) != bool(releases):
        return "it charges nothing, or something to nobody"
    if len(releases) != len(entry.releases) or len(payers) != len(entry.lines):
        return "it charges something twice"
    if new != list(range(books.last_release + 1, books.last_release + 1 + len(new))):
        return "its release numbers have a gap"
    if problem := books.attempts.problem_of_taken(entry, books.day_at(entry.at)):
        return problem
    return next((reason for line in entry.lines if (reason := _of_line(line, releases, entry, books))), "")


def _of_line(line: Line, releases: dict[int, Priced], entry: Entry, books: Before) -> str:
    tab, terms = books.tab_of(line), books.promises.terms(dataset_of(line.name))
    if not set(line.releases) <= releases.keys() or len(set(line.releases)) != len(line.releases):
        return "an account pays for a release that is not in it"
    if books.paid_by(line) & set(line.releases):
        return "an account pays twice for one release"
    if isinstance(entry.promise, Promise) and not terms.standing.covers(entry.promise):
        return "it is for a promise that was never stated"
    if not terms.standing.allows(entry.policy_digest):
        return "it is about another unit"
    paid = [releases[i] for i in line.releases]
    if not all(terms.is_countable(entry.promise, r.release_id, r.cost.atto) for r in paid):
        return "it cannot be counted for what is promised"
    if line.cost != total(terms.counted(entry.promise, entry.accounting, r) for r in paid):
        return "a charge is not the sum of its releases"
    if not tab.can_pay(entry.accounting):
        return "an account cannot be told in its accounting"
    if line.total != tab.spent[entry.accounting].total + line.cost:
        return "an account's total is not the sum of its charges"
    return "" if _is_within(line, tab, entry, books) else "a charge goes beyond its account's limit"


def _is_within(line: Line, tab: Tab, entry: Entry, books: Before) -> bool:
    if isinstance(line.limit, Unlimited):
        return True
    refresh, day = line.limit.refresh, books.day_at(entry.at)
    spent = tab.spent[entry.accounting].within(refresh, day) + line.cost
    return spent.fits(line.limit.cost + tab.granted[entry.accounting].within(refresh, day))
