"""How much delta may a release use that shows unlisted groups?"""

from __future__ import annotations

from proxy.dp.accounting import knob_pico
from proxy.pipeline.premises import atto_for_keys
from proxy.policy.model import Privacy

POOL, LARGE, SMALL = 5 * 10**11, 4 * 10**10, 10**10  # atto of a policy's pool; pico of two accounts


def test_a_release_has_the_least_share_of_delta_of_its_accounts() -> None:
    """So that no account's pool runs out before the account does."""
    privacy = Privacy(unit="person")
    for limits in ((LARGE, SMALL), (SMALL, LARGE), (LARGE, SMALL, 0), (LARGE, LARGE)):
        atto = atto_for_keys(limits, privacy, 10**9)
        assert atto == min(POOL * 10**9 // limit for limit in limits if limit)
        assert all(atto * (limit // 10**9) <= POOL for limit in limits)


def test_without_limits_a_release_has_the_share_of_the_dearest_one() -> None:
    privacy = Privacy(unit="person", max_query_epsilon=10.0)
    dearest = knob_pico(privacy, 10.0)
    assert atto_for_keys((), privacy, dearest) == POOL
    for pico in (dearest // 7, dearest // 1000):
        assert atto_for_keys((), privacy, pico) == POOL * pico // dearest
