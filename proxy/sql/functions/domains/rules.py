"""Which values can a function give, if its arguments lie in known domains?

Rules for the rows of `sql.functions`. Claim: for arguments inside their domains, NULL aside, a rule's domain contains
every value of the function. Two things rest on it. A bound on a measure does not: it is applied again as a clamp in the
rendered SQL, so a rule that is too narrow there costs accuracy and never privacy. That integer arithmetic stays inside
64 bits does: `hazards` believe the domain, so a rule that is too narrow could let a row raise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from proxy.policy.model import Bounded, Domain, Listed
from proxy.sql.algebra.nodes import Span
from proxy.sql.functions.domains.intervals import (
    UNKNOWN,
    RealNumber,
    between,
    bounded,
    number_ends,
    number_range,
    union,
)

_WHOLE_DOUBLES = 2**53
_MOST_TENS = 10_000  # multiples of 10, 100, ... that are listed
_NO_SPAN = Span(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Argument:
    """What is known about one argument.

    is_constant: a constant of the query, which is never NULL. span: a constant interval, nothing for all else.
    """

    domain: Domain
    is_constant: bool = False
    span: Span = _NO_SPAN


Arguments = tuple[Argument, ...]
DomainRule = Callable[[Arguments], Domain]


def nothing_known(_: Arguments) -> Domain:
    """The default for a new function: all facts are lost."""
    return UNKNOWN


def booleans(_: Arguments) -> Domain:
    return Listed((False, True))


def listed(*values: bool | int | str) -> DomainRule:
    """These values, whatever the arguments are."""
    return lambda _: Listed(values)


def first(arguments: Arguments) -> Domain:
    """A value of the first argument, if any."""
    return arguments[0].domain


def any_of(arguments: Arguments) -> Domain:
    """A value of one of the arguments."""
    return union(tuple(a.domain for a in arguments))


def each(function: Callable[[str], str]) -> DomainRule:
    """A text function applied to every value of a finite set."""

    def rule(arguments: Arguments) -> Domain:
        texts = _texts(arguments[0].domain)
        return Listed(tuple(dict.fromkeys(map(function, texts)))) if texts else UNKNOWN

    return rule


def lengths(arguments: Arguments) -> Domain:
    """Characters of the texts of a finite set."""
    sizes = [len(t) for t in _texts(arguments[0].domain)]
    return Bounded(min(sizes), max(sizes)) if sizes else UNKNOWN


def _texts(domain: Domain) -> tuple[str, ...]:
    """The values of a finite set of texts; none for other domains."""
    values = domain.values if isinstance(domain, Listed) else ()
    texts = tuple(v for v in values if isinstance(v, str))
    return texts if len(texts) == len(values) else ()


# --- numbers ----------------------------------------------------------------------------------------


def whole(rule: DomainRule) -> DomainRule:
    """The same rule for integers: ends become ints."""

    def integral(arguments: Arguments) -> Domain:
        result = rule(arguments)
        if isinstance(result, Bounded) and isinstance(result.lo, float) and isinstance(result.hi, float):
            return Bounded(math.floor(result.lo), math.ceil(result.hi))
        return result

    return integral


def _corners(operation: Callable[[float, float], float]) -> DomainRule:
    def rule(arguments: Arguments) -> Domain:
        left, right = number_range(arguments[0].domain), number_range(arguments[1].domain)
        if left is None or right is None:
            return UNKNOWN
        ends = [operation(x, y) for x in left for y in right]
        return bounded(min(ends), max(ends))

    return rule


add = _corners(lambda x, y: x + y)
subtract = _corners(lambda x, y: x - y)
multiply = _corners(lambda x, y: x * y)


def divide(arguments: Arguments) -> Domain:
    """Quotients, when the divisor keeps away from zero."""
    right = number_range(arguments[1].domain)
    if right is None or right[0] <= 0 <= right[1]:
        return UNKNOWN
    return _corners(lambda x, y: x / y)(arguments)


def divide_whole(arguments: Arguments) -> Domain:
    """Integer quotients: a divisor of zero gives NULL, any other is at least 1 in size."""
    left = number_range(arguments[0].domain)
    if left is None:
        return UNKNOWN
    size = max(abs(left[0]), abs(left[1]))
    exact = number_range(divide(arguments))
    if exact is None:
        return bounded(-size, size)
    return cut((Argument(Bounded(*exact)),)) if size < _WHOLE_DOUBLES else whole(divide)(arguments)


def modulo(arguments: Arguments) -> Domain:
    left, right = number_range(arguments[0].domain), number_range(arguments[1].domain)
    if right is None:
        return UNKNOWN
    size = max(abs(right[0]), abs(right[1]))
    lowest = 0.0 if left is not None and left[0] >= 0 else -size
    highest = 0.0 if left is not None and left[1] <= 0 else size
    return bounded(lowest, highest)


def modulo_whole(arguments: Arguments) -> Domain:
    """Remainders of integers: smaller in size than the divisor."""
    ends, right = number_range(modulo(arguments)), number_range(arguments[1].domain)
    if ends is None or right is None:
        return UNKNOWN
    size = max(abs(right[0]), abs(right[1]), 1.0) - 1
    return bounded(max(ends[0], -size), min(ends[1], size))


def _monotone(function: Callable[[float], float]) -> DomainRule:
    def rule(arguments: Arguments) -> Domain:
        ends = number_range(arguments[0].domain)
        return UNKNOWN if ends is None else bounded(function(ends[0]), function(ends[1]))

    return rule


same = _monotone(lambda x: x)
floor = _monotone(lambda x: float(math.floor(x)))
ceil = _monotone(lambda x: float(math.ceil(x)))


def negate(arguments: Arguments) -> Domain:
    ends = number_range(arguments[0].domain)
    return UNKNOWN if ends is None else bounded(-ends[1], -ends[0])


def absolute(arguments: Arguments) -> Domain:
    ends = number_range(arguments[0].domain)
    if ends is None:
        return UNKNOWN
    size = max(abs(ends[0]), abs(ends[1]))
    return bounded(0.0 if ends[0] <= 0 <= ends[1] else min(abs(ends[0]), abs(ends[1])), size)


cut = _monotone(lambda x: float(math.trunc(x)))


def rounded(arguments: Arguments) -> Domain:
    """Rounding to a nearest whole number, to either where two are."""
    ends = number_range(arguments[0].domain)
    return UNKNOWN if ends is None else bounded(math.ceil(ends[0] - 0.5), math.floor(ends[1] + 0.5))


def rounded_to_digits(arguments: Arguments) -> Domain:
    """Rounding to a constant number of digits after the point."""
    ends = number_range(arguments[0].domain)
    return UNKNOWN if ends is None else bounded(math.floor(ends[0]), math.ceil(ends[1]))


def rounded_to_tens(arguments: Arguments) -> Domain:
    """Rounding to tens, hundreds and so on: their multiples, when they are few."""
    ends, digits = number_range(arguments[0].domain), number_range(arguments[1].domain)
    if ends is None or digits is None:
        return UNKNOWN
    step = 10 ** int(-digits[0])
    first, last = math.floor(ends[0] / step) * step, math.ceil(ends[1] / step) * step
    if (last - first) // step > _MOST_TENS:
        return Bounded(first, last)
    return Listed(tuple(range(first, last + 1, step)))


def square_root(arguments: Arguments) -> Domain:
    ends = number_range(arguments[0].domain)
    if ends is None or ends[1] < 0:
        return UNKNOWN
    return bounded(math.sqrt(max(ends[0], 0.0)), math.sqrt(ends[1]))


def cube_root(arguments: Arguments) -> Domain:
    """With room for rounding."""
    ends = number_range(arguments[0].domain)
    found = [math.copysign(math.pow(abs(e), 1 / 3), e) * room for e in ends or () for room in (1 - 1e-12, 1 + 1e-12)]
    return bounded(min(found), max(found)) if found else UNKNOWN


def exponential(arguments: Arguments) -> Domain:
    """Above 709 there is no answer."""
    ends = number_range(arguments[0].domain)
    return UNKNOWN if ends is None else bounded(math.exp(min(ends[0], 709.0)), math.exp(min(ends[1], 709.0)))


def logarithm(function: Callable[[float], float]) -> DomainRule:
    """Of zero and below there is none."""

    def rule(arguments: Arguments) -> Domain:
        ends = number_range(arguments[0].domain)
        if ends is None or ends[1] <= 0:
            return UNKNOWN
        return between(function(ends[0]) if ends[0] > 0 else -math.inf, function(ends[1]))

    return rule


def logarithm_of_base(arguments: Arguments) -> Domain:
    """To a constant base; bases below 1 turn the order round."""
    base, ends = number_range(arguments[0].domain), number_range(logarithm(math.log)(arguments[1:]))
    if base is None or ends is None or base[0] <= 0 or base[0] == 1:
        return UNKNOWN
    found = [end / math.log(base[0]) for end in ends]
    return bounded(min(found), max(found))


def within(low: float, high: float) -> DomainRule:
    """This interval, whatever the argument is."""
    return lambda _: Bounded(float(low), float(high))


def scaled(factor: float) -> DomainRule:
    """So many times the argument, with room for rounding."""

    def rule(arguments: Arguments) -> Domain:
        ends = number_range(arguments[0].domain)
        found = [e * factor * room for e in ends or () for room in (1 - 1e-12, 1 + 1e-12)]
        return bounded(min(found), max(found)) if found else UNKNOWN

    return rule


def sign(_arguments: Arguments) -> Domain:
    return bounded(-1.0, 1.0)


def power(arguments: Arguments) -> Domain:
    """A power with a constant exponent."""
    ends, exponent = number_range(arguments[0].domain), number_range(arguments[1].domain)
    if ends is None or exponent is None:
        return UNKNOWN
    by = exponent[0]
    if (ends[0] < 0 and not (by >= 0 and by.is_integer())) or (ends[0] <= 0 and by < 0):
        return UNKNOWN
    try:
        found = [float(end**by) for end in ends]
    except OverflowError:
        return UNKNOWN
    return bounded(min(found), max(found)) if ends[0] >= 0 else bounded(min(0.0, *found), max(0.0, *found))


def buckets(arguments: Arguments) -> Domain:
    """Between the buckets of the ends, 0 to one more than the constant count; with room for rounding."""
    ends, (low, high, count) = number_range(arguments[0].domain), (number_range(a.domain) for a in arguments[1:])
    if low is None or high is None or count is None:
        return UNKNOWN
    if ends is None:
        return Bounded(0, int(count[0]) + 1)
    shares = [(e - low[0]) / (high[0] - low[0]) * count[0] for e in ends]
    first, last = (math.floor(s * r) + 1 for s, r in zip(shares, (1 - 1e-12, 1 + 1e-12), strict=True))
    return Bounded(min(max(first, 0), int(count[0]) + 1), max(min(last, int(count[0]) + 1), 0))


def greatest(arguments: Arguments) -> Domain:
    """At least the largest constant: any other argument may be NULL and drop out."""
    ends = _all_ends(arguments)
    if not ends:
        return UNKNOWN
    constants = [e[0] for e, a in zip(ends, arguments, strict=True) if a.is_constant]
    return between(max([min(e[0] for e in ends), *constants]), max(e[1] for e in ends))


def least(arguments: Arguments) -> Domain:
    """At most the smallest constant."""
    ends = _all_ends(arguments)
    if not ends:
        return UNKNOWN
    constants = [e[1] for e, a in zip(ends, arguments, strict=True) if a.is_constant]
    return between(min(e[0] for e in ends), min([max(e[1] for e in ends), *constants]))


def _all_ends(arguments: Arguments) -> list[tuple[RealNumber, RealNumber]]:
    """The ends of each argument, infinite where nothing is known; none if the arguments are no numbers."""
    ends = [number_ends(a.domain) for a in arguments]
    return [(-math.inf, math.inf) if e is None else e for e in ends] if any(ends) else []
