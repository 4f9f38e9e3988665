"""Which values can the aggregates of a sub-select that groups by the unit have?

They are exact, so nothing is paid for them; what is inferred is enforced again as a clamp in the rendered SQL.
"""

from __future__ import annotations

import math
from dataclasses import replace

from proxy.analysis.domains import Domains
from proxy.errors import MissingBounds
from proxy.policy.model import Bounded, Column, Domain, Unknown
from proxy.sql.algebra.nodes import TRUE, ColumnRef, UnitValue, UnitValueKind
from proxy.sql.functions.domains.intervals import number_range


def bounded(value: UnitValue, domains: Domains, rows: int) -> UnitValue:
    """The value with the ends that its rows are clamped to. rows: most of a unit. Raises MissingBounds."""
    if value.kind is UnitValueKind.COUNT and not domains.may_be_null(value.argument):
        value = replace(value, argument=TRUE)
    ends = number_range(domains.of(value.argument, value.where)) if value.argument.type.is_number else None
    if ends is not None and max(map(abs, ends)) <= 1e100:
        value = replace(value, ends=ends)
    elif value.kind in (UnitValueKind.SUM, UnitValueKind.AVG) and not value.argument.type.is_integer:
        raise MissingBounds(
            f"no bounds are known for what {value.kind.value} adds for each unit",
            detail="Fractions are added exactly, which needs to know how large they may be.",
            hint="Clamp it between numbers of your own: sum(least(greatest(<expression>, 0), 100)).",
        )
    return replace(value, most=rows)


def _is_count(value: UnitValue) -> bool:
    return value.kind in (UnitValueKind.COUNT, UnitValueKind.COUNT_DISTINCT)


def value_column(value: UnitValue, domains: Domains) -> Column:
    """The column of such a value: its domain, and whether it may be NULL."""
    column = Column(name=value.name, type=value.type)
    if _is_count(value):
        least = int(value.where == TRUE and value.argument == TRUE)
        return replace(column, domain=Bounded(least, value.most), nullable=False)
    is_whole = value.argument.type.is_integer and not domains.may_be_null(value.argument)
    return replace(column, domain=_domain(value, domains), nullable=value.where != TRUE or not is_whole)


def _domain(value: UnitValue, domains: Domains) -> Domain:
    if value.kind is UnitValueKind.SUM:
        declared = _declared_sum(value, domains)
        return _inferred_sum(value) if isinstance(declared, Unknown) and _is_bounded(value) else declared
    if not value.argument.type.is_number:
        return domains.of(value.argument, value.where)
    if not _is_bounded(value):
        return Unknown()
    return Bounded(*value.ends) if value.kind is UnitValueKind.AVG else _whole(value)


def _is_bounded(value: UnitValue) -> bool:
    return math.isfinite(value.ends[0]) and math.isfinite(value.ends[1])


def _whole(value: UnitValue) -> Bounded:
    lo, hi = value.ends
    return Bounded(math.floor(lo), math.ceil(hi)) if value.type.is_integer else Bounded(lo, hi)


def _inferred_sum(value: UnitValue) -> Domain:
    """Claim: a unit's sum, as the statement clamps it, lies between these ends, whatever rows it has.

    They are those of one row, and of as many as a unit may have.
    """
    lo, hi = value.ends
    least, most = min(lo, lo * value.most), max(hi, hi * value.most)
    return _whole(replace(value, ends=(least, most)))


def _declared_sum(value: UnitValue, domains: Domains) -> Domain:
    """The policy's bounds of a unit's sum, where it declares any for the column."""
    return domains.column(value.argument).sum_bounds if isinstance(value.argument, ColumnRef) else Unknown()
