"""How is a scalar or aggregate of the algebra shown to a person?"""

from __future__ import annotations

from decimal import Decimal
from typing import assert_never

from proxy.sql.algebra.nodes import (
    TRUE,
    Aggregate,
    AggregateKind,
    Beside,
    Call,
    Case,
    ColumnRef,
    Literal,
    Member,
    Null,
    Placed,
    Scalar,
    Span,
    UnitValue,
    UnitValueKind,
    WindowFrame,
    WindowValue,
)

_INFIX = ("=", "<>", "<", "<=", ">", ">=", "and", "or", "||", "is distinct from", "like", "ilike")

_SIGNS = ("+", "-", "*", "/", "%", "&", "|", "#", ">>")


def describe_scalar(scalar: Scalar) -> str:
    """Readable SQL; columns by their own name."""
    match scalar:
        case ColumnRef():
            return scalar.name
        case Literal(value):
            return str(value) if isinstance(value, (bool, int, float, Decimal)) else f"'{value}'"
        case Null():
            return "NULL"
        case Span(months, days, microseconds):
            return f"interval '{months} months {days} days {microseconds} microseconds'"
        case Member(argument, items):
            return f"{describe_scalar(argument)} IN ({', '.join(describe_scalar(i) for i in items)})"
        case Case(branches, otherwise):
            whens = " ".join(f"WHEN {describe_scalar(c)} THEN {describe_scalar(v)}" for c, v in branches)
            return f"CASE {whens} ELSE {describe_scalar(otherwise)} END" if whens else describe_scalar(otherwise)
        case Call("is null", (argument,)):
            return f"{describe_scalar(argument)} IS NULL"
        case Call(function, args):
            return _call(function, tuple(describe_scalar(a) for a in args))


def _call(function: str, args: tuple[str, ...]) -> str:
    operator = function.removeprefix("integer ").removeprefix("date ").removeprefix("time ").split(" ")[0]
    if len(args) == 2 and (function in _INFIX or operator in _SIGNS):
        return f"({args[0]} {function.upper() if function in _INFIX else operator} {args[1]})"
    return f"{function.replace(' ', '_')}({', '.join(args)})"


def describe_aggregate(aggregate: Aggregate) -> str:
    """The aggregate call as SQL."""
    if aggregate.kind is AggregateKind.COUNT_ROWS:
        text = "count(*)"
    elif aggregate.kind in (AggregateKind.COUNT_DISTINCT, AggregateKind.COUNT_UNITS):
        text = f"count(DISTINCT {describe_scalar(aggregate.argument)})"
    elif aggregate.kind in (AggregateKind.PERCENTILE_CONT, AggregateKind.PERCENTILE_DISC):
        order = f"WITHIN GROUP (ORDER BY {describe_scalar(aggregate.argument)})"
        text = f"{aggregate.kind.value}({float(aggregate.fraction):g}) {order}"
    elif aggregate.kind is AggregateKind.MODE:
        text = f"mode() WITHIN GROUP (ORDER BY {describe_scalar(aggregate.argument)})"
    else:
        text = f"{aggregate.kind.value}({', '.join(map(describe_scalar, aggregate.arguments))})"
    return text if aggregate.where == TRUE else f"{text} FILTER (WHERE {describe_scalar(aggregate.where)})"


def describe_unit_value(value: UnitValue) -> str:
    """The exact aggregate of a unit's rows as SQL."""
    if value.kind is UnitValueKind.COUNT_DISTINCT:
        text = f"count(DISTINCT {describe_scalar(value.argument)})"
    else:
        text = f"{value.kind.value}({'*' if value.argument == TRUE else describe_scalar(value.argument)})"
    return text if value.where == TRUE else f"{text} FILTER (WHERE {describe_scalar(value.where)})"


def describe_window(value: WindowValue) -> str:
    """The window function as SQL; that it is of one unit's rows is not said."""
    ordered = ", ".join(f"{describe_scalar(o.scalar)}{' DESC' if o.is_descending else ''}" for o in value.order)
    parts = [f"PARTITION BY {', '.join(map(describe_scalar, value.partition))}"] if value.partition else []
    parts += [f"ORDER BY {ordered}"] if ordered else []
    parts += [spell_frame(value.frame)] if isinstance(value.frame, WindowFrame) else []
    return f"{_called(value)} OVER ({' '.join(parts)})"


def spell_frame(frame: WindowFrame) -> str:
    """The frame as SQL."""
    ends = ("UNBOUNDED PRECEDING" if frame.start is None else _row(frame.start),
            "UNBOUNDED FOLLOWING" if frame.end is None else _row(frame.end))  # fmt: skip
    return f"{'GROUPS' if frame.by_peers else 'ROWS'} BETWEEN {ends[0]} AND {ends[1]}"


def _row(after: int) -> str:
    return f"{abs(after)} {'FOLLOWING' if after > 0 else 'PRECEDING'}" if after else "CURRENT ROW"


def _called(value: WindowValue) -> str:
    match value.of:
        case Placed(place):
            return f"{place.value}()"
        case Beside(row, argument, distance):
            return f"{row.value}({describe_scalar(argument)}{f', {distance}' if distance != 1 else ''})"
        case UnitValue() as inner:
            return describe_unit_value(inner)
        case _ as never:
            assert_never(never)
