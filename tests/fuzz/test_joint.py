"""Random queries with several keys of one column, and a planted mistake about them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from proxy.analysis import joint_keys
from proxy.analysis.domains import Domains
from proxy.analysis.key_values import KeyValues
from proxy.analysis.keys import KeyValue, PublicKey
from proxy.sql.algebra.nodes import Scalar
from proxy.sqltypes import Value
from tests.fuzz.joint_queries import make_joint_query
from tests.fuzz.promises import QUERIES, find_mistake, keep_promises

WORLDS = range(95_000, 95_005)
MOST_WORLDS = 40


def test_keys_of_one_column_keep_all_promises() -> None:
    keep_promises(WORLDS, make_joint_query)


@pytest.mark.long
def test_more_keys_of_one_column() -> None:
    keep_promises(range(96_000, 96_300), make_joint_query)


def test_a_forgotten_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = joint_keys._combinations

    def forgetful(
        keys: Sequence[PublicKey], part: Scalar, values: Sequence[Value], domains: Domains, listed: KeyValues
    ) -> tuple[tuple[KeyValue, ...], ...] | None:
        return original(keys, part, values[1:], domains, listed)

    monkeypatch.setattr(joint_keys, "_combinations", forgetful)
    find_mistake(range(WORLDS.start, WORLDS.start + MOST_WORLDS), "meaning", make_joint_query, QUERIES)
