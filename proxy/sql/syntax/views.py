"""What does a statement say with the session's views written out?

A view over private tables is a macro: its SELECT, as PostgreSQL keeps it, takes the place of its name wherever a table
may stand. Later stages see sub-selects only, and positions in the longer text are translated back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from proxy.errors import Unsupported
from proxy.sql.render.dialect import quote
from proxy.sql.syntax.names import fold, identifier
from proxy.sql.syntax.parse import NO_STATEMENT, Statement, parse, position_of, split_statements
from proxy.sql.syntax.refusal import refuse

TEMPORARY_SCHEMA = "pg_temp"
_MOST_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class Expanded:
    """A statement without views. edits: where each stood in the text before, and how much longer it became."""

    statement: Statement
    edits: tuple[tuple[int, int, int], ...] = ()

    def original(self, position: int) -> int:
        """The place in the text before that a 1-based position stands for; within a view, that of its name."""
        offset, grown = position - 1, 0
        for start, end, growth in self.edits:
            if offset < start + grown:
                break
            if offset < end + grown + growth:
                return start + 1
            grown += growth
        return offset - grown + 1


#: Nothing was written out; positions stay.
NOT_EXPANDED = Expanded(NO_STATEMENT)


def expand(statement: Statement, views: Mapping[str, str]) -> Expanded:
    """Write out each view, and the views it is made of. Raises Unsupported."""
    return _expand(statement, views, {})


def _expand(statement: Statement, views: Mapping[str, str], bodies: dict[str, str]) -> Expanded:
    """bodies: the SELECTs that were written out already, so that each is only once."""
    if not any(t.text in views or fold(t.text) in views for t in statement.tokens):
        return Expanded(statement)
    tree = parse(statement.text)
    found = [n for n in tree.find_all(exp.Table) if _is_view(n, views)]
    edits: list[tuple[int, int, int]] = []
    text, position = "", 0
    for node in sorted(found, key=position_of):
        first = node.args.get("db") or node.this
        start, end = first.meta.get("start"), node.this.meta.get("end")
        if not isinstance(start, int) or not isinstance(end, int) or node.args.get("only"):
            raise refuse(node, "this reference to a view is not understood")
        name = identifier(node.this)
        alias = f" AS {quote(name)}" if node.args.get("alias") is None else ""
        if name not in bodies:
            others = {n: body for n, body in views.items() if n != name}  # none is made of itself
            bodies[name] = _expand(split_statements(views[name])[0], others, bodies).statement.text
        body = bodies[name]
        _check_names(node, body)
        written = f"({body}){alias}"
        edits.append((start, end + 1, len(written) - (end + 1 - start)))
        text += statement.text[position:start] + written
        position = end + 1
        _check_length(text)
    (whole,) = split_statements(text + statement.text[position:])
    return Expanded(whole, tuple(edits))


def _is_view(node: exp.Table, views: Mapping[str, str]) -> bool:
    if node.args.get("catalog") is not None or identifier(node.this) not in views:
        return False
    schema = identifier(node.args.get("db"))
    return schema == TEMPORARY_SCHEMA or (schema == "" and identifier(node.this) not in _declared_around(node))


def _declared_around(node: exp.Expression) -> frozenset[str]:
    """The WITH queries that a name at this place may mean: of a WITH clause around it, those before its own."""
    found: set[str] = set()
    child: exp.Expr = node
    while (parent := child.parent) is not None:
        clause = parent if isinstance(parent, exp.With) else parent.args.get("with_")
        if clause is not None and child is not clause:
            is_within = parent is clause and not clause.args.get("recursive")
            found |= {_cte_name(c) for c in clause.expressions[: child.index if is_within else None]}
        child = parent
    return frozenset(found)


def _cte_name(cte: exp.Expression) -> str:
    return identifier(cte.args["alias"].this)


def _check_names(node: exp.Table, body: str) -> None:
    """What a view reads must not be taken for a WITH query of the statement around it. Raises Unsupported."""
    declared = _declared_around(node)
    if not declared:
        return
    for table in parse(body).find_all(exp.Table):
        if table.args.get("db") is None and identifier(table.this) in declared:
            name = identifier(table.this)
            raise refuse(node, f'this view reads "{name}", which is a WITH query here',
                         "Give the WITH query another name.")  # fmt: skip


def _check_length(text: str) -> None:
    if len(text) > _MOST_CHARS:
        raise Unsupported("the views of this statement are too long", hint="Use fewer views, or shorter ones.")
