"""What the editor proposes follows from the policy and from what a login may name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proxy.admin.files import read_policy
from proxy.console import completion
from proxy.console.completion import completion_of
from proxy.front.relations import setting_defaults
from proxy.pipeline.settings import check_setting
from proxy.policy.load import load_policy
from proxy.policy.model import Policy

SHOP = Path(__file__).resolve().parents[3] / "policies" / "shop.yaml"


@pytest.fixture(scope="module")
def shop() -> Policy:
    return read_policy(SHOP, {})


def test_listed_values_of_columns_that_a_login_may_name_are_proposed_and_no_others(shop: Policy) -> None:
    found: Any = completion_of(shop, [("users", "age"), ("users", "city"), ("orders", "status")])
    assert found["schema"] == {"users": ["age", "city"], "orders": ["status"]}
    assert found["values"] == {"status": {"orders": ["'paid'", "'refunded'"]}}


def test_values_are_written_as_sql_has_them() -> None:
    text = SHOP.read_text().replace("values: [paid, refunded]", 'values: ["it\'s", \'a "b"\']')
    text = text.replace(
        "plan: {type: text, values: [free, pro, team]}",
        "plan: {type: boolean}\n      stars: {type: integer, values: [1, 2]}\n"
        "      day: {type: date, values: [2026-01-02]}\n      word: {type: text, values: ['true']}",
    )
    policy = load_policy(text, filename="shop.yaml", environment={})
    found: Any = completion_of(policy, [(t.name, c.name) for t in policy.tables.values() for c in t.columns])
    assert found["values"]["status"]["orders"] == ["'it''s'", "'a \"b\"'"]
    assert found["values"]["stars"]["users"] == ["1", "2"]
    assert found["values"]["day"]["users"] == ["'2026-01-02'"]
    assert found["values"]["word"]["users"] == ["'true'"]
    assert "city" not in found["values"]


def test_of_many_values_the_first_are_proposed(shop: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "MOST_VALUES", 1)
    found: Any = completion_of(shop, [("orders", "status")])
    assert found["values"] == {"status": {"orders": ["'paid'"]}}


def test_every_proposed_value_of_a_setting_is_taken(shop: Policy) -> None:
    found: Any = completion_of(shop, [])
    assert list(found["settings"]) == [name for name, _ in setting_defaults(shop)]
    assert found["settings"]["hush.fresh"] == ["on", "off"]
    assert found["settings"]["hush.digits"] == ["'noise'", "'all'"]
    assert found["settings"]["hush.weights"] == []
    for name, proposed in found["settings"].items():
        for value in proposed:
            check_setting(name, value.strip("'"), shop.privacy)
