"""Under `profile: charged` what profiles tell is paid for by whoever is told, once, and before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proxy.dp.accounting import epsilon_spent
from proxy.errors import BudgetSpent, HushError, LedgerFailed, NotConfirmed, PolicyForbids
from proxy.ledger.base import Question, Wanted
from proxy.plan.charge import Cost, ReleaseKey, Request, Reserved
from proxy.plan.profile.profile import PaidPart, ProfilePart, TableProfile
from proxy.policy.figures import figure
from proxy.policy.model import EpsilonLimit, ProfileUse
from proxy.session.contract import Asking
from proxy.session.session import ClientSession
from tests.unit.plan.test_profile import PROFILE
from tests.unit.session.make import version
from tests.unit.session.staged import World, begin, go_on, serving
from tests.unit.session.test_confirm import FEW, LOST
from tests.unit.session.test_estimate import asked

PICO = 10_000_000_000  # of one part: rho 0.01
TEXT = "select count(*) from orders"
OTHER = "select count(*) from users"
PARTS = (
    (ProfilePart.ROWS, "", "digest"),
    (ProfilePart.SUM, "amount", "digest"),
    (ProfilePart.SHARES, "status", "edited since"),
)


def request(part: ProfilePart, digest: str, pico: int = PICO) -> Request:
    key = ReleaseKey(fingerprint=part.value, policy_digest=digest, data_version="1")
    return Request(key=key, cost=Cost(pico, 0))


def paid_parts() -> tuple[PaidPart, ...]:
    return tuple(PaidPart(part, column, request(part, digest)) for part, column, digest in PARTS)


@dataclass(slots=True)
class Charged:
    """A dataset whose profile is to be paid for, and its world."""

    world: World
    session: ClientSession

    def spent(self, kind: str) -> list[int]:
        return [t.spent.pico for t in self.world.ledger.all_accounts() if t.kind.value == kind]


@contextmanager
def charged(
    folder: Path, profile: TableProfile = PROFILE, use: ProfileUse = ProfileUse.CHARGED, user: float = 10.0
) -> Iterator[Charged]:
    """The profile's releases are stored, and paid for by the dataset alone."""
    plain = version().policy
    budgets = replace(plain.budgets, user=EpsilonLimit(user), session=EpsilonLimit(10.0))
    policy = replace(plain, budgets=budgets, privacy=replace(plain.privacy, profile=use))
    with serving(folder, policy) as world:
        now = world.dataset.current
        world.dataset.current = replace(now, profiles=(replace(profile, paid=paid_parts()),))
        for one in paid_parts():
            question = Question(login="shop/(profile)", query="x", at=datetime.now(UTC))
            receipt = world.ledger.reserve((now.dataset_account(),), (Wanted(one.request, "sql"),), question)
            (item,) = receipt.items
            assert isinstance(item, Reserved)
            world.ledger.store.put(item, b"noisy numbers")
        yield Charged(world, world.session())


def notices(session: ClientSession, text: str, settings: dict[str, str] | None = None) -> list[str]:
    return [n.message for n in asked(session, text, settings or {"hush.epsilon": "0.1"}).notices]


@pytest.mark.parametrize(
    "first", [TEXT, f"explain {TEXT}", f"select * from hush.estimate('{TEXT}')", 'select count(*) from "orders"']
)
def test_every_account_of_the_asker_pays_the_whole_price_once_and_before(tmp_path: Path, first: str) -> None:
    with charged(tmp_path / "state") as here:
        before = sum(here.spent("dataset"))
        told = notices(here.session, first)
        assert told[0].startswith("charged epsilon ")
        assert "for the profile of orders, once" in told[0]
        beside = sum(here.spent("dataset")) - before
        assert (beside > 0) == first.startswith("select count")
        for kind in ("user", "session", "role"):
            assert here.spent(kind) == [3 * PICO + beside]
        assert sum(here.spent("dataset")) == before + beside, "it has paid for the profile already"
        assert not any("profile" in line for line in notices(here.session, f"explain {TEXT}"))
        again = here.world.session(name="2")
        assert "for the profile of orders, once" in notices(again, f"explain {TEXT}")[0], "another session"
        assert here.spent("user") == [3 * PICO + beside], "of the same login"


def test_who_asks_of_other_tables_or_is_told_nothing_pays_nothing(tmp_path: Path) -> None:
    with charged(tmp_path / "state") as here:
        for text in (f"explain {OTHER}", "select * from hush.budget", "select order_id from orders limit 0"):
            assert not any("profile" in line for line in notices(here.session, text))
        assert here.spent("user") == here.spent("session") == []


