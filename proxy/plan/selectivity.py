"""Does a block's WHERE probably leave few of the rows?

A guess from the policy's domains, never from data. It decides how the engine groups by unit (see
docs/decisions/speed-unit-groups.md) and no number: a wrong guess costs time only.
"""

from __future__ import annotations

from proxy.analysis.domains import Domains
from proxy.policy.model import Bounded, Domain, Listed, Unknown
from proxy.sql.algebra import Block, columns_of
from proxy.sql.intervals import number_range, time_range

_FEW = 0.5  # of a bounded column: amounts and the like are skewed, so half the range is far less than half the rows
_FEW_LISTED = 0.25


def expects_few_rows(block: Block, domains: Domains) -> bool:
    """Whether the conditions keep at most half of some bounded column's range, or a quarter of some listed values."""
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
