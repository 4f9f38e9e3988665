"""Which statements ask what the units of a table have, and which part of the price is each worth?

Some count units by size, in the buckets of a fixed ladder: a unit is in one of them. Others add up which share of a
unit's rows has which value: a unit adds no more than 1 in all cells together.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import assert_never

from proxy.dp.mechanisms import Distribution
from proxy.plan.parts.cells import Cells, cells_of, number_ends
from proxy.plan.profile.profile import edges
from proxy.policy.model import Policy, RowUnit, Table, UnitColumns, UnitVia, Unknown, WrittenBound
from proxy.sql.functions.domains.intervals import number_range
from proxy.sql.render.dialect import quote, text_literal
from proxy.sqltypes import SqlType, Value

_FIFTHS = 5  # a share has so many times the noise that a number of units by size has
_FEWEST_VALUES = 4  # of a unit whose average counts: those of many are what a bound of averages is about
_REACH = 12  # the smallest edge of sums and values is the largest value, halved so often


class Size(enum.Enum):
    """Of what of a unit: its rows, the sum of the sizes of a column's values, the largest of these, or their number."""

    ROWS = "count(*)"
    SUM = "sum(abs({}))"
    VALUE = "max(abs({}))"
    GROUPS = "count(DISTINCT {})"


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
        return 1.0 if self.of in (Size.ROWS, Size.GROUPS) else math.ldexp(1.0, -_REACH)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which share of the rows of each unit, and of their pairs, has a column's value in which cell?"""

    table: Table
    column: str

    @property
    def cells(self) -> Cells:
        column = self.table.column(self.column)
        return cells_of(column) if column is not None else Cells()

    @property
    def parts(self) -> int:
        """Vectors of length 1 at most that a unit adds: of its rows, and of their pairs if it may have any."""
        return 2 if has_several_rows(self.table) else 1


@dataclass(frozen=True, slots=True)
class Averaging:
    """How many units, of those with at least a few rows, have an average of a column between which ends?"""

    table: Table
    column: str

    @property
    def ends(self) -> tuple[float, ...]:
        """Of the cells, the lowest first."""
        return tuple(number_ends(*_ends(self.table, self.column), is_whole=False))


UnitQuestion = Sizing | Averaging | Sharing


def weight_of(question: UnitQuestion, distribution: Distribution) -> int:
    """Which part of the price a question is worth: vectors of weight 1, or 1/5 of shares, in one joint release.

    Of averages the weight is about 1/2, of numbers of values 1/5. Of rho a vector gets its weight's square, of a pure
    epsilon its weight.
    """
    match question:
        case Sizing(of=Size.GROUPS):
            return 1
        case Averaging():
            return _FIFTHS**2 // 4 if distribution is Distribution.GAUSSIAN else _FIFTHS // 2
        case Sizing():
            return _FIFTHS**2 if distribution is Distribution.GAUSSIAN else _FIFTHS
        case Sharing(parts=parts):
            return parts
        case _ as never:
            assert_never(never)


def bound_of(question: UnitQuestion, distribution: Distribution) -> float:
    """B that the statement itself is to enforce; 0 where what a unit adds follows from its shape."""
    match question:
        case Sizing() | Averaging() | Sharing(parts=1):
            return 0.0
        case Sharing(parts=parts):
            return math.sqrt(parts) if distribution is Distribution.GAUSSIAN else float(parts)
        case _ as never:
            assert_never(never)


def has_several_rows(table: Table) -> bool:
    """Whether a unit may have more than one row."""
    return not (table.unit_unique or isinstance(table.ownership, RowUnit))


def allowed_rows(table: Table) -> int | None:
    """Rows that the policy allows a unit, None where it does not say; 1 where there cannot be more."""
    if not has_several_rows(table):
        return 1
    return table.rows_per_unit.limit if isinstance(table.rows_per_unit, WrittenBound) else None


