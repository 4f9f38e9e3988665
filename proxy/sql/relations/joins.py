"""What rows do the joins of a FROM clause make?

An inner join adds scans and conditions. A left join keeps each row of its left side, so its right side is one scan that
gives NULLs where nothing meets it; a right join is the same, mirrored. Everything may be put in this order because
products and filters of other columns commute with a left join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from proxy.policy.model import JoinKey
from proxy.sql.algebra.links import link
from proxy.sql.algebra.nodes import Call, Join, JoinKind, Scalar, Scan, Stored, is_present
from proxy.sql.algebra.rows import Joined, KeptRows, Named, Rows
from proxy.sql.binding.binder import Binder
from proxy.sql.conditions.factored import requirements
from proxy.sql.relations import kept
from proxy.sql.relations.full_joins import full
from proxy.sql.relations.null_extension import where_met
from proxy.sql.relations.unions import TogetherRows
from proxy.sql.syntax.names import identifier
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_KINDS = ("", "INNER", "CROSS", "OUTER")
AGGREGATE_FIRST = (
    "Aggregate first and join the result: SELECT s.x, t.n FROM stores s LEFT JOIN (SELECT store_id, count(*) AS n FROM"
    " orders GROUP BY store_id) t ON t.store_id = s.store_id."
)


@dataclass(frozen=True, slots=True)
class Making:
    """What a join needs of the statement around it.

    binder: over a FROM clause. together, fresh: for rows that may lack either side; one scan of several rows, and the
    number of a new scan.
    """

    binder: Callable[[Joined], Binder]
    together: Callable[[exp.Expression, Sequence[Rows]], TogetherRows]
    fresh: Callable[[], int]


def alone(relation: Named) -> Joined:
    """A FROM clause of one relation."""
    return Joined((relation,), relation.rows)


def product(left: Joined, right: Joined, node: exp.Expression) -> Joined:
    """Relations that a comma separates."""
    columns = (*left.rows.columns, *right.rows.columns)
    return Joined((*left.relations, *right.relations), _combined(left.rows, right.rows, (), columns, node))


def is_comma(join: exp.Join) -> bool:
    """Whether a relation follows after a comma: then the joins before it are complete."""
    return not any(join.args.get(part) for part in ("kind", "side", "method", "on", "using"))


def join(left: Joined, right: Named, node: exp.Join, making: Making) -> Joined:
    """`left` joined with one more relation. Raises Unsupported."""
    side = side_of(node)
    shared = _shared_names(left, right, node)
    both = product(left, alone(right), node)
    on = [_equal(left, right, name, node, making.binder(both)) for name in shared]
    if node.args.get("on") is not None:
        on += requirements(making.binder(both).condition(node.args["on"]))
    if _is_complete(left.rows, right.rows, on, side):
        side = ""
    if side in ("RIGHT", "FULL"):
        left = where_met(left, on, node)
    if side in ("LEFT", "FULL"):
        (right,) = where_met(alone(right), on, node).relations
    columns = _columns(left, right, shared, side)
    relations = (*left.relations, right)
    if side == "FULL" and left.rows.has_units and right.rows.has_units:
        return _full_join(left, right, columns, tuple(on), node, making)
    if side == "LEFT":
        rows = _outer(left.rows, right.rows, tuple(on), columns, node)
    elif side == "RIGHT":
        rows = _outer(right.rows, left.rows, tuple(on), columns, node)
    elif side == "FULL":
        rows = _full(left.rows, right.rows, tuple(on), columns, node)
    else:
        rows = _combined(left.rows, right.rows, tuple(on), columns, node)
    return Joined(relations, rows)


def _is_complete(left: Rows, right: Rows, on: Sequence[Scalar], side: str) -> bool:
    """Whether each row that an outer join keeps is declared to meet one, so that it is an inner join.

    Nothing of privacy rests on it: rows that meet none are dropped, as an inner join does.
    """
    first, met = (right, left) if side == "RIGHT" else (left, right)
    is_plain = not (first.kept or met.kept or met.where or met.joins) and len(met.scans) == 1
    if side not in ("LEFT", "RIGHT") or len(on) != 1 or not is_plain or not isinstance(met.scans[0].rows, Stored):
        return False
    pair, other = link(on[0]), met.scans[0]
    if pair is None:
        return False
    ours, theirs = pair if pair[1].scan == other.number else pair[::-1]
    key = JoinKey(ours.name, other.table.name, theirs.name)
    return theirs.scan == other.number and any(
        s.number == ours.scan and isinstance(s.rows, Stored) and key in s.table.complete_joins for s in first.scans
    )


def with_columns(left: Joined, right: Named, node: exp.Join) -> Joined:
    """`left` with the columns of a relation that has no rows of its own."""
    columns = _columns(left, right, _shared_names(left, right, node), side_of(node))
    return Joined((*left.relations, right), replace(left.rows, columns=columns))


def side_of(node: exp.Join) -> str:
    """Which side's rows are kept: LEFT, RIGHT, FULL or neither. Raises Unsupported."""
    only(node, "this", "on", "kind", "using", "side", "method")
    side, kind, method = (str(node.args.get(part) or "") for part in ("side", "kind", "method"))
    if kind not in _KINDS or side not in ("", "LEFT", "RIGHT", "FULL") or method not in ("", "NATURAL"):
        words = " ".join(dict.fromkeys(w for w in (method, side, kind) if w))
        raise refuse(node, f"{words} JOIN of private rows is not supported",
                     "Use JOIN or LEFT JOIN: a JOIN b ON a.key = b.key.")  # fmt: skip
    return side


# --- USING and NATURAL ------------------------------------------------------------------------------------


