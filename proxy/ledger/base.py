"""What may be asked of a ledger, whatever keeps it?

The ledger is the only builder of `Reserved`, so nothing reaches a private engine before it is charged.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from proxy.dp.accounting import for_reach_down, for_reach_up
from proxy.errors import BudgetSpent, LedgerFailed
from proxy.ledger.chain import Event, Reason
from proxy.ledger.promises import NEVER_STATED, Standing
from proxy.plan.charge import Account, AccountKind, Cost, ReleaseKey, Request, Reserved
from proxy.policy.model import Accounting
from proxy.policy.pledge import Pledge
from proxy.release.store import NotStored, ReleaseStore, StoredRelease

LATEST = datetime.min.replace(tzinfo=UTC)
NOTHING = Cost(0, 0)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One release that a statement needs and the SQL that computes it.

    sql "" means that the SQL is known only after an earlier stage was released: see `Ledger.bind`. further: the SQL of
    the release's own later stages, known now.
    """

    request: Request
    sql: str
    further: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Who asks what, and when. `query` is the client's own text; `at` has a time zone."""

    login: str
    query: str
    at: datetime

    def __post_init__(self) -> None:
        if self.at.tzinfo is None:
            raise ValueError("the time of a question needs a time zone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What an account has spent against the limit it was asked with. Remaining is never negative.

    spent, granted: in the window that holds `day` (see `ledger.windows`), or in all if the account does not refresh.
    standing: for what was spent counts. outside: what was spent in all before the unit was another.
    """

    account: Account
    spent: Cost
    granted: Cost = NOTHING
    day: int = 1
    standing: Standing = NEVER_STATED
    outside: Cost = NOTHING

    @property
    def limit(self) -> Cost:
        """What may be spent in the window: the policy's limit and what an administrator added."""
        return self.account.limit + self.granted

    @property
    def remaining(self) -> Cost:
        limit = self.limit
        return Cost(max(0, limit.pico - self.spent.pico), max(0, limit.atto - self.spent.atto))

    @property
    def is_overspent(self) -> bool:
        """Whether more was spent than may be: what was spent counts more now, or the limit was lowered."""
        return self.account.limited and not self.spent.fits(self.limit)

    @property
    def affordable(self) -> int:
        """The largest charge, in pico, under the account's own promise that it can pay."""
        made_for, reach = self.account.promise.reach, self.standing.reach
        return for_reach_down(self.account.accounting, self.remaining.pico, made_for, reach)

    def counted(self, pico: int) -> int:
        """What a charge under the account's own promise counts."""
        return for_reach_up(self.account.accounting, pico, self.account.promise.reach, self.standing.reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a statement got: in `items` one per wanted release, in `charged` and `balances` one per account.

    statement: the number to give to `note_outcome`.
    """

    statement: int
    items: tuple[Reserved | StoredRelease, ...]
    charged: tuple[Cost, ...]
    balances: tuple[Balance, ...]


class Outcome(enum.Enum):
    """How a statement ended. UNFINISHED: still running, or the process died."""

    ANSWERED = "answered"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine:
    """One line of a login's history. `cost` is what the login's own account paid, `reused` that it paid nothing.

    accounting: what the cost counts, that of the policy then.
    """

    at: datetime
    query: str
    cost: Cost
    reused: bool
    outcome: Outcome
    accounting: Accounting = Accounting.ZCDP


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountTotal:
    """All that one account ever spent and was granted, in one accounting. standing, outside: as of `Balance`."""

    kind: AccountKind
    name: str
    spent: Cost
    granted: Cost
    accounting: Accounting
    standing: Standing = NEVER_STATED
    outside: Cost = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedLedger:
    """Result of a successful verification."""

    entries: int
    releases: int
    head: str
    totals: tuple[AccountTotal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """One of the caller's own accounts that has too little left."""

    balance: Balance
    needed: Cost


class AccountSpent(BudgetSpent):
    """Nothing was charged: at least one account has too little left.

    shortfalls: the caller's own accounts that are short; empty when only the dataset's or the role's is, whose figures
    a user must not see; `shared` is then which. What a client is told is composed by `session.notices`, in epsilon.
    """

    def __init__(self, shortfalls: tuple[Shortfall, ...], shared: AccountKind = AccountKind.DATASET) -> None:
        super().__init__("an account has too little left")
        self.shortfalls = shortfalls
        self.shared = shared

    @classmethod
    def of(cls, short: Sequence[Shortfall]) -> AccountSpent:
        """Of all accounts that are short, in the order in which they pay."""
        own = tuple(s for s in short if s.balance.account.kind.is_own)
        return cls(own, short[0].balance.account.kind)


class AccountingChanged(LedgerFailed):
    """Nothing was charged: what an account spent under `zcdp` has no epsilon that `pure` could add to."""

    def __init__(self) -> None:
        super().__init__(
            "accounting: pure was asked of accounts that have spent under zcdp",
            hint="Keep accounting: zcdp for this dataset. A change from pure to zcdp is possible, one back is not.",
        )


@dataclass(frozen=True, slots=True)
class Restated:
    """What the dataset's account had spent before a promise was stated, and its balance since."""

    before: Cost
    balance: Balance


@dataclass(frozen=True, slots=True, kw_only=True)
class Gift:
    """What an administrator gives an account beyond its policy, who that is and why. `at` has a time zone."""

    kind: AccountKind
    name: str
    accounting: Accounting
    cost: Cost
    by: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Attempts of one statement that ended before any noise was drawn for their releases. `at` has a time zone.

    reserved: these attempts; sql "" where nothing was asked for yet. after: what the statement was shown before.
    """

    reserved: tuple[Reserved, ...]
    reason: Reason
    is_fresh: bool
    after: tuple[int, ...]
    at: datetime


class Ledger(Protocol):
    """The books of all accounts, and the store of what was paid for. Safe to call from any thread.

    Account names are the caller's: two datasets kept in one ledger need different names.
    Methods raise LedgerFailed when durability or consistency cannot be had; nothing may be answered then.
    """

    @property
    def store(self) -> ReleaseStore:
        """Finished releases."""
        ...

    def shared_secret(self, name: str, drawn: bytes) -> bytes:
        """What all processes of this ledger use as the secret of that name: `drawn`, or what one drew before."""
        ...

    def reserve(
        self, accounts: tuple[Account, ...], wanted: tuple[Wanted, ...], question: Question, *, fresh: bool = False
    ) -> Receipt:
        """Charge a whole statement to every account, or nothing to any, durably before it returns.

        Claim (docs/claims/filter.md): for every account, the sum of all charges ever reserved is at most the limit
        that the account had when the last of them was booked, in any interleaving and after any crash.
        Claim (docs/claims/reuse.md): an account pays the full cost of every release it is shown, once.
        Claim (docs/claims/retry.md): a release is attempted again only after an `end` of the attempt before, at most
        three times, and each time by one caller.

        fresh: draw new noise even if a stored release would do. Raises AccountSpent, LedgerFailed.
        """
        ...

    def end(self, ending: Ending) -> None:
        """Remember durably that attempts have ended, so that `reserve` may hand them out again.

        Only for whoever made them: when their sessions with the engine are over, no noise was drawn, and nobody was
        told. Raises LedgerFailed: then they may be handed out or not.
        """
        ...

    def quote(
        self, accounts: tuple[Account, ...], requests: tuple[Request, ...], at: datetime = LATEST, *,
        fresh: bool = False,
    ) -> tuple[Cost, ...]:  # fmt: skip
        """What `reserve` would charge each account for these releases now; charges nothing and refuses nothing.

        A charge made later in the same day is no larger, as long as no more is promised and the same login takes up no
        release in between: what an account has paid and what is stored only grows.
        """
        ...

    def settle(self, statement: int) -> None:
        """Wait until nobody can put the charge of a statement aside unnoticed; to be called before its answer leaves.

        The charge itself is durable already. Raises LedgerFailed; it stays charged.
        """
        ...

    def bind(self, reserved: Reserved, wanted: Wanted, at: datetime) -> Reserved:
        """Give a later stage, reserved with sql "", the key and SQL that its earlier stages decided; once.

        By which rules it shows private keys is durable when this returns. The cost stays that of the reservation.
        """
        ...

    def seen(self, accounts: tuple[Account, ...], key: ReleaseKey) -> StoredRelease | NotStored:
        """The stored release of `key` that all these accounts paid for already; charges nothing."""
        ...

    def note_outcome(self, statement: int, outcome: Outcome) -> None:
        """Remember for the history how a statement ended. Never touches a charge; may be lost in a crash."""
        ...

    def balances(self, accounts: tuple[Account, ...], at: datetime = LATEST) -> tuple[Balance, ...]:
        """What each account has spent and has left in the window of `at`, or of the latest charge if that is later."""
        ...

    def pledge(self, pledge: Pledge, account: Account, at: datetime) -> Restated:
        """State, durably, what is promised of a dataset from now on; to be called before anything is served.

        Claim (docs/claims/promises.md): from then on every charge to its accounts, earlier or later, counts for the
        strongest promise that was stated. account: of the dataset. Raises AccountingChanged, UnitChanged,
        PromiseRefused, with nothing stated, and LedgerFailed.
        """
        ...

    def grant(self, gift: Gift) -> None:
        """Give an account more than its policy says, durably."""
        ...

    def all_accounts(self) -> tuple[AccountTotal, ...]:
        """Every account that ever paid, in the order of kind and name. For admins only."""
        ...

    def history(self, login: str, limit: int) -> tuple[HistoryLine, ...]:
        """The login's latest statements on private data, newest first."""
        ...

    def entries(self, after: int = 0) -> Iterator[Event]:
        """The chained entries with a number above `after`, oldest first. For admins only."""
        ...

    def verify(self) -> VerifiedLedger:
        """Read everything back, add up every charge again, check the chain. Raises LedgerFailed."""
        ...

    def close(self) -> None:
        """Give the books free for another process."""
        ...
