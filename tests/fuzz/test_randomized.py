"""Random queries over randomized columns keep all promises about units, and a planted mistake is found."""

from __future__ import annotations

import pytest

from proxy.plan.release_plan import ReleasePlan
from tests.fuzz import examine
from tests.fuzz.checks import Raw
from tests.fuzz.examine import Examiner
from tests.fuzz.promises import keep_promises
from tests.fuzz.randomized_queries import make_randomized_query, randomized_world
from tests.oracle.bounded import Exact, Oracle

WORLDS = range(97_000, 97_010)


class Stored(Examiner):
    """What is computed is that of stored rows; it answers the query once it is weighed."""

    def check_meaning(self, plan: ReleasePlan, expected: tuple[Exact, bool] | None = None) -> Raw:
        oracle = Oracle(plan, self.tables, self.world.privacy.time_zone, examine.SALT)
        return super().check_meaning(plan, (oracle.exact(), False))


@pytest.fixture(autouse=True)
def _worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "make_world", randomized_world)


def test_randomized_columns_keep_all_promises() -> None:
    keep_promises(WORLDS, make_randomized_query, of=Stored, part=4)


@pytest.mark.long
def test_more_randomized_columns() -> None:
    keep_promises(range(97_100, 97_400), make_randomized_query, of=Stored, part=4)
