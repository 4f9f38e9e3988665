"""Which one statement makes the private engine compute the bounded, integer moment vector?

Shapes: one pass over the rows when a unit has one row; a per-unit cell when a unit is in one group; one row
for each unit when its cells are few; all rows by key, corrected by the cells of units with many rows (row_sums); else
cells of (unit, key), the units above the bound with their factor, and their join. All of it is one statement: factors
of another snapshot would bound nothing. See docs/claims/bounding.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import assert_never

from proxy.analysis.keys import PrivateKey
from proxy.plan.parts.cut_units import (
    CLIPPED,
    COUNTED,
    counted_by_cells,
    counted_by_units,
    has_clipped,
    is_cut,
    pair_rows,
)
from proxy.plan.sql.moment_sql import MomentTerms, VectorStatement
from proxy.plan.sql.row_sums import UnitSizes, most_rows
from proxy.plan.sql.salting import salted
from proxy.plan.sql.selectivity import expects_few_rows, most_values
from proxy.plan.vector.allocation import is_within_by_cells
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
)
from proxy.sql.algebra.nodes import TRUE, ColumnRef

_READABLE = 2_000  # characters of a statement that may compute a measure more than once


def render(statement: VectorStatement) -> str:
    """The statement's SQL for its engine.

    Result rows: is_part (0 a cell, 1 a private part with its unit count), the keys, one exact
    integer for each moment on the final grid. Where units that are cut are counted, 2 and 3 are two rows more: how many
    are, and how many are not, in the place of the first moment.
    """
    return _Writer(statement).write()


def unit_cells(statement: VectorStatement) -> str:
    """One row for each unit and group: unit, keys, `n` (at least the rows that are used), each moment's exact sum."""
    return _Writer(statement).cell()


