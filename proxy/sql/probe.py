"""Is a SELECT of private rows only a question about column types?

Tools learn columns from `SELECT * FROM t LIMIT 0`, `LIMIT 1` or `WHERE 1=0`. Such a statement is
answered without rows, by putting an empty relation in the place of every private table.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from proxy.policy.model import Table
from proxy.sql.locate import TextSpan
from proxy.sql.parse import Statement, parse
from proxy.sql.scope import Catalog, table_name


@dataclass(frozen=True, slots=True)
class EmptyTable:
    """A reference to a private table that is answered with no rows."""

    table: Table
    span: TextSpan
    needs_alias: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """A statement whose private tables are all empty relations."""

    text: str
    tables: tuple[EmptyTable, ...]


def probe(statement: Statement, catalog: Catalog, *, allow_all: bool) -> Probe | None:
    """The probe, or None when the statement asks for rows. allow_all: the policy answers every raw SELECT empty."""
    tree = parse(statement.text)
    if not isinstance(tree, exp.Select) or not (allow_all or _asks_no_rows(tree)):
        return None
    found = []
    for node in tree.find_all(exp.Table):
        table = catalog.tables.get(table_name(node))
        if table is None or table.is_public:
            continue
        first = node.args.get("db") or node.this
        start, end = first.meta.get("start"), node.this.meta.get("end")
        if not isinstance(start, int) or not isinstance(end, int):
            return None
        found.append(EmptyTable(table, TextSpan(start, end + 1), node.args.get("alias") is None))
    return Probe(statement.text, tuple(found))


def _asks_no_rows(select: exp.Select) -> bool:
    limit = select.args.get("limit")
    if limit is not None and isinstance(limit.expression, exp.Literal) and str(limit.expression.this) in ("0", "1"):
        return True
    where = select.args.get("where")
    return where is not None and _is_false(where.this)


def _is_false(node: exp.Expression) -> bool:
    match node:
        case exp.Paren():
            return _is_false(node.this)
        case exp.Boolean():
            return not node.this
        case exp.And():
            return _is_false(node.this) or _is_false(node.expression)
        case exp.EQ():
            left, right = node.this, node.expression
            both = isinstance(left, exp.Literal) and isinstance(right, exp.Literal)
            return both and str(left.this) != str(right.this)
        case _:
            return False
