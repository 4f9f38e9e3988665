"""How many rows and groups will the engine meet, as far as the policy tells?

Never asks the data. Both answers save work only; see docs/decisions/speed-unit-groups.md.
"""

from __future__ import annotations

import math

from proxy.analysis.domains import Domains
from proxy.analysis.keys import Key
from proxy.policy.model import Bounded, Domain, Listed, Unknown
from proxy.sql.algebra.nodes import Block, ColumnRef, Scalar, columns_of
from proxy.sql.functions.domains.intervals import number_range, time_range

_FEW = 0.5  # of a bounded column: amounts and the like are skewed, so half the range is far less than half the rows
_FEW_LISTED = 0.25


def expects_few_rows(block: Block, domains: Domains) -> bool:
    """Whether the conditions keep at most half of some bounded column's range, or a quarter of some listed values.

    A guess, which decides how the engine groups by unit and no number: a wrong one costs time.
    """
    columns = {c for condition in block.where for c in columns_of(condition)}
    return any(_is_narrow(domains.column(c).domain, domains.of(c)) for c in columns)


def _is_narrow(whole: Domain, left: Domain) -> bool:
    match whole, left:
        case Listed(values), Listed(kept):
            return len(kept) <= _FEW_LISTED * len(values)
        case Bounded(), Listed(kept):
            return True
        case Bounded(), Bounded():
            return _width(left) <= _FEW * _width(whole)
        case Unknown(), Listed():
            return True
        case _:
            return False


def _width(domain: Bounded) -> float:
    ends = number_range(domain)
    if ends is not None:
        return ends[1] - ends[0]
    times = time_range(domain)
    return (times[1] - times[0]).total_seconds() if times is not None else 0.0


def most_values(keys: tuple[Key, ...], domains: Domains) -> int:
    """A number of groups that no unit exceeds, whatever the data; 0 if there is none.

    Counts the declared values of plain columns, and NULL where they allow it: the statement drops rows with other
    values. What is only inferred, as the domain of an expression, does not count.
    """
    return math.prod(_declared_values(k.scalar, domains) for k in keys)


def _declared_values(scalar: Scalar, domains: Domains) -> int:
    if not isinstance(scalar, ColumnRef):
        return 0
    column = domains.column(scalar)
    match column.domain:
        case Listed(values):
            return len(values) + column.nullable
        case Bounded(int() as lo, int() as hi) if scalar.type.is_integer:
            return max(0, hi - lo + 1) + column.nullable
        case _:
            return 0
