"""Which tables exist, who owns their rows, and do the names they use refer to something?

Tables are read one by one first; ownership along paths, implied columns and declared joins need all of
them and follow in `paths`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import assert_never

from proxy.policy.columns import RESERVED_PREFIXES, check_identifier, read_column
from proxy.policy.document import AtMost, TableDocument, UnitPath
from proxy.policy.model import BoundSource, Column, NotGiven, WrittenBound
from proxy.policy.problems import Path, ProblemReport, did_you_mean, one_of

_RESERVED_TABLES = frozenset({"hush", "pg_catalog", "information_schema"})
_UNIT_UNKNOWN: tuple[Path, ...] = (("privacy",), ("privacy", "unit"))


@dataclass(slots=True)
class Draft:
    """A table while it is read.

    lost: listed columns that are faulty themselves, so that their absence is no further problem.
    is_damaged: keys of the table were cut out, so that a missing key proves nothing.
    """

    name: str
    document: TableDocument
    path: Path
    columns: dict[str, Column] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    is_damaged: bool = False


def read_drafts(
    documents: Mapping[str, TableDocument],
    cut: tuple[Path, ...],
    *,
    zone: tzinfo,
    row_unit: bool,
    report: ProblemReport,
) -> dict[str, Draft]:
    """Every table with the columns it lists; what they say about other tables is not looked at yet."""
    drafts: dict[str, Draft] = {}
    by_lower: dict[str, str] = {}
    for name, document in documents.items():
        path: Path = ("tables", name)
        _check_table_name(name, path, report)
        twin = by_lower.setdefault(name.lower(), name)
        if twin != name:
            report.add(path, f"differs from table '{twin}' only in case")
        own = [c[2:] for c in cut if c[:2] == path and len(c) > 2]
        lost = {str(c[1]) for c in own if c[0] == "columns" and len(c) > 1}
        is_damaged = any(c[0] != "columns" for c in own) or any(c in _UNIT_UNKNOWN for c in cut)
        draft = Draft(name, document, path, lost=lost, is_damaged=is_damaged)
        _read_columns(draft, zone, report)
        _check_local(draft, report)
        _check_ownership(draft, row_unit=row_unit, report=report)
        _check_limits(draft, row_unit=row_unit, report=report)
        drafts[name] = draft
    return drafts


def unit_columns(document: TableDocument) -> tuple[str, ...]:
    """Columns of the table itself that hold the unit; none for paths and public tables."""
    match document.unit:
        case str():
            return (document.unit,)
        case list():
            return tuple(document.unit)
        case _:
            return ()


def _check_table_name(name: str, path: Path, report: ProblemReport) -> None:
    check_identifier(name, path, report)
    if "." in name:
        report.add(path, "tables have no schema part; give the engine's name with 'relation: schema.table'")
    elif name.lower() in _RESERVED_TABLES or name.lower().startswith(RESERVED_PREFIXES):
        report.add(path, "the name is reserved; choose another and give the engine's name with 'relation:'")


def _read_columns(draft: Draft, zone: tzinfo, report: ProblemReport) -> None:
    units = unit_columns(draft.document)
    by_lower: dict[str, str] = {}
    for name, document in draft.document.columns.items():
        path: Path = (*draft.path, "columns", name)
        twin = by_lower.setdefault(name.lower(), name)
        if twin != name:
            report.add(path, f"differs from column '{twin}' only in case")
        is_open = draft.document.public or draft.document.local
        is_unit = name in units and not draft.document.local
        column = read_column(name, document, path, zone, report, is_unit=is_unit, is_public=is_open)
        if column is None:
            draft.lost.add(name)
        else:
            draft.columns[name] = column


# --- ownership ------------------------------------------------------------------------------------

_UNIT_KEYS = ("unit", "unit_unique", "unit_constant", "unit_filter")
_PRIVATE_KEYS = (
    *_UNIT_KEYS,
    "max_rows_per_unit",
    "max_rows_per_group",
    "max_groups_per_unit",
    "max_rows_per",
    "max_keys_per_unit",
)


def _check_ownership(draft: Draft, *, row_unit: bool, report: ProblemReport) -> None:
    document = draft.document
    keys, reason = _keys_without_meaning(document, row_unit=row_unit)
    for name in keys:
        if name in document.model_fields_set:
            report.add((*draft.path, name), reason)
    is_told = document.public or document.local or row_unit or document.unit is not None
    if not is_told and not draft.is_damaged:
        report.add(
            draft.path,
            "says nothing about whose rows these are; give 'unit: column', "
            "'unit: {via: table, on: column}' or 'public: true'",
        )
    if document.unit_unique and isinstance(document.unit, UnitPath):
        report.add((*draft.path, "unit_unique"), "needs the unit in a column of the table itself, not along a path")
    units = unit_columns(document)
    if len(set(units)) != len(units):
        report.add((*draft.path, "unit"), "names a column twice")
    _check_unit_constant(draft, units, report)


def _keys_without_meaning(document: TableDocument, *, row_unit: bool) -> tuple[tuple[str, ...], str]:
    """Keys that say nothing of a table like this, and why."""
    if document.public:
        return _PRIVATE_KEYS, "a public table belongs to nobody; remove the line, or 'public: true'"
    if document.local:
        return _PRIVATE_KEYS[1:], "nothing of a local table is bounded; remove the line"
    if row_unit:
        return _UNIT_KEYS, "with 'privacy.unit: row' each row is a unit; remove the line"
    return (), ""


def _check_unit_constant(draft: Draft, units: tuple[str, ...], report: ProblemReport) -> None:
    for i, name in enumerate(draft.document.unit_constant):
        path: Path = (*draft.path, "unit_constant", i)
        if name in units:
            report.add(path, "is the unit itself; remove it")
        elif name in draft.document.unit_constant[:i]:
            report.add(path, "is listed already")
        elif name not in draft.columns and name not in draft.lost:
            report.add(path, missing_column(report.show(path, name), name, draft))
        elif name in draft.columns and draft.columns[name].is_randomized:
            report.add(path, "is randomized, each row by itself, so rows of a unit differ; remove it")


def missing_column(quoted: str, name: str, draft: Draft) -> str:
    """Words for a column that a table does not have."""
    known = draft.columns
    return f"table '{draft.name}' has no column {quoted}{did_you_mean(name, known)}; it has: {one_of(known)}"


# --- what was randomized --------------------------------------------------------------------------


def _check_local(draft: Draft, report: ProblemReport) -> None:
    """Each column of a local table is randomized, or public and declared so; nowhere else is one declared public."""
    document = draft.document
    for name, column in document.columns.items():
        path: Path = (*draft.path, "columns", name)
        if document.public and column.randomized is not None:
            report.add((*path, "randomized"), "rows of a public table are shown as they are; write 'local: true' there")
        if not document.local and column.public:
            report.add((*path, "public"), "only columns of a table with 'local: true' are declared public")
        if document.local and column.randomized is None and not column.public and name not in draft.lost:
            words = "each column of a local table is randomized or public; give 'randomized: {keep: 0.75}' or "
            report.add(path, f"{words}'public: true', which shows it to everybody")
    if document.local:
        _check_local_table(draft, report)
    elif "raw_select" in document.model_fields_set:
        words = "rows of a table are shown only where they were private before they were stored, 'local: true'"
        report.add((*draft.path, "raw_select"), f"{words}; for all others it stands at privacy.raw_select")


def _check_local_table(draft: Draft, report: ProblemReport) -> None:
    document, path = draft.document, (*draft.path, "unit")
    if document.public:
        report.add((*draft.path, "local"), "a public table hides nothing; remove the line, or 'public: true'")
    if isinstance(document.unit, UnitPath):
        report.add(path, "a local table names a person in a public column of its own, or nowhere")
    for name in unit_columns(document):
        if name not in draft.columns and name not in draft.lost:
            report.add(path, missing_column(report.show(path, name), name, draft))
        elif name in draft.columns and draft.columns[name].is_randomized:
            report.add(path, f"column {report.show(path, name)} is randomized, so it names nobody")
    if all(c.randomized is None for c in document.columns.values()) and not draft.is_damaged and not draft.lost:
        report.add((*draft.path, "local"), "no column is randomized; write 'public: true' if all is public")


# --- contribution bounds --------------------------------------------------------------------------

_ROWS, _GROUP_ROWS, _GROUPS = "max_rows_per_unit", "max_rows_per_group", "max_groups_per_unit"


def _check_limits(draft: Draft, *, row_unit: bool, report: ProblemReport) -> None:
    document = draft.document
    if document.public or document.local:
        return
    given = {name: _number(getattr(document, name)) for name in (_ROWS, _GROUP_ROWS, _GROUPS)}
    is_unique = document.unit_unique and not isinstance(document.unit, UnitPath)
    if row_unit or is_unique:
        reason = "with 'privacy.unit: row' each row is a unit" if row_unit else "'unit_unique' says one row per unit"
        for name, limit in given.items():
            if limit is not None and limit != 1:
                report.add((*draft.path, name), f"{reason}; remove the line")
        return
    most = given[_ROWS]
    for name in (_GROUP_ROWS, _GROUPS):
        limit = given[name]
        if limit is not None and most is not None and limit > most:
            report.add((*draft.path, name), f"must be at most {_ROWS} ({most}), found {limit}")


def rows_of_a_unit(document: TableDocument) -> int | None:
    """T, as far as the table's document gives it."""
    return _number(document.max_rows_per_unit)


