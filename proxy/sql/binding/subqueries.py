"""Which conditions of WHERE ask whether a row meets a row of a sub-query, and what do they mean?

EXISTS and IN keep the rows that meet one, NOT EXISTS and NOT IN those that meet none. Each becomes a join that adds no
columns. Only whole conditions, combined by AND, are read so: inside of OR or CASE they are values, see `correlated`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from proxy.policy.model import UnitColumns, UnitVia
from proxy.sql.algebra.nodes import ColumnRef, Join, JoinKind, Scalar, is_null, is_present
from proxy.sql.algebra.rows import Rows
from proxy.sql.binding.binder import Binder, Bound
from proxy.sql.syntax.refusal import only, refuse


@dataclass(frozen=True, slots=True)
class Membership:
    """A condition with a sub-query. left: what is compared with the sub-query's columns, nothing for EXISTS."""

    node: exp.Expression
    query: exp.Select
    left: tuple[exp.Expression, ...]
    is_negated: bool


def conditions(where: exp.Expression | None) -> tuple[exp.Expression, ...]:
    """The parts of a WHERE clause that AND combines, in order."""
    if where is None:
        return ()
    inner = where.this if isinstance(where, (exp.Where, exp.Paren)) else where
    if isinstance(inner, exp.And):
        return (*conditions(inner.this), *conditions(inner.expression))
    return conditions(inner) if isinstance(inner, exp.Paren) else (inner,)


def membership(condition: exp.Expression) -> Membership | None:
    """What a condition asks of a sub-query, or None if it is another one."""
    node, is_negated = condition, False
    while isinstance(node, (exp.Not, exp.Paren)):
        is_negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.Exists):
        query, left = node.this, ()
    elif (compared := _compared_with(node)) is not None:
        query, left = compared, tuple(node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this])
        is_negated ^= isinstance(node, exp.NEQ)
    else:
        return None
    while isinstance(query, exp.Subquery) and not any(v for k, v in query.args.items() if k != "this"):
        query = query.this
    if not isinstance(query, exp.Select) or one_row(query) is not None or (left and constants_of(query) is not None):
        return None
    return Membership(node, query, left, is_negated)


def one_row(query: exp.Expr) -> exp.Select | None:
    """A SELECT of no table, whose one row is there if its WHERE holds; None for any other query."""
    plain = query.unnest()
    if not isinstance(plain, exp.Select) or not {k for k, v in plain.args.items() if v} <= {"expressions", "where"}:
        return None
    makes_rows = any(
        isinstance(item.unalias(), (exp.Explode, exp.ExplodingGenerateSeries)) or item.find(exp.AggFunc, exp.Query)
        for item in plain.expressions
    )
    return None if makes_rows else plain


def constants_of(query: exp.Expr) -> exp.Expression | None:
    """What SELECT unnest(...), SELECT * FROM unnest(...) or SELECT generate_series(...) gives row by row; else None."""
    if not isinstance(query, exp.Select) or len(query.expressions) != 1:
        return None
    item, source = query.expressions[0].unalias(), query.args.get("from_")
    if source is None:
        only(query, "expressions")
        return item if isinstance(item, (exp.Explode, exp.ExplodingGenerateSeries)) else None
    if not isinstance(source.this, exp.Unnest) or not isinstance(item, (exp.Star, exp.Column)):
        return None
    only(query, "expressions", "from_")
    only(source.this, "expressions", "alias")
    return source.this


def whole_numbers(series: exp.Expression) -> range:
    """What generate_series(1, 5) gives, if its words are whole numbers; nothing for all else."""
    only(series, "start", "end", "step")
    written = [series.args[name] for name in ("start", "end", "step") if series.args.get(name) is not None]
    numbers = [found for node in written if (found := _whole(node)) is not None]
    if len(numbers) < max(2, len(written)) or 0 in numbers[2:] or max(map(abs, numbers)) >= 2**31:
        return range(0)
    first, last, step = (*numbers, 1)[:3]
    return range(first, last + (1 if step > 0 else -1), step)


def _whole(node: exp.Expr) -> int | None:
    number, sign = (node.this, -1) if isinstance(node, exp.Neg) else (node, 1)
    if not isinstance(number, exp.Literal) or number.args.get("is_string") or not str(number.this).isdigit():
        return None
    return sign * int(str(number.this))


