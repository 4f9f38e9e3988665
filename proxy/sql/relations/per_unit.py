"""What does a sub-select that groups by the unit stand for: one row for each unit, with aggregates of its own rows?

Nothing is released there, so the aggregates are exact. The rows become a scan of their own; HAVING is a condition on
it. Grouped by the unit alone a unit has one row; further keys give it one for each of their values. Aggregates have
bounds only once they are analysed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from proxy.errors import BadGroups, HushError, NotAggregate
from proxy.policy.model import Column, JoinKey, Table, UnitColumns
from proxy.sql.algebra.describe import describe_unit_value
from proxy.sql.algebra.nodes import (
    Block,
    ColumnRef,
    Grouped,
    Scalar,
    Scan,
    UnitValue,
    columns_of,
    conjuncts,
)
from proxy.sql.algebra.rows import Rows, unused_column
from proxy.sql.binding.binder import Binder, Bound, Rule
from proxy.sql.binding.rules import RULES
from proxy.sql.relations.inner_values import KINDS, bind_unit_value, stored_type
from proxy.sql.syntax.group_items import group_items, grouping
from proxy.sql.syntax.names import identifier, spelled
from proxy.sql.syntax.parse import position_of
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_LONGEST_NAME = 60
ItemBinder = Callable[[exp.Expression, Binder], tuple[str, Scalar]]


def grouped(select: exp.Select, rows: Callable[[], Rows], binder: Binder, number: int, item: ItemBinder) -> Rows:
    """The rows of a SELECT over `rows` that groups by their unit. number: of its scan. Raises HushError.

    rows: as they are once all expressions are bound.
    """
    found = GroupedRows(rows, binder, number)
    found.group(select)
    inner = Binder(found.resolve, binder.constants, binder.source, found.rules())
    columns = tuple(item(i, inner) for i in select.expressions)
    having = select.args.get("having")
    where = () if having is None else conjuncts(inner.condition(having.this))
    check_order(select, inner, {name for name, _ in columns})
    return Rows(scans=(found.scan(),), where=where, columns=columns)


def check_order(select: exp.Select, binder: Binder, names: Collection[str]) -> None:
    """Without LIMIT an order of rows means nothing, but what it names must be there. names: those of the items."""
    order = select.args.get("order")
    for ordered in () if order is None else order.expressions:
        node = ordered.this
        is_name = isinstance(node, exp.Column) and not node.args.get("table") and identifier(node.this) in names
        if not is_name and not isinstance(node, exp.Literal):
            binder.scalar(node)


def distinct(rows: Rows, node: exp.Expression, binder: Binder, number: int) -> Rows:
    """One row for each of the different rows, whose columns hold the unit. number: of the scan. Raises HushError.

    Rows that are alike belong to one unit then, so that it is a grouping of the unit's own rows by all their columns.
    """
    found = GroupedRows(lambda: rows, binder, number)
    found.over(dict.fromkeys(scalar for _, scalar in rows.columns), node)
    columns = tuple((name, found.grouped(node, scalar)) for name, scalar in rows.columns)
    return Rows(scans=(found.scan(),), columns=columns)


class GroupedRows:
    """The scan that grouped rows of units become. number: of that scan."""

    def __init__(self, rows: Callable[[], Rows], binder: Binder, number: int) -> None:
        self._read_rows = rows
        self._binder = binder
        self._number = number
        self._unit: list[tuple[str, ColumnRef]] = []
        self._keys: list[tuple[str, Scalar]] = []
        self._values: list[UnitValue] = []

    @property
    def _rows(self) -> Rows:
        return self._read_rows()

    @property
    def values(self) -> tuple[UnitValue, ...]:
        """The aggregates that were asked for."""
        return tuple(self._values)

    # --- grouping -------------------------------------------------------------------------------------------

    def group(self, select: exp.Select) -> None:
        """Find the unit's columns, in the order of the table that has them, and the keys beside them."""
        group = grouping(select)
        assert group is not None, "its caller asked for that"
        only(group, "expressions")
        self.over(dict.fromkeys(self._binder.scalar(node) for node in group_items(select)), group)

    def over(self, found: Collection[Scalar], group: exp.Expression) -> None:
        """Group by these. group: where that is asked for."""
        unit = self._unit_among(found, group)
        self._unit = [(c.name, c) for c in unit]
        for key in (k for k in found if k not in unit and columns_of(k)):
            if key.type is SqlType.INTERVAL:
                raise refuse(group, f"grouping by {key.type.pg_name} is not supported per unit",
                             "Group by a number of days.")  # fmt: skip
            self._keys.append((self._unused(key.name if isinstance(key, ColumnRef) else "key"), key))

    def by(self, unit: Sequence[ColumnRef]) -> None:
        """Group by these columns of the unit alone."""
        self._unit = [(c.name, c) for c in unit]

    def _unit_among(self, found: Collection[Scalar], group: exp.Expression) -> tuple[ColumnRef, ...]:
        for scan in self._rows.scans:
            if isinstance(scan.table.ownership, UnitColumns):
                columns = [scan.table.column(c) for c in scan.table.ownership.columns]
                unit = tuple(ColumnRef(scan.number, c.name, c.type) for c in columns if c is not None)
                if set(unit) <= set(found):
                    return unit
        raise BadGroups(
            "a sub-select over private rows must group by the whole privacy unit",
            hint=self._unit_instead(),
            position=position_of(group),
        )

    def _unit_instead(self) -> str:
        shown = (s.table.shown_unit for s in self._rows.scans)
        units = dict.fromkeys(", ".join(map(spelled, unit)) for unit in shown if unit)
        named = f" ({' or '.join(units)})" if units else ""
        return f"Group by all columns of the unit{named}, and by other keys beside them."

    def resolve(self, node: exp.Column) -> Scalar:
        bound = self._binder.resolve(node)
        found = self._grouped(node, bound)
        if found is not None:
            return found
        raise NotAggregate(f'column "{node.sql()}" must appear in the GROUP BY clause or be used in an aggregate',
                           hint="Use an aggregate of it.", position=position_of(node))  # fmt: skip

    def grouped(self, node: exp.Expression, bound: Scalar) -> Scalar:
        """The same for one that is grouped by, or a constant."""
        found = self._grouped(node, bound)
        return bound if found is None else found

    def _grouped(self, node: exp.Expression, bound: Scalar) -> Scalar | None:
        """What the grouping gives for a scalar of the rows below, if it is grouped by."""
        for name, unit in self._unit:
            if unit == bound:
                return ColumnRef(self._number, name, unit.type)
        for name, key in self._keys:
            if key == bound:
                return self._binder.convert(node, ColumnRef(self._number, name, stored_type(key.type)), key.type)
        return None

    def rules(self) -> dict[type, Rule]:
        """Those of all scalars, with aggregates and with expressions that are grouped by."""
        aggregates: dict[type, Rule] = {exp.Filter: self._aggregate, **dict.fromkeys(KINDS, self._aggregate)}
        if all(isinstance(key, ColumnRef) for _, key in self._keys):
            return {**RULES, exp.Coalesce: self._or_key(RULES[exp.Coalesce]), **aggregates}
        return {**{kind: self._or_key(rule) for kind, rule in RULES.items()}, **aggregates}

    def _or_key(self, rule: Rule) -> Rule:
        def bind(binder: Binder, node: exp.Expression) -> Bound:
            if node.find(exp.Column) is None or node.find(exp.AggFunc) is not None:
                return rule(binder, node)
            try:
                found = self._grouped(node, self._binder.scalar(node))
            except HushError:
                found = None
            return rule(binder, node) if found is None else found

        return bind

    # --- aggregates -----------------------------------------------------------------------------------------

    def _aggregate(self, _: Binder, node: exp.Expression) -> Scalar:
        return bind_unit_value(node, self._binder, self._value)

    def _value(self, value: UnitValue) -> Scalar:
        found = next((v for v in self._values if replace(v, name="") == value), None)
        if found is None:
            text = describe_unit_value(value)
            short = text if len(text) <= _LONGEST_NAME else f"{value.kind.value}(...)"
            found = replace(value, name=self._unused(short))
            self._values.append(found)
        return ColumnRef(self._number, found.name, found.type)

    # --- the scan -------------------------------------------------------------------------------------------

    def _unused(self, name: str) -> str:
        taken = {n for n, _ in self._unit} | {n for n, _ in self._keys} | {v.name for v in self._values}
        return unused_column(name, taken)

    def scan(self) -> Scan:
        """The rows as a scan whose columns have their domains once they are analysed."""
        rows = self._rows
        tables = {s.number: s.table for s in rows.scans}
        block = Block(scans=rows.scans, joins=rows.joins, where=rows.where, keys=(), aggregates=())
        joins = [JoinKey(name, j.table, j.ref_column) for name, key in self._keys if isinstance(key, ColumnRef)
                 and key.scan in tables for j in tables[key.scan].joins if j.column == key.name]  # fmt: skip
        table = Table(
            name=" and ".join(dict.fromkeys(t.name for t in tables.values())), relation=(),
            ownership=UnitColumns(tuple(n for n, _ in self._unit)), unit_unique=not self._keys, joins=tuple(joins),
            columns=(*(Column(name=n, type=c.type, key=True) for n, c in self._unit),
                     *(_key_column(n, k, tables) for n, k in self._keys),
                     *(Column(name=v.name, type=v.type) for v in self._values)),
        )  # fmt: skip
        return Scan(self._number, table, Grouped(block, tuple(self._unit), tuple(self._keys), tuple(self._values)))


def _key_column(name: str, key: Scalar, tables: Mapping[int, Table]) -> Column:
    """A key of the policy stays one."""
    source = tables[key.scan].column(key.name) if isinstance(key, ColumnRef) and key.scan in tables else None
    return Column(name=name, type=stored_type(key.type), key=source is not None and source.key)
