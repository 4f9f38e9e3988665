"""What does `hushql profile` say of its price, before anything is charged or looked at?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from proxy import app
from proxy.admin.commands.profile import wishes_of
from proxy.admin.profiles.price import offers, proposal_lines, proposed
from proxy.config import EveryFilter
from proxy.policy.model import NoLimit, Policy
from proxy.session.learning.profile_questions import has_several_rows
from tests.unit.admin.command_line import CommandLine
from tests.unit.admin.profile_shop import POLICY, config, policy_of, spent


def edited(folder: Path, old: str, new: str) -> Policy:
    (folder / "p.yaml").write_text(POLICY.replace(old, new), encoding="utf-8")
    return policy_of(folder)


def proposal(folder: Path, policy: Policy) -> float:
    return proposed(offers(policy, wishes_of(config(folder), policy)), policy)


@pytest.mark.parametrize(
    ("account", "accounting", "epsilon"),
    [
        (0.5, "zcdp", 0.25), (5, "zcdp", 0.5), (10, "zcdp", 0.5), (20, "zcdp", 1.0), (50, "zcdp", 2.0),
        (5, "pure", 0.25), (10, "pure", 0.5), (20, "pure", 1.0), (50, "pure", 2.0),
    ],
)  # fmt: skip
def test_the_price_follows_from_the_account(folder: Path, account: float, accounting: str, epsilon: float) -> None:
    """The data are not even there."""
    policy = edited(
        folder, "{unit: customer}\nbudgets: {dataset: {epsilon: 20}}",
        f"{{unit: customer, accounting: {accounting}}}\nbudgets: {{dataset: {{epsilon: {account}}}}}",
    )  # fmt: skip
    assert proposal(folder, policy) == epsilon


def test_of_units_with_one_row_each_less_is_offered(folder: Path) -> None:
    policy = edited(folder, "{dataset: {epsilon: 20}}", "{dataset: {epsilon: 0.7}}")
    every = wishes_of(config(folder), policy)
    assert proposed(offers(policy, every), policy) == 0.25
    alone = [w for w in every if not has_several_rows(w.table)]
    assert 0 < len(alone) < len(every)
    least, *others = offers(policy, alone)
    assert (least.epsilon, proposed([least, *others], policy)) == (0.1, 0.1)
    assert [o.epsilon for o in others] == [o.epsilon for o in offers(policy, every)]


def test_without_a_limit_it_is_one(folder: Path) -> None:
    policy = policy_of(folder)
    policy = replace(policy, budgets=replace(policy.budgets, dataset=NoLimit()))
    wishes = wishes_of(config(folder), policy)
    assert proposal(folder, policy) == 1.0
    assert any("account without a limit" in line for line in proposal_lines(policy, wishes, offers(policy, wishes)))


@pytest.mark.parametrize(
    "promise",
    ["", ", accounting: pure", ", group_size: 2", ", neighbors: replace_one", ", accounting: pure, group_size: 3"],
)
def test_the_noise_that_is_said_is_that_of_the_numbers(filled: Path, promise: str) -> None:
    policy = edited(filled, "{unit: customer}", f"{{unit: customer{promise}}}")
    asked = config(filled, epsilon=2.0, tables=("orders",), filters=EveryFilter())
    offer = offers(policy, wishes_of(asked, policy))[-1]
    (found,) = app.profile(asked).findings.profiles
    assert offer.epsilon == 2.0
    assert offer.sd == pytest.approx(found.rows.sd, rel=1e-3)
    assert found.rows.is_told == (found.rows.tail.units > offer.least_units - 1)


def test_all_that_is_said_is_in_the_policy(filled: Path) -> None:
    policy = policy_of(filled)
    wishes = wishes_of(config(filled), policy)
    told = [" ".join(line.split()) for line in proposal_lines(policy, wishes, offers(policy, wishes))]
    assert (
        told[0] == "shop: how many customers have how much in users, orders, items: 10 questions, paid for once by the"
    )
    assert told[1].startswith("dataset's account of epsilon 20, before anything is looked at.")
    one = offers(policy, wishes)[2]
    assert one.share == pytest.approx(0.00495, rel=0.01)
    (row,) = (line for line in told if line.startswith("> "))
    assert row.startswith("> 1 0.49 % +-")
    assert f"{100 * 1.96 * one.sd / 1000:.2g} %" in row
    assert told[-1].endswith("Proposed: --epsilon 1")
    assert math.isclose(offers(policy, wishes)[0].sd, 4 * one.sd, rel_tol=0.1), "a quarter of the price"


def test_nobody_is_charged_who_was_not_asked(filled: Path, command: CommandLine) -> None:
    command.profiled = app.profile(config(filled, tables=("items",)))
    before = spent(filled)
    assert command("profile", str(filled / "p.yaml")) == 2
    assert command.err.endswith("a profile has a price, and nobody can be asked here. Say --epsilon, or --yes.\n")
    assert "Proposed: --epsilon 1" in command.err
    assert (command.profile_configs, spent(filled)) == ([], before)
    assert command("profile", str(filled / "p.yaml"), "--yes") == 0
    assert command("profile", str(filled / "p.yaml"), "--epsilon", "0.3") == 0
    assert "Proposed" not in command.err
    assert [c.epsilon for c in command.profile_configs] == [1.0, 0.3]


@pytest.mark.parametrize(("typed", "epsilon"), [("\n", 1.0), ("0.7\n", 0.7)])
def test_at_a_terminal_the_price_is_asked_for(
    filled: Path, command: CommandLine, monkeypatch: pytest.MonkeyPatch, typed: str, epsilon: float
) -> None:
    command.profiled = app.profile(config(filled, tables=("items",)))

    def answer(text: str, default: float, **_: object) -> float:
        assert (text, default) == ("epsilon", 1.0)
        return float(typed.strip() or default)

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", answer)
    assert command("profile", str(filled / "p.yaml"), "--json") == 0
    assert [c.epsilon for c in command.profile_configs] == [epsilon]
    assert command.out.startswith("{"), "what is said of the price is not in the way of programs"
