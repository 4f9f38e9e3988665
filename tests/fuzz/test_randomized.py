"""Random queries over randomized columns keep all promises about units, in either engine."""

from __future__ import annotations

import pytest

from proxy.plan.release_plan import ReleasePlan
from tests.fuzz import examine
from tests.fuzz.checks import Raw
from tests.fuzz.elsewhere import PostgresExaminer
from tests.fuzz.examine import Examiner, report, run_worlds
from tests.fuzz.planning import SALT
from tests.fuzz.promises import QUERIES, keep_promises
from tests.fuzz.randomized_queries import make_randomized_query, randomized_world
from tests.oracle.bounded import Exact, Oracle

WORLDS = range(97_000, 97_010)


class Stored(Examiner):
    """What is computed is that of stored rows; it answers the query once it is weighed."""

    def check_meaning(self, plan: ReleasePlan, expected: tuple[Exact, bool] | None = None) -> Raw:
        oracle = Oracle(plan, self.tables, self.world.privacy.time_zone, SALT)
        return super().check_meaning(plan, (oracle.exact(), False))


@pytest.fixture(autouse=True)
def _worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "make_world", randomized_world)


def test_randomized_columns_keep_all_promises() -> None:
    keep_promises(WORLDS, make_randomized_query, of=Stored, part=4)


def test_they_keep_them_in_postgresql() -> None:
    tally = run_worlds((98_000, 98_001), "sensitivity", QUERIES, make=make_randomized_query, of=PostgresExaminer)
    assert not tally.failures, report(tally)
    assert tally.planned > QUERIES / 2, "the engine computes too few of these queries"


@pytest.mark.long
def test_more_randomized_columns() -> None:
    keep_promises(range(97_100, 97_400), make_randomized_query, of=Stored, part=4)
