"""What is a scalar where an outer join found no row, so that all columns of some scans are NULL?

A constant, or not known: the answer is right or there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from proxy.sql.algebra.nodes import Call, Case, ColumnRef, Literal, Member, Null, Scalar, Span, conjuncts
from proxy.sql.conditions.factored import alternatives
from proxy.sql.functions.function import Nulls
from proxy.sql.functions.table import FUNCTIONS
from proxy.sqltypes import SqlType

IsMissing = Callable[[int], bool]  # by the number of a scan
NullRowValue = Literal | Null | None  # None: not known
_STRICT = (Nulls.WITH_ANY, Nulls.WITH_ANY_OR_NO_ANSWER)


def without(scalar: Scalar, is_missing: IsMissing) -> NullRowValue:
    """The scalar in a row where all columns of missing scans are NULL."""
    match scalar:
        case ColumnRef(scan, _, kind):
            return Null(kind) if is_missing(scan) else None
        case Literal() | Null():
            return scalar
        case Span():
            return None
        case Member(argument):
            return Null(SqlType.BOOL) if isinstance(without(argument, is_missing), Null) else None
        case Case():
            return _case(scalar, is_missing)
        case Call(args=args):
            return _call(scalar, tuple(without(a, is_missing) for a in args))
        case _ as never:
            assert_never(never)


def is_never_true(condition: Scalar, is_missing: IsMissing) -> bool:
    """Whether a condition surely lets no such row pass."""
    parts = conjuncts(condition)
    if len(parts) != 1:
        return any(is_never_true(part, is_missing) for part in parts)
    either = alternatives(condition)
    if len(either) > 1:
        return all(is_never_true(part, is_missing) for part in either)
    match without(condition, is_missing):
        case Null():
            return True
        case Literal(value):
            return value is False
        case None:
            return False


def _case(scalar: Case, is_missing: IsMissing) -> NullRowValue:
    """What all results are that may be chosen, if they are one."""
    found = []
    for condition, value in scalar.branches:
        if is_never_true(condition, is_missing):
            continue
        found.append(without(value, is_missing))
        if without(condition, is_missing) == Literal(True, SqlType.BOOL):
            break
    else:
        found.append(without(scalar.otherwise, is_missing))
    if all(isinstance(f, Null) for f in found):
        return Null(scalar.type)
    return found[0] if all(f == found[0] for f in found) else None


def _call(call: Call, args: tuple[NullRowValue, ...]) -> NullRowValue:
    match call.function, args:
        case "is null", (only,):
            return None if only is None else _truth(isinstance(only, Null))
        case "not", (Literal(value),):
            return _truth(not value)
        case "and" | "or", _:
            return _logic(args, decisive=call.function == "or")
        case "is distinct from", (left, right):
            nulls = [isinstance(a, Null) for a in (left, right)]
            return _truth(not all(nulls)) if any(nulls) and None not in args else None
        case "nullif", (left, Null()):
            return left
        case "coalesce", _:
            return next((a for a in args if not isinstance(a, Null)), Null(call.type))
        case "greatest" | "least", _:
            there = [a for a in args if not isinstance(a, Null)]
            return Null(call.type) if not there else there[0] if len(there) == 1 else None
        case _ if FUNCTIONS[call.function].nulls in _STRICT:
            return Null(call.type) if any(isinstance(a, Null) for a in args) else None
        case _:
            return None


def _logic(args: tuple[NullRowValue, ...], *, decisive: bool) -> NullRowValue:
    """AND and OR: one side decides alone if it is FALSE, or TRUE."""
    if _truth(decisive) in args:
        return _truth(decisive)
    if None in args:
        return None
    return Null(SqlType.BOOL) if any(isinstance(a, Null) for a in args) else _truth(not decisive)


def _truth(value: bool) -> Literal:
    return Literal(value, SqlType.BOOL)
