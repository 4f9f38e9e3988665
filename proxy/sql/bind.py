"""What does an expression of the client's tree mean in the algebra?

The only translator from sqlglot's scalars to ours: one rule for each class of node. Each rule lists the parts of the
node it reads; any other part that is filled in, and any node without a rule of its own, is refused with its position.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from proxy.sql import (
    bind_arithmetic,
    bind_bits,
    bind_calls,
    bind_choices,
    bind_conditions,
    bind_dates,
    bind_formats,
    bind_lists,
    bind_made,
    bind_made_texts,
    bind_overlaps,
    bind_parts,
    bind_patterns,
    bind_spans,
    bind_texts,
    bind_times,
    bind_values,
    bind_zones,
)
from proxy.sql.binder import Binder, Resolve, Rule
from proxy.sql.constants import Constants
from proxy.sql.consulted import Consulted

RULES: Mapping[type, Rule] = MappingProxyType({
    **bind_values.RULES, **bind_conditions.RULES, **bind_arithmetic.RULES, **bind_texts.RULES, **bind_times.RULES,
    **bind_calls.RULES, **bind_choices.RULES, **bind_formats.RULES, **bind_patterns.RULES, **bind_spans.RULES,
    **bind_zones.RULES, **bind_made.RULES, **bind_bits.RULES, **bind_lists.RULES, **bind_overlaps.RULES,
    **bind_made_texts.RULES, **bind_parts.RULES, **bind_dates.RULES,
})  # fmt: skip


def make_binder(resolve: Resolve, constants: Constants, source: str) -> Binder:
    """A binder over the columns that `resolve` knows. source: the statement, for functions' own spelling."""
    return Binder(resolve, Consulted(constants), source, RULES)


__all__ = ["RULES", "Constants", "make_binder"]
