"""What are the columns of a relation where an outer join found no row of it? NULL, whatever they are computed from.

`COALESCE(sum(x), 0)` of a sub-select is 0 for units that have no x, and NULL for those that have no row in it. A column
of which that does not follow is asked only where a column that the join equates is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from proxy.sql.algebra.links import link
from proxy.sql.algebra.nodes import Call, Case, ColumnRef, Null, Scalar, is_null
from proxy.sql.algebra.rows import Joined, Named, Rows
from proxy.sql.conditions.on_null_row import without
from proxy.sql.syntax.refusal import refuse
from proxy.sqltypes import SqlType


def where_met(side: Joined, on: Sequence[Scalar], node: exp.Expression) -> Joined:
    """A side of an outer join that its rows may lack. on: the join's condition. Raises Unsupported."""
    relations = tuple(Named(r.alias, _guarded(r.rows, side.rows, on, node)) for r in side.relations)
    return Joined(relations, _guarded(side.rows, side.rows, on, node))


def _guarded(rows: Rows, side: Rows, on: Sequence[Scalar], node: exp.Expression) -> Rows:
    columns = tuple((name, _or_null(scalar, side, on, node)) for name, scalar in rows.columns)
    return rows if columns == rows.columns else replace(rows, columns=columns)


def _or_null(scalar: Scalar, side: Rows, on: Sequence[Scalar], node: exp.Expression) -> Scalar:
    if isinstance(without(scalar, lambda _: True), Null):
        return scalar
    missing = is_null(_equated(side, on, node))
    return Case(((Call("not", (missing,), SqlType.BOOL), scalar),), Null(scalar.type), scalar.type)


def _equated(side: Rows, on: Sequence[Scalar], node: exp.Expression) -> ColumnRef:
    """A column of the side that is there in each row that meets one."""
    numbers = {s.number for s in side.scans}
    found = next((c for pair in map(link, on) if pair for c in pair if c.scan in numbers), None)
    if found is None:
        raise refuse(node, "an outer join to a sub-select with computed columns is supported over private rows only if"
                     " it equates one of its columns",
                     "Select plain columns in it, and compute from them outside.")  # fmt: skip
    return found
