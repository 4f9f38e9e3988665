"""What is said of a column that the rows of a private SELECT do not have?

Through the wire PostgreSQL has read the statement before and says most of it in its own words. What it knows and the
algebra does not (outer rows, whole rows, system columns) is refused; all else is said as PostgreSQL says it, for those
who plan without a server.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

from sqlglot import exp

from proxy.errors import HushError, UndefinedName, Unsupported
from proxy.sql.syntax.names import identifier, table_name
from proxy.sql.syntax.parse import Statement, parse, position_of
from proxy.sql.syntax.refusal import refuse

_NOT_AN_EXPRESSION = (exp.From, exp.Join, exp.CTE, exp.Subquery, exp.SetOperation, type(None))
_SYSTEM_COLUMNS = frozenset(("ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"))


def unknown_column(node: exp.Column, prefix: str, name: str, columns: Mapping[str, Iterable[str]]) -> HushError:
    """The error for a column that was not found. columns: those of the FROM clause, by alias."""
    if _may_be_outer(node):
        return refuse(node, f'column "{name}" is not one of the rows this aggregate reads',
                      "A sub-query over private rows may only say of public rows around it that a column equals theirs:"
                      " (SELECT count(*) FROM orders o WHERE o.store_id = s.store_id).")  # fmt: skip
    if not prefix and name in columns:
        return refuse(node, f'the whole row "{name}" is not supported over private rows', "Name its columns.")
    if name in _SYSTEM_COLUMNS:
        return refuse(node, f'the system column "{name}" is not supported over private rows',
                      "Rows of private tables have no place that may be told. Count them: count(*).")  # fmt: skip
    if prefix and prefix not in columns:
        return UndefinedName(f'missing FROM-clause entry for table "{prefix}"', position=position_of(node),
                             hint=f"The tables of this SELECT are called {', '.join(columns)}.")  # fmt: skip
    spelled = f"{prefix}.{name}" if prefix else f'"{name}"'
    return UndefinedName(f"column {spelled} does not exist", hint=_advice(prefix, name, columns),
                         position=position_of(node))  # fmt: skip


def check_tables(statement: Statement, tables: Collection[str]) -> None:
    """A table that is not there and almost called like one that is. Raises UndefinedName."""
    try:
        tree = parse(statement.text)
    except Unsupported:
        return
    declared = {identifier(cte.args["alias"].this) for cte in tree.find_all(exp.CTE)}
    for node in tree.find_all(exp.Table):
        name = table_name(node)
        similar = get_close_matches(name, tables, 1) if name not in (*declared, *tables) else []
        if similar:
            raise UndefinedName(f'relation "{name}" does not exist', position=position_of(node),
                                hint=f'Perhaps you meant the table "{similar[0]}".')  # fmt: skip


def _advice(prefix: str, name: str, columns: Mapping[str, Iterable[str]]) -> str:
    known = {f"{a}.{c}": c for a, listed in columns.items() if prefix in ("", a) for c in listed}
    similar = get_close_matches(name, known.values(), 1)
    if similar:
        return f'Perhaps you meant to reference the column "{next(k for k in known if known[k] == similar[0])}".'
    return f"The columns are {', '.join(known)}."


def _may_be_outer(node: exp.Expr) -> bool:
    """Whether a query around the column's own stands inside an expression, and may so see the rows of another."""
    query = node.find_ancestor(exp.Query)
    while query is not None:
        if not isinstance(query.parent, _NOT_AN_EXPRESSION):
            return True
        query = query.find_ancestor(exp.Query)
    return False
