"""What would a profile cost at one price or another, and what would it be worth?

All of it follows from the policy and from what the options ask for, and is said before anything is charged or looked
at: how many units a table has is not known here, so what noise means is said of numbers of units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proxy.dp.accounting import knob_pico, limit_pico
from proxy.dp.mechanisms import distribution_of
from proxy.plan.profile.profile import ENOUGH
from proxy.policy.figures import figure
from proxy.policy.model import Accounting, EpsilonLimit, Policy
from proxy.session.learning.profile_questions import Size, Sizing, UnitQuestion, has_several_rows, weight_of
from proxy.session.learning.profiling import Wish

_OFFERED = (0.25, 0.5, 1.0, 2.0)
_LESS = 0.1  # where units have one row each a bound gains little, and half of a small account is too much for it
# of the dataset's account: beside the price of a hundred questions a profile is hardly seen, and is worth most of them
_MOST = {Accounting.ZCDP: 0.015, Accounting.PURE: 0.05}
_A_CLASS = 1000  # units, of which it is said how far off their number will be
_95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A price. share: of the dataset's account, 0 where that has no limit. sd: of the noise in each number of units."""

    epsilon: float
    share: float
    sd: float

    @property
    def least_units(self) -> int:
        """How many units a table must have to be told from noise."""
        return math.ceil(ENOUGH * self.sd)

    @property
    def error(self) -> float:
        """How far off the number of units of a size is, 95 % of the time, as a part of a thousand of them."""
        return _95 * self.sd / _A_CLASS


def offers(policy: Policy, wishes: Sequence[Wish]) -> tuple[Offer, ...]:
    """What the usual prices buy.

    Claim (docs/claims/profile.md): a function of the policy and of what is asked for.
    """
    asked = [question for wish in wishes for question in wish.questions()]
    less = () if any(has_several_rows(wish.table) for wish in wishes) else (_LESS,)
    return tuple(_offer(policy, asked, epsilon) for epsilon in (*less, *_OFFERED))


def proposed(found: Sequence[Offer], policy: Policy) -> float:
    """The largest price that takes little of the dataset's account, 1 where that has no limit."""
    if not isinstance(policy.budgets.dataset, EpsilonLimit):
        return 1.0
    most = _MOST[policy.privacy.accounting]
    return max((o.epsilon for o in found if o.share <= most), default=found[0].epsilon)


def _offer(policy: Policy, asked: Sequence[UnitQuestion], epsilon: float) -> Offer:
    privacy, limit = policy.privacy, policy.budgets.dataset
    distribution = distribution_of(privacy.accounting)
    whole, weights = knob_pico(privacy, epsilon), sum(weight_of(question, distribution) for question in asked)
    one = next(q for q in asked if isinstance(q, Sizing) and q.of is not Size.GROUPS)
    part = whole * weight_of(one, distribution) / weights / 1e12
    reach = privacy.promise.reach
    sd = math.sqrt(2.0) * reach / part if privacy.accounting is Accounting.PURE else reach / math.sqrt(2.0 * part)
    share = whole / limit_pico(privacy, limit.epsilon) if isinstance(limit, EpsilonLimit) else 0.0
    return Offer(epsilon=epsilon, share=share, sd=sd)


def proposal_lines(policy: Policy, wishes: Sequence[Wish], found: Sequence[Offer]) -> Iterator[str]:
    """What is said before a price is chosen."""
    unit, best, limit = policy.privacy.unit, proposed(found, policy), policy.budgets.dataset
    numbers, tables = sum(len(w.questions()) for w in wishes), ", ".join(w.table.name for w in wishes)
    account = f"of epsilon {figure(limit.epsilon, 6)}" if isinstance(limit, EpsilonLimit) else "without a limit"
    yield f"{policy.dataset}: how many {unit}s have how much in {tables}: {numbers} questions, paid for once by the"
    yield f"dataset's account {account}, before anything is looked at. What the price buys:"
    headings = ("  epsilon", "of the account", "noise (95 %)", f"of 1,000 {unit}s", "least table")
    rows = [
        (
            f"{'>' if o.epsilon == best else ' '} {figure(o.epsilon)}",
            f"{figure(100 * o.share, 2)} %" if o.share else "no limit",
            f"+-{figure(_95 * o.sd, 2)} {unit}s",
            f"{figure(100 * o.error, 2)} %",
            f"{figure(o.least_units, 2)} {unit}s",
        )
        for o in found
    ]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield f"Each number of {unit}s of one size has that noise; a smaller table than in the last column tells nothing."
    yield f"These figures follow from the policy alone. Proposed: --epsilon {figure(best)}"
