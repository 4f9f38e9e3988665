"""How many rows has a unit at most, and in a group, where the policy says it of a column's values or of a month?

Bounds like all others: rows beyond them count less, and nothing of privacy rests on their being true.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from proxy.analysis.absent import may_be_null
from proxy.analysis.domains import Domains
from proxy.analysis.key_values import KeyValues
from proxy.analysis.learned import is_of_one_table
from proxy.analysis.owned import Owned
from proxy.policy.model import PerKey, Table
from proxy.sql.algebra.nodes import Call, ColumnRef, Scalar
from proxy.sqltypes import SqlType

_WITHIN = {"hour": ("hour", "day", "week", "month", "quarter", "year"),
           "day": ("day", "week", "month", "quarter", "year"), "week": ("week",),
           "month": ("month", "quarter", "year"), "quarter": ("quarter", "year"), "year": ("year",)}  # fmt: skip
_SPELLED = {"year": ("year",), "quarter": ("year", "quarter"), "month": ("year", "month")}  # by fields of a time
_NO_LIMIT = math.inf


@dataclass(frozen=True, slots=True)
class DeclaredRows:
    """Of a unit that count, in all and in a group; 0 where nothing that the policy says bounds them."""

    rows: int = 0
    per_group: int = 0


NOTHING_DECLARED = DeclaredRows()


def declared_rows(owned: Owned, keys: Sequence[Scalar], domains: Domains, listed: KeyValues) -> DeclaredRows:
    """The least that follows from the table's `max_rows_per`: of values by which the rows are grouped, or that WHERE
    leaves few of.
    """
    if not owned.bounds_from.rows_per or not is_of_one_table(owned):
        return NOTHING_DECLARED
    scan = next(s.number for s in owned.block.every_scan if s.table.name == owned.bounds_from.name)
    rows = per_group = _NO_LIMIT
    for each in owned.bounds_from.rows_per:
        columns = [(_column(owned.bounds_from, part, scan), part) for part in each.keys]
        left = [_values(column, part, domains, listed) for column, part in columns]
        open_ = [n for n, (column, part) in zip(left, columns, strict=True) if not _is_told(keys, column, part)]
        rows = min(rows, each.limit * math.prod(left))
        per_group = min(per_group, each.limit * math.prod(open_))
    return DeclaredRows(*(int(n) if math.isfinite(n) else 0 for n in (rows, per_group)))


def _column(table: Table, part: PerKey, scan: int) -> ColumnRef:
    column = table.column(part.column)
    assert column is not None, "the policy was checked"
    return ColumnRef(scan, column.name, column.type)


def _values(column: ColumnRef, part: PerKey, domains: Domains, listed: KeyValues) -> float:
    """How many values the rows may have of it."""
    scalar: Scalar = column
    if part.unit:
        time: Scalar = column
        if column.type is SqlType.DATE:
            time = Call("cast time to timestamp", (column,), SqlType.TIMESTAMP)
        scalar = Call(f"date_trunc {part.unit}", (time,), time.type)
    values = listed.of(scalar)
    return _NO_LIMIT if values is None else max(1, len(values) + may_be_null(scalar, domains, listed))


# --- keys -----------------------------------------------------------------------------------------------------


def _is_told(keys: Sequence[Scalar], column: ColumnRef, part: PerKey) -> bool:
    """Whether all rows of a group have the same value."""
    if not part.unit:
        return column in keys
    read = [_plain(k) for k in keys]
    if any(part.unit in _WITHIN.get(_unit_of(k, column), ()) for k in read):
        return True
    fields = {f for k in read if (f := _field_of(k, column))}
    return part.unit in _SPELLED and fields.issuperset(_SPELLED[part.unit])


def _plain(scalar: Scalar) -> Scalar:
    """A key without the types that it is cast to, which keep its values apart or put a day's together."""
    match scalar:
        case Call(function, (inner,)) if function.startswith("cast ") and function != "cast time to date":
            return _plain(inner)
        case _:
            return scalar


def _unit_of(key: Scalar, column: ColumnRef) -> str:
    """The unit of time that a key tells of the column; "" for none."""
    match key:
        case ColumnRef():
            return "hour" if key == column else ""
        case Call("cast time to date", (inner,)) if _plain(inner) == column:
            return "day"
        case Call(function, (inner,)) if function.startswith("date_trunc ") and _plain(inner) == column:
            return function.removeprefix("date_trunc ")
        case _:
            return ""


def _field_of(key: Scalar, column: ColumnRef) -> str:
    match key:
        case Call(function, (inner,)) if function.startswith("extract ") and _plain(inner) == column:
            return function.removeprefix("extract ")
        case _:
            return ""