def sizings(table: Table, columns: Sequence[str], values: Sequence[str] = ()) -> list[Sizing]:
    """Of a table's rows, if a unit may have several; of the sums of columns; of the largest values of columns."""
    rows = [Sizing(table, Size.ROWS)] if has_several_rows(table) else []
    sums = [Sizing(table, Size.SUM, name, largest_value(table, name)) for name in columns]
    return [*rows, *sums, *(Sizing(table, Size.VALUE, name, largest_value(table, name)) for name in values)]


def measures(table: Table) -> tuple[str, ...]:
    """The columns whose sums are likely to be asked for: numbers with bounds that neither tell rows apart nor join."""
    joining = _joining(table)
    return tuple(
        c.name
        for c in table.columns
        if not (c.hidden or c.is_randomized or c.name in joining) and largest_value(table, c.name)
    )


def _joining(table: Table) -> frozenset[str]:
    """The columns that tables are joined on."""
    via = (table.ownership.on,) if isinstance(table.ownership, UnitVia) else ()
    return frozenset((*(j.column for j in table.joins), *via))


def largest_value(table: Table, name: str) -> float:
    """The size of a column's values by the policy; 0 for a column without bounds."""
    return max(map(abs, _ends(table, name)))


def _ends(table: Table, name: str) -> tuple[float, float]:
    """Of a column's values by the policy; zeros for a column without bounds."""
    column = table.column(name)
    ends = number_range(column.domain) if column is not None and column.type.is_number else None
    return ends if ends is not None else (0.0, 0.0)


def filters(table: Table) -> tuple[str, ...]:
    """The columns that are likely to be filtered by: those whose cells follow from the policy."""
    return tuple(c.name for c in table.columns if not (c.hidden or c.key or c.is_randomized) and cells_of(c).are_told)


def unlisted(table: Table) -> tuple[str, ...]:
    """The columns by whose values one may group that nobody listed, where a unit may have several."""
    joining = _joining(table)
    if not has_several_rows(table):
        return ()
    return tuple(
        c.name for c in table.columns
        if isinstance(c.domain, Unknown) and not (c.key or c.hidden or c.name in joining or c.type is SqlType.BOOL)
    )  # fmt: skip


def text_of(question: UnitQuestion, policy: Policy) -> str:
    """The statement."""
    match question:
        case Sizing():
            return _by_size(question, policy)
        case Averaging():
            return _by_average(question, policy)
        case Sharing():
            return _by_value(question, policy)
        case _ as never:
            assert_never(never)


def _by_size(of: Sizing, policy: Policy) -> str:
    """How many units are in each bucket?"""
    limits = (format(Decimal(f"{edge * of.largest:.12g}"), "f") for edge in edges(of.least))
    cases = " ".join(f"WHEN hush_size <= {limit} THEN {number}" for number, limit in enumerate(limits))
    bucket = f"CASE WHEN hush_size IS NULL THEN 0 {cases} ELSE {len(edges(of.least))} END"
    return f"SELECT {bucket} AS bucket, count(*) AS units FROM ({_sized(of, policy)}) AS units GROUP BY {bucket}"


def _by_value(of: Sharing, policy: Policy) -> str:
    """How much of units is in each cell? Quotients of whole numbers of a unit, which `least` tells to be 1 at most."""
    cell = _cell(of)
    if of.parts == 1:
        return f"SELECT {cell} AS cell, count(*) AS shares FROM {quote(of.table.name)} AS t0 GROUP BY {cell}"
    units, source = _units(of.table, policy)
    unit = ", ".join(f"hush_unit{k}" for k in range(len(units)))
    named = ", ".join(f"{u} AS hush_unit{k}" for k, u in enumerate(units))
    counted = f"SELECT {named}, {cell} AS cell, count(*) AS hush_k FROM {source} GROUP BY {', '.join(units)}, {cell}"
    beside = f"SELECT {unit}, cell, hush_k, sum(hush_k) OVER (PARTITION BY {unit}) AS hush_n FROM ({counted}) AS cells"
    share, rest = "hush_k::double precision / hush_n", "(hush_k - 1)::double precision / (hush_n - 1)"
    pairs = f"CASE WHEN hush_n >= 2 THEN least({share} * ({rest}), 1.0) ELSE 0.0 END"
    return f"SELECT cell, sum(least({share}, 1.0)) AS shares, sum({pairs}) AS pairs FROM ({beside}) AS u GROUP BY cell"


