"""Which groups and aggregates may a SELECT have whose outer join keeps rows of public tables?

No aggregate may count a row that is kept, so each must be the same without it. What is left of such a row is its group,
which follows from the public tables alone: after the noise, these cut the groups of the release down to their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from sqlglot import exp

from proxy.errors import Unsupported
from proxy.policy.model import Bounded, Column, Unknown
from proxy.sql.algebra.nodes import (
    Aggregate,
    AggregateKind,
    Call,
    ColumnRef,
    JoinKind,
    Literal,
    Null,
    Scalar,
    columns_of,
)
from proxy.sql.algebra.rows import KeptRows, Rows
from proxy.sql.binding.consulted import Consulted
from proxy.sql.conditions.on_null_row import is_never_true, without
from proxy.sql.functions.hazards import Operands
from proxy.sql.query.front.splice import array_type
from proxy.sql.relations.kept import INNER, KEEPS
from proxy.sql.render.dialect import quote
from proxy.sql.render.postgres.dialect import POSTGRES
from proxy.sql.render.renderer import Renderer
from proxy.sql.syntax.refusal import refuse
from proxy.sqltypes import SqlType

_COUNT = "Whether a row is kept is private. Count what the private row has: count(o.order_id), sum(o.amount)."


_LONGEST_HINT = 300


def _joined(select: exp.Expression) -> str:
    """The SELECT with JOIN in place of LEFT and RIGHT JOIN."""
    found = select.copy()
    for join in found.args.get("joins") or ():
        join.set("side", None)
    text = found.sql(dialect="postgres")
    shown = f"Groups of known values are shown with JOIN, too: {text}." if len(text) <= _LONGEST_HINT else ""
    return shown or INNER


def check_keys(
    kept: KeptRows, private: Collection[int], keys: Sequence[Scalar], sets: Sequence[object], node: exp.Expression
) -> None:
    """Groups must be those of public rows, or of private rows beside them. private: their scans. Raises Unsupported."""
    if kept.rows.has_units or kept.rows.joins:
        raise refuse(node, f"{KEEPS} is not supported with further joins of this kind", INNER)
    if sets:
        raise refuse(node, f"{KEEPS} is not supported with grouping sets over private rows", _joined(node))
    for key in keys:
        if not _is_public(kept, key) and not all(c.scan in private for c in columns_of(key)):
            raise refuse(node, f"{KEEPS} is not supported with groups by columns of other tables in one expression",
                         "Group by columns of the public table, or of the private one.")  # fmt: skip
        if not _is_public(kept, key) and not isinstance(without(key, lambda s: s not in kept.scans), Null):
            raise refuse(node, f"{KEEPS} is not supported with groups that they are in without a private row",
                         "Let what is grouped by be NULL where the private row is missing, or use JOIN.")  # fmt: skip
    for key in (k for k in keys if _is_public(kept, k)):
        if not isinstance(key, ColumnRef) and (kept.is_full or key.type is SqlType.TIMESTAMPTZ):
            raise refuse(node, f"{KEEPS} is not supported with groups by this expression", "Group by plain columns.")


def _is_public(kept: KeptRows, key: Scalar) -> bool:
    return all(c.scan in kept.scans for c in columns_of(key))


def check_aggregate(kept: KeptRows, aggregate: Aggregate, node: exp.Expr) -> None:
    """An aggregate must be the same without the rows that are kept. Raises Unsupported."""

    def is_missing(scan: int) -> bool:
        return scan not in kept.scans

    found = [without(a, is_missing) for a in aggregate.arguments]
    is_nothing = any(isinstance(f, Null) for f in found) or (
        aggregate.kind is AggregateKind.SUM and isinstance(found[0], Literal) and found[0].value == 0
    )
    if not is_nothing and not is_never_true(aggregate.where, is_missing):
        raise refuse(node, f"{KEEPS} is not supported with an aggregate that counts them", _COUNT)


def groups_of(
    kept: KeptRows, relation: str, keys: Mapping[str, Scalar], constants: Consulted, node: exp.Expression
) -> str:
    """The rows of an injected relation whose groups are those of public rows. keys: by the name of their column.

    relation: with its alias, which the result has too. Raises Unsupported.
    """
    public = {name: key for name, key in keys.items() if _is_public(kept, key)}
    try:
        return _those_of((kept,), relation, public, constants)
    except Unsupported:
        raise refuse(node, f"{KEEPS} is not supported with this function of the public table",
                     "Compute it in a column of the public table, or use JOIN.") from None  # fmt: skip


def combinations_of(rows: Rows, relation: str, keys: Mapping[str, Scalar], constants: Consulted) -> str:
    """The same where nothing is kept: of several columns of one public table, the combinations that it has.

    Of one column between bounds, the values that it has: of those the policy lists, each is shown.
    """
    inner = [KeptRows(Rows(scans=(s,), columns=())) for s in rows.scans if s.table.is_public]
    outer = [KeptRows(Rows(scans=j.scans, columns=()), is_full=True) for j in rows.joins
             if j.kind is JoinKind.LEFT and all(s.table.is_public for s in j.scans)]  # fmt: skip
    looked_up = tuple(k for k in (*inner, *outer) if len(of := _columns_of(k, keys)) > 1 or _is_bounded(k, of))
    return _those_of(looked_up, relation, keys, constants, is_plain=True)


def _is_bounded(kept: KeptRows, keys: Mapping[str, Scalar]) -> bool:
    found = {(k.scan, k.name) for k in keys.values() if isinstance(k, ColumnRef)}
    columns = (c for s in kept.rows.scans for c in s.table.columns if (s.number, c.name) in found)
    return any(isinstance(c.domain, Bounded) for c in columns)


def _columns_of(kept: KeptRows, keys: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
    return {n: k for n, k in keys.items() if isinstance(k, ColumnRef) and k.scan in kept.scans}


def _those_of(
    public: Sequence[KeptRows],
    relation: str,
    keys: Mapping[str, Scalar],
    constants: Consulted,
    *,
    is_plain: bool = False,
) -> str:
    """is_plain: only columns of the public rows are keys that are looked up."""
    alias = relation.rsplit(" AS ", 1)[1]
    asked = [(k, _columns_of(k, keys) if is_plain else keys) for k in public]
    found = [_is_there(kept, of, alias, constants) for kept, of in asked if of]
    return f"(SELECT * FROM {relation} WHERE {' AND '.join(found)}) AS {alias}" if found else relation


def _nothing_known(call: Call) -> Operands:
    return Operands(tuple(a.type for a in call.args), (Unknown(),) * len(call.args), Unknown())


def _is_there(kept: KeptRows, keys: Mapping[str, Scalar], alias: str, constants: Consulted) -> str:
    """Whether a public row has the keys of a group."""
    columns = {(s.number, c.name): c for s in kept.rows.scans for c in s.table.columns}

    def column(reference: ColumnRef) -> Column:
        return columns[reference.scan, reference.name]

    renderer = Renderer(column, _nothing_known, str(constants.zone), POSTGRES)
    asked = [f"({renderer.condition(c)})" for c in kept.rows.where]
    same = [f"{_spelled(k, renderer, column)} IS NOT DISTINCT FROM {alias}.{quote(n)}" for n, k in keys.items()]
    tables = ", ".join(f"public.{quote(s.table.name)} AS s{s.number}" for s in kept.rows.scans)
    found = f"EXISTS (SELECT 1 FROM {tables} WHERE {' AND '.join((*asked, *same))})"
    missing = f" OR ({' AND '.join(f'{alias}.{quote(name)} IS NULL' for name in keys)})" if kept.is_full else ""
    return f"({found}{missing})"


def _spelled(key: Scalar, renderer: Renderer, column: Callable[[ColumnRef], Column]) -> str:
    """A key as the injected relation has it."""
    if not isinstance(key, ColumnRef):
        return f"({renderer.key(key)})::{array_type(key.type).removesuffix('[]')}"
    text = f"s{key.scan}.{quote(key.name)}"
    return renderer.dialect.lower(text) if column(key).case_blind else text
