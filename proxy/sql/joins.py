"""What rows do the joins of a FROM clause make?

An inner join adds scans and conditions. A left join keeps each row of its left side, so its right side is one scan that
gives NULLs where nothing meets it; a right join is the same, mirrored. Everything may be put in this order because
products and filters of other columns commute with a left join.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from proxy.sql.algebra import Call, ColumnRef, Join, JoinKind, Scalar, Scan
from proxy.sql.binder import Binder
from proxy.sql.factored import requirements
from proxy.sql.function import Nulls
from proxy.sql.functions import FUNCTIONS
from proxy.sql.names import identifier
from proxy.sql.refusal import only, refuse
from proxy.sql.rows import Joined, Named, Rows

MakeBinder = Callable[[Joined], Binder]
_KINDS = ("", "INNER", "CROSS", "OUTER")
_STRICT = (Nulls.WITH_ANY, Nulls.WITH_ANY_OR_NO_ANSWER)
AGGREGATE_FIRST = (
    "Aggregate first and join the result: SELECT s.x, t.n FROM stores s LEFT JOIN (SELECT store_id, count(*) AS n FROM"
    " orders GROUP BY store_id) t ON t.store_id = s.store_id."
)


def alone(relation: Named) -> Joined:
    """A FROM clause of one relation."""
    return Joined((relation,), relation.rows)


def product(left: Joined, right: Joined) -> Joined:
    """Relations that a comma separates."""
    columns = (*left.rows.columns, *right.rows.columns)
    return Joined((*left.relations, *right.relations), _combined(left.rows, right.rows, (), columns))


def is_comma(join: exp.Join) -> bool:
    """Whether a relation follows after a comma: then the joins before it are complete."""
    return not any(join.args.get(part) for part in ("kind", "side", "method", "on", "using"))


def join(left: Joined, right: Named, node: exp.Join, binder: MakeBinder) -> Joined:
    """`left` joined with one more relation. binder: over a FROM clause. Raises Unsupported."""
    side = side_of(node)
    shared = _shared_names(left, right, node)
    both = product(left, alone(right))
    on = [_equal(left, right, name, node, binder(both)) for name in shared]
    if node.args.get("on") is not None:
        on += requirements(binder(both).condition(node.args["on"]))
    columns = _columns(left, right, shared, side)
    if side == "LEFT":
        rows = _kept(left.rows, right.rows, tuple(on), columns, node)
    elif side == "RIGHT":
        rows = _kept(right.rows, left.rows, tuple(on), columns, node)
    else:
        rows = _combined(left.rows, right.rows, tuple(on), columns)
    return Joined(both.relations, rows)


def with_columns(left: Joined, right: Named, node: exp.Join) -> Joined:
    """`left` with the columns of a relation that has no rows of its own."""
    columns = _columns(left, right, _shared_names(left, right, node), side_of(node))
    return Joined((*left.relations, right), replace(left.rows, columns=columns))


def side_of(node: exp.Join) -> str:
    """Which side's rows are kept: LEFT, RIGHT or neither. Raises Unsupported."""
    only(node, "this", "on", "kind", "using", "side", "method")
    side, kind, method = (str(node.args.get(part) or "") for part in ("side", "kind", "method"))
    if side == "FULL":
        raise refuse(node, "FULL JOIN of private rows is not supported",
                     "Its rows may lack either side, and with it their unit. Use a LEFT JOIN from each side and add"
                     " the aggregates.")  # fmt: skip
    if kind not in _KINDS or side not in ("", "LEFT", "RIGHT") or method not in ("", "NATURAL"):
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
    if len(found) > 1:
        raise refuse(node, f'common column name "{name}" appears more than once in {where} table',
                     "Write JOIN ... ON a.x = b.x.")  # fmt: skip
    return found[0]


def _columns(left: Joined, right: Named, shared: tuple[str, ...], side: str) -> tuple[tuple[str, Scalar], ...]:
    """Shared columns once and first, read from the side that is kept."""
    ours, theirs = left.rows.columns, right.rows.columns
    kept = dict(theirs if side == "RIGHT" else ours)
    rest = tuple(c for c in (*ours, *theirs) if c[0] not in shared)
    return (*((name, kept[name]) for name in shared), *rest)


# --- rows -------------------------------------------------------------------------------------------------


def _combined(left: Rows, right: Rows, on: tuple[Scalar, ...], columns: tuple[tuple[str, Scalar], ...]) -> Rows:
    return Rows(
        scans=(*left.scans, *right.scans), joins=(*left.joins, *right.joins),
        where=(*left.where, *right.where, *on), columns=columns,
    )  # fmt: skip


def _kept(
    kept: Rows, met: Rows, on: tuple[Scalar, ...], columns: tuple[tuple[str, Scalar], ...], node: exp.Join
) -> Rows:
    """Every row of `kept`, with what it meets or NULLs."""
    if not kept.has_units:
        raise refuse(node, "an outer join that keeps rows of a public table is not supported with private rows",
                     AGGREGATE_FIRST)  # fmt: skip
    if len(met.scans) != 1 or met.joins:
        raise refuse(node, "an outer join to a join is not supported over private rows",
                     "Join one table after the other: a LEFT JOIN b ON ... LEFT JOIN c ON ...")  # fmt: skip
    if not all(_is_null_without_row(scalar) for _, scalar in met.columns):
        raise refuse(node, "an outer join to a sub-select with computed columns is not supported over private rows",
                     "Select plain columns in it, and compute from them outside.")  # fmt: skip
    added = Join(JoinKind.LEFT, (nullable(met.scans[0]),), (*met.where, *on))
    return Rows(scans=kept.scans, joins=(*kept.joins, added), where=kept.where, columns=columns)


def _is_null_without_row(scalar: Scalar) -> bool:
    """Whether a column is NULL wherever all columns of its scan are."""
    match scalar:
        case ColumnRef():
            return True
        case Call(function, args):
            return FUNCTIONS[function].nulls in _STRICT and any(_is_null_without_row(a) for a in args)
        case _:
            return False


def nullable(scan: Scan) -> Scan:
    """The scan as rows see it that it may not meet: any of its columns may be NULL, whatever the policy says."""
    table = replace(scan.table, columns=tuple(replace(c, nullable=True) for c in scan.table.columns))
    return replace(scan, table=table)
