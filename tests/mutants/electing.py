"""Seeded mistakes about the most frequent value."""

from __future__ import annotations

from tests.mutants.mistake import Seeded

_DP = "tests/unit/dp/test_modes.py"
_PLAN = "tests/unit/plan/test_modes.py"
_RELEASE = "tests/unit/release/test_modes.py"

ELECTING = (
    Seeded("modes", "a replaced unit is charged as one that goes", "plan/parts/modes.py",
           "is_monotone=promise.neighbors is Neighbors.ADD_REMOVE",
           "is_monotone=True",
           _PLAN),
    Seeded("modes", "scores that move both ways are drawn as if they moved one", "dp/modes.py",
           "apart = sensitivity if self.is_monotone else 2 * sensitivity",
           "apart = sensitivity",
           _DP),
    Seeded("modes", "the group of units does not make scores move more", "plan/parts/modes.py",
           "move = bounds.rows_per_group * promise.group_size",
           "move = bounds.rows_per_group",
           _PLAN),
    Seeded("modes", "modes of many groups are charged as one", "dp/modes.py",
           "return self.amount / self.groups * _DOWN",
           "return self.amount * _DOWN",
           _DP),
    Seeded("modes", "values outside of their domain are counted", "plan/parts/modes.py",
           "    tests += terms.source.in_domains((PublicKey(asked.of, ()),))\n",
           "",
           _PLAN),
    Seeded("modes", "a value that occurs becomes a candidate", "release/modes.py",
           "if place is not None:",
           "if (place := place or 0) is not None:",
           _RELEASE),
    Seeded("modes", "a group of few rows has a mode", "release/modes.py",
           "is_there = number.value >= max(least, 2 * number.sd)",
           "is_there = number.value >= 1.0",
           _RELEASE),
    Seeded("modes", "the most frequent of rows without a value is given", "release/modes.py",
           "if size > most and not isinstance(value, NullKey):",
           "if size > most:",
           _RELEASE),
    Seeded("modes", "a value of few rows is the most frequent one of a group", "release/modes.py",
           "value if size >= max(1.0, 2 * number.sd) else NULL_KEY",
           "value",
           _RELEASE),
    Seeded("modes", "coins that favour one answer have a most frequent one", "sql/query/measured.py",
           "column.randomized.p + column.randomized.q != 1",
           "column.randomized.p + column.randomized.q > 2",
           "tests/unit/sql/test_measured.py"),
    Seeded("modes", "the library is told that all scores move one way", "dp/samplers.py",
           "monotonic=is_monotone",
           "monotonic=True",
           _DP),
)  # fmt: skip
