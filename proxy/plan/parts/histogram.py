"""Which statement counts the rows of each group in each cell of a grid, every unit within its bounds?

A unit above its bounds has its rows count less, in the group or everywhere; nothing is sampled. Counts are
exact integers of 1/ROW_WEIGHT of a row. See docs/claims/quantiles.md.
"""

from __future__ import annotations

from datetime import date
from typing import assert_never

from proxy.dp.mechanisms import Distribution
from proxy.dp.quantiles import ROW_WEIGHT
from proxy.errors import Unsupported
from proxy.plan.parts.part_rows import part_rows
from proxy.plan.parts.quantile_grid import Days, Moments, QuantileGrid, Reals, Wholes
from proxy.plan.sql.moment_sql import MomentTerms, VectorStatement
from proxy.plan.vector.moments import RowCount
from proxy.sql.algebra.nodes import ColumnRef, Scalar
from proxy.sql.render.dialect import Overflow
from proxy.sqltypes import SqlType

_LEAST_STEP = 1e-290  # of cells: a shorter one has no quotient that is a double, or is no double itself
_NORM_UNITS = 2**40  # of a full group
_LESS = 1.0 - 2.0**-40  # against the rounding of doubles, so that no unit weighs more than its bounds


def histogram(statement: VectorStatement, rows: RowCount, of: Scalar, grid: QuantileGrid, groups: int) -> str:
    """The SQL: the keys, the number of a cell and the weight of the group's rows in it.

    rows: the rows that count; each is in one cell, whatever `of` is for it. groups: the squares (pure: the sizes) of a
    unit's shares in the bound of a group add up to at most this.
    """
    terms = MomentTerms(statement)
    return weighed(statement, terms, part_rows(terms, terms.condition(rows), _Cells(terms, of).number(grid)), groups)


def weighed(statement: VectorStatement, terms: MomentTerms, counted: str, groups: int) -> str:
    """The SQL of a histogram over given rows: unit, keys and `x`, which says where a row is. groups: as above."""
    keys = terms.keys
    if statement.analysed.owned.is_one_row_per_unit:
        by = ", ".join([*keys, "x"])
        return f"SELECT {by}, count(*) * {ROW_WEIGHT} AS w\nFROM (\n{counted}) AS counted\nGROUP BY {by}"
    units, by = ", ".join(terms.units), ", ".join([*terms.units, *keys])
    same = " AND ".join(
        [f"cell.{u} = above.{u}" for u in terms.units] + [f"cell.{k} IS NOT DISTINCT FROM above.{k}" for k in keys]
    )
    dialect, double = statement.dialect, statement.dialect.double
    row, whole = double(float(ROW_WEIGHT) * _LESS), double(float(_NORM_UNITS))
    limit = statement.analysed.bounds.rows_per_group
    is_gaussian, most = statement.distribution is Distribution.GAUSSIAN, groups * _NORM_UNITS
    size = f"rows * rows * {double(_NORM_UNITS / limit**2)}" if is_gaussian else f"rows * {double(_NORM_UNITS / limit)}"
    share = dialect.ratio(double(float(most)), "q")
    share = f"sqrt({share})" if is_gaussian else share
    most_full = dialect.wide_sum(f"CASE WHEN rows < {limit} THEN ceil({size}) ELSE {whole} END::BIGINT")
    in_group = f"CASE WHEN rows > {limit} THEN {dialect.ratio(double(float(limit)), 'rows')} ELSE 1e0 END"
    in_all = f"CASE WHEN q > {most}::{dialect.huge} THEN {share} ELSE 1e0 END"
    among = dialect.matched("counted", "many", terms.units, is_there=True)
    body = f"\n{counted}"
    ctes = (
        f"{dialect.once('counted', body)},\n"
        f"held AS (SELECT {by}, count(*) AS rows FROM counted GROUP BY {by}),\n"
        f"many AS (SELECT {units}, {most_full} AS q FROM held GROUP BY {units}\n"
        f"  HAVING {most_full} > {most}::{dialect.huge} OR max(rows) > {limit}),\n"
        f"above AS (SELECT {by}, {in_group} * {in_all} AS r FROM held JOIN many USING ({units})),\n"
        f"cell AS (SELECT {by}, x, count(*) AS n FROM {among} GROUP BY {by}, x)"
    )
    less = f"CASE WHEN r < 1e0 THEN {dialect.whole(f'n * {row} * r')} - n * {ROW_WEIGHT} ELSE 0 END"
    shown, named = ", ".join([*keys, "x"]), ", ".join([*(f"cell.{k}" for k in keys), "x"])
    return (
        f"WITH {ctes}\nSELECT {shown}, {dialect.wide_sum('w')} AS w FROM (\n"
        f"  SELECT {shown}, count(*) * {ROW_WEIGHT} AS w FROM counted GROUP BY {shown}\n"
        f"  UNION ALL SELECT {named}, {less} FROM cell JOIN above ON {same}) AS weighed\nGROUP BY {shown}"
    )


