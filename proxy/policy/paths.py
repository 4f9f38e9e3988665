"""How do tables hang together: unit columns nobody listed, declared joins, paths to the unit?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proxy.policy.document import UnitPath
from proxy.policy.model import (
    Column,
    JoinKey,
    LocalTable,
    Ownership,
    PublicTable,
    RowUnit,
    Table,
    UnitColumns,
    UnitVia,
)
from proxy.policy.problems import Path, ProblemReport, did_you_mean, one_of
from proxy.policy.rows_per import read_rows_per
from proxy.policy.tables import Draft, limit, missing_column, read_relation, unit_columns
from proxy.sqltypes import SqlType


def connect(
    drafts: Mapping[str, Draft], *, lost: frozenset[str], row_unit: bool, report: ProblemReport
) -> dict[str, Table]:
    """All tables in final form; faults go to the report and leave tables out.

    lost: tables that are faulty themselves, so that their absence is no further problem.
    """
    weaver = _Weaver(drafts, lost, report)
    weaver.add_implied_units()
    for name in weaver.order_of_paths():
        weaver.add_implied_reference(drafts[name])
    joins = {name: weaver.joins(draft) for name, draft in drafts.items()}
    owners: dict[str, Ownership] = {}
    for name, draft in drafts.items():
        owner = weaver.owner(draft, joins[name], row_unit=row_unit)
        if owner is not None:
            owners[name] = owner
    weaver.check_units_agree()
    return {name: _table(drafts[name], owner, joins[name], report) for name, owner in owners.items()}


def _table(draft: Draft, owner: Ownership, joins: tuple[JoinKey, ...], report: ProblemReport) -> Table:
    document = draft.document
    if isinstance(owner, UnitVia):
        along = JoinKey(owner.on, owner.parent, owner.parent_key)
        joins = joins if along in joins else (*joins, along)
    return Table(
        name=draft.name,
        relation=read_relation(document.relation, draft.name, (*draft.path, "relation"), report),
        ownership=owner,
        columns=tuple(draft.columns.values()),
        unit_unique=document.unit_unique,
        joins=joins,
        complete_joins=_complete(draft, joins, report),
        rows_per_unit=limit(document.max_rows_per_unit),
        rows_per_group=limit(document.max_rows_per_group),
        groups_per_unit=limit(document.max_groups_per_unit),
        rows_per=read_rows_per(draft, report),
        keys_per_unit=document.max_keys_per_unit,
        unit_filter_allowed=document.unit_filter == "allow",
        unit_constant=tuple(document.unit_constant),
        comment=document.comment,
    )


def _complete(draft: Draft, joins: tuple[JoinKey, ...], report: ProblemReport) -> tuple[JoinKey, ...]:
    """The joins of the columns that are said to be complete."""
    declared = {join.column for join in joins}
    for number, name in enumerate(draft.document.complete_joins):
        if name not in declared and name not in draft.lost:
            path: Path = (*draft.path, "complete_joins", number)
            report.add(path, f"no join is declared for {report.show(path, name)}; joins: {one_of(declared)}")
    return tuple(j for j in joins if j.column in draft.document.complete_joins)


def are_comparable(one: SqlType, other: SqlType) -> bool:
    """Whether an equality of the two types means the same on every engine and needs no time zone."""
    if one is other:
        return one not in (SqlType.FLOAT4, SqlType.FLOAT8)
    exact = (SqlType.INT2, SqlType.INT4, SqlType.INT8, SqlType.NUMERIC)
    texts = (SqlType.TEXT, SqlType.VARCHAR)
    return (one in exact and other in exact) or (one in texts and other in texts)


@dataclass(frozen=True, slots=True)
class _Weaver:
    drafts: Mapping[str, Draft]
    lost: frozenset[str]
    report: ProblemReport

    # --- columns that are used but not listed ---------------------------------------------------

    def add_implied_units(self) -> None:
        """A unit column that is not listed gets the type of what it joins to, or of its namesake elsewhere."""
        for draft in (d for d in self.drafts.values() if not d.document.local):
            for name in reversed([n for n in unit_columns(draft.document) if n not in draft.columns]):
                found = self._joined_column(draft, name) or self._namesake(draft, name)
                if found is not None:
                    draft.columns = {name: Column(name=name, type=found.type, key=True), **draft.columns}
                elif self._may_be_lost(draft, name):
                    draft.lost.add(name)
                else:
                    self._report_missing_unit(draft, name)

    def add_implied_reference(self, draft: Draft) -> None:
        """The column a path goes through, if it is not listed, is a key of the type it refers to."""
        unit = draft.document.unit
        if not isinstance(unit, UnitPath) or unit.on in draft.columns or unit.via not in self.drafts:
            return
        found = self._joined_column(draft, unit.on) or self.drafts[unit.via].columns.get(unit.on)
        if found is not None:
            draft.columns = {unit.on: Column(name=unit.on, type=found.type, key=True), **draft.columns}

    def _namesake(self, draft: Draft, name: str) -> Column | None:
        others = (d for d in self.drafts.values() if d is not draft and name in unit_columns(d.document))
        return next((d.columns[name] for d in others if name in d.columns), None)

    def _joined_column(self, draft: Draft, name: str) -> Column | None:
        """The column that the draft's column of that name is declared to join to."""
        for target in _targets(draft, name):
            table, _, column = target.partition(".")
            if table in self.drafts and column in self.drafts[table].columns:
                return self.drafts[table].columns[column]
        return None

    def _may_be_lost(self, draft: Draft, name: str) -> bool:
        """Whether the type of an unlisted column could stand in a faulty part of the file."""
        return name in draft.lost or bool(self.lost) or any(name in d.lost for d in self.drafts.values())

    def _report_missing_unit(self, draft: Draft, name: str) -> None:
        path: Path = (*draft.path, "unit")
        quoted = self.report.show(path, name)
        close = did_you_mean(name, draft.columns)
        words = f"column {quoted} is not listed{close}; list it under columns as {quoted}: {{type: ..., key: true}}"
        self.report.add(path, words)

    # --- joins ----------------------------------------------------------------------------------

    def joins(self, draft: Draft) -> tuple[JoinKey, ...]:
        """The joins that a table declares; what is wrong with others is reported."""
        result: list[JoinKey] = []
        for column in draft.document.joins:
            path: Path = (*draft.path, "joins", column)
            if not self._has_column(draft, column, path) or self._is_randomized(draft, column, path):
                continue
            for target in _targets(draft, column):
                key = self._join_key(draft, column, target, path)
                if key is not None and key not in result:
                    result.append(key)
        return tuple(result)

    def _join_key(self, draft: Draft, column: str, target: str, path: Path) -> JoinKey | None:
        table, dot, referred = target.partition(".")
        quoted = self.report.show(path, target)
        if not dot or not referred:
            self.report.add(path, f"expected table.column, found {quoted}")
            return None
        if not self._has_table(table, path) or not self._has_column(self.drafts[table], referred, path):
            return None
        if self._is_randomized(self.drafts[table], referred, path):
            return None
        own, other = draft.columns[column].type, self.drafts[table].columns[referred].type
        if not are_comparable(own, other):
            words = f"the types cannot be equated: {own.pg_name} here, {other.pg_name} in {quoted}"
            self.report.add(path, words)
            return None
        return JoinKey(column, table, referred)

    def _has_table(self, name: str, path: Path) -> bool:
        if name not in self.drafts and name not in self.lost:
            close, known = did_you_mean(name, self.drafts), one_of(self.drafts)
            self.report.add(path, f"there is no table {self.report.show(path, name)}{close}; tables: {known}")
        return name in self.drafts

    def _has_column(self, draft: Draft, name: str, path: Path) -> bool:
        if name not in draft.columns and name not in draft.lost:
            self.report.add(path, missing_column(self.report.show(path, name), name, draft))
        return name in draft.columns

    def _is_randomized(self, draft: Draft, name: str, path: Path) -> bool:
        """Whether the column was randomized, which is reported: what is equal says nothing then."""
        if not draft.columns[name].is_randomized:
            return False
        words = f"column {self.report.show(path, name)} of '{draft.name}' is randomized, so rows do not meet by it"
        self.report.add(path, words)
        return True

    # --- ownership ------------------------------------------------------------------------------

    def order_of_paths(self) -> list[str]:
        """Tables with parents before children. A cycle is reported with its members and left out."""
        done: list[str] = []
        told: set[str] = set()
        for start in self.drafts:
            trail: list[str] = []
            name = start
            while name in self.drafts and name not in done and name not in trail and name not in told:
                trail.append(name)
                unit = self.drafts[name].document.unit
                name = unit.via if isinstance(unit, UnitPath) else ""
            if name in trail:
                cycle = trail[trail.index(name) :]
                words = " -> ".join([*cycle, cycle[0]])
                path: Path = (*self.drafts[cycle[0]].path, "unit")
                self.report.add(path, f"the path to the unit goes in a circle: {words}")
            if name in trail or name in told:
                told.update(trail)
            else:
                done.extend(reversed(trail))
        return done

    def owner(self, draft: Draft, joins: tuple[JoinKey, ...], *, row_unit: bool) -> Ownership | None:
        """Who owns the table's rows; None if the report says why that is not known."""
        document = draft.document
        if document.public:
            return PublicTable()
        if document.local:
            return LocalTable(unit_columns(document), shows_rows=document.raw_select == "allow")
        if row_unit:
            return RowUnit()
        if isinstance(document.unit, UnitPath):
            return self._via(draft, document.unit, joins)
        units = unit_columns(document)
        return UnitColumns(units) if units else None

    def _via(self, draft: Draft, unit: UnitPath, joins: tuple[JoinKey, ...]) -> UnitVia | None:
        path: Path = (*draft.path, "unit")
        if not self._has_table(unit.via, (*path, "via")):
            return None
        parent = self.drafts[unit.via]
        if parent.document.public:
            self.report.add((*path, "via"), f"table '{parent.name}' is public, so its rows belong to no unit")
            return None
        if parent.document.local:
            self.report.add((*path, "via"), f"table '{parent.name}' is local, so its rows belong to no unit")
            return None
        if not self._has_column(draft, unit.on, (*path, "on")) or self._is_randomized(draft, unit.on, (*path, "on")):
            return None
        key = self._parent_key(draft, parent, unit, joins)
        if key is None or self._is_randomized(parent, key, (*path, "on")):
            return None
        own, other = draft.columns[unit.on].type, parent.columns[key].type
        if not are_comparable(own, other):
            words = f"the types cannot be equated: {own.pg_name} here, {other.pg_name} in '{parent.name}.{key}'"
            self.report.add((*path, "on"), words)
            return None
        return UnitVia(parent.name, unit.on, key)

    def _parent_key(self, draft: Draft, parent: Draft, unit: UnitPath, joins: tuple[JoinKey, ...]) -> str | None:
        """The parent's column that `on` refers to: declared in joins, else its namesake, else the single unit
        column of a parent with one row per unit."""
        path: Path = (*draft.path, "unit", "on")
        declared = [j.ref_column for j in joins if j.column == unit.on and j.table == parent.name]
        if len(declared) > 1:
            words = f"'joins' names several columns of '{parent.name}' for it: {one_of(declared)}; leave one"
            self.report.add(path, words)
            return None
        if declared:
            return declared[0]
        if unit.on in parent.columns:
            return unit.on
        units = unit_columns(parent.document)
        if parent.document.unit_unique and len(units) == 1 and units[0] in parent.columns:
            return units[0]
        if not parent.lost and not self.report.names((*draft.path, "joins")):
            quoted = self.report.show(path, unit.on)
            example = f"'joins: {{{unit.on}: {parent.name}.<column>}}'"
            known = one_of(parent.columns)
            words = f"which column of '{parent.name}' does {quoted} refer to? Write {example}; it has: {known}"
            self.report.add(path, words)
        return None

    def check_units_agree(self) -> None:
        """One policy protects one kind of unit, so its columns have the same number and comparable types."""
        first: Draft | None = None
        for draft in self.drafts.values():
            names = unit_columns(draft.document)
            if not names or len(set(names)) < len(names) or any(name not in draft.columns for name in names):
                continue
            if first is None:
                first = draft
                continue
            other = unit_columns(first.document)
            pairs = zip(names, other, strict=False)
            agree = all(are_comparable(draft.columns[a].type, first.columns[b].type) for a, b in pairs)
            if len(names) != len(other) or not agree:
                words = (
                    f"not the same kind of unit as in table '{first.name}': {_typed(first)} there, {_typed(draft)} here"
                )
                self.report.add((*draft.path, "unit"), words)


def _typed(draft: Draft) -> str:
    names = unit_columns(draft.document)
    return ", ".join(f"{name} {draft.columns[name].type.pg_name}" for name in names)


def _targets(draft: Draft, column: str) -> tuple[str, ...]:
    found = draft.document.joins.get(column, ())
    return (found,) if isinstance(found, str) else tuple(found)
