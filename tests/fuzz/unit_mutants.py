"""Mistakes about rows that a sub-select makes of each unit's own, one at a time, each with a query that shows it.

{u} stands for the columns of the unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from proxy.analysis import inner_rows
from proxy.analysis.owned import Owned
from proxy.plan.sql import statement
from proxy.policy.model import Table

Plant = Callable[[pytest.MonkeyPatch], None]
_Statement = statement._Writer


def _text(patch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    original = _Statement.write
    patch.setattr(_Statement, "write", lambda self: change(original(self)))


_COUNT = re.compile(r"least\((count\(\*\)[^,]*), (\d+)::BIGINT\)")


def values_of_units_are_not_clamped(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: _COUNT.sub(r"\1", sql))


def values_of_units_are_of_everybody(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: _COUNT.sub(r"least((sum(\1) OVER ())::BIGINT, \2::BIGINT)", sql))


def rows_of_units_with_keys_are_one(patch: pytest.MonkeyPatch) -> None:
    def bounds(table: Table, owned: Owned, most: int) -> Table:
        return replace(table, unit_unique=True)

    patch.setattr(inner_rows, "_with_bounds", bounds)


def distinct_values_of_units_are_counted_twice(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: sql.replace("count(DISTINCT ", "count("))


def windows_are_over_everybody(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: re.sub(r"PARTITION BY .*? ORDER BY", "ORDER BY", sql))


def ties_of_windows_are_left_to_the_engine(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.plan.sql.row_source.is_told_by_place", lambda _: False)


def places_are_not_clamped(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: re.sub(r"least\((row_number\(\) OVER \(.*?\)), \d+::BIGINT\)", r"\1", sql))


def a_branch_is_left_out(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: re.sub(r"\n  UNION ALL\n  SELECT [^\n]*\n  FROM [^\n]*\n  WHERE ", " AND ", sql))


def branches_of_a_union_are_taken_for_one_another(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: sql.replace('1::BIGINT AS "branch"', '0::BIGINT AS "branch"'))


def rows_around_meet_anybody(patch: pytest.MonkeyPatch) -> None:
    _text(patch, lambda sql: re.sub(r"(LEFT JOIN \(\n(?:.*\n)*?.*?\) AS s\d+ ON )[^\n]*", r"\1TRUE", sql))


_CORRELATED = "select count(*) from p x where (select count(*) from e y where {same}) < 2"
_TWICE = "select count(*) as n, sum(q.x) as x from (select {u}, 1 as x from e union all select {u}, 2 from e) q"
_FIRST = "select count(*) from (select {u}, code, row_number() over (partition by {u}) as n from e) q where "

PLANTS: tuple[tuple[Plant, str, str], ...] = (
    (values_of_units_are_not_clamped, "meaning",
     "select count(*) from (select {u}, count(*) as n from e group by {u}) q where q.n >= 1"),
    (values_of_units_are_of_everybody, "sensitivity",
     "select sum(q.n) from (select {u}, count(*) as n from e group by {u}) q"),
    (rows_of_units_with_keys_are_one, "sensitivity",
     "select count(*) from (select {u}, id, count(*) as n from e group by {u}, id) q"),
    (windows_are_over_everybody, "sensitivity", _FIRST + "q.n = 1"),
    (ties_of_windows_are_left_to_the_engine, "meaning", _FIRST + "q.n = 1 and q.code = 2"),
    (places_are_not_clamped, "meaning", _FIRST + "q.n > 1"),
    (a_branch_is_left_out, "meaning", _TWICE),
    (branches_of_a_union_are_taken_for_one_another, "meaning", _TWICE),
    (rows_around_meet_anybody, "sensitivity", _CORRELATED),
    (distinct_values_of_units_are_counted_twice, "meaning",
     "select sum(q.n) from (select {u}, count(distinct code) as n from e group by {u}) q"),
)  # fmt: skip
