"""Which one statement makes the private engine compute the bounded, integer moment vector?

Shapes: one pass over the rows when a unit has one row; a per-unit cell when a unit is in one group;
else cells of (unit, key), the units above the bound with their factor, and their join. All of it is
one statement: factors of another snapshot would bound nothing. See docs/claims/bounding.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import assert_never

from proxy.analysis.analyse import Analysed
from proxy.analysis.keys import PrivateKey, PublicKey, domain_filters
from proxy.analysis.units import EveryRow, UnitOf
from proxy.dp.mechanisms import Distribution
from proxy.plan.allocation import Allocation
from proxy.plan.moments import HalfSum, Moment, RowCount, ScaledSum, UnitCount, is_linear
from proxy.plan.selectivity import expects_few_rows, most_values
from proxy.policy.model import Bounded, Listed, Unknown
from proxy.sql.algebra import TRUE, ColumnRef, Scalar, conjuncts
from proxy.sql.render import Renderer, double, middle_of, quote, text_literal
from proxy.sql.scope import link
from proxy.sqltypes import SqlType

_ROW_UNITS = 2**30  # integer units of a row moment
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


def render(statement: Statement) -> str:
    """The statement's SQL for DuckDB.

    Result rows: is_part (0 a cell, 1 a private part with its unit count), the keys, one exact
    integer for each moment on the final grid.
    """
    return _Writer(statement).write()


class _Writer:
    def __init__(self, statement: Statement) -> None:
        self._s = statement
        self._a = statement.analysed
        domains = self._a.domains
        self._renderer = Renderer(domains.column, domains.may_raise, statement.time_zone)
        self._units = [f"u{i}" for i in range(len(self._unit_columns()))]
        self._keys = [f"k{i}" for i in range(len(self._a.keys))]
        self._is_mixed = any(isinstance(m, UnitCount) and m.per_part for m in statement.moments)

    def write(self) -> str:
        if self._a.owned.is_one_row_per_unit:
            return self._one_row()
        if self._a.has_constant_keys:
            return self._one_cell()
        return self._cells()

    # --- shapes -----------------------------------------------------------------------------------------

    def _one_row(self) -> str:
        sums = [self._one_row_sum(i, m) for i, m in enumerate(self._s.moments)]
        keys = [f"{text} AS {name}" for text, name in zip(self._short_key_texts(), self._keys, strict=True)]
        group = f"\nGROUP BY {', '.join(str(i + 2) for i in range(len(keys)))}" if keys else ""
        return self._with_parts([*keys, *sums], f"FROM {self._from()}\nWHERE {self._where()}{group}")

    def _one_row_sum(self, index: int, moment: Moment) -> str:
        if isinstance(moment, UnitCount):
            assert moment.per_part, "with one row per unit, units are counted as rows"
            return f"0 AS m{index}"
        condition = self._filter(moment)
        if isinstance(moment, RowCount):
            each = math.floor(self._s.allocation.weights[index] * self._s.scale)
            return f"count(*){condition} * {each}::HUGEINT AS m{index}"
        factor = double(self._s.allocation.weights[index] * self._s.scale / _ROW_UNITS)
        return f"sum(trunc({self._row_integer(moment)} * {factor})::BIGINT){condition} AS m{index}"

    def _one_cell(self) -> str:
        keys = [f"min({text}) AS {name}" for text, name in zip(self._key_texts(), self._keys, strict=True)]
        cell = self._cell(keys, self._units, few=expects_few_rows(self._a.owned.block, self._a.domains))
        sums = [f"sum({self._on_grid(i, m, '')}) AS m{i}" for i, m in enumerate(self._s.moments)]
        group = f"\nGROUP BY {', '.join(self._keys)}" if self._keys else ""
        cells = f"(SELECT *, {self._row_factor()} AS r FROM (\n{cell}))"
        return self._with_parts([*self._keys, *sums], f"FROM {cells}{group}")

    def _with_parts(self, chosen: list[str], rest: str) -> str:
        """A SELECT over rows that stand for one unit each; private parts are counted from its groups."""
        if not self._is_mixed:
            return f"SELECT {', '.join(['0 AS is_part', *chosen])}\n{rest}"
        private = self._private()
        columns = [k if k in private else f"NULL AS {k}" for k in self._keys]
        for index, moment in enumerate(self._s.moments):
            each = math.floor(self._s.allocation.weights[index] * self._s.scale)
            counted = isinstance(moment, UnitCount) and moment.per_part
            columns.append(f"sum(units) * {each}::HUGEINT AS m{index}" if counted else f"NULL AS m{index}")
        every = ", ".join(["0 AS is_part", *chosen, "count(*) AS units"])
        return (
            f"WITH summed AS MATERIALIZED (SELECT {every}\n{rest})\n"
            f"SELECT * EXCLUDE (units) FROM summed\nUNION ALL\n"
            f"SELECT 1 AS is_part, {', '.join(columns)}\nFROM summed\nGROUP BY {', '.join(private)}"
        )

    def _cells(self) -> str:
        keys = [f"{text} AS {name}" for text, name in zip(self._short_key_texts(), self._keys, strict=True)]
        units, names = ", ".join(self._units), ", ".join(self._keys)
        limit = self._heavy_limit()
        ctes = [f"cell AS MATERIALIZED (\n{self._cell(keys, [*self._units, *self._keys])})", *self._cut_keys()]
        ctes.append(f"scored AS (SELECT *, {self._row_factor()} AS r FROM {'kept' if self._private() else 'cell'})")
        norms = f"SELECT {units}, {self._norm()} AS q FROM scored"
        if self._is_mixed:
            ctes.append(f"part AS (SELECT DISTINCT {units}, {', '.join(self._private())} FROM scored)")
            norms += f" UNION ALL SELECT {units}, {self._part_norm()} AS q FROM part"
        factor = f"sqrt({double(float(limit))} / sum(q))" if self._is_gaussian() else f"{double(float(limit))} / sum(q)"
        few = f" SEMI JOIN ({candidates}) USING ({units})" if (candidates := self._candidates(units, limit)) else ""
        ctes.append(
            f"heavy AS (SELECT {units}, {factor} AS f FROM ({norms}){few}\n"
            f"  GROUP BY {units} HAVING sum(q) > {limit}::HUGEINT)"
        )
        sums = [f"sum({self._on_grid(i, m, ' * coalesce(f, 1e0)')}) AS m{i}" for i, m in enumerate(self._s.moments)]
        body = (
            f"SELECT {', '.join(['0 AS is_part', names, *sums])}\n"
            f"FROM scored LEFT JOIN heavy USING ({units})\nGROUP BY {names}"
        )
        if self._is_mixed:
            body += f"\nUNION ALL\n{self._parts()}"
        return "WITH " + ",\n".join(ctes) + f"\n{body}"

    def _parts(self) -> str:
        """The unit counts of private parts, one row each; public keys and other moments are NULL."""
        private = self._private()
        columns = [k if k in private else f"NULL AS {k}" for k in self._keys]
        for index, moment in enumerate(self._s.moments):
            is_count = isinstance(moment, UnitCount) and moment.per_part
            weight = double(self._s.allocation.weights[index] * self._s.scale)
            columns.append(
                f"sum(trunc({weight} * coalesce(f, 1e0))::BIGINT) AS m{index}" if is_count else f"NULL AS m{index}"
            )
        units = ", ".join(self._units)
        return (
            f"SELECT 1 AS is_part, {', '.join(columns)}\nFROM part LEFT JOIN heavy USING ({units})\n"
            f"GROUP BY {', '.join(private)}"
        )

    # --- cells ------------------------------------------------------------------------------------------

    def _cell(self, keys: list[str], group: list[str], *, few: bool = False) -> str:
        """One row for each group of units and keys. few: grouped without an array over all ids of units."""
        columns = self._sparse_units() if few else self._unit_columns()
        units = [f"{text} AS {name}" for text, name in zip(columns, self._units, strict=True)]
        counted = f"{self._rows_used()} AS n"
        moments = [f"{self._cell_moment(m)} AS m{i}" for i, m in enumerate(self._s.moments)]
        chosen = ", ".join([*units, *keys, counted, *moments])
        positions = range(1, len(group) + 1)
        return f"SELECT {chosen}\nFROM {self._from()}\nWHERE {self._where()}\nGROUP BY {', '.join(map(str, positions))}"

    def _cell_moment(self, moment: Moment) -> str:
        match moment:
            case RowCount():
                return f"count(*){self._filter(moment)}"
            case UnitCount(per_part=True):
                return "0"
            case UnitCount(where):
                return "1" if where == TRUE else f"(count(*){self._filter(moment)} > 0)::BIGINT"
            case _:
                return (
                    f"coalesce(sum_no_overflow({self._row_integer(moment)}){self._filter(moment)}, 0)"  # 2^33 rows fit
                )

    def _rows_used(self) -> str:
        """Rows that some linear moment uses."""
        conditions = list(dict.fromkeys(self._condition(m) for m in self._s.moments if is_linear(m)))
        if not conditions:
            return "1"
        if "TRUE" in conditions:
            return "count(*)"
        return f"count(*) FILTER (WHERE {' OR '.join(f'({c})' for c in conditions)})"

    def _row_factor(self) -> str:
        """r = min(1, C/n)."""
        limit = self._a.bounds.rows_per_group
        return f"CASE WHEN n > {limit} THEN {double(float(limit))} / n ELSE 1e0 END"

    def _weighted(self, index: int, moment: Moment, scale: float) -> str:
        weight = self._s.allocation.weights[index] * scale
        if isinstance(moment, (ScaledSum, HalfSum)):
            return f"m{index}::DOUBLE * {double(weight / _ROW_UNITS)} * r"
        return f"m{index}::DOUBLE * {double(weight)}" + (" * r" if is_linear(moment) else "")

    def _on_grid(self, index: int, moment: Moment, factor: str) -> str:
        return f"trunc({self._weighted(index, moment, self._s.scale)}{factor})::BIGINT"

    # --- norms --------------------------------------------------------------------------------------------

    def _is_gaussian(self) -> bool:
        return self._s.distribution is Distribution.GAUSSIAN

    def _norm(self) -> str:
        """A cell's squared 2-norm (or 1-norm) in units of W^2 (W) / 2^40, rounded up."""
        parts = [
            self._weighted(i, m, 1.0)
            for i, m in enumerate(self._s.moments)
            if not (isinstance(m, UnitCount) and m.per_part)
        ]
        sizes = [f"({p}) * ({p})" if self._is_gaussian() else f"abs({p})" for p in parts]
        return f"ceil(({' + '.join(sizes)}) * {double(_NORM_UNITS / self._norm_unit())})::BIGINT"

    def _norm_unit(self) -> float:
        norm = self._s.allocation.cell_norm
        return norm * norm if self._is_gaussian() else norm

    def _candidates(self, units: str, limit: int) -> str:
        """Every unit above the limit and few others; "" for all units.

        Of at most K cells that are above the limit together, one is above a K-th of it.
        """
        cells = most_values(self._a.keys, self._a.domains)
        if not cells or self._is_mixed:
            return ""
        return f"SELECT {units} FROM (SELECT {units}, {self._norm()} AS q FROM scored) WHERE q > {limit // cells}"

    def _part_norm(self) -> str:
        weight = next(
            self._s.allocation.weights[i]
            for i, m in enumerate(self._s.moments)
            if isinstance(m, UnitCount) and m.per_part
        )
        size = weight * weight if self._is_gaussian() else weight
        return f"{math.ceil(size * _NORM_UNITS / self._norm_unit())}::BIGINT"

    def _heavy_limit(self) -> int:
        """2^40 B^2/W^2 (B/W in the 1-norm), rounded down."""
        ratio = self._s.allocation.unit_norm / self._s.allocation.cell_norm
        return math.floor(_NORM_UNITS * (ratio * ratio if self._is_gaussian() else ratio))

    # --- private keys above K ---------------------------------------------------------------------------------

    def _private(self) -> list[str]:
        return [n for n, k in zip(self._keys, self._a.keys, strict=True) if isinstance(k, PrivateKey)]

    def _cut_keys(self) -> list[str]:
        """Units that hold more than K private keys keep K of them, chosen by salted hash, then key."""
        private = self._private()
        if not private:
            return []
        units, limit = ", ".join(self._units), self._a.bounds.keys
        spelled = " || ".join(
            f"coalesce(length({k}::VARCHAR) || ':' || {k}::VARCHAR, '-')" for k in [*self._units, *private]
        )
        order = f"md5({text_literal(self._s.salt)} || {spelled}), {', '.join(private)}"
        held = f"count(DISTINCT ({', '.join(private)},))" if self._is_mixed else "count(*)"
        return [
            f"many AS (SELECT {units} FROM cell GROUP BY {units} HAVING {held} > {limit})",
            (
                f"kept AS (SELECT * FROM cell ANTI JOIN many USING ({units})\n  UNION ALL\n"
                f"  SELECT * EXCLUDE (place) FROM (SELECT cell.*, dense_rank() OVER (PARTITION BY {units}\n"
                f"    ORDER BY {order}) AS place FROM cell SEMI JOIN many USING ({units})) WHERE place <= {limit})"
            ),
        ]

    # --- rows -------------------------------------------------------------------------------------------------

    def _unit_columns(self) -> list[str]:
        match self._a.owned.unit:
            case EveryRow():
                return []
            case UnitOf(columns):
                return [self._renderer.identity(c) for c in columns]
            case _ as never:
                assert_never(never)

    def _sparse_units(self) -> list[str]:
        """The unit columns without their statistics, so that the engine hashes the ids that occur."""
        unit = self._a.owned.unit
        columns = unit.columns if isinstance(unit, UnitOf) else ()
        return [f"({t} | 0)" if c.type.is_integer else t for t, c in zip(self._unit_columns(), columns, strict=True)]

    def _key_texts(self) -> list[str]:
        return [
            self._renderer.private_key(k.scalar) if isinstance(k, PrivateKey) else self._renderer.key(k.scalar)
            for k in self._a.keys
        ]

    def _short_key_texts(self) -> list[str]:
        """Keys for grouping alone, their order left open: listed texts as one byte that reads as the text."""
        return [
            self._renderer.listed_key(k.scalar) if isinstance(k, PublicKey) else text
            for k, text in zip(self._a.keys, self._key_texts(), strict=True)
        ]

    def _from(self) -> str:
        return ", ".join(f"{'.'.join(map(quote, s.table.relation))} AS s{s.number}" for s in self._a.owned.block.scans)

    def _where(self) -> str:
        conditions = [self._row_condition(w) for w in self._a.owned.block.where]
        for column, domain, keeps_null in domain_filters(self._a.keys, self._a.domains):
            inside = self._renderer.in_domain(column, domain)
            raw = f"s{column.scan}.{quote(column.name)}"
            if isinstance(domain, Unknown):
                inside = f"{raw} IS NOT NULL"
            conditions.append(f"({inside} OR {raw} IS NULL)" if keeps_null else f"({inside})")
        return " AND ".join(dict.fromkeys(conditions)) or "TRUE"

    def _row_condition(self, condition: Scalar) -> str:
        pair = link(condition)
        if pair is not None:
            side = self._renderer.link if SqlType.NUMERIC in {c.type for c in pair} else self._renderer.identity
            return " = ".join(side(c) for c in pair)
        return self._renderer.condition(condition)

    def _condition(self, moment: Moment) -> str:
        match moment:
            case RowCount(where, of, absent):
                parts = [self._renderer.condition(where)] if conjuncts(where) else []
                if of != TRUE:
                    parts.append(f"NOT {self._present(of)}" if absent else self._present(of))
                return " AND ".join(parts) or "TRUE"
            case ScaledSum(where, of):
                return self._condition(RowCount(where, of) if self._may_lack(of) else RowCount(where, TRUE))
            case HalfSum(scaled):
                return self._condition(scaled)
            case UnitCount(where):
                return self._renderer.condition(where)
            case _ as never:
                assert_never(never)

    def _filter(self, moment: Moment) -> str:
        condition = self._condition(moment)
        return "" if condition == "TRUE" else f" FILTER (WHERE {condition})"

    def _may_lack(self, scalar: Scalar) -> bool:
        return self._a.domains.may_be_null(scalar)

    def _present(self, scalar: Scalar) -> str:
        """TRUE or FALSE, never NULL: whether a measure has a value."""
        plain = isinstance(scalar, ColumnRef) and scalar.type.is_number
        text = self._renderer.unclamped(scalar) if plain else self._renderer.measure(scalar)
        if scalar.type.is_number and not scalar.type.is_integer:
            return f"coalesce(isfinite({text}), FALSE)"
        return f"({text} IS NOT NULL)"

    def _row_integer(self, moment: Moment) -> str:
        """A row's moment as an integer of 2^-30: clamped, truncated toward zero, 0 where it has no value."""
        scaled = moment.scaled if isinstance(moment, HalfSum) else moment
        assert isinstance(scaled, ScaledSum)
        plain = isinstance(scaled.of, ColumnRef)
        text = self._renderer.unclamped(scaled.of) if plain else self._renderer.measure(scaled.of)
        value = f"({text})::DOUBLE"
        missing = self._missing(moment, scaled)
        if isinstance(moment, HalfSum):
            z = f"(({value} - {double(scaled.middle)}) / {double(scaled.half)})"
            half = f"((1e0 {'+' if moment.sign > 0 else '-'} greatest(least({z}, 1e0), -1e0)) / 2e0)"
            clamped = f"greatest(least({half}, 1e0), -1e0)"
            units = double(float(_ROW_UNITS))
            return f"(CASE WHEN isfinite({value}) THEN trunc({clamped} * {units})::BIGINT ELSE {missing} END)"
        return _scaled_integer(value, scaled, missing)

    def _missing(self, moment: Moment, scaled: ScaledSum) -> int:
        """The integer of a row whose measure has no value: that of the middle, where the policy declares one."""
        z = 0.0
        if isinstance(scaled.of, ColumnRef):
            column = self._a.domains.column(scaled.of)
            if not column.nullable and isinstance(column.domain, (Bounded, Listed)):
                z = (float(middle_of(column.domain, scaled.of.type)) - scaled.middle) / scaled.half
                z = max(min(z, scaled.most), scaled.least)
        if isinstance(moment, HalfSum):
            return 0 if self._may_lack(scaled.of) else math.trunc((1.0 + moment.sign * z) / 2.0 * _ROW_UNITS)
        return math.trunc(z * _ROW_UNITS)


def _scaled_integer(value: str, scaled: ScaledSum, missing: int) -> str:
    """trunc(2^30 clamp((x - middle)/half)), with as few operations for a row inside its bounds as possible.

    Dividing by half/2^30 instead of multiplying by 2^30 at the end gives the same double: powers of two are exact.
    """
    step, whole = scaled.half / _ROW_UNITS, double(float(_ROW_UNITS))
    shifted = f"({value} - {double(scaled.middle)})" if scaled.middle else value
    is_exact = step * _ROW_UNITS == scaled.half  # but for the smallest doubles there are
    units = f"({shifted} / {double(step)})" if is_exact else f"({shifted} / {double(scaled.half)} * {whole})"
    least, most = double(scaled.least * _ROW_UNITS), double(scaled.most * _ROW_UNITS)
    inside = f"abs({units}) <= {most}" if -scaled.least == scaled.most else f"{units} BETWEEN {least} AND {most}"
    return (
        f"(CASE WHEN {inside} THEN trunc({units})::BIGINT WHEN isfinite({value})"
        f" THEN trunc(greatest(least({units}, {most}), {least}))::BIGINT ELSE {missing} END)"
    )
