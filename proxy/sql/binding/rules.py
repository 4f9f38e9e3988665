"""What does an expression of the client's tree mean in the algebra?

The only translator from sqlglot's scalars to ours: one rule for each class of node. Each rule lists the parts of the
node it reads; any other part that is filled in, and any node without a rule of its own, is refused with its position.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from proxy.sql.algebra.constants import Constants
from proxy.sql.binding import arithmetic as bind_arithmetic
from proxy.sql.binding import bits as bind_bits
from proxy.sql.binding import calls as bind_calls
from proxy.sql.binding import choices as bind_choices
from proxy.sql.binding import conditions as bind_conditions
from proxy.sql.binding import values as bind_values
from proxy.sql.binding.binder import Binder, Resolve, Rule
from proxy.sql.binding.consulted import Consulted
from proxy.sql.binding.texts import lists as bind_lists
from proxy.sql.binding.texts import made as bind_made_texts
from proxy.sql.binding.texts import parts as bind_parts
from proxy.sql.binding.texts import patterns as bind_patterns
from proxy.sql.binding.texts import texts as bind_texts
from proxy.sql.binding.times import dates as bind_dates
from proxy.sql.binding.times import formats as bind_formats
from proxy.sql.binding.times import made as bind_made
from proxy.sql.binding.times import overlaps as bind_overlaps
from proxy.sql.binding.times import spans as bind_spans
from proxy.sql.binding.times import times as bind_times
from proxy.sql.binding.times import zones as bind_zones

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
