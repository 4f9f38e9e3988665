"""Random aggregates of differences of times: bounded and right to the last integer; planted mistakes are found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.analysis import domains
from proxy.sql.functions.domains.ages import compared
from proxy.sql.functions.domains.rules import Arguments
from proxy.sql.functions.domains.spans import between
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.render.duckdb import dialect
from proxy.sql.render.duckdb.functions import SPELLINGS
from tests.fuzz.examine import report
from tests.fuzz.promises import Plant, find_mistake, keep_promises
from tests.fuzz.ranked import check_bounds, check_meaning, run_quantiles
from tests.fuzz.wait_queries import make_wait_quantiles, make_wait_query

WORLDS = range(110_000, 110_004)
MOST_WORLDS = 20
_DIFFERENCE = FUNCTIONS["time - time"]


def test_waits_keep_all_promises() -> None:
    keep_promises(WORLDS, make_wait_query)


def test_quantiles_of_waits_are_the_oracles_within_their_bounds() -> None:
    for check in (check_bounds, check_meaning):
        tally = run_quantiles(WORLDS, check, 4, make=make_wait_quantiles)
        assert not tally.failures, report(tally)
        assert tally.planned > 4, "too few queries can be planned"


@pytest.mark.long
def test_more_waits() -> None:
    keep_promises(range(111_000, 111_300), make_wait_query)


@pytest.mark.long
def test_more_quantiles_of_waits() -> None:
    for check in (check_bounds, check_meaning):
        tally = run_quantiles(range(112_000, 112_100), check, make=make_wait_quantiles)
        assert not tally.failures, report(tally)


def spell(patch: pytest.MonkeyPatch, name: str, template: str) -> None:
    """Let DuckDB spell a function otherwise."""
    patch.setattr(dialect, "SPELLINGS", {**SPELLINGS, name: replace(SPELLINGS[name], text=template)})


def waits_are_counted_backwards(patch: pytest.MonkeyPatch) -> None:
    spell(patch, "time - time", "epoch_us({1}) - epoch_us({0})")


def waits_between_bounds_are_taken_for_short(patch: pytest.MonkeyPatch) -> None:
    def ends_of_starts(arguments: Arguments) -> object:
        return between((arguments[0], arguments[0], *arguments[2:]))

    row = replace(_DIFFERENCE, domain=ends_of_starts)  # type: ignore[arg-type]
    patch.setattr(domains, "FUNCTIONS", {**FUNCTIONS, row.name: row})


def ages_end_where_they_start(patch: pytest.MonkeyPatch) -> None:
    def ends_of_starts(arguments: Arguments) -> object:
        return compared((arguments[0], arguments[0], *arguments[2:]))

    row = replace(FUNCTIONS["age"], domain=ends_of_starts)  # type: ignore[arg-type]
    patch.setattr(domains, "FUNCTIONS", {**FUNCTIONS, row.name: row})


def months_of_ages_have_31_days(patch: pytest.MonkeyPatch) -> None:
    more = "86400000000 * datepart('month', age({0}, {1}))"
    spell(patch, "age", f"({SPELLINGS['age'].text}) + {more}")


def days_are_over_when_they_begin(patch: pytest.MonkeyPatch) -> None:
    spell(patch, "time of day", "0 * epoch_us({0})")


PLANTS: tuple[tuple[Plant, str], ...] = (
    (waits_are_counted_backwards, "meaning"),
    (waits_between_bounds_are_taken_for_short, "meaning"),
    (ages_end_where_they_start, "meaning"),
    (months_of_ages_have_31_days, "meaning"),
    (days_are_over_when_they_begin, "meaning"),
)


@pytest.mark.parametrize(("plant", "how"), PLANTS, ids=[p.__name__ for p, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    find_mistake(range(WORLDS.start, WORLDS.start + MOST_WORLDS), how, make_wait_query, 12, may_raise=True)
