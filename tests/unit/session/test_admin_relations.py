"""What do administrators read of everybody's charges, and who reads nothing?"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from proxy.front.relations import ADMIN_RELATIONS
from proxy.policy.model import Accounting, Promise
from proxy.policy.pledge import pledge_of
from proxy.session.admin_relations import admin_rows
from proxy.session.contract import Spliced
from tests.unit.session.make import version
from tests.unit.session.staged import World, begin, serving

Row = dict[str, str | None]
TEXTS = ("select count(*) from users", "select count(*) from users", "select sum(amount) from orders")


def read(world: World, name: str) -> list[Row]:
    names = [column for column, _ in ADMIN_RELATIONS[name]]
    policy = world.dataset.current.policy
    return [dict(zip(names, row, strict=True)) for row in admin_rows(name, policy, world.ledger)]


def ask(world: World, login: str) -> None:
    for number, text in enumerate(TEXTS):
        begin(world.session(login, str(number)), text)


def test_every_charge_is_there_with_who_was_charged(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as world:
        ask(world, "ann")
        found = read(world, "admin_history")
    assert [row["query"] for row in found] == [TEXTS[2], TEXTS[1], TEXTS[0]], "another session pays for it again"
    assert {row["login"] for row in found} == {"ann"}
    assert [row["tables"] for row in found] == ["orders", "users", "users"]
    assert float(found[2]["dataset_epsilon"] or 0) == float(found[2]["epsilon"] or 0) > 0
    assert float(found[1]["epsilon"] or 0) == 0, "the login has paid before"


def test_what_accounts_were_charged_adds_up_to_what_they_have_spent(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as world:
        ask(world, "ann")
        ask(world, "boss")
        rows, totals = read(world, "admin_budget"), world.ledger.all_accounts()
        today = datetime.now(UTC).date().isoformat()
    assert {row["day"] for row in rows} == {today}
    assert {row["kind"] for row in rows} == {"dataset", "role", "user"}
    for total in totals:
        own = total.name.partition("/")[2] or total.name
        paid = [Decimal(row["rho"] or 0) for row in rows if (row["kind"], row["account"]) == (total.kind.value, own)]
        if total.kind.value != "session":
            assert sum(paid) == Decimal(total.spent.pico).scaleb(-12), total


def test_what_counts_more_since_more_was_promised_is_a_row_without_a_day(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as world:
        ask(world, "ann")
        stronger = replace(world.dataset.current.policy.privacy, group_size=2)
        policy = replace(world.dataset.current.policy, privacy=stronger)
        assert stronger.promise == Promise(2)
        world.dataset.swap(replace(world.dataset.current, policy=policy))
        world.ledger.pledge(pledge_of(policy), world.dataset.current.dataset_account(), datetime.now(UTC))
        rows, totals = read(world, "admin_budget"), world.ledger.all_accounts()
    (beyond,) = (row for row in rows if row["day"] is None and row["kind"] == "dataset")
    spent = next(t.spent.pico for t in totals if t.kind.value == "dataset")
    assert sum(Decimal(r["rho"] or 0) for r in rows if r["kind"] == "dataset") == Decimal(spent).scaleb(-12)
    assert Decimal(beyond["rho"] or 0) == Decimal(spent).scaleb(-12) * 3 / 4


def test_pure_accounting_has_no_rho(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as world:
        ask(world, "ann")
        privacy = replace(world.dataset.current.policy.privacy, accounting=Accounting.PURE)
        world.dataset.swap(
            replace(world.dataset.current, policy=replace(world.dataset.current.policy, privacy=privacy))
        )
        assert {row["rho"] for name in ADMIN_RELATIONS for row in read(world, name)} == {None}


def test_charges_of_other_datasets_are_not_there(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as world:
        ask(world, "ann")
        other = replace(world.dataset.current.policy, dataset="elsewhere")
        assert [admin_rows(name, other, world.ledger) for name in ADMIN_RELATIONS] == [(), ()]


@pytest.mark.parametrize("name", ADMIN_RELATIONS)
def test_who_is_no_administrator_has_no_such_relations(name: str, tmp_path: Path) -> None:
    found = version()
    admins = {login for login, one in found.users.logins.items() if one.role == "boss"}
    assert admins
    assert {login for login in found.users.logins if name in found.premises(login).relations} == admins
    with serving(tmp_path / "state") as world:
        text = f"select * from hush.{name}"
        for login in found.users.logins:
            (piece,) = asyncio.run(world.session(login).prepare(text, {}))
            assert piece.is_private is (login in admins), (
                "others are left to PostgreSQL, which lets nobody read its own"
            )
        assert isinstance(begin(world.session("boss"), text), Spliced)
