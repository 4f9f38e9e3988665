"""How are the rows, keys and moments of one private statement spelled, whatever its shape?

Each method gives the text of one expression over the rows (`s0`, `s1`, ...), over a cell (`n`, `m0`, ..., `r`) or
over a unit. See docs/claims/integer-grid.md and docs/claims/bounding.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

from proxy.analysis.analyse import Analysed
from proxy.analysis.keys import PrivateKey, PublicKey, domain_filters
from proxy.analysis.patterns import exclusions
from proxy.analysis.units import EveryRow, UnitOf
from proxy.dp.mechanisms import Distribution
from proxy.plan import checked_doubles, total_doubles
from proxy.plan.allocation import Allocation, row_conditions
from proxy.plan.moments import (
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
    rows_of,
)
from proxy.plan.unit_values import unit_value
from proxy.policy.model import Bounded, Column, Listed, UnitColumns, Unknown
from proxy.sql.algebra import (
    TRUE,
    Beside,
    Block,
    ColumnRef,
    Frame,
    Grouped,
    Join,
    JoinKind,
    Neighbour,
    Place,
    Placed,
    Scalar,
    Scan,
    Stored,
    Together,
    UnitValue,
    Windowed,
    WindowValue,
    conjuncts,
)
from proxy.sql.canonical import in_order
from proxy.sql.describe import spell_frame
from proxy.sql.dialect import DUCKDB, Dialect, quote
from proxy.sql.links import link
from proxy.sql.render import Renderer, middle_of
from proxy.sqltypes import SqlType

_HALVES = {JoinKind.SEMI: "EXISTS", JoinKind.ANTI: "NOT EXISTS"}
_READABLE = 1_000  # characters of conditions that may stand there more than once
_NORM_UNITS = 2**40  # integer units of a squared norm, relative to W^2


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What to render: the analysed block, its moments and weights, and the grid.

    scale: S, grid units per weighted unit. salt: hexadecimal, orders keys above K.
    """

    analysed: Analysed
    moments: tuple[Moment, ...]
    allocation: Allocation
    distribution: Distribution
    scale: float
    salt: str
    time_zone: str
    dialect: Dialect = DUCKDB


