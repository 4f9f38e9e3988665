"""Made-up conversations through the relay: nothing but documented errors, no hang, nothing uncharged. See `fuzz`."""

from __future__ import annotations

import pytest

from tests.unit.wire.fuzz.__main__ import resident_kib
from tests.unit.wire.fuzz.conversation import MANNERS, Tally, converse

FEW, MANY = 240, 20_000
GROWTH_KIB = 8000


def test_conversations_of_every_manner_keep_the_rules() -> None:
    """The same ones each time, so the counts are those of a run that was looked at: it is no chance that they hold."""
    tally = Tally()
    for seed in range(FEW):
        converse(seed, tally)
    assert tally.conversations == FEW >= 20 * len(MANNERS)
    assert tally.from_clients > 10_000
    assert tally.charged > 200
    assert {"08P01", "25P02", "DP001", "DP006", "DP007"} <= set(tally.sqlstates)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_memory_is_flat_over_a_million_messages() -> None:
    """Other seeds than `make wire-fuzz`, which takes ten times as many."""
    tally, early = Tally(), 0
    for seed in range(10_000_000, 10_000_000 + MANY):
        converse(seed, tally)
        early = early or (resident_kib() if tally.conversations == MANY // 10 else 0)
    assert tally.from_clients > 1_000_000
    assert resident_kib() - early < GROWTH_KIB
