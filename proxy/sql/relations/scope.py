"""Which rows and columns does the FROM clause of a private SELECT stand for?

Row-level sub-selects and CTEs over private tables are inlined: their columns become scalars over
scans and their conditions join the block's. What joins mean: `joins`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from proxy.policy.model import Ownership, Table, UnitVia
from proxy.sql.advice.unknown_names import unknown_column
from proxy.sql.algebra.nodes import Call, ColumnRef, Join, Literal, Scalar, Scan
from proxy.sql.algebra.rows import Joined, Named, Rows
from proxy.sql.binding import subqueries
from proxy.sql.binding.binder import Binder, Bound, Resolve
from proxy.sql.binding.consulted import Consulted
from proxy.sql.binding.output_names import output_name
from proxy.sql.binding.rules import RULES
from proxy.sql.binding.subqueries import Membership, conditions, is_single_row, membership
from proxy.sql.binding.times.intervals import bind_interval
from proxy.sql.conditions.factored import requirements
from proxy.sql.relations import joins, kept
from proxy.sql.relations.constant_rows import bound_rows, constants_of, meet
from proxy.sql.relations.correlated import membership_value, single_row
from proxy.sql.relations.full_joins import coalescing
from proxy.sql.relations.of_role import rows_where
from proxy.sql.relations.per_unit import check_order, distinct, grouped
from proxy.sql.relations.unions import TogetherRows, branches_of, in_instead, together
from proxy.sql.relations.windows import Windows, first_of_each, has_window
from proxy.sql.syntax.complete import check_complete
from proxy.sql.syntax.group_items import grouping
from proxy.sql.syntax.names import identifier, is_here, table_name
from proxy.sql.syntax.refusal import only, refuse
from proxy.sql.syntax.words import construct
from proxy.sqltypes import SqlType

_MOST_SCANS = 50
_INSTEAD_OF_CALLS = (
    "Write JOIN in place of LEFT JOIN with a series of whole numbers, whose values are all shown then. With others"
    " aggregate first, and join the result: FROM generate_series(...) d LEFT JOIN (SELECT ... GROUP BY 1) t"
    " ON t.day = d."
)
_ASKING = (exp.Exists, exp.In, exp.EQ, exp.NEQ)  # conditions that may ask of a sub-query


@dataclass(frozen=True, slots=True)
class Catalog:
    """The tables a login may name, by exact name. database: what clients call the database, if that is known.

    owners: all tables of the policy, where paths to the unit may lead through others.
    """

    tables: Mapping[str, Table]
    database: str = ""
    owners: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Cte:
    """A query under a name of a WITH clause. columns: the names it gives them, if any.

    visible: what its own body may name; not itself, nor what is declared after it.
    tokens: those of the body, none when they belong to a SELECT around it that is checked as a whole.
    """

    body: exp.Expression
    columns: tuple[str, ...]
    visible: Ctes
    tokens: tuple[Token, ...] = ()


Ctes = Mapping[str, Cte]


@dataclass(frozen=True, slots=True)
class Scope:
    """The relations of one FROM clause, their joined and filtered rows, and a binder over them.

    asked: joins of EXISTS and IN. found: joins of sub-selects of one row; binding an expression may add one.
    """

    relations: tuple[Named, ...]
    joined: Rows
    binder: Binder
    asked: tuple[Join, ...] = ()
    found: list[Join] = field(default_factory=list)

    @property
    def rows(self) -> Rows:
        """The rows with what was found for sub-selects of one row, those of its expressions bound so far included."""
        return replace(self.joined, joins=(*self.joined.joins, *self.found, *self.asked))


class Scopes:
    """Binds FROM clauses; numbers the scans of one block."""

    def __init__(self, catalog: Catalog, constants: Consulted, source: str) -> None:
        self._catalog = catalog
        self._constants = constants
        self._source = source
        self._scans = 0

    def select(self, select: exp.Select, ctes: Ctes, around: Resolve | None = None) -> Scope:
        """What a SELECT reads, and a binder for its expressions. around: the names of a query around it.

        Raises HushError.
        """
        joined = self._from(select, ctes, around)
        found: list[Join] = []
        plain = self._binder(joined, around)

        def value(inner: Binder, node: exp.Expression) -> Scalar:
            return self._value(node, ctes, inner, plain, found, joined.rows)

        def asks(inner: Binder, node: exp.Expression) -> Bound:
            asked = membership(node)
            if asked is None:
                return plain.bind(node) if isinstance(node, exp.Exists) else RULES[type(node)](inner, node)
            kept.plain(joined.rows, node)
            below = self._set(asked, ctes, inner)
            join, scalar = membership_value(asked, below, joined.rows, inner, self._number())
            found.append(join)
            return scalar

        binder = plain.knowing({exp.Subquery: value, **dict.fromkeys(_ASKING, asks)})
        rows, plainly = joined.rows, list[Scalar]()
        for condition in conditions(select.args.get("where")):
            asked = membership(condition)
            if asked is not None:
                rows = self._with_membership(kept.plain(_passing(rows, plainly), condition), asked, ctes, binder)
            elif rows.kept is None:
                plainly += requirements(binder.condition(condition))
            else:
                rows = kept.passing(rows, requirements(binder.condition(condition)), condition)
        rows = _passing(rows, plainly)
        first = len(joined.rows.joins)
        return Scope(joined.relations, replace(rows, joins=rows.joins[:first]), binder, rows.joins[first:], found)

    def _value(
        self, node: exp.Expression, ctes: Ctes, binder: Binder, plain: Binder, found: list[Join], rows: Rows
    ) -> Scalar:
        """A sub-select of one row and one column, whose rows belong to the unit of the row around it, or without rows.

        plain: knows no sub-selects over rows. rows: those around it.
        """
        query = node.unnest()
        if isinstance(query, exp.Select) and query.args.get("from_") is None:
            return plain.scalar(node)
        if not isinstance(query, exp.Select) or not is_single_row(query) or len(query.expressions) != 1:
            raise refuse(node, "a sub-query is not supported over private rows",
                         "Accepted: one aggregate of rows of the same unit.")  # fmt: skip
        kept.plain(rows, node)
        join, columns = self._single_row(query, ctes, binder.resolve)
        found.append(join)
        return columns[0][1]

    def _single_row(
        self, query: exp.Select, ctes: Ctes, around: Resolve
    ) -> tuple[Join, tuple[tuple[str, Scalar], ...]]:
        only(query, "expressions", "from_", "joins", "where", "with_", "kind")
        scope = self.select(query, ctes_of(query, ctes), around)
        return single_row(query, kept.plain(scope.rows, query), scope.binder, self._number(), self._named)

    def _named(self, node: exp.Expression, binder: Binder) -> tuple[str, Scalar]:
        inner = node.this if isinstance(node, exp.Alias) else node
        return output_name(node, self._source), _value(inner, binder)

    def _with_membership(self, rows: Rows, asked: Membership, ctes: Ctes, binder: Binder) -> Rows:
        found = [subqueries.join_of(asked, self._set(asked, ctes, binder), binder)]
        where = rows.where
        if asked.is_negated and asked.left:
            found += subqueries.null_joins(asked, self._set(asked, ctes, binder), binder)
            where = (*where, *subqueries.presence(asked, binder))
        return replace(rows, joins=(*rows.joins, *found), where=where)

    def _set(self, asked: Membership, ctes: Ctes, binder: Binder) -> Rows:
        """The rows of a sub-query of a condition, on scans of their own."""
        query = asked.query
        if query.args.get("group") is not None:
            return self._per_unit(query, ctes)
        distinct = query.args.get("distinct")
        if distinct is not None:
            only(distinct)
        only(query, "expressions", "from_", "joins", "where", "with_", "kind", "distinct")
        scope = self.select(query, ctes_of(query, ctes), binder.resolve)
        columns = [c for item in query.expressions for c in _item(item, scope, self._source)] if asked.left else []
        return replace(kept.plain(scope.rows, query), columns=tuple(columns))

    # --- relations ----------------------------------------------------------------------------------

    def _from(self, select: exp.Select, ctes: Ctes, around: Resolve | None = None) -> Joined:
        clause = select.args.get("from_")
        if clause is None:
            raise refuse(select, "a private SELECT needs a FROM clause")
        first, others = self._rows_first(clause.this, select.args.get("joins") or (), ctes)
        found = [joins.alone(self._relation(first, ctes))]
        seen = {found[0].relations[0].alias}
        making = joins.Making(self._binder, self._together, self._number)
        for node, join in others:
            constants = self._constants_in(node, ctes)
            if constants:
                relation = constants[0]
            elif isinstance(node, exp.Lateral):
                found = [self._all(found, node)]
                found[0], relation = self._lateral(found[0], join, ctes, around)
            else:
                relation = self._relation(node, ctes)
            if relation.alias in seen:
                raise refuse(node, f'table name "{relation.alias}" specified more than once')
            seen.add(relation.alias)
            if constants:
                found[-1] = meet(found[-1], constants, join, making)
            elif joins.is_comma(join) or not relation.rows.scans:
                found.append(joins.alone(relation))
            else:
                found[-1] = joins.join(found[-1], relation, join, making)
        return self._all(found, select)

    @staticmethod
    def _all(found: list[Joined], node: exp.Expression) -> Joined:
        return reduce(lambda left, right: joins.product(left, right, node), found)

    def _rows_first(
        self, first: exp.Expression, others: Sequence[exp.Join], ctes: Ctes
    ) -> tuple[exp.Expression, list[tuple[exp.Expression, exp.Join]]]:
        """Relations with their joins, such that the first is not one of constants: an inner join has no order."""
        pairs = [(join.this, join) for join in others]
        if pairs and not joins.side_of(others[0]) and self._constants_in(first, ctes):
            return pairs[0][0], [(first, others[0]), *pairs[1:]]
        return first, pairs

    def _constants_in(self, node: exp.Expression, ctes: Ctes) -> tuple[Named, ...]:
        """The rows of constants that a relation consists of, each as a relation of its own; none for others."""
        name, query, columns = "", node, tuple[str, ...]()
        is_series = isinstance(node, exp.Table) and isinstance(node.this, exp.ExplodingGenerateSeries)
        if isinstance(node, exp.Table) and not is_series:
            name = table_name(node)
            if name not in ctes or node.args.get("db") is not None:
                return ()
            query, columns = ctes[name].body, ctes[name].columns
        found = constants_of(query, lambda item: output_name(item, self._source))
        if found is None:
            return ()
        if name and ctes[name].tokens:
            check_complete((query,), ctes[name].tokens)
        nothing = self._binder(Joined((), Rows(scans=(), columns=())))
        rows = [_renamed(node, r, columns) for r in bound_rows(found, node, nothing)]
        alias = node.args.get("alias")
        if alias is None:
            return tuple(Named("generate_series" if is_series else name, r) for r in rows)
        relations = tuple(self._aliased(alias, r) for r in rows)
        is_named_alike = is_series or isinstance(node, exp.Unnest)  # its column is called like itself
        if is_named_alike and not alias.args.get("columns"):
            return tuple(Named(r.alias, _renamed(node, r.rows, (r.alias,))) for r in relations)
        return relations

    def _lateral(self, left: Joined, join: exp.Join, ctes: Ctes, around: Resolve | None) -> tuple[Joined, Named]:
        """A sub-select that may name the relations to its left, and these with what it needs to have met."""
        node = join.this
        only(node, "this", "alias")
        query, alias = node.this.unnest(), node.args.get("alias")
        if alias is None or not isinstance(query, exp.Select) or query.args.get("from_") is None:
            raise refuse(node, "LATERAL in FROM of a private SELECT is not supported",
                         "LATERAL (SELECT ...) AS name may read rows of the same unit.")  # fmt: skip
        resolve = self._binder(left, around).resolve
        if not is_single_row(query):
            if has_window(query) or grouping(query) is not None:
                raise refuse(node, "LATERAL with groups or window functions over private rows is not supported",
                             "Leave out LATERAL and join on the unit.")  # fmt: skip
            return left, self._aliased(alias, self.subselect(query, ctes, resolve))
        is_always_met = join.args.get("on") in (None, exp.true()) and not join.args.get("using")
        if not is_always_met or str(join.args.get("side") or "") not in ("", "LEFT"):
            raise refuse(node, "a condition on the one row of a LATERAL sub-select is not supported in its join",
                         "Write ON true, and the condition in WHERE.")  # fmt: skip
        met, columns = self._single_row(query, ctes, resolve)
        kept.plain(left.rows, node)
        rows = replace(left.rows, joins=(*left.rows.joins, met))
        return Joined(left.relations, rows), self._aliased(alias, Rows(scans=(), columns=columns))

    def _relation(self, node: exp.Expression, ctes: Ctes) -> Named:
        if isinstance(node, exp.Table):
            return self._table(node, ctes)
        if isinstance(node, exp.Subquery):
            only(node, "this", "alias")
            alias = node.args.get("alias")
            if alias is None or not isinstance(node.this, (exp.Select, exp.SetOperation)):
                raise refuse(node, "a sub-select over private rows must be a plain SELECT with an alias")
            return self._aliased(alias, self._query(node.this, ctes))
        raise refuse(node, f"{construct(node)} in FROM of a private SELECT is not supported")

    def _table(self, node: exp.Table, ctes: Ctes) -> Named:
        if not isinstance(node.this, exp.Identifier):
            raise refuse(node, "a function in FROM of a private SELECT is not supported", _INSTEAD_OF_CALLS)
        only(node, "this", "db", "catalog", "alias")
        name = table_name(node, self._catalog.database)
        if name in ctes and node.args.get("db") is None:
            rows = self._cte(node, name, ctes[name])
        elif name in self._catalog.tables:
            rows = self._scan(node, self._catalog.tables[name])
        else:
            raise refuse(node, f'relation "{name or node.sql()}" does not exist here')
        alias = node.args.get("alias")
        return self._aliased(alias, rows) if alias is not None else Named(name, rows)

    def _cte(self, node: exp.Table, name: str, cte: Cte) -> Rows:
        if not isinstance(cte.body, (exp.Select, exp.SetOperation)):
            raise refuse(node, f'"{name}" must be a plain SELECT to be used with private rows')
        rows = self._query(cte.body, cte.visible)
        if cte.tokens:
            check_complete((cte.body,), cte.tokens)
        return _renamed(node, rows, cte.columns)

    def _aliased(self, alias: exp.Expression, rows: Rows) -> Named:
        only(alias, "this", "columns")
        names = tuple(identifier(c) for c in alias.args.get("columns") or ())
        return Named(identifier(alias.this), _renamed(alias, rows, names))

    def _scan(self, node: exp.Table, table: Table) -> Rows:
        number = self._scans
        if number >= _MOST_SCANS:
            raise refuse(node, f"more than {_MOST_SCANS} tables in one private SELECT are not supported")
        self._scans += 1
        columns = tuple((c.name, ColumnRef(number, c.name, c.type)) for c in table.columns if not c.hidden)
        where = rows_where(table, number, self._constants)
        return Rows(scans=(Scan(number, table),), where=where, columns=columns)

    def _query(self, query: exp.Expression, ctes: Ctes) -> Rows:
        """A sub-select, or several that UNION ALL puts together."""
        if isinstance(query, exp.Select):
            return self.subselect(query, ctes)
        if isinstance(query, (exp.Intersect, exp.Except)):
            return self._common(query, ctes)
        parts = [kept.plain(self.subselect(branch, ctes), branch) for branch in branches_of(query)]
        rows = together(query, self._together(query, parts), parts)
        return self._distinct(rows, query) if query.args.get("distinct") else rows

    def _common(self, query: exp.Intersect | exp.Except, ctes: Ctes) -> Rows:
        """The units of one sub-select that are, or are not, among those of another: as IN and NOT IN have them."""
        only(query, "this", "expression", "distinct")
        left, right = (self._query(side.unnest(), ctes) for side in (query.this, query.expression))
        if not query.args.get("distinct") or len(left.columns) != 1 or len(right.columns) != 1:
            raise refuse(query, f"{query.key.upper()} of private rows is for one column, and not for ALL",
                         in_instead(query))  # fmt: skip
        binder = self._binder(Joined((), left))
        return self._distinct(subqueries.among(query, left, kept.plain(right, query), binder), query)

    def _together(self, query: exp.Expression, parts: Sequence[Rows]) -> TogetherRows:
        """The rows of these parts, as one scan."""
        binder = self._binder(Joined((), Rows(scans=(), columns=())))
        tables = [s.table for s in parts[0].scans]
        unit = self._ownership(next((t for t in tables if not t.is_public), tables[0]))
        return TogetherRows(query, parts, self._number(), binder, unit)

    def _ownership(self, table: Table) -> Ownership:
        """Where the unit of a table's rows stands, in the table at the end of its path."""
        while isinstance(table.ownership, UnitVia):
            parent = table.ownership.parent
            table = self._catalog.owners.get(parent) or self._catalog.tables[parent]
        return table.ownership

    def subselect(self, select: exp.Select, ctes: Ctes, around: Resolve | None = None) -> Rows:
        """A row-level sub-select, inlined. Raises Unsupported for anything but FROM, WHERE and columns."""
        if select.args.get("group") is not None:
            return self._per_unit(select, ctes)
        named = ("windows",) if has_window(select) else ()
        only(select, "expressions", "from_", "joins", "where", "with_", "kind", "distinct", "order", *named)
        scope = self.select(select, ctes_of(select, ctes), around)
        first = first_of_each(select)
        if first is not None or has_window(select):
            rows = self._windowed(select, scope, first)
        else:
            columns = [c for item in select.expressions for c in _item(item, scope, self._source, intervals=True)]
            rows = replace(scope.rows, columns=tuple(columns))
        check_order(select, scope.binder, {name for name, _ in rows.columns})
        is_distinct = select.args.get("distinct") is not None and first is None
        return self._distinct(rows, select.args["distinct"]) if is_distinct else rows

    def _distinct(self, rows: Rows, node: exp.Expression) -> Rows:
        """The different ones of rows that show their unit."""
        if isinstance(node, exp.Distinct):
            only(node)
        return distinct(kept.plain(rows, node), node, self._binder(Joined((), rows)), self._number())

    def _per_unit(self, select: exp.Select, ctes: Ctes) -> Rows:
        only(select, "expressions", "from_", "joins", "where", "group", "having", "with_", "kind", "order")
        scope = self.select(select, ctes_of(select, ctes))
        kept.plain(scope.rows, select)
        return grouped(select, lambda: scope.rows, scope.binder, self._number(), self._named)

    def _windowed(self, select: exp.Select, scope: Scope, first: exp.Window | None) -> Rows:
        """A sub-select with window functions over the rows of each unit. first: 1 for the rows that are kept."""
        found = Windows(select, lambda: kept.plain(scope.rows, select), scope.binder, self._number())
        relations = tuple(Named(r.alias, found.passed(r.rows)) for r in scope.relations)
        inner = Scope(relations, found.passed(scope.rows), found.inner())
        columns = tuple(c for item in select.expressions for c in _item(item, inner, self._source, intervals=True))
        if first is None:
            return found.rows(columns)
        place = inner.binder.scalar(first)
        rows = found.rows((*columns, ("", place)))
        is_first = inner.binder.call(first, "=", place, Literal(1, SqlType.INT8))
        return replace(rows, columns=columns, where=(*rows.where, is_first))

    def _number(self) -> int:
        """That of a new scan."""
        self._scans += 1
        return self._scans - 1

    # --- names --------------------------------------------------------------------------------------

    def _binder(self, joined: Joined, around: Resolve | None = None) -> Binder:
        def resolve(node: exp.Column) -> Scalar:
            only(node, "this", "table", "db", "catalog")
            name, prefix = identifier(node.this), identifier(node.args.get("table"))
            is_here_too = is_here(node, self._catalog.database)
            if not is_here_too or identifier(node.args.get("db")) not in ("", "public"):
                raise refuse(node, "columns are named as table.column")
            if isinstance(node.this, exp.Star):
                raise refuse(node, "* is accepted in COUNT(*) only")
            parts = [r.rows for r in joined.relations if r.alias == prefix] if prefix else [joined.rows]
            found = [scalar for rows in parts for column, scalar in rows.columns if column == name]
            if len(found) > 1:
                raise refuse(node, f'column reference "{name}" is ambiguous')
            if not found and around is not None and all(r.alias != prefix for r in joined.relations):
                return around(node)
            if not found:
                columns = {r.alias: tuple(c for c, _ in r.rows.columns) for r in joined.relations}
                raise unknown_column(node, prefix, name, columns)
            return found[0]

        rules = {**RULES, exp.Coalesce: coalescing(RULES[exp.Coalesce], joined.rows)}
        return Binder(resolve, self._constants, self._source, rules)


