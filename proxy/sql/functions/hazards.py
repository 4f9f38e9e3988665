"""When may the value of a function lie outside of what is computed with, so that an engine could raise?

Of a call, told from what is declared of its arguments and inferred of its result. Arguments never raise themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proxy.policy.model import Domain
from proxy.sql.functions.domains.intervals import INT64_SAFE, number_range, time_range
from proxy.sqltypes import SqlType


@dataclass(frozen=True, slots=True)
class Operands:
    """The types of a call's arguments, their values, and those of its result."""

    kinds: tuple[SqlType, ...]
    domains: tuple[Domain, ...]
    result: Domain


Hazard = Callable[[Operands], bool]


def never(_of: Operands) -> bool:
    return False


def always(_of: Operands) -> bool:
    return True


def overflows(of: Operands) -> bool:
    """Integer arithmetic may leave int64 unless the result's interval proves otherwise."""
    return not all(_fits(d) for d in (*of.domains, of.result))


def _fits(domain: Domain) -> bool:
    ends = number_range(domain)
    return ends is not None and max(abs(ends[0]), abs(ends[1])) < INT64_SAFE


def leaves_calendar(of: Operands) -> bool:
    """Times without declared bounds may be where an engine's calendar ends."""
    return time_range(of.domains[0]) is None


def arrives_outside(of: Operands) -> bool:
    """Arithmetic of times may leave an engine's calendar unless bounds prove that it stays in the common years."""
    return time_range(of.domains[0]) is None or (time_range(of.result) is None and number_range(of.result) is None)


def either_unbounded(of: Operands) -> bool:
    """Two times, one of which may be where an engine's calendar ends."""
    return any(time_range(d) is None for d in of.domains)
