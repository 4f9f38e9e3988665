"""Mistakes about grouping sets, one at a time, each with a query that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from proxy.analysis.analyse import analyse
from proxy.plan.sets import shared_bounds as together
from proxy.plan.sets.sets import SetsPlan

Plant = Callable[[pytest.MonkeyPatch], None]


def each_set_is_released_at_the_whole_charge(patch: pytest.MonkeyPatch) -> None:
    def shares(pico: int, parts: int, *, has_vector: bool) -> tuple[int, tuple[int, ...]]:
        return 0, (pico,) * parts

    patch.setattr("proxy.plan.sets.sets.shares", shares)


def each_set_hides_its_keys_with_the_whole_delta(patch: pytest.MonkeyPatch) -> None:
    def unshared(of: Any, **changes: Any) -> Any:
        return replace(of, **{n: v for n, v in changes.items() if n != "atto_for_keys"})

    patch.setattr("proxy.plan.sets.sets.replace", unshared)


def rows_outside_the_keys_of_other_sets_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.plan.sets.sets.analyse", lambda *of: replace(analyse(*of), beside=()))


def sets_that_bound_a_unit_in_their_own_ways_are_brought_together(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.plan.sets.sets._count_alike", lambda _: True)


def each_set_has_a_factor_of_its_own(patch: pytest.MonkeyPatch) -> None:
    original = together._Writer._above

    def own(self: Any) -> str:
        return original(self).replace("min(f)", "max(f)")

    patch.setattr(together._Writer, "_above", own)


def the_finest_groups_are_not_bounded(patch: pytest.MonkeyPatch) -> None:
    original = together._Writer._fine
    patch.setattr(together._Writer, "_fine", lambda self: original(self).replace(" * r)", ")"))


def units_are_added_up_over_finest_groups(patch: pytest.MonkeyPatch) -> None:
    original = together._Writer._set
    patch.setattr(together._Writer, "_set", lambda self, of: original(self, of).replace("max(", "sum("))


def numbers_of_units_are_taken_for_sums(patch: pytest.MonkeyPatch) -> None:
    def all_of_them(self: SetsPlan, family: tuple[int, ...]) -> tuple[Any, ...]:
        return self.sets[family[0]].plan.vector.moments

    patch.setattr(SetsPlan, "additive", all_of_them)


PLANTS: tuple[tuple[Plant, str, str], ...] = (
    (each_set_is_released_at_the_whole_charge, "sensitivity", ""),
    (each_set_hides_its_keys_with_the_whole_delta, "sensitivity", ""),
    (rows_outside_the_keys_of_other_sets_count, "meaning", ""),
    (sets_that_bound_a_unit_in_their_own_ways_are_brought_together, "meaning", ""),
    (each_set_has_a_factor_of_its_own, "sensitivity", ""),
    (the_finest_groups_are_not_bounded, "meaning", ""),
    (units_are_added_up_over_finest_groups, "meaning", ""),
    (numbers_of_units_are_taken_for_sums, "meaning", ""),
)
