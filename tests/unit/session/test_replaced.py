"""What of a statement is of the policy in force, and what of its numbers is changed before they are shown?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from proxy.dp.accounting import knob_pico
from proxy.errors import PolicyForbids
from proxy.policy.model import PublicTable
from proxy.session.contract import Spliced
from proxy.session.session import ClientSession
from tests.unit.session.running import Slow
from tests.unit.session.staged import World, serving
from tests.unit.sql.corpus import policy


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with serving(tmp_path / "state") as made:
        yield made


def told(session: ClientSession, sql: str, values: Mapping[str, str]) -> Spliced:
    async def released() -> Spliced:
        (piece,) = await session.prepare(sql, values)
        found = await session.release(piece, (), values)
        assert isinstance(found, Spliced)
        return found

    return asyncio.run(released())


def test_what_a_client_has_not_set_is_the_default_of_the_policy_in_force(world: World) -> None:
    session, privacy = world.session(), policy().privacy
    for place, epsilon in enumerate((1.0, 2.0), start=1):
        served = replace(policy(), privacy=replace(privacy, query_epsilon=epsilon), digest=f"d{place}")
        world.dataset.swap(replace(world.dataset.current, policy=served))
        before = world.ledger.all_accounts()
        told(session, f"select count(*) from users where age > {place}", {})
        spent = {(t.kind, t.name): t.spent.pico for t in before}
        paid = {t.spent.pico - spent.get((t.kind, t.name), 0) for t in world.ledger.all_accounts()}
        assert paid == {knob_pico(privacy, epsilon)}


def test_a_statement_of_a_table_that_became_public_is_prepared_again(world: World) -> None:
    session, sql = world.session(), "select count(*) from users"
    (piece,) = asyncio.run(session.prepare(sql, {}))
    served = policy()
    users = replace(served.tables["users"], ownership=PublicTable(), unit_unique=False)
    tables = MappingProxyType({**served.tables, "users": users})
    world.dataset.swap(replace(world.dataset.current, policy=replace(served, tables=tables, digest="public")))
    with pytest.raises(PolicyForbids, match="has changed since this statement was prepared"):
        asyncio.run(session.release(piece, (), {}))


@pytest.mark.parametrize(
    ("sql", "is_cut"),
    [
        ("select plan, count(*) from users group by plan", True),
        ("select sum(n) from (select plan, count(*) as n from users group by plan) t", False),
        ("select count(*) from users", True),
        ("select max(n) from (select plan, count(*) as n from users group by plan) t", False),
    ],
)
def test_numbers_that_feed_another_aggregate_keep_their_sign(
    sql: str, is_cut: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at 0 one by one they would add up to more than there is."""
    monkeypatch.setattr(Slow, "take", lambda _self, n: (-(2**43),) * n)
    found = told(world.session(), sql, {"hush.epsilon": "1"})
    texts = " ".join(a.text for a in found.arrays)
    assert ("-" in texts) is not is_cut
