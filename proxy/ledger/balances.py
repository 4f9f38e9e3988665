"""What did one account spend, and what was it granted, in all and in the present window?

A tab is kept by day, so that a change of the refresh in a policy, in any direction, finds every charge that its window
holds. Days never go backwards: what a clock that is ahead has booked counts in the window of that time, and until then.

A charge of pure accounting is kept in both: epsilon-DP is (epsilon^2 / 2)-zCDP (Bun and Steinke 2016, Proposition 1.4),
so a policy may change from pure to zcdp. Nothing leads back: see `Tab.is_pure`. What was charged is kept beside what it
counts, which grows when more is promised: see `ledger.promises`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from proxy.ledger.base import NOTHING
from proxy.ledger.chain import Origin, Priced
from proxy.ledger.promises import PromiseTerms
from proxy.ledger.windows import LONGEST_DAYS, first_day
from proxy.plan.charge import Cost
from proxy.policy.model import Accounting, Refresh

_PICO = 10**12


@dataclass(slots=True)
class Running:
    """A sum, and its parts on the latest days."""

    total: Cost = NOTHING
    by_day: dict[int, Cost] = field(default_factory=dict)

    def add(self, day: int, cost: Cost) -> None:
        self.total += cost
        self.by_day[day] = self.by_day.get(day, NOTHING) + cost
        for old in [d for d in self.by_day if d < day - LONGEST_DAYS]:
            del self.by_day[old]

    def within(self, refresh: Refresh, day: int) -> Cost:
        """The sum over the window of `day`, which is not before the latest day of the sum.

        Also while another thread adds: days are copied before they are looked at.
        """
        if refresh is Refresh.LIFETIME:
            return self.total
        first = first_day(refresh, day)
        return sum((cost for d, cost in tuple(self.by_day.items()) if d >= first), start=NOTHING)

    def at_least(self, other: Running) -> Running:
        """The larger of both, in all and on each of its own days."""
        days = {d: _larger(cost, other.by_day.get(d, NOTHING)) for d, cost in self.by_day.items()}
        return Running(_larger(self.total, other.total), days)

    def include(self, other: Running, count: Callable[[Cost], Cost]) -> None:
        """Add what another sum counts."""
        self.total += count(other.total)
        for day, cost in other.by_day.items():
            self.by_day[day] = self.by_day.get(day, NOTHING) + count(cost)


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A charge for a release that may show private keys."""

    day: int
    origin: Origin
    release_id: int
    atto: int


@dataclass(slots=True)
class Tab:
    """spent: what was charged, as it counts now. is_pure: nothing was charged under zcdp, so that a sum of epsilon says
    all. outside: what was spent before another unit was protected.
    """

    spent: dict[Accounting, Running] = field(default_factory=lambda: {a: Running() for a in Accounting})
    granted: dict[Accounting, Running] = field(default_factory=lambda: {a: Running() for a in Accounting})
    outside: dict[Accounting, Cost] = field(default_factory=lambda: dict.fromkeys(Accounting, NOTHING))
    is_pure: bool = True
    _charged: dict[tuple[Accounting, Origin], Running] = field(default_factory=dict)
    _keyed: list[_Keyed] = field(default_factory=list)

    def charge(
        self, accounting: Accounting, origin: Origin, day: int, releases: Sequence[Priced], terms: PromiseTerms
    ) -> None:
        """Book the costs of releases."""
        costs = [release.cost for release in releases]
        counted = [terms.counted(origin, accounting, release) for release in releases]
        self._book(accounting, origin, day, costs, counted)
        if accounting is Accounting.PURE:
            self._book(Accounting.ZCDP, origin, day, map(in_rho, costs), map(in_rho, counted))
        else:
            self.is_pure = False
        self._keyed += (_Keyed(day, origin, r.release_id, r.cost.atto) for r in releases if r.cost.atto)

    def _book(
        self, accounting: Accounting, origin: Origin, day: int, costs: Iterable[Cost], counted: Iterable[Cost]
    ) -> None:
        self._charged.setdefault((accounting, origin), Running()).add(day, total(costs))
        self.spent[accounting].add(day, total(counted))

    def recount(self, terms: PromiseTerms) -> None:
        """Count all that was charged for what is promised now; no sum gets less."""
        for accounting, before in tuple(self.spent.items()):
            after = Running()
            for (of, origin), charged in self._charged.items():
                if of is accounting:
                    after.include(charged, partial(terms.charged, origin, accounting))
            for one in self._keyed:
                grown = Cost(0, terms.atto(one.origin, one.release_id, one.atto) - one.atto)
                after.include(Running(grown, {one.day: grown}), lambda cost: cost)
            self.spent[accounting] = before.at_least(after)

    def is_countable(self, terms: PromiseTerms) -> bool:
        """Whether all deltas can be told for what is promised now."""
        return all(terms.is_countable(one.origin, one.release_id, one.atto) for one in self._keyed)

    def can_pay(self, accounting: Accounting) -> bool:
        """Whether all that was spent can be told in this accounting."""
        return self.is_pure or accounting is Accounting.ZCDP

    def leave_behind(self) -> None:
        """Another unit is protected from now on."""
        self.outside = {a: running.total for a, running in self.spent.items()}


def total(costs: Iterable[Cost]) -> Cost:
    return sum(costs, start=NOTHING)


def in_present(cost: Cost, then: Accounting, now: Accounting) -> Cost:
    """A cost of an earlier accounting in the present one: only pure may have become zcdp."""
    return in_rho(cost) if then is Accounting.PURE and now is Accounting.ZCDP else cost


def in_rho(epsilon: Cost) -> Cost:
    """What a release of pure accounting costs in zcdp, rounded up."""
    return Cost(-(-(epsilon.pico**2) // (2 * _PICO)), epsilon.atto)


def _larger(one: Cost, other: Cost) -> Cost:
    return Cost(max(one.pico, other.pico), max(one.atto, other.atto))
