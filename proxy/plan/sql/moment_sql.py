"""How are the units, keys and moments of one private statement spelled, whatever its shape?

Each method gives the text of one expression over the rows (`s0`, `s1`, ...), over a cell (`n`, `m0`, ..., `r`) or
over a unit. See docs/claims/integer-grid.md and docs/claims/bounding.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import assert_never

from proxy.analysis.analyse import Analysed
from proxy.analysis.keys import PrivateKey, PublicKey
from proxy.analysis.units import EveryRow, UnitOf
from proxy.dp.mechanisms import Distribution
from proxy.plan.sql import checked_doubles, total_doubles
from proxy.plan.sql.row_source import RowSource, presence
from proxy.plan.vector.allocation import CELL_REACH, Allocation
from proxy.plan.vector.moments import (
    ROW_UNITS,
    HalfSum,
    Moment,
    ProductSum,
    QuarterSum,
    RowCount,
    RowSum,
    ScaledSum,
    SquareSum,
    UnitCount,
    UnitTotal,
    condition_of,
    is_linear,
    measures_of,
    row_conditions,
    rows_of,
)
from proxy.policy.model import Bounded, Listed
from proxy.sql.algebra.canonical import in_order
from proxy.sql.algebra.nodes import TRUE, ColumnRef, Scalar, column_reads, columns_of, conjuncts
from proxy.sql.render.dialect import Dialect, Overflow
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sql.render.renderer import Renderer, is_costly, middle_of
from proxy.sqltypes import SqlType

_READABLE = 1_000  # characters of conditions that may stand there more than once
NORM_UNITS = 2**40  # integer units of a squared norm, relative to W^2
_LARGEST_NORM = 2.0**61  # in these units, of a cell whose sums over rows and unit counts are at most 2^10 B each


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStatement:
    """What to render: the analysed block, its moments and weights, and the grid.

    scale: S, grid units per weighted unit. salt: hexadecimal, orders keys above K. cut_weight: of a unit among those
    that are cut, or that are whole; 0 where these are not counted.
    """

    analysed: Analysed
    moments: tuple[Moment, ...]
    allocation: Allocation
    distribution: Distribution
    scale: float
    salt: str
    time_zone: str
    dialect: Dialect = DUCKDB
    cut_weight: float = 0.0


@dataclass(frozen=True, slots=True)
class SharedColumns:
    """Texts of columns' clamped values by their names, and by the texts of measures the same over these names."""

    columns: Mapping[str, str]
    measures: Mapping[str, str]


