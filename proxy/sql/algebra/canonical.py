"""In which one form is a block planned, however its conditions were spelled?

Texts that differ only in the order of conditions, of operands that may be exchanged or of the items of IN, or in the
spelling of a comparison of whole numbers or days, are one block afterwards, and so one release. Every rewriting keeps
what a scalar says of every row, NULL included: see docs/claims/reuse.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, time
from decimal import Decimal

from proxy.sql.algebra.comparisons import HOLDS, MIRRORED, NEGATED
from proxy.sql.algebra.nodes import (
    Aggregate,
    Block,
    Call,
    Case,
    ColumnRef,
    Literal,
    Member,
    Null,
    Scalar,
    Span,
    conjuncts,
)
from proxy.sqltypes import SqlType

_MOST_IN_A_ROW = 64
_EXACT = 2**53  # below it a double compares with whole numbers as the constant itself does


def canonical(block: Block) -> Block:
    """The same rows, keys and aggregates in their one form. Keys and aggregates keep their places."""
    return replace(
        block,
        joins=tuple(replace(j, on=_all_of(j.on)) for j in block.joins),
        where=_all_of(block.where),
        keys=tuple(canonical_scalar(k) for k in block.keys),
        aggregates=tuple(_aggregate(a) for a in block.aggregates),
    )


def _aggregate(of: Aggregate) -> Aggregate:
    return replace(of, where=canonical_scalar(of.where), argument=canonical_scalar(of.argument),
                   beside=canonical_scalar(of.beside))  # fmt: skip


def _all_of(conditions: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Conjuncts, each once, in one order."""
    return in_order(tuple(_tested(part) for c in conditions for part in conjuncts(canonical_scalar(c))))


def _tested(condition: Scalar) -> Scalar:
    """A condition of which only the truth matters, not what it says in an answer."""
    match condition:
        case Call("or" as function):
            return _nested(function, in_order(tuple(_tested(part) for part in _flat(condition, function))))
        case Call("not", (Call(op, sides),)) if op in NEGATED and _is_ordered(*sides):
            return _tested(_call(Call(NEGATED[op], sides, SqlType.BOOL)))
        case Member(argument, (item,)):
            return _tested(Call("=", (argument, item), SqlType.BOOL))
        case Call(op, (left, Literal() as right)) if op in HOLDS and left.type.is_integer:
            return _of_whole_numbers(condition, left, right)
        case Call(op, (Call("cast time to timestamp", (day,)), Literal(datetime() as moment))) if op in HOLDS:
            return _of_days(condition, day, moment) if day.type is SqlType.DATE else condition
        case _:
            return condition


def in_order(scalars: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """The same, each once, in an order that does not depend on who names them."""
    return tuple(sorted(dict.fromkeys(scalars), key=repr))


def canonical_scalar(scalar: Scalar) -> Scalar:
    """The scalar in its one form: of the same value for every row."""
    match scalar:
        case ColumnRef() | Literal() | Null() | Span():
            return scalar
        case Member(argument, items):
            return Member(canonical_scalar(argument), tuple(sorted(dict.fromkeys(items), key=repr)))
        case Case(branches, otherwise, kind):
            told = tuple((canonical_scalar(c), canonical_scalar(v)) for c, v in branches)
            return Case(told, canonical_scalar(otherwise), kind)
        case Call("and" | "or" as function):  # a long chain is taken apart once, not once for each link
            return _nested(function, in_order(tuple(canonical_scalar(part) for part in _flat(scalar, function))))
        case Call(function, args, kind):
            return _call(Call(function, tuple(canonical_scalar(a) for a in args), kind))


def _call(call: Call) -> Scalar:
    match call:
        case Call("+" | "*" | "integer +" | "integer *", args) if all(map(_is_plain_number, args)):
            return replace(call, args=tuple(sorted(call.args, key=repr)))
        case Call(op, (Literal(), right)) if op in HOLDS and not isinstance(right, Literal):
            return _call(_mirrored(call))
        case Call("=" | "<>", (left, right)) if not isinstance(right, Literal):
            return replace(call, args=tuple(sorted((left, right), key=repr)))
        case Call(">" | ">=", (_, right)) if not isinstance(right, Literal):
            return _mirrored(call)
        case _:
            return call


def _is_plain_number(scalar: Scalar) -> bool:
    """Operands that are composed keep their order: the values of some functions are recognised by it."""
    return isinstance(scalar, (ColumnRef, Literal)) and scalar.type.is_number


def _mirrored(call: Call) -> Call:
    return replace(call, function=MIRRORED[call.function], args=(call.args[1], call.args[0]))


def _flat(scalar: Scalar, function: str) -> tuple[Scalar, ...]:
    found, rest = [], [scalar]
    while rest:
        part = rest.pop()
        if isinstance(part, Call) and part.function == function:
            rest.extend(reversed(part.args))
        else:
            found.append(part)
    return tuple(found)


def _nested(function: str, parts: tuple[Scalar, ...]) -> Scalar:
    if len(parts) > _MOST_IN_A_ROW:  # in halves, so that later stages need not descend far
        middle = len(parts) // 2
        parts = _nested(function, parts[:middle]), _nested(function, parts[middle:])
    found = parts[0]
    for part in parts[1:]:
        found = Call(function, (found, part), SqlType.BOOL)
    return found


def _is_ordered(*sides: Scalar) -> bool:
    """Whether one of `a < b`, `a = b`, `a > b` holds whenever both are there: NaN is not ordered everywhere."""
    return all(s.type.is_integer or s.type.is_text or s.type.is_time for s in sides)


def _of_whole_numbers(call: Call, left: Scalar, right: Literal) -> Call:
    """A comparison of a whole number with a constant: the constant as a whole number, without equality's other side.

    `x > 30`, `x >= 31` and `x > 30.0` are one; so are `x < 30.5` and `x <= 30`.
    """
    op, value = call.function, right.value
    is_number = right.type.is_integer or right.type is SqlType.NUMERIC
    if not is_number or not isinstance(value, (int, Decimal)) or not -_EXACT < value < _EXACT:
        return call
    whole = math.floor(value)
    is_whole = whole == value
    if op in ("=", "<>"):
        return replace(call, args=(left, Literal(whole, SqlType.INT8))) if is_whole else call
    if op in (">", ">="):
        least = whole if is_whole and op == ">=" else whole + 1
        return replace(call, function=">=", args=(left, Literal(least, SqlType.INT8)))
    most = whole - 1 if is_whole and op == "<" else whole
    return replace(call, function="<=", args=(left, Literal(most, SqlType.INT8)))


def _of_days(call: Call, day: Scalar, moment: datetime) -> Call:
    """A comparison of a day's start with a time, as one of the day: `d < '2024-05-01 12:00'` is `d <= '2024-05-01'`."""
    op, is_start = call.function, moment.time() == time.min
    if not is_start:
        op = {"<": "<=", ">=": ">"}.get(op, op)
    if op in ("=", "<>") and not is_start:
        return call
    return replace(call, function=op, args=(day, Literal(moment.date(), SqlType.DATE)))
