"""What do MIN, MAX and the percentiles WITHIN GROUP mean over private rows?

All are quantiles: the fraction of the rows that lie below. An array of fractions asks for one quantile each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.advice.instead_of_part import advice
from proxy.sql.algebra.constants import Elements, Untyped
from proxy.sql.algebra.nodes import Aggregate, AggregateKind, Literal, Scalar
from proxy.sql.binding.aggregates.intervals import measured
from proxy.sql.binding.binder import Binder, Bound
from proxy.sql.binding.quantified import elements
from proxy.sql.binding.values import parameter
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_KINDS = MappingProxyType({
    "percentile_cont": AggregateKind.PERCENTILE_CONT, "percentile_disc": AggregateKind.PERCENTILE_DISC,
})  # fmt: skip
_ENDS = MappingProxyType({"min": (AggregateKind.MIN, Fraction(0)), "max": (AggregateKind.MAX, Fraction(1))})
_FINEST = 10**6  # of a fraction; ranks are noisy by more than the rest
_MOST_FRACTIONS = 100
_WRITE = "Write percentile_cont(0.5) WITHIN GROUP (ORDER BY x)."
_TEXTS = "Numbers, dates and timestamps have quantiles; group by a text to see which of its values there are."


@dataclass(frozen=True, slots=True)
class Several:
    """An array of aggregates, one for each element."""

    aggregates: tuple[Aggregate, ...]


def is_end(name: str) -> bool:
    return name in _ENDS


def bind_end(node: exp.Expression, binder: Binder, where: Scalar, name: str) -> Aggregate:
    """min(x) or max(x); DISTINCT changes neither. Raises Unsupported."""
    only(node, "this")
    argument = node.this
    if isinstance(argument, exp.Distinct):
        only(argument, "expressions")
        if len(argument.expressions) != 1:
            raise refuse(node, f"{name} takes one expression", f"Write {name}(x).")
        argument = argument.expressions[0]
    kind, fraction = _ENDS[name]
    return _quantile(node, measured(binder, argument), where, kind, fraction)


def bind_within(node: exp.WithinGroup, binder: Binder, where: Scalar, name: str) -> Aggregate | Several:
    """percentile_cont(f) or percentile_disc(f) WITHIN GROUP (ORDER BY x). Raises Unsupported."""
    only(node, "this", "expression")
    call, order = node.this, node.expression
    if name not in _KINDS or not isinstance(call, (exp.PercentileCont, exp.PercentileDisc)):
        raise refuse(
            node, f"the aggregate {name}() is not supported over private rows", advice(call, binder.source) or _WRITE
        )
    only(call, "this")
    ordered = order.expressions[0] if isinstance(order, exp.Order) and len(order.expressions) == 1 else None
    if not isinstance(ordered, exp.Ordered):
        raise refuse(node, f"{name} takes one fraction and is ordered by one expression", _WRITE)
    only(order, "expressions")
    only(ordered, "this", "desc", "nulls_first")
    plain = _quantile(node, measured(binder, ordered.this), where, _KINDS[name], Fraction(0))
    fractions, is_array = _fractions(call.this, binder)
    found = tuple(replace(plain, fraction=1 - f if ordered.args.get("desc") else f) for f in fractions)
    return Several(found) if is_array else found[0]


def _quantile(
    node: exp.Expression, found: tuple[Scalar, bool], where: Scalar, kind: AggregateKind, fraction: Fraction
) -> Aggregate:
    """A quantile in PostgreSQL's type. found: of what, and whether these are the seconds of a difference of times.

    Raises Unsupported.
    """
    of, is_wait = found
    what = f"{kind.value} of {of.type.pg_name} is not supported over private rows"
    if not (of.type.is_number or of.type.is_time):
        raise refuse(node, what, _TEXTS)
    is_between = kind is AggregateKind.PERCENTILE_CONT
    if is_between and not of.type.is_number:
        raise refuse(node, what, "Use percentile_disc for dates and times.")
    result = SqlType.INTERVAL if is_wait else SqlType.FLOAT8 if is_between else of.type
    return Aggregate(kind, of, where, result, fraction=fraction)


def _fractions(node: exp.Expression, binder: Binder) -> tuple[tuple[Fraction, ...], bool]:
    """The fractions, and whether they stand in an array."""
    if not _is_array(node, binder):
        return (_fraction(binder, binder.bind(node), node),), False
    found = tuple(_fraction(binder, bound, item) for bound, item in elements(binder, node, node, SqlType.FLOAT8))
    if not 0 < len(found) <= _MOST_FRACTIONS:
        raise refuse(node, f"an array of 1 to {_MOST_FRACTIONS} fractions is expected here", "Write ARRAY[0.25, 0.5].")
    return found, True


def _is_array(node: exp.Expression, binder: Binder) -> bool:
    match node:
        case exp.Paren():
            return _is_array(node.this, binder)
        case exp.Array() | exp.Cast(args={"to": exp.DataType(this=exp.DataType.Type.ARRAY)}):
            return True
        case exp.Parameter():
            found = parameter(binder, node)
            if isinstance(found, Elements) and found.dimensions > 1:
                raise refuse(node, "an array of fractions has one dimension here", _WRITE)
            return isinstance(found, Elements)
        case exp.Literal(args={"is_string": True}):
            return str(node.this).strip().startswith("{")
        case _:
            return False


def _fraction(binder: Binder, bound: Bound, node: exp.Expression) -> Fraction:
    value = binder.read(node, bound.text, SqlType.FLOAT8) if isinstance(bound, Untyped) else bound
    if isinstance(value, Literal) and isinstance(value.value, (int, float, Decimal)) and value.type.is_number:
        fraction = round(Fraction(value.value) * _FINEST)
        if 0 <= value.value <= 1:
            return Fraction(fraction, _FINEST)
    raise refuse(node, "a percentile's fraction is a constant from 0 to 1", _WRITE)
