"""Which arithmetic of aggregates can be told an interval, and what does it say?

Sums, differences, products and quotients of aggregates and numbers. What PostgreSQL computes of an answer is its own
business; this is for hush.low, hush.high and hush.sd alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from sqlglot import exp

from proxy.sql.algebra.nodes import Aggregate, AggregateKind
from proxy.sql.binding.aggregates.aggregates import is_aggregate_call
from proxy.sql.syntax.refusal import only, refuse

_SIGNS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
#: Of a quotient of whole numbers.
CUT_OFF = "//"
_FRACTIONS = (exp.DataType.Type.DECIMAL, exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
_Signed = exp.Add | exp.Sub | exp.Mul | exp.Div
_AROUND = (exp.Paren, exp.Neg, exp.Cast)
_OTHERS = {AggregateKind.BOOL_AND, AggregateKind.BOOL_OR, AggregateKind.MODE}


@dataclass(frozen=True, slots=True)
class FormulaConstant:
    """A constant."""

    value: float


@dataclass(frozen=True, slots=True)
class FormulaAggregate:
    """An aggregate, by its number in the block."""

    aggregate: int


@dataclass(frozen=True, slots=True)
class Operation:
    """sign: one of + - * / and, outermost, // for a quotient of whole numbers, which PostgreSQL cuts off."""

    sign: str
    left: Formula
    right: Formula


Formula = FormulaConstant | FormulaAggregate | Operation


def values_in(formula: Formula) -> tuple[int, ...]:
    """The aggregates that a formula reads, by their numbers."""
    match formula:
        case FormulaConstant():
            return ()
        case FormulaAggregate(number):
            return (number,)
        case Operation(_, left, right):
            return (*values_in(left), *values_in(right))
        case _ as never:
            assert_never(never)


def is_aggregate_value(node: object) -> bool:
    """Whether a node is one aggregate, FILTER included."""
    return isinstance(node, exp.Filter) or is_aggregate_call(node)


def is_formula(node: exp.Expr) -> bool:
    """Whether a node is arithmetic of aggregates and numbers that surely has an interval."""
    leaves = list(_leaves(node))
    return any(map(is_aggregate_value, leaves)) and all(_is_certain(leaf) for leaf in leaves) and _divides_well(node)


def _leaves(node: exp.Expr) -> list[exp.Expr]:
    """What is not arithmetic any more, but for minus signs, casts to fractions and parentheses."""
    if isinstance(node, exp.Cast) and node.to.this not in _FRACTIONS:
        return [node]
    if isinstance(node, _AROUND) or _is_guarded(node):
        return _leaves(node.this)
    return (
        [*_leaves(node.left), *_leaves(node.right)] if type(node) in _SIGNS and isinstance(node, exp.Binary) else [node]
    )


def _is_certain(leaf: exp.Expr) -> bool:
    call = leaf.this if isinstance(leaf, exp.Filter) else leaf
    return isinstance(call, (exp.Count, exp.Sum, exp.Avg)) or (isinstance(leaf, exp.Literal) and not leaf.is_string)


def _divides_well(node: exp.Expr) -> bool:
    """Whether no division but the outermost can be one of whole numbers, which PostgreSQL cuts off."""
    outermost = node.unnest()
    return all(d is outermost or _is_fraction(d.left) or _is_fraction(d.right) for d in node.find_all(exp.Div))


def _is_fraction(node: exp.Expr) -> bool:
    """Whether a node is surely no whole number."""
    if isinstance(node, (exp.Paren, exp.Neg, exp.Nullif)):
        return _is_fraction(node.this)
    if isinstance(node, (exp.Cast, exp.Avg)) or (isinstance(node, exp.Literal) and not str(node.this).isdigit()):
        return True
    return (
        type(node) in _SIGNS and isinstance(node, exp.Binary) and (_is_fraction(node.left) or _is_fraction(node.right))
    )


def _is_guarded(node: exp.Expr) -> bool:
    """nullif(x, 0): as x, where it is anything."""
    return (
        isinstance(node, exp.Nullif) and isinstance(node.expression, exp.Literal) and str(node.expression.this) == "0"
    )


def read_formula(node: exp.Expr, bind: Callable[[exp.Expr], tuple[int, Aggregate]]) -> Formula:
    """What a node says. bind: an aggregate call. Raises Unsupported."""
    return _read(node, bind)[0]


def _read(node: exp.Expr, bind: Callable[[exp.Expr], tuple[int, Aggregate]]) -> tuple[Formula, bool]:
    """The formula, and whether it is a whole number."""
    match node:
        case exp.Paren():
            return _read(node.this, bind)
        case exp.Nullif() if _is_guarded(node):
            return _read(node.this, bind)
        case exp.Neg():
            found, is_whole = _read(node.this, bind)
            _check_not_cut(node.this, found)
            return Operation("*", FormulaConstant(-1.0), found), is_whole
        case exp.Cast() if node.to.this in _FRACTIONS:
            only(node, "this", "to")
            return _read(node.this, bind)[0], False
        case exp.Literal() if not node.is_string:
            return FormulaConstant(float(str(node.this))), str(node.this).isdigit()
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _operation(node, bind)
        case _ if is_aggregate_value(node):
            number, aggregate = bind(node)
            if aggregate.kind.is_quantile or aggregate.kind in _OTHERS:
                raise refuse(node, f"{aggregate.kind.value} has no interval in arithmetic", "Leave it out.")
            return FormulaAggregate(number), aggregate.type.is_integer
        case _:
            raise refuse(node, "hush.low, hush.high and hush.sd take aggregates and numbers with + - * /",
                         "Write hush.low(sum(a) - sum(b)).")  # fmt: skip


def _operation(node: _Signed, bind: Callable[[exp.Expr], tuple[int, Aggregate]]) -> tuple[Formula, bool]:
    only(node, "this", "expression", "typed", "safe")
    (left, is_left_whole), (right, is_right_whole) = _read(node.left, bind), _read(node.right, bind)
    sign, is_whole = _SIGNS[type(node)], is_left_whole and is_right_whole
    _check_not_cut(node.left, left)
    _check_not_cut(node.right, right)
    return Operation(CUT_OFF if sign == "/" and is_whole else sign, left, right), is_whole


def _check_not_cut(node: exp.Expr, read: Formula) -> None:
    if isinstance(read, Operation) and read.sign == CUT_OFF:
        raise refuse(node, "arithmetic with a quotient of whole numbers, which is cut off, has no interval",
                     "Cast one of them: sum(x)::numeric / count(*).")  # fmt: skip
