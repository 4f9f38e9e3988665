"""Asking again, asking otherwise and asking together: nobody learns more than was paid for, nobody pays less."""

from __future__ import annotations

import shutil
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from proxy.errors import LedgerFailed
from proxy.ledger.base import Wanted
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.plan.charge import Cost, ReleaseKey, Request
from proxy.wire import messages
from tests.attacks.hostile import Attacked, Client, outcome, refusal, rows, spent, value
from tests.unit.ledger.make import account, ask

COUNT = "SELECT count(*) FROM people"


def test_the_same_question_has_the_same_answer_and_one_price(attacked: Attacked) -> None:
    with attacked.connect() as client:
        first = value(client, COUNT)
        paid = spent(client)
        assert {value(client, COUNT) for _ in range(100)} == {first}
        assert spent(client) == paid


def test_fresh_answers_are_paid_one_by_one(attacked: Attacked) -> None:
    with attacked.connect(epsilon=0.1) as client:
        client.execute("SET hush.fresh = on")
        start = spent(client)
        value(client, COUNT)
        price = spent(client) - start
        answers = [value(client, COUNT) for _ in range(20)]
        assert len(set(answers)) > 5  # sd 41: fewer values in 20 draws are one run in 10^15
        assert spent(client) - start == pytest.approx(21 * price)


@pytest.mark.parametrize(
    "disguised",
    [
        "SELECT count(*) AS n FROM people p",
        "SELECT   count( * ) /* again */ FROM people -- now",
        "SELECT count(*) FROM public.people WHERE true AND 1 = 1",
        "SELECT count(*) + 0 FROM people",
        "SELECT count(1) FROM people",
        "SELECT n FROM (SELECT count(*) AS n FROM people) AS t",
        "SELECT count(*) FROM people WHERE v + 0 = v OR v IS NULL OR v IS NOT NULL",
        "SELECT count(*) FROM people WHERE NOT name = 'x' OR name = 'x' OR name IS NULL",
    ],
)
def test_a_question_in_disguise_is_the_stored_answer_or_paid(disguised: str, attacked: Attacked) -> None:
    with attacked.connect(epsilon=0.2) as client:
        plain, paid = value(client, COUNT), spent(client)
        again = value(client, disguised)
        assert again == plain or spent(client) > paid


def test_both_sides_of_a_difference_are_paid_and_noisy(attacked: Attacked) -> None:
    with attacked.connect(epsilon=0.1) as client:
        client.execute("SET hush.fresh = on")
        differences = []
        for _ in range(15):
            paid = spent(client)
            everybody = value(client, COUNT)
            between = spent(client)
            others = value(client, "SELECT count(*) FROM people WHERE name <> 'alice' OR name IS NULL")
            assert paid < between < spent(client)
            differences.append(everybody - others)
        assert statistics.stdev(differences) > 5  # two noises of sd about 29 each: fails by chance below 1e-9


def test_a_predicate_for_one_person_is_refused_by_key_and_noisy_by_attributes(attacked: Attacked) -> None:
    with attacked.connect(epsilon=0.1) as client:
        for condition in ("pid = 777", "pid + 0 = 777", "pid IN (777)", "pid BETWEEN 777 AND 777", "-pid = -777",
                          "pid::text = '777'", "NOT pid <> 777", "pid = 700 + 77", "CASE pid WHEN 777 THEN true END",
                          "coalesce(pid, 0) = 777", "pid IS NOT DISTINCT FROM 777"):  # fmt: skip
            assert refusal(client, f"{COUNT} WHERE {condition}")[0] == "DP007", condition
        met = "SELECT p.pid AS u, e.pid AS k, count(*) FROM people p LEFT JOIN events e USING (pid) GROUP BY 1, 2"
        assert refusal(client, f"SELECT count(*) FROM ({met}) AS t WHERE k = 777")[0] == "DP007"
        client.execute("SET hush.fresh = on; SET hush.nonnegative = off")
        found = [value(client, f"{COUNT} WHERE name = 'alice'") for _ in range(15)]
        assert statistics.stdev(found) > 5  # sd 41: fails by chance below 1e-10


def test_random_subsets_by_a_hash_of_the_key_are_refused(eve: Client) -> None:
    for condition in ("pid % 2 = 0", "md5(pid::text) < '8'", "hashtext(pid::text) > 0", "(pid & 1) = 1", "pid / 2 = 3",
                      "length(pid::text) = 3", "substring(pid::text, 3, 1) = '7'", "pid * 7 % 11 = 3"):  # fmt: skip
        state, _ = refusal(eve, f"{COUNT} WHERE {condition}")
        assert state in ("DP006", "DP007"), condition


