"""Which statements ask how much the units of a table have?

Each counts units by size, in the buckets of a fixed ladder: a unit is in one of them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from proxy.plan.profile import edges
from proxy.policy.model import FromPolicy, Policy, RowUnit, Table, UnitColumns, UnitVia
from proxy.sql.dialect import quote
from proxy.sql.intervals import number_range

_REACH = 12  # the smallest edge of sums and values is the largest value, halved so often


class Size(enum.Enum):
    """Of what of a unit: its rows, the sum of the sizes of a column's values, or the largest of these."""

    ROWS = "count(*)"
    SUM = "sum(abs({}))"
    VALUE = "max(abs({}))"


@dataclass(frozen=True, slots=True)
class Sizing:
    """What is asked of the units of a table. largest: size of one value of the column, of which sizes are multiples."""

    table: Table
    of: Size
    column: str = ""
    largest: float = 1.0

    @property
    def least(self) -> float:
        """The smallest edge of the ladder, in multiples of `largest`."""
        return 1.0 if self.of is Size.ROWS else math.ldexp(1.0, -_REACH)


def has_several_rows(table: Table) -> bool:
    """Whether a unit may have more than one row."""
    return not (table.unit_unique or isinstance(table.ownership, RowUnit))


def allowed_rows(table: Table) -> int:
    """Rows that the policy allows a unit; 1 where there cannot be more."""
    if not has_several_rows(table) or not isinstance(table.rows_per_unit, FromPolicy):
        return 1
    return table.rows_per_unit.limit


def sizings(table: Table, columns: Sequence[str], values: Sequence[str]) -> list[Sizing]:
    """Of a table's rows, if a unit may have several; of the sums of columns; of the largest values of columns."""
    rows = [Sizing(table, Size.ROWS)] if has_several_rows(table) else []
    sums = [Sizing(table, Size.SUM, name, largest_value(table, name)) for name in columns]
    return [*rows, *sums, *(Sizing(table, Size.VALUE, name, largest_value(table, name)) for name in values)]


def measures(table: Table) -> tuple[str, ...]:
    """The columns whose sums are likely to be asked for: numbers with bounds that neither tell rows apart nor join."""
    joining = {j.column for j in table.joins}
    if isinstance(table.ownership, UnitVia):
        joining.add(table.ownership.on)
    return tuple(
        c.name for c in table.columns if not c.hidden and c.name not in joining and largest_value(table, c.name)
    )


def largest_value(table: Table, name: str) -> float:
    """The size of a column's values by the policy; 0 for a column without bounds."""
    column = table.column(name)
    ends = number_range(column.domain) if column is not None and column.type.is_number else None
    return max(map(abs, ends)) if ends is not None else 0.0


def question(of: Sizing, policy: Policy) -> str:
    """How many units are in each bucket?"""
    limits = (format(Decimal(f"{edge * of.largest:.12g}"), "f") for edge in edges(of.least))
    cases = " ".join(f"WHEN hush_size <= {limit} THEN {number}" for number, limit in enumerate(limits))
    bucket = f"CASE WHEN hush_size IS NULL THEN 0 {cases} ELSE {len(edges(of.least))} END"
    return f"SELECT {bucket} AS bucket, count(*) AS units FROM ({_sized(of, policy)}) AS units GROUP BY {bucket}"


def _sized(of: Sizing, policy: Policy) -> str:
    """The size of each unit; a row that is a unit of its own is not grouped."""
    if isinstance(of.table.ownership, RowUnit):
        return f"SELECT abs(t0.{quote(of.column)}) AS hush_size FROM {quote(of.table.name)} AS t0"
    units, source = _units(of.table, policy)
    return f"SELECT {units}, {of.of.value.format(f't0.{quote(of.column)}')} AS hush_size FROM {source} GROUP BY {units}"


def _units(table: Table, policy: Policy) -> tuple[str, str]:
    """The unit of a table's rows, and what to read it from."""
    source, number = f"{quote(table.name)} AS t0", 0
    while isinstance(path := table.ownership, UnitVia):
        table, number = policy.tables[path.parent], number + 1
        on = f"t{number - 1}.{quote(path.on)} = t{number}.{quote(path.parent_key)}"
        source += f" JOIN {quote(table.name)} AS t{number} ON {on}"
    assert isinstance(table.ownership, UnitColumns), "a path ends at a table with the unit's columns"
    return ", ".join(f"t{number}.{quote(c)}" for c in table.ownership.columns), source
