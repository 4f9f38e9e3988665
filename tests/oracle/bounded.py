"""What are the exact integers of a release, by definition?

Plain Python over the rows that the query reads (tests/oracle/rows.py): row integers, cells, the keys above K, r, the
heavy factor f and the final grid, in the order in which docs/claims/bounding.md defines them. Public
numbers (weights, W, B, S) and facts of the analysis (which columns may be NULL) come from the plan.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from proxy.analysis.keys import PrivateKey
from proxy.analysis.units import UnitOf
from proxy.dp.mechanisms import Distribution
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.moments import (
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
)
from proxy.policy.model import Bounded, Listed
from proxy.sql.algebra.nodes import TRUE, ColumnRef, Scalar
from proxy.sqltypes import Family, SqlType
from tests.oracle import times
from tests.oracle.rows import Rows, Tables, Unit
from tests.oracle.scalars import Evaluator, Reading, Row, middle
from tests.oracle.values import Stored, Value, order

ROW_UNITS = 2**30
NORM_UNITS = 2**40
NEARLY_ALL = 1.0 - 2.0**-21  # of a unit, which is then not called cut

Key = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A unit's rows in one group: how many are used, the exact sum of each moment, and whether one was clipped.

    by_row: the sums of rows that are brought to the final grid one by one; empty where no statement adds them up so.
    """

    used: int
    sums: tuple[int, ...]
    is_clipped: bool = False
    by_row: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """A release before noise: moments by key, and unit counts by private part where those are apart.

    units: how many are cut, and how many are not, on the grid; 0 and 0 where they are not counted.
    """

    cells: Mapping[Key, tuple[int, ...]]
    parts: Mapping[Key, int]
    units: tuple[int, int] = (0, 0)


