"""Mistakes about distinct counts, one at a time, each with a query that shows it.

A query may be "", for random queries with distinct counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from proxy.plan.parts import distinct, part_rows
from proxy.plan.parts.distinct import DistinctLimits, DistinctPart
from proxy.plan.parts.part_requests import DistinctValues
from proxy.sql.algebra.nodes import Scalar
from proxy.sql.render.renderer import Reading, Renderer

Plant = Callable[[pytest.MonkeyPatch], None]
_Writer = distinct._Writer


def _text(patch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    original = _Writer.write
    patch.setattr(_Writer, "write", lambda self, each: change(original(self, each)))


def a_unit_enters_any_number_of_groups(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: re.sub(r" WHERE g <= \d+", "", sql))


def a_unit_brings_any_number_of_values(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: re.sub(r" WHERE [ct] <= \d+", "", sql))


def a_units_values_in_all_groups_are_not_limited(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: re.sub(r" WHERE t <= \d+", "", sql))


def a_bound_is_looked_at_one_value_late(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: re.sub(r"(max|sum)\(n\) > (\d+)", r"\1(n) > \2 + 1", sql))


def groups_are_chosen_among_those_of_everybody(patch: pytest.MonkeyPatch) -> None:
    original = _Writer._entered
    patch.setattr(_Writer, "_entered", lambda self: re.sub("PARTITION BY .*? ORDER", "ORDER", original(self)))


def values_are_chosen_by_how_many_have_them(patch: pytest.MonkeyPatch) -> None:
    others = "SELECT *, (SELECT count(*) FROM held AS o WHERE o.x = held.x)::VARCHAR || "
    _text(patch, lambda sql: re.sub(r"SELECT \*, (md5\([^\n]* AS h )", rf"{others}\1", sql))


def values_are_chosen_without_the_salt(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: re.sub(r"md5\('\w*' \|\| ", "md5(", sql))


def values_are_chosen_by_their_own_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(distinct, "salted", lambda _statement, _terms, values: values[-1][0])


def rows_are_counted_and_not_values(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: sql.replace("count(DISTINCT x)", "count(x)"))


def the_condition_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    original = part_rows.part_rows
    patch.setattr(distinct, "part_rows", lambda terms, _, value: original(terms, "TRUE", value))


def keys_that_were_not_kept_are_read(patch: pytest.MonkeyPatch) -> None:
    original = part_rows._of_kept_keys
    patch.setattr(part_rows, "_of_kept_keys", lambda terms: re.sub(" ON .*", " ON TRUE", original(terms)))


def a_key_that_is_null_is_lost(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: sql.replace("IS NOT DISTINCT FROM p", "= p"))


def values_outside_of_their_domain_are_counted(patch: pytest.MonkeyPatch) -> None:
    original = Renderer._read

    def told_apart(self: Renderer, scalar: Scalar) -> str:
        patch.setattr(Renderer, "_read", lambda s, r, _: original(s, r, Reading.KEY))
        try:
            return right(self, scalar)
        finally:
            patch.setattr(Renderer, "_read", original)

    right = Renderer.told_apart
    patch.setattr(Renderer, "told_apart", told_apart)


def spellings_are_values(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Renderer, "told_apart", lambda self, scalar: f"({self._spell(scalar, Reading.TEST)})::VARCHAR")


def null_is_a_value(patch: pytest.MonkeyPatch) -> None:
    change = "coalesce(x::VARCHAR, 'none') AS x FROM ("
    _text(patch, lambda sql: sql.replace(" WHERE x IS NOT NULL)", ")").replace(", x FROM (", f", {change}", 1))


def the_bound_of_groups_is_left_out_of_the_noise(patch: pytest.MonkeyPatch) -> None:
    original = DistinctLimits.norm
    patch.setattr(DistinctLimits, "norm", lambda self, law: original(replace(self, groups=1), law))


def a_part_is_as_precise_as_if_it_were_alone(patch: pytest.MonkeyPatch) -> None:
    original = distinct.plan_distinct

    def plan(asked: DistinctValues, statement: Any, pico: int, factor: int) -> DistinctPart:
        return original(asked, statement, 4 * pico, factor)

    patch.setattr("proxy.plan.parts.parts.plan_distinct", plan)


PLANTS: tuple[tuple[Plant, str, str], ...] = (
    (a_unit_enters_any_number_of_groups, "sensitivity", "select code, count(distinct id) from e group by 1"),
    (a_unit_brings_any_number_of_values, "sensitivity", "select count(distinct id) from e"),
    (a_units_values_in_all_groups_are_not_limited, "sensitivity", "select code, count(distinct id) from e group by 1"),
    (a_bound_is_looked_at_one_value_late, "sensitivity", "select count(distinct code) from e"),
    (groups_are_chosen_among_those_of_everybody, "both", "select code, count(distinct id) from e group by 1"),
    (values_are_chosen_by_how_many_have_them, "sensitivity", "select count(distinct code) from e"),
    (values_are_chosen_without_the_salt, "meaning", "select count(distinct id), count(distinct code) from e"),
    (values_are_chosen_by_their_own_order, "meaning", "select count(distinct id), count(distinct code) from e"),
    (rows_are_counted_and_not_values, "meaning", "select count(distinct code) from e"),
    (the_condition_is_forgotten, "meaning", "select count(distinct code) filter (where code > 2) from e"),
    (keys_that_were_not_kept_are_read, "meaning", "select id, count(distinct code) from e group by 1"),
    (a_key_that_is_null_is_lost, "meaning", ""),
    (values_outside_of_their_domain_are_counted, "meaning", ""),
    (spellings_are_values, "meaning", "select count(distinct f * 0) from e"),
    (null_is_a_value, "meaning", ""),
    (the_bound_of_groups_is_left_out_of_the_noise, "sensitivity", "select code, count(distinct id) from e group by 1"),
    (a_part_is_as_precise_as_if_it_were_alone, "sensitivity", "select count(distinct code) from e"),
)  # fmt: skip
