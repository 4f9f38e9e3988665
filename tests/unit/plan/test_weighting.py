"""Noise moves to the aggregates that matter less; what a unit can move stays within its bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.errors import PolicyForbids
from proxy.plan.words.outputs import output_noise
from tests.unit.plan.shop import context, plan

BOTH = "select status, count(*), sum(amount) from orders group by status"


def noise(shares: tuple[float, ...]) -> list[float]:
    return [o.sd for o in output_noise(plan(BOTH, replace(context(), shares=shares)))]


def test_shares_move_noise_between_aggregates() -> None:
    alike, first, second = noise(()), noise((10, 1)), noise((1, 10))
    assert noise((1, 1)) == noise((3, 3)) == alike
    assert first[0] < alike[0] < second[0]
    assert second[1] < alike[1] < first[1]


def test_other_shares_are_another_release_of_the_same_charge() -> None:
    alike, unlike = plan(BOTH), plan(BOTH, replace(context(), shares=(10, 1)))
    assert alike.fingerprint != unlike.fingerprint
    assert alike.cost == unlike.cost


@pytest.mark.parametrize(
    ("text", "shares", "pure", "says"),
    [
        (BOTH, (1.0,), False, "1 shares, and the statement 2 aggregates"),
        (BOTH, (1.0, 2.0), True, "no meaning under pure accounting"),
        ("select count(*), min(age) from users", (1.0, 2.0), False, "for counts, sums"),
    ],
)
def test_shares_that_do_not_fit_are_refused(text: str, shares: tuple[float, ...], pure: bool, says: str) -> None:
    with pytest.raises(PolicyForbids) as refused:
        plan(text, replace(context(pure=pure), shares=shares))
    assert says in refused.value.message
