"""Which tests does `make test` leave to `make thorough`, because they take too long for each change?

CI runs both. What is named here takes longest; what it asks is asked by fewer examples, or of smaller parts, in the
ordinary run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

FEW = 60  # of the examples of one test that the ordinary run takes in the files below

# statements and texts by the thousand: some of each are enough to see that something broke
SAMPLED = (
    "tests/e2e/test_bound_units.py",
    "tests/e2e/test_cases_live.py",
    "tests/e2e/test_input_texts.py",
    "tests/e2e/test_time_zones.py",
    "tests/unit/plan/test_key_rules.py",
    "tests/unit/plan/test_statement_speed.py",
    "tests/unit/policy/test_refused_policies.py",
    "tests/unit/session/test_dry_run.py",
    "tests/unit/sql/test_cases.py",
    "tests/unit/workers/test_parcel.py",
)

# searches, servers that are starved, stopped and killed, draws by the thousand, the guide and the demo from end to end
LEFT = (
    "tests/attacks/test_bridge.py",
    "tests/attacks/test_errors.py",
    "tests/attacks/test_filters.py",
    "tests/attacks/test_local.py",
    "tests/attacks/test_made_up.py",
    "tests/attacks/test_same_messages.py",
    "tests/attacks/test_sizes.py",
    "tests/attacks/test_values.py",
    "tests/e2e/test_accuracy.py",
    "tests/e2e/test_admin_hour.py",
    "tests/e2e/test_console_pages.py",
    "tests/e2e/test_dashboard.py",
    "tests/e2e/test_demo.py",
    "tests/e2e/test_first_hour.py",
    "tests/e2e/test_guide.py",
    "tests/e2e/test_promise.py",
    "tests/e2e/test_randomized.py",
    "tests/faults/",
    "tests/front/test_functions_as_postgres.py",
    "tests/front/test_lifecycle.py",
    "tests/front/test_orphans.py",
    "tests/front/test_temporary_texts.py",
    "tests/fuzz/test_bins.py",
    "tests/fuzz/test_chosen.py",
    "tests/fuzz/test_constants.py",
    "tests/fuzz/test_cost.py",
    "tests/fuzz/test_distinct.py",
    "tests/fuzz/test_edges.py",
    "tests/fuzz/test_elected.py",
    "tests/fuzz/test_elsewhere.py",
    "tests/fuzz/test_framed.py",
    "tests/fuzz/test_full.py",
    "tests/fuzz/test_meaning.py",
    "tests/fuzz/test_ranked.py",
    "tests/fuzz/test_refusals.py",
    "tests/fuzz/test_sensitivity.py",
    "tests/fuzz/test_sets.py",
    "tests/fuzz/test_twin_values.py",
    "tests/fuzz/test_waits.py",
    "tests/unit/admin/test_profile.py",
    "tests/unit/admin/test_profile_paid.py",
    "tests/unit/admin/test_profile_price.py",
    "tests/unit/analysis/test_key_values.py",
    "tests/unit/dp/test_accuracy.py",
    "tests/unit/engines/test_two_engines.py",
    "tests/unit/ledger/test_crash.py",
    "tests/unit/ledger/test_stopped.py",
    "tests/unit/plan/test_absurd_profiles.py",
    "tests/unit/plan/test_windows.py",
    "tests/unit/policy/test_diff.py",
    "tests/unit/release/test_estimates.py",
    "tests/unit/release/test_own_noise.py",
    "tests/unit/session/test_charges.py",
    "tests/unit/session/test_retry.py",
    "tests/unit/sql/test_exact_numbers.py",
    "tests/unit/workers/test_pool.py",
    "tests/unit/workers/test_worker.py",
    "tests/wire/test_random_strings.py",
)


def mark_thorough(items: Iterable[pytest.Item]) -> None:
    """Give the mark `thorough` to what `make test` leaves out."""
    items = list(items)
    total, seen = Counter(map(_test_of, items)), Counter[str]()
    for item in items:
        test = _test_of(item)
        step = -(-total[test] // FEW)
        is_left = item.nodeid.startswith(LEFT) or (item.nodeid.startswith(SAMPLED) and seen[test] % step)
        seen[test] += 1
        if is_left:
            item.add_marker("thorough")


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
