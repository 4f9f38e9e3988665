"""What does one private SELECT ask for, and what remains of it above the noise line?

Below: a `Block` of the algebra. Above: the client's select list, HAVING, ORDER BY and LIMIT over an
injected relation that carries one column for each key and aggregate.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass

from sqlglot import exp

from proxy.errors import BadGroups, HushError, NotAggregate, Unsupported
from proxy.sql.algebra import TRUE, Aggregate, AggregateKind, Block, Scalar, columns_of
from proxy.sql.bind import Binder, Constants, only, refuse
from proxy.sql.parse import position_of, tokenize
from proxy.sql.scope import Catalog, Scope, Scopes, identifier, output_name
from proxy.sql.split import RESERVED, SYSTEM_SCHEMA, BlockText
from proxy.sqltypes import SqlType


class Carries(enum.Enum):
    """What an injected column holds."""

    KEY = "k"
    VALUE = "a"
    LOW = "low"
    HIGH = "high"
    SD = "sd"


@dataclass(frozen=True, slots=True)
class Injected:
    """One column of the injected relation: the key or aggregate of that number."""

    carries: Carries
    number: int
    type: SqlType

    @property
    def name(self) -> str:
        return f"{self.carries.value}{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundBlock:
    """A block and its outer text. `marker` stands in `outer` once, where the injected relation goes."""

    block: Block
    columns: tuple[Injected, ...]
    outer: str
    marker: str


def bind_block(text: BlockText, catalog: Catalog, constants: Constants, source: str) -> BoundBlock:
    """Bind one private SELECT of the statement `source`. Raises HushError."""
    select = text.select
    only(select, "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
         "distinct", "windows", "with_", "kind")  # fmt: skip
    written = source[text.span.start : text.span.end]
    _check_nothing_lost(select, written)
    scope = Scopes(catalog, constants, source).select(select, text.ctes)
    keys = _keys(select, scope)
    above = _Above(scope.binder, keys, {identifier(e.args["alias"]) for e in select.expressions
                                        if isinstance(e, exp.Alias)})  # fmt: skip
    marker = _unused_name(source)
    outer = above.rewrite(select, marker)
    block = Block(scans=scope.rows.scans, where=scope.rows.where, keys=keys, aggregates=tuple(above.aggregates))
    columns = tuple(dict.fromkeys(above.columns))
    if not columns:
        raise NotAggregate("the query asks for no aggregate", hint="Add count(*).", position=position_of(select))
    return BoundBlock(block=block, columns=columns, outer=outer, marker=f'"{marker}" AS "{RESERVED}"')


def _unused_name(source: str) -> str:
    number = 0
    while f"hush_injected_{number}" in source:
        number += 1
    return f"hush_injected_{number}"


_COUNTED = ("DISTINCT", "FILTER", "OVER", "WITHIN", "EXCLUDE", "TIES", "ROWS", "RANGE", "GROUPS", "IGNORE", "RESPECT")


def _check_nothing_lost(select: exp.Select, written: str) -> None:
    """Keywords that change meaning must survive sqlglot's reading, or the SELECT is refused."""
    bare = select.copy()
    bare.set("with_", None)
    counts = []
    for text in (written, bare.sql(dialect="postgres", comments=False)):
        words = Counter(t.text.upper() for t in tokenize(text))
        counts.append({w: words[w] for w in _COUNTED})
    lost = [w for w in _COUNTED if counts[0][w] != counts[1][w]]
    if lost:
        raise refuse(select, f"{', '.join(lost)} is not understood here")


# --- GROUP BY ----------------------------------------------------------------------------------------------