class _Writer:
    def __init__(self, statement: VectorStatement) -> None:
        self._statement = statement
        self._analysed = statement.analysed
        self._dialect = statement.dialect
        self._terms = MomentTerms(statement)
        self._is_mixed = any(isinstance(m, UnitCount) and m.per_part for m in statement.moments)

    def write(self) -> str:
        is_chosen = self._statement.allocation.is_chosen
        if self._analysed.owned.is_one_row_per_unit:
            return self._scaled_cells(self._row_cells()) if is_chosen else self._one_row()
        if self._analysed.has_constant_keys:
            return self._one_cell()
        if self._are_all_light():
            return self._light_cells()
        return self._row_sums(most) if (most := most_rows(self._statement)) else self._cells()

    # --- shapes -----------------------------------------------------------------------------------------

    def _one_row(self) -> str:
        rows = f"FROM {self._terms.source.tables()}\nWHERE {self._terms.source.where()}"
        keys, held = self._terms.short_key_texts(), self._terms.held()
        text = self._summed(self._terms, keys, rows)
        if not held or len(text) <= _READABLE:
            return text
        rows = self._present(dict(zip(self._terms.keys, keys, strict=True)), held, rows)
        return self._summed(MomentTerms(self._statement, held), self._terms.keys, rows)

    def _summed(self, terms: MomentTerms, keys: list[str], rows: str) -> str:
        """Sums over rows that are a unit each. keys: texts over them."""
        sums = [self._one_row_sum(terms, i, m) for i, m in enumerate(self._statement.moments)]
        named = [_named(text, name) for text, name in zip(keys, terms.keys, strict=True)]
        group = f"\nGROUP BY {', '.join(str(i + 2) for i in range(len(keys)))}" if keys else ""
        return self._with_parts([*named, *sums], f"{rows}{group}")

    def _one_row_sum(self, terms: MomentTerms, index: int, moment: Moment) -> str:
        if isinstance(moment, UnitCount):
            assert moment.per_part, "with one row per unit, units are counted as rows"
            return f"0 AS m{index}"
        assert not isinstance(moment, UnitTotal), "with one row per unit, a unit's sum is a row's value"
        condition = terms.filter(moment)
        if isinstance(moment, RowCount):
            each = math.floor(self._statement.allocation.weights[index] * self._statement.scale)
            return f"count(*){condition} * {each}::{self._dialect.huge} AS m{index}"
        return f"{self._sum_of_rows(terms, index, moment)} AS m{index}"

    def _sum_of_rows(self, terms: MomentTerms, index: int, moment: RowSum) -> str:
        """Over rows that are brought to the final grid one by one."""
        factor = self._dialect.double(self._statement.allocation.weights[index] * self._statement.scale / ROW_UNITS)
        on_grid = self._dialect.whole(f"{terms.row_whole(moment)} * {factor}")
        return f"{self._dialect.wide_sum(on_grid)}{terms.filter(moment)}"

    def _one_cell(self) -> str:
        cell = self.cell(few=expects_few_rows(self._analysed.owned.block, self._analysed.domains), constant=True)
        if self._statement.allocation.is_chosen:
            return self._scaled_cells(cell)
        return self._with_parts([*self._terms.keys, *self._light_sums()], self._from_light(cell))

    def _scaled_cells(self, cell: str) -> str:
        """Sums over cells that are all a unit has, each with its factor."""
        assert not self._is_mixed, "the counts of private parts have no factor here"
        terms = self._terms
        scored = f"SELECT *, {terms.row_factor()} AS r FROM (\n{cell}) AS cell"
        normed = f"SELECT *, {terms.norm()} AS q FROM ({scored}) AS scored"
        factored = f"SELECT *, {terms.own_factor()} AS f FROM ({normed}) AS normed"
        sums = [
            f"{self._dialect.wide_sum(terms.on_grid(i, m, ' * f'))} AS m{i}"
            for i, m in enumerate(self._statement.moments)
        ]
        group = f"\nGROUP BY {', '.join(terms.keys)}" if terms.keys else ""
        return f"SELECT {', '.join(['0 AS is_part', *terms.keys, *sums])}\nFROM ({factored}) AS factored{group}"

    def _light_cells(self) -> str:
        chosen = ", ".join(["0 AS is_part", *self._terms.keys, *self._light_sums()])
        if not self._statement.cut_weight:
            return f"SELECT {chosen}\n{self._from_light(self.cell())}"
        counted = counted_by_cells(self._statement, self._terms, "scored")
        scored = f"SELECT *, {self._terms.row_factor()} AS r FROM (\n{self.cell()}) AS cell"
        return (
            f"WITH {self._dialect.once('scored', scored)},\n{counted}\n"
            f"SELECT {chosen}\nFROM scored{self._by_keys()}{pair_rows(self._statement, self._terms)}"
        )

    def _are_all_light(self) -> bool:
        """Whether no unit can be above B, so that no norm is needed."""
        cells, of = most_values(self._analysed.keys, self._analysed.domains), self._statement
        if cells == 0 or self._is_mixed:
            return False
        return is_within_by_cells(of.moments, of.allocation, self._analysed.bounds, cells, of.distribution)

    def _light_sums(self) -> list[str]:
        """Sums over cells of units that need no factor."""
        moments = enumerate(self._statement.moments)
        return [f"{self._dialect.wide_sum(self._terms.on_grid(i, m, ''))} AS m{i}" for i, m in moments]

    def _from_light(self, cell: str) -> str:
        return f"FROM (SELECT *, {self._terms.row_factor()} AS r FROM (\n{cell}) AS cell) AS scored{self._by_keys()}"

    def _by_keys(self) -> str:
        return f"\nGROUP BY {', '.join(self._terms.keys)}" if self._terms.keys else ""

    def _with_parts(self, chosen: list[str], rest: str) -> str:
        """A SELECT over rows that stand for one unit each; private parts and cut units are counted from its groups."""
        counts_cut = bool(self._statement.cut_weight)
        if not self._is_mixed and not counts_cut:
            return f"SELECT {', '.join(['0 AS is_part', *chosen])}\n{rest}"
        every = ["0 AS is_part", *chosen, "count(*) AS units"]
        every += [f"count(*) FILTER (WHERE {is_cut(self._statement)}) AS cut_units"] if counts_cut else []
        ctes = [self._dialect.once("summed", f"SELECT {', '.join(every)}\n{rest}")]
        shown = ", ".join(["is_part", *self._terms.keys, *(f"m{i}" for i in range(len(self._statement.moments)))])
        body = f"SELECT {shown} FROM summed{self._parts_of_summed() if self._is_mixed else ''}"
        if counts_cut:
            ctes.append(f"{COUNTED} AS (SELECT sum(cut_units) AS cut_units, sum(units) AS units FROM summed)")
            body += pair_rows(self._statement, self._terms)
        return "WITH " + ",\n".join(ctes) + f"\n{body}"

    def _parts_of_summed(self) -> str:
        private = self._private()
        columns = [k if k in private else f"NULL AS {k}" for k in self._terms.keys]
        for index, moment in enumerate(self._statement.moments):
            each = math.floor(self._statement.allocation.weights[index] * self._statement.scale)
            counted = isinstance(moment, UnitCount) and moment.per_part
            huge = self._dialect.huge
            columns.append(f"sum(units) * {each}::{huge} AS m{index}" if counted else f"NULL AS m{index}")
        return f"\nUNION ALL\nSELECT 1 AS is_part, {', '.join(columns)}\nFROM summed\nGROUP BY {', '.join(private)}"

    def _cells(self) -> str:
        units, names = ", ".join(self._terms.units), ", ".join(self._terms.keys)
        limit = self._terms.heavy_limit()
        ctes = [self._dialect.once("cell", f"\n{self.cell()}"), *self._cut_keys()]
        source = "kept" if self._private() else "cell"
        ctes.append(f"scored AS (SELECT *, {self._terms.row_factor()} AS r FROM {source})")
        norms = f"SELECT {units}, {self._terms.norm()} AS q FROM scored"
        if self._is_mixed:
            ctes.append(f"part AS (SELECT DISTINCT {units}, {', '.join(self._private())} FROM scored)")
            norms += f" UNION ALL SELECT {units}, {self._terms.part_norm()} AS q FROM part"
        total, factor = self._dialect.wide_sum("q"), self._factor(limit)
        present = f"({norms}) AS norms"
        if candidates := self._candidates(units, limit):
            present = self._dialect.matched(present, f"({candidates})", self._terms.units, is_there=True)
        ctes.append(
            f"heavy AS (SELECT {units}, {factor} AS f FROM {present}\n"
            f"  GROUP BY {units} HAVING {total} > {limit}::{self._dialect.huge})"
        )
        moments, factored = enumerate(self._statement.moments), " * coalesce(f, 1e0)"
        sums = [f"{self._dialect.wide_sum(self._terms.on_grid(i, m, factored))} AS m{i}" for i, m in moments]
        body = (
            f"SELECT {', '.join(['0 AS is_part', names, *sums])}\n"
            f"FROM scored LEFT JOIN heavy USING ({units})\nGROUP BY {names}"
        )
        if self._is_mixed:
            body += f"\nUNION ALL\n{self._parts()}"
        if self._statement.cut_weight:
            many = "many" if self._private() else ""
            ctes.append(counted_by_units(self._statement, self._terms, "scored", "heavy", many))
            body += pair_rows(self._statement, self._terms)
        return "WITH " + ",\n".join(ctes) + f"\n{body}"

    def _parts(self) -> str:
        """The unit counts of private parts, one row each; public keys and other moments are NULL."""
        private = self._private()
        columns = [k if k in private else f"NULL AS {k}" for k in self._terms.keys]
        for index, moment in enumerate(self._statement.moments):
            is_count = isinstance(moment, UnitCount) and moment.per_part
            weight = self._dialect.double(self._statement.allocation.weights[index] * self._statement.scale)
            columns.append(
                f"{self._dialect.wide_sum(self._dialect.whole(f'{weight} * coalesce(f, 1e0)'))} AS m{index}"
                if is_count
                else f"NULL AS m{index}"
            )
        units = ", ".join(self._terms.units)
        return (
            f"SELECT 1 AS is_part, {', '.join(columns)}\nFROM part LEFT JOIN heavy USING ({units})\n"
            f"GROUP BY {', '.join(private)}"
        )

    # --- units whose rows count as they are ---------------------------------------------------------------

    def _row_sums(self, most: int) -> str:
        """All rows by key, and what the cells of large units give less than their rows. most: N."""
        units, names = ", ".join(self._terms.units), ", ".join(self._terms.keys)
        limit, bound = self._terms.heavy_limit(), self._analysed.bounds.rows_per_group
        sizes = UnitSizes(self._statement, self._terms, most)
        once, total, factor = self._dialect.once, self._dialect.wide_sum("q"), self._factor(limit)
        ctes = [
            once("size", f"\n{self._sizes(sizes)}"),
            once("large", f"SELECT {units} FROM size WHERE {sizes.is_large()}"),
            once("cell", f"\n{self.cell(of_large=True)}"),
            f"scored AS (SELECT *, {self._terms.row_factor()} AS r FROM cell)",
            (
                f"heavy AS (SELECT {units}, CASE WHEN {total} > {limit} THEN {factor} ELSE 1e0 END AS f\n"
                f"  FROM (SELECT {units}, rows, {self._terms.norm()} AS q FROM scored) AS norms\n"
                f"  GROUP BY {units} HAVING sum(rows) > {most})"
            ),
        ]
        lost = ", ".join(
            f"sum(CASE WHEN f IS NULL AND n <= {bound} THEN 0 ELSE"
            f" {self._terms.on_grid(i, m, ' * coalesce(f, 1e0)')} - {self._of_rows(i, m)} END) AS m{i}"
            for i, m in enumerate(self._statement.moments)
        )
        sums = ", ".join(f"coalesce(sum(m{i}), 0) AS m{i}" for i in range(len(self._statement.moments)))
        body = (
            f"SELECT 0 AS is_part, {names}, {sums}\nFROM (\n{self._all_rows()}\nUNION ALL\n"
            f"SELECT {names}, {lost}\nFROM scored LEFT JOIN heavy USING ({units})\nGROUP BY {names}) AS summed\n"
            f"GROUP BY {names}"
        )
        if self._statement.cut_weight:
            ctes.append(counted_by_units(self._statement, self._terms, "scored", "heavy", present="size"))
            body += pair_rows(self._statement, self._terms)
        return "WITH " + ",\n".join(ctes) + f"\n{body}"

    def _sizes(self, sizes: UnitSizes) -> str:
        """One row for each unit: its rows, counted."""
        terms, listed = self._terms, self._terms.listed_keys()
        named = zip([*terms.unit_columns(), *terms.short_key_texts()], [*terms.units, *terms.keys], strict=True)
        columns = ", ".join(_named(text, name) for text, name in named)
        return (
            f"SELECT {', '.join([*terms.units, *sizes.columns([*listed])])}\n"
            f"FROM (SELECT {columns}\nFROM {terms.source.tables()}\nWHERE {terms.source.where(listed.values())})"
            f" AS present\nGROUP BY {', '.join(terms.units)}{chr(10) + 'HAVING n > 0' if listed else ''}"
        )

    def _all_rows(self) -> str:
        """The sums of all rows by key, each rounded by itself."""
        listed = self._terms.listed_keys()
        terms, _, keys, rows = self._rows(few=False, constant=False, listed=listed)
        named = [_named(text, name) for text, name in zip(keys, terms.keys, strict=True)]
        sums = [self._one_row_sum(terms, i, m) for i, m in enumerate(self._statement.moments)]
        group = ", ".join(str(i + 1) for i in range(len(keys)))
        return f"SELECT {', '.join([*named, *sums])}\n{rows}\nGROUP BY {group}{_having(listed)}"

    def _of_rows(self, index: int, moment: Moment) -> str:
        """What the rows of a large unit's cell have added to a moment."""
        if isinstance(moment, RowCount):
            each = math.floor(self._statement.allocation.weights[index] * self._statement.scale)
            return f"m{index}::{self._dialect.huge} * {each}"
        return f"g{index}"

    # --- cells ------------------------------------------------------------------------------------------

    def cell(self, *, few: bool = False, constant: bool = False, of_large: bool = False) -> str:
        """One row for each unit and group, or for each unit if its keys are constant.

        few: grouped without an array over all ids of units. of_large: of the units in `large` alone, with the number
        of their `rows` and what `_all_rows` adds for them.
        """
        listed = {} if constant else self._terms.listed_keys()
        terms, units, keys, rows = self._rows(few=few, constant=constant, listed=listed, of_large=of_large)
        kinds = [k.scalar.type for k in self._analysed.keys]
        shown = [self._dialect.smallest(k, t) for k, t in zip(keys, kinds, strict=True)] if constant else keys
        chosen = [_named(text, name) for text, name in zip([*units, *shown], [*terms.units, *terms.keys], strict=True)]
        chosen.append(f"{terms.rows_used()} AS n")
        chosen += [f"{_cell_moment(terms, m)} AS m{i}" for i, m in enumerate(self._statement.moments)]
        if has_clipped(self._statement):
            totals = [m for m in self._statement.moments if isinstance(m, UnitTotal)]
            chosen.append(f"({' OR '.join(_is_clipped(terms, m) for m in totals)}) AS {CLIPPED}")
        if of_large:
            chosen.append("count(*) AS rows")
            moments = enumerate(self._statement.moments)
            sums = ((i, m) for i, m in moments if not isinstance(m, (RowCount, UnitCount, UnitTotal)))
            chosen += [f"coalesce({self._sum_of_rows(terms, i, m)}, 0) AS g{i}" for i, m in sums]
        group = range(len(units) if constant else len(units) + len(keys))
        by = ", ".join(str(i + 1) for i in group)
        return f"SELECT {', '.join(chosen)}\n{rows}\nGROUP BY {by}{_having(listed)}"

    def _row_cells(self) -> str:
        """One row for each row, which is all a unit has: its keys, and each moment's integer."""
        terms, _, keys, rows = self._rows(few=False, constant=False, listed={})
        chosen = [_named(text, name) for text, name in zip(keys, terms.keys, strict=True)]
        chosen += [f"{_row_moment(terms, m)} AS m{i}" for i, m in enumerate(self._statement.moments)]
        return f"SELECT {', '.join(chosen)}\n{rows}"

    def _rows(
        self, *, few: bool, constant: bool, listed: Mapping[str, ColumnRef], of_large: bool = False
    ) -> tuple[MomentTerms, list[str], list[str], str]:
        """The rows to be grouped: how they are spelled, their units and keys, and FROM.

        listed: keys that tell which groups are dropped later. of_large: of the units in `large` alone.
        """
        units = self._terms.unit_columns()
        keys = self._terms.key_texts() if constant else self._terms.short_key_texts()
        rows = f"FROM {self._terms.source.tables()}\nWHERE {self._terms.source.where(listed.values())}"
        if of_large:
            same = (f"{text} = large.{name}" for text, name in zip(units, self._terms.units, strict=True))
            where = f"{self._terms.source.where(listed.values())} AND {' AND '.join(same)}"
            rows = f"FROM {self._terms.source.tables()}, large\nWHERE {where}"
        held = self._terms.held(even_few=bool(listed))
        few = few and self._dialect.abilities.ids_by_range
        if few and self._terms.is_one_integer() and self._terms.needs_units_alone():
            gathered = f"FROM (SELECT {self._dialect.gathered(units[0])} AS {self._terms.units[0]}\n{rows})"
            return self._terms, self._terms.units, [], gathered
        if few:
            units = self._terms.sparse_units(units)
        if not held and not listed:
            return self._terms, units, keys, rows
        named = zip([*self._terms.units, *self._terms.keys], [*units, *keys], strict=True)
        rows = self._present(dict(named), held, rows)
        return MomentTerms(self._statement, held), self._terms.units, self._terms.keys, rows

    def _present(self, grouped: Mapping[str, str], held: Mapping[str, str], rows: str) -> str:
        """FROM a sub-select that names what is computed for each row. grouped: texts of units and keys, by name."""
        shared = self._terms.read_once()
        texts = {**grouped, **{name: text for text, name in held.items()}}
        levels = [texts]
        if shared.columns:
            inner = {name: text for name, text in texts.items() if text not in shared.measures}
            levels = [{**inner, **shared.columns}, {n: shared.measures.get(t, n) for n, t in texts.items()}]
        for level in levels:
            columns = ", ".join(_named(text, name) for name, text in level.items())
            rows = f"FROM (SELECT {columns}\n{rows}{self._dialect.fence}) AS present"
        return rows

    # --- norms --------------------------------------------------------------------------------------------

    def _factor(self, limit: int) -> str:
        """f of a unit whose norms add up to more than the limit."""
        ratio = self._dialect.ratio(self._dialect.double(float(limit)), self._dialect.wide_sum("q"))
        return f"sqrt({ratio})" if self._terms.is_gaussian() else ratio

    def _candidates(self, units: str, limit: int) -> str:
        """Every unit above the limit and few others; "" for all units.

        Of at most K cells that are above the limit together, one is above a K-th of it.
        """
        cells = most_values(self._analysed.keys, self._analysed.domains)
        if not cells or self._is_mixed or not self._dialect.abilities.filters_early:
            return ""
        return f"SELECT {units} FROM (SELECT {units}, {self._terms.norm()} AS q FROM scored) WHERE q > {limit // cells}"

    # --- private keys above K ---------------------------------------------------------------------------------

    def _private(self) -> list[str]:
        return [n for n, k in zip(self._terms.keys, self._analysed.keys, strict=True) if isinstance(k, PrivateKey)]

    def _cut_keys(self) -> list[str]:
        """Units that hold more than K private keys keep K of them, chosen by salted hash, then key."""
        private = self._private()
        if not private:
            return []
        units, limit = ", ".join(self._terms.units), self._analysed.bounds.keys
        kinds = [(n, k.scalar.type) for n, k in zip(self._terms.keys, self._analysed.keys, strict=True) if n in private]
        order = f"{salted(self._statement, self._terms, kinds)}, {', '.join(private)}"
        moments = (f"m{i}" for i in range(len(self._statement.moments)))
        clipped = [CLIPPED] if has_clipped(self._statement) else []
        columns = ", ".join([*self._terms.units, *self._terms.keys, "n", *moments, *clipped])
        held = f"count(DISTINCT {self._dialect.tuple_of(private)})" if self._is_mixed else "count(*)"
        absent, present = (self._dialect.matched("cell", "many", self._terms.units, is_there=i) for i in (False, True))
        return [
            f"many AS (SELECT {units} FROM cell GROUP BY {units} HAVING {held} > {limit})",
            (
                f"kept AS (SELECT cell.* FROM {absent}\n  UNION ALL\n"
                f"  SELECT {columns} FROM (SELECT cell.*, dense_rank() OVER (PARTITION BY {units}\n"
                f"    ORDER BY {order}) AS place FROM {present}) AS placed WHERE place <= {limit})"
            ),
        ]


