"""Mistakes about grouping sets, one at a time, each with a query that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from proxy.analysis.analyse import analyse
from proxy.plan.sets import SetsPlan

Plant = Callable[[pytest.MonkeyPatch], None]


def each_set_is_released_at_the_whole_charge(patch: pytest.MonkeyPatch) -> None:
    def shares(pico: int, parts: int, *, has_vector: bool) -> tuple[int, tuple[int, ...]]:
        return 0, (pico,) * parts

    patch.setattr("proxy.plan.sets.shares", shares)


def each_set_hides_its_keys_with_the_whole_delta(patch: pytest.MonkeyPatch) -> None:
    def unshared(of: Any, **changes: Any) -> Any:
        return replace(of, **{n: v for n, v in changes.items() if n != "atto_for_keys"})

    patch.setattr("proxy.plan.sets.replace", unshared)


def rows_outside_the_keys_of_other_sets_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.plan.sets.analyse", lambda *of: replace(analyse(*of), beside=()))


def sets_that_bound_a_unit_in_their_own_ways_are_brought_together(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SetsPlan, "_is_alike", lambda *_: True)


PLANTS: tuple[tuple[Plant, str, str], ...] = (
    (each_set_is_released_at_the_whole_charge, "sensitivity", ""),
    (each_set_hides_its_keys_with_the_whole_delta, "sensitivity", ""),
    (rows_outside_the_keys_of_other_sets_count, "meaning", ""),
    (sets_that_bound_a_unit_in_their_own_ways_are_brought_together, "meaning", ""),
)
