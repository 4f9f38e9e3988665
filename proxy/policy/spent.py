"""What does an edit of the promise do to what was spent before?

In words, for people who compare two policies. The sums are made by the ledger; see docs/claims/promises.md.
"""

from __future__ import annotations

from proxy.policy.figures import figure
from proxy.policy.model import Accounting, Policy, Privacy
from proxy.policy.pledge import changed_unit, pledge_of


def reach_words(old: Privacy, new: Privacy) -> str:
    """What another group size, or other neighbours, make of what was spent; "" if that is the same."""
    before, after = old.promise.reach, new.promise.reach
    power = 1 if new.accounting is Accounting.PURE else 2
    said = []
    if after > before:
        said.append(f"what was spent counts {figure((after / before) ** power)} times")
    if after < before:
        less = f"{figure((before / after) ** power)} times"
        said.append(f"what was spent stays as it counts, and each new charge counts {less}: accounts keep a promise")
    if new.group_size > old.group_size and new.accounting is Accounting.ZCDP:
        said.append("the delta of unlisted groups counts as often as a group of that size is shown, which is far more")
    return "; ".join(said)


def accounting_words(new: Privacy) -> str:
    """What the other accounting makes of what was spent."""
    if new.accounting is Accounting.ZCDP:
        return "each release of epsilon e counts as rho e^2/2, after what a larger group makes of e"
    return "refused once anything was spent: rho has no epsilon without a delta"


def unit_words(old: Policy, new: Policy) -> str:
    """What another unit makes of what was spent; "" if it is the same."""
    before = pledge_of(old)
    difference = changed_unit(before.unit, dict(before.owners), pledge_of(new))
    if not difference:
        return ""
    if new.unit_changed_from == before.unit:
        return f"{difference}: acknowledged; what was spent stays spent, and nothing of it was released for this unit"
    advice = f"give the dataset a new name, or write {before.unit} here"
    return f"{difference}: refused where anything was promised before; {advice}"