def _keys(select: exp.Select, scope: Scope) -> tuple[Scalar, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    for name, value in group.args.items():
        if name != "expressions" and value:
            raise BadGroups(f"GROUP BY with {name.replace('_', ' ')} is not supported",
                            hint="List plain grouping expressions.", position=position_of(group))  # fmt: skip
    found = [_key(node, select, scope) for node in group.expressions]
    return tuple(dict.fromkeys(k for k in found if columns_of(k)))


def _key(node: exp.Expression, select: exp.Select, scope: Scope) -> Scalar:
    node = node.this if isinstance(node, exp.Paren) else node
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        number = int(str(node.this)) if str(node.this).isdigit() else 0
        if not 1 <= number <= len(select.expressions):
            raise BadGroups(f"GROUP BY position {node.this} is not in select list", position=position_of(node))
        return scope.binder.scalar(_unaliased(select.expressions[number - 1]))
    if isinstance(node, exp.Tuple):
        raise BadGroups("GROUP BY of a row is not supported", hint="List the expressions without parentheses.",
                        position=position_of(node))  # fmt: skip
    name = identifier(node.this) if isinstance(node, exp.Column) and not node.args.get("table") else ""
    is_input = any(name == column for column, _ in scope.rows.columns)
    if name and not is_input:
        for item in select.expressions:
            if isinstance(item, exp.Alias) and identifier(item.args["alias"]) == name:
                return scope.binder.scalar(item.this)
    return scope.binder.scalar(node)


def _unaliased(item: exp.Expression) -> exp.Expression:
    if isinstance(item, exp.Star):
        raise NotAggregate("SELECT * cannot be grouped", hint="Name the grouping columns.", position=position_of(item))
    inner = item.this if isinstance(item, exp.Alias) else item
    assert isinstance(inner, exp.Expression)
    return inner


# --- above the line ------------------------------------------------------------------------------------------


class _Above:
    """Rewrites the parts of a SELECT that stay above the noise line, collecting what they need."""

    def __init__(self, binder: Binder, keys: tuple[Scalar, ...], aliases: set[str]) -> None:
        self._binder = binder
        self._keys = keys
        self._aliases = aliases
        self.aggregates: list[Aggregate] = []
        self.columns: list[Injected] = []

    def rewrite(self, select: exp.Select, relation: str) -> str:
        outer = exp.Select()
        items = [self._item(e) for e in select.expressions]
        outer.set("expressions", items)
        source = exp.Table(
            this=exp.to_identifier(relation, quoted=True),
            alias=exp.TableAlias(this=exp.to_identifier(RESERVED, quoted=True)),
        )
        outer.set("from_", exp.From(this=source))
        having = select.args.get("having")
        if having is not None:
            outer.set("where", exp.Where(this=self._above(having.this)))
        for part in ("order", "windows"):
            self._copy(select, outer, part)
        for part in ("distinct", "limit", "offset"):
            if select.args.get(part) is not None:
                outer.set(part, select.args[part].copy())
        return outer.sql(dialect="postgres", comments=False)

    def _copy(self, select: exp.Select, outer: exp.Select, part: str) -> None:
        value = select.args.get(part)
        if isinstance(value, list):
            outer.set(part, [self._above(v) for v in value])
        elif value is not None:
            outer.set(part, self._above(value, in_order=True))

    def _item(self, item: exp.Expression) -> exp.Expression:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            raise NotAggregate("SELECT * over private rows cannot be grouped", hint="Name columns and aggregates.",
                               position=position_of(item))  # fmt: skip
        name = exp.to_identifier(output_name(item), quoted=True)
        return exp.Alias(this=self._above(_unaliased(item)), alias=name)

    def _above(self, node: exp.Expression, *, in_order: bool = False) -> exp.Expression:
        """A copy of the node with aggregates and keys replaced by injected columns."""
        interval = self._interval_function(node)
        if interval is not None:
            return interval
        if isinstance(node, (exp.AggFunc, exp.Filter)):
            return self._inject(Carries.VALUE, node)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Query):
            return node.copy()
        key = self._key(node)
        if key is not None:
            return key
        if isinstance(node, exp.Column):
            return self._bare_column(node, in_order)
        copy = node.copy()
        for (_, child), (_, target) in zip(_parts(node), _parts(copy), strict=True):
            target.replace(self._above(child, in_order=in_order and isinstance(node, (exp.Order, exp.Ordered))))
        return copy

    def _bare_column(self, node: exp.Column, in_order: bool) -> exp.Expression:
        if in_order and not node.args.get("table") and identifier(node.this) in self._aliases:
            return node.copy()
        raise NotAggregate(
            f'column "{node.sql()}" must appear in the GROUP BY clause or be used in an aggregate',
            hint="Group by it, or aggregate it.",
            position=position_of(node),
        )

    def _window(self, node: exp.Window) -> exp.Expression:
        copy = node.copy()
        function, target = node.this, copy.this
        if isinstance(function, exp.Filter):
            raise refuse(node, "FILTER on a window function over groups is not supported")
        for (_, child), (_, part) in zip(_parts(function), _parts(target), strict=True):
            part.replace(self._above(child))
        for (name, child), (_, part) in zip(_parts(node), _parts(copy), strict=True):
            if name != "this":
                part.replace(self._above(child))
        return copy

    def _key(self, node: exp.Expression) -> exp.Expression | None:
        if not self._keys or node.find(exp.Column) is None or node.find(exp.AggFunc, exp.Query) is not None:
            return None
        try:
            bound = self._binder.scalar(node)
        except (HushError, RecursionError):
            return None
        if bound not in self._keys:
            return None
        number = self._keys.index(bound)
        return self._column(Injected(Carries.KEY, number, bound.type))

    def _column(self, injected: Injected) -> exp.Expression:
        self.columns.append(injected)
        return exp.column(exp.to_identifier(injected.name, quoted=True), table=exp.to_identifier(RESERVED, quoted=True))

    def _interval_function(self, node: exp.Expression) -> exp.Expression | None:
        """hush.low(aggregate), hush.high(aggregate), hush.sd(aggregate)."""
        if not isinstance(node, exp.Dot) or identifier(node.this) != SYSTEM_SCHEMA:
            return None
        call = node.expression
        names = {c.value: c for c in (Carries.LOW, Carries.HIGH, Carries.SD)}
        carries = names.get(str(call.this).lower()) if isinstance(call, exp.Anonymous) else None
        if carries is None or len(call.expressions) != 1:
            raise refuse(node, "of the hush functions, low(x), high(x) and sd(x) of one aggregate are accepted here")
        argument = call.expressions[0]
        if not isinstance(argument, (exp.AggFunc, exp.Filter)):
            raise refuse(node, f"hush.{carries.value} takes one aggregate", f"Write hush.{carries.value}(count(*)).")
        return self._inject(carries, argument)

    # --- aggregates -----------------------------------------------------------------------------------

    def _inject(self, carries: Carries, node: exp.Expr) -> exp.Expression:
        aggregate = self._aggregate(node)
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        number = self.aggregates.index(aggregate)
        return self._column(Injected(carries, number, aggregate.type if carries is Carries.VALUE else SqlType.FLOAT8))

    def _aggregate(self, node: exp.Expr) -> Aggregate:
        where: Scalar = TRUE
        if isinstance(node, exp.Filter):
            only(node, "this", "expression")
            where = self._binder.condition(node.expression.this)
            node = node.this
        if isinstance(node, exp.Count):
            return self._count(node, where)
        if isinstance(node, (exp.Sum, exp.Avg)):
            return self._sum(node, where)
        raise Unsupported(
            f"the aggregate {node.key.lower()} is not supported over private rows",
            hint="Accepted: count(*), count(x), count(DISTINCT unit), sum(x), avg(x), each with FILTER.",
            position=position_of(node),  # type: ignore[arg-type]  # the stubs' narrowing loses Expression
        )

    def _count(self, node: exp.Count, where: Scalar) -> Aggregate:
        only(node, "this", "big_int")
        if isinstance(node.this, exp.Star):
            return Aggregate(AggregateKind.COUNT_ROWS, TRUE, where, SqlType.INT8)
        if isinstance(node.this, exp.Distinct):
            only(node.this, "expressions")
            if len(node.this.expressions) != 1:
                raise refuse(node, "COUNT(DISTINCT ...) takes one expression")
            argument = self._binder.scalar(node.this.expressions[0])
            return Aggregate(AggregateKind.COUNT_UNITS, argument, where, SqlType.INT8)
        argument = self._binder.scalar(node.this)
        if not columns_of(argument):
            return Aggregate(AggregateKind.COUNT_ROWS, TRUE, where, SqlType.INT8)
        return Aggregate(AggregateKind.COUNT, argument, where, SqlType.INT8)

    def _sum(self, node: exp.Expression, where: Scalar) -> Aggregate:
        only(node, "this")
        kind = AggregateKind.SUM if isinstance(node, exp.Sum) else AggregateKind.AVG
        if isinstance(node.this, exp.Distinct):
            raise refuse(node, f"{kind.value}(DISTINCT x) is not supported over private rows",
                         f"Write {kind.value}(x), or group by x first.")  # fmt: skip
        argument = self._binder.scalar(node.this)
        if not argument.type.is_number:
            raise refuse(node, f"{kind.value}({argument.type.pg_name}) is not supported", "Aggregate a number.")
        return Aggregate(kind, argument, where, _result_type(kind, argument.type))


def _result_type(kind: AggregateKind, argument: SqlType) -> SqlType:
    """PostgreSQL's result type of sum and avg."""
    if argument in (SqlType.FLOAT4, SqlType.FLOAT8):
        return argument if kind is AggregateKind.SUM else SqlType.FLOAT8
    if kind is AggregateKind.SUM and argument in (SqlType.INT2, SqlType.INT4):
        return SqlType.INT8
    return SqlType.NUMERIC


def _parts(node: exp.Expression) -> list[tuple[str, exp.Expression]]:
    """Direct child nodes with the name of the part they fill."""
    found = []
    for name, value in node.args.items():
        parts = value if isinstance(value, list) else [value]
        found += [(name, child) for child in parts if isinstance(child, exp.Expression)]
    return found
