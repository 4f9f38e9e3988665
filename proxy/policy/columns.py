"""What does the policy say about one column, and is it possible for the column's type?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, tzinfo
from decimal import Decimal

from proxy.policy.document import ColumnDocument
from proxy.policy.model import Bounded, Column, Domain, Listed, Unknown
from proxy.policy.problems import Path, ProblemReport, did_you_mean, one_of
from proxy.policy.randomized import listed, lists_null, read_mechanism, stored_domain
from proxy.policy.values import WrongValue, read_value
from proxy.sqltypes import TYPE_NAMES, SqlType, Value

# Columns PostgreSQL has in every table.
_SYSTEM_COLUMNS = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
MAX_NAME_BYTES = 63  # NAMEDATALEN - 1; PostgreSQL cuts longer names, and two could become one
RESERVED_PREFIXES = ("pg_", "hush_", "_hush")  # of tables and logins


def check_identifier(name: str, path: Path, report: ProblemReport) -> None:
    """Names may be any PostgreSQL identifier, quoted ones included."""
    if not name or not name.isprintable() or name != name.strip():
        report.add(path, "expected a name of printable characters without blanks around it")
    elif len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        report.add(path, f"names have at most {MAX_NAME_BYTES} bytes")


def read_type(text: str, path: Path, report: ProblemReport) -> SqlType | None:
    """The type, or None when the report says that it is none."""
    name = " ".join(text.lower().split())
    if name in TYPE_NAMES:
        return TYPE_NAMES[name]
    if "(" in name and name.split("(")[0].strip() in TYPE_NAMES:
        report.add(path, f"write '{name.split('(')[0].strip()}' without a length or precision")
    else:
        wrong = report.show(path, text)
        report.add(path, f"unknown type {wrong}{did_you_mean(name, TYPE_NAMES)}; accepted: {one_of(TYPE_NAMES)}")
    return None


def read_column(
    name: str,
    document: ColumnDocument,
    path: Path,
    zone: tzinfo,
    report: ProblemReport,
    *,
    is_unit: bool,
    is_public: bool,
) -> Column | None:
    """The column, or None when its type is unknown. is_unit: it identifies the unit."""
    check_identifier(name, path, report)
    if name in _SYSTEM_COLUMNS:
        report.add(path, "PostgreSQL has a system column of that name; the column cannot be shown")
    kind = read_type(document.type, (*path, "type"), report)
    if kind is None:
        return None
    is_key = is_unit or bool(document.key)
    _check_flags(document, kind, path, report, is_key=is_key, is_unit=is_unit, is_public=is_public)
    domain = _domain(document, kind, path, zone, report)
    mechanism = read_mechanism(document, kind, domain, path, report, is_unit=is_unit)
    return Column(
        name=name,
        type=kind,
        key=is_key,
        domain=stored_domain(domain, mechanism, kind),
        nullable=document.nullable if document.randomized is None else lists_null(document),
        hidden=document.hidden,
        case_blind=document.case_blind,
        sum_bounds=_sum_bounds(document, kind, path, zone, report),
        randomized=mechanism,
    )


def _check_flags(
    document: ColumnDocument,
    kind: SqlType,
    path: Path,
    report: ProblemReport,
    *,
    is_key: bool,
    is_unit: bool,
    is_public: bool,
) -> None:
    if is_unit and document.key is False:
        report.add((*path, "key"), "the column identifies the unit, so it is a key; remove the line")
    if is_public and document.key:
        report.add((*path, "key"), "columns of a public table are shown to everybody; remove the line")
    reason = "a key is never shown" if is_key else "a hidden column is never shown"
    for name in ("bounds", "values", "sum_bounds"):
        if (is_key or document.hidden) and getattr(document, name) is not None:
            report.add((*path, name), f"{reason}, so it has no {name}; remove the line")
    if document.bounds is not None and document.values is not None:
        report.add((*path, "bounds"), "give either bounds or values, not both")
    is_enforced = document.bounds is not None or document.values is not None or document.randomized is not None
    if not document.nullable and not is_enforced:
        report.add((*path, "nullable"), "'nullable: false' needs bounds or values, by which it is enforced")
    if document.case_blind and (kind is SqlType.UUID or not kind.is_text):
        report.add((*path, "case_blind"), f"only text can be compared in lower case, not {kind.pg_name}")


def _domain(document: ColumnDocument, kind: SqlType, path: Path, zone: tzinfo, report: ProblemReport) -> Domain:
    if document.values is not None:
        return _listed(document, kind, (*path, "values"), zone, report)
    if document.bounds is not None:
        return _bounded(document.bounds, kind, (*path, "bounds"), zone, report)
    if kind is SqlType.BOOL and not document.key and not document.hidden:
        return Listed((False, True))
    return Unknown()


def _sum_bounds(
    document: ColumnDocument, kind: SqlType, path: Path, zone: tzinfo, report: ProblemReport
) -> Bounded | Unknown:
    """Bounds of a unit's sum: a sum of whole numbers may be larger than the column's type."""
    if document.sum_bounds is None:
        return Unknown()
    here = (*path, "sum_bounds")
    if not kind.is_number:
        report.add(here, f"only numbers can be summed, not {kind.pg_name}")
        return Unknown()
    return _bounded(document.sum_bounds, SqlType.NUMERIC if kind.is_integer else kind, here, zone, report)


def _bounded(
    raw: Sequence[object], kind: SqlType, path: Path, zone: tzinfo, report: ProblemReport
) -> Bounded | Unknown:
    if not (kind.is_number or kind.is_time):
        report.add(path, f"only numbers, dates and times have bounds, not {kind.pg_name}; list its values instead")
        return Unknown()
    if len(raw) != 2:
        report.add(path, f"expected [low, high], found {len(raw)} value{'' if len(raw) == 1 else 's'}")
        return Unknown()
    ends = [_value(one, kind, (*path, i), zone, report, ends_day=i == 1) for i, one in enumerate(raw)]
    lo, hi = ends
    if lo is None or hi is None:
        return Unknown()
    if _is_above(lo, hi):
        report.add(path, f"the low end {report.show((*path, 0), raw[0])} is above {report.show((*path, 1), raw[1])}")
        return Unknown()
    return Bounded(lo, hi)


def _listed(document: ColumnDocument, kind: SqlType, path: Path, zone: tzinfo, report: ProblemReport) -> Domain:
    raw = listed(document)
    if not raw:
        report.add(path, "must not be empty; leave the line out if the values are not known")
        return Unknown()
    result: dict[Value, None] = {}
    for i, one in raw:
        here = (*path, i)
        value = _value(one, kind, here, zone, report)
        if value is None:
            continue
        if document.case_blind and isinstance(value, str):
            value = _lowered(value, here, report)
        if value in result:
            report.add(here, f"{report.show(here, one)} is listed already")
            continue
        result[value] = None
    return Listed(tuple(result)) if result else Unknown()


def _lowered(value: str, path: Path, report: ProblemReport) -> str:
    """Lower case as engines agree on it: they differ outside ASCII, so there it must be written so."""
    lowered = "".join(c.lower() if c.isascii() else c for c in value)
    if lowered != lowered.lower():
        report.add(path, f"write {report.show(path, value)} in lower case, as the column is case_blind")
    return lowered


def _value(
    raw: object, kind: SqlType, path: Path, zone: tzinfo, report: ProblemReport, *, ends_day: bool = False
) -> Value | None:
    """The value, or None when the report says why it is none of the column's type."""
    try:
        return read_value(raw, kind, zone, ends_day=ends_day)
    except WrongValue as wrong:
        extra = "; NULL is never listed, 'nullable' says whether it occurs" if raw is None else ""
        report.add(path, f"{wrong}, found {report.show(path, raw)}{extra}")
        return None


def _is_above(lo: Value, hi: Value) -> bool:
    """Whether two values of one type are in the wrong order; exact for whole numbers and decimals alike."""
    match lo, hi:
        case (datetime(), datetime()) | (date(), date()):
            return lo > hi
        case (int() | float() | Decimal(), int() | float() | Decimal()):
            return lo > hi
        case _:
            raise AssertionError("bounds of a type that has none")
