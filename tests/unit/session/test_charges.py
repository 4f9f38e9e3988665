"""What EXPLAIN and hush.estimate say of a statement is what the ledger is charged then, to the unit.

Random statements of several logins and sessions that have seen each other's groups, totals, averages and quantiles.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from proxy.dp.accounting import ATTO, PICO
from proxy.errors import BudgetSpent, HushError
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.metrics import Metrics
from proxy.plan.charge import Account
from proxy.session.asking.plancache import PlanCache
from proxy.session.session import ClientSession
from tests.unit.session.running import Slow, session_with
from tests.unit.session.test_estimate import asked

_Told = dict[str, tuple[int, int]]  # by account, rho and delta in whole units
_STATEMENTS = (
    "select plan, count(*) from users group by plan",
    "select plan, sum(age) from users group by plan",
    "select count(*) from users",
    "select count(*) as n from users where 1 = 1",
    "select count(*) from users where plan = 'pro'",
    "select plan, avg(age) from users group by plan",
    "select avg(age), count(age) from users",
    "select age > 40, count(*) from users group by 1",
    "select age, count(*) from users group by age",
    "select min(age), max(age) from users",
    "select percentile_cont(0.5) within group (order by age) from users",
    "select plan, age > 40, count(*) from users group by rollup (1, 2)",
    "select count(distinct age) from users",
    "select city, count(*) from users group by city",
    "select (select count(*) from users), (select count(*) from users where plan = 'pro')",
    "select * from (select plan, count(*) from users group by plan) a, (select count(*) from users) b",
    "select stddev(age) from users",
)
_SETTINGS: tuple[Mapping[str, str], ...] = (
    *({},) * 6, {"hush.epsilon": "0.2"}, *({"hush.epsilon": "3"},) * 2, {"hush.fresh": "on"},
    {"hush.max_charge": "0.3"},
    {"hush.target_error": "40"}, {"hush.weights": "1"}, {"hush.session": "team"}, {"hush.consistency": "off"},
)  # fmt: skip
_ROUNDS = 160
_HUSH_SESSION = "hush.session"


def test_what_is_told_beforehand_is_what_is_charged(tmp_path: Path) -> None:
    """Of two logins, one of them an administrator with little to spend, in four sessions and one that they share."""
    rng, noise, tally = random.Random(4), Slow(), Counter[str]()
    noise.may_go_on.set()
    with session_with(noise, tmp_path / "state") as (first, ledger, workers):

        def another(login: str, name: str) -> ClientSession:
            metrics = Metrics(CollectorRegistry())
            return ClientSession(first._dataset, login, name, workers, PlanCache(), metrics)

        sessions = [first, *(another(login, f"{login} {n}") for login, n in (("ann", 2), ("boss", 1), ("boss", 2)))]
        for _ in range(_ROUNDS):
            session, text = rng.choice(sessions), rng.choice(_STATEMENTS)
            settings = {"hush.epsilon": "0.5", **rng.choice(_SETTINGS)}
            tally[_compared(session, ledger, text, settings)] += 1
        assert ledger.verify().releases > 20
    assert tally["paid"] > 30
    assert tally["derived"] > 15
    assert tally["repeated"] > 15
    assert tally["refused"] > 3
    assert tally["too dear"]


def _compared(session: ClientSession, ledger: SqliteLedger, text: str, settings: Mapping[str, str]) -> str:
    """What became of a statement whose price was told twice."""
    try:
        explained, is_refused, computed_from = _explained(session, text, settings)
    except HushError as error:
        with pytest.raises(type(error)):
            asked(session, text, settings)
        return "refused"
    estimated = _estimated(session, text, settings)
    assert explained == estimated, text
    accounts = session._asker(session._dataset.current, settings.get(_HUSH_SESSION, "")).accounts
    before = _spent(ledger, accounts)
    if is_refused:
        with pytest.raises(HushError, match="max_charge"):
            asked(session, text, settings)
        assert _spent(ledger, accounts) == before
        return "refused"
    try:
        asked(session, text, settings)
    except BudgetSpent:
        assert _spent(ledger, accounts) == before
        assert any(before[a.kind][0] + explained[a.kind][0] > a.limit.pico for a in accounts if a.limited)
        return "too dear"
    after = _spent(ledger, accounts)
    charged = {kind: (after[kind][0] - before[kind][0], after[kind][1] - before[kind][1]) for kind in explained}
    assert charged == explained, (text, settings)
    if computed_from:
        return "derived"
    return "paid" if any(pico for pico, _ in charged.values()) else "repeated"


def _spent(ledger: SqliteLedger, accounts: tuple[Account, ...]) -> dict[str, tuple[int, int]]:
    return {b.account.kind.value: (b.spent.pico, b.spent.atto) for b in ledger.balances(accounts, datetime.now(UTC))}


def _explained(session: ClientSession, text: str, settings: Mapping[str, str]) -> tuple[_Told, bool, bool]:
    (array,) = asked(session, f"explain (format json) {text}", settings).arrays
    (data,) = json.loads(json.loads(array.text[1:-1], strict=False))
    told = {a["account"]: _units(a["charge"]["rho"], a["charge"]["delta"]) for a in data["accounts"]}
    return told, data["is_above_max_charge"], any(r["computed_from"] for r in data["releases"])


def _estimated(session: ClientSession, text: str, settings: Mapping[str, str]) -> _Told:
    quoted = text.replace("'", "''")
    found = asked(session, f"select * from hush.estimate('{quoted}')", settings).arrays
    statement, account, rho, _, delta, *_ = (a.text[1:-1].replace('"', "").split(",") for a in found)
    rows = zip(statement, account, rho, delta, strict=True)
    return {name: _units(r, d) for number, name, r, d in rows if number == "1"}


def _units(rho: object, delta: object) -> tuple[int, int]:
    return round(Decimal(str(rho)) * PICO), round(Decimal(str(delta)) * ATTO)
