"""Where does the noise line run through a statement?

Bottom-up, every SELECT is public, private (its rows carry a unit) or released (an aggregate over
private rows). A released SELECT becomes one block of the statement; relations of the `hush` schema
become system references. Everything else stays the client's own text.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from proxy.errors import HushError, NotAggregate, Unsupported
from proxy.policy.model import UnitColumns
from proxy.sql.advice.instead_of_part import JOINED_INSTEAD, advice_within, instead_of
from proxy.sql.advice.statements import unions, windows
from proxy.sql.binding.output_names import output_name
from proxy.sql.binding.subqueries import conditions, is_single_row, membership
from proxy.sql.query.free_names import names_outside
from proxy.sql.query.inner_queries import (
    inner_queries,
    is_aggregate,
    is_asked,
    is_below_groups,
    is_inside_aggregate,
    part_of,
    sources_of,
)
from proxy.sql.query.promised import reads_promised, shows_rows
from proxy.sql.query.public_questions import is_asked_first
from proxy.sql.query.stages import StageText, joined_stage, stage_of
from proxy.sql.query.unit_groups import groups_by_unit, units_of
from proxy.sql.relations.scope import Catalog, Cte, Ctes, declare
from proxy.sql.relations.unions import in_instead
from proxy.sql.relations.windows import has_window
from proxy.sql.syntax.locate import TextSpan, locate_selects
from proxy.sql.syntax.names import identifier, spelled, table_name
from proxy.sql.syntax.parse import Statement, parse_statement, position_of
from proxy.sql.syntax.refusal import refuse
from proxy.sql.syntax.system_calls import CallArgument, system_call
from proxy.sql.syntax.words import construct

SYSTEM_SCHEMA = "hush"
RESERVED = "hush_r"  # alias of injected relations; refused in client text


class RowsKind(enum.Enum):
    """What a relation's rows are."""

    PUBLIC = "public"
    PRIVATE = "private"
    RELEASED = "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockText:
    """One aggregate over private rows, where it stands, and the CTEs it may name.

    tokens: its own. inner: the blocks that sub-queries of its select list, HAVING or ORDER BY hold.
    emptied: CTEs over private rows in those sub-queries. is_promised: whether it may read what the dataset's promise is
    about; else it costs nothing.
    """

    select: exp.Select
    span: TextSpan
    ctes: Ctes
    tokens: tuple[Token, ...] = field(repr=False)
    inner: tuple[BlockText, ...] = ()
    emptied: tuple[EmptiedText, ...] = ()
    is_promised: bool = True

    @property
    def may_have_private_keys(self) -> bool:
        """Whether a threshold, which costs delta, may decide what is shown: groups, or values that nobody listed."""
        asked = self.select.args
        return bool(asked.get("group") or asked.get("distinct")) or self.select.find(exp.Mode) is not None


@dataclass(frozen=True, slots=True)
class SystemText:
    """A reference to `hush.<name>`; `needs_alias` when the text gives none. argument: of a call."""

    name: str
    span: TextSpan
    needs_alias: bool
    argument: CallArgument | None = None