def test_reconstruction_by_many_subsets_ends_with_the_budget(attacked: Attacked) -> None:
    """Subsets by attributes; epsilon 2 in all holds less than 16 questions of 0.5, and nothing comes after."""
    with attacked.connect("tiny", "bob") as client:
        answered = [outcome(client, f"{COUNT} WHERE i % {k + 2} = 0 AND num < {k}") for k in range(60)]
        numbers = [a for a in answered if not isinstance(a, str)]
        assert 1 <= len(numbers) <= 16
        assert set(answered[len(numbers) :]) == {"DP001"}


def test_users_and_sessions_share_the_account_of_the_dataset(attacked: Attacked) -> None:
    with attacked.connect(login="boss") as boss, attacked.connect(login="eve") as eve:
        before = spent(boss, "dataset")
        asked = {}
        for number in range(6):
            with attacked.connect(login=("eve", "bob")[number % 2]) as client:
                asked[number] = value(client, f"{COUNT} WHERE v > {number} AND v > 0.123")
        together = spent(boss, "dataset") - before
        own = spent(eve)
        value(eve, f"{COUNT} WHERE v > 0 AND v > 0.124")
        assert together == pytest.approx(6 * (spent(eve) - own))


def test_racing_spenders_never_pass_the_limit(attacked: Attacked) -> None:
    def ask_one(number: int) -> float | str:
        with attacked.connect("race", ("eve", "bob")[number % 2]) as client:
            return outcome(client, f"{COUNT} WHERE v > {number}.5")

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask_one, range(50)))
    assert 1 <= sum(not isinstance(a, str) for a in answers) <= 20
    assert {a for a in answers if isinstance(a, str)} == {"DP001"}
    with attacked.connect("race", "boss") as boss:
        ((limit, used),) = rows(boss, "SELECT rho_limit, rho_spent FROM hush.budget WHERE kind = 'dataset'")
    assert float(str(used)) <= float(str(limit))


def test_two_equal_questions_at_once_are_each_paid_or_one_answer(attacked: Attacked) -> None:
    sql = f"{COUNT} WHERE v > 1.23456"
    with attacked.connect(login="boss") as boss:
        before = spent(boss, "dataset")
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda _: _ask(attacked, sql), range(6)))
        one = spent(boss, "dataset") - before
        value(boss, f"{COUNT} WHERE v > 1.23457")
        price = spent(boss, "dataset") - before - one
        assert round(one / price) >= len(set(answers))


def _ask(attacked: Attacked, sql: str) -> float:
    with attacked.connect() as client:
        return value(client, sql)


# --- the ledger ---------------------------------------------------------------------------------------------------


def _wanted(name: str) -> tuple[Wanted, ...]:
    key = ReleaseKey(fingerprint=name, policy_digest="d", data_version="1")
    return (Wanted(Request(key=key, cost=Cost(5, 0)), "SELECT 1"),)


def test_a_charge_without_an_answer_survives_a_restart(tmp_path: Path) -> None:
    accounts = (account("dataset"),)
    ledger = SqliteLedger(tmp_path)
    ledger.reserve(accounts, _wanted("a"), ask())
    ledger.close()
    again = SqliteLedger(tmp_path)
    assert again.balances(accounts)[0].spent == Cost(5, 0)
    again.close()


def test_a_restored_copy_of_the_ledger_is_noticed(tmp_path: Path) -> None:
    accounts = (account("dataset"),)
    ledger = SqliteLedger(tmp_path / "state")
    ledger.reserve(accounts, _wanted("a"), ask())
    ledger.close()
    copies = {p.name: p.read_bytes() for p in (tmp_path / "state").iterdir() if (p.is_file() and ".db" in p.name)
              or ".sqlite" in p.name}  # fmt: skip
    assert copies
    ledger = SqliteLedger(tmp_path / "state")
    ledger.reserve(accounts, _wanted("b"), ask())
    ledger.close()
    for name, content in copies.items():
        (tmp_path / "state" / name).write_bytes(content)
    with pytest.raises(LedgerFailed):
        SqliteLedger(tmp_path / "state")
    shutil.rmtree(tmp_path / "state")


# --- the knob -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon", ["0", "-1", "1e-9", "1e9", "NaN", "inf", "-inf", "1e-400", "0x10", "", "1;2", "100.1"]
)
def test_an_impossible_epsilon_is_refused_however_it_is_set(epsilon: str, attacked: Attacked) -> None:
    with attacked.connect() as client:
        before = spent(client)
        if epsilon:
            assert refusal(client, f"SET hush.epsilon = '{epsilon}'")[0] == "22023"
            assert refusal(client, f"SET SESSION hush.epsilon TO '{epsilon}'")[0] == "22023"
        client.execute("SELECT set_config('hush.epsilon', %s, false)", (epsilon,))
        if epsilon:
            assert refusal(client, COUNT)[0] == "22023"
            client.execute("RESET hush.epsilon")
            assert spent(client) == before
        else:
            assert value(client, COUNT) > 0
    if epsilon and ";" not in epsilon:
        with attacked.connect(options=f"-c hush.epsilon={epsilon}") as client:
            assert refusal(client, COUNT)[0] == "22023"


