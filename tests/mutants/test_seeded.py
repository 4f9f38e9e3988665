"""Does every seeded mistake still apply to the sources? `make mutants` has them caught."""

from __future__ import annotations

import ast
from collections import Counter

from tests.mutants.seeded import SEEDED
from tests.mutants.sources import ROOT, patched

LEAST = 230
AREAS = {
    "bounding", "keys", "noise", "accounting", "splitting", "domains", "ledger", "relay",
    "stages", "reuse", "one form", "constants", "sets", "postgres", "repeats", "profiles",
    "showing", "retry", "thresholds", "edges", "promises",
    "accounts", "time grid", "joins", "inferred bounds", "missing values", "unit norm", "windows", "quantiles",
    "grouping sets", "derived releases", "kept answers", "rounding", "intervals", "delta", "spending",
    "screens", "workers", "policy values", "patterns", "modes", "estimates",
}  # fmt: skip


def test_every_mistake_applies_in_one_place_and_is_python() -> None:
    for one in SEEDED:
        text = (ROOT / "proxy" / one.module).read_text()
        ast.parse(patched(one, text), one.name)


def test_there_are_enough_in_every_area_and_each_has_its_tests() -> None:
    assert len(SEEDED) >= LEAST
    assert {one.area for one in SEEDED} == AREAS
    assert not [name for name, times in Counter(one.name for one in SEEDED).items() if times > 1]
    assert all((ROOT / one.caught_by.partition("::")[0]).is_file() for one in SEEDED)
