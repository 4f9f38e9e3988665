"""Is a policy taken only if the books can keep its promise?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from proxy.admin.hosting import PublicSource, keep_promise
from proxy.dp.accounting import limit_pico
from proxy.engines.base import Engine
from proxy.errors import LedgerFailed
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.policy.model import Accounting, EpsilonLimit, Neighbors, Policy, Refresh, Table
from proxy.session.uses import Uses
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
            keep_promise(ledger, one)
        ledger.reserve(after.accounts("ann", "s"), want("b"), ask())
        keep_promise(ledger, after)
        with pytest.raises(LedgerFailed, match="pure was asked of accounts that have spent under zcdp"):
            keep_promise(ledger, before)


def _privacy(**changes: object) -> Edit:
    return lambda p: replace(p, privacy=replace(p.privacy, **changes))  # type: ignore[arg-type]


def _digest(edited: Policy) -> Policy:
    """Another policy has another digest."""
    return replace(edited, digest="e" * 64)


def _budgets(**changes: object) -> Edit:
    return lambda p: replace(p, budgets=replace(p.budgets, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("edit", "left"),
    [
        (_privacy(delta=1e-7, delta_pool=5e-8), False),
        (_privacy(max_query_epsilon=3.0, reuse_factor=5.0, min_units=9), False),
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
        keep_promise(ledger, before)
        ledger.reserve(before.accounts("ann", "s"), want(pico=cost, atto=0), ask())
        keep_promise(ledger, after)
        balances = ledger.balances(after.accounts("ann", "s"), ask().at)
        assert [b.spent.pico for b in balances] == [cost] * len(before.accounts("ann", "s"))
        limited = [b for b in balances if b.account.limited and b.account.kind.is_own]
        assert bool(limited) is left
        assert all(b.remaining.pico == max(0, b.account.limit.pico - cost) for b in limited)


@pytest.mark.parametrize(
    ("edit", "times"),
    [
        (_privacy(group_size=5), 25),
        (_privacy(neighbors=Neighbors.REPLACE_ONE), 4),
        (_privacy(group_size=5, neighbors=Neighbors.REPLACE_ONE), 100),
    ],
)
def test_what_was_spent_counts_for_a_stronger_promise_of_every_account_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, edit: Edit, times: int
) -> None:
    limits = {"dataset": EpsilonLimit(20), "user": EpsilonLimit(1)}
    served = _budgets(**limits)(policy())
    before, after = version(served), version(_digest(edit(served)))
    cost = limit_pico(served.privacy, 0.5)
    with closing(SqliteLedger(tmp_path / "state")) as ledger, caplog.at_level(logging.WARNING, "hushql"):
        keep_promise(ledger, before)
        ledger.reserve(before.accounts("ann", "s"), want(pico=cost, atto=0), ask())
        assert caplog.messages == []
        keep_promise(ledger, after)
        found = ledger.balances(after.accounts("ann", "s"), ask().at)
        assert [b.spent.pico for b in found] == [cost * times] * 4
        counts, overspent = caplog.messages
        assert counts.startswith("shop: what was spent counts for what is promised now: epsilon ")
        assert counts.endswith(" in place of epsilon 0.5")
        assert overspent.startswith("shop: the user account shop/ann is overspent: epsilon ")
        assert overspent.endswith(
            ", of epsilon 1 and delta 0.0000005; new questions are refused, what was answered is answered again"
        )
        caplog.clear()
        keep_promise(ledger, before)
        assert [b.spent.pico for b in ledger.balances(before.accounts("ann", "s"), ask().at)] == [cost * times] * 4
        weaker, overspent = caplog.messages
        assert weaker.endswith(f"and stays so for the accounts: each charge under this policy counts {times} times")


def test_another_unit_is_not_served_unless_it_is_acknowledged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = _digest(_privacy(unit="household")(policy()))
    with closing(SqliteLedger(tmp_path / "state")) as ledger, caplog.at_level(logging.WARNING, "hushql"):
        keep_promise(ledger, version())
        ledger.reserve(version().accounts("ann", "s"), want(atto=0, digest=policy().digest), ask())
        with pytest.raises(LedgerFailed, match="not the one that its accounts were kept for"):
            keep_promise(ledger, version(other))
        keep_promise(ledger, version(replace(other, unit_changed_from=policy().privacy.unit)))
    (line,) = caplog.messages
    assert line.startswith(f"shop: unit {policy().privacy.unit} until ")
    assert line.endswith(", household since: epsilon 0.0001018 spent before is outside the promise")


def test_a_start_logs_the_worst_case_of_what_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    served = policy()
    monthly = replace(served.budgets, session=EpsilonLimit(2, Refresh.MONTH))
    with closing(SqliteLedger(tmp_path / "state")) as ledger, caplog.at_level(logging.WARNING, "hushql"):
        keep_promise(ledger, version(replace(served, budgets=monthly)))
    (line,) = caplog.messages
    assert line.startswith(f"{served.dataset}: budgets.session: epsilon 2 comes back every month; worst case in a")


def test_public_rows_wait_for_the_engine_and_end_where_none_comes() -> None:
    """A front is built while its data are opened; a reload's rows come from the new engine."""
    served = version(policy())
    (table,) = (t for t in served.policy.tables.values() if t.name == "stores")
    first, second = Rows(((1,),)), Rows(((2,),))
    source, none = PublicSource(Uses()), PublicSource(Uses())
    with ThreadPoolExecutor(2) as threads:
        waiting, lost = (threads.submit(list, one.rows(table)) for one in (source, none))
        with pytest.raises(TimeoutError):
            waiting.result(0.05)
        source.engine = cast(Engine, first)
        none.close()
        assert waiting.result() == [(1,)]
        with pytest.raises(CancelledError):
            lost.result()
    source.engine = cast(Engine, second)
    assert list(source.rows(table)) == [(2,)]
    source.close()
    assert (first.is_closed, second.is_closed) == (False, True)


@dataclass(slots=True)
class Rows:
    """An engine of nothing but public rows."""

    found: tuple[tuple[object, ...], ...]
    is_closed: bool = False

    def public_rows(self, _table: Table) -> Iterator[tuple[object, ...]]:
        yield from self.found

    def close(self) -> None:
        self.is_closed = True