def _number(value: int | AtMost | None) -> int | None:
    return value.at_most if isinstance(value, AtMost) else value


def limit(value: int | AtMost | None) -> BoundSource:
    """A contribution bound as the model has it."""
    match value:
        case None:
            return NotGiven()
        case AtMost(at_most=most):
            return WrittenBound(most, is_ceiling=True)
        case int():
            return WrittenBound(value)
        case _ as never:
            assert_never(never)


def read_relation(text: str | None, name: str, path: Path, report: ProblemReport) -> tuple[str, ...]:
    """`main."Odd.Name"` as its parts; the table's own name if nothing is given."""
    if text is None:
        return (name,)
    parts: list[str] = []
    rest = text
    while True:
        if rest.startswith('"'):
            end = _closing_quote(rest)
            if end == len(rest):
                parts = [""]
                break
            part, rest = rest[1:end].replace('""', '"'), rest[end + 1 :]
        else:
            end = next((i for i, c in enumerate(rest) if c in '."'), len(rest))
            part, rest = rest[:end], rest[end:]
        parts.append(part)
        if not rest.startswith("."):
            break
        rest = rest[1:]
    if rest or len(parts) > 3 or not all(p and p.isprintable() and p == p.strip() for p in parts):
        report.add(path, 'expected a name as orders, main.orders or main."Orders"')
    return tuple(parts)


def _closing_quote(text: str) -> int:
    """Index of the quote that closes the one at 0; doubled quotes stay inside. The end if none does."""
    i = 1
    while i < len(text):
        if text[i] == '"':
            if text[i + 1 : i + 2] != '"':
                return i
            i += 1
        i += 1
    return len(text)
