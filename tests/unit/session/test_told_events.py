"""What does the log say of statements and of accounts that run low?"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from typing import Any

import pytest

from proxy.errors import BudgetSpent
from proxy.events import fingerprint_of
from proxy.policy.model import EpsilonLimit
from tests.unit.session.flaky import COUNT, refused
from tests.unit.session.staged import World, begin


def _events(caplog: pytest.LogCaptureFixture, kind: str) -> list[dict[str, Any]]:
    found = [getattr(record, "hushql_fields", {}) for record in caplog.records]
    return [fields for fields in found if fields.get("event") == kind]


def test_an_answer_says_who_asked_what_at_which_price(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hushql"):
        begin(world.session(), COUNT)
        begin(world.session(), COUNT)
    first, again = _events(caplog, "statement")
    assert (first["outcome"], again["outcome"]) == ("answered", "reused")
    assert first["epsilon"] > 0
    assert again["epsilon"] == 0
    assert first["fingerprint"] == again["fingerprint"] == fingerprint_of(COUNT)
    assert (first["dataset"], first["login"], first["role"]) == ("shop", "ann", "analyst")
    assert first["tables"]
    assert set(first["left"]) <= {"dataset", "role", "user", "session"}
    assert first["left"]


def test_a_refusal_says_its_code_and_not_its_words(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hushql"):
        session = world.session()
        session.refused(refused(world, "SELECT nothing_there FROM users"))
    (told,) = _events(caplog, "statement")
    assert told["outcome"] == "refused"
    assert told["code"] == "DP004"
    assert "nothing_there" not in caplog.text


def test_an_account_that_passes_a_share_of_its_limit_is_told_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    version = world.dataset.current
    policy, limit = version.policy, EpsilonLimit(10.0)
    limited = replace(policy, budgets=replace(policy.budgets, user=limit, session=limit))
    world.dataset.swap(replace(version, policy=limited))
    with caplog.at_level(logging.WARNING, "hushql"):
        for _ in range(40):
            with contextlib.suppress(BudgetSpent):
                begin(world.session(), COUNT, 2, fresh="on")
    told = [(e["account"], e["percent"]) for e in _events(caplog, "account")]
    assert told == [("shop/ann", 80.0), ("shop/ann", 95.0)], "of a session's account nothing is told"
