"""The store of releases keeps payloads by key, one draw per charge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.errors import LedgerFailed
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.plan.charge import Reserved
from proxy.release.store import NotStored, ReleaseStore, StoredRelease
from tests.unit.ledger.make import ask, key, payers, reserved_of, want


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path / "state")
    yield opened
    opened.close()


@pytest.fixture
def store(ledger: SqliteLedger) -> ReleaseStore:
    return ledger.store


def charged(ledger: SqliteLedger, name: str = "a") -> Reserved:
    return reserved_of(ledger.reserve(payers(), want(name), ask(), fresh=True).items[0])


def test_what_was_put_is_found_by_its_key_alone(ledger: SqliteLedger, store: ReleaseStore) -> None:
    assert store.get(key("a")) == NotStored()
    reserved = charged(ledger)
    payload = bytes(range(256)) * 1000
    store.put(reserved, payload)
    assert store.get(key("a")) == StoredRelease(release_id=reserved.release_id, key=key("a"), payload=payload)
    assert store.get(key("b")) == NotStored()


def test_the_newest_of_several_is_found_first(ledger: SqliteLedger, store: ReleaseStore) -> None:
    first, second = charged(ledger), charged(ledger)
    store.put(second, b"second")
    store.put(first, b"first")
    assert tuple(store.completed(key("a"))) == (second.release_id, first.release_id)
    assert store.load(first.release_id, key("a")).payload == b"first"


def test_all_of_many_are_found_and_those_of_other_keys_are_not(ledger: SqliteLedger, store: ReleaseStore) -> None:
    mine = []
    for _ in range(20):
        for reserved in (charged(ledger, "a"), charged(ledger, "b")):
            store.put(reserved, b"payload")
            if reserved.key == key("a"):
                mine.append(reserved.release_id)
    assert list(store.completed(key("a"))) == mine[::-1]
    assert store.get(key("a")) == store.load(mine[-1], key("a"))


def test_a_second_draw_under_one_charge_is_refused(ledger: SqliteLedger, store: ReleaseStore) -> None:
    reserved = charged(ledger)
    store.put(reserved, b"first")
    with pytest.raises(LedgerFailed, match="twice under one charge"):
        store.put(reserved, b"second")
    assert store.load(reserved.release_id, key("a")).payload == b"first"


def test_a_closed_store_fails_closed(ledger: SqliteLedger, store: ReleaseStore) -> None:
    reserved = charged(ledger)
    ledger.close()
    with pytest.raises(LedgerFailed, match="could not be stored"):
        store.put(reserved, b"noise")
    with pytest.raises(LedgerFailed, match="cannot be read"):
        store.get(key("a"))


@pytest.mark.parametrize("field", ["fingerprint", "policy_digest", "data_version"])
@pytest.mark.parametrize("other", ["", "0", "~"])
def test_a_release_of_another_key_is_not_found(
    field: str, other: str, ledger: SqliteLedger, store: ReleaseStore
) -> None:
    """Neither one that sorts before it nor one behind."""
    store.put(charged(ledger), b"numbers")
    assert isinstance(store.get(key("a")), StoredRelease)
    assert store.get(replace(key("a"), **{field: other})) == NotStored()