def test_where_profiles_are_known_nobody_is_charged(tmp_path: Path) -> None:
    with charged(tmp_path / "state", use=ProfileUse.KNOWN) as here:
        assert not any("profile" in line for line in notices(here.session, f"explain {TEXT}"))
        assert here.spent("user") == []


def test_hush_policy_shows_what_was_paid_for(tmp_path: Path) -> None:
    def told() -> set[str]:
        """The last column, of profiles."""
        return set(asked(here.session, "select * from hush.policy").arrays[-1].text[1:-1].split(","))

    with charged(tmp_path / "state") as here:
        assert told() == {"NULL"}
        notices(here.session, f"explain {TEXT}")
        assert told() != {"NULL"}


def test_the_budget_says_what_profiles_tell_beside_it(tmp_path: Path) -> None:
    for use, beside in ((ProfileUse.KNOWN, 3 * PICO), (ProfileUse.CHARGED, 0)):
        with charged(tmp_path / use.value, use=use) as here:
            found = asked(here.session, "select * from hush.budget").arrays[-1].text
            epsilon = epsilon_spent(here.world.dataset.current.policy.privacy, beside)
            assert found == f'{{"{epsilon!r}","{epsilon!r}"}}', "of the user and of the session"


def test_what_cannot_be_paid_is_refused_and_nothing_is_told(tmp_path: Path) -> None:
    found = []
    for number, profile in enumerate((PROFILE, FEW)):
        with charged(tmp_path / str(number), profile, user=0.5) as here:
            said = []
            for text in (
                TEXT,
                f"explain {TEXT}",
                f"select * from hush.estimate('{TEXT}')",
                "select count(x) from orders",
            ):
                with pytest.raises(BudgetSpent) as refused:
                    asked(here.session, text)
                said.append(refused.value.text())
            assert here.spent("user") == here.spent("session") == here.spent("role") == []
            found.append(said)
    assert found[0] == found[1], "whatever the profile says"


def test_a_cap_on_charges_is_for_profiles_too(tmp_path: Path) -> None:
    with charged(tmp_path / "state") as here:
        with pytest.raises(PolicyForbids, match=r"profile of orders costs epsilon 1\.\d+, once, and hush.max_charge"):
            asked(here.session, TEXT, {"hush.max_charge": "0.6"})
        assert here.spent("user") == []


def test_a_refusal_afterwards_says_what_was_charged_before(tmp_path: Path) -> None:
    with charged(tmp_path / "state", FEW) as here:
        with pytest.raises(NotConfirmed) as refused:
            asked(here.session, LOST, {"hush.confirm": "on", "hush.epsilon": "0.0001"})
        assert refused.value.detail.startswith("Nothing was charged. ")
        epsilon = figure(epsilon_spent(here.world.dataset.current.policy.privacy, 3 * PICO))
        assert f"Before that, the session charged epsilon {epsilon} for the profile of orders, once." in (
            refused.value.detail
        )
        with pytest.raises(HushError) as again:
            asked(here.session, "select sum(status) from orders")
        assert "profile" not in again.value.detail


def test_it_is_said_with_the_answer_of_a_statement_in_stages(tmp_path: Path) -> None:
    sql = "select count(*) from orders where amount > (select avg(age) from users)"
    with charged(tmp_path / "state") as here:
        begun = begin(here.session, sql, 0.1)
        assert isinstance(begun, Asking)
        assert here.spent("user") != []
        found = go_on(here.session, begun, epsilon=0.1)
        assert not isinstance(found, Asking)
        assert "for the profile of orders, once" in found.notices[0].message
        assert "for the profile" in asked(here.session, "select * from hush.messages").arrays[1].text


def test_what_the_dataset_has_not_paid_for_is_never_charged_to_others(tmp_path: Path) -> None:
    """Such a profile is not served; if it were, nothing would be told or charged."""
    with charged(tmp_path / "state") as here:
        now = here.world.dataset.current
        foreign = replace(
            now.profiles[0], paid=(PaidPart(ProfilePart.ROWS, "", request(ProfilePart.GROUPS, "digest")),)
        )
        here.world.dataset.current = replace(now, profiles=(foreign,))
        with pytest.raises(LedgerFailed, match="has not paid for"):
            asked(here.session, TEXT)
        assert here.spent("user") == []
