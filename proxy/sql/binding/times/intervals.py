"""What do intervals that are made of differences of times mean: choices among them, sums and multiples?

CASE WHEN shipped THEN at - ordered END, coalesce(age(x), INTERVAL '0') and 2 * (a - b) are numbers of microseconds, as
a difference is. Months have thirty days in them, as where PostgreSQL compares intervals.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from sqlglot import exp

from proxy.errors import HushError
from proxy.sql.algebra.constants import Untyped
from proxy.sql.algebra.nodes import Call, Case, Null, Scalar, Span
from proxy.sql.binding.binder import Binder, Bound
from proxy.sql.binding.choices import conditions
from proxy.sql.binding.times.ages import AGE
from proxy.sql.binding.times.spans import MADE, microseconds
from proxy.sql.syntax.parse import unwrapped
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_MEETING = (exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif)
_SUMS = {exp.Add: "integer +", exp.Sub: "integer -"}
_COMPOSED = (exp.Case, *_MEETING, *_SUMS, exp.Mul, exp.Neg)
# calls whose result is as long as one of their arguments, or a multiple, a sum or a fraction of them
_KEPT = frozenset(("coalesce", "greatest", "least", "nullif", "integer +", "integer -", "integer *", "integer negate",
                   "cast number to numeric", "/", MADE))  # fmt: skip


def bind_interval(binder: Binder, node: exp.Expression) -> Bound:
    """The node's meaning, which may be an interval made of others. Raises Unsupported."""
    inner = unwrapped(node)
    if _is_made(binder, inner):
        return binder.limited(node, Call(MADE, (_composed(binder, inner),), SqlType.INTERVAL))
    return binder.bind(inner, intervals=True)


def counts_months(scalar: Scalar) -> bool:
    """Whether what is measured is an age, or one of several values that may be."""
    match scalar:
        case Call(function, args):
            return function == AGE or (function in _KEPT and any(map(counts_months, args)))
        case Case(branches, otherwise):
            return any(counts_months(v) for _, v in branches) or counts_months(otherwise)
        case _:
            return False


# --- what is an interval ------------------------------------------------------------------------------------------


class _Kind(enum.Enum):
    """What the text of a value says of its type; OPEN: a constant, which takes the type of what stands beside it."""

    INTERVAL = enum.auto()
    OTHER = enum.auto()
    OPEN = enum.auto()


def _is_made(binder: Binder, node: exp.Expression) -> bool:
    """Whether this is made of intervals. What cannot be read is left to its own rule, which says so."""
    return isinstance(node, _COMPOSED) and binder.once(_joins_intervals, node)


def _joins_intervals(binder: Binder, node: exp.Expression) -> bool:
    try:
        if isinstance(node, (exp.Sub, exp.Mul)):  # a constant, or a number, on one of the sides
            return _is_interval(binder, node.this) or _is_interval(binder, node.expression)
        for value in _values(node):  # a generator would be two frames more of Python's stack, at every level
            kind = _kind(binder, value)
            if kind is not _Kind.OPEN:
                return kind is _Kind.INTERVAL
    except HushError:
        pass
    return False


def _values(node: exp.Expression) -> Iterator[exp.Expression]:
    """The parts whose type is the node's."""
    match node:
        case exp.Case():
            yield from (branch.args["true"] for branch in node.args["ifs"])
            if node.args.get("default") is not None:
                yield node.args["default"]
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            yield from (node.this, *node.expressions)
        case exp.Add():
            yield from (node.this, node.expression)
        case _:
            yield node.this


def _is_interval(binder: Binder, node: exp.Expression) -> bool:
    """Whether a value is an interval that is no constant."""
    return _kind(binder, node) is _Kind.INTERVAL


def _kind(binder: Binder, node: exp.Expression) -> _Kind:
    node = unwrapped(node)
    match node:
        case exp.Literal() | exp.Null() | exp.Parameter() | exp.Cast(this=exp.Literal() | exp.Parameter()):
            return _Kind.OPEN
        case exp.Sub():
            found = _is_difference(binder, node)
        case exp.Column():
            found = _is_call(binder.bind(node, intervals=True))
        case exp.Anonymous():
            found = str(node.this).lower() == AGE
        case _:
            found = _is_made(binder, node)
    return _Kind.INTERVAL if found else _Kind.OTHER


def _is_difference(binder: Binder, node: exp.Sub) -> bool:
    """Whether this is a difference of times or of intervals. Of numbers only the left side is looked at."""
    if _is_interval(binder, node.this):
        return True
    if isinstance(unwrapped(node.this), (exp.Sub, exp.Mul, exp.Neg)):  # no times
        return _is_interval(binder, node.expression)
    left = binder.bind(node.this)
    if isinstance(left, (Untyped, Span)):
        return _is_interval(binder, node.expression)
    return left.type.is_time and _is_call(binder.bind(node, intervals=True))


def _is_call(bound: Bound) -> bool:
    return isinstance(bound, Call) and bound.type is SqlType.INTERVAL


# --- how long it is -----------------------------------------------------------------------------------------------


def _composed(binder: Binder, node: exp.Expression) -> Scalar:
    """Microseconds of an interval that is made of others."""
    match node:
        case exp.Case():
            return _case(binder, node)
        case exp.Nullif():
            only(node, "this", "expression")
            return binder.call(node, "nullif", *(_length(binder, p) for p in (node.this, node.expression)))
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            only(node, "this", "expressions", "ignore_nulls")
            return binder.call(node, node.key.lower(), *(_length(binder, p) for p in (node.this, *node.expressions)))
        case exp.Neg():
            return binder.call(node, "integer negate", _length(binder, node.this))
        case exp.Mul():
            return _multiple(binder, node)
        case exp.Add() | exp.Sub():
            sides = (_length(binder, part) for part in (node.this, node.expression))
            return binder.call(node, _SUMS[type(node)], *sides)
        case _:
            raise AssertionError("the caller has looked")


def _case(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "ifs", "default")
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
    values = (_length(binder, branch.args["true"]) for branch in node.args["ifs"])
    branches = tuple(zip(conditions(binder, node), values, strict=True))
    default = node.args.get("default")
    otherwise = Null(SqlType.INT8) if default is None else _length(binder, default)
    return Case(branches, otherwise, SqlType.INT8)


def _multiple(binder: Binder, node: exp.Mul) -> Scalar:
    """An interval times a whole number, on either side."""
    of, factor = node.this, node.expression
    if not _is_interval(binder, of):
        of, factor = factor, of
    number = binder.scalar(factor)
    if not number.type.is_integer:
        raise refuse(node, "a difference of times is multiplied by whole numbers only", "Multiply its average.")
    return binder.call(node, "integer *", _length(binder, of), number)


def _length(binder: Binder, node: exp.Expression) -> Scalar:
    """Microseconds of an interval, a constant one too."""
    inner = unwrapped(node)
    if isinstance(inner, exp.Null):
        return Null(SqlType.INT8)
    if _is_made(binder, inner):
        return _composed(binder, inner)
    found = microseconds(binder, node, binder.bind(inner, intervals=True))
    if found is None:
        raise refuse(node, "an interval is expected beside intervals", "Write INTERVAL '1 day', or a difference.")
    return found