class Oracle:
    """Computes one plan. tables: rows as {column: cell} by table name; zone: the policy's."""

    def __init__(self, plan: ReleasePlan, tables: Tables, zone: str, salt: str) -> None:
        self._plan = plan
        self._analysed = plan.analysed
        self._tables = tables
        self._zone = zone
        self._salt = salt
        self.evaluator = Evaluator(plan.analysed.domains.column, zone)
        self._is_private = [isinstance(k, PrivateKey) for k in plan.analysed.keys]
        self._per_part = [isinstance(m, UnitCount) and m.per_part for m in plan.vector.moments]

    def exact(self) -> Exact:
        """The vector of the whole database."""
        cells: dict[Key, list[int]] = defaultdict(lambda: [0] * len(self._plan.vector.moments))
        parts: dict[Key, int] = defaultdict(int)
        cut = 0
        for unit, rows in self.rows_by_unit.items():
            every = self.cells_of(rows)
            held = self._kept(unit, every)
            factor = self._factor(held)
            cut += factor < NEARLY_ALL or len(held) < len(every) or any(map(self.is_short, held.values()))
            is_whole = len(rows) <= self._plan.whole_rows
            assert not is_whole or factor == 1.0, "so few rows are never above B"
            for key, cell in held.items():
                as_it_is = is_whole and cell.used <= self._analysed.bounds.rows_per_group
                for index, value in enumerate(cell.by_row if as_it_is else self._on_grid(cell, factor)):
                    cells[key][index] += value
            if any(self._per_part):
                weight = self._plan.allocation.weights[self._per_part.index(True)] * self._plan.scale
                for part in {self._part(key) for key in held}:
                    parts[part] += math.trunc(weight * factor)
        each = math.floor(self._plan.cut_weight * self._plan.scale)
        units = (cut * each, (len(self.rows_by_unit) - cut) * each)
        return Exact(cells={k: tuple(v) for k, v in cells.items()}, parts=dict(parts), units=units)

    def is_short(self, cell: Cell) -> bool:
        """Whether a unit's rows in one group do not count in full, by themselves."""
        return cell.used > self._analysed.bounds.rows_per_group or cell.is_clipped

    def changes_nothing(self) -> bool:
        """Whether no unit is over any of its bounds, so that all factors are 1."""
        limit = self._analysed.bounds.rows_per_group
        for unit, rows in self.rows_by_unit.items():
            held = self.cells_of(rows)
            if any(cell.used > limit for cell in held.values()) or self._factor(held) < 1.0:
                return False
            if len(self._kept(unit, held)) < len(held) or any(map(self._has_whole_total, held.values())):
                return False
        return True

    def _has_whole_total(self, cell: Cell) -> bool:
        """Whether a unit's total is at an end of its bounds, and was clipped for all that is known."""
        totals = zip(self._plan.vector.moments, cell.sums, strict=True)
        return any(isinstance(m, UnitTotal) and s in (m.least, m.most) for m, s in totals)

    def rows(self) -> Sequence[Row]:
        """The joined rows that pass all conditions and whose keys lie in their columns' domains."""
        return self._rows

    @cached_property
    def _rows(self) -> Sequence[Row]:
        return tuple(Rows(self._analysed, self._tables, self._zone, self.evaluator).passing())

    def unbounded_rows(self) -> Iterator[tuple[Key, Row]]:
        """Rows with their keys, those of declared constants made constant."""
        for members in self.rows_by_unit.values():
            yield from members

    # --- units and cells --------------------------------------------------------------------------------

    @cached_property
    def rows_by_unit(self) -> Mapping[Unit, list[tuple[Key, Row]]]:
        """The rows of each unit with their keys."""
        found: dict[Unit, list[tuple[Key, Row]]] = defaultdict(list)
        for number, row in enumerate(self.rows()):
            found[self.unit_of(row) or (number,)].append((self.key(row), row))
        if self._analysed.has_constant_keys and not self._analysed.owned.is_one_row_per_unit:
            return {u: _with_least_key(rows) for u, rows in found.items()}
        return found

    def unit_of(self, row: Row) -> Unit:
        """The unit of a row; empty where each row is one."""
        owner = self._analysed.owned.unit
        return tuple(row[c.scan, c.name] for c in owner.columns) if isinstance(owner, UnitOf) else ()

    def key(self, row: Row) -> Key:
        """The canonical key of a row."""
        return tuple(self._key(k.scalar, row, is_private=isinstance(k, PrivateKey)) for k in self._analysed.keys)

    def public_value(self, scalar: Scalar, row: Row) -> Value:
        """What a row is told by, as if it were grouped by it."""
        return self._key(scalar, row, is_private=False)

    def _key(self, scalar: Scalar, row: Row, *, is_private: bool) -> Value:
        value = self.evaluator.value(scalar, row, Reading.KEY)
        if (
            isinstance(value, str)
            and isinstance(scalar, ColumnRef)
            and self._analysed.domains.column(scalar).case_blind
        ):
            return "".join(c.lower() if len(c.lower()) == 1 else c for c in value)
        if scalar.type.family is Family.TIME and is_private and value is not None:
            assert isinstance(value, (int, float))
            first, last = times.days_of(1, 1, 1) * times.DAY, times.days_of(10000, 1, 1) * times.DAY
            return value if first <= value < last else None
        if scalar.type in (SqlType.FLOAT4, SqlType.FLOAT8, SqlType.NUMERIC) and value is not None:
            assert isinstance(value, (int, float))
            return "NaN" if math.isnan(value) else value + 0.0
        return value

    def cells_of(self, rows: list[tuple[Key, Row]]) -> dict[Key, Cell]:
        """A unit's rows by group."""
        grouped: dict[Key, list[Row]] = defaultdict(list)
        for key, row in rows:
            grouped[key].append(row)
        return {key: self._cell(members) for key, members in grouped.items()}

    def _cell(self, rows: list[Row]) -> Cell:
        moments = self._plan.vector.moments
        linear = [m for m in moments if not isinstance(m, (UnitCount, UnitTotal))]
        used = sum(any(self.uses(m, row) for m in linear) for row in rows)
        totals = [m for m in moments if isinstance(m, UnitTotal)]
        is_clipped = any(not m.least <= self._whole_total(m, rows) <= m.most for m in totals)
        by_row = tuple(self._by_row(i, rows) for i in range(len(moments))) if self._plan.whole_rows else ()
        return Cell(used, tuple(self._sum(m, rows) for m in moments), is_clipped, by_row)

    def _by_row(self, index: int, rows: list[Row]) -> int:
        """The sum of rows that are each truncated to the final grid."""
        moment, weight = self._plan.vector.moments[index], self._plan.allocation.weights[index] * self._plan.scale
        assert not isinstance(moment, (UnitCount, UnitTotal)), "only sums over rows are added up by row"
        used = [self.row_integer(moment, row) for row in rows if self.uses(moment, row)]
        if isinstance(moment, RowCount):
            return len(used) * math.floor(weight)
        return sum(math.trunc(float(value) * (weight / ROW_UNITS)) for value in used)

    def _whole_total(self, moment: UnitTotal, rows: list[Row]) -> int:
        return sum(self.row_integer(moment.scaled, row) for row in rows if self.uses(moment.scaled, row))

    def _sum(self, moment: Moment, rows: list[Row]) -> int:
        if isinstance(moment, UnitCount):
            return int(not moment.per_part and any(self.uses(moment, row) for row in rows))
        if isinstance(moment, UnitTotal):
            return min(max(self._whole_total(moment, rows), moment.least), moment.most)
        return sum(self.row_integer(moment, row) for row in rows if self.uses(moment, row))

    # --- one row ----------------------------------------------------------------------------------------

    def uses(self, moment: Moment, row: Row) -> bool:
        """Whether a row counts for a moment."""
        match moment:
            case UnitCount(where):
                return self.evaluator.passes(where, row)
            case RowCount(where, of, absent, given):
                passes = where == TRUE or self.evaluator.passes(where, row)
                needed = [s for s in (of, given) if s != TRUE]
                return passes and (not needed or all(self._has_value(s, row) for s in needed) is not absent)
            case ScaledSum(where, of, given=given):
                needs = of if self._analysed.domains.may_be_null(of) else TRUE
                return self.uses(RowCount(where, needs, given=given), row)
            case HalfSum(scaled) | QuarterSum(scaled) | SquareSum(scaled):
                return self.uses(scaled, row)
            case UnitTotal(scaled):
                return self.uses(scaled, row)
            case ProductSum(left, right):
                return self.uses(left, row) and self.uses(right, row)

    def _has_value(self, scalar: Scalar, row: Row) -> bool:
        value = self.evaluator.value(scalar, row, Reading.MEASURE)
        if value is None:
            return False
        return not (scalar.type.is_number and isinstance(value, float)) or math.isfinite(value)

    def row_integer(self, moment: RowCount | UnitCount | RowSum, row: Row) -> int:
        """A row's moment: 1 for a count, else the clamped measure in units of 2^-30, truncated toward zero."""
        if isinstance(moment, (RowCount, UnitCount)):
            return 1
        return math.trunc(self._row_value(moment, row) * ROW_UNITS)

    def _row_value(self, moment: ScaledSum | HalfSum | QuarterSum | SquareSum | ProductSum, row: Row) -> float:
        """What one row adds to a moment, a number in [-1, 1]."""
        match moment:
            case ScaledSum():
                return self._scaled(moment, row)
            case HalfSum(scaled, sign):
                return (1.0 + sign * self._scaled(scaled, row)) / 2.0
            case QuarterSum(scaled, 0):
                z = self._scaled(scaled, row)
                return (1.0 + z) * (1.0 - z) / 2.0
            case QuarterSum(scaled, sign):
                side = 1.0 + sign * self._scaled(scaled, row)
                return side * side / 4.0
            case SquareSum(scaled):
                z = self._scaled(scaled, row)
                return z * z * 2.0 - 1.0
            case ProductSum(left, right):
                return self._scaled(left, row) * self._scaled(right, row)

    def _scaled(self, scaled: ScaledSum, row: Row) -> float:
        """(x - middle)/half, clamped; of a plain column the stored x, since clamping once is enough.

        A row without value that counts, where a value is always expected, gives 0.
        """
        value = self.measured(scaled.of, row)
        if value is None or not math.isfinite(value):
            return 0.0
        return max(scaled.least, min(scaled.most, (float(value) - scaled.middle) / scaled.half))

    def measured(self, scalar: Scalar, row: Row) -> float | None:
        """A measure's value before it is clamped to its bounds; the middle where the policy knows no NULL."""
        if not isinstance(scalar, ColumnRef):
            value = self.evaluator.value(scalar, row, Reading.MEASURE)
            assert value is None or isinstance(value, (int, float))
            return value
        column, value = self._analysed.domains.column(scalar), self.evaluator.raw(scalar, row)
        assert value is None or isinstance(value, (int, float))
        if value is not None and math.isfinite(value):
            return value
        if not column.nullable and isinstance(column.domain, (Bounded, Listed)):
            return middle(column.domain, scalar.type)
        return None

    # --- keys above K -----------------------------------------------------------------------------------

    def _part(self, key: Key) -> Key:
        return tuple(k for k, p in zip(key, self._is_private, strict=True) if p)

    def _kept(self, unit: Unit, cells: dict[Key, Cell]) -> dict[Key, Cell]:
        """At most K private parts, by salted hash of unit and part."""
        if not any(self._is_private) or self._analysed.has_constant_keys:
            return cells
        held = sorted({self._part(key) for key in cells}, key=lambda part: self._hash(unit, part))
        kept = set(held[: self._analysed.bounds.keys])
        return {key: cell for key, cell in cells.items() if self._part(key) in kept}

    def _hash(self, unit: Unit, part: Key) -> str:
        scalars = [k.scalar for k in self._analysed.keys if isinstance(k, PrivateKey)]
        texts = [*(canonical(u, SqlType.TEXT) for u in unit),
                 *(canonical(v, s.type) for v, s in zip(part, scalars, strict=True))]  # fmt: skip
        spelled = "".join("-" if t is None else f"{len(t)}:{t}" for t in texts)
        return hashlib.md5((self._salt + spelled).encode(), usedforsecurity=False).hexdigest()

    # --- r, f and the grid ------------------------------------------------------------------------------

    def _weighted(self, cell: Cell, scale: float) -> list[float]:
        """w * sum * r for each moment; a unit count is not multiplied by r."""
        r = self._row_factor(cell)
        return [v if is_one_of_units else v * r for v, is_one_of_units in self._unscaled(cell, scale)]

    def _unscaled(self, cell: Cell, scale: float) -> list[tuple[float, bool]]:
        """w * sum for each moment, and whether that is counted or clipped for the unit as a whole."""
        found = []
        for moment, weight, value in zip(
            self._plan.vector.moments, self._plan.allocation.weights, cell.sums, strict=True
        ):
            unit = 1 if isinstance(moment, (RowCount, UnitCount)) else ROW_UNITS
            found.append((float(value) * (weight * scale / unit), isinstance(moment, (UnitCount, UnitTotal))))
        return found

    def _row_factor(self, cell: Cell) -> float:
        """min(1, C/n), or what leaves a cell 1,024 times a B that was chosen."""
        allocation, limit = self._plan.allocation, self._analysed.bounds.rows_per_group
        if not allocation.is_chosen:
            return limit / cell.used if cell.used > limit else 1.0
        is_gaussian = self._plan.distribution is Distribution.GAUSSIAN
        size = 0.0
        for value, is_one_of_units in self._unscaled(cell, 1.0):
            if not is_one_of_units:
                size += value * value if is_gaussian else abs(value)
        most = 1024.0 * allocation.unit_norm
        if size <= (most * most if is_gaussian else most):
            return 1.0
        return most / (math.sqrt(size) if is_gaussian else size)

    def _factor(self, cells: Mapping[Key, Cell]) -> float:
        """f = min(1, B/||V||) from norms rounded up to integers; a unit in one group needs none."""
        has_one_cell = self._analysed.has_constant_keys or self._analysed.owned.is_one_row_per_unit
        if has_one_cell and not self._plan.allocation.is_chosen:
            return 1.0
        is_gaussian = self._plan.distribution is Distribution.GAUSSIAN
        allocation = self._plan.allocation
        whole = allocation.cell_norm**2 if is_gaussian else allocation.cell_norm
        total = sum(self._norm(cell, NORM_UNITS / whole, is_gaussian=is_gaussian) for cell in cells.values())
        if any(self._per_part):
            weight = allocation.weights[self._per_part.index(True)]
            each = math.ceil((weight * weight if is_gaussian else weight) * NORM_UNITS / whole)
            total += each * len({self._part(key) for key in cells})
        if not allocation.is_chosen and self._are_all_light():
            return 1.0
        ratio = allocation.unit_norm / allocation.cell_norm
        limit = math.floor(NORM_UNITS * (ratio * ratio if is_gaussian else ratio))
        if total <= limit:
            return 1.0
        return math.sqrt(limit / total) if is_gaussian else limit / total

    def _are_all_light(self) -> bool:
        """Whether keys of declared values are so few that B holds for any unit."""
        moments, bounds = self._plan.vector.moments, self._analysed.bounds
        cells = 1
        for key in self._analysed.keys:
            cells *= self._declared(key.scalar)
        whole = 0.0
        for moment, weight in zip(moments, self._plan.allocation.weights, strict=True):
            if isinstance(moment, (HalfSum, QuarterSum)) and moment.sign < 1:
                continue
            size = weight if isinstance(moment, UnitCount) else weight * bounds.rows_per_group
            if isinstance(moment, UnitTotal):
                size = weight * (max(-moment.least, moment.most) / ROW_UNITS)
            whole += size * size if self._plan.distribution is Distribution.GAUSSIAN else size
        most = self._plan.allocation.unit_norm
        most = most * most if self._plan.distribution is Distribution.GAUSSIAN else most
        return cells > 0 and not any(self._per_part) and cells * whole <= most * (1 + 2**-40)

    def _declared(self, scalar: Scalar) -> int:
        """How many values the policy declares for a column, NULL included; 0 if that is not known."""
        if not isinstance(scalar, ColumnRef):
            return 0
        column = self._analysed.domains.column(scalar)
        if isinstance(column.domain, Listed):
            return len(column.domain.values) + column.nullable
        if isinstance(column.domain, Bounded) and isinstance(column.domain.lo, int) and scalar.type.is_integer:
            assert isinstance(column.domain.hi, int)
            return max(0, column.domain.hi - column.domain.lo + 1) + column.nullable
        return 0

    def _norm(self, cell: Cell, units: float, *, is_gaussian: bool) -> int:
        size = 0.0
        for value, per_part in zip(self._weighted(cell, 1.0), self._per_part, strict=True):
            if not per_part:
                size += value * value if is_gaussian else abs(value)
        return math.ceil(min(size * units, 2.0**61) if self._plan.allocation.is_chosen else size * units)

    def _on_grid(self, cell: Cell, factor: float) -> list[int]:
        return [math.trunc(v * factor) for v in self._weighted(cell, self._plan.scale)]