def _named(text: str, name: str) -> str:
    return text if text == name else f"{text} AS {name}"


def _having(listed: Mapping[str, ColumnRef]) -> str:
    """Drops the groups of rows outside the domains of listed keys."""
    told = [f"count({name}) > 0" for name in listed]
    return f"\nHAVING {' AND '.join(told)}" if told else ""


def _row_moment(terms: MomentTerms, moment: Moment) -> str:
    """What one row that is a unit adds to a moment, as an integer."""
    assert not isinstance(moment, (UnitCount, UnitTotal)), "with one row per unit, units and their sums are rows"
    value = "1" if isinstance(moment, RowCount) else f"coalesce({terms.row_integer(moment)}, 0)"
    condition = terms.condition(moment)
    return value if condition == "TRUE" else f"CASE WHEN {condition} THEN {value} ELSE 0 END"


def _cell_moment(terms: MomentTerms, moment: Moment) -> str:
    match moment:
        case RowCount():
            return f"count(*){terms.filter(moment)}"
        case UnitCount(per_part=True):
            return "0"
        case UnitTotal(_, least, most):
            return f"greatest(least({_total(terms, moment)}, {most}), {least})"
        case UnitCount(where):
            return "1" if where == TRUE else terms.dialect.one_if(f"count(*){terms.filter(moment)} > 0")
        case ScaledSum() | HalfSum() | QuarterSum() | SquareSum() | ProductSum():  # 2^33 rows fit
            return f"coalesce({terms.dialect.exact_sum(terms.row_integer(moment))}{terms.filter(moment)}, 0)"
        case _ as never:
            assert_never(never)


def _total(terms: MomentTerms, moment: UnitTotal) -> str:
    """The sum of a cell's rows as it is."""
    return f"coalesce({terms.dialect.exact_sum(terms.row_integer(moment.scaled))}{terms.filter(moment)}, 0)"


def _is_clipped(terms: MomentTerms, moment: UnitTotal) -> str:
    total = _total(terms, moment)
    return f"{total} > {moment.most} OR {total} < {moment.least}"
