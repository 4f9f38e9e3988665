"""What did one account spend, and what was it granted, in all and in the present window?

A tab is kept by day, so that a change of the refresh in a policy, in any direction, finds every charge that its window
holds. Days never go backwards: what a clock that is ahead has booked counts in the window of that time, and until then.

A charge of pure accounting is kept in both: epsilon-DP is (epsilon^2 / 2)-zCDP (Bun and Steinke 2016, Proposition 1.4),
so a policy may change from pure to zcdp. Nothing leads back: see `Tab.is_pure`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from proxy.ledger.base import NOTHING
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


@dataclass(slots=True)
class Tab:
    """is_pure: nothing was charged under zcdp, so that a sum of epsilon says all."""

    spent: dict[Accounting, Running] = field(default_factory=lambda: {a: Running() for a in Accounting})
    granted: dict[Accounting, Running] = field(default_factory=lambda: {a: Running() for a in Accounting})
    is_pure: bool = True

    def charge(self, accounting: Accounting, day: int, costs: tuple[Cost, ...]) -> None:
        """Book the costs of releases."""
        whole = sum(costs, start=NOTHING)
        self.spent[accounting].add(day, whole)
        if accounting is Accounting.PURE:
            self.spent[Accounting.ZCDP].add(day, sum((in_rho(cost) for cost in costs), start=NOTHING))
        else:
            self.is_pure = False

    def can_pay(self, accounting: Accounting) -> bool:
        """Whether all that was spent can be told in this accounting."""
        return self.is_pure or accounting is Accounting.ZCDP


def in_present(cost: Cost, then: Accounting, now: Accounting) -> Cost:
    """A cost of an earlier accounting in the present one: only pure may have become zcdp."""
    return in_rho(cost) if then is Accounting.PURE and now is Accounting.ZCDP else cost


def in_rho(epsilon: Cost) -> Cost:
    """What a release of pure accounting costs in zcdp, rounded up."""
    return Cost(-(-(epsilon.pico**2) // (2 * _PICO)), epsilon.atto)
