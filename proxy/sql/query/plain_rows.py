"""Does a statement only show rows of tables, joined, filtered and sorted, each for itself?

Such a statement may be answered from made-up rows. Whatever could compute from several rows at once must never see
them, so the list of what it may hold is closed: one SELECT, tables of the policy, columns of these, and scalar
expressions.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from proxy.policy.model import Table
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.names import identifier, table_name

_CLAUSES = frozenset({"expressions", "from_", "joins", "where", "order", "limit", "offset"})
_OF_A_TABLE = frozenset({"this", "db", "catalog", "alias"})
_OF_AN_ALIAS = frozenset({"this"})
_OF_A_JOIN = frozenset({"this", "on", "using", "side", "kind", "method"})
_NODES = frozenset(
    {
        exp.Select, exp.From, exp.Join, exp.Table, exp.TableAlias, exp.Where, exp.Order, exp.Ordered, exp.Limit,
        exp.Offset, exp.Fetch, exp.LimitOptions, exp.Column, exp.Identifier, exp.Star, exp.Alias, exp.Paren,
        exp.Literal, exp.Boolean, exp.Null, exp.Parameter, exp.Placeholder, exp.Neg, exp.Tuple, exp.Array, exp.Any,
        exp.And, exp.Or, exp.Not, exp.Is, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ,
        exp.NullSafeNEQ, exp.Between, exp.In, exp.Like, exp.ILike, exp.Escape,
        exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe, exp.Case, exp.If, exp.Coalesce, exp.Nullif,
        exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Lower, exp.Upper, exp.Length, exp.Trim, exp.Substring,
        exp.Left, exp.Right, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var, exp.Extract,
        exp.TimestampTrunc, exp.CurrentDate, exp.CurrentTimestamp,
    }
)  # fmt: skip


def shows_plain_rows(tree: exp.Expression, catalog: Catalog) -> bool:
    """Whether the statement is one SELECT of rows of the policy's tables, some of them private, and nothing else.

    Claim: if it is, each row of its answer is a function of one row of each table of FROM.
    """
    if not isinstance(tree, exp.Select) or _has_others(tree, _CLAUSES) or tree.args.get("from_") is None:
        return False
    if any(type(node) not in _NODES for node in tree.walk()):
        return False
    if any(_has_others(join, _OF_A_JOIN) for join in tree.args.get("joins") or ()):
        return False
    sources = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or ())]
    tables = _tables(sources, catalog)
    if len(tables) < len(sources) or len(list(tree.find_all(exp.Table, exp.Select))) != len(sources) + 1:
        return False
    if all(t.is_public for t in tables.values()):
        return False
    labels = {identifier(item.args["alias"]) for item in tree.expressions if isinstance(item, exp.Alias)}
    return all(_is_known(column, tables, labels, catalog.database) for column in tree.find_all(exp.Column))


def _has_others(node: exp.Expression, names: frozenset[str]) -> bool:
    """Whether a node has other parts than these."""
    return any(value and name not in names for name, value in node.args.items())


def _tables(sources: list[exp.Expression], catalog: Catalog) -> dict[str, Table]:
    """The tables of FROM by the names they have in the statement; fewer if one is no table of the policy's."""
    found: dict[str, Table] = {}
    for source in sources:
        alias = source.args.get("alias")
        if not isinstance(source, exp.Table) or _has_others(source, _OF_A_TABLE):
            continue
        table = catalog.tables.get(table_name(source, catalog.database))
        if table is None or (alias is not None and _has_others(alias, _OF_AN_ALIAS)):
            continue
        found[table.name if alias is None else identifier(alias.this)] = table
    return found


def _is_known(column: exp.Column, tables: Mapping[str, Table], labels: set[str], database: str) -> bool:
    """Whether a column is one of its table's: of others, PostgreSQL may take `t.count` for count(t)."""
    if isinstance(column.this, exp.Star):
        return column.args.get("table") is None or identifier(column.args["table"]) in tables
    name, qualifier, schema = identifier(column.this), column.args.get("table"), column.args.get("db")
    if qualifier is None:
        return name in labels or any(_has(table, name) for table in tables.values())
    of, catalog = tables.get(identifier(qualifier)), column.args.get("catalog")
    is_here = (schema is None or identifier(schema) == "public") and (
        catalog is None or identifier(catalog) == database
    )
    return of is not None and is_here and _has(of, name)


def _has(table: Table, name: str) -> bool:
    column = table.column(name)
    return column is not None and not column.hidden
