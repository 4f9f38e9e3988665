"""What does a sub-select of one row stand for that aggregates rows of the same unit as the row around it?

Its aggregates are grouped by the unit and joined to the rows around it. A unit that has no rows there counts none of
them, and its other aggregates are NULL, as they are over no rows. EXISTS and IN that are values ask whether such a
count is more than none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from proxy.errors import Unsupported
from proxy.policy.model import UnitColumns
from proxy.sql.algebra.links import equality
from proxy.sql.algebra.nodes import (
    Call,
    Case,
    ColumnRef,
    Join,
    JoinKind,
    Literal,
    Null,
    Scalar,
    Scan,
    UnitValue,
    UnitValueKind,
    columns_of,
    with_columns,
)
from proxy.sql.algebra.rows import Rows
from proxy.sql.binding.binder import Binder
from proxy.sql.binding.subqueries import Membership, compared
from proxy.sql.relations.joins import nullable
from proxy.sql.relations.per_unit import GroupedRows, ItemBinder
from proxy.sql.syntax.refusal import refuse
from proxy.sqltypes import SqlType

_COUNTS = (UnitValueKind.COUNT, UnitValueKind.COUNT_DISTINCT)


def membership_value(asked: Membership, below: Rows, rows: Rows, binder: Binder, number: int) -> tuple[Join, Scalar]:
    """Whether a row of `rows` meets one of `below`, and the join that tells. Raises Unsupported.

    number: of the scan that is joined. NULL where what is compared is missing.
    """
    equal = compared(asked, below, binder)
    met = replace(below, where=(*below.where, *(e for e, _, _ in equal)), columns=())
    count = exp.Count(this=exp.Star())

    def item(node: exp.Expression, inner: Binder) -> tuple[str, Scalar]:
        return "count", inner.scalar(node)

    join, ((_, found),) = single_row(asked.query, met, binder, number, item, (count,))
    is_met = binder.call(asked.node, ">", found, Literal(0, SqlType.INT8))
    own = {s.number for s in rows.scans}  # their unit is there
    for left in (left for _, left, _ in equal if not isinstance(left, ColumnRef) or left.scan not in own):
        is_missing = binder.call(asked.node, "is null", left)
        is_met = Case(((is_missing, Null(SqlType.BOOL)),), is_met, SqlType.BOOL)
    return join, binder.negated(asked.node, is_met, asked.is_negated)


def single_row(
    select: exp.Select, rows: Rows, binder: Binder, number: int, item: ItemBinder, items: Sequence[exp.Expression] = ()
) -> tuple[Join, tuple[tuple[str, Scalar], ...]]:
    """The join that finds a SELECT's one row, and its columns. number: of its scan. Raises Unsupported.

    items: what it shows, if not its select list.
    """
    if not rows.has_units:
        raise refuse(select, "a sub-query is not supported over private rows", "Join the public table.")
    own = {s.number for s in (*rows.scans, *(s for j in rows.joins for s in j.scans))}
    inner = tuple(c for c in rows.where if _is_own(c, own))
    unit, outer = _unit(select, rows, [c for c in rows.where if not _is_own(c, own)])
    below = replace(rows, where=inner)
    found = GroupedRows(lambda: below, binder, number)
    found.by(unit)
    columns = tuple(item(i, Binder(found.resolve, binder.constants, binder.source, found.rules()))
                    for i in items or select.expressions)  # fmt: skip
    read = (*(c for j in rows.joins for c in j.on), *(s for v in found.values for s in (v.argument, v.where)))
    if not all(_is_own(s, own) for s in read):
        raise _mixed(select)
    scan = found.scan()
    names = scan.table.ownership.columns if isinstance(scan.table.ownership, UnitColumns) else ()
    on = tuple(Call("=", (o, ColumnRef(number, n, c.type)), SqlType.BOOL)
               for o, n, c in zip(outer, names, unit, strict=True))  # fmt: skip
    shown = tuple((name, _without_rows(scalar, number, found.values)) for name, scalar in columns)
    return Join(JoinKind.LEFT, (nullable(scan),), on), shown


def _is_own(scalar: Scalar, own: Iterable[int]) -> bool:
    return all(c.scan in own for c in columns_of(scalar))


def _unit(
    select: exp.Select, rows: Rows, conditions: Sequence[Scalar]
) -> tuple[tuple[ColumnRef, ...], tuple[ColumnRef, ...]]:
    """The columns of the unit below, and those of the rows around that they equal: nothing else is asked of these."""
    own = {s.number for s in rows.scans}
    pairs = [equality(c) for c in conditions]
    equal = {}
    for pair in pairs:
        if pair is None or (pair[0].scan in own) == (pair[1].scan in own):
            raise _mixed(select)
        below, around = pair if pair[0].scan in own else pair[::-1]
        equal[below] = around
    for scan in rows.scans:
        unit = _columns(scan)
        if unit and set(unit) == set(equal) and len(pairs) == len(unit):
            return unit, tuple(equal[c] for c in unit)
    raise _mixed(select)


def _columns(scan: Scan) -> tuple[ColumnRef, ...]:
    if not isinstance(scan.table.ownership, UnitColumns):
        return ()
    columns = (scan.table.column(c) for c in scan.table.ownership.columns)
    return tuple(ColumnRef(scan.number, c.name, c.type) for c in columns if c is not None)


def _mixed(select: exp.Select) -> Unsupported:
    return refuse(select, "a sub-select with aggregates may ask of the private rows around it only that they are of its"
                  " unit", "Write WHERE <its unit column> = <that of the rows around it>.")  # fmt: skip


def _without_rows(scalar: Scalar, number: int, values: Sequence[UnitValue]) -> Scalar:
    """The scalar where a unit without rows has counted none."""
    counts = {v.name for v in values if v.kind in _COUNTS}

    def counted(reference: ColumnRef) -> Scalar:
        if reference.scan == number and reference.name in counts:
            return Call("coalesce", (reference, Literal(0, SqlType.INT8)), SqlType.INT8)
        return reference

    return with_columns(scalar, counted)
