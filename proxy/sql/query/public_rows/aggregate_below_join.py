"""What does an aggregate over private rows stand for that names public rows around it, or joins them to a series?

Asked of each public row it is the group of that row: `(SELECT count(*) FROM orders o WHERE o.store_id = s.store_id)` is
one number of `SELECT o.store_id, count(*) FROM orders o GROUP BY o.store_id`. So the grouped SELECT is written in its
place, as the client could have written it, and the public rows look their groups up above the line. See `spines`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from proxy.errors import HushError
from proxy.sql.binding.output_names import output_name
from proxy.sql.binding.subqueries import conditions, is_single_row
from proxy.sql.query.free_names import is_outside
from proxy.sql.query.public_rows.aggregate_below_series import lift_spine
from proxy.sql.query.public_rows.lookups import KEY, VALUE, GroupedSelect, aggregates_of, linked
from proxy.sql.query.split import BlockText, Split, split
from proxy.sql.relations.scope import Catalog
from proxy.sql.render.dialect import quote
from proxy.sql.syntax.locate import TextSpan
from proxy.sql.syntax.outer import Edit, find_clauses, outermost, unused_name
from proxy.sql.syntax.parse import Statement, split_statements
from proxy.sql.syntax.views import Expanded

_ONE_ROW = frozenset(("expressions", "from_", "joins", "where", "kind"))


def split_lifted(statement: Statement, catalog: Catalog, system: frozenset[str]) -> tuple[Split, Expanded]:
    """A statement cut at the noise line, with such aggregates as groups, and its text then. Raises HushError."""
    cut, same = split(statement, catalog, system), Expanded(statement)
    try:
        found = lift(cut, catalog)
        if not found.edits:
            return cut, same
        lifted = split(found.statement, catalog, system)
    except HushError:
        return cut, same  # what is wrong is said of the statement as the client wrote it
    return replace(lifted, feeds_aggregation=cut.feeds_aggregation), found


def lift(cut: Split, catalog: Catalog) -> Expanded:
    """The statement with such aggregates as groups; without edits if there are none. Raises Unsupported."""
    statement = Statement(cut.text, 0, cut.tokens)
    if any(name in cut.text.lower() for name in (KEY, VALUE)):
        return Expanded(statement)
    inner = {b.span for block in cut.blocks for b in block.inner}
    found: list[Edit] = []
    for block in (b for b in cut.blocks if b.span not in inner):
        found += _lift_value(block, cut.text, catalog) or lift_spine(block, cut.text, catalog)
    if not found:
        return Expanded(statement)
    found.sort(key=lambda e: e.span.start)
    (whole,) = split_statements(_replaced(cut.text, TextSpan(0, len(cut.text)), found))
    edits = ((e.span.start, e.span.end, len(e.text) - (e.span.end - e.span.start)) for e in found)
    return Expanded(whole, tuple(edits))


def _lift_value(block: BlockText, source: str, catalog: Catalog) -> list[Edit]:
    """A sub-query of one value, correlated by equality."""
    select = block.select
    if not _is_value(select):
        return []
    outside = is_outside(select, catalog, block.ctes)
    parts = conditions(select.args.get("where"))
    correlated = [p for p in parts if any(map(outside, p.find_all(exp.Column)))]
    links = [linked(p, lambda c: not outside(c)) for p in correlated]
    elsewhere = [c for name in ("expressions", "joins", "from_") for n in _nodes(select.args.get(name))
                 for c in n.find_all(exp.Column)]  # fmt: skip
    item = select.expressions[0]
    aggregates = aggregates_of(item.unalias())
    if not links or None in links or not aggregates or any(map(outside, elsewhere)):
        return []
    groups = GroupedSelect(block, source, unused_name(source, "each", block.span))
    edits = [groups.value(node) for node in aggregates]
    equal = [f"{groups.key(groups.text_of(i))} = ({groups.text_of(o)})" for i, o in (k for k in links if k)]
    where = [groups.text_of(p) for p in parts if all(p is not q for q in correlated)]
    shown = _replaced(source, find_clauses(select, block.span, block.tokens).selected, edits)
    named = "" if isinstance(item, exp.Alias) else f" AS {quote(output_name(item, source))} "
    words = outermost(block.tokens)
    start = next(t.end for t in words if t.token_type is TokenType.FROM) + 1
    relation = source[start : next(t.start for t in words if t.token_type is TokenType.WHERE)]
    text = f"{shown}{named} FROM {groups.sql(relation, where)} AS {groups.name} WHERE {' AND '.join(equal)}"
    return [Edit(block.span, text)]


def _is_value(select: exp.Select) -> bool:
    """Whether a SELECT is a sub-query of one value and made of plain parts."""
    around = select.parent
    if not isinstance(around, exp.Subquery) or isinstance(around.parent, (exp.From, exp.Join, exp.Lateral)):
        return False
    is_plain = not any(v for name, v in select.args.items() if name not in _ONE_ROW)
    return is_plain and is_single_row(select) and len(select.expressions) == 1


def _nodes(part: object) -> list[exp.Expr]:
    return [n for n in (part if isinstance(part, list) else [part]) if isinstance(n, exp.Expr)]


def _replaced(source: str, span: TextSpan, edits: Sequence[Edit]) -> str:
    """A piece of the statement with edits made."""
    text, position = "", span.start
    for edit in sorted(edits, key=lambda e: e.span.start):
        text += source[position : edit.span.start] + edit.text
        position = edit.span.end
    return text + source[position : span.end]
