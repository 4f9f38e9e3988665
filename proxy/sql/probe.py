"""Is a SELECT of private rows only a question about column types?

Tools learn columns from `SELECT * FROM t LIMIT 0`, `LIMIT 1` or `WHERE 1=0`. Such a statement is
answered without rows, by putting an empty relation in the place of every private table. One whose
result would not be empty then is left alone: an answer computed from empty tables would be false.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from proxy.policy.model import Table
from proxy.sql.locate import TextSpan
from proxy.sql.names import table_name
from proxy.sql.parse import Statement, parse
from proxy.sql.scope import Catalog
from proxy.sql.split import is_aggregate


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
    if not isinstance(tree, exp.Select):
        return None
    if not _asks_no_rows(tree) and not ((allow_all or _limit(tree) == "1") and _shows_rows(tree, catalog)):
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
    """Whether the result has no rows, whatever the tables hold."""
    where = select.args.get("where")
    return _limit(select) == "0" or (where is not None and _is_false(where.this))


def _limit(select: exp.Select) -> str:
    """The constant of LIMIT or FETCH, "" for none."""
    limit = select.args.get("limit")
    if limit is None:
        return ""
    count = limit.args.get("expression") or limit.args.get("count")
    return str(count.this) if isinstance(count, exp.Literal) else ""


def _shows_rows(select: exp.Select, catalog: Catalog) -> bool:
    """Whether each row of the result stands for a private row: without those it is empty and says nothing false."""
    return _row_selects(select, catalog) == len(list(select.find_all(exp.Select)))


def _row_selects(select: exp.Select, catalog: Catalog) -> int:
    """How many SELECTs pass on private rows, one inside the FROM clause of the other; 0 when one does not."""
    joins = select.args.get("joins") or ()
    clause = select.args.get("from_")
    if clause is None or any(j.args.get("side") for j in joins) or is_aggregate(select):
        return 0
    sources = [clause.this, *(j.this for j in joins)]
    if len(sources) == 1 and isinstance(clause.this, exp.Subquery) and isinstance(clause.this.this, exp.Select):
        inner = _row_selects(clause.this.this, catalog)
        return inner + 1 if inner else 0
    tables = [catalog.tables.get(table_name(s)) for s in sources if isinstance(s, exp.Table)]
    return 1 if any(t is not None and not t.is_public for t in tables) else 0


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
