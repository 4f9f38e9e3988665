"""EXPLAIN without a server."""

from __future__ import annotations

import json

import pytest

from proxy.errors import HushError
from proxy.session.dry_run import dry_run
from tests.unit.sql.corpus import policy


def test_plan_as_text() -> None:
    text = dry_run(policy(), "SELECT city, count(*), sum(age) FROM users GROUP BY city;", as_json=False)
    for part in ("epsilon 100", "Key city: private", "Threshold", "clamped", "Private SQL"):
        assert part in text


def test_plan_as_json() -> None:
    told = json.loads(dry_run(policy(), "SELECT plan, count(*) FROM users GROUP BY 1", as_json=True))
    assert told["epsilon"] == 100
    assert [k["values"] for k in told["releases"][0]["keys"]] == [4]


def test_two_blocks_are_two_releases() -> None:
    told = json.loads(
        dry_run(policy(), "SELECT (SELECT count(*) FROM users), (SELECT sum(amount) FROM orders)", as_json=True)
    )
    one = json.loads(dry_run(policy(), "SELECT count(*) FROM users", as_json=True))
    rho = [r["charge"]["rho"] for r in told["releases"]]
    assert rho[0] == rho[1] == pytest.approx(one["releases"][0]["charge"]["rho"] / 2)


@pytest.mark.parametrize(
    "text", ["", "SELECT 1", "SELECT * FROM stores", "SELECT * FROM users", "SELECT count(*) FROM users; SELECT 1",
             "SELECT count(*) FROM users WHERE " + "NOT " * 5000 + "newsletter", "EXPLAIN SELECT count(*) FROM users"],
)  # fmt: skip
def test_what_has_no_plan_is_an_error_with_advice(text: str) -> None:
    with pytest.raises(HushError) as refused:
        dry_run(policy(), text, as_json=False)
    assert refused.value.hint
