"""How do tables hang together: unit columns nobody listed, declared joins, paths to the unit?"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.policy.document import UnitPath
from proxy.policy.model import (
    Column,
    JoinKey,
    Ownership,
    PublicTable,
    RowUnit,
    Table,
    UnitColumns,
    UnitVia,
)
from proxy.policy.problems import Path, Report, did_you_mean, one_of
from proxy.policy.tables import Draft, limit, missing_column, read_relation, unit_columns
from proxy.sqltypes import SqlType

Drafts = Mapping[str, Draft]


def connect(drafts: Drafts, *, row_unit: bool, report: Report) -> dict[str, Table]:
    """All tables in final form; faults go to the report and leave tables out."""
    _add_implied_units(drafts, report)
    order = _order_of_paths(drafts, report)
    joins: dict[str, tuple[JoinKey, ...]] = {}
    owners: dict[str, Ownership] = {}
    for name in order:
        _add_implied_reference(drafts, drafts[name])
    for name, draft in drafts.items():
        joins[name] = _joins(drafts, draft, report)
    for name, draft in drafts.items():
        owner = _owner(drafts, draft, joins[name], row_unit=row_unit, report=report)
        if owner is not None:
            owners[name] = owner
    return {name: _table(draft, owners[name], joins[name], report) for name, draft in drafts.items() if name in owners}


def _table(draft: Draft, owner: Ownership, joins: tuple[JoinKey, ...], report: Report) -> Table:
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
        rows_per_unit=limit(document.max_rows_per_unit),
        rows_per_group=limit(document.max_rows_per_group),
        groups_per_unit=limit(document.max_groups_per_unit),
        keys_per_unit=document.max_keys_per_unit,
        unit_filter_allowed=document.unit_filter == "allow",
        unit_constant=tuple(document.unit_constant),
        comment=document.comment,
    )


# --- columns that are used but not listed -----------------------------------------------------------


def _add_implied_units(drafts: Drafts, report: Report) -> None:
    """A unit column that is not listed gets the type of what it joins to, or of its namesake elsewhere."""
    for draft in drafts.values():
        missing = [name for name in unit_columns(draft.document) if name not in draft.columns]
        for name in reversed(missing):
            found = _joined_column(drafts, draft, name) or _namesake(drafts, draft, name)
            if found is not None:
                draft.columns = {name: Column(name=name, type=found.type, key=True), **draft.columns}
            elif not any(d.damaged for d in drafts.values()):
                _report_missing_unit(draft, name, report)


def _report_missing_unit(draft: Draft, name: str, report: Report) -> None:
    path: Path = (*draft.path, "unit")
    quoted = report.show(path, name)
    close = did_you_mean(name, draft.columns)
    report.add(
        path, f"column {quoted} is not listed{close}; list it under columns as {quoted}: {{type: ..., key: true}}"
    )


def _namesake(drafts: Drafts, draft: Draft, name: str) -> Column | None:
    others = (d for d in drafts.values() if d is not draft and name in unit_columns(d.document))
    return next((d.columns[name] for d in others if name in d.columns), None)


def _joined_column(drafts: Drafts, draft: Draft, name: str) -> Column | None:
    """The column that the draft's column of that name is declared to join to."""
    for target in _targets(draft, name):
        table, _, column = target.partition(".")
        if table in drafts and column in drafts[table].columns:
            return drafts[table].columns[column]
    return None


def _targets(draft: Draft, column: str) -> tuple[str, ...]:
    found = draft.document.joins.get(column, ())
    return (found,) if isinstance(found, str) else tuple(found)


def _add_implied_reference(drafts: Drafts, draft: Draft) -> None:
    """The column a path goes through, if it is not listed, is a key of the type it refers to."""
    unit = draft.document.unit
    if not isinstance(unit, UnitPath) or unit.on in draft.columns or unit.via not in drafts:
        return
    found = _joined_column(drafts, draft, unit.on) or drafts[unit.via].columns.get(unit.on)
    if found is not None:
        draft.columns = {unit.on: Column(name=unit.on, type=found.type, key=True), **draft.columns}


# --- joins --------------------------------------------------------------------------------------------


def _joins(drafts: Drafts, draft: Draft, report: Report) -> tuple[JoinKey, ...]:
    result: list[JoinKey] = []
    for column in draft.document.joins:
        path: Path = (*draft.path, "joins", column)
        if column not in draft.columns:
            if not draft.damaged:
                report.add(path, missing_column(report.show(path, column), column, draft))
            continue
        for target in _targets(draft, column):
            key = _join_key(drafts, draft, column, target, path, report)
            if key is not None and key not in result:
                result.append(key)
    return tuple(result)


