"""Is each query of TPC-H understood or refused as the page of the guide says?"""

from __future__ import annotations

import re

import pytest

from benchmarks.tpch.questions import POLICY, Question, questions
from proxy.admin.files import read_policy
from proxy.errors import HushError
from proxy.policy.model import Policy
from tests.e2e.served import ROOT
from tests.unit.sql.corpus import Case, plan

_ROW = re.compile(r"^\| (\d+) ([^|]*) \| ([^|]*) \|", re.MULTILINE)
_REASON = re.compile(r"^- \*\*(\d+)\*\*", re.MULTILINE)
#: what the first stage of a query might give, which the rows of the second are compared with
STAGED: dict[int, dict[str, object]] = {18: {"told": [["bigint", "1"]]}, 22: {"told": [["numeric", "4500.5"]]}}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return read_policy(POLICY, {"TPCH_DATA": "."})


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs" / "guide" / "tpch.md").read_text(encoding="utf-8")


def test_the_page_is_about_all_queries_and_gives_a_reason_for_each_refusal(page: str) -> None:
    rows = [(int(number), name) for number, name, _ in _ROW.findall(page)]
    assert rows == [(q.number, q.name) for q in questions()]
    assert [number for number, _ in rows] == list(range(1, 23))
    refused = [number for number, _, told in _ROW.findall(page) if told.startswith("refused")]
    assert _REASON.findall(page) == refused


@pytest.mark.parametrize("question", questions(), ids=lambda q: str(q.number))
def test_a_query_is_understood_or_refused_as_the_page_says(question: Question, policy: Policy, page: str) -> None:
    (told,) = (told for number, _, told in _ROW.findall(page) if int(number) == question.number)
    case = Case(place=str(question.number), sql=question.sql, facts=STAGED.get(question.number, {}))
    if told.startswith("refused"):
        with pytest.raises(HushError) as refused:
            plan(case, policy)
        assert told == f"refused, {refused.value.sqlstate}: {refused.value.message}"
    elif told != "answered":
        with pytest.raises(HushError, match="reads no private table"):
            plan(case, policy)
    else:
        assert plan(case, policy)
