"""For which values of its arguments has a function an answer?

Rules for the rows of `sql.functions` that may have none. Claim: for arguments in their domains, none of them NULL, the
function is not NULL. Nothing of privacy rests on it: a row whose key is NULL against it is in a group that is not
shown, as a row whose key is outside of its list.
"""

from __future__ import annotations

from collections.abc import Callable

from proxy.policy.model import Domain, Listed
from proxy.sql.functions.domains.intervals import INT64_SAFE, number_range, time_range
from proxy.sql.functions.domains.rules import Arguments
from proxy.sqltypes import SqlType

AnswerRule = Callable[[Arguments, Domain], bool]

_MOST_OFTEN = 1e15  # a quotient whose remainder both engines compute
_LARGEST_POWER = 1e300
_MOST_DAYS = 1_000_000  # of spans that every engine adds to a time of the common years
_DAY_MICROSECONDS = 86_400_000_000
_ROOM = {SqlType.INT2: 2.0**15 - 2, SqlType.INT4: 2.0**31 - 2, SqlType.INT8: INT64_SAFE}


def nowhere(_arguments: Arguments, _result: Domain) -> bool:
    """The default: nothing is known."""
    return False


def everywhere(_arguments: Arguments, _result: Domain) -> bool:
    return True


def divisible(arguments: Arguments, _result: Domain) -> bool:
    """No divisor is zero."""
    return not _holds(0, arguments[1].domain)


def divisible_whole(arguments: Arguments, _result: Domain) -> bool:
    """No divisor is zero, and none -1 where the dividend may be the smallest whole number."""
    divisor, is_small = arguments[1].domain, number_range(arguments[0].domain) is not None
    return not _holds(0, divisor) and (is_small or not _holds(-1, divisor))


def with_remainder(arguments: Arguments, _result: Domain) -> bool:
    """The dividend is not so much larger than the divisor that digits of a quotient are lost."""
    left, right = number_range(arguments[0].domain), number_range(arguments[1].domain)
    if left is None or right is None or right[0] <= 0 <= right[1]:
        return False
    return max(map(abs, left)) < _MOST_OFTEN * min(map(abs, right))


def _holds(number: int, domain: Domain) -> bool:
    """Whether a number may be among those of a domain."""
    if isinstance(domain, Listed) and domain.values:
        return number in domain.values
    ends = number_range(domain)
    return ends is None or ends[0] <= number <= ends[1]


def apart(arguments: Arguments, _result: Domain) -> bool:
    """Two numbers of which the one is always below the other."""
    left, right = (number_range(a.domain) for a in arguments)
    return left is not None and right is not None and (left[1] < right[0] or right[1] < left[0])


def within(low: float, high: float) -> AnswerRule:
    """A number between these."""

    def rule(arguments: Arguments, _result: Domain) -> bool:
        ends = number_range(arguments[-1].domain)
        return ends is not None and low <= ends[0] and ends[1] <= high

    return rule


def above_zero(arguments: Arguments, _result: Domain) -> bool:
    """The last argument, of which there is a logarithm; a base is a constant that has one."""
    return all((ends := number_range(a.domain)) is not None and ends[0] > 0 for a in arguments)


def is_number(arguments: Arguments, _result: Domain) -> bool:
    """The first argument is no infinity and no NaN."""
    return number_range(arguments[0].domain) is not None


def has_power(_arguments: Arguments, result: Domain) -> bool:
    ends = number_range(result)
    return ends is not None and max(map(abs, ends)) < _LARGEST_POWER


def fits(kind: SqlType) -> AnswerRule:
    """A number that is a whole number of the type, once it is rounded."""
    return within(-_ROOM[kind], _ROOM[kind])


def times(arguments: Arguments, _result: Domain) -> bool:
    """All arguments are times of the common years."""
    return all(time_range(a.domain) is not None for a in arguments)


def is_time(_arguments: Arguments, result: Domain) -> bool:
    """The result is a time of the common years."""
    return time_range(result) is not None


def often(arguments: Arguments, result: Domain) -> bool:
    """A time and so many spans lead to a time of the common years, and not by way of others."""
    numbers, span = number_range(arguments[2].domain), arguments[1].span
    if numbers is None or time_range(result) is None:
        return False
    days = abs(span.months) * 31 + abs(span.days) + abs(span.microseconds) / _DAY_MICROSECONDS
    return max(map(abs, numbers)) * days < _MOST_DAYS


def every_month_has(arguments: Arguments, _result: Domain) -> bool:
    """Year, month and day of a date that exists in any month."""
    limits = ((1, 9999), (1, 12), (1, 28))
    ends = [number_range(a.domain) for a in arguments]
    return all(e is not None and low <= e[0] and e[1] <= high for e, (low, high) in zip(ends, limits, strict=True))
