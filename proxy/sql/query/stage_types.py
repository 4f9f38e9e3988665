"""Of which types is what a stage is worth, as far as that can be told without the front?

Told where a stage is one SELECT over private rows that shows keys and aggregates as they are, or computes with numbers.
Else it is PostgreSQL's to say.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.sql.binding.aggregates.aggregates import is_aggregate_call
from proxy.sql.query.block import BoundBlock
from proxy.sql.query.split import Split
from proxy.sql.query.stages import StageText
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.names import identifier, table_name
from proxy.sql.syntax.parse import parse
from proxy.sql.syntax.prepared import spelled
from proxy.sqltypes import Family, SqlType

#: A value of each family, of which type is not said.
_SOME = {Family.BOOLEAN: "true", Family.NUMBER: "1", Family.TEXT: "", Family.TIME: "2020-01-01"}
#: Values that a stage might have, if its type cannot be told.
STAND_INS = ("NULL", "1::integer", "1::numeric", "''::text", "date '2020-01-01'", "timestamp '2020-01-01'", "true")
_NUMBERS = ("1::numeric", "1::integer")


def stand_ins(query: Split, blocks: tuple[BoundBlock, ...], columns: int) -> tuple[tuple[str, ...], ...]:
    """What the values of a stage might be, of each of its columns. query, blocks: its statement, and what it reads."""
    types = _choices(query, blocks)
    return types if len(types) == columns else (STAND_INS,) * columns


def likely(stage: StageText, catalog: Catalog) -> tuple[str, ...]:
    """What a stage that reads public tables may be worth, in each of its columns, as far as that is easily told."""
    tree = parse(stage.text)
    select = next((s for s in tree.find_all(exp.Select) if not _shows_all(s)), None)
    found = [_likely(item.unalias(), select, catalog) for item in select.expressions] if select is not None else []
    return tuple(found) if len(found) == stage.columns else STAND_INS[:1] * stage.columns


def _likely(item: exp.Expr, select: exp.Select, catalog: Catalog) -> str:
    column = item.this if isinstance(item, (exp.Min, exp.Max)) else item
    if not isinstance(column, exp.Column):
        return STAND_INS[1] if _is_sum(item) else STAND_INS[0]
    tables = (catalog.tables.get(table_name(t, catalog.database)) for t in select.find_all(exp.Table))
    named = [c for t in tables if t is not None and (c := t.column(identifier(column.this))) is not None]
    return _of(named[0].type)[0] if named else STAND_INS[0]


def _choices(query: Split, blocks: tuple[BoundBlock, ...]) -> tuple[tuple[str, ...], ...]:
    if len(blocks) != 1:
        return ()
    block = query.blocks[0].select
    if not all(_shows_all(s) for s in query.root.find_all(exp.Select) if s is not block):
        return ()
    items = [item.unalias() for item in block.expressions]
    plain = [item for item in items if _is_plain(item)]
    if len({item.sql() for item in plain}) < len(plain) or not all(item in plain or _is_sum(item) for item in items):
        return ()
    released = iter(column.type for column in blocks[0].columns)
    if len(plain) < len(items):
        return tuple(_NUMBERS if _is_sum(item) else STAND_INS for item in items)
    return tuple(_of(next(released)) for _ in items)


def _shows_all(select: exp.Select) -> bool:
    """Whether a SELECT around another shows its columns as they are."""
    only = select.expressions[0]
    return len(select.expressions) == 1 and isinstance(only, (exp.Star, exp.Subquery)) and not select.args.get("joins")


def _of(kind: SqlType) -> tuple[str, ...]:
    """Values of a type. Where one is of use NULL is too, rarely the other way round; which text is, nobody knows."""
    some = _SOME.get(kind.family)
    if some is None:
        return STAND_INS[:1]
    return (spelled(some, kind.pg_name), *(STAND_INS[:1] if kind.family is Family.TEXT else ()))


def _is_plain(item: exp.Expr) -> bool:
    """Whether it is shown as it was released."""
    return isinstance(item, exp.Column) or is_aggregate_call(item.this if isinstance(item, exp.Filter) else item)


def _is_sum(item: exp.Expr) -> bool:
    """Whether it can only be a number: arithmetic of averages and counts with numbers."""
    match item:
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _is_sum(item.left) and _is_sum(item.right)
        case exp.Neg() | exp.Paren():
            return _is_sum(item.this)
        case exp.Literal():
            return not item.is_string
        case _:
            return isinstance(item, (exp.Count, exp.Avg, exp.Sum))
