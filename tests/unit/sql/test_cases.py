"""What the planner understands of each statement of the case files, and what it refuses."""

from __future__ import annotations

from contextlib import suppress

import pytest

from proxy.errors import HushError, Unsupported
from proxy.policy.model import Policy
from proxy.sql.render.postgres.dialect import POSTGRES
from tests.unit.sql.corpus import Case, cases, facts_of_all, plan, policy, setting_of, stages_of

CASES = cases()
READABLE = 6000  # characters of private SQL; cases that need more say so, and are few
MOST_LONG = 18
LONGEST_OF_POSTGRES = 21_000
pytestmark = pytest.mark.no_cover  # a server is asked every case too, and its lines are counted


@pytest.fixture(scope="module")
def served() -> Policy:
    return policy()


def test_there_are_enough_cases_of_both_kinds() -> None:
    assert len(CASES) >= 300
    assert sum(c.is_refused for c in CASES) >= 100
    assert len({(c.sql, repr(c.parameters)) for c in CASES}) == len(CASES)


@pytest.mark.parametrize("case", [c for c in CASES if not c.is_refused], ids=lambda c: c.place)
def test_statement_is_understood(case: Case, served: Policy) -> None:
    plans = plan(case, served)
    assert facts_of_all(plans) == case.facts["releases"], case.sql
    stages = [sql for of in plans for sql in stages_of(of)]
    assert (max(map(len, stages), default=0) > READABLE) is ("long" in case.facts), "the length of the private SQL"


def test_few_cases_need_long_statements() -> None:
    assert sum("long" in c.facts for c in CASES) <= MOST_LONG


def test_most_statements_are_short_for_postgresql_too(served: Policy) -> None:
    """Which checks what every cast and sum may do, in words of its own. Of every eighth case, for the time it takes."""
    setting = setting_of(served, POSTGRES)
    longest = []
    for case in (c for c in CASES[::8] if not c.is_refused):
        with suppress(Unsupported):  # what PostgreSQL cannot compute is no longer than what it can
            longest.append(max((len(q) for of in plan(case, served, setting) for q in stages_of(of)), default=0))
    longest.sort()
    assert len(longest) > 100
    assert longest[len(longest) * 8 // 10] <= READABLE, "four of five"
    assert longest[-1] <= LONGEST_OF_POSTGRES


@pytest.mark.parametrize("case", [c for c in CASES if c.is_refused], ids=lambda c: c.place)
def test_statement_is_refused(case: Case, served: Policy) -> None:
    with pytest.raises(HushError) as refused:
        plan(case, served)
    error = refused.value
    assert error.sqlstate == case.facts["refused"], case.sql
    assert str(case.facts["says"]) in error.message
    assert error.hint, "a refusal says what would be accepted"
    assert str(case.facts.get("hint", "")) in error.hint
    if "at" in case.facts:
        assert case.sql[error.position - 1 :].startswith(str(case.facts["at"])), error.position
