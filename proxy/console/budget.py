"""Where did the budget go? One's own accounts and questions; for administrators everybody's, and top-ups.

Own figures come over the wire from hush.budget and hush.history; everybody's from the books, as `hushql ledger show`
reads them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from starlette.responses import Response

from proxy.admin.commands.top_up import By, TopUp, gift_of, told
from proxy.admin.ledger_place import grant, granted_to, inspect
from proxy.config import UsersAt
from proxy.console.ask import NUMBERS
from proxy.console.served import ServedPolicy
from proxy.console.visits import Console, Visit
from proxy.console.wire import Wire
from proxy.dp.accounting import epsilon_spent
from proxy.errors import ConfigError, HushError
from proxy.events import tables_together
from proxy.ledger.lifetime import worst_case_lines
from proxy.plan.charge import AccountKind, dataset_of
from proxy.policy.figures import figure

_ACCOUNTS = """
SELECT account, kind, epsilon_limit, epsilon_spent, epsilon_remaining, queries_left, window_ends, lifetime_epsilon,
       everyone_epsilon, outside_promise FROM hush.budget WHERE (kind = 'session') = """
_HISTORY = "SELECT at, query, epsilon, coalesce(rho, epsilon::numeric), reused, outcome FROM hush.history"
_TABLES = 'SELECT DISTINCT "table" FROM hush.policy'
_LITTLE = 0.2  # of a limit: what is left of an account that is told as an alarm
_GRANTED = (AccountKind.DATASET, AccountKind.ROLE, AccountKind.USER)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastQuestion:
    """One line of the history. cost: in what the accounts add up, rho or, under pure accounting, epsilon."""

    at: str
    day: str
    statement: str
    epsilon: float
    cost: Decimal
    is_free: bool
    outcome: str


@dataclass(frozen=True, slots=True)
class SpentPart:
    """What was asked on one day or about some tables, and what it cost, added up as the accounts do."""

    name: str
    questions: int
    free: int
    cost: str


def by_day(asked: Sequence[PastQuestion]) -> tuple[SpentPart, ...]:
    """Days with questions, the latest first."""
    return tuple(sorted(_parts(asked, lambda one: one.day), key=lambda part: part.name, reverse=True))


def by_table(asked: Sequence[PastQuestion], tables: Sequence[str]) -> tuple[SpentPart, ...]:
    """Tables that were asked about together, the costliest first. tables: those that the login sees."""
    found = _parts(asked, lambda one: tables_together(one.statement, tables))
    return tuple(sorted(found, key=lambda part: (-Decimal(part.cost), part.name)))


def _parts(asked: Sequence[PastQuestion], name_of: Callable[[PastQuestion], str]) -> list[SpentPart]:
    parts: dict[str, list[PastQuestion]] = {}
    for one in asked:
        parts.setdefault(name_of(one), []).append(one)
    return [
        SpentPart(name, len(of), sum(one.is_free for one in of), f"{sum((one.cost for one in of), Decimal(0)):.6f}")
        for name, of in parts.items()
    ]


@dataclass(frozen=True, slots=True)
class EveryAccount:
    """One account of the dataset, for administrators: epsilon of all of it, at the policy's delta."""

    kind: str
    name: str
    spent: str
    granted: str


@dataclass(frozen=True, slots=True)
class BudgetPage:
    """The page, and the one thing that can be done on it."""

    console: Console

    async def page(self, visit: Visit) -> Response:
        """Accounts and questions."""
        return await self._page(visit, done="", trouble="")

    async def top_up(self, visit: Visit) -> Response:
        """Give an account more, for a reason, in the name of the administrator who asks."""
        served, form = self.console.served(visit), visit.form
        try:
            wish = TopUp(
                policy=served.path, kind=_kind(form.get("kind", "")), account=form.get("account", "").strip(),
                amount=By(_epsilon(form.get("epsilon", ""))), delta=0.0, reason=form.get("reason", ""),
                users=UsersAt(served.users_path), by=visit.place.login,
            )  # fmt: skip
            done = await asyncio.to_thread(self._given, wish)
        except HushError as error:
            return await self._page(visit, done="", trouble=error.text())
        return await self._page(visit, done=done, trouble="")

    def _given(self, wish: TopUp) -> str:
        books = self.console.serving.books
        gift, limits = gift_of(wish, granted_to(books, wish.kind, wish.account))
        return told(grant(books, gift), limits)

    async def _page(self, visit: Visit, *, done: str, trouble: str) -> Response:
        wire = visit.browser.wires.looking
        accounts = [*await wire.rows(f"{_ACCOUNTS}false"), *await self._of_session(visit.browser.wires.running)]
        history = await wire.rows(_HISTORY)
        tables = [str(name) for (name,) in await wire.rows(_TABLES)]
        asked = [
            PastQuestion(
                at=f"{at:%Y-%m-%d %H:%M}", day=f"{at:%Y-%m-%d}", statement=str(query), epsilon=float(epsilon),
                cost=cost, is_free=bool(reused), outcome=str(outcome),
            )
            for at, query, epsilon, cost, reused, outcome in history
        ]  # fmt: skip
        everybody: tuple[EveryAccount, ...] = ()
        worst: tuple[str, ...] = ()
        if visit.is_admin:
            try:
                everybody, worst = await asyncio.to_thread(self._everybody, visit)
            except HushError as error:
                trouble = trouble or error.told().text()
        alarms = [f"{kind} {name}" for name, kind, limit, _, left, *_ in accounts if limit and left < limit * _LITTLE]
        parts = [("day", by_day(asked)), ("table", by_table(asked, tables))]
        return self.console.page(
            "budget.html", visit, accounts=accounts, questions=asked, everybody=everybody, worst=worst, parts=parts,
            alarms=alarms, little=_LITTLE, done=done, trouble=trouble, kinds=[k.value for k in _GRANTED],
        )  # fmt: skip

    async def _of_session(self, asking: Wire) -> list[tuple[object, ...]]:
        """The account of the session in which this browser asks, unless something runs there."""
        if not asking.is_resting:
            return []
        found = await asking.ask(f"{_ACCOUNTS}true")
        is_number = [kind in NUMBERS for kind in found.kinds]
        return [
            tuple(float(v) if v and is_one else v for v, is_one in zip(row, is_number, strict=True))
            for row in found.rows
        ]

    def _everybody(self, visit: Visit) -> tuple[tuple[EveryAccount, ...], tuple[str, ...]]:
        served = self.console.served(visit)
        return tuple(self._accounts(served)), tuple(worst_case_lines(served.policy(), served.users()))

    def _accounts(self, served: ServedPolicy) -> Iterator[EveryAccount]:
        """Of the dataset, its roles and logins, in the accounting of the present. Raises LedgerFailed, ConfigError."""
        policy = served.policy()
        for total in inspect(self.console.serving.books).totals:
            is_ours = dataset_of(total.name) == policy.dataset and total.kind is not AccountKind.SESSION
            if is_ours and total.accounting is policy.privacy.accounting:
                spent, granted = (epsilon_spent(policy.privacy, cost.pico) for cost in (total.spent, total.granted))
                yield EveryAccount(str(total.kind), total.name, figure(spent), figure(granted))


def _kind(text: str) -> AccountKind:
    """Raises ConfigError."""
    for kind in _GRANTED:
        if text == kind.value:
            return kind
    raise ConfigError(f"'{text}' is no kind of account", hint=f"Choose {', '.join(_GRANTED)}.")


def _epsilon(text: str) -> float:
    """Raises ConfigError."""
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"'{text}' is no epsilon", hint="Write a number, as 0.5.") from None
