"""Between which bounds lie the bits that two integers share, or have together? Rules as in `domain_rules`."""

from __future__ import annotations

from proxy.policy.model import Bounded, Domain
from proxy.sql.functions.domains.intervals import UNKNOWN, number_range
from proxy.sql.functions.domains.rules import Arguments


def common(arguments: Arguments) -> Domain:
    """x & y: no more than either that is not negative."""
    ends = [number_range(a.domain) for a in arguments]
    most = [int(e[1]) for e in ends if e is not None and e[0] >= 0]
    return Bounded(0, min(most)) if most else UNKNOWN


def either(arguments: Arguments) -> Domain:
    """x | y and x # y: no bit beyond those of the larger, neither being negative."""
    ends = [number_range(a.domain) for a in arguments]
    most = [int(e[1]) for e in ends if e is not None and e[0] >= 0]
    return Bounded(0, 2 ** max(most).bit_length() - 1) if len(most) == len(ends) else UNKNOWN


def shifted(arguments: Arguments) -> Domain:
    """x >> n of a constant n."""
    ends, places = number_range(arguments[0].domain), number_range(arguments[1].domain)
    if ends is None or places is None:
        return UNKNOWN
    return Bounded(int(ends[0]) >> int(places[0]), int(ends[1]) >> int(places[0]))
