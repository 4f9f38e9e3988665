"""Rules of the planner with one mistake each, as a tired programmer might make it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from proxy.analysis import patterns, units
from proxy.analysis.units import Owned
from proxy.plan.sql import moment_sql as terms
from proxy.plan.sql import row_source, statement, total_doubles
from proxy.plan.vector import allocation, moments, vector
from proxy.plan.vector.allocation import allocate
from proxy.plan.vector.moments import (
    HalfSum,
    Moment,
    ProductSum,
    QuarterSum,
    RowSum,
    ScaledSum,
    SquareSum,
    UnitCount,
    UnitTotal,
)
from proxy.plan.vector.recipes import Measured
from proxy.policy.model import Bounded
from proxy.sql.algebra.nodes import TRUE, Call, ColumnRef
from proxy.sql.render import renderer as render
from proxy.sqltypes import SqlType

Plant = Callable[[pytest.MonkeyPatch], None]
_Writer = statement._Writer
Terms = terms.MomentTerms


def _always(value: object) -> Callable[..., object]:
    return lambda *_: value


def _text(patch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    """Change the finished SQL."""
    original = _Writer.write
    patch.setattr(_Writer, "write", lambda self: change(original(self)))


def rows_of_a_cell_are_not_limited(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Terms, "row_factor", _always("1e0"))


def heavy_units_are_not_scaled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Terms, "heavy_limit", _always(10**30))


def bound_is_half_again_too_large(patch: pytest.MonkeyPatch) -> None:
    original = Terms.heavy_limit
    patch.setattr(Terms, "heavy_limit", lambda self: math.floor(original(self) * 2.25))


def units_in_several_cells_are_taken_for_light(patch: pytest.MonkeyPatch) -> None:
    original = allocation.is_within_by_cells
    patch.setattr(statement, "is_within_by_cells", lambda m, weighed, bounds, _, d: original(m, weighed, bounds, 1, d))


def totals_of_units_are_not_clipped(patch: pytest.MonkeyPatch) -> None:
    original = statement._cell_moment

    def unclipped(of: Terms, moment: Moment) -> str:
        far = 10**18
        return original(of, replace(moment, least=-far, most=far) if isinstance(moment, UnitTotal) else moment)

    patch.setattr(statement, "_cell_moment", unclipped)


def measures_are_centred_without_a_clamp(patch: pytest.MonkeyPatch) -> None:
    def unclamped(value: str, scaled: ScaledSum, missing: int) -> str:
        z = f"(({value} - {scaled.middle!r}) / {scaled.half!r} * 1073741824)"
        small = f"isfinite({value}) AND abs({z}) < 1e15"
        return f"(CASE WHEN {small} THEN trunc({z})::BIGINT ELSE {missing} END)"

    patch.setattr(total_doubles, "scaled_integer", unclamped)


def null_units_stay(patch: pytest.MonkeyPatch) -> None:
    original = units.own

    def own(*arguments: Any) -> Owned:
        found = original(*arguments)
        columns = getattr(found.unit, "columns", ())
        kept = tuple(w for w in found.block.where if not _is_presence(w, columns))
        return replace(found, block=replace(found.block, where=kept))

    patch.setattr("proxy.analysis.analyse.own", own)


def _is_presence(condition: object, columns: tuple[ColumnRef, ...]) -> bool:
    match condition:
        case Call("not", (Call("is null", (argument,)),)):
            return argument in columns
        case _:
            return False


def doubles_are_summed_and_truncated_later(patch: pytest.MonkeyPatch) -> None:
    pattern = re.compile(r"sum\(trunc\((m\d+(?:_\d+)?::DOUBLE[^()]*(?:\(f, 1e0\))?)\)::BIGINT\)")
    _text(patch, lambda sql: pattern.sub(r"trunc(sum(\1 / 3) * 3)::BIGINT", sql))


def keys_above_the_limit_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_Writer, "_cut_keys", lambda self: ["kept AS (SELECT * FROM cell)"] if self._private() else [])


def keys_are_cut_by_their_rows_in_all_units(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: re.sub(r"OVER \(PARTITION BY [u\d, ]+\n", "OVER (\n", sql))


def weights_belong_to_other_moments(patch: pytest.MonkeyPatch) -> None:
    original = Terms.weighted

    def shifted(self: Terms, index: int, moment: Moment, scale: float) -> str:
        weights = self._s.allocation.weights
        factor = weights[(index + 1) % len(weights)] / weights[index]
        return original(self, index, moment, scale * factor)

    patch.setattr(Terms, "weighted", shifted)


def unit_counts_are_scaled_with_their_rows(patch: pytest.MonkeyPatch) -> None:
    original = Terms.weighted

    def scaled(self: Terms, index: int, moment: Moment, scale: float) -> str:
        return original(self, index, moment, scale) + (" * r" if isinstance(moment, UnitCount) else "")

    patch.setattr(Terms, "weighted", scaled)


def row_sums_are_not_scaled_with_their_rows(patch: pytest.MonkeyPatch) -> None:
    original = Terms.weighted

    def unscaled(self: Terms, index: int, moment: Moment, scale: float) -> str:
        return original(self, index, moment, scale).removesuffix(" * r")

    patch.setattr(Terms, "weighted", unscaled)


def conditions_on_one_column_count_as_disjoint(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(patterns._Told, "apart", lambda told, left, right: told._parts[left] != told._parts[right])


def keys_outside_their_domain_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_source, "domain_filters", _always(()))


def tests_see_values_outside_the_domain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(render.Renderer, "_inside", lambda _self, raw, *_domain: f"{raw} IS NOT NULL")


def comparisons_see_values_outside_the_domain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(render, "_is_at_most", _always(True))


def private_parts_count_once_for_each_public_key(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: sql.replace("part AS (SELECT DISTINCT ", "part AS (SELECT "))


def private_parts_weigh_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Terms, "part_norm", _always("0::BIGINT"))


def spellings_are_merged_by_the_columns_collation(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: sql.replace(' COLLATE "C"', ""))


def null_stands_for_zero_in_a_measure(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Terms, "_missing", _always(0))


def missing_measures_are_taken_for_null_tests(patch: pytest.MonkeyPatch) -> None:
    def presence(of: tuple[Any, ...], absent: bool) -> tuple[Call, ...]:
        nulls = tuple(Call("is null", (o,), SqlType.BOOL) for o in of)
        if absent:
            return nulls if len(nulls) == 1 else ()
        return tuple(Call("not", (n,), SqlType.BOOL) for n in nulls)

    patch.setattr("proxy.plan.vector.moments._presence", presence)


def calls_may_raise(patch: pytest.MonkeyPatch) -> None:
    for engine in ("duckdb.dialect.DuckDB", "postgres.dialect.Postgres"):
        patch.setattr(f"proxy.sql.render.{engine}.may_raise", _always(False))


def unit_counts_of_filters_share_one_weight(patch: pytest.MonkeyPatch) -> None:
    def lighter(vector: Any, bounds: Any, distribution: Any, selecting: Any, shares: Any) -> Any:
        found = allocate(vector, bounds, distribution, selecting, shares)
        counts = [w * w for w, m in zip(found.weights, vector.moments, strict=True) if isinstance(m, UnitCount)]
        squares = found.cell_norm**2 - sum(counts) + max(counts, default=0.0)
        cell = math.sqrt(squares)
        return replace(found, cell_norm=cell, unit_norm=found.unit_norm * cell / found.cell_norm)

    patch.setattr("proxy.plan.release_plan.allocate", lighter)


def the_pair_of_half_sums_is_one_sided(patch: pytest.MonkeyPatch) -> None:
    original = Terms.row_integer

    def one_sided(self: Terms, moment: RowSum) -> str:
        text = original(self, moment)
        return text.replace("(1e0 - ", "(1e0 + ") if isinstance(moment, HalfSum) else text

    patch.setattr(Terms, "row_integer", one_sided)


def bounds_are_read_the_wrong_way_round(patch: pytest.MonkeyPatch) -> None:
    original = render.Renderer._inside

    def swapped(self: render.Renderer, raw: str, domain: Any, kind: Any = None) -> str:
        turned = Bounded(domain.lo, domain.lo) if isinstance(domain, Bounded) else domain
        return original(self, raw, turned, kind)

    patch.setattr(render.Renderer, "_inside", swapped)


def joins_meet_anybody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.analysis.meeting._is_met", _always(True))


def questions_are_taken_for_public(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.analysis.meeting._is_public_question", _always(True))


def measures_of_squares_and_products_are_not_clamped(patch: pytest.MonkeyPatch) -> None:
    original, pattern = Terms._z, re.compile(r"greatest\(least\((.*), [-+.\de]+\), [-+.\de]+\)")
    patch.setattr(Terms, "_z", lambda self, scaled: pattern.sub(r"least(\1, 1e6)", original(self, scaled)))


def squares_weigh_nothing(patch: pytest.MonkeyPatch) -> None:
    _weighs_nothing(patch, SquareSum)


def products_weigh_nothing(patch: pytest.MonkeyPatch) -> None:
    _weighs_nothing(patch, ProductSum)


def _weighs_nothing(patch: pytest.MonkeyPatch, kind: type[Moment]) -> None:
    original = moments.is_further_part
    for module in (allocation, moments):
        patch.setattr(module, "is_further_part", lambda m: isinstance(m, kind) or original(m))


def the_middle_quarter_is_not_halved(patch: pytest.MonkeyPatch) -> None:
    original = Terms.row_integer
    patch.setattr(Terms, "row_integer", lambda self, moment: original(self, moment).replace(" / 2e0)", " / 1e0)")
                  if isinstance(moment, QuarterSum) else original(self, moment))  # fmt: skip


def a_product_is_a_square(patch: pytest.MonkeyPatch) -> None:
    original = Terms.row_integer
    patch.setattr(Terms, "row_integer", lambda self, moment: original(
        self, ProductSum(moment.left, moment.left) if isinstance(moment, ProductSum) else moment))  # fmt: skip


def one_measure_of_two_is_enough(patch: pytest.MonkeyPatch) -> None:
    original = Terms._rows

    def rows(self: Terms, where: Any, needed: tuple[Any, ...], *, absent: bool = False) -> str:
        return original(self, where, needed[:1], absent=absent)

    patch.setattr(Terms, "_rows", rows)


def rows_without_one_measure_are_those_without_both(patch: pytest.MonkeyPatch) -> None:
    original = Terms._rows

    def rows(self: Terms, where: Any, needed: tuple[Any, ...], *, absent: bool = False) -> str:
        if not absent:
            return original(self, where, needed)
        missing = [original(self, TRUE, (n,), absent=True) for n in needed if n != TRUE]
        return " AND ".join([original(self, where, ()), *missing])

    patch.setattr(Terms, "_rows", rows)


def unknown_conditions_count_as_failing(patch: pytest.MonkeyPatch) -> None:
    def call(function: str, args: Any, kind: SqlType) -> Call:
        return Call("is distinct from", (*args, TRUE), kind) if function == "not" else Call(function, args, kind)

    patch.setattr(vector, "Call", call)


def squares_are_finished_with_all_rows(patch: pytest.MonkeyPatch) -> None:
    original = vector._Vector._measured

    def measured(self: Any, *arguments: Any, **options: Any) -> Measured:
        found = original(self, *arguments, **options)
        return replace(found, squares=found.squares.plus(found.squares, -0.5)) if found.squares.terms else found

    patch.setattr(vector._Vector, "_measured", measured)


# Each has its case in tests/fuzz/planted; tests/fuzz/keep.py makes one.
PLANTS: tuple[Plant, ...] = (
    rows_of_a_cell_are_not_limited,
    heavy_units_are_not_scaled,
    bound_is_half_again_too_large,
    units_in_several_cells_are_taken_for_light,
    totals_of_units_are_not_clipped,
    measures_are_centred_without_a_clamp,
    null_units_stay,
    doubles_are_summed_and_truncated_later,
    keys_above_the_limit_stay,
    keys_are_cut_by_their_rows_in_all_units,
    weights_belong_to_other_moments,
    unit_counts_are_scaled_with_their_rows,
    row_sums_are_not_scaled_with_their_rows,
    conditions_on_one_column_count_as_disjoint,
    keys_outside_their_domain_stay,
    tests_see_values_outside_the_domain,
    comparisons_see_values_outside_the_domain,
    private_parts_count_once_for_each_public_key,
    private_parts_weigh_nothing,
    spellings_are_merged_by_the_columns_collation,
    null_stands_for_zero_in_a_measure,
    missing_measures_are_taken_for_null_tests,
    calls_may_raise,
    unit_counts_of_filters_share_one_weight,
    the_pair_of_half_sums_is_one_sided,
    bounds_are_read_the_wrong_way_round,
    joins_meet_anybody,
    questions_are_taken_for_public,
    measures_of_squares_and_products_are_not_clamped,
    squares_weigh_nothing,
    products_weigh_nothing,
    the_middle_quarter_is_not_halved,
    a_product_is_a_square,
    one_measure_of_two_is_enough,
    rows_without_one_measure_are_those_without_both,
    unknown_conditions_count_as_failing,
    squares_are_finished_with_all_rows,
)
