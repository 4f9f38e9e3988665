"""Which reserved releases may be attempted once more, by whom, and for how long?

Only those whose latest attempt is known to have ended before any noise was drawn: an entry of the chain says so. Pure,
as the books that keep it. See docs/claims/retry.md.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from proxy.ledger.chain import Ended, Entry, Limit, Try
from proxy.ledger.windows import first_day
from proxy.plan.charge import Account, AccountKind, ReleaseKey
from proxy.policy.model import Refresh

MOST_ATTEMPTS = 3

_REFRESHES = tuple(Refresh)
_FIRST = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A release whose latest attempt has ended without noise. owner: the login's account that paid, "" for none.

    group: number of the entry that says so, for the releases of one statement. after: releases that were shown before.
    is_ticket: nothing was asked for yet; its key is that of the statement.
    """

    release_id: int
    attempt: int
    key: ReleaseKey
    is_fresh: bool
    is_ticket: bool
    after: tuple[int, ...]
    group: int
    owner: str


class Attempts:
    """The latest attempt at each release, those that are open, and since when each is paid. Not thread-safe."""

    def __init__(self) -> None:
        self._latest: dict[int, int] = {}  # numbers above the first
        self._open: dict[int, Open] = {}
        self._of_key: dict[ReleaseKey, tuple[int, ...]] = {}
        self._paid_on = array("I")  # by release: the day of its first charge
        self._returning = bytearray()  # by release: one bit for each refresh that a payer's limit had

    def is_current(self, release_id: int, attempt: int) -> bool:
        """Whether this is the latest attempt at a release, and is not known to have ended."""
        return self._latest.get(release_id, _FIRST) == attempt and release_id not in self._open

    @property
    def open_ids(self) -> tuple[int, ...]:
        """Releases that nobody attempts at present: none of them has a result."""
        return tuple(self._open)

    def found(self, key: ReleaseKey, accounts: tuple[Account, ...], day: int, *, is_fresh: bool) -> Iterator[Open]:
        """Those that these accounts may take up on a day for a key, the newest first.

        Claim (docs/claims/retry.md): each was paid by the login of `accounts`, has an attempt left, and every window
        in which somebody paid for it lasts.
        """
        refreshes = {a.refresh for a in accounts if a.limited}
        wanted = is_fresh, owner_of((a.kind, a.name) for a in accounts)
        for number in reversed(self._of_key.get(key, ())):
            one = self._open.get(number)  # another thread may have taken it up
            if one is not None and (one.is_fresh, one.owner) == wanted and self._is_in_window(number, day, refreshes):
                yield one

    def _is_in_window(self, release_id: int, day: int, refreshes: Iterable[Refresh] = ()) -> bool:
        """Whether the day is in the same window as that of the first charge, by any refresh that a payer had or has."""
        had = {r for place, r in enumerate(_REFRESHES) if self._returning[release_id - 1] >> place & 1}
        return all(first_day(r, day) <= self._paid_on[release_id - 1] for r in had.union(refreshes))

    # --- booking ------------------------------------------------------------------------------------------

    def problem_of_ended(self, ended: Ended, last_release: int) -> str:
        """Why an entry cannot say that these attempts have ended; empty when it can."""
        ids = [one.release_id for one in ended.tries]
        if not ids or len(set(ids)) != len(ids) or not set(ids).isdisjoint(ended.after):
            return "it ends no attempt, or one twice"
        if not all(0 < i <= last_release for i in (*ids, *ended.after)):
            return "it is about a release that nobody was charged for"
        if not all(self.is_current(one.release_id, one.attempt) and one.attempt < MOST_ATTEMPTS for one in ended.tries):
            return "an attempt ends that is not the latest, or was the last one"
        return ""

    def problem_of_taken(self, entry: Entry, day: int) -> str:
        """Why an entry cannot take up these releases; empty when it can."""
        taken = dict(entry.taken)
        if len(taken) != len(entry.taken):
            return "a release is taken up twice"
        for number, attempt in taken.items():
            one = self._open.get(number)
            if one is None or one.attempt + 1 != attempt:
                return "a release is taken up whose attempt is not known to have ended"
            if not self._is_in_window(number, day):
                return "a release is taken up whose charge is of another window"
        return ""

    def charge(self, entry: Entry, day: int) -> None:
        """Book who pays for releases from when on, and which of them are taken up."""
        for priced in entry.releases:
            if priced.release_id > len(self._paid_on):
                self._paid_on.append(day)
                self._returning.append(0)
        for line in entry.lines:
            if isinstance(line.limit, Limit):
                bit = 1 << _REFRESHES.index(line.limit.refresh)
                for number in line.releases:
                    self._returning[number - 1] |= bit
        for number, attempt in entry.taken:
            self._close(self._open.pop(number))
            self._latest[number] = attempt

    def end(self, ended: Ended, owners: Iterable[str]) -> None:
        """Book that attempts have ended. owners: see `Open`, for each."""
        for one, owner in zip(ended.tries, owners, strict=True):
            self._open[one.release_id] = _opened(one, ended, owner)
            self._of_key[one.key] = (*self._of_key.get(one.key, ()), one.release_id)

    def _close(self, one: Open) -> None:
        left = tuple(n for n in self._of_key[one.key] if n != one.release_id)
        if left:
            self._of_key[one.key] = left
        else:
            del self._of_key[one.key]


def owner_of(payers: Iterable[tuple[AccountKind, str]]) -> str:
    """The login's account among those that pay, "" if there is none."""
    return next((name for kind, name in payers if kind is AccountKind.USER), "")


def _opened(one: Try, ended: Ended, owner: str) -> Open:
    return Open(
        release_id=one.release_id, attempt=one.attempt, key=one.key, is_fresh=ended.is_fresh, is_ticket=one.is_ticket,
        after=ended.after, group=ended.seq, owner=owner,
    )  # fmt: skip