def _compared_with(node: exp.Expression) -> exp.Expression | None:
    """The sub-query of x IN (...), which x = ANY (...) means too, and NOT of which x <> ALL (...) means."""
    match node:
        case exp.In():
            found = node.args.get("query")
        case (
            exp.EQ(expression=exp.Any(this=exp.Query() as found))
            | exp.NEQ(expression=exp.All(this=exp.Query() as found))
        ):
            pass
        case _:
            return None
    assert found is None or isinstance(found, exp.Expression)
    is_quantified = not isinstance(node, exp.In)
    return None if is_quantified and found is not None and found.unnest().args.get("from_") is None else found


def join_of(asked: Membership, rows: Rows, outer: Binder) -> Join:
    """EXISTS and IN as a join. rows: the sub-query's, by columns."""
    if rows.joins:
        raise refuse(asked.query, "a condition with a sub-query that has outer joins or sub-queries is not supported",
                     "Use inner joins in it, and AND for further conditions beside it.")  # fmt: skip
    kind = JoinKind.ANTI if asked.is_negated else JoinKind.SEMI
    return Join(kind, rows.scans, (*(equal for equal, _, _ in compared(asked, rows, outer)), *rows.where))


def among(query: exp.Intersect | exp.Except, left: Rows, right: Rows, binder: Binder) -> Rows:
    """The rows of one side of INTERSECT whose one column is in the other; of EXCEPT those whose column is not."""
    if right.joins:
        raise refuse(query, f"{query.key.upper()} of private rows with outer joins or sub-queries is not supported",
                     "Use inner joins in it.")  # fmt: skip
    ours, theirs = binder.united(query, [(rows.columns[0][1], query) for rows in (left, right)])
    kind = JoinKind.SEMI if isinstance(query, exp.Intersect) else JoinKind.ANTI
    met = Join(kind, right.scans, (binder.call(query, "=", ours, theirs), *right.where))
    return replace(left, joins=(*left.joins, met))


def null_joins(asked: Membership, rows: Rows, outer: Binder) -> tuple[Join, ...]:
    """NOT IN keeps nothing where the sub-query has a NULL: a join that looks for one, over scans of its own.

    A column in which a NULL would make a row nobody's has none: such rows do not exist.
    """
    found = [right for _, _, right in compared(asked, rows, outer) if not _is_owner(right, rows)]
    return tuple(Join(JoinKind.ANTI, rows.scans, (is_null(r), *rows.where)) for r in found)


def presence(asked: Membership, outer: Binder) -> tuple[Scalar, ...]:
    """NOT IN keeps no row whose own value is NULL."""
    bound = (outer.scalar(node) for node in asked.left)
    return tuple(is_present(left) for left in bound)


def _is_owner(scalar: Scalar, rows: Rows) -> bool:
    if not isinstance(scalar, ColumnRef):
        return False
    match next(s.table.ownership for s in rows.scans if s.number == scalar.scan):
        case UnitColumns(columns):
            return scalar.name in columns
        case UnitVia(on=on):
            return scalar.name == on
        case _:
            return False


def compared(asked: Membership, rows: Rows, outer: Binder) -> list[tuple[Scalar, Scalar, Scalar]]:
    """For each column of an IN: the equality and its two sides."""
    if not asked.left:
        return []
    only(asked.node, "this", "query", "expression")
    if len(asked.left) != len(rows.columns):
        raise refuse(asked.node, f"subquery has too {'few' if len(rows.columns) < len(asked.left) else 'many'} columns")
    found = []
    for node, (_, column) in zip(asked.left, rows.columns, strict=True):
        pair: list[tuple[Bound, exp.Expression]] = [(outer.bind(node), node), (column, asked.node)]
        left, right = outer.united(asked.node, pair)
        found.append((outer.call(asked.node, "=", left, right), left, right))
    return found


def is_single_row(select: exp.Select) -> bool:
    """Whether a SELECT gives one row always: it aggregates, and groups by nothing."""
    if any(select.args.get(part) is not None for part in ("group", "having", "distinct", "limit", "offset")):
        return False
    return bool(select.expressions) and any(_has_aggregate(item) for item in select.expressions)


def _has_aggregate(node: exp.Expression) -> bool:
    if isinstance(node, (exp.Query, exp.Window)):
        return False
    return isinstance(node, exp.AggFunc) or any(_has_aggregate(n) for n in node.iter_expressions())
