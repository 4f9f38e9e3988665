"""What is left of a condition once the constants in it are looked at?

Of a condition only matters which rows it is TRUE for, as in WHERE, in JOIN and in CASE: FALSE and NULL are the same.
"""

from __future__ import annotations

from proxy.sql.algebra.comparisons import HOLDS
from proxy.sql.algebra.nodes import Call, Literal, Null, Scalar, conjunction, conjuncts, is_null
from proxy.sql.conditions.factored import alternatives, disjunction
from proxy.sqltypes import SqlType

NEVER = Literal(False, SqlType.BOOL)
_ALWAYS = Literal(True, SqlType.BOOL)


def decided(condition: Scalar) -> Scalar:
    """A condition that is TRUE for the same rows; NEVER if it is for none.

    `x IS NOT DISTINCT FROM 1` becomes `x = 1`, and `x = NULL` NEVER.
    """
    match condition:
        case Call("and"):
            parts = tuple(map(decided, conjuncts(condition)))
            return NEVER if NEVER in parts else conjunction(tuple(p for p in parts if p != _ALWAYS))
        case Call("or"):
            parts = tuple(p for p in map(decided, alternatives(condition)) if p != NEVER)
            return _ALWAYS if _ALWAYS in parts else disjunction(parts) if parts else NEVER
        case Call("not", (Call("is distinct from", (one, other)),)):
            return _same(one, other)
        case Call(operator, args) if operator in HOLDS and any(isinstance(a, Null) for a in args):
            return NEVER
        case Call("is null", (Literal() | Null() as constant,)):
            return _ALWAYS if isinstance(constant, Null) else NEVER
        case Null():
            return NEVER
        case _:
            return condition


def _same(one: Scalar, other: Scalar) -> Scalar:
    match one, other:
        case Null(), _:
            return decided(is_null(other))
        case _, Null():
            return decided(is_null(one))
        case (Literal(), _) | (_, Literal()):
            return Call("=", (one, other), SqlType.BOOL)
        case _:
            return Call("not", (Call("is distinct from", (one, other), SqlType.BOOL),), SqlType.BOOL)