def _join_key(drafts: Drafts, draft: Draft, column: str, target: str, path: Path, report: Report) -> JoinKey | None:
    table, dot, referred = target.partition(".")
    quoted = report.show(path, target)
    if not dot or not referred:
        report.add(path, f"expected table.column, found {quoted}")
    elif table not in drafts:
        if not _tables_cut(drafts):
            report.add(path, missing_table(report.show(path, table), table, drafts))
    elif referred not in drafts[table].columns:
        if not drafts[table].damaged:
            report.add(path, missing_column(report.show(path, referred), referred, drafts[table]))
    elif not are_comparable(draft.columns[column].type, drafts[table].columns[referred].type):
        own, other = draft.columns[column].type.pg_name, drafts[table].columns[referred].type.pg_name
        report.add(path, f"the types differ: {own} here, {other} in {quoted}")
    else:
        return JoinKey(column, table, referred)
    return None


def _tables_cut(drafts: Drafts) -> bool:
    return any(d.damaged for d in drafts.values())


def missing_table(quoted: str, name: str, drafts: Drafts) -> str:
    """Words for a table that is not in the policy."""
    return f"there is no table {quoted}{did_you_mean(name, drafts)}; tables: {one_of(drafts)}"


def are_comparable(one: SqlType, other: SqlType) -> bool:
    """Whether an equality of the two types means the same on every engine and needs no time zone."""
    if one is other:
        return one not in (SqlType.FLOAT4, SqlType.FLOAT8)
    exact = (SqlType.INT2, SqlType.INT4, SqlType.INT8, SqlType.NUMERIC)
    texts = (SqlType.TEXT, SqlType.VARCHAR)
    return (one in exact and other in exact) or (one in texts and other in texts)


# --- ownership ------------------------------------------------------------------------------------------


def _order_of_paths(drafts: Drafts, report: Report) -> list[str]:
    """Tables with parents before children. A cycle is reported with its members and left out."""
    done: list[str] = []
    told: set[str] = set()
    for start in drafts:
        trail: list[str] = []
        name = start
        while name in drafts and name not in done and name not in trail and name not in told:
            trail.append(name)
            unit = drafts[name].document.unit
            name = unit.via if isinstance(unit, UnitPath) else ""
        if name in trail:
            cycle = trail[trail.index(name) :]
            told.update(trail)
            words = " -> ".join([*cycle, cycle[0]])
            report.add((*drafts[cycle[0]].path, "unit"), f"the path to the unit goes in a circle: {words}")
        elif name not in told:
            done.extend(reversed(trail))
        else:
            told.update(trail)
    return done


def _owner(
    drafts: Drafts, draft: Draft, joins: tuple[JoinKey, ...], *, row_unit: bool, report: Report
) -> Ownership | None:
    document = draft.document
    if document.public:
        return PublicTable()
    if row_unit:
        return RowUnit()
    if isinstance(document.unit, UnitPath):
        return _via(drafts, draft, document.unit, joins, report)
    units = unit_columns(document)
    return UnitColumns(units) if units else None


def _via(drafts: Drafts, draft: Draft, unit: UnitPath, joins: tuple[JoinKey, ...], report: Report) -> UnitVia | None:
    path: Path = (*draft.path, "unit")
    parent = drafts.get(unit.via)
    if parent is None:
        if not _tables_cut(drafts):
            report.add((*path, "via"), missing_table(report.show((*path, "via"), unit.via), unit.via, drafts))
        return None
    if parent.document.public:
        report.add((*path, "via"), f"table '{parent.name}' is public, so its rows belong to no unit")
        return None
    if unit.on not in draft.columns:
        if not (draft.damaged or parent.damaged):
            here: Path = (*path, "on")
            report.add(here, missing_column(report.show(here, unit.on), unit.on, draft))
        return None
    key = _parent_key(draft, parent, unit, joins, report)
    if key is None:
        return None
    own, other = draft.columns[unit.on].type, parent.columns[key].type
    if not are_comparable(own, other):
        report.add((*path, "on"), f"the types differ: {own.pg_name} here, {other.pg_name} in '{parent.name}.{key}'")
        return None
    return UnitVia(parent.name, unit.on, key)


def _parent_key(draft: Draft, parent: Draft, unit: UnitPath, joins: tuple[JoinKey, ...], report: Report) -> str | None:
    """The parent's column that `on` refers to: declared in joins, else its namesake, else the single unit
    column of a parent with one row per unit."""
    path: Path = (*draft.path, "unit", "on")
    declared = [j.ref_column for j in joins if j.column == unit.on and j.table == parent.name]
    if len(declared) > 1:
        report.add(path, f"'joins' names several columns of '{parent.name}' for it: {one_of(declared)}; leave one")
        return None
    if declared:
        return declared[0]
    if unit.on in parent.columns:
        return unit.on
    units = unit_columns(parent.document)
    if parent.document.unit_unique and len(units) == 1 and units[0] in parent.columns:
        return units[0]
    if not parent.damaged and not report.names((*draft.path, "joins")):
        quoted = report.show(path, unit.on)
        report.add(
            path,
            f"which column of '{parent.name}' does {quoted} refer to? Write 'joins: "
            f"{{{unit.on}: {parent.name}.<column>}}'; it has: {one_of(parent.columns)}",
        )
    return None
