"""What does a public series stand for that private rows are LEFT JOINed to, as the days of a chart?

`generate_series(...) d LEFT JOIN orders o ON date_trunc('day', o.at) = d GROUP BY d` shows every day with what is known
of its orders. So these are aggregated by what is equated, and the series is joined with their groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import permutations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from proxy.sql.binding.output_names import output_name
from proxy.sql.binding.subqueries import conditions
from proxy.sql.query.free_names import columns_of
from proxy.sql.query.public_rows.lookups import GroupedSelect, aggregates_of, linked
from proxy.sql.query.public_rows.series import Series, series_of, span_of
from proxy.sql.query.split import BlockText
from proxy.sql.relations.scope import Catalog, Cte
from proxy.sql.render.dialect import quote
from proxy.sql.syntax.group_items import group_items
from proxy.sql.syntax.locate import TextSpan
from proxy.sql.syntax.names import identifier, table_name
from proxy.sql.syntax.outer import Edit, find_clauses, outermost, unused_name

_PARTS = frozenset(
    ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "kind", "with_")
)
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like, exp.ILike)
_STRICT = (exp.Column, exp.Literal, exp.Identifier, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Cast,
           exp.DataType, exp.Extract, exp.Var, exp.Interval, exp.Distinct, exp.Boolean)  # fmt: skip
_KINDS = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)


@dataclass(frozen=True, slots=True)
class _Spine:
    """A SELECT of a series and the private relation that is joined to it. is_ours: whether a column is the latter's.

    names: of the series' columns, and maybe others.
    """

    block: BlockText
    join: exp.Join
    series: Series | None
    names: Collection[str]
    is_ours: Callable[[exp.Column], bool]


def lift_spine(block: BlockText, source: str, catalog: Catalog) -> list[Edit]:
    """The edits that make the SELECT one over groups; none if it is another one. Raises Unsupported."""
    spine = _spine(block, catalog)
    if spine is None:
        return []
    select = block.select
    groups = GroupedSelect(block, source, unused_name(source, "each", block.span))
    joined = _joined(spine, groups)
    if joined is None or not _is_one_group(spine, joined.outer):
        return []
    parts = [*select.expressions, select.args.get("having"), select.args.get("order")]
    edits: list[Edit] = []
    for part in (p for p in parts if p is not None):
        found = _aggregates(part, spine)
        if found is None:
            return []
        edits += [groups.value(node, joined.times) for node in found]
    if not groups.values:
        return []
    clauses = find_clauses(select, block.span, block.tokens)
    names = {end: f" AS {quote(output_name(item, source))}"
             for end, item in zip(clauses.items, select.expressions, strict=True)
             if not isinstance(item, exp.Alias) and aggregates_of(item)}  # fmt: skip
    edits = [replace(e, text=e.text + names.pop(e.span.end, "")) for e in edits]
    edits += [Edit(TextSpan(end, end), name) for end, name in names.items()]
    on = " AND ".join((*joined.links, *joined.outside))
    return [*edits, Edit(joined.span, f" {groups.sql(joined.relation, joined.where)} AS {groups.name} ON {on} ")]


# --- what is joined ---------------------------------------------------------------------------------------


def _spine(block: BlockText, catalog: Catalog) -> _Spine | None:
    select = block.select
    joins, group = select.args.get("joins") or [], select.args.get("group")
    if len(joins) != 1 or group is None or any(v for n, v in select.args.items() if n not in _PARTS):
        return None
    first, join = select.args["from_"].this, joins[0]
    private, written = join.this, {n for n, v in join.args.items() if v}
    is_plain = written == {"this", "side", "on"} and not any(v for n, v in group.args.items() if n != "expressions")
    if not is_plain or str(join.args["side"]) != "LEFT" or not isinstance(private, (exp.Table, exp.Subquery)):
        return None
    if (isinstance(first, exp.Table) and not _is_made(first, block)) or _reads_private(first, block, catalog):
        return None
    alias = private.args.get("alias")
    name = identifier(private.this) if alias is None else identifier(alias.this)
    columns = columns_of(private, catalog, block.ctes)

    def is_ours(column: exp.Column) -> bool:
        prefix = identifier(column.args.get("table"))
        return prefix == name if prefix else columns is None or identifier(column.this) in columns

    where, names = select.args.get("where"), _names(first, block, catalog)
    if names is None or (where is not None and any(map(is_ours, where.find_all(exp.Column)))):
        return None
    return _Spine(block, join, series_of(first, block.ctes), names, is_ours)


def _names(first: exp.Expression, block: BlockText, catalog: Catalog) -> frozenset[str] | None:
    """Those of the series' columns, and maybe others; None: they cannot be known."""
    alias = first.args.get("alias")
    given = () if alias is None else (alias.this, *(alias.args.get("columns") or ()))
    own = frozenset(identifier(n) for n in given)
    is_named = isinstance(first, exp.Table) and isinstance(first.this, exp.Identifier)
    below = columns_of(first, catalog, block.ctes) if is_named or isinstance(first, exp.Subquery) else frozenset()
    return None if below is None else own | below