def _cell(of: Sharing) -> str:
    """The number of the cell that a row's value is in."""
    column, cells = f"t0.{quote(of.column)}", of.cells
    if cells.values:
        cases = (f"WHEN {column} = {_written(value)} THEN {k}" for k, value in enumerate(cells.values, 1))
        return f"CASE {' '.join(cases)} ELSE 0 END"
    ends = cells.ends[1:-1]
    cases = (f"WHEN {column} <= {_written(end)} THEN {k}" for k, end in enumerate(ends, 1))
    return f"CASE WHEN {column} IS NULL THEN 0 {' '.join(cases)} ELSE {len(ends) + 1} END"


def _written(value: Value) -> str:
    """A constant as clients write it."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return text_literal(value)
        case datetime():
            return f"{'timestamp' if value.tzinfo is None else 'timestamptz'} '{value.isoformat(' ')}'"
        case date():
            return f"date '{value.isoformat()}'"
        case int() | float() | Decimal():
            return format(Decimal(f"{value:.15g}") if isinstance(value, float) else Decimal(value), "f")
        case _ as never:
            assert_never(never)


def _sized(of: Sizing, policy: Policy) -> str:
    """The size of each unit; a row that is a unit of its own is not grouped."""
    if isinstance(of.table.ownership, RowUnit):
        return f"SELECT abs(t0.{quote(of.column)}) AS hush_size FROM {quote(of.table.name)} AS t0"
    columns, source = _units(of.table, policy)
    units = ", ".join(columns)
    return f"SELECT {units}, {of.of.value.format(f't0.{quote(of.column)}')} AS hush_size FROM {source} GROUP BY {units}"


def _by_average(of: Averaging, policy: Policy) -> str:
    """How many units are in each cell, from 1 on? Cell 0 has those of too few rows, and those without a value."""
    cases = " ".join(f"WHEN hush_mean <= {_written(end)} THEN {k}" for k, end in enumerate(of.ends[1:-1], 1))
    cell = f"CASE WHEN hush_mean IS NULL THEN 0 {cases} ELSE {len(of.ends) - 1} END"
    column = f"t0.{quote(of.column)}"
    if isinstance(of.table.ownership, RowUnit):
        means = f"SELECT {column} AS hush_mean FROM {quote(of.table.name)} AS t0"
    else:
        columns, source = _units(of.table, policy)
        units, fewest = ", ".join(columns), _FEWEST_VALUES if has_several_rows(of.table) else 1
        mean = f"CASE WHEN count(*) >= {fewest} THEN avg({column}) END"
        means = f"SELECT {units}, {mean} AS hush_mean FROM {source} GROUP BY {units}"
    return f"SELECT {cell} AS cell, count(*) AS units FROM ({means}) AS units GROUP BY {cell}"


def _units(table: Table, policy: Policy) -> tuple[tuple[str, ...], str]:
    """The columns of the unit of a table's rows, and what to read it from."""
    source, number = f"{quote(table.name)} AS t0", 0
    while isinstance(path := table.ownership, UnitVia):
        table, number = policy.tables[path.parent], number + 1
        on = f"t{number - 1}.{quote(path.on)} = t{number}.{quote(path.parent_key)}"
        source += f" JOIN {quote(table.name)} AS t{number} ON {on}"
    assert isinstance(table.ownership, UnitColumns), "a path ends at a table with the unit's columns"
    return tuple(f"t{number}.{quote(c)}" for c in table.ownership.columns), source
