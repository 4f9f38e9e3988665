"""What does (a, b) OVERLAPS (c, d) mean?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.constants import Untyped
from proxy.sql.algebra.nodes import Scalar, Span
from proxy.sql.binding.binder import Binder, Bound, Rule
from proxy.sql.binding.rows import row_of
from proxy.sql.syntax.refusal import only, refuse

_HINT = "Write (x, y) OVERLAPS (DATE '2024-01-01', DATE '2024-02-01')."


def _overlaps(binder: Binder, node: exp.Expression) -> Scalar:
    """Spans of time without their ends, except for one that is a moment."""
    only(node, "this", "expression")
    written = (end for side in (node.this, node.expression) for end in _ends(binder, node, side))
    united = binder.united(node, [(end, node) for end in written], is_compared=True)
    if not united[0].type.is_time:
        raise refuse(node, "OVERLAPS takes dates and timestamps", _HINT)
    return binder.call(node, "overlaps", *united)


def _ends(binder: Binder, node: exp.Expression, side: exp.Expression) -> tuple[Bound, Bound]:
    """The two ends; the second may be an interval after the first."""
    row = row_of(side)
    if row is None or len(row) != 2:
        raise refuse(node, "OVERLAPS takes two pairs of times", _HINT)
    first, last = (binder.bind(part) for part in row)
    if isinstance(last, Span) and not isinstance(first, Untyped):
        last = binder.call(node, "time + interval", first, last)
    return first, last


RULES: Mapping[type, Rule] = MappingProxyType({exp.Overlaps: _overlaps})
