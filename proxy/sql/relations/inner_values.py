"""Which exact aggregate of a unit's own rows does a call stand for?

Used where rows of one unit are grouped and where a window runs over them. Of the second the binder has no DISTINCT.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from proxy.sql.algebra.nodes import TRUE, Scalar, UnitValue, UnitValueKind
from proxy.sql.binding.binder import Binder
from proxy.sql.syntax.refusal import only, refuse
from proxy.sql.syntax.words import construct
from proxy.sqltypes import SqlType

MakeValue = Callable[[UnitValue], Scalar]
KINDS: dict[type[exp.Expression], UnitValueKind] = {
    exp.Count: UnitValueKind.COUNT, exp.Sum: UnitValueKind.SUM, exp.Avg: UnitValueKind.AVG, exp.Min: UnitValueKind.MIN,
    exp.Max: UnitValueKind.MAX,
}  # fmt: skip
_REALS = (SqlType.FLOAT4, SqlType.FLOAT8)
_ORDERED = (SqlType.TEXT, SqlType.VARCHAR, SqlType.DATE, SqlType.TIMESTAMP)


def bind_unit_value(node: exp.Expression, binder: Binder, make: MakeValue) -> Scalar:
    """The call as a scalar over the column that `make` gives its value. Raises HushError."""
    where: Scalar = TRUE
    if isinstance(node, exp.Filter):
        only(node, "this", "expression")
        where = binder.condition(node.expression.this)
        node = node.this
    kind = KINDS.get(type(node))
    if kind is None:
        raise refuse(node, f"{construct(node)} is not supported over the rows of a unit",
                     "Accepted: count, sum, avg, min and max, each with FILTER.")  # fmt: skip
    only(node, "this", "big_int")
    if isinstance(node.this, exp.Distinct):
        return _distinct(node, kind, where, binder, make)
    if kind is UnitValueKind.COUNT and isinstance(node.this, exp.Star):
        return make(_value(kind, TRUE, where, SqlType.INT8))
    argument = binder.scalar(node.this)
    if kind is UnitValueKind.COUNT:
        return make(_value(kind, argument, where, SqlType.INT8))
    return _measured(node, _value(kind, argument, where, SqlType.INT8), binder, make)


def _value(kind: UnitValueKind, argument: Scalar, where: Scalar, type_: SqlType) -> UnitValue:
    return UnitValue("", kind, argument, where, type_)


def _distinct(node: exp.Expression, kind: UnitValueKind, where: Scalar, binder: Binder, make: MakeValue) -> Scalar:
    only(node.this, "expressions")
    if len(node.this.expressions) != 1:
        raise refuse(node, f"{kind.value}(DISTINCT a, b) is not supported per unit", "Count one expression.")
    argument = binder.scalar(node.this.expressions[0])
    if kind in (UnitValueKind.MIN, UnitValueKind.MAX):
        return _measured(node, _value(kind, argument, where, SqlType.INT8), binder, make)
    if kind is not UnitValueKind.COUNT or argument.type is SqlType.INTERVAL:
        raise refuse(node, f"{kind.value}(DISTINCT ...) of {argument.type.pg_name} is not supported per unit",
                     "Use count(DISTINCT x).")  # fmt: skip
    return make(_value(UnitValueKind.COUNT_DISTINCT, argument, where, SqlType.INT8))


def _measured(node: exp.Expression, value: UnitValue, binder: Binder, make: MakeValue) -> Scalar:
    """A sum, average or extreme in the type that PostgreSQL gives it."""
    kind, argument = value.kind, value.argument
    is_extreme = kind in (UnitValueKind.MIN, UnitValueKind.MAX)
    if not argument.type.is_number and not (is_extreme and argument.type in _ORDERED):
        raise refuse(node, f"{kind.value}({argument.type.pg_name}) is not supported per unit",
                     "Aggregate a number; min and max also take a text, date or timestamp.")  # fmt: skip
    if is_extreme and argument.type is not SqlType.NUMERIC:
        return make(_value(kind, argument, value.where, argument.type))
    if kind is UnitValueKind.SUM and argument.type.is_integer:
        total = make(value)
        return binder.convert(node, total, SqlType.NUMERIC) if argument.type is SqlType.INT8 else total
    found = make(_value(kind, argument, value.where, SqlType.FLOAT8))
    return found if argument.type in _REALS else binder.convert(node, found, SqlType.NUMERIC)


def stored_type(kind: SqlType) -> SqlType:
    """The type of a computed value as the engine has it: a numeric is a double, an instant the policy's local time."""
    match kind:
        case SqlType.NUMERIC:
            return SqlType.FLOAT8
        case SqlType.TIMESTAMPTZ:
            return SqlType.TIMESTAMP
        case _:
            return kind
