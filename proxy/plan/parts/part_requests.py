"""Which aggregates of a block are computed apart from its moments, and which of them together?

A closed union: what has no case here is answered from the vector of moments or not at all. How each is planned, with
which bound, SQL and share of the charge: `plan.parts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from proxy.plan.vector.recipes import Apart, Linear, Ranked
from proxy.sql.algebra.nodes import Aggregate, AggregateKind, Scalar


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """The number of different values of `of`, NULL aside, in the rows that pass `where`."""

    where: Scalar
    of: Scalar


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The values of `of` below which these fractions of the rows that pass `where` lie, NULL aside.

    bracketed: those of the fractions whose 95 % intervals are wanted as well.
    """

    where: Scalar
    of: Scalar
    fractions: tuple[Fraction, ...]
    bracketed: tuple[Fraction, ...] = ()


@dataclass(frozen=True, slots=True)
class MostFrequent:
    """The value of `of` that most of the rows that pass `where` have, NULL aside."""

    where: Scalar
    of: Scalar


PartRequest = DistinctValues | Quantiles | MostFrequent


def asked_of(aggregates: tuple[Aggregate, ...]) -> tuple[PartRequest, ...]:
    """What is computed apart, each once, in an order that does not depend on the order of the select list."""
    distinct = (_distinct(a) for a in aggregates if a.kind is AggregateKind.COUNT_DISTINCT)
    ranked = (_quantiles(a, aggregates) for a in aggregates if a.kind.is_quantile)
    modes = (_most_frequent(a) for a in aggregates if a.kind is AggregateKind.MODE)
    return tuple(sorted(dict.fromkeys((*distinct, *ranked, *modes)), key=repr))


def apart(aggregate: Aggregate, asked: tuple[PartRequest, ...]) -> Apart:
    """Where the answer to an aggregate that is computed apart will stand."""
    return Apart(asked.index(_distinct(aggregate)), 0)


def ranked(aggregate: Aggregate, asked: tuple[PartRequest, ...], number: Linear) -> Ranked:
    """The same for a quantile. number: of its rows."""
    rows = (aggregate.where, aggregate.argument)
    place, one = next((i, a) for i, a in enumerate(asked) if isinstance(a, Quantiles) and (a.where, a.of) == rows)
    return Ranked(place, one.fractions.index(aggregate.fraction), number)


def elected(aggregate: Aggregate, asked: tuple[PartRequest, ...], number: Linear) -> Ranked:
    """The same for the most frequent value. number: of its rows."""
    return Ranked(asked.index(_most_frequent(aggregate)), 0, number)


def _most_frequent(aggregate: Aggregate) -> MostFrequent:
    return MostFrequent(aggregate.where, aggregate.argument)


def _distinct(aggregate: Aggregate) -> DistinctValues:
    return DistinctValues(aggregate.where, aggregate.argument)


def _quantiles(aggregate: Aggregate, aggregates: tuple[Aggregate, ...]) -> Quantiles:
    """All quantiles of one measure of the same rows: together they cost less than each by itself."""
    where, of = aggregate.where, aggregate.argument
    alike = [a for a in aggregates if a.kind.is_quantile and (a.where, a.argument) == (where, of)]
    fractions, bracketed = {a.fraction for a in alike}, {a.fraction for a in alike if a.is_bracketed}
    return Quantiles(where, of, tuple(sorted(fractions)), tuple(sorted(bracketed)))
