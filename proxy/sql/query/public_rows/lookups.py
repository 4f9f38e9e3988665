"""How do rows above the noise line look up the groups of private rows that they ask for?

A SELECT that groups is written as the client could have written it, from pieces of the client's own text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from proxy.sql.binding.aggregates.aggregates import is_aggregate_call
from proxy.sql.query.split import SYSTEM_SCHEMA, BlockText
from proxy.sql.syntax.locate import locate_expression
from proxy.sql.syntax.names import identifier
from proxy.sql.syntax.outer import Edit

KEY, VALUE = "hush_k", "hush_a"  # columns of the grouped SELECT; no name of the client's may begin so
_COUNTS = (exp.Count, exp.RegrCount)
_CONDITIONS = (exp.LogicalAnd, exp.LogicalOr, exp.Anonymous)  # the last is every(x)


@dataclass(slots=True)
class GroupedSelect:
    """The grouped SELECT that is being written. name: what it is called. source: the statement."""

    block: BlockText
    source: str
    name: str
    keys: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)

    def text_of(self, node: exp.Expr) -> str:
        """An expression as the client wrote it. Raises Unsupported."""
        span = locate_expression(node, self.source, self.block.tokens)
        return self.source[span.start : span.end]

    def key(self, text: str) -> str:
        """A column to group by, as it is called outside."""
        if text not in self.keys:
            self.keys.append(text)
        return f"{self.name}.{KEY}{self.keys.index(text)}"

    def value(self, node: exp.Expr, times: str = "") -> Edit:
        """An aggregate, which becomes that of its one group. times: how many rows around meet the group, "" for one."""
        span = locate_expression(node, self.source, self.block.tokens)
        text = self.source[span.start : span.end]
        if text not in self.values:
            self.values.append(text)
        column = f"{self.name}.{VALUE}{self.values.index(text)}"
        call = node.this if isinstance(node, exp.Filter) else node
        found = f"{'bool_or' if isinstance(call, _CONDITIONS) else 'max'}({column})"
        if isinstance(call, _COUNTS):
            found = f"coalesce({found}, 0)"
        is_repeated = isinstance(call, (*_COUNTS, exp.Sum)) and node.find(exp.Distinct) is None
        return Edit(span, f"({found}{times})" if times and is_repeated else found)

    def sql(self, relation: str, where: Sequence[str]) -> str:
        """As a relation, without its name."""
        keys = [f"{text} AS {KEY}{i}" for i, text in enumerate(self.keys)]
        values = [f"{text} AS {VALUE}{i}" for i, text in enumerate(self.values)]
        kept = f" WHERE {' AND '.join(f'({c})' for c in where)}" if where else ""
        places = ", ".join(str(i + 1) for i in range(len(keys)))
        return f"(SELECT {', '.join((*keys, *values))} FROM {relation}{kept} GROUP BY {places})"


def aggregates_of(node: exp.Expr) -> list[exp.Expr] | None:
    """The aggregates that an expression is made of; None: there is something else that needs a row."""
    is_interval = isinstance(node, exp.Dot) and identifier(node.this) == SYSTEM_SCHEMA
    if is_interval or isinstance(node, (exp.Filter, exp.WithinGroup)) or is_aggregate_call(node):
        return [node]
    if isinstance(node, (exp.Column, exp.Query, exp.Window)):
        return None
    found: list[exp.Expr] = []
    for child in node.iter_expressions():
        below = aggregates_of(child)
        if below is None:
            return None
        found += below
    return found


def linked(condition: exp.Expression, is_inside: Callable[[exp.Column], bool]) -> tuple[exp.Expr, exp.Expr] | None:
    """The sides of an equality of rows inside with rows outside, in this order."""
    if not isinstance(condition, exp.EQ):
        return None
    for inner, outer in ((condition.this, condition.expression), (condition.expression, condition.this)):
        columns, others = list(inner.find_all(exp.Column)), list(outer.find_all(exp.Column))
        is_plain = inner.find(exp.Query) is None and outer.find(exp.Query) is None
        if is_plain and columns and others and all(map(is_inside, columns)) and not any(map(is_inside, others)):
            return inner, outer
    return None