def _renamed(node: exp.Expression, rows: Rows, names: tuple[str, ...]) -> Rows:
    """The rows with their first columns called `names`."""
    if len(names) > len(rows.columns):
        raise refuse(node, "more column names than columns")
    renamed = [(names[i] if i < len(names) else c[0], c[1]) for i, c in enumerate(rows.columns)]
    return replace(rows, columns=tuple(renamed))


def _item(item: exp.Expression, scope: Scope, source: str, *, intervals: bool = False) -> list[tuple[str, Scalar]]:
    """The columns of a select item. intervals: whether it may be a difference of times."""
    if isinstance(item, exp.Star):
        only(item)
        return list(scope.rows.columns)
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        prefix = identifier(item.args.get("table"))
        for relation in scope.relations:
            if relation.alias == prefix:
                return list(relation.rows.columns)
        raise refuse(item, f'missing FROM-clause entry for table "{prefix}"')
    inner, name = (item.this, identifier(item.args["alias"])) if isinstance(item, exp.Alias) else (
        item, output_name(item, source))  # fmt: skip
    return [(name, _value(inner, scope.binder) if intervals else scope.binder.scalar(inner))]


def _value(node: exp.Expression, binder: Binder) -> Scalar:
    """A column of a sub-select, which may be a difference of times: where it is read shows what becomes of it."""
    bound = bind_interval(binder, node)
    return bound if isinstance(bound, Call) else binder.scalar(node)


def ctes_of(node: exp.Expression, outer: Ctes) -> Ctes:
    """The CTEs visible inside a query: those around it and those it declares. Recursive ones are refused."""
    clause = node.args.get("with_")
    if clause is None:
        return outer
    if clause.args.get("recursive"):
        raise refuse(node, "WITH RECURSIVE is not supported with private tables")
    found = dict(outer)
    for cte in clause.expressions:
        name, declared = declare(cte, found)
        found[name] = declared
    return MappingProxyType(found)


def declare(cte: exp.Expression, visible: Ctes, tokens: tuple[Token, ...] = ()) -> tuple[str, Cte]:
    """The name and meaning of one element of a WITH clause. Raises Unsupported."""
    only(cte, "this", "alias", "materialized")
    alias = cte.args["alias"]
    columns = tuple(identifier(c) for c in alias.args.get("columns") or ())
    return identifier(alias.this), Cte(cte.this, columns, MappingProxyType(dict(visible)), tokens)


def _passing(rows: Rows, conditions: list[Scalar]) -> Rows:
    """The rows that pass conditions that were gathered, of which none are left then."""
    found = replace(rows, where=(*rows.where, *conditions)) if conditions else rows
    conditions.clear()
    return found
