"""What does `max_rows_per` say: of which columns, or of which part of their times, are rows of a unit bounded?"""

from __future__ import annotations

import re

from proxy.policy.model import PerKey, RowsPer
from proxy.policy.problems import Path, ProblemReport, one_of
from proxy.policy.tables import Draft, missing_column, rows_of_a_unit
from proxy.sqltypes import SqlType

_UNITS = ("year", "quarter", "month", "week", "day", "hour")
_TIMES = frozenset((SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ))
_UNIT_OF_TIME = re.compile(r"(?P<unit>[A-Za-z_]+)\s*\(\s*(?P<column>[^()]+?)\s*\)")


def read_rows_per(draft: Draft, report: ProblemReport) -> tuple[RowsPer, ...]:
    """The bounds of a table. What is wrong with one goes to the report, and it is left out."""
    found: list[RowsPer] = []
    for text, limit in draft.document.max_rows_per.items():
        path: Path = (*draft.path, "max_rows_per", text)
        names = text.strip().removeprefix("[").removesuffix("]").split(",")
        keys = [_key(name, path, draft, report) for name in names]
        if draft.document.unit_unique:
            report.add(path, "'unit_unique' says one row per unit; remove the line")
        most = rows_of_a_unit(draft.document)
        if most is not None and limit > most:
            report.add(path, f"must be at most max_rows_per_unit ({most}), found {limit}")
        told = tuple(k for k in keys if k is not None)
        if len(set(told)) < len(told):
            report.add(path, "names a column twice")
        elif any(set(told) == set(other.keys) for other in found):
            report.add(path, "is given already")
        elif len(told) == len(keys):
            found.append(RowsPer(told, limit))
    return tuple(found)


def _key(words: str, path: Path, draft: Draft, report: ProblemReport) -> PerKey | None:
    name, unit = words.strip(), ""
    if name not in draft.columns and (match := _UNIT_OF_TIME.fullmatch(name)):
        name, unit = match["column"].strip('"'), match["unit"].lower()
    column = draft.columns.get(name)
    if column is None:
        if name not in draft.lost:
            report.add(path, missing_column(report.show(path, name), name, draft))
        return None
    if column.is_randomized:
        report.add(path, f"'{name}' is randomized, so it does not tell which rows are alike")
        return None
    if unit and unit not in _UNITS:
        report.add(path, f"'{unit}' is no part of a time; accepted here: {one_of(_UNITS)}")
        return None
    if unit and column.type is not SqlType.DATE and column.type not in _TIMES:
        report.add(path, f"'{name}' is no date or timestamp; give the column alone")
        return None
    if unit == "hour" and column.type is SqlType.DATE:
        report.add(path, f"'{name}' is a date, which has no hours; give day({name})")
        return None
    return PerKey(name, unit)