def _shared_names(left: Joined, right: Named, node: exp.Join) -> tuple[str, ...]:
    if node.args.get("method") == "NATURAL":
        theirs = {name for name, _ in right.rows.columns}
        return tuple(dict.fromkeys(name for name, _ in left.rows.columns if name in theirs))
    return tuple(identifier(n) for n in node.args.get("using") or ())


def _equal(left: Joined, right: Named, name: str, node: exp.Join, binder: Binder) -> Scalar:
    sides = ((left.rows, "left"), (right.rows, "right"))
    return binder.call(node, "=", *binder.united(node, [(_named(r, name, side, node), node) for r, side in sides]))


def _named(rows: Rows, name: str, where: str, node: exp.Join) -> Scalar:
    """The one column of that name on one side of a join."""
    found = [scalar for column, scalar in rows.columns if column == name]
    if not found:
        raise refuse(node, f'column "{name}" specified in USING clause does not exist in {where} table')
    if found[0].type is SqlType.INTERVAL:
        raise refuse(node, "a difference of times is not a value here", "Join by other columns.")
    if len(found) > 1:
        raise refuse(node, f'common column name "{name}" appears more than once in {where} table',
                     "Write JOIN ... ON a.x = b.x.")  # fmt: skip
    return found[0]


def _columns(left: Joined, right: Named, shared: tuple[str, ...], side: str) -> tuple[tuple[str, Scalar], ...]:
    """Shared columns once and first, read from the side that is kept; where both are, from that which is there."""
    ours, theirs = left.rows.columns, right.rows.columns
    found = dict(theirs if side == "RIGHT" else ours)
    if side == "FULL":
        others = dict(theirs)
        found = {n: Call("coalesce", (found[n], others[n]), found[n].type) for n in shared}
    rest = tuple(c for c in (*ours, *theirs) if c[0] not in shared)
    return (*((name, found[name]) for name in shared), *rest)


# --- rows -------------------------------------------------------------------------------------------------

_Columns = tuple[tuple[str, Scalar], ...]


def _combined(left: Rows, right: Rows, on: tuple[Scalar, ...], columns: _Columns, node: exp.Expression) -> Rows:
    rows = Rows(
        scans=(*left.scans, *right.scans), joins=(*left.joins, *right.joins),
        where=(*left.where, *right.where, *on), columns=columns,
    )  # fmt: skip
    if right.kept is not None:
        left, right = right, kept.plain(left, node)
    return rows if left.kept is None else replace(rows, kept=kept.met(left.kept, right, on, node))


def _outer(first: Rows, met: Rows, on: tuple[Scalar, ...], columns: _Columns, node: exp.Expression) -> Rows:
    """Every row of `first`, with what it meets or NULLs."""
    if not first.has_units and met.has_units:
        rows = _left(met, first, on, columns, node)
        return replace(rows, where=(*rows.where, _present(first, on, node)), kept=KeptRows(replace(first, columns=())))
    if not first.has_units:
        raise refuse(node, "an outer join of public tables is not supported with private rows", AGGREGATE_FIRST)
    rows = _left(first, met, on, columns, node)
    return rows if first.kept is None else replace(rows, kept=kept.stays(first.kept, met, on, node))


def _full_join(
    left: Joined, right: Named, columns: _Columns, on: tuple[Scalar, ...], node: exp.Expression, making: Making
) -> Joined:
    """Every row of two private sides."""
    sides = kept.plain(left.rows, node), kept.plain(right.rows, node)
    both = Joined((*left.relations, right), Rows(scans=(), columns=columns))
    return full(
        both, _left(*sides, on, (), node), sides, on, node, lambda parts: making.together(node, parts), making.fresh
    )


def _full(left: Rows, right: Rows, on: tuple[Scalar, ...], columns: _Columns, node: exp.Expression) -> Rows:
    """Every row of both sides, one of which is public."""
    first, met = (left, right) if left.has_units else (right, left)
    if met.has_units or not first.has_units:
        raise refuse(node, "FULL JOIN of private rows is not supported",
                     AGGREGATE_FIRST)  # fmt: skip
    rows = _left(kept.plain(first, node), met, on, columns, node)
    return replace(rows, kept=KeptRows(replace(met, columns=()), is_full=True))


def _present(public: Rows, on: tuple[Scalar, ...], node: exp.Expression) -> Scalar:
    """Whether a row of a public table is there, where an outer join may have found none."""
    numbers = {s.number for s in public.scans}
    found = next((c for pair in map(link, on) if pair for c in pair if c.scan in numbers), None)
    if found is None:
        raise refuse(node, "an outer join that keeps rows of a public table must equate a declared key of it",
                     AGGREGATE_FIRST)  # fmt: skip
    return is_present(found)


def _left(first: Rows, met: Rows, on: tuple[Scalar, ...], columns: _Columns, node: exp.Expression) -> Rows:
    kept.plain(met, node)
    if len(met.scans) != 1 or met.joins:
        raise refuse(node, "an outer join to a join is not supported over private rows",
                     "Join one table after the other: a LEFT JOIN b ON ... LEFT JOIN c ON ...")  # fmt: skip
    added = Join(JoinKind.LEFT, (nullable(met.scans[0]),), (*met.where, *on))
    return Rows(scans=first.scans, joins=(*first.joins, added), where=first.where, columns=columns)


def nullable(scan: Scan) -> Scan:
    """The scan as rows see it that it may not meet: any of its columns may be NULL, whatever the policy says."""
    table = replace(scan.table, columns=tuple(replace(c, nullable=True) for c in scan.table.columns))
    return replace(scan, table=table)
