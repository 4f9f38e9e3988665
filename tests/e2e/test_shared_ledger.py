"""Two proxies, one ledger: a budget is spent once, an answer is one answer, a proxy that dies takes nothing along."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg
import pytest

from tests import places
from tests.e2e.served import Served, serving, shop_policy, write_users, write_yaml
from tests.e2e.shop_data import write_shop
from tests.unit.ledger.server import Database, running_database

QUESTION = b"SELECT plan, count(*), sum(age) FROM users GROUP BY plan ORDER BY plan"


def folder_of(at: Path) -> Path:
    """One machine's policy, data and state: the data are the same everywhere."""
    at.mkdir()
    write_shop(at / "shop.duckdb")
    write_users(at / "users.yaml", {"ann": "analyst", "ben": "analyst"})
    privacy = {**shop_policy()["privacy"], "query_epsilon": 0.5}  # type: ignore[dict-item]  # a mapping by the schema
    budgets = {"dataset": {"epsilon": 2}, "user": {"epsilon": 1.5}}
    write_yaml(at / "shop.yaml", shop_policy(budgets=budgets, privacy=privacy))
    return at


def fresh_answers(served: Served, login: str) -> int:
    """How many questions are answered until the budget is spent."""
    with served.connect("shop", login) as client:
        client.execute("SET hush.fresh = on")
        for number in range(100):
            try:
                client.execute(QUESTION)
            except psycopg.Error as error:
                if error.sqlstate == "DP001":
                    return number
                raise
    raise AssertionError("nothing was refused")


@pytest.mark.long
def test_two_proxies_share_budgets_and_answers(tmp_path: Path) -> None:
    with running_database(places.fast()) as database:
        one, other = folder_of(tmp_path / "one"), folder_of(tmp_path / "other")
        there = {"HUSHQL_LEDGER": database.url}
        with serving(one, [one / "shop.yaml"], there) as first, serving(other, [other / "shop.yaml"], there) as second:
            with first.connect("shop") as here, second.connect("shop") as far:
                assert here.execute(QUESTION).fetchall() == far.execute(QUESTION).fetchall()
                spent = "SELECT epsilon_spent FROM hush.budget WHERE kind = 'user'"
                assert here.execute(spent).fetchone() == far.execute(spent).fetchone()
            assert fresh_answers(first, "ann") == 7 - 1, "an account of 1.5 holds 7 questions of 0.5"
            assert fresh_answers(second, "ann") == 0
            first.process.send_signal(signal.SIGKILL)
            first.process.wait()
            left = fresh_answers(second, "ben")
            assert left == 13 - 7, "the dataset's account of 2 holds 13, whoever asks"
            survives(database, second)


def survives(database: Database, served: Served) -> None:
    """Without its server the ledger refuses, public tables go on, and all is well when it is back."""
    with served.connect("shop") as client:
        client.execute(QUESTION)
        database.stop(signal.SIGQUIT)
        with pytest.raises(psycopg.Error) as refused:
            client.execute(QUESTION)
        assert refused.value.sqlstate == "58030"
        assert not refused.value.diag.message_detail
        assert client.execute("SELECT count(*) FROM stores").fetchone() is not None
        database.start()
        client.execute(QUESTION)
