"""Which aggregates of a block are computed apart from its moments, and which of them together?

A closed union: what has no case here is answered from the vector of moments or not at all. How each is planned, with
which bound, SQL and share of the charge: `plan.parts`.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.plan.recipes import Apart
from proxy.sql.algebra import Aggregate, AggregateKind, Scalar


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """The number of different values of `of`, NULL aside, in the rows that pass `where`."""

    where: Scalar
    of: Scalar


Asked = DistinctValues


def asked_of(aggregates: tuple[Aggregate, ...]) -> tuple[Asked, ...]:
    """What is computed apart, each once, in an order that does not depend on the order of the select list."""
    found = (_asked(a) for a in aggregates if a.kind is AggregateKind.COUNT_DISTINCT)
    return tuple(sorted(dict.fromkeys(found), key=repr))


def apart(aggregate: Aggregate, asked: tuple[Asked, ...]) -> Apart:
    """Where the answer to an aggregate that is computed apart will stand."""
    return Apart(asked.index(_asked(aggregate)), 0)


def _asked(aggregate: Aggregate) -> Asked:
    return DistinctValues(aggregate.where, aggregate.argument)
