"""How much has every account spent, what has it paid for, and may it pay this?

Books are a pure function of the entries booked so far: nothing is read or written here, and the same `book` takes a
new charge and an old one that is replayed.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.errors import LedgerFailed
from proxy.ledger.base import AccountSpent, Balance, Question, Shortfall, Total
from proxy.ledger.chain import GENESIS, Entry, Line, Priced, decode, digest, preview
from proxy.plan.charge import Account, AccountKind, Cost, Request

NOTHING = Cost(0, 0)


@dataclass(frozen=True, slots=True)
class Pick:
    """The release that answers a request: a finished one, or a new one with the next free id."""

    request: Request
    release_id: int


class Books:
    """Spent sums and paid releases by account, and the end of the chain. Not thread-safe for writers."""

    def __init__(self) -> None:
        self.seq = 0
        self.head = GENESIS
        self.last_release = 0
        self._spent: dict[tuple[AccountKind, str], Cost] = {}
        self._paid: dict[tuple[AccountKind, str], set[int]] = {}

    def spent(self, kind: AccountKind, name: str) -> Cost:
        return self._spent.get((kind, name), NOTHING)

    def has_paid(self, account: Account, release_id: int) -> bool:
        return release_id in self._paid.get((account.kind, account.name), ())

    def balances(self, accounts: tuple[Account, ...]) -> tuple[Balance, ...]:
        return tuple(Balance(account=a, spent=self.spent(a.kind, a.name)) for a in accounts)

    def totals(self) -> tuple[Total, ...]:
        return tuple(Total(kind=k, name=n, spent=cost) for (k, n), cost in sorted(self._spent.items()))

    def due(self, account: Account, picks: tuple[Pick, ...]) -> Cost:
        """What an account has to pay for the picked releases."""
        return self._line(account, picks).cost

    def draft(self, accounts: tuple[Account, ...], picks: tuple[Pick, ...], question: Question) -> Entry:
        """The entry that charges each account for the picked releases it has not paid yet. Changes nothing.

        Raises AccountSpent when an account that would pay has too little left.
        """
        lines = tuple(line for a in accounts if (line := self._line(a, picks)).releases)
        self._check_limits(accounts, lines)
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
            releases=tuple(_priced(pick) for pick in picks if pick.release_id in due),
            lines=lines,
        )

    def apply(self, body: str) -> Entry:
        """Book the entry with this canonical text. Raises LedgerFailed, changing nothing, unless it follows on."""
        entry = decode(body)
        self.book(entry, body)
        return entry

    def book(self, entry: Entry, body: str) -> None:
        """Book an entry whose canonical text is known to be `body`. Raises as `apply` does."""
        problem = self._problem(entry)
        if problem:
            raise LedgerFailed(f"entry {entry.seq} of the ledger does not verify: {problem}")
        for line in entry.lines:
            self._spent[line.kind, line.name] = line.total
            self._paid.setdefault((line.kind, line.name), set()).update(line.releases)
        self.last_release = max(self.last_release, *(r.release_id for r in entry.releases))
        self.seq, self.head = entry.seq, digest(body)

    def _line(self, account: Account, picks: tuple[Pick, ...]) -> Line:
        due = [pick for pick in picks if not self.has_paid(account, pick.release_id)]
        cost = sum((pick.request.cost for pick in due), start=NOTHING)
        return Line(
            kind=account.kind,
            name=account.name,
            releases=tuple(pick.release_id for pick in due),
            cost=cost,
            total=self.spent(account.kind, account.name) + cost,
        )

    def _check_limits(self, accounts: tuple[Account, ...], lines: tuple[Line, ...]) -> None:
        limits = {(a.kind, a.name): a for a in accounts if a.limited}
        short = [
            Shortfall(balance=Balance(account=account, spent=self.spent(line.kind, line.name)), needed=line.cost)
            for line in lines
            if (account := limits.get((line.kind, line.name))) is not None and not _fits(line.total, account.limit)
        ]
        if short:
            raise AccountSpent(tuple(s for s in short if s.balance.account.kind.is_own))

    def _problem(self, entry: Entry) -> str:
        """Why `entry` cannot be the next one; empty when it can."""
        ids = [r.release_id for r in entry.releases]
        costs = {r.release_id: r.cost for r in entry.releases}
        new = [i for i in ids if i > self.last_release]
        payers = {(line.kind, line.name) for line in entry.lines}
        if entry.seq != self.seq + 1:
            return f"number {self.seq + 1} is missing"
        if entry.previous != self.head:
            return "it does not continue the entry before it"
        if not entry.lines or not ids or len(costs) != len(ids) or len(payers) != len(entry.lines):
            return "it charges nothing, or something twice"
        if new != list(range(self.last_release + 1, self.last_release + 1 + len(new))):
            return "its release numbers have a gap"
        return next((reason for line in entry.lines if (reason := self._line_problem(line, costs))), "")

    def _line_problem(self, line: Line, costs: dict[int, Cost]) -> str:
        already = self._paid.get((line.kind, line.name), set())
        if not set(line.releases) <= costs.keys() or len(set(line.releases)) != len(line.releases):
            return "an account pays for a release that is not in it"
        if already.intersection(line.releases):
            return "an account pays twice for one release"
        if line.cost != sum((costs[i] for i in line.releases), start=NOTHING):
            return "a charge is not the sum of its releases"
        if line.total != self.spent(line.kind, line.name) + line.cost:
            return "an account's total is not the sum of its charges"
        return ""


def _priced(pick: Pick) -> Priced:
    key = pick.request.key
    return Priced(
        release_id=pick.release_id,
        fingerprint=key.fingerprint,
        data_version=key.data_version,
        cost=pick.request.cost,
    )


def _fits(total: Cost, limit: Cost) -> bool:
    return total.pico <= limit.pico and total.atto <= limit.atto
