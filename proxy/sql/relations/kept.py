"""What becomes of rows of public tables that an outer join keeps where no private row meets them?

Such a row belongs to nobody, and whether it is there tells whether somebody's row is. So it is never computed: it is
only known of which public rows those are that may be kept, and what is asked of them. See `kept_groups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from proxy.sql.algebra.nodes import Scalar, columns_of
from proxy.sql.algebra.rows import KeptRows, Rows
from proxy.sql.conditions.on_null_row import is_never_true
from proxy.sql.syntax.refusal import refuse

KEEPS = "an outer join that keeps rows of a public table"
INNER = "Use JOIN, or aggregate first and join the result to the public table."


def met(kept: KeptRows, other: Rows, on: Sequence[Scalar], node: exp.Expression) -> KeptRows | None:
    """What is kept of a join's rows that `other` is joined with. None: nothing, whatever the data hold."""
    both = KeptRows(_product(kept.rows, other), kept.is_full)
    return _those(both, on, node)


def stays(kept: KeptRows, other: Rows, on: Sequence[Scalar], node: exp.Expression) -> KeptRows:
    """The same for a further outer join to `other`: no row that is kept may meet one of it."""
    there = kept.scans | {s.number for s in other.scans}
    if not any(is_never_true(c, lambda scan: scan not in there) for c in on):
        raise refuse(node, f"{KEEPS}, and a further outer join to them, is not supported with private rows",
                     "Let its condition equate a column of the private table.")  # fmt: skip
    return kept


def passing(rows: Rows, conditions: Sequence[Scalar], node: exp.Expression) -> Rows:
    """The rows that pass conditions of WHERE, with what is kept of them."""
    kept = None if rows.kept is None else _those(rows.kept, conditions, node)
    return replace(rows, where=(*rows.where, *conditions), kept=kept)


def _those(kept: KeptRows, conditions: Sequence[Scalar], node: exp.Expression) -> KeptRows | None:
    if any(is_never_true(c, lambda scan: scan not in kept.scans) for c in conditions):
        return None
    if any(column.scan not in kept.scans for c in conditions for column in columns_of(c)):
        raise refuse(node, f"{KEEPS} is not supported with a condition that they pass without a private row",
                     "Whether a row is kept is private. Let conditions on private columns fail for NULL.")  # fmt: skip
    return replace(kept, rows=replace(kept.rows, where=(*kept.rows.where, *conditions)))


def _product(left: Rows, right: Rows) -> Rows:
    return Rows(scans=(*left.scans, *right.scans), joins=(*left.joins, *right.joins),
                where=(*left.where, *right.where), columns=())  # fmt: skip


def plain(rows: Rows, node: exp.Expression) -> Rows:
    """The rows, of which none is kept so. Raises Unsupported."""
    if rows.kept is not None:
        raise refuse(node, f"{KEEPS} is not supported here over private rows", INNER)
    return rows
