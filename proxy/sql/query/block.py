"""What does one private SELECT ask for, and what remains of it above the noise line?

Below: a `Block` of the algebra. Above: the client's select list, HAVING, ORDER BY and LIMIT over an
injected relation that carries one column for each key and aggregate.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from proxy.errors import BadGroups, HushError, NotAggregate
from proxy.policy.model import UnitColumns
from proxy.sql.advice.statements import first_rows
from proxy.sql.algebra.canonical import canonical
from proxy.sql.algebra.constants import Constants
from proxy.sql.algebra.nodes import Aggregate, AggregateKind, Block, Literal, Null, Scalar, columns_of
from proxy.sql.binding.aggregates.aggregates import bind_aggregate, is_aggregate_call
from proxy.sql.binding.aggregates.intervals import as_seconds, spelled
from proxy.sql.binding.aggregates.quantiles import Several
from proxy.sql.binding.consulted import Consulted
from proxy.sql.binding.output_names import output_name
from proxy.sql.query.front.formula import Formula, is_aggregate_value, read_formula
from proxy.sql.query.front.splice import text_literal_pg
from proxy.sql.query.grouping import grouping_sets
from proxy.sql.query.inner_queries import is_aggregate
from proxy.sql.query.kept_groups import check_aggregate, check_keys, combinations_of, groups_of
from proxy.sql.query.measured import with_measures
from proxy.sql.query.split import RESERVED, SYSTEM_SCHEMA, BlockText
from proxy.sql.relations.scope import Catalog, Scope, Scopes
from proxy.sql.render.dialect import quote
from proxy.sql.syntax.complete import check_complete
from proxy.sql.syntax.locate import TextSpan, locate_expression
from proxy.sql.syntax.names import identifier
from proxy.sql.syntax.outer import Clauses, Edit, find_clauses, rewrite, unused_name
from proxy.sql.syntax.parse import position_of
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_MOST_PIECES = 2000
_MOST_BITS = 31  # of what GROUPING tells


class Carries(enum.Enum):
    """What an injected column holds."""

    KEY = "k"
    VALUE = "a"
    LOW = "low"
    HIGH = "high"
    SD = "sd"
    GROUPING = "g"


_ENDS = frozenset((Carries.LOW, Carries.HIGH))


@dataclass(frozen=True, slots=True)
class Injected:
    """One column of the injected relation: the key or aggregate of that number.

    keys: the numbers of those that a GROUPING is about, leftmost first. formula: what an interval is of, if not of one
    aggregate; the number is its own then.
    """

    carries: Carries
    number: int
    type: SqlType
    keys: tuple[int, ...] = ()
    formula: Formula | None = None

    @property
    def name(self) -> str:
        return f"{self.carries.value}{'' if self.formula is None else 'f'}{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundBlock:
    """A block and its outer text. `marker` stands in `outer` once, where the injected relation goes.

    inner: what stands in `outer` in the place of blocks inside this one, and where those are in the client's text.
    keeps_groups: whether all groups of a public table are to be shown.
    reads_clock: whether it would be another at another time.
    """

    block: Block
    columns: tuple[Injected, ...]
    outer: str
    marker: str
    inner: tuple[Edit, ...] = ()
    keeps_groups: bool = False
    reads_clock: bool = False


def bind_block(text: BlockText, catalog: Catalog, constants: Constants, source: str) -> BoundBlock:
    """Bind one private SELECT of the statement `source`. Raises HushError, and Unread if texts are to be read first."""
    consulted = Consulted(constants, collects=True)
    try:
        bound = _bound(text, catalog, consulted, source)
    except HushError:
        consulted.check()  # with stand-ins in it, nothing can be said of the statement
        raise
    consulted.check()
    return replace(bound, reads_clock=consulted.reads_clock)


def _bound(text: BlockText, catalog: Catalog, constants: Consulted, source: str) -> BoundBlock:
    select = text.select
    only(select, "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
         "distinct", "windows", "with_", "kind")  # fmt: skip
    clauses = find_clauses(select, text.span, text.tokens)
    scope = Scopes(catalog, constants, source).select(select, text.ctes)
    names = tuple(output_name(item, source) for item in select.expressions)
    keys, sets, meanings = _keys(select, scope, names)
    _check_below(select, clauses, text.tokens)
    above = _Above(scope, keys, meanings, text, source)
    above.visit_select(select, names)
    rows, aggregates = scope.rows, above.all_aggregates()
    asked = Block(scans=rows.scans, joins=rows.joins, where=rows.where, keys=keys, aggregates=aggregates, sets=sets)
    block = canonical(with_measures(asked))
    columns = tuple(dict.fromkeys(above.columns))
    if not columns:
        raise NotAggregate("the query asks for no aggregate", hint="Add count(*).", position=position_of(select))
    relation = f"{unused_name(source, 'injected', text.span)} AS {quote(RESERVED)}"
    named = [Edit(TextSpan(end, end), f"AS {quote(name)}")
             for end, name, item in zip(clauses.items, names, select.expressions, strict=True)
             if not isinstance(item, exp.Alias)]  # fmt: skip
    inner = tuple(Edit(b.span, unused_name(source, "block", b.span)) for b in _outermost(text.inner))
    erased = [Edit(e.span, e.text()) for e in text.emptied]
    every_key = tuple(Injected(Carries.KEY, n, k.type) for n, k in enumerate(keys))
    by_name, shown = {i.name: keys[i.number] for i in every_key}, relation
    if rows.kept is not None:
        check_keys(rows.kept, {s.number for s in rows.scans if not s.table.is_public}, keys, sets, select)
        shown = groups_of(rows.kept, relation, by_name, constants, select)
    elif not sets:
        shown = combinations_of(rows, relation, by_name, constants)
    if shown != relation:
        columns = tuple(dict.fromkeys((*columns, *every_key)))
    outer = rewrite(source, clauses, (*above.edits, *named, *inner, *erased), shown)
    return BoundBlock(
        block=block, columns=columns, outer=outer, marker=relation, inner=inner, keeps_groups=rows.kept is not None
    )


def _outermost(blocks: tuple[BlockText, ...]) -> tuple[BlockText, ...]:
    deeper = {b.span for block in blocks for b in block.inner}
    return tuple(b for b in blocks if b.span not in deeper)


def _check_below(select: exp.Select, clauses: Clauses, tokens: tuple[Token, ...]) -> None:
    """What FROM, WHERE and GROUP BY say must be in the tree."""
    below = [select.args[part] for part in ("from_", "where", "group") if select.args.get(part) is not None]
    own = _between(tokens, clauses.selected.end, clauses.having_word)
    check_complete((*below, *(select.args.get("joins") or ())), own)


def _between(tokens: tuple[Token, ...], start: int, end: int) -> tuple[Token, ...]:
    def place(offset: int) -> int:
        return bisect_left(tokens, offset, key=lambda t: t.start)

    return tokens[place(start) : place(end)]


# --- GROUP BY ----------------------------------------------------------------------------------------------


_Keys = tuple[Scalar, ...]
_Sets = tuple[tuple[int, ...], ...]
_Meanings = Mapping[int, Scalar]  # by `id()` of an expression, which is bound once: a sub-query in it is joined


def _keys(select: exp.Select, scope: Scope, names: tuple[str, ...]) -> tuple[_Keys, _Sets, _Meanings]:
    """All keys, the numbers of those of each grouping set if there are several sets, and what is grouped by."""
    group = select.args.get("group")
    if group is None:
        keys, meanings = _distinct_keys(select, scope)
        return keys, (), meanings
    listed = grouping_sets(group)
    meant = {id(node): _meant(node, select, scope, names) for nodes in listed for node in nodes}
    meanings = {i: scope.binder.scalar(node) for i, node in {id(node): node for node in meant.values()}.items()}
    bound = {i: meanings[id(node)] for i, node in meant.items()}
    for item in map(_unaliased, (i for i in select.expressions if i.find(exp.Query) is not None)):
        meanings |= {id(item): meanings[id(node)] for node in meant.values() if node == item}
    keys = tuple(dict.fromkeys(k for k in bound.values() if columns_of(k)))
    if len(listed) == 1:
        return keys, (), meanings
    for node in (node for nodes in listed for node in nodes if not columns_of(bound[id(node)])):
        raise refuse(node, "a constant in grouping sets over private rows is not supported",
                     "Leave it out of GROUP BY.")  # fmt: skip
    sets = [tuple(sorted({keys.index(bound[id(node)]) for node in nodes})) for nodes in listed]
    return keys, tuple(dict.fromkeys(sets) if group.args.get("all") is False else sets), meanings


def _instead_of_on(select: exp.Select, distinct: exp.Expression, scope: Scope) -> str:
    on = distinct.args["on"].expressions
    owners = {s.number: s.table.ownership for s in scope.joined.scans}
    units = {(n, c) for n, o in owners.items() if isinstance(o, UnitColumns) for c in o.columns}
    read = [c for node in on for c in columns_of(scope.binder.scalar(node))]
    return first_rows(select, on, lambda node: scope.binder.scalar(node).type,
                      is_of_unit=any((c.scan, c.name) in units for c in read))  # fmt: skip


def _distinct_keys(select: exp.Select, scope: Scope) -> tuple[_Keys, _Meanings]:
    """SELECT DISTINCT x, y is SELECT x, y ... GROUP BY x, y."""
    distinct = select.args.get("distinct")
    if distinct is None or is_aggregate(select):
        return (), {}
    if distinct.args.get("on") is not None:
        raise refuse(
            distinct, "DISTINCT ON over private rows is not supported", _instead_of_on(select, distinct, scope)
        )
    found = {id(node): scope.binder.scalar(node) for node in map(_unaliased, select.expressions)}
    return tuple(dict.fromkeys(k for k in found.values() if columns_of(k))), found


def _meant(node: exp.Expression, select: exp.Select, scope: Scope, names: tuple[str, ...]) -> exp.Expression:
    """What is grouped by: a number or a name of the select list is its item."""
    node = node.this if isinstance(node, exp.Paren) else node
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        number = int(str(node.this)) if str(node.this).isdigit() else 0
        if not 1 <= number <= len(select.expressions):
            raise BadGroups(f"GROUP BY position {node.this} is not in select list",
                            hint="Count the select list from 1.", position=position_of(node))  # fmt: skip
        return _unaliased(select.expressions[number - 1])
    name = identifier(node.this) if isinstance(node, exp.Column) and not node.args.get("table") else ""
    is_input = any(name == column for column, _ in scope.rows.columns)
    is_output = name and not is_input and name in names
    return _unaliased(select.expressions[names.index(name)]) if is_output else node


def _unaliased(item: exp.Expression) -> exp.Expression:
    if isinstance(item, exp.Star):
        raise NotAggregate("SELECT * cannot be grouped", hint="Name the grouping columns.", position=position_of(item))
    inner = item.this if isinstance(item, exp.Alias) else item
    assert isinstance(inner, exp.Expression)
    return inner


# --- above the line ------------------------------------------------------------------------------------------


class _Above:
    """Finds what a SELECT needs from below the line, and the edits that put injected columns in its place."""

    def __init__(
        self, scope: Scope, keys: tuple[Scalar, ...], meanings: _Meanings, text: BlockText, source: str
    ) -> None:
        """meanings: of what is grouped by."""
        self._scope = scope
        self._binder = scope.binder
        self._keys = keys
        self._meanings = meanings
        self._text = text
        self._source = source
        self.aggregates: list[Aggregate] = []
        self._numbers: dict[Aggregate, int] = {}
        self.columns: list[Injected] = []
        self.edits: list[Edit] = []
        self._groupings: list[tuple[int, ...]] = []
        self._formulas: list[Formula] = []

    def visit_select(self, select: exp.Select, names: tuple[str, ...]) -> None:
        """names: those of the select items."""
        for item in select.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                raise NotAggregate("SELECT * over private rows cannot be grouped",
                                   hint="Name columns and aggregates.", position=position_of(item))  # fmt: skip
            self._visit(_unaliased(item))
        for part in ("distinct", "having"):
            if select.args.get(part) is not None:
                self._visit_parts(select.args[part])
        for window in select.args.get("windows") or ():
            self._visit_window(window)
        order = select.args.get("order")
        for ordered in () if order is None else order.expressions:
            if not _names_output(ordered.this, names):
                self._visit(ordered.this)

    def _visit(self, node: exp.Expression) -> None:
        carries = self._interval_function(node)
        if carries is not None:
            self._replace(node, (self._interval(carries, node.expression.expressions[0]),))
        elif isinstance(node, exp.Grouping):
            self._replace(node, (self._grouping(node),))
        elif isinstance(node, exp.Filter) or is_aggregate_call(node):
            self._replace_aggregate(node)
        elif isinstance(node, exp.Window):
            self._visit_window(node)
        elif (key := self._grouped_by(node)) is not None:
            self._replace(node, (key,))
        elif isinstance(node, exp.Query):
            self._check_uncorrelated(node)
        elif (key := self._key(node)) is not None:
            self._replace(node, (key,))
        elif isinstance(node, exp.Column):
            bound = self._binder.scalar(node)  # that there is no such column is said first
            if isinstance(bound, (Literal, Null)):
                self._write(node, constant_text(bound))
                return
            raise NotAggregate(
                f'column "{node.sql()}" must appear in the GROUP BY clause or be used in an aggregate',
                hint="Group by it, or aggregate it.",
                position=position_of(node),
            )
        else:
            self._visit_parts(node)

    def _visit_parts(self, node: exp.Expression) -> None:
        for child in node.iter_expressions():
            self._visit(child)

    def _visit_window(self, node: exp.Expression) -> None:
        """A window function runs over groups: what it aggregates is above the line, its arguments are not."""
        function = node.this
        if isinstance(function, exp.Filter):
            self._visit_parts(function.this)
            self._visit(function.expression.this)
        else:
            self._visit_parts(function)
        for child in node.iter_expressions():
            if child is not function:
                self._visit(child)

    def _check_uncorrelated(self, query: exp.Expression) -> None:
        """A sub-query stays as it is, blocks inside it aside, so it must not name the rows below the line."""
        own = {identifier(t.args["alias"].this) if t.args.get("alias") else identifier(t.this)
               for t in query.find_all(exp.Table, exp.Subquery)}  # fmt: skip
        below = {name for name, _ in self._scope.rows.columns}
        blocks = {id(b.select) for b in self._text.inner}
        for column in (n for n in query.walk(prune=lambda n: id(n) in blocks) if isinstance(n, exp.Column)):
            prefix = identifier(column.args.get("table"))
            if (prefix and prefix not in own) or (not prefix and identifier(column.this) in below):
                raise refuse(column, f'"{column.sql()}" may name a row of a private table here',
                             "Write table.column with a table of the sub-query itself.")  # fmt: skip

    def _grouped_by(self, node: exp.Expression) -> Injected | None:
        bound = self._meanings.get(id(node))
        if bound is None or bound not in self._keys:
            return None
        return Injected(Carries.KEY, self._keys.index(bound), bound.type)

    def _key(self, node: exp.Expression) -> Injected | None:
        if not self._keys or node.find(exp.Column) is None or node.find(exp.AggFunc, exp.Query) is not None:
            return None
        try:
            bound = self._binder.scalar(node)
        except HushError:
            return None
        if bound not in self._keys:
            return None
        return Injected(Carries.KEY, self._keys.index(bound), bound.type)

    def _grouping(self, node: exp.Grouping) -> Injected:
        """GROUPING(key, ...): which of the keys a row's grouping set lacks, one bit for each."""
        only(node, "expressions")
        bound = [self._binder.scalar(item) for item in node.expressions]
        keys = tuple(self._keys.index(b) for b in bound if b in self._keys)
        if not 1 <= len(keys) == len(bound) <= _MOST_BITS:
            raise NotAggregate("arguments to GROUPING must be grouping expressions of this SELECT",
                               hint=f"Give 1 to {_MOST_BITS} expressions as GROUP BY spells them.",
                               position=position_of(node))  # fmt: skip
        if keys not in self._groupings:
            self._groupings.append(keys)
        return Injected(Carries.GROUPING, self._groupings.index(keys), SqlType.INT4, keys)

    def _replace(
        self, node: exp.Expression, columns: tuple[Injected, ...], *, is_array: bool = False,
        waits: tuple[Scalar, ...] = (),
    ) -> None:  # fmt: skip
        """Put columns in the place of an expression. waits: of what they are seconds, if they are to be intervals."""
        self.columns += columns
        if len(self.columns) > _MOST_PIECES:
            raise refuse(node, f"more than {_MOST_PIECES} aggregates and keys in one SELECT are not supported")
        texts = [f"{quote(RESERVED)}.{quote(c.name)}" for c in columns]
        text = ", ".join(map(spelled, texts, waits) if waits else texts)
        self._write(node, f"ARRAY[{text}]" if is_array else text)

    def _write(self, node: exp.Expression, text: str) -> None:
        span = locate_expression(node, self._source, self._text.tokens)
        check_complete((node,), _between(self._text.tokens, span.start, span.end))
        self.edits.append(Edit(span, text))

    def _interval_function(self, node: exp.Expression) -> Carries | None:
        """hush.low(x), hush.high(x), hush.sd(x) of an aggregate, or of arithmetic with several."""
        if not isinstance(node, exp.Dot) or identifier(node.this) != SYSTEM_SCHEMA:
            return None
        call = node.expression
        names = {c.value: c for c in (Carries.LOW, Carries.HIGH, Carries.SD)}
        carries = names.get(str(call.this).lower()) if isinstance(call, exp.Anonymous) else None
        if carries is None or len(call.expressions) != 1:
            raise refuse(node, "of the hush functions, low(x), high(x) and sd(x) of aggregates are accepted here")
        return carries

    # --- aggregates -----------------------------------------------------------------------------------

    def _replace_aggregate(self, node: exp.Expression) -> None:
        found = bind_aggregate(node, self._binder, self._source)
        several = found.aggregates if isinstance(found, Several) else (found,)
        columns = tuple(self._injected(Carries.VALUE, a, node) for a in several)
        waits = tuple(a.argument for a in several if a.type is SqlType.INTERVAL)
        self._replace(node, columns, is_array=isinstance(found, Several), waits=waits)

    def _interval(self, carries: Carries, node: exp.Expr) -> Injected:
        if is_aggregate_value(node):
            return self._one_injected(carries, node)[0]
        formula = read_formula(node, self._bound_in_formula)
        if formula not in self._formulas:
            self._formulas.append(formula)
        return Injected(carries, self._formulas.index(formula), SqlType.FLOAT8, formula=formula)

    def all_aggregates(self) -> tuple[Aggregate, ...]:
        """In the order of their numbers. A quantile whose interval is asked for is released with it."""
        ends = {c.number for c in self.columns if c.carries in _ENDS and c.formula is None}
        return tuple(replace(a, is_bracketed=a.kind.is_quantile and i in ends) for i, a in enumerate(self.aggregates))

    def _bound_in_formula(self, node: exp.Expr) -> tuple[int, Aggregate]:
        injected, is_wait = self._one_injected(Carries.SD, node)
        if is_wait:
            raise refuse(node, "an aggregate of differences of times has no interval in arithmetic",
                         "Aggregate EXTRACT(epoch FROM x - y).")  # fmt: skip
        return injected.number, self.aggregates[injected.number]

    def _one_injected(self, carries: Carries, node: exp.Expr) -> tuple[Injected, bool]:
        """What one aggregate carries, and whether that is a number of seconds."""
        found = bind_aggregate(node, self._binder, self._source)
        if isinstance(found, Several):
            raise refuse(node, f"hush.{carries.value} takes one aggregate", "Write one call for each fraction.")
        if found.kind is AggregateKind.MODE:
            raise refuse(node, "mode() has no interval: EXPLAIN says how often another value is given", "Leave it out.")
        return self._injected(carries, found, node), found.type is SqlType.INTERVAL

    def _injected(self, carries: Carries, aggregate: Aggregate, node: exp.Expr) -> Injected:
        if self._scope.joined.kept is not None:
            check_aggregate(self._scope.joined.kept, aggregate, node)
        aggregate = as_seconds(aggregate)
        number = self._numbers.setdefault(aggregate, len(self.aggregates))
        if number == len(self.aggregates):
            self.aggregates.append(aggregate)
        is_time = aggregate.type.is_time and carries in _ENDS
        return Injected(carries, number, aggregate.type if is_time or carries is Carries.VALUE else SqlType.FLOAT8)


def constant_text(scalar: Literal | Null) -> str:
    """How a column of a single row of constants is spelled where it is shown."""
    kind = "bpchar" if scalar.type is SqlType.BPCHAR else scalar.type.pg_name
    if isinstance(scalar, Null):
        return f"NULL::{kind}"
    return f"{text_literal_pg(str(scalar.value))}::{kind}"


def _names_output(node: exp.Expression, names: tuple[str, ...]) -> bool:
    """Whether an ORDER BY item is a select item's number or name: a name means the output before the input."""
    if isinstance(node, exp.Literal):
        return True
    is_name = isinstance(node, exp.Column) and not node.args.get("table")
    return is_name and identifier(node.this) in names