@dataclass(frozen=True, slots=True)
class EmptiedText:
    """The SELECT of a CTE over private rows, and how many columns its declaration names, at least one."""

    span: TextSpan
    columns: int

    def text(self) -> str:
        """What stands in its place where nothing may see it."""
        return f"SELECT {', '.join(['NULL'] * self.columns)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A statement cut at the noise line.

    emptied: CTEs over private rows, which only blocks and each other name; their text must not reach the front.
    feeds_aggregation: some SELECT above the line aggregates released rows again.
    stages: sub-queries that are released before the blocks around them can be bound, those that can be now.
    first: the blocks of these, and of others that they are part of.
    """

    text: str
    blocks: tuple[BlockText, ...] = ()
    system: tuple[SystemText, ...] = ()
    emptied: tuple[EmptiedText, ...] = ()
    feeds_aggregation: bool = False
    stages: tuple[StageText, ...] = ()
    first: tuple[BlockText, ...] = ()
    root: exp.Expression = field(repr=False)
    tokens: tuple[Token, ...] = field(repr=False)

    @property
    def asks_free(self) -> bool:
        """Whether nothing is charged for what comes first."""
        is_public = all(s.is_public for s in self.stages)
        return not any(b.is_promised for b in self.first) and (is_public or bool(self.first))


def split(statement: Statement, catalog: Catalog, system: frozenset[str]) -> Split:
    """Cut one SELECT-like statement. Raises HushError when it would show private rows."""
    tree = parse_statement(statement)
    for node in tree.find_all(exp.Identifier):
        if identifier(node) == RESERVED:
            raise refuse(node, f'the name "{RESERVED}" is reserved')
    walker = _Walker(statement, catalog, system, locate_selects(tree, statement.tokens), {})
    if walker.visit(tree, MappingProxyType({})) is RowsKind.PRIVATE:
        if not (walker.blocks or walker.stages or walker.system) and shows_rows(tree, catalog):
            return Split(text=statement.text, root=tree, tokens=statement.tokens)
        raise NotAggregate(
            "rows of a private table cannot be shown",
            hint=advice_within(tree, statement.text) or _instead_of_rows(tree, catalog),
            position=position_of(tree),
        )
    blocks = {id(b.select) for b in walker.blocks}
    above = [s for s in tree.find_all(exp.Select) if id(s) not in blocks and not _is_below(s, blocks)]
    return Split(
        text=statement.text,
        blocks=tuple(sorted(walker.blocks, key=lambda b: b.span.start)),
        system=tuple(walker.system),
        emptied=_outside(walker.emptied, walker.blocks),
        feeds_aggregation=any(is_aggregate(s) or s.args.get("distinct") for s in above),
        stages=tuple(dict.fromkeys(walker.stages)),
        first=tuple(walker.first),
        root=tree,
        tokens=statement.tokens,
    )


def _outside(emptied: Sequence[EmptiedText], blocks: Sequence[BlockText]) -> tuple[EmptiedText, ...]:
    """Those that stand in no block."""
    spans = [b.span for b in blocks]
    return tuple(e for e in emptied if not any(s.start <= e.span.start and e.span.end <= s.end for s in spans))


_LONGEST_HINT = 200
_INNER = "a sub-query over private rows inside a private SELECT is not supported"
_ABOVE = ("expressions", "having", "order")  # parts of a block that the front computes
_NEVER_STAGED = ("limit", "offset")


def _is_below(node: exp.Expr, blocks: set[int]) -> bool:
    """Whether a query belongs to the rows that a block reads."""
    while node.parent is not None:
        if id(node.parent) in blocks and node.arg_key not in _ABOVE:
            return True
        node = node.parent
    return False


@dataclass(frozen=True, slots=True)
class _Declared:
    meaning: Cte
    kind: RowsKind


_Names = Mapping[str, _Declared]
_Stages = tuple[tuple[StageText, ...], tuple[BlockText, ...]]  # and the blocks of all


_RECURSION = "Recursion is for public rows and constants. Private rows go into a CTE of their own."


class _Walker:
    def __init__(
        self,
        statement: Statement,
        catalog: Catalog,
        system: frozenset[str],
        spans: Mapping[int, TextSpan],
        found: dict[int, _Stages],
    ) -> None:
        """found: stages of sub-queries, by `id()`, so that each is looked for once."""
        self._statement = statement
        self._catalog = catalog
        self._system = system
        self._spans = spans
        self.blocks: list[BlockText] = []
        self.system: list[SystemText] = []
        self.emptied: list[EmptiedText] = []
        self.stages: list[StageText] = []
        self.first: list[BlockText] = []
        self._found = found
        self._sets: set[int] = set()
        self._sources: set[int] = set()

    def visit(self, query: exp.Expression, ctes: _Names) -> RowsKind:
        """The kind of a query's rows; blocks and system references are collected on the way."""
        scope = self._declare(query, ctes)
        if isinstance(query, exp.Subquery):
            return self.visit(query.this, scope)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, scope)
        if isinstance(query, exp.Select):
            return self._select(query, scope)
        for inner in query.find_all(exp.Table):
            if self._table(inner, scope) is not RowsKind.PUBLIC:
                what = "a join in parentheses" if isinstance(query, exp.Table) else construct(query)
                raise refuse(inner, f"{what} over a private table is not supported", instead_of(query))
        return RowsKind.PUBLIC

    def _declare(self, query: exp.Expression, ctes: _Names) -> _Names:
        clause = query.args.get("with_")
        if clause is None:
            return ctes
        scope = dict(ctes)
        others = clause.expressions
        if clause.args.get("recursive"):
            others = self._not_public(clause, ctes)
            recursive = _Declared(Cte(clause, (), MappingProxyType({})), RowsKind.PUBLIC)
            scope |= {_cte_name(c): recursive for c in clause.expressions if c not in others}
            self._refuse_recursion(others)
        for cte in others:
            self._sources.add(id(cte.this))
            kind = self.visit(cte.this, scope)
            names = {n: d.meaning for n, d in scope.items()}
            name, meaning = declare(cte, names, self._body(cte.this))
            if kind is RowsKind.PRIVATE:
                self._empty(cte.this, max(1, len(meaning.columns)))
            scope[name] = _Declared(meaning, kind)
        return scope

    def _not_public(self, clause: exp.Expression, ctes: _Names) -> list[exp.Expression]:
        """The CTEs of a recursive clause that lead to a private table or to a relation of the proxy, in order."""
        own = {_cte_name(c) for c in clause.expressions}
        found: set[str] = set()
        while more := [
            c for c in clause.expressions
            if _cte_name(c) not in found and any(self._leads_to(t, ctes, own, found) for t in c.find_all(exp.Table))
        ]:  # fmt: skip
            found |= {_cte_name(c) for c in more}
        return [c for c in clause.expressions if _cte_name(c) in found]

    def _leads_to(self, node: exp.Table, ctes: _Names, own: Set[str], found: Set[str]) -> bool:
        """Whether a table is not public. own: names of the clause, of which some were found not to be."""
        name, schema = identifier(node.this), identifier(node.args.get("db"))
        if schema == "" and name in own:
            return name in found
        if schema == "" and name in ctes:
            return ctes[name].kind is not RowsKind.PUBLIC
        if schema == SYSTEM_SCHEMA or system_call(node, self._statement.tokens) is not None:
            return True
        table = self._catalog.tables.get(table_name(node, self._catalog.database))
        return table is not None and not table.is_public

    def _refuse_recursion(self, others: Sequence[exp.Expression]) -> None:
        """What is not public may be named by those after it alone."""
        for place, cte in enumerate(others):
            names = {_cte_name(c) for c in others[place:]}
            for table in cte.find_all(exp.Table):
                if identifier(table.args.get("db")) == "" and identifier(table.this) in names:
                    raise refuse(table, "WITH RECURSIVE over private rows is not supported", _RECURSION)

    def _body(self, body: exp.Expression) -> tuple[Token, ...]:
        """The tokens of a CTE's SELECT, a WITH clause of its own included, or of its VALUES."""
        if isinstance(body, exp.Values):
            return self._values(body)
        span = self._span(body)
        if span is None:
            return ()
        tokens, depth = self._statement.tokens, 0
        start = next(i for i, t in enumerate(tokens) if t.start == span.start)
        while depth <= 0:
            start -= 1
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[start].token_type, 0)
        return tuple(t for t in tokens[start + 1 :] if t.start < span.end)

    def _values(self, body: exp.Values) -> tuple[Token, ...]:
        """The tokens in the parentheses after the name of a CTE, from VALUES on."""
        cte = body.parent
        assert isinstance(cte, exp.CTE), "VALUES in a sub-select is part of its SELECT"
        name = cte.args["alias"].this.meta["start"]
        found, depth = list[Token](), 0
        for token in self._statement.tokens:
            if token.start < name or (not found and token.token_type is not TokenType.VALUES):
                continue
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
            if depth < 0:
                break
            found.append(token)
        return tuple(found)

    def _empty(self, body: exp.Expression, columns: int) -> None:
        span = self._span(body)
        assert span is not None, "a CTE over private rows has a SELECT"
        self.emptied.append(EmptiedText(span, columns))

    def _span(self, query: exp.Expression) -> TextSpan | None:
        """Where a query stands, from its first SELECT to the end of its last."""
        if isinstance(query, exp.Subquery):
            return self._span(query.this)
        if isinstance(query, exp.SetOperation):
            first, last = self._span(query.this), self._span(query.expression)
            return None if first is None or last is None else TextSpan(first.start, last.end)
        return self._spans.get(id(query))

    def _refuse_private_inside(self, node: exp.Expression, ctes: _Names, what: str, hint: str = "") -> None:
        for table in node.find_all(exp.Table):
            if self._table(table, ctes) is not RowsKind.PUBLIC:
                raise refuse(table, what, hint)

    def _set_operation(self, query: exp.SetOperation, ctes: _Names) -> RowsKind:
        if id(query) in self._sources:
            self._sources |= {id(side) for side in (query.this.unnest(), query.expression.unnest())}
        kinds = {self.visit(query.this, ctes), self.visit(query.expression, ctes)}
        if RowsKind.PRIVATE in kinds:
            word = query.key.upper()
            if id(query) not in self._sources:
                hint = f"Put them together with UNION ALL in a sub-select, and aggregate its rows. {unions(query)}"
                raise refuse(query, f"{word} of private rows is not supported",
                             hint.rstrip() if isinstance(query, exp.Union) else in_instead(query))  # fmt: skip
            if len(kinds) > 1:
                what = "UNION ALL" if isinstance(query, exp.Union) else word
                raise refuse(query, f"{what} of private rows with others is not supported",
                             "Every SELECT of it must read rows of a private table.")  # fmt: skip
            return RowsKind.PRIVATE
        return RowsKind.RELEASED if RowsKind.RELEASED in kinds else RowsKind.PUBLIC

    def _select(self, select: exp.Select, ctes: _Names) -> RowsKind:
        blocks_before, stages_before = len(self.blocks), len(self.stages)
        sources = [(s, self._source(s, ctes)) for s in sources_of(select)]
        kinds = {kind for _, kind in sources}
        if RowsKind.PRIVATE not in kinds:
            self._subqueries(select, ctes)
            return RowsKind.RELEASED if RowsKind.RELEASED in kinds else RowsKind.PUBLIC
        released = [s for s, kind in sources if kind is RowsKind.RELEASED]
        is_staged = bool(released) and self._are_joined(released, ctes, blocks_before, stages_before)
        if not is_staged and (released or len(self.blocks) > blocks_before):
            raise refuse(select, "joining private rows with released aggregates is not supported",
                         "Aggregate both sides first and join the aggregates.")  # fmt: skip
        named = {n: d.meaning for n, d in ctes.items()}
        is_per_unit = id(select) in self._sources and groups_by_unit(select, self._catalog, named)
        is_released = not is_per_unit and (
            is_aggregate(select) or (bool(select.args.get("distinct")) and id(select) not in self._sets)
        )
        above = [q for q in inner_queries(select, _ABOVE) if not is_below_groups(q, select)] if is_released else []
        for inner in inner_queries(select):
            if any(inner is query for query in above) or self._is_stage(inner, select, ctes) or is_per_unit:
                continue
            is_below = is_inside_aggregate(inner, select) or part_of(inner, select) in ("where", "expressions", "group")
            if not self._is_set(select, inner, ctes) and not (is_below and self._is_value(inner, ctes)):
                self._refuse_private_inside(inner, ctes, _INNER, JOINED_INSTEAD)
        if not is_released:
            return self._rows(select, named)
        emptied_before = len(self.emptied)
        for inner in above:
            self._subquery_above(inner, ctes)
        blocks = tuple(self.blocks[blocks_before:])
        span = self._spans[id(select)]
        self.blocks.append(BlockText(
            select=select, span=span, ctes=MappingProxyType({n: d.meaning for n, d in ctes.items()}),
            tokens=tuple(t for t in self._statement.tokens if span.start <= t.start < span.end),
            inner=blocks, emptied=_outside(self.emptied[emptied_before:], blocks),
            is_promised=reads_promised(select, named, self._catalog, self._apart(select, released, blocks)),
        ))  # fmt: skip
        return RowsKind.RELEASED

    def _apart(
        self, select: exp.Select, released: Sequence[exp.Expression], blocks: Sequence[BlockText]
    ) -> frozenset[int]:
        """Parts of a block, by `id()`: queries released before it or beside it, and its WITH, which others name."""
        staged = (q for q in inner_queries(select) if self._found.get(id(q), ((), ()))[0])
        return frozenset(map(id, (*staged, *released, *(b.select for b in blocks), select.args.get("with_"))))

    def _are_joined(
        self, released: Sequence[exp.Expression], ctes: _Names, blocks_before: int, stages_before: int
    ) -> bool:
        """Whether all released relations of a private FROM clause can be released first, and be rows of constants."""
        named = {n: d.meaning for n, d in ctes.items()}

        def name_of(item: exp.Expression) -> str:
            return output_name(item, self._statement.text)

        spans = [None if isinstance(s, exp.Table) else self._span(s) for s in released]
        found = [
            joined_stage(s, span, self._statement, named, name_of) for s, span in zip(released, spans, strict=True)
        ]
        stages = [f for f in found if f is not None]
        if len(stages) < len(released):
            return False
        if len(self.stages) == stages_before:  # else those inside of it come first
            self.stages += stages
        self.first += self.blocks[blocks_before:]
        del self.blocks[blocks_before:]
        return True

    def _is_stage(self, inner: exp.Expression, select: exp.Select, ctes: _Names) -> bool:
        """Whether a sub-query is released before the SELECT around it."""
        if id(inner) not in self._found:
            is_part = part_of(inner, select) not in _NEVER_STAGED
            self._found[id(inner)] = self._found_stages(inner, ctes) if is_part else ((), ())
        stages, blocks = self._found[id(inner)]
        self.stages += stages
        self.first += blocks
        return bool(stages)

    def _found_stages(self, inner: exp.Expression, ctes: _Names) -> _Stages:
        """What is released before a sub-query can be a constant, or it itself; nothing if it cannot be one."""
        query, named = inner.unnest(), {n: d.meaning for n, d in ctes.items()}
        span = self._span(query) if isinstance(query, exp.Expression) else None
        if span is None:
            return (), ()
        below = _Walker(self._statement, self._catalog, self._system, self._spans, self._found)
        try:
            kind = below.visit(inner, ctes)
        except HushError:
            return (), ()  # what is wrong with it is said where it stands for rows
        if (
            below.system
            or kind is RowsKind.PRIVATE
            or (kind is RowsKind.PUBLIC and not is_asked_first(inner, self._catalog))
        ):
            return (), ()
        if kind is RowsKind.RELEASED and isinstance(query, exp.Select) and self._is_set_of_rows(query, named):
            return (), ()
        if names_outside(inner, self._catalog, named):
            return (), ()
        stage = stage_of(inner, span, self._statement, named)
        if stage is None:
            return (), ()
        if kind is RowsKind.PUBLIC:
            return (replace(stage, is_public=True),), ()
        return tuple(below.stages) or (stage,), (*below.first, *below.blocks)

    def _is_set_of_rows(self, query: exp.Select, ctes: Ctes) -> bool:
        """Whether a sub-query may hold units, or rows that are only compared with."""
        return groups_by_unit(query, self._catalog, ctes) or (
            bool(query.args.get("distinct")) and not is_aggregate(query)
        )

    def _is_set(self, select: exp.Select, inner: exp.Expression, ctes: _Names) -> bool:
        """Whether a sub-query is that of EXISTS or IN, a whole condition. Raises Unsupported if it is released."""
        asked = [m for c in conditions(select.args.get("where")) if (m := membership(c)) is not None]
        query = next((m.query for m in asked if m.query is inner or m.query is inner.this), None)
        if query is None:
            return False
        self._sets.add(id(query))
        self._sources.add(id(query))
        if self.visit(query, ctes) is RowsKind.RELEASED:
            raise refuse(query, "comparing private rows with released aggregates is not supported",
                         "Compare with a constant, or with rows of a table.")  # fmt: skip
        return True

    def _is_value(self, inner: exp.Expression, ctes: _Names) -> bool:
        """Whether a sub-query aggregates private rows to one row, which the binder joins to the row around it.

        What EXISTS and IN ask of rows is such a value too.
        """
        query = inner.unnest()
        if not isinstance(query, exp.Select):
            return False
        if is_asked(query):
            self._sources.add(id(query))
            self._sets.add(id(query))
            return self.visit(query, ctes) is RowsKind.PRIVATE
        if not is_single_row(query):
            return False
        scope, blocks_before = self._declare(query, ctes), len(self.blocks)
        kinds = {self._source(s, scope) for s in sources_of(query)}
        if RowsKind.PRIVATE not in kinds or RowsKind.RELEASED in kinds or len(self.blocks) > blocks_before:
            return False
        for deeper in inner_queries(query):
            if self._is_stage(deeper, query, scope):
                continue
            if not self._is_set(query, deeper, scope) and not (
                part_of(deeper, query) in ("where", "expressions") and self._is_value(deeper, scope)
            ):
                self._refuse_private_inside(deeper, scope, _INNER, JOINED_INSTEAD)
        return True

    def _subquery_above(self, inner: exp.Expression, ctes: _Names) -> None:
        """A sub-query beside the aggregates of a block: public, or released by blocks of its own."""
        system_before = len(self.system)
        if self.visit(inner, ctes) is RowsKind.PRIVATE:
            raise _rows_shown(inner)
        if len(self.system) > system_before:
            raise refuse(inner, f"a relation of the schema {SYSTEM_SCHEMA} inside a private SELECT is not supported",
                         "Join it with the aggregates in a SELECT around them.")  # fmt: skip

    def _rows(self, select: exp.Select, ctes: Ctes) -> RowsKind:
        if has_window(select) and id(select) not in self._sources:
            hint = "In a sub-select it may run over rows of each unit, above the line over groups."
            instead = windows(select, units_of(select, self._catalog, ctes))
            raise refuse(select, "a window function over private rows is not supported", f"{hint} {instead}".rstrip())
        return RowsKind.PRIVATE

    def _source(self, node: exp.Expression, ctes: _Names) -> RowsKind:
        if isinstance(node, exp.Table):
            return self._table(node, ctes)
        if isinstance(node, exp.Subquery):
            self._sources.add(id(node.this))
            return self.visit(node, ctes)
        if isinstance(node, exp.Lateral) and any(
            self._table(t, ctes) is RowsKind.PRIVATE for t in node.find_all(exp.Table)
        ):
            return self._lateral(node, ctes)
        self._refuse_private_inside(node, ctes, f"{construct(node)} over a private table is not supported")
        return RowsKind.PUBLIC

    def _lateral(self, node: exp.Lateral, ctes: _Names) -> RowsKind:
        if self._is_value(node.this, ctes):
            return RowsKind.PRIVATE
        self._sources.add(id(node.this.unnest()))
        return self.visit(node.this, ctes)

    def _table(self, node: exp.Table, ctes: _Names) -> RowsKind:
        name, schema = identifier(node.this), identifier(node.args.get("db"))
        if schema == "" and name in ctes:
            return ctes[name].kind
        if schema == SYSTEM_SCHEMA and name in self._system:
            self._system_reference(node, name)
            return RowsKind.RELEASED
        call = system_call(node, self._statement.tokens)
        if call is not None:
            self._refer(SystemText(call.name, call.span, node.args.get("alias") is None, call.argument))
            return RowsKind.RELEASED
        table = self._catalog.tables.get(table_name(node, self._catalog.database))
        return RowsKind.PUBLIC if table is None or table.is_public else RowsKind.PRIVATE

    def _system_reference(self, node: exp.Table, name: str) -> None:
        start, end = node.args["db"].meta.get("start"), node.this.meta.get("end")
        if start is None or end is None:
            raise Unsupported("this reference to a hush relation is not understood", position=position_of(node))
        self._refer(SystemText(name, TextSpan(start, end + 1), node.args.get("alias") is None))

    def _refer(self, reference: SystemText) -> None:
        if reference not in self.system:
            self.system.append(reference)

    def _subqueries(self, select: exp.Select, ctes: _Names) -> None:
        """Sub-queries in expressions of a public SELECT: each must be public or released."""
        for inner in inner_queries(select):
            if self.visit(inner, ctes) is RowsKind.PRIVATE:
                raise _rows_shown(inner)


