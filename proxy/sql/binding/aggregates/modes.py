"""What does mode() WITHIN GROUP (ORDER BY x) mean over private rows?

The most frequent value of an expression. Which values it may be is decided later, from policy and conditions.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.sql.algebra.nodes import Aggregate, AggregateKind, Scalar
from proxy.sql.binding.binder import Binder
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_WRITE = "Write mode() WITHIN GROUP (ORDER BY x)."


def is_mode(node: exp.Expr) -> bool:
    """Whether a node asks for the most frequent value as PostgreSQL spells it, FILTER aside."""
    return isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode) and node.this.this is None


def bind_mode(node: exp.WithinGroup, binder: Binder, where: Scalar) -> Aggregate:
    """mode() WITHIN GROUP (ORDER BY x): the direction decides nothing but ties. Raises Unsupported."""
    only(node, "this", "expression")
    only(node.this)
    order = node.expression
    ordered = order.expressions[0] if isinstance(order, exp.Order) and len(order.expressions) == 1 else None
    if not isinstance(ordered, exp.Ordered):
        raise refuse(node, "mode is ordered by one expression", _WRITE)
    only(order, "expressions")
    only(ordered, "this", "desc", "nulls_first")
    of = binder.scalar(ordered.this)
    if of.type is SqlType.INTERVAL:
        raise refuse(node, "mode of interval is not supported over private rows", "Order by a number of days.")
    return Aggregate(AggregateKind.MODE, of, where, of.type)
