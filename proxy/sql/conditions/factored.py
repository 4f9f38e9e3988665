"""Which conditions hold in every alternative of an OR?

(a AND b) OR (a AND c) is a AND (b OR c), for NULL too: so a join that is written in each alternative is one. An
alternative that is NULL lets no row pass, as where a list of constants holds a NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from proxy.sql.algebra.nodes import TRUE, Call, Null, Scalar, conjunction, conjuncts
from proxy.sqltypes import SqlType

_MOST_ALTERNATIVES = 100  # of more nothing is factored out, which means only that no join is found in them


def requirements(condition: Scalar) -> tuple[Scalar, ...]:
    """What AND combines, with what all alternatives of an OR have in common standing by itself."""
    return tuple(part for c in conjuncts(condition) for part in _factored(c))


def alternatives(condition: Scalar) -> tuple[Scalar, ...]:
    """The parts of nested ORs."""
    if isinstance(condition, Call) and condition.function == "or":
        return tuple(p for a in condition.args for p in alternatives(a))
    return (condition,)


def disjunction(parts: Iterable[Scalar]) -> Scalar:
    """The parts in nested ORs; at least one."""
    return reduce(lambda left, right: Call("or", (left, right), SqlType.BOOL), parts)


def _factored(condition: Scalar) -> tuple[Scalar, ...]:
    known = [a for a in alternatives(condition) if not isinstance(a, Null)]
    if len(known) == 1:
        return conjuncts(known[0])
    found = [conjuncts(a) for a in known]
    if not 1 < len(found) <= _MOST_ALTERNATIVES:
        return (condition,)
    shared = [c for c in dict.fromkeys(found[0]) if all(c in other for other in found)]
    if not shared:
        return (condition,)
    rest = [conjunction(tuple(c for c in part if c not in shared)) for part in found]
    left = () if TRUE in rest else (disjunction(rest),)
    return (*shared, *left)
