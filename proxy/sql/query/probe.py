"""Does a statement ask for no private rows, only for the shape of its answer?

Tools learn columns from `SELECT * FROM t LIMIT 0`, `LIMIT 1` or `WHERE 1=0`, of aggregates too. Such a statement is
answered from an empty relation in the place of every private table, free of charge. One whose answer the rows could
change is left alone: an answer computed from empty tables would be false. Where the policy says so, a statement that
only shows rows is answered from made-up ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot import exp

from proxy.policy.model import RawSelect, Table
from proxy.sql.query.inner_queries import is_aggregate
from proxy.sql.query.plain_rows import shows_plain_rows
from proxy.sql.query.row_functions import check_names
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.locate import TextSpan
from proxy.sql.syntax.names import identifier, table_name
from proxy.sql.syntax.parse import Statement, parse


@dataclass(frozen=True, slots=True)
class EmptyTable:
    """A reference to a private table that is answered with no rows."""

    table: Table
    span: TextSpan
    needs_alias: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """A statement whose private tables are all empty relations. hides_rows: rows were asked for that are not shown.

    is_made_up: made-up rows stand in these relations. schemas: where columns name the schema of their table, which the
    relation in its place has none of.
    """

    text: str
    tables: tuple[EmptyTable, ...]
    hides_rows: bool
    is_made_up: bool = False
    schemas: tuple[TextSpan, ...] = ()


def probe(statement: Statement, catalog: Catalog, *, may_hide: bool, raw: RawSelect) -> Probe | None:
    """The probe, or None when the statement asks for more. may_hide: it is refused only because it shows rows.

    raw: what the policy answers a SELECT of rows with. Raises Unsupported for names that may be functions of a row.
    """
    tree = parse(statement.text)
    if is_without_rows(tree):
        return emptied(statement.text, tree, catalog)
    if may_hide and raw is RawSelect.MADE_UP and shows_plain_rows(tree, catalog):
        found = emptied(statement.text, tree, catalog)
        return None if found is None else replace(found, is_made_up=True)
    if not may_hide or not isinstance(tree, exp.Select) or not (raw is RawSelect.EMPTY or _limit(tree) == "1"):
        return None
    if not _shows_rows(tree, catalog):
        return None
    check_names(tree, catalog, statement.text)
    return emptied(statement.text, tree, catalog)


def emptied(text: str, tree: exp.Expression, catalog: Catalog) -> Probe | None:
    """The statement with an empty relation for each private table; None: they cannot be found in its text."""
    found = []
    for node in tree.find_all(exp.Table):
        table = catalog.tables.get(table_name(node, catalog.database))
        if table is None or table.is_public:
            continue
        first = node.args.get("catalog") or node.args.get("db") or node.this
        start, end = first.meta.get("start"), node.this.meta.get("end")
        if not isinstance(start, int) or not isinstance(end, int):
            return None
        found.append(EmptyTable(table, TextSpan(start, end + 1), node.args.get("alias") is None))
    hides_rows = not any(is_aggregate(s) for s in tree.find_all(exp.Select))
    return Probe(text, tuple(found), hides_rows, schemas=_schemas(tree, frozenset(e.table.name for e in found)))


def _schemas(tree: exp.Expression, names: frozenset[str]) -> tuple[TextSpan, ...]:
    """Where a column of one of these tables is written with the schema before the table's name."""
    found = []
    for column in tree.find_all(exp.Column):
        table, schema = column.args.get("table"), column.args.get("db")
        if table is not None and schema is not None and identifier(schema) == "public" and identifier(table) in names:
            first = column.args.get("catalog") or schema
            found.append(TextSpan(first.meta["start"], table.meta["start"]))
    return tuple(found)


def is_without_rows(query: exp.Expression) -> bool:
    """Whether no row of any table can change the answer, as its words alone show.

    It has no rows, or is one row of aggregates of nothing.
    """
    if _yields_nothing(query):
        return True
    if not isinstance(query, exp.Select) or query.args.get("group") is not None or not is_aggregate(query):
        return False
    above = [*query.expressions, query.args.get("having"), query.args.get("order")]
    return _reads_nothing(query) and not any(part is not None and part.find(exp.Query) for part in above)


def _yields_nothing(query: exp.Expression) -> bool:
    """Whether the result has no rows, whatever the tables hold."""
    if _limit(query) == "0":
        return True
    match query:
        case exp.Subquery():
            return _yields_nothing(query.this)
        case exp.Union():
            return _yields_nothing(query.this) and _yields_nothing(query.expression)
        case exp.Select():
            return _reads_nothing(query) and (not is_aggregate(query) or _has_plain_groups(query))
        case _:
            return False


def _reads_nothing(select: exp.Select) -> bool:
    """Whether no row passes its FROM and WHERE clauses."""
    where, clause = select.args.get("where"), select.args.get("from_")
    if where is not None and _is_false(where.this):
        return True
    if clause is None or select.args.get("joins") or select.args.get("laterals"):
        return False
    return isinstance(clause.this, exp.Subquery) and _yields_nothing(clause.this)


def _has_plain_groups(select: exp.Select) -> bool:
    """Whether no rows give no groups: GROUPING SETS, for one, has a row for all of them."""
    group = select.args.get("group")
    if group is None or any(value for name, value in group.args.items() if name != "expressions"):
        return False
    odd = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)
    return bool(group.expressions) and not any(isinstance(key, odd) for key in group.expressions)


def _limit(query: exp.Expression) -> str:
    """The constant of LIMIT or FETCH, "" for none."""
    limit = query.args.get("limit")
    if limit is None:
        return ""
    count = limit.args.get("expression") or limit.args.get("count")
    while isinstance(count, (exp.Cast, exp.Paren)):
        count = count.this
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
    tables = [catalog.tables.get(table_name(s, catalog.database)) for s in sources if isinstance(s, exp.Table)]
    return 1 if any(t is not None and not t.is_public for t in tables) else 0


def _is_false(node: exp.Expression) -> bool:
    """Whether a condition holds for no row: false or NULL."""
    match node:
        case exp.Paren():
            return _is_false(node.this)
        case exp.Boolean():
            return not node.this
        case exp.Null():
            return True
        case exp.Not():
            return isinstance(node.this.unnest(), exp.Boolean) and bool(node.this.unnest().this)
        case exp.And():
            return _is_false(node.this) or _is_false(node.expression)
        case exp.Or():
            return _is_false(node.this) and _is_false(node.expression)
        case exp.EQ():
            values = [_constant(n) for n in (node.this, node.expression)]
            return None not in values and len({type(v) for v in values}) == 1 and values[0] != values[1]
        case exp.NEQ():
            return _whole(node.this) is not None and _whole(node.this) == _whole(node.expression)
        case exp.GT() | exp.LT():
            pair = (node.this, node.expression) if isinstance(node, exp.GT) else (node.expression, node.this)
            left, right = map(_whole, pair)
            return left is not None and right is not None and left <= right
        case _:
            return False


def _constant(node: exp.Expression) -> Decimal | str | None:
    """The value of a constant, a number's whatever its spelling; None: it is something else."""
    if not isinstance(node, exp.Literal):
        return None
    return str(node.this) if node.is_string else Decimal(str(node.this))


def _whole(node: exp.Expression) -> int | None:
    """The value of a whole number; None: it is something else."""
    if not isinstance(node, exp.Literal) or node.is_string:  # the text of a tree is not made for nothing
        return None
    text = str(node.this)
    return int(text) if text.isdigit() else None
