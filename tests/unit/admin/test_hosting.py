"""Is a policy taken only if the books can keep its promise?"""

from __future__ import annotations

import logging
from collections.abc import Callable
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

Edit = Callable[[Policy], Policy]


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


def _privacy(**changes: object) -> Edit:
    return lambda p: replace(p, privacy=replace(p.privacy, **changes))  # type: ignore[arg-type]


def _budgets(**changes: object) -> Edit:
    return lambda p: replace(p, budgets=replace(p.budgets, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("edit", "left"),
    [
        (_privacy(delta=1e-7, delta_pool=5e-8), False),
        (_privacy(max_query_epsilon=3.0, reuse_factor=5.0, min_units=9), False),
        (_privacy(unit="person", group_size=2), False),
        (_budgets(user=EpsilonLimit(3)), True),
        (_budgets(user=EpsilonLimit(0.01)), True),
        (_budgets(session=EpsilonLimit(2, Refresh.DAY)), True),
        (lambda p: replace(p, data_version="next", digest="f" * 64), False),
        (lambda p: replace(p, tables={n: t for n, t in p.tables.items() if n != "stores"}), False),
    ],
)
def test_an_edited_policy_forgets_nothing_that_was_spent(tmp_path: Path, edit: Edit, left: bool) -> None:
    """left: whether there is a limit afterwards, of which what was spent before is gone."""
    before, after = version(policy()), version(edit(policy()))
    cost = 10**9
    with closing(SqliteLedger(tmp_path / "state")) as ledger:
        ledger.reserve(before.accounts("ann", "s"), want(pico=cost, atto=0), ask())
        check_promise(ledger, after)
        balances = ledger.balances(after.accounts("ann", "s"), ask().at)
        assert [b.spent.pico for b in balances] == [cost] * len(before.accounts("ann", "s"))
        limited = [b for b in balances if b.account.limited and b.account.kind.is_own]
        assert bool(limited) is left
        assert all(b.remaining.pico == max(0, b.account.limit.pico - cost) for b in limited)


def test_a_start_logs_the_worst_case_of_what_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    served = policy()
    monthly = replace(served.budgets, session=EpsilonLimit(2, Refresh.MONTH))
    with closing(SqliteLedger(tmp_path / "state")) as ledger, caplog.at_level(logging.WARNING, "hushql"):
        check_promise(ledger, version(replace(served, budgets=monthly)))
    (line,) = caplog.messages
    assert line.startswith(f"{served.dataset}: budgets.session: epsilon 2 comes back every month; worst case in a")
