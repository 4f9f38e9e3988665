"""Among which public values is a bound of a unit's contribution looked for, and which statement looks?"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from proxy.policy.model import FromPolicy, Policy, RowUnit, Table, UnitColumns, UnitVia
from proxy.sql.dialect import quote
from proxy.sql.intervals import number_range

_MOST = 64
_REACH = 20  # the least candidate of a sum or value is the largest, halved so often


class Size(enum.Enum):
    """Of what of a unit: its rows, the sum of a column over them, or the largest value of a column in them."""

    ROWS = "count(*)"
    SUM = "sum({})"
    VALUE = "max(abs({}))"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rising public sizes that a unit may have in a table. largest: size of one value of the column."""

    table: Table
    of: Size
    column: str
    sizes: tuple[Decimal, ...]
    largest: float = 1.0


def allowed_rows(table: Table) -> int:
    """Rows that the policy allows a unit; 1 where there cannot be more."""
    if table.unit_unique or isinstance(table.ownership, RowUnit) or not isinstance(table.rows_per_unit, FromPolicy):
        return 1
    return table.rows_per_unit.limit


def candidates(table: Table, columns: Sequence[str]) -> list[Candidates]:
    """What is asked of a table: its rows, if a unit may have several; the sums and values of the columns."""
    found, most = [], allowed_rows(table)
    if most > 1:
        found.append(Candidates(table, Size.ROWS, "", _numbers(most)))
    for name in columns:
        largest = largest_value(table, name)
        if most > 1:
            found.append(Candidates(table, Size.SUM, name, _rising(largest * most), largest))
        found.append(Candidates(table, Size.VALUE, name, _rising(largest), largest))
    return found


def largest_value(table: Table, name: str) -> float:
    """The size of a column's values by the policy; 0 for a column without bounds."""
    column = table.column(name)
    ends = number_range(column.domain) if column is not None and column.type.is_number else None
    return max(map(abs, ends)) if ends is not None else 0.0


def _numbers(most: int) -> tuple[Decimal, ...]:
    """All whole numbers up to the largest, or 64 that rise by equal factors."""
    if most <= _MOST:
        return tuple(Decimal(n) for n in range(1, most + 1))
    rising = {max(1, round(most ** (place / (_MOST - 1)))) for place in range(_MOST)}
    return tuple(Decimal(n) for n in sorted(rising | {most}))


def _rising(most: float) -> tuple[Decimal, ...]:
    """64 sizes up to the largest that rise by equal factors."""
    sizes = (most * 2.0 ** (_REACH * (place / (_MOST - 1) - 1.0)) for place in range(_MOST))
    return tuple(Decimal(f"{size:.4g}") for size in sizes)


def question(of: Candidates, policy: Policy) -> str:
    """Which candidate are only a few units above?"""
    units, source = _units(of.table, policy)
    sized = of.of.value.format(f"t0.{quote(of.column)}")
    size = "abs(hush_size)" if of.of is Size.SUM else "hush_size"
    numbered = enumerate(of.sizes[:-1])
    cases = " ".join(f"WHEN {size} <= {format(limit, 'f')} THEN {number}" for number, limit in numbered)
    return (
        f"SELECT max(CASE WHEN hush_size IS NULL THEN 0 {cases} ELSE {len(of.sizes) - 1} END)"
        f" FROM (SELECT {units}, {sized} AS hush_size FROM {source} GROUP BY {units}) AS units"
    )


def _units(table: Table, policy: Policy) -> tuple[str, str]:
    """The unit of a table's rows, and what to read it from."""
    source, number = f"{quote(table.name)} AS t0", 0
    while isinstance(path := table.ownership, UnitVia):
        table, number = policy.tables[path.parent], number + 1
        on = f"t{number - 1}.{quote(path.on)} = t{number}.{quote(path.parent_key)}"
        source += f" JOIN {quote(table.name)} AS t{number} ON {on}"
    assert isinstance(table.ownership, UnitColumns), "a path ends at a table with the unit's columns"
    return ", ".join(f"t{number}.{quote(c)}" for c in table.ownership.columns), source
