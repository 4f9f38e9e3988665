"""Mistakes in places that the first list did not reach, with what notices them now."""

from __future__ import annotations

from tests.mutants.mistake import Seeded

_KEY_RULES = "tests/unit/plan/test_key_rules.py"
_TOTALS = "tests/unit/plan/test_unit_totals.py"
_EDGES = "tests/fuzz/test_edges.py"

OVERLOOKED = (
    # --- what a threshold is given -------------------------------------------------------------------------------
    Seeded("thresholds", "a unit is taken to be in one unlisted group", "plan/release_plan.py",
           "keys_per_unit=analysed.bounds.keys,",
           "keys_per_unit=1,",
           _KEY_RULES),
    Seeded("thresholds", "neighbours are taken to differ in one unit", "plan/release_plan.py",
           "group_size=context.privacy.group_size,",
           "group_size=1,",
           _KEY_RULES),
    Seeded("thresholds", "a unit is taken to be as long as in one group", "plan/release_plan.py",
           "norm_ratio=allocation.unit_norm / weight,",
           "norm_ratio=allocation.cell_norm / weight,",
           _KEY_RULES),
    Seeded("thresholds", "groups of few units are not left out", "plan/release_plan.py",
           "min_units=context.privacy.min_units,",
           "min_units=0,",
           _KEY_RULES),
    Seeded("thresholds", "the noise of the count is that of the whole vector", "plan/release_plan.py",
           "sigma_n=noise_sd(distribution, scale * weight),",
           "sigma_n=noise_sd(distribution, scale),",
           _KEY_RULES),
    Seeded("thresholds", "thresholds are given more delta than is charged", "plan/release_plan.py",
           "delta_r=of_atto_down(context.atto_for_keys),",
           "delta_r=of_atto_down(2 * context.atto_for_keys),",
           _KEY_RULES),
    Seeded("thresholds", "more groups of a unit stay than its threshold is made for", "analysis/analyse.py",
           "keys=1 if constant else table.keys_per_unit, source=source",
           "keys=1 if constant or table.joins else table.keys_per_unit, source=source",
           _KEY_RULES),
    Seeded("thresholds", "rows put together have the groups of the first", "analysis/rows_together.py",
           "keys_per_unit=whole(1 if",
           "keys_per_unit=max(1 if",
           _KEY_RULES),
    # --- bounds that are met, and from the other side -----------------------------------------------------------
    Seeded("edges", "a total is as large as its upper end", "plan/moments.py",
           "return max(abs(least), abs(most)) / ROW_UNITS",
           "return max(abs(most), 1) / ROW_UNITS",
           _EDGES),
    Seeded("edges", "NULL is no group where values are listed", "plan/selectivity.py",
           "return len(values) + column.nullable",
           "return len(values)",
           _EDGES),
    Seeded("edges", "NULL is no group between bounds", "plan/selectivity.py",
           "return max(0, hi - lo + 1) + column.nullable",
           "return max(0, hi - lo + 1)",
           _EDGES),
    Seeded("edges", "rows that are left out have a total of their own", "plan/unit_totals.py",
           "math.floor(max(ends[1], 0.0) * units)",
           "math.floor(ends[1] * units)",
           _TOTALS),
    Seeded("edges", "a sum is as large as its upper end", "plan/vector.py",
           "    largest = max(abs(lo), abs(hi))\n",
           "    largest = abs(hi)\n",
           _EDGES),
    Seeded("edges", "totals in several groups are all of the longer side", "plan/allocation.py",
           "totals = [w * (m.most - m.least) / ROW_UNITS for",
           "totals = [w * max(m.most, -m.least) / ROW_UNITS for",
           _TOTALS),
)  # fmt: skip
