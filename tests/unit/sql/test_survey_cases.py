"""What the planner understands of statements about columns that were randomized before they were stored.

What answers come out: `tests/e2e/test_randomized.py`, and over many draws `tests/unit/release/test_estimates.py`.
"""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from proxy.admin.files import read_policy
from proxy.errors import HushError
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.words.describe import describe_moment
from proxy.policy.model import Policy
from tests.unit.sql.corpus import CASES, Case, facts_of, plan

FOLDER = CASES / "survey"
SURVEY = [
    Case(place=f"{path.stem}-{i}", sql=c["sql"], facts=c)
    for path in sorted(FOLDER.glob("*.yaml")) if path.name != "policy.yaml"
    for i, c in enumerate(YAML(typ="safe").load(path), start=1)
]  # fmt: skip
pytestmark = pytest.mark.no_cover  # a test of its own asks a server for the like, and its lines are counted


@pytest.fixture(scope="module")
def served() -> Policy:
    return read_policy(FOLDER / "policy.yaml", {})


@pytest.mark.parametrize("case", [c for c in SURVEY if not c.is_refused], ids=lambda c: c.place)
def test_statement_is_understood(case: Case, served: Policy) -> None:
    plans = [p for p in plan(case, served) if isinstance(p, ReleasePlan)]
    facts = [{**facts_of(p), "moments": [describe_moment(m) for m in p.vector.moments]} for p in plans]
    assert facts == case.facts["releases"], case.sql


@pytest.mark.parametrize("case", [c for c in SURVEY if c.is_refused], ids=lambda c: c.place)
def test_statement_is_refused(case: Case, served: Policy) -> None:
    with pytest.raises(HushError) as refused:
        plan(case, served)
    assert refused.value.sqlstate == case.facts["refused"], case.sql
    assert refused.value.message == case.facts["says"]
    assert refused.value.hint == case.facts["hint"]
