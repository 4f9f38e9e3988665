"""What rows does FULL JOIN make of two relations of private rows that are joined on the unit?

Those of the left side with what they meet, and those of the right side that meet none: UNION ALL of a LEFT JOIN and an
anti-join. Each row belongs to the unit of the side that is there; COALESCE of both sides' units is that unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from proxy.policy.model import Ownership, UnitColumns
from proxy.sql.algebra.links import link
from proxy.sql.algebra.nodes import (
    Branch,
    Call,
    ColumnRef,
    Join,
    JoinKind,
    Literal,
    Null,
    Scalar,
    Scan,
    UnionRows,
    columns_of,
    with_columns,
)
from proxy.sql.algebra.renumber import Copies
from proxy.sql.algebra.rows import Joined, Named, Rows
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.relations.unions import TogetherRows
from proxy.sql.syntax.refusal import refuse

ONE_AFTER_THE_OTHER = "Join the other tables in sub-selects: (SELECT ... GROUP BY u) a FULL JOIN (...) b USING (u)."


def full(
    both: Joined, left_join: Rows, sides: tuple[Rows, Rows], on: tuple[Scalar, ...], node: exp.Expression,
    made: Callable[[Sequence[Rows]], TogetherRows], fresh: Callable[[], int],
) -> Joined:  # fmt: skip
    """The rows of `both` sides under their names. left_join: the first part. Raises Unsupported."""
    left, right = sides
    if left.joins:
        raise refuse(node, "FULL JOIN after an outer join is not supported over private rows", ONE_AFTER_THE_OTHER)
    own = {s.number for s in right.scans}
    if any(c.scan not in own for s in right.where for c in columns_of(s)):
        raise refuse(node, "FULL JOIN LATERAL is not supported")
    copies = Copies(fresh)
    theirs, ours = copies.rows(right), copies.rows(left)
    anti = Join(JoinKind.ANTI, ours.scans, (*ours.where, *copies.scalars(on)))
    unmet = replace(theirs, joins=(*theirs.joins, anti))
    rows = made((left_join, unmet))

    def held(column: ColumnRef) -> Scalar:
        return rows.held(column, (column, copies.column(column) if column.scan in own else Null(column.type)))

    def shown(found: Rows) -> Rows:
        return Rows(scans=(), columns=tuple((name, with_columns(s, held)) for name, s in found.columns))

    relations = tuple(Named(r.alias, shown(r.rows)) for r in both.relations)
    columns = shown(both.rows).columns
    scan = rows.scan(is_unit_in_one_branch=_is_unit_alone(left, right, on))
    fused = tuple((name, _of_unit(scalar, (scan,))) for name, scalar in columns)
    return Joined(relations, Rows(scans=(scan,), columns=fused))


def _is_unit_alone(left: Rows, right: Rows, on: tuple[Scalar, ...]) -> bool:
    """Whether the units of both sides are equated and nothing else is asked, so that a unit that is on the left has no
    row of the right that meets none.
    """
    if len(left.scans) != 1 or len(right.scans) != 1:
        return False
    ours, theirs = _unit_of(left.scans[0]), _unit_of(right.scans[0])
    pairs = [frozenset(pair) for c in on if (pair := link(c)) is not None]
    wanted = [frozenset(pair) for pair in zip(ours, theirs, strict=False)]
    return len(ours) == len(theirs) > 0 and len(pairs) == len(on) and set(pairs) == set(wanted)


def _unit_of(scan: Scan) -> tuple[ColumnRef, ...]:
    if not isinstance(scan.table.ownership, UnitColumns):
        return ()
    found = (scan.table.column(name) for name in scan.table.ownership.columns)
    return tuple(ColumnRef(scan.number, c.name, c.type) for c in found if c is not None)


# --- COALESCE of the unit -----------------------------------------------------------------------------------


def coalescing(rule: Rule, rows: Rows) -> Rule:
    """The rule of COALESCE, for rows of which some may be those of a FULL JOIN."""

    def bind(binder: Binder, node: exp.Expression) -> Scalar:
        return _of_unit(rule(binder, node), rows.scans)  # type: ignore[arg-type]  # COALESCE has a type

    return bind


def _of_unit(scalar: Scalar, scans: Sequence[Scan]) -> Scalar:
    """COALESCE of columns that together are a column of the unit in every branch of a union, as that column."""
    if not isinstance(scalar, Call) or scalar.function != "coalesce":
        return scalar
    columns = [c for c in scalar.args if isinstance(c, ColumnRef)]
    for scan in scans:
        if len(columns) == len(scalar.args) and isinstance(scan.rows, UnionRows):
            found = _unit_column(scan, scan.rows, columns)
            if found is not None:
                return found
    return scalar


def _unit_column(scan: Scan, rows: UnionRows, columns: Sequence[ColumnRef]) -> ColumnRef | None:
    if any(c.scan != scan.number or c.name not in rows.columns for c in columns):
        return None
    numbers = [rows.columns.index(c.name) for c in columns]
    places = {_place(branch, numbers) for branch in rows.branches}
    place = places.pop()
    return None if places or place is None else _unit_of(scan)[place]


def _place(branch: Branch, numbers: Sequence[int]) -> int | None:
    """Which part of the unit of each row of a branch these columns give, NULL aside: one of them is there."""
    scans = {s.number: s for s in (*branch.block.scans, *(s for j in branch.block.joins for s in j.scans))}
    first = {s.number for s in branch.block.scans}
    parts = [branch.columns[n] for n in numbers]
    found = [c for c in parts if isinstance(c, ColumnRef)]
    if not any(c.scan in first for c in found) or any(isinstance(p, Literal) for p in parts):
        return None
    places = {_index(scans[c.scan].table.ownership, c.name) for c in found}
    place = places.pop()
    return None if places else place


def _index(ownership: Ownership, name: str) -> int | None:
    if isinstance(ownership, UnitColumns) and name in ownership.columns:
        return ownership.columns.index(name)
    return None
