"""The clock of the machine is set back, or ahead: budgets depend on no clock."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from proxy.ledger.base import AccountSpent, Question
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.plan.charge import Account
from tests.unit.ledger.make import account, want

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
JUMPS = (0.0, -3600.0, 7200.0, -86_400.0 * 365 * 30, 86_400.0 * 365 * 70, -1e-6)
ACCOUNTS: tuple[Account, ...] = (account("dataset", "tiny"), account("user", "tiny/ann", pico=6000))


def ask_at(offset_s: float) -> Question:
    return Question(login="tiny/ann", query="select count(*) from people", at=NOON + timedelta(seconds=offset_s))


def test_a_clock_that_jumps_gives_nothing_back(tmp_path: Path) -> None:
    """Charges add up in the order they were made, across restarts, whatever time they carry."""
    for number, offset in enumerate(JUMPS):
        with closing(SqliteLedger(tmp_path / "state")) as ledger:
            ledger.reserve(ACCOUNTS, want(f"{number}", 1000), ask_at(offset))
            spent = [balance.spent.pico for balance in ledger.balances(ACCOUNTS)]
            assert spent == [1000 * (number + 1)] * 2
            assert ledger.verify().entries == number + 1
    with closing(SqliteLedger(tmp_path / "state")) as ledger:
        for offset in JUMPS:
            with pytest.raises(AccountSpent):
                ledger.reserve(ACCOUNTS, want("one too many", 1000), ask_at(offset))
        assert [entry.at for entry in ledger.entries()] == [NOON + timedelta(seconds=offset) for offset in JUMPS]
        assert len(ledger.history("tiny/ann", 100)) == len(JUMPS)
