"""How much does each aggregate of a block matter to its asker?

Shares come from a setting and are public. They move noise from one aggregate to another; the bound of a unit is
computed from the weights that result, whatever they are.
"""

from __future__ import annotations

from proxy.errors import PolicyForbids
from proxy.plan.parts.part_requests import asked_of
from proxy.policy.model import Accounting
from proxy.sql.algebra.nodes import Aggregate

Shares = tuple[float, ...]


def shares_of(wanted: Shares, aggregates: tuple[Aggregate, ...], accounting: Accounting) -> Shares:
    """One share for each aggregate, 1 for all if none are wanted. Raises PolicyForbids when they do not fit."""
    if not wanted:
        return (1.0,) * len(aggregates)
    if accounting is Accounting.PURE:
        raise PolicyForbids("hush.weights has no meaning under pure accounting", hint="RESET hush.weights.")
    if asked_of(aggregates):
        raise PolicyForbids(
            "hush.weights is for counts, sums and what is computed of them",
            detail="Quantiles, MIN, MAX, mode() and COUNT(DISTINCT x) each have an equal share of the charge.",
            hint="RESET hush.weights, or ask for them in another statement.",
        )
    if len(wanted) != len(aggregates):
        raise PolicyForbids(
            f"hush.weights has {len(wanted)} shares, and the statement {len(aggregates)} aggregates",
            hint="Give one for each, in the order in which they first stand in the statement.",
        )
    return wanted