def _with_least_key(rows: list[tuple[Key, Row]]) -> list[tuple[Key, Row]]:
    """Facts that are declared constant per unit are made so: the least present value of each key."""
    least: list[Value] = []
    for values in zip(*(key for key, _ in rows), strict=True):
        best: Value = None
        for value in values:
            if value is not None and (best is None or _is_less(value, best)):
                best = value
        least.append(best)
    return [(tuple(least), row) for _, row in rows]


def _is_less(left: Value, right: Value) -> bool:
    return order(math.nan if left == "NaN" else left, math.nan if right == "NaN" else right) < 0


def canonical(value: Stored, kind: SqlType) -> str | None:
    """The text of a key or unit in the salted hash."""
    if value is None:
        return None
    if kind.family is Family.TIME:
        assert isinstance(value, (int, float))
        return times.date_text(value) if kind is SqlType.DATE else times.time_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (float, Decimal)):
        return _number_text(float(value))
    return "nan" if value == "NaN" and kind.is_number else str(value)


def _number_text(value: float) -> str:
    if not math.isfinite(value):
        return repr(value)
    if abs(value) >= 9.2e18:
        return f"{value * 2.0**-515 * 2.0**-515!r}p1030"
    if value == math.trunc(value):
        return str(int(value))
    return f"{int(value * 8)}/8" if abs(value) >= 1e15 else repr(value)