class MomentTerms:
    """The expressions of one statement."""

    def __init__(self, statement: VectorStatement, held: Mapping[str, str] | None = None) -> None:
        """held: texts over the rows that a sub-select has computed once, with their names there."""
        self._s = statement
        self._held = held or {}
        self._a = self.analysed = statement.analysed
        self.dialect = statement.dialect
        self.renderer = self._renderer()
        self.source = RowSource(self._a, self.renderer)
        self.units = [f"u{i}" for i in range(len(self.unit_columns()))]
        self.keys = [f"k{i}" for i in range(len(self._a.keys))]

    def _renderer(self, named: Mapping[ColumnRef, str] = MappingProxyType({})) -> Renderer:
        domains = self._a.domains
        return Renderer(domains.column, domains.operands, self._s.time_zone, self.dialect, named)

    # --- rows -----------------------------------------------------------------------------------------------

    def held(self, *, even_few: bool = False) -> dict[str, str]:
        """Measures and conditions to be computed once for each row, and names for them; none where these are few.

        The engine sees no common parts inside CASE and FILTER. even_few: those too, where rows are out of sight.
        """
        values = dict.fromkeys(self._double(s.of) for m in self._s.moments for s in measures_of(m))
        conditions = dict.fromkeys(c for m in self._s.moments for c in self._tests(m, values))
        is_short = sum(map(len, conditions)) < _READABLE
        if is_short and not even_few and (not values or self._reads_columns_in_place()):
            return {}
        return {t: f"v{i}" for i, t in enumerate(values)} | {t: f"c{i}" for i, t in enumerate(conditions)}

    def read_once(self) -> SharedColumns:
        """Columns that measures are computed from more than once: their clamped values, and the measures over these.

        Only measures of which every column is among them; reading a column never raises, so that this is done before.
        """
        composed = dict.fromkeys(s.of for m in self._s.moments for s in measures_of(m) if s.of.type.is_number)
        read = {of: column_reads(of) for of in composed if not isinstance(of, ColumnRef)}
        names = {c: f"b{i}" for i, c in enumerate(dict.fromkeys(c for columns in read.values() for c in columns))}
        if len(names) == sum(map(len, read.values())) or self.dialect.abilities.doubles is not Overflow.INFINITE:
            return SharedColumns({}, {})
        over = dict[str, str]()
        for of in read:
            renderer = self._renderer(names)
            text = self.dialect.as_double(renderer.measure(of))
            if not renderer.reads_stored:
                over[self._double(of)] = text
        used = dict.fromkeys(c for of, columns in read.items() if self._double(of) in over for c in columns)
        kept = {names[c]: self.renderer.measure(c) for c in used}
        return SharedColumns(kept, over)

    def _tests(self, moment: Moment, values: Mapping[str, None]) -> list[str]:
        """The tests of rows in a moment's condition, those aside which can be told by the values."""
        where, needed, _ = self._rows_asked(moment)
        tests = [self._present(s) for s in in_order(needed) if s != TRUE and self._double(s) not in values]
        return [self.renderer.condition(where), *tests] if conjuncts(where) else tests

    def _reads_columns_in_place(self) -> bool:
        """Whether what is summed are columns, and each numeric one is read once: a sub-select would only hand them on.

        To make a double of a numeric costs something, and each further aggregate would do it again.
        """
        if not self.dialect.abilities.numerics_cost:
            return False
        if any(measures_of(m) and not isinstance(m, (ScaledSum, UnitTotal)) for m in self._s.moments):
            return False
        sums = [s for m in self._s.moments for s in measures_of(m)]
        numeric = [s for s in sums if s.of.type is SqlType.NUMERIC]
        are_read_in_place = len({s.of for s in numeric}) == len(numeric) and all(map(self._numeric_integer, numeric))
        return are_read_in_place and all(isinstance(s.of, ColumnRef) for s in sums)

    def unit_columns(self) -> list[str]:
        """What a unit is told by, one text for each of its columns; none where each row is a unit."""
        match self._a.owned.unit:
            case EveryRow():
                return []
            case UnitOf(columns):
                return [self.renderer.identity(c) for c in columns]
            case _ as never:
                assert_never(never)

    def is_one_integer(self) -> bool:
        """Whether a unit is told by one whole number."""
        unit = self._a.owned.unit
        return isinstance(unit, UnitOf) and len(unit.columns) == 1 and unit.columns[0].type.is_integer

    def needs_units_alone(self) -> bool:
        """Whether nothing of a row is asked for but whose it is."""
        return not self.keys and not self.held() and all(self.condition(m) == "TRUE" for m in self._s.moments)

    def sparse_units(self, texts: list[str]) -> list[str]:
        """Unit columns without their statistics, so that the engine hashes the ids that occur. texts: in order."""
        unit = self._a.owned.unit
        columns = unit.columns if isinstance(unit, UnitOf) else ()
        return [self.dialect.sparse(t) if c.type.is_integer else t for t, c in zip(texts, columns, strict=True)]

    def key_texts(self) -> list[str]:
        """The grouping keys, in the order of GROUP BY."""
        return [
            self.renderer.private_key(k.scalar) if isinstance(k, PrivateKey) else self.renderer.key(k.scalar)
            for k in self._a.keys
        ]

    def short_key_texts(self) -> list[str]:
        """Keys for grouping alone, their order left open: listed texts as one byte that reads as the text."""
        return [
            self.renderer.listed_key(k.scalar) if isinstance(k, PublicKey) else text
            for k, text in zip(self._a.keys, self.key_texts(), strict=True)
        ]

    def listed_keys(self) -> dict[str, ColumnRef]:
        """By name, the keys that `short_key_texts` makes NULL exactly for rows outside their domains.

        Columns without NULL, that are nothing else beside: which rows are dropped can be told from the groups.
        """
        short = zip(self.keys, self._a.keys, self.short_key_texts(), self.key_texts(), strict=True)
        beside = {c for k in self._a.beside for c in columns_of(k.scalar)}
        listed = ((name, key.scalar) for name, key, text, plain in short if text != plain)
        return {n: c for n, c in listed
                if isinstance(c, ColumnRef) and not self._a.domains.column(c).nullable and c not in beside}  # fmt: skip

    def condition(self, moment: Moment) -> str:
        """Which rows the moment is about; TRUE for all."""
        where, needed, is_absent = self._rows_asked(moment)
        rows, without = self._rows(where, needed, absent=is_absent), self._without(moment)
        return " AND ".join([*([rows] if rows != "TRUE" or not without else []), *without])

    def _without(self, moment: Moment) -> list[str]:
        """Tests that a row of this moment is in none of those that exclude it."""
        return [f"NOT coalesce({self._held.get(text, text)}, FALSE)" for text in self._excluded.get(moment, ())]

    @cached_property
    def _excluded(self) -> Mapping[Moment, Iterable[str]]:
        """By moment, the WHERE of those before it whose rows are left out; which measures are missing is told surely.

        Needed where the bound rests on `row_norm`: one row for each unit, or one group. Elsewhere a unit's norm is
        computed from its cells, or each coordinate of theirs counts in full.
        """
        if not (self._a.owned.is_one_row_per_unit or self._a.has_constant_keys):
            return {}
        conditions = row_conditions(self._s.moments)
        exclusions = self._s.allocation.exclusions
        asked = {first: self._rows_asked(self._s.moments[first])[0] for first, _ in exclusions}
        texts = {first: self.renderer.condition(where) for first, where in asked.items()}
        found: dict[Scalar, dict[str, None]] = {}
        for first, second in exclusions:
            found.setdefault(conditions[second], {})[texts[first]] = None
        # parts of one pair or square share a condition, and only the first of them is told apart
        linear = [m for m in self._s.moments if not isinstance(m, (UnitCount, UnitTotal))]
        return {m: found[condition_of(m)] for m in linear if condition_of(m) in found}

    def _rows_asked(self, moment: Moment) -> tuple[Scalar, tuple[Scalar, ...], bool]:
        """The moment's condition, the measures that its rows have, and whether they lack some of them instead."""
        match moment:
            case RowCount(where, of, absent, given):
                return where, (of, given), absent
            case ScaledSum(where, of, given=given):
                is_needed = self._may_lack(of) and not self._is_null_without(moment)
                return where, (of if is_needed else TRUE, given), False
            case HalfSum() | QuarterSum() | SquareSum() | ProductSum():  # made of z, which is never NULL
                rows = rows_of(moment)
                return rows.where, (rows.of if self._may_lack(rows.of) else TRUE, rows.given), False
            case UnitCount(where):
                return where, (), False
            case UnitTotal(scaled):
                return self._rows_asked(scaled)
            case _ as never:
                assert_never(never)

    def _rows(self, where: Scalar, needed: tuple[Scalar, ...], *, absent: bool = False) -> str:
        """Which rows pass `where` and have all that is needed or, if `absent`, not all of it."""
        text = self.renderer.condition(where)
        parts = [self._held.get(text, text)] if conjuncts(where) else []
        present = " AND ".join(self._present(s) for s in in_order(needed) if s != TRUE)
        if present:
            parts.append(f"NOT ({present})" if absent else present)
        return " AND ".join(parts) or "TRUE"

    def filter(self, moment: Moment) -> str:
        """The FILTER of an aggregate over those rows, with a blank before it; nothing for all."""
        condition = self.condition(moment)
        return "" if condition == "TRUE" else f" FILTER (WHERE {condition})"

    def _present(self, scalar: Scalar) -> str:
        return presence(scalar, self.renderer, self._held)

    def _may_lack(self, scalar: Scalar) -> bool:
        return self._a.domains.may_be_null(scalar)

    def row_integer(self, moment: RowSum) -> str:
        """A row's moment as an integer of 2^-30: clamped, truncated toward zero, 0 where it has no value.

        Each z lies in [-1, 1], and rounding keeps what is made of it within the ends that the reals have.
        """
        match moment:
            case ScaledSum():
                return self._scaled_integer(moment)
            case HalfSum(scaled, sign):
                return self._integer(f"(1e0 {'+' if sign > 0 else '-'} {self._z(scaled)}) / 2e0")
            case QuarterSum(scaled, sign):
                z = self._z(scaled)
                return self._integer(f"(1e0 {'-' if sign < 0 else '+'} {z}) * (1e0 {'+' if sign > 0 else '-'} {z})"
                                     f" / {'4e0' if sign else '2e0'}")  # fmt: skip
            case SquareSum(scaled):
                z = self._z(scaled)
                return self._integer(f"{z} * {z} * 2e0 - 1e0")
            case ProductSum(left, right):
                return self._integer(f"{self._z(left)} * {self._z(right)}")
            case _ as never:
                assert_never(never)

    def row_whole(self, moment: RowSum) -> str:
        """The same number, of whichever type is made soonest; it is multiplied then."""
        dialect = self.dialect
        if not isinstance(moment, ScaledSum) or dialect.abilities.doubles is not Overflow.INFINITE:
            return self.row_integer(moment)
        value, missing = self._double(moment.of), self._missing_integer(moment)
        return total_doubles.scaled_integer(value, moment, missing, dialect, dialect.truncated)

    def _scaled_integer(self, moment: ScaledSum) -> str:
        missing = self._missing_integer(moment)
        value = self._double(moment.of)
        match self.dialect.abilities.doubles:
            case Overflow.INFINITE:
                return total_doubles.scaled_integer(value, moment, missing, self.dialect, self.dialect.whole)
            case Overflow.RAISING:
                return self._numeric_integer(moment) or checked_doubles.scaled_integer(value, moment, missing)
            case _ as never:
                assert_never(never)

    def _numeric_integer(self, moment: ScaledSum) -> str:
        """The integer of a numeric column that is read in place, NULL where a row lacks it; "" for what is none."""
        if self._held or not isinstance(moment.of, ColumnRef) or not is_costly(moment.of, self.dialect):
            return ""
        missing = "NULL" if self._may_lack(moment.of) else str(self._missing_integer(moment))
        limited = self.renderer.column(moment.of).limited_digits
        return checked_doubles.numeric_integer(self.renderer.identity(moment.of), moment, missing, limited=limited)

    def _is_null_without(self, moment: ScaledSum) -> bool:
        """Whether rows may lack the measure and have the integer NULL then, so that no condition has to say so."""
        return self._may_lack(moment.of) and bool(self._numeric_integer(moment))

    def _missing_integer(self, moment: ScaledSum) -> int:
        return math.trunc(self._missing(moment) * ROW_UNITS)

    def _integer(self, value: str) -> str:
        """trunc(2^30 value) of a value in [-1, 1]."""
        return self.dialect.small_whole(f"({value}) * {self.dialect.double(float(ROW_UNITS))}")

    def _double(self, measure: Scalar) -> str:
        text = self.renderer.unclamped(measure) if isinstance(measure, ColumnRef) else self.renderer.measure(measure)
        text = self.dialect.as_double(text)
        return self._held.get(text, text)

    def _z(self, scaled: ScaledSum) -> str:
        """A row's z in [-1, 1], never NULL."""
        value = self._double(scaled.of)
        match self.dialect.abilities.doubles:
            case Overflow.INFINITE:
                return total_doubles.z(value, scaled, self._missing(scaled), self.dialect)
            case Overflow.RAISING:
                return checked_doubles.z(value, scaled, self._missing(scaled))
            case _ as never:
                assert_never(never)

    def _missing(self, scaled: ScaledSum) -> float:
        """The z of a row whose measure has no value: that of the middle, where the policy declares one, else 0."""
        if isinstance(scaled.of, ColumnRef):
            column = self._a.domains.column(scaled.of)
            if not column.nullable and isinstance(column.domain, (Bounded, Listed)):
                z = (float(middle_of(column.domain, scaled.of.type)) - scaled.middle) / scaled.half
                return max(min(z, scaled.most), scaled.least)
        return 0.0

    # --- cells ----------------------------------------------------------------------------------------------

    def rows_used(self) -> str:
        """At least the number of rows that some linear moment uses; see `_used`."""
        conditions = list(dict.fromkeys(self._used(m) for m in self._s.moments if is_linear(m)))
        if not conditions:
            return "1"
        if "TRUE" in conditions:
            return "count(*)"
        return f"count(*) FILTER (WHERE {' OR '.join(f'({c})' for c in conditions)})"

    def _used(self, moment: Moment) -> str:
        """Which rows a moment may use: of a numeric column that is read in place, those that are not NULL.

        They may be more than have a value, which makes r smaller.
        """
        condition = self.condition(moment)
        if not (isinstance(moment, ScaledSum) and isinstance(moment.of, ColumnRef) and self._is_null_without(moment)):
            return condition
        stored = f"{self.renderer.identity(moment.of)} IS NOT NULL"
        return stored if condition == "TRUE" else f"{condition} AND {stored}"

    def row_factor(self) -> str:
        """r = min(1, C/n); with a chosen B, min(1, 2^10 B / |sums over rows|), which keeps norms small."""
        if self._s.allocation.is_chosen:
            most = CELL_REACH * self._s.allocation.unit_norm
            linear = [self._unscaled(i, m, 1.0) for i, m in enumerate(self._s.moments) if is_linear(m)]
            size, limit = self._length(linear), most * most if self.is_gaussian() else most
            root = f"sqrt({size})" if self.is_gaussian() else f"({size})"
            double = self.dialect.double
            factor = self.dialect.ratio(double(most), root)
            return f"CASE WHEN {size} > {double(limit)} THEN {factor} ELSE {double(1.0)} END"
        limit = self._a.bounds.rows_per_group
        whole = self.dialect.double(float(limit))
        return f"CASE WHEN n > {limit} THEN {self.dialect.ratio(whole, 'n')} ELSE {self.dialect.double(1.0)} END"

    def weighted(self, index: int, moment: Moment, scale: float) -> str:
        """A cell's moment as a double: its integer times weight, scale and, if it is a sum over rows, r."""
        return f"{self._unscaled(index, moment, scale)}{' * r' if is_linear(moment) else ''}"

    def _unscaled(self, index: int, moment: Moment, scale: float) -> str:
        weight = self._s.allocation.weights[index] * scale
        unit = 1 if isinstance(moment, (RowCount, UnitCount)) else ROW_UNITS
        return f"m{index}::{self.dialect.types[SqlType.FLOAT8]} * {self.dialect.double(weight / unit)}"

    def on_grid(self, index: int, moment: Moment, factor: str) -> str:
        """A cell's moment in whole units of the final grid, truncated toward zero. factor: ` * f`, or nothing."""
        return self.dialect.whole(f"{self.weighted(index, moment, self._s.scale)}{factor}")

    # --- norms ----------------------------------------------------------------------------------------------

    def is_gaussian(self) -> bool:
        return self._s.distribution is Distribution.GAUSSIAN

    def norm(self) -> str:
        """A cell's squared 2-norm (or 1-norm) in units of W^2 (W) / 2^40, rounded up.

        With a chosen B, which stands in W's place, r and the weights keep it below 2^61 but for rounding.
        """
        parts = [
            self.weighted(i, m, 1.0)
            for i, m in enumerate(self._s.moments)
            if not (isinstance(m, UnitCount) and m.per_part)
        ]
        size = f"({self._length(parts)}) * {self.dialect.double(NORM_UNITS / self.norm_unit())}"
        if self._s.allocation.is_chosen:
            size = f"least({size}, {self.dialect.double(_LARGEST_NORM)})"
        return self.dialect.rounded_up(size, "BIGINT")

    def _length(self, parts: list[str]) -> str:
        """The squared 2-norm, or the 1-norm, of some numbers."""
        sizes = [f"({p}) * ({p})" if self.is_gaussian() else f"abs({p})" for p in parts]
        return " + ".join(sizes) or self.dialect.double(0.0)

    def own_factor(self) -> str:
        """f of a unit whose only cell has the norm `q`."""
        limit = self.heavy_limit()
        ratio = self.dialect.ratio(self.dialect.double(float(limit)), "q")
        factor = f"sqrt({ratio})" if self.is_gaussian() else ratio
        return f"CASE WHEN q > {limit} THEN {factor} ELSE {self.dialect.double(1.0)} END"

    def norm_unit(self) -> float:
        """W^2 (W in the 1-norm)."""
        norm = self._s.allocation.cell_norm
        return norm * norm if self.is_gaussian() else norm

    def part_norm(self) -> str:
        """What one private part adds to a unit's squared norm by its unit count, in the units of `norm`, rounded up."""
        weight = next(
            self._s.allocation.weights[i]
            for i, m in enumerate(self._s.moments)
            if isinstance(m, UnitCount) and m.per_part
        )
        size = weight * weight if self.is_gaussian() else weight
        return f"{math.ceil(size * NORM_UNITS / self.norm_unit())}::BIGINT"

    def heavy_limit(self) -> int:
        """2^40 B^2/W^2 (B/W in the 1-norm), rounded down."""
        ratio = self._s.allocation.unit_norm / self._s.allocation.cell_norm
        return math.floor(NORM_UNITS * (ratio * ratio if self.is_gaussian() else ratio))