def test_a_setting_between_prepare_and_execute_counts_when_it_runs(attacked: Attacked) -> None:
    sql = f"{COUNT} WHERE v > 0.777"
    with attacked.raw() as client:
        client.query("SET hush.epsilon = 1")
        client.sync(messages.parse(b"s", sql.encode()))
        client.query("SELECT set_config('hush.epsilon', 'nan', false)")
        bind = messages.bind(messages.Bind(portal=b"", statement=b"s", formats=(), values=(), result_formats=()))
        replies = client.sync(bind, messages.execute(b""))
        assert [r.sqlstate for r in replies if r.kind == "E"] == ["22023"]


def test_a_setting_inside_a_rolled_back_transaction_costs_what_it_was(attacked: Attacked) -> None:
    with attacked.connect(epsilon=0.1) as client:
        client.execute("SET hush.fresh = on")
        value(client, COUNT)
        start = spent(client)
        value(client, COUNT)
        cheap = spent(client) - start
        client.execute("BEGIN")
        client.execute("SET LOCAL hush.epsilon = 10")
        value(client, COUNT)
        client.execute("ROLLBACK")
        assert spent(client) - start > 100 * cheap


def test_lowered_bounds_never_rise(attacked: Attacked) -> None:
    with attacked.connect(epsilon=1) as client:
        sd = "SELECT hush.sd(count(*)), count(*) FROM events"
        ((plain, _),) = rows(client, sd)
        client.execute("SET hush.max_rows_per_group = 1000000000")
        client.execute("SET hush.max_groups = 1000000000")
        ((wide, _),) = rows(client, sd)
        client.execute("SET hush.max_rows_per_group = 1")
        ((narrow, _),) = rows(client, sd)
        assert plain == wide
        assert float(str(narrow)) < float(str(plain))
        for bad in ("0", "-1", "1.5", "nan", "x"):
            assert refusal(client, f"SET hush.max_groups = '{bad}'")[0] == "22023"


# --- refusals and refunds -------------------------------------------------------------------------------------------


def test_the_refusal_of_a_spent_budget_says_nothing_about_the_answer(attacked: Attacked) -> None:
    with attacked.connect("tiny", "eve") as client:
        asked = 0
        while isinstance(outcome(client, f"{COUNT} WHERE v > {asked}.25"), float):
            asked += 1
        said = {
            refusal(client, sql)
            for sql in (
                COUNT + " WHERE name = 'alice'",
                COUNT + " WHERE name = 'nobody'",
                "SELECT sum(v) FROM people WHERE v < 0",
                "SELECT kind, count(*) FROM people GROUP BY kind",
            )
        }
        assert len(said) == 1


def _first_charge(boss: Client, before: float) -> float:
    """What the dataset has spent as soon as it is more than `before`."""
    deadline = time.monotonic() + 60
    while (now := spent(boss, "dataset")) == before:
        assert time.monotonic() < deadline, "nothing is charged"
        time.sleep(0.01)
    return now


def test_hanging_up_gives_nothing_back(attacked: Attacked) -> None:
    with attacked.connect(login="boss") as boss:
        before = spent(boss, "dataset")
        client = attacked.raw()
        client.send(messages.query(b"SELECT count(*) FROM people WHERE v > 3.14159"))
        charged = _first_charge(boss, before)
        client.socket.close()
        time.sleep(0.2)
        assert spent(boss, "dataset") >= charged


def test_cancelling_gives_nothing_back(attacked: Attacked) -> None:
    with attacked.connect(login="boss") as boss, attacked.connect() as client:
        before = spent(boss, "dataset")
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(outcome, client, f"{COUNT} WHERE v > 2.71828")
            charged = _first_charge(boss, before)
            client.cancel_safe()
            running.result()
        assert spent(boss, "dataset") >= charged


def test_a_transaction_that_is_rolled_back_is_paid(attacked: Attacked) -> None:
    with attacked.connect() as client:
        paid = spent(client)
        with pytest.raises(psycopg.errors.DivisionByZero), client.transaction():
            value(client, f"{COUNT} WHERE v > 1.41421")
            client.execute("SELECT 1 / 0")
        assert spent(client) > paid
