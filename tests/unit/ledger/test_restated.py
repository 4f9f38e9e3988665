"""What is said of accounts that were kept for other promises is true of them, and silent where nothing changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.dp.accounting import limit_pico
from proxy.ledger.base import Balance, Restated
from proxy.ledger.promises import NEVER_STATED, Break, Standing
from proxy.ledger.restated import breaks_words, outside_words, overspent_lines, promise_words, restated_lines
from proxy.plan.charge import Cost
from proxy.policy.model import Neighbors, Privacy, Promise
from tests.unit.ledger.make import account, ask

PRIVACY = Privacy(unit="customer")
ONE, TWO, THREE = (Cost(limit_pico(PRIVACY, e), 0) for e in (1, 2, 3))
SPENT = Balance(account=account("dataset", "shop", pico=TWO.pico), spent=ONE)
BROKEN = replace(NEVER_STATED, breaks=(Break(ask().at, "user", "household"), Break(ask().at, "household", "row")))


def said(balance: Balance, before: Cost = ONE, privacy: Privacy = PRIVACY) -> list[str]:
    return [*restated_lines(Restated(before, balance), privacy), *overspent_lines((balance,), privacy)]


def test_where_nothing_changed_nothing_is_said() -> None:
    assert said(SPENT) == []
    assert (outside_words(SPENT, PRIVACY), breaks_words(SPENT.standing)) == ("", "")


def test_amounts_before_and_after_are_said() -> None:
    grown = replace(SPENT, spent=Cost(TWO.pico, 3 * 10**11))
    assert said(grown) == [
        "what was spent counts for what is promised now: epsilon 2 and delta 0.0000003 in place of epsilon 1"
    ]


@pytest.mark.parametrize(("spent", "over"), [(TWO, False), (THREE, True), (TWO + Cost(1, 0), True),
                                             (Cost(1, 10**18 + 1), True)])  # fmt: skip
def test_an_account_is_overspent_if_more_was_spent_than_may_be(spent: Cost, over: bool) -> None:
    balance = replace(SPENT, spent=spent)
    assert balance.is_overspent is over
    assert len(said(balance, before=spent)) == over
    assert not replace(balance, account=account("dataset", "shop", limited=False)).is_overspent
    assert not replace(balance, granted=Cost(THREE.pico, 1)).is_overspent


@pytest.mark.parametrize(
    ("promise", "standing", "words", "times"),
    [
        (Promise(), Standing(reach=5, group_size=5), "group_size 5", 25),
        (Promise(5), Standing(reach=10, group_size=5), "group_size 5, replace_one", 4),
        (Promise(3, Neighbors.REPLACE_ONE), Standing(reach=6, group_size=4), "group_size 4, and noise for 6 units", 1),
    ],
)
def test_a_stronger_promise_that_stays_is_said(promise: Promise, standing: Standing, words: str, times: int) -> None:
    of = replace(PRIVACY, group_size=promise.group_size, neighbors=promise.neighbors)
    balance = replace(SPENT, account=replace(SPENT.account, promise=promise), standing=standing)
    counts = f"each charge under this policy counts {times} times"
    assert said(balance, privacy=of) == [f"more was promised before ({words}) and stays so for the accounts: {counts}"]


def test_every_break_is_said_for_ever_with_what_had_been_spent() -> None:
    balance = replace(SPENT, standing=BROKEN, outside=ONE)
    words = (
        "unit user until 2026-01-02, household since, unit household until 2026-01-02, row since:"
        " epsilon 1 spent before is outside the promise"
    )
    assert outside_words(balance, PRIVACY) == words
    assert said(balance) == [words]


def test_a_promise_is_named_in_words_of_the_policy() -> None:
    assert promise_words(NEVER_STATED) == "group_size 1"
    assert promise_words(Standing(reach=2, group_size=1)) == "group_size 1, replace_one"


def test_an_account_can_pay_what_is_left_of_it() -> None:
    assert SPENT.affordable == TWO.pico - ONE.pico
