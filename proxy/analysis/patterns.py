"""Which conditions can hold together for one row?

m disjoint filters cost a row only once. Conditions are told apart by equalities, IN lists, ranges and
NULL tests of the same scalar; whatever cannot be told apart counts as able to hold together, so a
bound computed from these patterns is never too small. That an engine agrees is sure where constants are compared
with a column; where it is not, the bound rests on exclusions, which statements keep by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import combinations

from proxy.sql.algebra.nodes import Call, ColumnRef, Literal, Member, Scalar, conjuncts
from proxy.sql.functions.domains.intervals import as_datetime
from proxy.sqltypes import Value

_EXACT_SEARCH = 16  # more coordinates than this are bounded by a partition instead
_MOST_COMPARISONS = 150_000  # of parts of conditions; a second's work
_MOST_EXCLUSIONS = 1_000  # which a statement has to spell
_EXACT_DOUBLES = 2**53
_EXACT_CHOICES = 2**49  # whole numbers below it differ by more than `_NUMBERS` of their size
_NUMBERS = 2.0**-50  # one number is no double of two that are further apart than this part of their size
_ZONES = timedelta(days=2)  # two instants further apart than this have different local times in every zone


class _Told:
    """Which of these conditions are told apart. Some that could be are not, when telling all would take too long.

    exclusions: the pairs of which statements see to it that no row passes both.
    """

    def __init__(self, conditions: Sequence[Scalar]) -> None:
        self._parts = [[(part, _allowed(part)) for part in conjuncts(c)] for c in conditions]
        self._left = _MOST_COMPARISONS
        self.exclusions: list[tuple[int, int]] = []
        self._every = {part for parts in self._parts for part, _ in parts}
        self._tested = {found[0] for parts in self._parts for _, found in parts if found is not None}
        self._denied = {p.args[0] for p in self._every if isinstance(p, Call) and p.function == "not"}

    def apart(self, first: int, second: int) -> bool:
        """Whether no row can pass both. first < second: it is the second whose rows are left out, if that is needed."""
        ours, theirs = self._parts[first], self._parts[second]
        self._left -= len(ours) * len(theirs)
        if self._left < 0 or not any(_contradict(*a, *b) for a in ours for b in theirs):
            return False
        if any(_is_sure(*a, *b) for a in ours for b in theirs):
            return True
        if len(self.exclusions) < _MOST_EXCLUSIONS:
            self.exclusions.append((first, second))
            return True
        return False

    def may_exclude(self, index: int) -> bool:
        """Whether it is of use to compare a condition with others: some could contradict it, and time is left."""
        return self._left >= 0 and any(
            found is not None or part in self._denied or self._denies(part) for part, found in self._parts[index]
        )

    def _denies(self, part: Scalar) -> bool:
        """Whether it says that another part does not hold, or that what one compares is NULL."""
        match part:
            case Call("not", (denied,)):
                return denied in self._every
            case Call("is null", (absent,)):
                return absent in self._tested
            case _:
                return False

    def choice(self, index: int) -> tuple[ColumnRef, frozenset[Value]] | None:
        """The column and the values that all of a condition asks for, if other values are surely not among them."""
        found = self._parts[index][0][1] if len(self._parts[index]) == 1 else None
        if found is None or not isinstance(found[0], ColumnRef) or isinstance(found[1], str):
            return None
        return (found[0], frozenset(found[1])) if all(map(_is_plain, found[1])) else None


def _is_plain(value: Value) -> bool:
    """Whether it is told apart from all unequal values of its kind."""
    return isinstance(value, str) or (type(value) is int and abs(value) < _EXACT_CHOICES)


_Allowed = tuple[Scalar, tuple[Value, ...] | str] | None  # what is tested, and its values or how; None: not known


def _contradict(left: Scalar, ours: _Allowed, right: Scalar, theirs: _Allowed) -> bool:
    if _is_denial(left, right) or _is_denial(right, left):
        return True
    if _is_null_test(left, theirs) or _is_null_test(right, ours):
        return True
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return False
    if isinstance(ours[1], tuple) and isinstance(theirs[1], tuple):
        return all(_is_below(a, b) or _is_below(b, a) for a in ours[1] for b in theirs[1])
    return _range_contradiction(left, right)


def _is_sure(left: Scalar, ours: _Allowed, right: Scalar, theirs: _Allowed) -> bool:
    """Whether two conditions contradict each other by their very spelling, whatever else an engine does.

    One column is compared with constants. Or a value that is spelled the same in both equals other constants: what is
    computed may have an order of its own. Or a measure is missing in one and there in the other.
    """
    if _is_denial(left, right) or _is_denial(right, left):  # presence is TRUE or FALSE in every row, never NULL
        return "has no measure" in {c.function for c in (left, right) if isinstance(c, Call)}
    if ours is None or theirs is None or not _contradict(left, ours, right, theirs):
        return False
    is_column = isinstance(ours[0], ColumnRef)
    return is_column or (
        isinstance(ours[1], tuple) and isinstance(theirs[1], tuple) and repr(ours[0]) == repr(theirs[0])
    )


def _is_denial(denied: Scalar, of: Scalar) -> bool:
    return isinstance(denied, Call) and denied.function == "not" and denied.args == (of,)


def _is_null_test(null: Scalar, present: _Allowed) -> bool:
    """x IS NULL against a comparison of x, which needs x to be present."""
    if not (isinstance(null, Call) and null.function == "is null"):
        return False
    return present is not None and present[0] == null.args[0]


def _allowed(condition: Scalar) -> _Allowed:
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
            return _is_below(top, bottom) or (strict and _is_one_point(top, bottom))
        case Call(">" | ">="), Call("<" | "<="):
            return _range_contradiction(right, left)
        case _:
            return False


def _is_below(low: Value, high: Value) -> bool:
    """Whether low < high however the engine compares them with a column: exactly, as doubles or as local times."""
    match low, high:
        case bool(), bool():
            return low < high
        case (int() | float() | Decimal(), int() | float() | Decimal()):
            return float(high) - float(low) > _NUMBERS * max(abs(float(low)), abs(float(high)))
        case str(), str():
            return low < high
        case date(), date():
            slack = _ZONES if _has_zone(low) or _has_zone(high) else timedelta(0)
            return as_datetime(high) - as_datetime(low) > slack
        case _:
            return False


def _is_one_point(left: Value, right: Value) -> bool:
    """Whether two constants are the same to every comparison the engine may choose."""
    match left, right:
        case (int() | float() | Decimal(), int() | float() | Decimal()):
            is_alike = isinstance(left, float) == isinstance(right, float)  # exact numbers and doubles compare apart
            return is_alike and left == right and abs(float(left)) < _EXACT_DOUBLES
        case str(), str():
            return left == right
        case date(), date():
            return not _has_zone(left) and not _has_zone(right) and as_datetime(left) == as_datetime(right)
        case _:
            return False


def _has_zone(value: date) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


@dataclass(frozen=True, slots=True)
class OverlapWeight:
    """weight: at least the largest sum of weights over conditions that can hold for one row at once.

    exclusions: pairs of conditions, by number, of which that takes for granted that no row passes both.
    """

    weight: float
    exclusions: tuple[tuple[int, int], ...]


def heaviest_together_up(conditions: Sequence[Scalar], weights: Sequence[float]) -> OverlapWeight:
    """What one row can weigh at most.

    Claim (docs/claims/bounding.md): no row weighs more, if the statement leaves the rows that pass the first of an
    exclusion out of the second. If the two exclude each other, that changes nothing.
    """
    alike = _alike(conditions) if len(conditions) > _EXACT_SEARCH else {}
    if len(alike) < len(conditions) and alike:
        return _of_alike(alike, weights)
    count, told = len(conditions), _Told(conditions)
    if count > _EXACT_SEARCH:
        heaviest = sum(max(weights[i] for i in part) for part in _exclusive_parts(told, count))
        return OverlapWeight(heaviest, tuple(told.exclusions))
    order = sorted(range(count), key=lambda i: -weights[i])
    apart = {frozenset(pair) for pair in combinations(range(count), 2) if told.apart(*pair)}
    conflicts = [{j for j in range(count) if frozenset((i, j)) in apart} for i in order]

    def best(position: int, excluded: frozenset[int]) -> float:
        while position < count and order[position] in excluded:
            position += 1
        if position == count:
            return 0.0
        taken = weights[order[position]] + best(position + 1, excluded | conflicts[position])
        return max(taken, best(position + 1, excluded)) if conflicts[position] - excluded else taken

    return OverlapWeight(best(0, frozenset()), tuple(told.exclusions))


def _alike(conditions: Sequence[Scalar]) -> dict[Scalar, list[int]]:
    """The places of each condition, in the order of its first."""
    found: dict[Scalar, list[int]] = {}
    for place, condition in enumerate(conditions):
        found.setdefault(condition, []).append(place)
    return found


def _of_alike(alike: dict[Scalar, list[int]], weights: Sequence[float]) -> OverlapWeight:
    """Conditions that are the same hold together, so that they weigh what all of them do.

    Rows of the first are left out of each that the second stands for, if that is needed.
    """
    places = [*alike.values()]
    found = heaviest_together_up([*alike], [sum(weights[p] for p in same) for same in places])
    pairs = tuple((places[first][0], left_out) for first, second in found.exclusions for left_out in places[second])
    return OverlapWeight(found.weight, pairs)


def _exclusive_parts(told: _Told, count: int) -> list[list[int]]:
    """Greedy parts of mutually exclusive conditions: a row passes at most one of each part.

    Choices of values of one column need not be compared one by one.
    """
    parts: list[list[int]] = []
    taken: list[dict[ColumnRef, set[Value]]] = []  # by part: of a column, what is chosen, if all of it are choices
    for index in range(count):
        choice = told.choice(index)
        for part, chosen in zip(parts, taken, strict=True) if told.may_exclude(index) else ():
            if choice is not None and choice[0] in chosen:
                is_apart = chosen[choice[0]].isdisjoint(choice[1])
            else:
                is_apart = all(told.apart(other, index) for other in part)
            if is_apart:
                part.append(index)
                if choice is None or choice[0] not in chosen:
                    chosen.clear()
                else:
                    chosen[choice[0]] |= choice[1]
                break
        else:
            parts.append([index])
            taken.append({} if choice is None else {choice[0]: set(choice[1])})
    return parts
