"""Random queries with several keys of one column, and a planted mistake about them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from proxy.analysis import joint_keys
from proxy.analysis.domains import Domains
from proxy.analysis.keys import KeyValue, PublicKey
from proxy.sql.algebra import Scalar
from proxy.sqltypes import Value
from tests.fuzz.examine import report, run_worlds
from tests.fuzz.joint_queries import make_joint_query

QUERIES = 10  # of one world
WORLDS = range(95_000, 95_005)
MOST_WORLDS = 40


def test_keys_of_one_column_keep_all_promises() -> None:
    tally = run_worlds(WORLDS, "both", QUERIES, make=make_joint_query)
    assert not tally.failures, report(tally)
    assert tally.planned > len(WORLDS) * QUERIES / 3, "the grammar makes too few queries that can be planned"


@pytest.mark.long
def test_more_keys_of_one_column() -> None:
    tally = run_worlds(range(96_000, 96_300), "both", QUERIES, make=make_joint_query)
    assert not tally.failures, report(tally)


def test_a_forgotten_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = joint_keys._combinations

    def forgetful(
        keys: Sequence[PublicKey], part: Scalar, values: Sequence[Value], domains: Domains
    ) -> tuple[tuple[KeyValue, ...], ...] | None:
        return original(keys, part, values[1:], domains)

    monkeypatch.setattr(joint_keys, "_combinations", forgetful)
    for seed in range(WORLDS.start, WORLDS.start + MOST_WORLDS):
        if run_worlds((seed,), "meaning", QUERIES, stop=True, make=make_joint_query).failures:
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")
