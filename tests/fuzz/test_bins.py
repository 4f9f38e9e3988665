"""Random buckets and partitions as dashboards spell them: bounded, right to the last integer, no row lost to a NULL."""

from __future__ import annotations

import pytest

from proxy.analysis import cases, cuts, keys
from proxy.analysis.domains import Domains
from proxy.sql.functions.domains import answers as answer_rules
from proxy.sql.functions.table import FUNCTIONS
from tests.fuzz.bin_queries import make_bin_query
from tests.fuzz.promises import QUERIES, Plant, find_mistake, keep_promises

WORLDS = range(130_000, 130_005)
MOST_WORLDS = 30


def test_buckets_keep_all_promises() -> None:
    keep_promises(WORLDS, make_bin_query)


@pytest.mark.long
def test_more_buckets() -> None:
    keep_promises(range(131_000, 131_300), make_bin_query)


def no_key_is_null(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(keys, "may_be_null", lambda *_: False)


def every_quotient_has_a_value(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Domains, "_has_answer", lambda *_: True)


def a_part_is_only_looked_at_between_constants(patch: pytest.MonkeyPatch) -> None:
    original = cuts.values_between

    def fewer(*args: object, **named: object) -> object:
        return original(*args, **named)[-1:]  # type: ignore[arg-type]

    patch.setattr(cases, "values_between", fewer)


PLANTS: tuple[Plant, ...] = (no_key_is_null, every_quotient_has_a_value, a_part_is_only_looked_at_between_constants)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda p: p.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    worlds = range(WORLDS.start, WORLDS.start + MOST_WORLDS)
    find_mistake(worlds, "meaning", make_bin_query, QUERIES, may_raise=True)


def test_a_function_with_an_answer_everywhere_has_no_rule_of_its_own() -> None:
    """Those of which a row says where they have one may have none elsewhere, or would raise."""
    for row in FUNCTIONS.values():
        if row.answers not in (answer_rules.nowhere, answer_rules.everywhere):
            assert row.nulls.name.endswith("NO_ANSWER") or row.beyond.__name__ == "always", row.name
