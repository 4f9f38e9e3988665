"""Which conditions can hold together for one row?

m disjoint filters cost a row only once. Conditions are told apart by equalities, IN lists, ranges and
NULL tests of the same scalar; whatever cannot be told apart counts as able to hold together, so a
bound computed from these patterns is never too small.
"""

from __future__ import annotations

from collections.abc import Sequence

from proxy.analysis.domains import less_or_equal, same_value
from proxy.sql.algebra import Call, Literal, Member, Scalar, conjuncts
from proxy.sqltypes import Value

_EXACT_SEARCH = 16  # more coordinates than this are bounded by a partition instead


def are_disjoint(left: Scalar, right: Scalar) -> bool:
    """Whether no row can pass both conditions."""
    return any(_contradict(a, b) for a in conjuncts(left) for b in conjuncts(right))


def _contradict(left: Scalar, right: Scalar) -> bool:
    if Call("not", (left,), left.type) == right or Call("not", (right,), right.type) == left:
        return True
    if _is_null_test(left, right) or _is_null_test(right, left):
        return True
    ours, theirs = _allowed(left), _allowed(right)
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return False
    if isinstance(ours[1], tuple) and isinstance(theirs[1], tuple):
        return not any(same_value(a, b) for a in ours[1] for b in theirs[1])
    return _range_contradiction(left, right)


def _is_null_test(null: Scalar, present: Scalar) -> bool:
    """x IS NULL against a comparison of x, which needs x to be present."""
    if not (isinstance(null, Call) and null.function == "is null"):
        return False
    allowed = _allowed(present)
    return allowed is not None and allowed[0] == null.args[0]


def _allowed(condition: Scalar) -> tuple[Scalar, tuple[Value, ...] | str] | None:
    match condition:
        case Member(argument, items):
            return argument, tuple(i.value for i in items)
        case Call("=", (argument, Literal(value))) | Call("=", (Literal(value), argument)):
            return argument, (value,)
        case Call("<" | "<=" | ">" | ">=" as op, (argument, Literal())):
            return argument, op
        case _:
            return None


def _range_contradiction(left: Scalar, right: Scalar) -> bool:
    match left, right:
        case Call("<" | "<=" as low_op, (_, Literal(top))), Call(">" | ">=" as high_op, (_, Literal(bottom))):
            strict = low_op == "<" or high_op == ">"
            return less_or_equal(top, bottom) and (strict or not same_value(top, bottom))
        case Call(">" | ">="), Call("<" | "<="):
            return _range_contradiction(right, left)
        case _:
            return False


def heaviest_together_up(conditions: Sequence[Scalar], weights: Sequence[float]) -> float:
    """At least the largest sum of weights over conditions that can hold for one row at once."""
    if len(conditions) > _EXACT_SEARCH:
        return _partition_bound_up(conditions, weights)
    order = sorted(range(len(weights)), key=lambda i: -weights[i])

    def best(position: int, chosen: tuple[int, ...]) -> float:
        if position == len(order):
            return sum(weights[i] for i in chosen)
        index = order[position]
        without = best(position + 1, chosen)
        if any(are_disjoint(conditions[index], conditions[c]) for c in chosen):
            return without
        return max(best(position + 1, (*chosen, index)), without)

    conflicts = any(
        are_disjoint(conditions[i], conditions[j]) for i in range(len(order)) for j in range(i + 1, len(order))
    )
    return best(0, ()) if conflicts else sum(weights)


def _partition_bound_up(conditions: Sequence[Scalar], weights: Sequence[float]) -> float:
    """Greedy parts of mutually exclusive conditions: a row passes at most one of each part."""
    parts: list[list[int]] = []
    for index in range(len(weights)):
        for part in parts:
            if all(are_disjoint(conditions[index], conditions[other]) for other in part):
                part.append(index)
                break
        else:
            parts.append([index])
    return sum(max(weights[i] for i in part) for part in parts)