def _rows_shown(query: exp.Expression) -> NotAggregate:
    return NotAggregate("rows of a private table cannot be shown", hint=_counted_instead(query),
                        position=position_of(query))  # fmt: skip


def _counted_instead(query: exp.Expression) -> str:
    """EXISTS as a comparison of a count, and what rows a sub-query shows as their count."""
    plain, asked = query.unnest(), isinstance(query.parent, exp.Exists)
    if isinstance(plain, exp.Select) and plain.args.get("group") is None:
        counted = plain.select("count(*)", append=False).sql(dialect="postgres")
        if len(counted) <= _LONGEST_HINT:
            return f"Use an aggregate in the sub-query: ({counted}){' > 10' if asked else ''}."
    return "Use an aggregate in the sub-query."


def _instead_of_rows(tree: exp.Expression, catalog: Catalog) -> str:
    """A question about the same table that is answered, grouped by the first column that may be shown."""
    for node in tree.find_all(exp.Table):
        table = catalog.tables.get(table_name(node, catalog.database))
        if table is None or table.is_public:
            continue
        units = table.ownership.columns if isinstance(table.ownership, UnitColumns) else ()
        named = (table.column(identifier(column.this)) for column in tree.find_all(exp.Column))
        shown = next((c.name for c in named if c is not None and not (c.key or c.hidden or c.name in units)), "")
        keys = (f"{spelled(shown)}, ", f" GROUP BY {spelled(shown)}") if shown else ("", "")
        return f"Ask for aggregates: SELECT {keys[0]}count(*) FROM {spelled(table.name)}{keys[1]}."
    return "Ask for aggregates, for example SELECT count(*) FROM ... GROUP BY ..."


def _cte_name(cte: exp.Expression) -> str:
    return identifier(cte.args["alias"].this)