class Terms:
    """The expressions of one statement."""

    def __init__(self, statement: Statement, held: Mapping[str, str] | None = None) -> None:
        """held: texts over the rows that a sub-select has computed once, with their names there."""
        self._s = statement
        self._held = held or {}
        self._a = self.analysed = statement.analysed
        domains = self._a.domains
        self.dialect = statement.dialect
        may_raise = domains.may_raise if self.dialect.has_total_doubles else domains.may_raise_for_doubles
        self.renderer = Renderer(domains.column, may_raise, statement.time_zone, self.dialect)
        self.units = [f"u{i}" for i in range(len(self.unit_columns()))]
        self.keys = [f"k{i}" for i in range(len(self._a.keys))]

    # --- rows -----------------------------------------------------------------------------------------------

    def held(self) -> dict[str, str]:
        """Measures and conditions to be computed once for each row, and names for them; none where these are few.

        The engine sees no common parts inside CASE and FILTER.
        """
        values = dict.fromkeys(self._double(s.of) for m in self._s.moments for s in measures_of(m))
        conditions = dict.fromkeys(c for m in self._s.moments for c in self._tests(m, values))
        is_short = sum(map(len, conditions)) < _READABLE
        if is_short and (not values or self._reads_columns_in_place()):
            return {}
        return {t: f"v{i}" for i, t in enumerate(values)} | {t: f"c{i}" for i, t in enumerate(conditions)}

    def _tests(self, moment: Moment, values: Mapping[str, None]) -> list[str]:
        """The tests of rows in a moment's condition, those aside which can be told by the values."""
        where, needed, _ = self._rows_asked(moment)
        tests = [self._present(s) for s in in_order(needed) if s != TRUE and self._double(s) not in values]
        return [self.renderer.condition(where), *tests] if conjuncts(where) else tests

    def _reads_columns_in_place(self) -> bool:
        """Whether what is summed are columns, each of which is read once: a sub-select would only hand them on.

        To make a double of a numeric costs something, and each further aggregate would do it again.
        """
        if self.dialect.has_total_doubles:
            return False
        if any(measures_of(m) and not isinstance(m, (ScaledSum, UnitTotal)) for m in self._s.moments):
            return False
        sums = [s for m in self._s.moments for s in measures_of(m)]
        numeric = [s for s in sums if s.of.type is SqlType.NUMERIC]
        are_read_once = len({s.of for s in numeric}) == len(numeric) and all(map(self._numeric_integer, numeric))
        return are_read_once and all(isinstance(s.of, ColumnRef) for s in sums)

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
        return [f"({t} | 0)" if c.type.is_integer else t for t, c in zip(texts, columns, strict=True)]

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

    def tables(self) -> str:
        """What stands behind FROM."""
        return self._tables(self._a.owned.block)

    def _tables(self, block: Block) -> str:
        joins = [j for j in block.joins if self.dialect.joins_half or j.kind not in _HALVES]
        if not joins:
            return ", ".join(map(self._scanned, block.scans))
        return "\n  ".join([_side([*map(self._scanned, block.scans)]), *map(self._joined, joins)])

    def _conditions(self, block: Block) -> list[str]:
        """The block's conditions, with those joins that only ask whether there is a row if the engine has none such."""
        conditions = [self._row_condition(w) for w in block.where]
        for join in block.joins:
            if join.kind in _HALVES and not self.dialect.joins_half:
                on = " AND ".join(map(self._row_condition, join.on)) or "TRUE"
                rows = f"SELECT 1 FROM {', '.join(map(self._scanned, join.scans))} WHERE {on}"
                conditions.append(f"{_HALVES[join.kind]} ({rows})")
        return conditions

    def _joined(self, join: Join) -> str:
        scans = _side([*map(self._scanned, join.scans)])
        return f"{join.kind.value} JOIN {scans} ON {' AND '.join(map(self._row_condition, join.on)) or 'TRUE'}"

    def _scanned(self, scan: Scan) -> str:
        match scan.rows:
            case Stored():
                return f"{self.dialect.relation(scan.table.relation)} AS s{scan.number}"
            case Grouped() as rows:
                return f"(\n{self._grouped(scan, rows)}) AS s{scan.number}"
            case Windowed() as rows:
                return f"(\n{self._windowed(scan, rows)}) AS s{scan.number}"
            case Together() as rows:
                return f"(\n{self._together(scan, rows)}) AS s{scan.number}"
            case _ as never:
                assert_never(never)

    def _grouped(self, scan: Scan, rows: Grouped) -> str:
        """Rows of each unit, with exact aggregates of its own rows."""
        chosen = [f"{self.renderer.identity(c)} AS {quote(name)}" for name, c in rows.unit]
        chosen += [f"{self.renderer.inner_key(k)} AS {quote(name)}" for name, k in rows.keys]
        group = ", ".join(str(i + 1) for i in range(len(chosen)))
        for value in rows.values:
            reference = ColumnRef(scan.number, value.name, value.type)
            counted = self.filter(RowCount(value.where, value.argument))
            passing = self.filter(RowCount(value.where, TRUE))
            text = unit_value(value, self._a.domains.column(reference), self.renderer, counted, passing)
            chosen.append(f"{text} AS {quote(value.name)}")
        return f"{self._chosen(chosen, rows.block)}\n  GROUP BY {group}"

    def _windowed(self, scan: Scan, rows: Windowed) -> str:
        """Rows of each unit with window functions over its own rows; passed columns as they are stored."""
        chosen = [f"s{c.scan}.{quote(c.name)} AS {quote(name)}" for name, c in rows.passed]
        shared: dict[str, str] = {}  # windows that several functions are over, or one that is written more than once
        for window in rows.windows:
            text = f"({self._window(window, rows.block)})"
            over = shared.setdefault(text, f"w{len(shared)}") if isinstance(window.of, UnitValue) else text
            column = self._a.domains.column(ColumnRef(scan.number, window.name, window.type))
            chosen.append(f"{self._window_value(window, column, f' OVER {over}')} AS {quote(window.name)}")
        named = ", ".join(f"{name} AS {text}" for text, name in shared.items())
        return self._chosen(chosen, rows.block) + (f"\n  WINDOW {named}" if named else "")

    def _together(self, scan: Scan, rows: Together) -> str:
        """The rows of each branch, one after the other; columns as they are computed with."""
        owner = scan.table.ownership
        units = owner.columns if isinstance(owner, UnitColumns) else ()
        selects = []
        for branch in rows.branches:
            chosen = [f"{self.renderer.identity(c)} AS {quote(n)}" for n, c in zip(units, branch.unit, strict=True)]
            chosen += [f"{self.renderer.inner_key(c)} AS {quote(n)}"
                       for n, c in zip(rows.columns, branch.columns, strict=True)]  # fmt: skip
            selects.append(self._chosen(chosen or ["1"], branch.block))
        return "\n  UNION ALL\n".join(selects)

    def _chosen(self, chosen: list[str], block: Block) -> str:
        where = " AND ".join(dict.fromkeys(self._conditions(block))) or "TRUE"
        return f"  SELECT {', '.join(chosen)}\n  FROM {self._tables(block)}\n  WHERE {where}"

    def _window(self, window: WindowValue, block: Block) -> str:
        """PARTITION BY the unit; in an order that is one and the same for any rows that are not alike."""
        keys = [self.renderer.inner_key(k) for k in window.partition]
        order = [f"{self.renderer.inner_key(o.scalar)} {'DESC' if o.is_descending else 'ASC'} NULLS"
                 f" {'FIRST' if o.is_null_first else 'LAST'}" for o in window.order]  # fmt: skip
        if is_told_by_place(window):
            order += [f"{text} ASC NULLS LAST" for c in _columns(block) for text in self._images(c)]
        parted = f"PARTITION BY {', '.join([*map(self.renderer.identity, window.unit), *keys])}"
        ordered = f"{parted} ORDER BY {', '.join(order)}" if order else parted
        return f"{ordered} {spell_frame(window.frame)}" if isinstance(window.frame, Frame) else ordered

    def _images(self, column: ColumnRef) -> tuple[str, ...]:
        """What tells two values of a column apart wherever they differ: 0 and -0 are in no order."""
        stored = self.renderer.identity(column)
        has_sign = column.type in (SqlType.FLOAT4, SqlType.FLOAT8)
        return (stored, self.dialect.sign_bit(stored)) if has_sign else (stored,)

    def _window_value(self, window: WindowValue, column: Column, over: str) -> str:
        match window.of:
            case Placed(place):
                return f"least({place.value}(){over}, {window.most}::BIGINT)"
            case Beside(row, argument, distance):
                text = f"s{argument.scan}.{quote(argument.name)}" if isinstance(argument, ColumnRef) else (
                    f"({self.renderer.measure(argument)})::{self.dialect.types[argument.type]}")  # fmt: skip
                return f"{row.value}({text}{f', {distance}' if row in _AT_A_DISTANCE else ''}){over}"
            case UnitValue() as value:
                counted = self.filter(RowCount(value.where, value.argument)) + over
                passing = self.filter(RowCount(value.where, TRUE)) + over
                return unit_value(value, column, self.renderer, counted, passing)
            case _ as never:
                assert_never(never)

    def where(self) -> str:
        """The block's conditions, and that public keys lie in their domains."""
        conditions = self._conditions(self._a.owned.block)
        for column, domain, keeps_null in domain_filters((*self._a.keys, *self._a.beside), self._a.domains):
            inside = self.renderer.in_domain(column, domain)
            raw = f"s{column.scan}.{quote(column.name)}"
            if isinstance(domain, Unknown):
                inside = f"{raw} IS NOT NULL"
            conditions.append(f"({inside} OR {raw} IS NULL)" if keeps_null else f"({inside})")
        return " AND ".join(dict.fromkeys(conditions)) or "TRUE"

    def _row_condition(self, condition: Scalar) -> str:
        pair = link(condition)
        if pair is not None:
            side = self.renderer.link if SqlType.NUMERIC in {c.type for c in pair} else self.renderer.identity
            return " = ".join(side(c) for c in pair)
        return self.renderer.condition(condition)

    def condition(self, moment: Moment) -> str:
        """Which rows the moment is about; TRUE for all."""
        where, needed, is_absent = self._rows_asked(moment)
        return " AND ".join([self._rows(where, needed, absent=is_absent), *self._without(moment)])

    def _without(self, moment: Moment) -> list[str]:
        """Tests that a row of this moment is none of those moments with which it must have none in common."""
        others = () if isinstance(moment, (UnitCount, UnitTotal)) else self._excluded.get(condition_of(moment), ())
        texts = dict.fromkeys(self.renderer.condition(where) for where in others)
        return [f"NOT coalesce({self._held.get(text, text)}, FALSE)" for text in texts]

    @cached_property
    def _excluded(self) -> Mapping[Scalar, list[Scalar]]:
        """By a moment's condition, the WHERE of those before it whose rows are left out; see `exclusions`.

        Elsewhere a unit's norm is computed from its cells, whatever rows they are made of.
        """
        found: dict[Scalar, list[Scalar]] = {}
        if self._a.owned.is_one_row_per_unit or self._a.has_constant_keys:
            told = [*row_conditions(self._s.moments).items()]
            for first, second in exclusions([condition for _, condition in told]):
                where, _, _ = self._rows_asked(self._s.moments[told[first][0]])
                found.setdefault(told[second][1], []).append(where)
        return found

    def _rows_asked(self, moment: Moment) -> tuple[Scalar, tuple[Scalar, ...], bool]:
        """The moment's condition, the measures that its rows have, and whether they lack some of them instead."""
        match moment:
            case RowCount(where, of, absent, given):
                return where, (of, given), absent
            case ScaledSum(where, of, given=given):
                is_needed = self._may_lack(of) and not self._numeric_integer(moment)  # which is NULL without it
                return where, (of if is_needed else TRUE, given), False
            case HalfSum() | QuarterSum() | SquareSum() | ProductSum():
                return self._rows_asked(rows_of(moment))
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

    def _may_lack(self, scalar: Scalar) -> bool:
        return self._a.domains.may_be_null(scalar)

    def _present(self, scalar: Scalar) -> str:
        """TRUE or FALSE, never NULL: whether a measure has a value."""
        plain = isinstance(scalar, ColumnRef) and scalar.type.is_number
        text = self.renderer.unclamped(scalar) if plain else self.renderer.measure(scalar)
        held = self._held.get(self.dialect.as_double(text), text) if scalar.type.is_number else text
        if held == text and isinstance(scalar, ColumnRef) and self._is_costly(scalar):
            test = f"coalesce({self.renderer.has_value(scalar)}, FALSE)"
        elif scalar.type.is_number and not scalar.type.is_integer:
            test = f"coalesce({self.dialect.finite(held)}, FALSE)"
        else:
            test = f"({held} IS NOT NULL)"
        return self._held.get(test, test)

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

    def _scaled_integer(self, moment: ScaledSum) -> str:
        missing = self._missing_integer(moment)
        value = self._double(moment.of)
        if self.dialect.has_total_doubles:
            return total_doubles.scaled_integer(value, moment, missing)
        return self._numeric_integer(moment) or checked_doubles.scaled_integer(value, moment, missing)

    def _numeric_integer(self, moment: ScaledSum) -> str:
        """The integer of a numeric column that is read in place, NULL where a row lacks it; "" for what is none."""
        if self._held or not isinstance(moment.of, ColumnRef) or not self._is_costly(moment.of):
            return ""
        missing = "NULL" if self._may_lack(moment.of) else str(self._missing_integer(moment))
        limited = self.renderer.column(moment.of).limited_digits
        return checked_doubles.numeric_integer(self.renderer.identity(moment.of), moment, missing, limited=limited)

    def _missing_integer(self, moment: ScaledSum) -> int:
        return math.trunc(self._missing(moment) * ROW_UNITS)

    def _is_costly(self, column: ColumnRef) -> bool:
        """Whether reading a column as a double costs more than what is done with it."""
        return column.type is SqlType.NUMERIC and not self.dialect.has_total_doubles

    def _integer(self, value: str) -> str:
        """trunc(2^30 value) of a value in [-1, 1]."""
        return f"trunc(({value}) * {self.dialect.double(float(ROW_UNITS))})::{self.dialect.small}"

    def _double(self, measure: Scalar) -> str:
        text = self.renderer.unclamped(measure) if isinstance(measure, ColumnRef) else self.renderer.measure(measure)
        text = self.dialect.as_double(text)
        return self._held.get(text, text)

    def _z(self, scaled: ScaledSum) -> str:
        """A row's z in [-1, 1], never NULL."""
        value = self._double(scaled.of)
        z = total_doubles.z if self.dialect.has_total_doubles else checked_doubles.z
        return z(value, scaled, self._missing(scaled))

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
        """Rows that some linear moment uses."""
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
        if not isinstance(moment, ScaledSum) or not isinstance(moment.of, ColumnRef):
            return condition
        if not self._may_lack(moment.of) or not self._numeric_integer(moment):
            return condition
        stored = f"{self.renderer.identity(moment.of)} IS NOT NULL"
        return stored if condition == "TRUE" else f"{condition} AND {stored}"

    def row_factor(self) -> str:
        """r = min(1, C/n)."""
        limit = self._a.bounds.rows_per_group
        whole = self.dialect.double(float(limit))
        return f"CASE WHEN n > {limit} THEN {whole} / n ELSE {self.dialect.double(1.0)} END"

    def weighted(self, index: int, moment: Moment, scale: float) -> str:
        """A cell's moment as a double: its integer times weight, scale and, if it is a sum over rows, r."""
        weight = self._s.allocation.weights[index] * scale
        unit = 1 if isinstance(moment, (RowCount, UnitCount)) else ROW_UNITS
        scaled = " * r" if is_linear(moment) else ""
        return f"m{index}::{self.dialect.types[SqlType.FLOAT8]} * {self.dialect.double(weight / unit)}{scaled}"

    def on_grid(self, index: int, moment: Moment, factor: str) -> str:
        """A cell's moment in whole units of the final grid, truncated toward zero. factor: ` * f`, or nothing."""
        return f"trunc({self.weighted(index, moment, self._s.scale)}{factor})::BIGINT"

    # --- norms ----------------------------------------------------------------------------------------------

    def is_gaussian(self) -> bool:
        return self._s.distribution is Distribution.GAUSSIAN

    def norm(self) -> str:
        """A cell's squared 2-norm (or 1-norm) in units of W^2 (W) / 2^40, rounded up."""
        parts = [
            self.weighted(i, m, 1.0)
            for i, m in enumerate(self._s.moments)
            if not (isinstance(m, UnitCount) and m.per_part)
        ]
        sizes = [f"({p}) * ({p})" if self.is_gaussian() else f"abs({p})" for p in parts]
        unit = self.dialect.double(_NORM_UNITS / self.norm_unit())
        return f"ceil(({' + '.join(sizes) or self.dialect.double(0.0)}) * {unit})::BIGINT"

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
        return f"{math.ceil(size * _NORM_UNITS / self.norm_unit())}::BIGINT"

    def heavy_limit(self) -> int:
        """2^40 B^2/W^2 (B/W in the 1-norm), rounded down."""
        ratio = self._s.allocation.unit_norm / self._s.allocation.cell_norm
        return math.floor(_NORM_UNITS * (ratio * ratio if self.is_gaussian() else ratio))


def _columns(block: Block) -> list[ColumnRef]:
    """Every column of a block's rows."""
    scans = (*block.scans, *(s for j in block.joins if j.kind is JoinKind.LEFT for s in j.scans))
    return [ColumnRef(s.number, c.name, c.type) for s in scans for c in s.table.columns]


def _side(scans: list[str]) -> str:
    """Scans as one side of a join; PostgreSQL takes no brackets around a single one."""
    return f"({' CROSS JOIN '.join(scans)})" if len(scans) > 1 else scans[0]


_ALL_ROWS = Frame(None, None)
_AT_A_DISTANCE = (Neighbour.LAG, Neighbour.LEAD, Neighbour.NTH_VALUE)


def is_told_by_place(window: WindowValue) -> bool:
    """Whether rows of equal place in the given order may have other values."""
    match window.of:
        case Placed(place):
            return place is Place.ROW_NUMBER
        case Beside():
            return True
        case UnitValue():
            frame = window.frame
            return isinstance(frame, Frame) and frame != _ALL_ROWS and not frame.by_peers
        case _ as never:
            assert_never(never)