def _is_made(table: exp.Table, block: BlockText) -> bool:
    return not isinstance(table.this, exp.Identifier) or (
        table.args.get("db") is None and table_name(table) in block.ctes
    )


def _reads_private(node: exp.Expression, block: BlockText, catalog: Catalog) -> bool:
    for table in node.find_all(exp.Table):
        name = table_name(table, catalog.database)
        cte: Cte | None = block.ctes.get(name) if table.args.get("db") is None else None
        if cte is not None:
            around = BlockText(select=block.select, span=block.span, ctes=cte.visible, tokens=block.tokens)
            if _reads_private(cte.body, around, catalog):
                return True
        elif name in catalog.tables and not catalog.tables[name].is_public:
            return True
    return False


# --- how it is joined -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Range:
    """A time of the private rows, the column that its step begins with, and the conditions that say so."""

    series: Series
    moment: exp.Expr
    start: exp.Expr
    conditions: tuple[exp.Expression, exp.Expression]


@dataclass(frozen=True, slots=True)
class _Join:
    """relation, where: what is grouped. links, outside: conditions of the new join. outer: what the keys must equal.

    times: how often a sum is met in a group, as a factor.
    """

    relation: str
    where: tuple[str, ...]
    links: tuple[str, ...]
    outside: tuple[str, ...]
    outer: tuple[exp.Expr, ...]
    span: TextSpan
    times: str


def _joined(spine: _Spine, groups: GroupedSelect) -> _Join | None:
    parts = list(conditions(spine.join.args["on"]))
    where, links, outside, outer = list[str](), list[str](), list[str](), list[exp.Expr]()
    ranged = _range(parts, spine)
    if ranged is not None:
        parts = [p for p in parts if all(p is not q for q in ranged.conditions)]
        moment = groups.text_of(ranged.moment)
        links.append(f"{groups.key(ranged.series.start_of(moment))} = ({groups.text_of(ranged.start)})")
        outer.append(ranged.start)
        where += ranged.series.within_steps(moment)
    for part in parts:
        ours = [spine.is_ours(c) for c in part.find_all(exp.Column)]
        pair = linked(part, spine.is_ours)
        if pair is not None:
            inner, other = pair
            links.append(f"{groups.key(groups.text_of(inner))} = ({groups.text_of(other)})")
            outer.append(other)
            if spine.series is not None and isinstance(other, exp.Column):
                where += spine.series.within(groups.text_of(inner))
        elif part.find(exp.Query) is not None or (any(ours) and not all(ours)):
            return None
        else:
            (where if any(ours) else outside).append(f"({groups.text_of(part)})")
    if not links:
        return None
    words = outermost(groups.block.tokens)
    at = next(i for i, t in enumerate(words) if t.token_type is TokenType.JOIN)
    on = next(t for t in words[at:] if t.token_type is TokenType.ON)
    end = next(t.start for t in words[at:] if t.token_type in (TokenType.WHERE, TokenType.GROUP_BY))
    relation = groups.source[words[at].end + 1 : on.start]
    is_once = spine.series is not None and not spine.series.casts and any(isinstance(o, exp.Column) for o in outer)
    return _Join(
        relation, tuple(where), tuple(links), tuple(outside), tuple(outer), TextSpan(words[at].end + 1, end),
        "" if is_once else " * count(*)",
    )  # fmt: skip