class _Cells:
    """The number of a row's cell as SQL: total, and never NULL."""

    def __init__(self, terms: MomentTerms, of: Scalar) -> None:
        self._text = terms.renderer.unclamped(of) if isinstance(of, ColumnRef) else terms.renderer.measure(of)
        self._constant = terms.renderer.constant
        self._dialect = terms.dialect

    def number(self, grid: QuantileGrid) -> str:
        """A row without a value, where there is always one, is in the middle."""
        match grid:
            case Wholes(low, high, step):
                kind = "BIGINT" if high - low < 2**62 else self._dialect.huge
                least, most = (self._constant(end, SqlType.INT8) for end in (low, high))
                clamped = f"least(greatest({self._text}, {least}), {most})::{kind}"
                found = f"({self._dialect.quotient(f'{clamped} - {least}::{kind}', step)})::BIGINT"
                return f"CASE WHEN {self._text} IS NOT NULL THEN {found} ELSE {grid.cells // 2} END"
            case Reals(low, high, step):
                if float(step) < _LEAST_STEP:
                    raise Unsupported(
                        "quantiles, MIN and MAX of numbers with bounds this near to each other are not supported",
                        hint="Multiply by a large constant.",
                    )
                value, double = self._dialect.as_double(self._text), self._dialect.double
                since = f"(greatest(least({value}, {double(high)}), {double(low)}) - {double(low)})"
                place = f"floor({since} / {double(float(step))})"
                if self._dialect.abilities.doubles is Overflow.RAISING:  # the quotient could underflow
                    place = f"CASE WHEN {since} < {double(float(step))} THEN 0e0 ELSE {place} END"
                found = f"least(greatest({place}, 0e0), {double(float(grid.cells - 1))})::BIGINT"
                return f"CASE WHEN {self._dialect.finite(value)} THEN {found} ELSE {grid.cells // 2} END"
            case Days(low, high, step):
                clamped = self._between(low, high, SqlType.DATE)
                days = self._dialect.days_between(self._constant(low, SqlType.DATE), clamped)
                found = f"({self._dialect.quotient(days, step)})"
                return f"CASE WHEN {self._text} IS NOT NULL THEN {found} ELSE {grid.cells // 2} END"
            case Moments(low, high, step):
                clamped = self._between(low, high, SqlType.TIMESTAMP)
                since = self._dialect.microseconds_between(self._constant(low, SqlType.TIMESTAMP), clamped)
                found = self._dialect.quotient(since, step)
                return f"CASE WHEN {self._text} IS NOT NULL THEN {found} ELSE {grid.cells // 2} END"
            case _ as never:
                assert_never(never)

    def _between(self, low: date, high: date, kind: SqlType) -> str:
        ends = (self._constant(low, kind), self._constant(high, kind))
        return f"least(greatest({self._text}, {ends[0]}), {ends[1]})"
