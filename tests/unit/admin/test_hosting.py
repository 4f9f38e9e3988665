"""Is a policy taken only if the books can keep its promise?"""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.admin.hosting import check_promise
from proxy.errors import LedgerFailed
from proxy.ledger.sqlite import SqliteLedger
from proxy.policy.model import Accounting, EpsilonLimit, Policy, Refresh
from tests.unit.ledger.make import ask, want
from tests.unit.session.make import version
from tests.unit.sql.corpus import policy


def pure(served: Policy) -> Policy:
    privacy = replace(served.privacy, accounting=Accounting.PURE, delta=0.0, delta_pool=0.0)
    return replace(served, privacy=privacy)


def test_accounting_changes_to_zcdp_and_not_back(tmp_path: Path) -> None:
    before, after = version(pure(policy())), version(policy())
    with closing(SqliteLedger(tmp_path / "state")) as ledger:
        ledger.reserve(before.accounts("ann", "s"), want(atto=0), ask())
        for one in (before, after):
            check_promise(ledger, one)
        ledger.reserve(after.accounts("ann", "s"), want("b"), ask())
        check_promise(ledger, after)
        with pytest.raises(LedgerFailed, match="pure was asked of accounts that have spent under zcdp"):
            check_promise(ledger, before)


def test_a_start_logs_the_worst_case_of_what_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    served = policy()
    monthly = replace(served.budgets, session=EpsilonLimit(2, Refresh.MONTH))
    with closing(SqliteLedger(tmp_path / "state")) as ledger, caplog.at_level(logging.WARNING, "hushql"):
        check_promise(ledger, version(replace(served, budgets=monthly)))
    (line,) = caplog.messages
    assert line.startswith(f"{served.dataset}: budgets.session: epsilon 2 comes back every month; worst case in a")
