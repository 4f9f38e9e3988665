"""Mistakes about estimates over randomized columns, each with the narrow tests that must notice it."""

from __future__ import annotations

from tests.mutants.mistake import Seeded

_WEIGHTS = "tests/unit/analysis/test_estimated.py"
_MEASURED = "tests/unit/sql/test_measured.py"
_SOURCES = "tests/unit/plan/test_sources.py"
_GROUPS = "tests/unit/release/test_estimates.py::test_groups_of_true_values_are_right_on_average"

ESTIMATING = (
    Seeded("estimates", "a condition of WHERE on a randomized column removes rows as well", "sql/query/measured.py",
           "kept = tuple(c for c in block.where if not _names(c, block))",
           "kept = block.where",
           _MEASURED),
    Seeded("estimates", "a stored value stands twice in a product of weights", "sql/query/measured.py",
           "if stored.count((table, name)) > 1:",
           "if stored.count((table, name)) > 2:",
           _MEASURED),
    Seeded("estimates", "a no that was told is taken for the truth", "analysis/channels.py",
           "here, elsewhere = (1.0 - q) / (p - q), -q / (p - q)",
           "here, elsewhere = (1.0 - q) / (p - q), 0.0",
           _WEIGHTS),
    Seeded("estimates", "the variance of a response leaves out what the truth explains", "analysis/estimated.py",
           "largest = max(largest, second * grown - (own * own if all(in_group) else 0.0))",
           "largest = max(largest, second * grown)",
           _WEIGHTS),
    Seeded("estimates", "the sum of a unit is clipped before it is weighed", "plan/sql/unit_totals.py",
           "if weighted(aggregate, analysed.owned.block) is not None:",
           "if weighted(aggregate, analysed.owned.block) is None and False:",
           _SOURCES),
    Seeded("estimates", "groups of stored values are shown as those of true ones", "release/solved.py",
           "vectors = _apart(vectors, groups, channel.on, channel.off)",
           "vectors = list(vectors)",
           _GROUPS),
)  # fmt: skip
