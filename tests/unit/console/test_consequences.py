"""What an edit costs and gives away is told rightly."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.admin.files import read_policy
from proxy.console.consequences import LEVEL, compared, gains
from proxy.dp.accounting import limit_pico, pool_atto
from proxy.dp.attacker import right_guess_of_secret_up, right_guess_up
from proxy.plan.charge import Cost
from proxy.policy.load import load_policy
from proxy.policy.model import Policy

SHOP = Path(__file__).resolve().parents[3] / "policies" / "shop.yaml"


@pytest.fixture(scope="module")
def shop() -> Policy:
    return read_policy(SHOP, {})


def edited(old: str, new: str) -> Policy:
    text = SHOP.read_text()
    assert old in text
    return load_policy(text.replace(old, new), filename=str(SHOP), environment={})


def test_what_an_attacker_gains_is_that_of_the_claim(shop: Policy) -> None:
    found = {gain.account: gain for gain in gains(shop, {"by everybody": Cost(0, 0)})}
    pico, atto = limit_pico(shop.privacy, 10.0), pool_atto(shop.privacy)
    user = found["user"]
    assert user.epsilon == "10"
    assert user.odds == "1 to 1 becomes at most 22,027 to 1"
    for words, share in (
        (user.present, right_guess_up(shop.privacy, pico, atto)),
        (user.secret, right_guess_of_secret_up(shop.privacy, pico, atto)),
    ):
        assert 0 <= float(words.removesuffix(" %")) - 100 * share < 0.1
    assert user.accounts == "1 at least"
    assert found["role"].present == "100 %"
    assert found["spent so far: by everybody"].odds == "1 to 1 becomes at most 1.00 to 1"


def test_where_the_dataset_allows_less_no_number_of_accounts_is_enough() -> None:
    small = edited("dataset: {epsilon: 20}", "dataset: {epsilon: 1}")
    (user,) = (gain for gain in gains(small, {}) if gain.account == "user")
    limit = limit_pico(small.privacy, 1.0)
    assert right_guess_of_secret_up(small.privacy, limit, pool_atto(small.privacy)) < LEVEL
    assert user.accounts.startswith("never: the dataset's account allows ")


def test_pure_accounting_knows_no_chance_beside_the_odds() -> None:
    text = SHOP.read_text().replace("accounting: zcdp", "accounting: pure").replace("  delta: 1e-6\n", "")
    text = text.replace("neighbors: add_remove", "neighbors: replace_one")
    policy = load_policy(text, filename=str(SHOP), environment={})
    (dataset, *_) = gains(policy, {})
    assert dataset.delta == ""
    assert dataset.present == dataset.secret  # to be exchanged is what neighbours are


def test_a_huge_epsilon_is_told_as_a_power_of_ten() -> None:
    large = edited("dataset: {epsilon: 20}", "dataset: {epsilon: 50}")
    (dataset, *_) = gains(large, {})
    assert dataset.odds == "1 to 1 becomes at most 10^22 to 1"


def test_each_table_has_its_typical_questions_now_and_after(shop: Policy) -> None:
    after = edited("plan: {type: text, values: [free, pro, team]}", "plan: {type: text}")
    rows = {row.statement: row for row in (ask() for ask in compared(shop, after))}
    assert {"SELECT count(*) FROM users", "SELECT sum(amount), avg(amount) FROM orders"} <= set(rows)
    assert "SELECT status, count(*) FROM orders GROUP BY status" in rows
    assert not any("stores" in statement or "user_id" in statement for statement in rows)
    assert all("off by" in row.now and row.now.startswith("epsilon 0.79; ") for row in rows.values())


def test_a_column_that_is_called_as_a_word_of_sql_can_be_asked_about(shop: Policy) -> None:
    after = edited("plan: {type: text, values", "order: {type: text, values")
    rows = {row.statement: row for row in (ask() for ask in compared(shop, after))}
    assert "off by" in rows['SELECT "order", count(*) FROM users GROUP BY "order"'].after


def test_a_question_that_an_edit_makes_impossible_says_why(shop: Policy) -> None:
    before = edited("price: {type: double precision, bounds: [0, 400]}", "price: {type: double precision}")
    rows = [ask() for ask in compared(before, shop)]
    (row,) = (row for row in rows if "price" in row.statement)
    assert row.now.startswith("refused: ")
    assert "off by" in row.after
