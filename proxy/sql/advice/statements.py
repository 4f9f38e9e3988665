"""Which statement can be sent in the place of one that private rows do not answer? With all names of the one that was.

A hint is left out where it would be long. That it is answered is looked at by `tests/unit/sql/test_instead.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from proxy.sql.syntax.group_items import group_items
from proxy.sql.syntax.names import identifier
from proxy.sqltypes import SqlType

_LONGEST = 300  # characters of a statement that a hint writes out
_MOST_PARTS = 200  # nodes of a statement that is looked at for it


def first_rows(
    select: exp.Select, on: Sequence[exp.Expression], type_of: Callable[[exp.Expression], SqlType], *, is_of_unit: bool
) -> str:
    """In the place of DISTINCT ON: of each unit in a sub-select, of all else the largest."""
    others = [item for item in map(_inner, select.expressions) if item not in on and not isinstance(item, exp.Star)]
    first = others[0] if others else None
    if is_of_unit:
        inner = _short(select)
        shown = "count(*)" if first is None else _middle(type_of(first), f"v.{_name(first)}")
        text = inner and f" Write SELECT {shown} FROM ({inner}) AS v."
        return f"One row of each unit is aggregated.{text}"
    largest = [*on, *(exp.Max(this=item.copy()) if _is_ordered(type_of(item)) else _different(item) for item in others)]
    text = _aggregated(select, largest if others else [*on, exp.Count(this=exp.Star())], on)
    return "Which row comes first is private." + (text and f" Write {text}.")


def tile_ends(node: exp.Expression, shares: str, ordered: str) -> str:
    """In the place of ntile(4) OVER (ORDER BY x): the ends of the tiles. "" where it would be long."""
    select, order = node.find_ancestor(exp.Select), node.args.get("order")
    if select is None or order is None or not _is_small(select):
        return ""
    percentiles = f"percentile_cont(ARRAY[{shares}]) WITHIN GROUP (ORDER BY {{}})"
    if select.args.get("group") is None:
        found = _aggregated(select, (exp.Star(),), ())
        return found and f"SELECT {percentiles.format(ordered)} {found.removeprefix('SELECT * ')}"
    keys = group_items(select)
    value = exp.alias_(order.expressions[0].this.copy(), "x")
    inner = _aggregated(select, [*keys, value], keys)
    return inner and f"SELECT {percentiles.format('v.x')} FROM ({inner}) AS v"


def windows(select: exp.Select, units: frozenset[str]) -> str:
    """In the place of a window function over rows that would be shown. units: names of columns that hold a unit."""
    window = select.find(exp.Window)
    if window is None or not _is_small(select):
        return ""
    parts, order = window.args.get("partition_by") or [], window.args.get("order")
    if any(isinstance(p, exp.Column) and identifier(p.this) in units for p in parts):
        inner = _aggregated(select, [exp.alias_(window.copy(), "x")], ())
        return inner and f"Write SELECT v.x, count(*) FROM ({inner}) AS v GROUP BY v.x, or avg(v.x) of numbers."
    if order is None:
        return ""
    key = order.expressions[0].this
    counted = exp.Count(this=exp.Star())
    running = exp.Window(this=exp.Sum(this=counted), order=exp.Order(expressions=[exp.Ordered(this=key.copy())]))
    found = _aggregated(select, [key, counted.copy(), running], [key])
    return found and f"Places follow from numbers of rows: {found}."


def unions(query: exp.SetOperation) -> str:
    """In the place of UNION of private rows."""
    sides = [query.this.unnest(), query.expression.unnest()]
    is_plain = all(isinstance(s, exp.Select) and len(s.expressions) == 1 for s in sides)
    if not is_plain or not _is_small(query):
        return ""
    first = sides[0].copy()
    first.set("expressions", [exp.alias_(_inner(first.expressions[0]), "x")])
    both = f"{_sql(first)} UNION ALL {_sql(sides[1])}"
    text = f"Write SELECT v.x, count(*) FROM ({both}) AS v GROUP BY v.x."
    return text if len(text) <= _LONGEST else ""


# --- parts ----------------------------------------------------------------------------------------------------


def _aggregated(select: exp.Select, shown: Sequence[exp.Expr], group: Sequence[exp.Expr]) -> str:
    """The rows of a SELECT, with other things shown of them; "" if that is long."""
    made = exp.Select(expressions=[item.copy() for item in shown])
    for name in ("from_", "joins", "where"):
        found = select.args.get(name)
        if found:
            made.set(name, [f.copy() for f in found] if isinstance(found, list) else found.copy())
    if group:
        made.set("group", exp.Group(expressions=[item.copy() for item in group]))
    return _short(made)


def _short(node: exp.Expression) -> str:
    text = _sql(node) if _is_small(node) else ""
    return text if len(text) <= _LONGEST else ""


def _is_small(node: exp.Expression) -> bool:
    return all(number < _MOST_PARTS for number, _ in enumerate(node.walk()))


def _sql(node: exp.Expression) -> str:
    return node.sql(dialect="postgres")


def _inner(item: exp.Expression) -> exp.Expression:
    inner = item.unalias()
    assert isinstance(inner, exp.Expression)
    return inner


def _name(item: exp.Expression) -> str:
    return item.output_name or "x"


def _middle(of: SqlType, name: str) -> str:
    return f"avg({name})" if of.is_number else f"count(DISTINCT {name})"


def _is_ordered(found: SqlType) -> bool:
    return found.is_number or found.is_time


def _different(item: exp.Expression) -> exp.Count:
    return exp.Count(this=exp.Distinct(expressions=[item.copy()]))
