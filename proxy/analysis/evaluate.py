"""What can an expression give where parts of it have known values?

Claim: the expression's value, NULL included, is one of the choices. Where a condition of CASE can be decided as the
engine decides it, only its branch is a choice; where it cannot, all are.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import product
from types import MappingProxyType
from typing import assert_never

from proxy.policy.model import Bounded, Listed
from proxy.sql.algebra.comparisons import HOLDS
from proxy.sql.algebra.nodes import Call, Case, ColumnRef, Literal, Member, Null, Scalar, Span, children
from proxy.sql.functions import constant_evaluation as images
from proxy.sql.functions.constant_evaluation import Constant
from proxy.sql.functions.domains.intervals import as_datetime
from proxy.sql.functions.domains.rules import Argument
from proxy.sql.functions.domains.times import TRUNCATION_UNITS
from proxy.sql.functions.function import Function, Nulls
from proxy.sql.functions.table import FUNCTIONS

_MOST_CHOICES = 10  # of one part of an expression for one value of its column
_WHOLE_DOUBLES = 2**53
_DIGITS = 15  # two decimals of so many digits are two doubles


class MissingValue(enum.Enum):
    """NULL."""

    MISSING = "NULL"


MISSING = MissingValue.MISSING
Choice = Constant | MissingValue
Choices = tuple[Choice, ...]  # none: unknown
KnownValues = Mapping[Scalar, Choice]
NOTHING: KnownValues = MappingProxyType({})

_ANY_TRUTH: Choices = (True, False, MISSING)
_OF_TIMES = frozenset((
    "cast time to date", "extract epoch",
    *(f"date_trunc {unit}" for unit in TRUNCATION_UNITS if unit not in ("milliseconds", "microseconds")),
))  # fmt: skip
_STRICT = (Nulls.WITH_ANY, Nulls.WITH_ANY_OR_NO_ANSWER)


def reads_through(scalar: Scalar, part: Scalar) -> bool:
    """Whether no column stands outside of this part."""
    return scalar == part or (
        not isinstance(scalar, ColumnRef) and all(reads_through(c, part) for c in children(scalar))
    )


def choices(scalar: Scalar, known: KnownValues, *, decides: bool = True) -> Choices:
    """What a scalar can be where parts of it have these values; nothing if that is unknown.

    decides: whether the values are the engine's, by which conditions are decided.
    """
    if scalar in known:
        return (known[scalar],)

    def of(inner: Scalar) -> Choices:
        return choices(inner, known, decides=decides)

    match scalar:
        case Literal(constant):
            return (constant,)
        case Span():
            return (scalar,)
        case Null():
            return (MISSING,)
        case ColumnRef():
            return ()
        case Case():
            return _chosen(scalar, of) if decides else _any_branch(scalar, of)
        case Member(argument, items):
            return _few(t for v in of(argument) for t in _any_equal(v, items)) if decides else ()
        case Call():
            return (_decided(scalar, of) if decides else ()) or _computed(scalar, of, decides=decides)
        case _ as never:
            assert_never(never)


def _few(values: Iterable[Choice]) -> Choices:
    """The choices, unless they are so many that choices of choices would have no end."""
    found = tuple({(type(v), v): v for v in values}.values())
    return found if len(found) <= _MOST_CHOICES else ()


def _any_branch(scalar: Case, of: Callable[[Scalar], Choices]) -> Choices:
    parts = [of(v) for v in (*(v for _, v in scalar.branches), scalar.otherwise)]
    return _few(v for found in parts for v in found) if all(parts) else ()


def _chosen(scalar: Case, of: Callable[[Scalar], Choices]) -> Choices:
    found = [of(value) for value in reached(scalar, of)]
    return _few(v for part in found for v in part) if all(found) else ()


def reached(scalar: Case, of: Callable[[Scalar], Choices]) -> Iterator[Scalar]:
    """The results whose condition may be the first that is true. of: what a condition can be."""
    for condition, value in scalar.branches:
        truth = of(condition) or _ANY_TRUTH
        if True in truth:
            yield value
        if truth == (True,):
            return
    yield scalar.otherwise


def _computed(call: Call, of: Callable[[Scalar], Choices], *, decides: bool) -> Choices:
    function, parts = FUNCTIONS[call.function], [of(a) for a in call.args]
    if function.image is images.an_argument:
        return _argument(call, parts, decides=decides)
    if not all(parts):
        return ()
    made: list[Choices] = []
    for values in product(*parts):
        present = tuple(v for v in values if not isinstance(v, MissingValue))
        if len(present) == len(values):
            made.append(function.image(present) or _only(function, present))
        else:
            made.append((MISSING,) if function.nulls in _STRICT else ())
    return _few(v for found in made for v in found) if all(made) else ()


def _argument(call: Call, parts: Sequence[Choices], *, decides: bool) -> Choices:
    """One of the arguments."""
    match call.function, parts:
        case "coalesce", _:
            return _first_present(parts)
        case "nullif", (left, right):
            others = right if decides and right else None
            return _few(v for value in left for v in _unless_equal(value, others))
        case "greatest" | "least", _:
            present = tuple(v for found in parts for v in found if v is not MISSING)
            absent = (MISSING,) if all(MISSING in found for found in parts) else ()
            return _few((*present, *absent)) if all(parts) else ()
        case _, (only,):  # a cast that changes no value
            return only
        case _:
            raise AssertionError("no other function gives one of its arguments")


def _first_present(parts: Sequence[Choices]) -> Choices:
    found: list[Choice] = []
    for part in parts:
        if not part:
            return ()
        found += [v for v in part if v is not MISSING]
        if MISSING not in part:
            return _few(found)
    return _few((*found, MISSING))


def _unless_equal(value: Choice, others: Choices | None) -> Choices:
    """nullif of a value and one of others; None: of anything."""
    if others is None:
        return (value, MISSING)
    return tuple(MISSING if test is True else value for other in others for test in _compared("=", value, other))


def _only(function: Function, values: tuple[Constant, ...]) -> Choices:
    """The one value that a function has of a constant time, which lies in the years where it has one."""
    moments = tuple(v for v in values if isinstance(v, date))
    if function.name not in _OF_TIMES or len(moments) < len(values):
        return ()
    match function.domain(tuple(Argument(Listed((v,)), is_constant=True) for v in moments)):
        case Listed((date() as value,)):
            return (value,)
        case Bounded(int() | float() as lo, int() | float() as hi) if lo == hi == int(lo) and abs(lo) < _WHOLE_DOUBLES:
            return (int(lo),)
        case _:
            return ()


# --- conditions --------------------------------------------------------------------------------------------------


def _decided(call: Call, of: Callable[[Scalar], Choices]) -> Choices:
    """TRUE, FALSE and NULL, as many of them as a condition can be; nothing for other calls."""
    match call.function, call.args:
        case "not", (inner,):
            return tuple(not v if isinstance(v, bool) else v for v in of(inner) or _ANY_TRUTH)
        case "and" | "or", (left, right):
            pairs = product(of(left) or _ANY_TRUTH, of(right) or _ANY_TRUTH)
            return _few(_joined(a, b, ends=call.function == "or") for a, b in pairs)
        case "is null", (inner,):
            return _few(v is MISSING for v in of(inner))
        case "is distinct from", (left, right):
            return _few(v for a, b in product(of(left), of(right)) for v in _distinct(a, b))
        case name, (left, right) if name in HOLDS:
            return _few(v for a, b in product(of(left), of(right)) for v in _compared(name, a, b))
        case _:
            return ()


def _joined(left: Choice, right: Choice, *, ends: bool) -> Choice:
    """AND, which FALSE ends, or OR, which TRUE ends."""
    if ends in (left, right):
        return ends
    return MISSING if MISSING in (left, right) else not ends


def _compared(name: str, left: Choice, right: Choice) -> Choices:
    if isinstance(left, MissingValue) or isinstance(right, MissingValue):
        return (MISSING,)
    ours, theirs = _comparable(left, right)
    return _ANY_TRUTH if ours is None else (HOLDS[name](ours, theirs),)


def _distinct(left: Choice, right: Choice) -> Choices:
    if isinstance(left, MissingValue) or isinstance(right, MissingValue):
        return (left is not right,)
    return tuple(v for v in _compared("<>", left, right) if v is not MISSING)


def _any_equal(value: Choice, items: tuple[Literal, ...]) -> Choices:
    """value IN (items)."""
    tests = [_compared("=", value, item.value) for item in items]
    if (True,) in tests:
        return (True,)
    return tuple(dict.fromkeys(v for test in tests for v in test))


def _comparable(left: Constant, right: Constant) -> tuple[object, object] | tuple[None, None]:
    """Both as Python compares them like the engine, or nothing."""
    match left, right:
        case (bool(), bool()):
            return left, right
        case (bool(), _) | (_, bool()):
            return None, None
        case (str(), str()) if not (left.endswith(" ") or right.endswith(" ")):  # which char(n) would not count
            return left, right
        case (date(), date()):
            moments = as_datetime(left), as_datetime(right)
            return moments if all(m.tzinfo is None for m in moments) else (None, None)
        case (int() | float() | Decimal(), int() | float() | Decimal()):
            numbers = _number(left), _number(right)
            return (None, None) if None in numbers else numbers
        case _:
            return None, None


def _number(value: int | float | Decimal) -> Decimal | None:
    """A number that is equal to another one here exactly where the two are as doubles."""
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite() or abs(number) >= _WHOLE_DOUBLES:
        return None
    is_whole = number == number.to_integral_value()
    return number if is_whole or len(number.as_tuple().digits) <= _DIGITS else None