def _is_one_group(spine: _Spine, outer: tuple[exp.Expr, ...]) -> bool:
    """Whether all rows of the series in one group look for the same private rows, and nothing else is grouped by."""
    select = spine.block.select
    items = {identifier(i.args["alias"]): i.this for i in select.expressions if isinstance(i, exp.Alias)}
    named = {name: item for name, item in items.items() if name not in spine.names}
    keys = [named.get(identifier(k.this), k) if _is_bare(k) else k for k in group_items(select)]
    if any(spine.is_ours(c) for k in keys for c in k.find_all(exp.Column)):
        return False
    same = {identifier(k.this) for k in keys if isinstance(k, exp.Column)}
    return all(o in keys or all(identifier(c.this) in same for c in o.find_all(exp.Column)) for o in outer)


def _is_bare(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column) and not node.args.get("table")


def _range(parts: list[exp.Expression], spine: _Spine) -> _Range | None:
    """x >= d AND x < d + step, where the series' rows are such steps apart."""
    step = None if spine.series is None else spine.series.step()
    if spine.series is None or step is None:
        return None
    for low, high in permutations(parts, 2):
        if not isinstance(low, exp.GTE) or not isinstance(high, exp.LT) or not isinstance(high.expression, exp.Add):
            continue
        moment, start, end = low.this, low.expression, high.expression
        is_range = moment == high.this and start == end.this and span_of(end.expression) == step
        are_columns = isinstance(moment, exp.Column) and isinstance(start, exp.Column)
        if is_range and are_columns and spine.is_ours(moment) and not spine.is_ours(start):
            return _Range(spine.series, moment, start, (low, high))
    return None


# --- what is aggregated -----------------------------------------------------------------------------------


def _aggregates(part: exp.Expr, spine: _Spine) -> list[exp.Expr] | None:
    """The aggregates of private rows in a part of a SELECT; None: one counts rows of the series, or more is read."""
    found: list[exp.Expr] = []

    def search(node: exp.Expr) -> bool:
        aggregates = aggregates_of(node) if not isinstance(node, exp.Column) else None
        if aggregates == [node]:
            found.append(node)
            return _is_nothing_without(node, spine)
        if isinstance(node, (exp.Query, exp.Window)) or (isinstance(node, exp.Column) and spine.is_ours(node)):
            return False
        return all(search(child) for child in node.iter_expressions())

    return found if search(part) else None


def _is_nothing_without(node: exp.Expr, spine: _Spine) -> bool:
    """Whether an aggregate is the same without a row whose private columns are missing."""
    where: exp.Expr | None = None
    if isinstance(node, exp.Filter):
        node, where = node.this, node.expression.this
    if where is not None and _fails(where, spine):
        return isinstance(node, _KINDS) and all(map(spine.is_ours, node.find_all(exp.Column)))
    return (
        where is None
        and isinstance(node, _KINDS)
        and isinstance(node.this, exp.Expr)
        and _is_missing(node.this, spine, node)
    )


def _is_missing(node: exp.Expr, spine: _Spine, of: exp.Expr) -> bool:
    columns = list(node.find_all(exp.Column))
    if not columns or not all(map(spine.is_ours, columns)):
        return False
    if isinstance(node, exp.Case) and node.this is None:
        default = node.args.get("default")
        is_none = default is None or isinstance(default, exp.Null)
        is_zero = isinstance(of, exp.Sum) and isinstance(default, exp.Literal) and str(default.this) == "0"
        return (is_none or is_zero) and all(_fails(i.this, spine) for i in node.args["ifs"])
    return all(isinstance(n, _STRICT) for n in node.walk())


def _fails(condition: exp.Expr, spine: _Spine) -> bool:
    """Whether a condition does not hold where the private columns are missing."""
    if isinstance(condition, (exp.And, exp.Or)):
        both = [_fails(side, spine) for side in (condition.this, condition.expression)]
        return any(both) if isinstance(condition, exp.And) else all(both)
    if isinstance(condition, exp.Paren):
        return _fails(condition.this, spine)
    columns = list(condition.find_all(exp.Column))
    parts = [condition.this, condition.args.get("expression"), condition.args.get("low"), condition.args.get("high")]
    read = [n for p in parts if isinstance(p, exp.Expr) for n in p.walk()]
    is_compared = isinstance(condition, _COMPARED) and condition.args.get("query") is None
    if not is_compared or not columns or not all(map(spine.is_ours, columns)):
        return False
    return bool(list(condition.this.find_all(exp.Column))) and all(isinstance(n, _STRICT) for n in read)
