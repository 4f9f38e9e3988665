"""Who from outside is a guest, and until when?"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, cast

import pytest

from proxy.admin.guests import IDLE_S, Guests, guest_of, kept_guests
from proxy.errors import FrontFailed
from proxy.front.front import Front
from proxy.identity.passes import Passes
from proxy.identity.refusals import NotVouched, RefusalReason, Unreachable
from proxy.identity.vouchers import Voucher
from proxy.policy.model import EpsilonLimit, Guest, Login, NoLimit, Role, Users
from proxy.policy.outside.logins import NoOutside, Vouched
from proxy.session.dataset import Dataset
from tests.unit.identity.directory import FakeDirectory
from tests.unit.identity.test_ldap import GROUP, OTHER, settings
from tests.unit.identity.test_tokens import SETTINGS

LDAP = settings(FakeDirectory(1))
ROLES = {"analyst": Role(name="analyst", budget=EpsilonLimit(2.0)), "boss": Role(name="boss", is_admin=True)}
ANN = Login(name="Ann", scram="", role="analyst", budget=NoLimit())
USERS = Users({"Ann": ANN}, ROLES, LDAP)


def vouched(name: str = "alice", *groups: str, by: Any = LDAP) -> Vouched:
    return Vouched(name=name, groups=frozenset(groups or (GROUP,)), by=by)


def refusal(users: Users, shown: Vouched) -> RefusalReason:
    with pytest.raises(NotVouched) as caught:
        guest_of(users, shown)
    return caught.value.reason


# --- whether somebody is a guest ---------------------------------------------------------------------------


def test_a_guest_has_the_role_and_budget_that_the_first_group_gives() -> None:
    found = guest_of(USERS, vouched())
    assert (found.role, found.budget) == ("analyst", EpsilonLimit(2.0))
    assert guest_of(USERS, vouched("alice", GROUP, OTHER)).role == "boss"


def test_no_guest_has_a_name_of_the_users_file_or_of_postgres() -> None:
    assert refusal(USERS, vouched("ann")) is RefusalReason.NAME_OF_FILE
    assert refusal(USERS, vouched("postgres")) is RefusalReason.NAME_OF_FILE
    assert refusal(USERS, vouched("pg_me")) is RefusalReason.NAME_OF_FILE


def test_a_guest_needs_a_group_and_a_users_file_that_still_says_so() -> None:
    assert refusal(USERS, vouched("alice", "cn=others")) is RefusalReason.NO_GROUP
    assert refusal(replace(USERS, outside=NoOutside()), vouched()) is RefusalReason.CHANGED
    assert refusal(replace(USERS, outside=SETTINGS), vouched()) is RefusalReason.CHANGED
    assert refusal(replace(USERS, outside=replace(LDAP, host="other")), vouched()) is RefusalReason.CHANGED
    moved = replace(LDAP, groups=(), recheck_s=1.0, timeout_s=1.0)
    assert refusal(replace(USERS, outside=moved), vouched()) is RefusalReason.NO_GROUP
    tokens = replace(USERS, outside=replace(SETTINGS, leeway_s=0.0))
    assert guest_of(tokens, vouched("alice", "analysts", by=SETTINGS)).role == "analyst"


def test_a_reload_keeps_whoever_has_a_place_in_it() -> None:
    alice = guest_of(USERS, vouched())
    old = replace(USERS, guests={"alice": alice})
    assert kept_guests(old, USERS) == {"alice": alice}
    other = replace(USERS, outside=replace(LDAP, groups=((GROUP, "boss"),)))
    assert kept_guests(old, other)["alice"].role == "boss"
    for gone in (replace(USERS, outside=NoOutside()), replace(USERS, outside=replace(LDAP, groups=())),
                 replace(USERS, logins={"alice": ANN})):  # fmt: skip
        assert kept_guests(old, gone) == {}
    assert kept_guests(replace(old, outside=NoOutside()), USERS) == {}


# --- for how long ---------------------------------------------------------------------------------------------


@dataclass
class FakePolicy:
    dataset: str = "shop"


@dataclass
class FakeVersion:
    users: Users
    policy: FakePolicy = field(default_factory=FakePolicy)


@dataclass
class FakeDataset:
    """As much of a dataset as guests know."""

    current: FakeVersion

    def admit(self, guests: MappingProxyType[str, Guest]) -> None:
        self.current = FakeVersion(replace(self.current.users, guests=guests))


@dataclass
class FakeFront:
    """Takes guests, or fails to."""

    applied: list[Users] = field(default_factory=list)
    fails: bool = False

    async def apply(self, _policy: object, users: Users) -> None:
        if self.fails:
            raise FrontFailed("it is restarting")
        self.applied.append(users)


@dataclass
class Scene:
    """Guests with all that they know of. groups: what the directory says, or raises."""

    groups: dict[str, object] = field(default_factory=dict)
    now: float = 1000.0
    front: FakeFront = field(default_factory=FakeFront)
    dataset: FakeDataset = field(default_factory=lambda: FakeDataset(FakeVersion(USERS)))

    def __post_init__(self) -> None:
        self.threads, self.looking = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self.guests = Guests(
            dataset=cast(Dataset, self.dataset), front=cast(Front, self.front),
            threads=self.threads, looking=self.looking,
            passes=Passes(lambda count: b"x" * count, lambda: self.now), clock=lambda: self.now,
            voucher=Voucher(groups_of=self.groups_of, timeout_s=20.0),
        )  # fmt: skip

    def groups_of(self, name: str) -> frozenset[str]:
        said = self.groups[name]
        if isinstance(said, Exception):
            raise said
        return cast("frozenset[str]", said)

    @property
    def known(self) -> dict[str, str]:
        return {name: guest.role for name, guest in self.dataset.current.users.guests.items()}


def play(run: Callable[[Scene], Coroutine[Any, Any, None]], **changes: Any) -> None:
    scene = Scene(**changes)
    try:
        asyncio.run(run(scene))
    finally:
        scene.threads.shutdown()
        scene.looking.shutdown()


def test_a_guest_comes_once_and_has_a_place_first() -> None:
    async def run(scene: Scene) -> None:
        await scene.guests.welcome(vouched())
        await scene.guests.welcome(vouched())
        assert scene.known == {"alice": "analyst"}
        assert len(scene.front.applied) == 1
        scene.front.fails = True
        with pytest.raises(FrontFailed):
            await scene.guests.welcome(vouched("carol"))
        assert scene.known == {"alice": "analyst"}

    play(run)


def test_who_is_in_no_group_any_more_is_a_guest_no_more() -> None:
    async def run(scene: Scene) -> None:
        for name in ("alice", "bob", "carol"):
            await scene.guests.welcome(vouched(name))
        passes = scene.guests.passes
        used = passes.give("bob").user
        scene.groups |= {
            "alice": NotVouched(RefusalReason.UNKNOWN, "gone"),
            "bob": frozenset(),
            "carol": frozenset({OTHER}),
        }
        assert await scene.guests.look(frozenset({"alice", "carol"})) == {"alice", "bob"}
        assert scene.known == {"carol": "boss"}
        assert used not in passes
        assert await scene.guests.look(frozenset({"carol"})) == frozenset()

    play(run)


def test_a_directory_that_cannot_be_asked_is_believed_for_three_looks() -> None:
    async def run(scene: Scene) -> None:
        await scene.guests.welcome(vouched())
        scene.groups["alice"] = Unreachable("no connection")
        scene.now += 3 * LDAP.recheck_s
        assert await scene.guests.look(frozenset({"alice"})) == frozenset()
        scene.groups["alice"] = frozenset({GROUP})
        await scene.guests.look(frozenset({"alice"}))
        scene.groups["alice"] = ValueError("an answer that cannot be read")
        scene.now += 3 * LDAP.recheck_s + 1
        scene.front.fails = True
        assert await scene.guests.look(frozenset({"alice"})) == {"alice"}  # whatever the front says
        assert scene.known == {}

    play(run)


def test_guests_whom_nobody_uses_are_forgotten_after_a_while() -> None:
    async def run(scene: Scene) -> None:
        await scene.guests.welcome(vouched())
        assert await scene.guests.look(frozenset()) == frozenset()
        scene.now += IDLE_S + 1
        assert await scene.guests.look(frozenset()) == {"alice"}

    play(run)


def test_a_reload_or_login_that_comes_between_counts() -> None:
    async def run(scene: Scene) -> None:
        alice = await scene.guests.welcome(vouched())

        def reloads(_name: str) -> frozenset[str]:
            scene.dataset.current = FakeVersion(
                replace(USERS, outside=replace(LDAP, recheck_s=1.0), guests={"alice": alice})
            )
            return frozenset()

        scene.guests.voucher = Voucher(groups_of=reloads)
        assert await scene.guests.look(frozenset({"alice"})) == frozenset()

        def logs_in(_name: str) -> frozenset[str]:
            scene.dataset.admit(MappingProxyType({"alice": replace(alice, role="boss", groups=frozenset({OTHER}))}))
            return frozenset()

        scene.guests.voucher = Voucher(groups_of=logs_in)
        assert await scene.guests.look(frozenset({"alice"})) == frozenset()
        assert scene.known == {"alice": "boss"}

    play(run)


def test_tokens_are_not_looked_up_again() -> None:
    async def run(scene: Scene) -> None:
        scene.dataset.current = FakeVersion(replace(USERS, outside=SETTINGS))
        await scene.guests.welcome(vouched("alice", "analysts", by=SETTINGS))
        assert await scene.guests.look(frozenset({"alice"})) == frozenset()
        assert scene.known == {"alice": "analyst"}

    play(run)


def test_a_token_gives_its_groups_until_it_ends_whatever_others_let_in() -> None:
    """Groups that were taken away are not kept by a session that another token let in."""
    outside = replace(SETTINGS, groups=(("chiefs", "boss"), ("analysts", "analyst")))

    async def run(scene: Scene) -> None:
        scene.dataset.current = FakeVersion(replace(USERS, outside=outside))
        long = replace(vouched("alice", "analysts", by=outside), life_s=3600.0)
        await scene.guests.welcome(long)
        await scene.guests.welcome(replace(vouched("alice", "chiefs", by=outside), life_s=10.0))
        assert await scene.guests.look(frozenset({"alice"})) == frozenset()
        assert scene.known == {"alice": "boss"}
        scene.now += 11
        assert await scene.guests.look(frozenset({"alice"})) == frozenset()
        assert scene.known == {"alice": "analyst"}
        await scene.guests.welcome(long)
        scene.now += 3601
        assert await scene.guests.look(frozenset({"alice"})) == {"alice"}
        assert scene.known == {}

    play(run)


def test_who_logs_in_while_others_are_looked_up_stays() -> None:
    async def run(scene: Scene) -> None:
        for name in ("alice", "bob"):
            await scene.guests.welcome(vouched(name))
        scene.now += IDLE_S + 1
        loop = asyncio.get_running_loop()

        def meanwhile(_name: str) -> frozenset[str]:
            asyncio.run_coroutine_threadsafe(scene.guests.welcome(vouched()), loop).result(60)
            return frozenset({GROUP})

        scene.guests.voucher = Voucher(groups_of=meanwhile, timeout_s=20.0)
        assert await scene.guests.look(frozenset({"bob"})) == frozenset()
        assert scene.known == {"alice": "analyst", "bob": "analyst"}

    play(run)


def test_logins_that_wait_for_a_directory_hold_up_no_look() -> None:
    """Strangers who keep all its threads busy do not have guests shut out because they could not be looked up."""

    async def run(scene: Scene) -> None:
        await scene.guests.welcome(vouched())
        scene.now += 3 * LDAP.recheck_s + 1
        scene.groups["alice"] = frozenset({GROUP})
        may_end = threading.Event()
        waiting = scene.threads.submit(may_end.wait, 60)
        try:
            assert await scene.guests.look(frozenset({"alice"})) == frozenset()
            assert not waiting.done()
        finally:
            may_end.set()

    play(run)


def test_an_answer_that_takes_too_long_is_none() -> None:
    async def run(scene: Scene) -> None:
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow(*_: str) -> Vouched:
            loop.call_soon_threadsafe(asked.set)
            asyncio.run_coroutine_threadsafe(over.wait(), loop).result(60)
            return vouched()

        over = asyncio.Event()
        scene.guests.voucher = Voucher(by_password=slow, by_token=slow, timeout_s=0.05)
        for asking in (scene.guests.by_password("alice", "x"), scene.guests.by_token("x")):
            with pytest.raises(Unreachable, match="in time"):
                await asking
        over.set()

    play(run)


def test_a_poke_is_not_waited_for() -> None:
    async def run(scene: Scene) -> None:
        scene.guests.poke()
        await scene.guests.wait()
        scene.dataset.current = FakeVersion(replace(USERS, outside=replace(LDAP, recheck_s=0.01)))
        await scene.guests.wait()
        scene.dataset.current = FakeVersion(replace(USERS, outside=NoOutside()))
        scene.guests.poke()
        await scene.guests.wait()

    play(run)
