"""How every ledger counts what was spent when more is promised: the same tests for each backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from proxy.dp.accounting import ATTO, PICO
from proxy.dp.selection import shown_atto_up
from proxy.errors import LedgerFailed
from proxy.ledger.base import AccountingChanged, AccountSpent, Ledger
from proxy.ledger.chain import Pledged
from proxy.ledger.exchange import Item, read
from proxy.ledger.promises import PolicyOutdated, PromiseRefused, UnitChanged
from proxy.plan.charge import Account, Cost, Reserved
from proxy.policy.model import Accounting, Neighbors, Promise, Refresh
from tests.unit.ledger.make import EARLIER, RULE, account, ask, gift, pledge, reserved_of, want

FIVE = Promise(5)
REPLACED = Promise(1, Neighbors.REPLACE_ONE)
BOTH = Promise(5, Neighbors.REPLACE_ONE)
DAY_S = 86400.0


def payers(promise: Promise = Promise(), *, accounting: Accounting = Accounting.ZCDP, dataset: str = "shop",  # noqa: B008
           pico: int = PICO) -> tuple[Account, ...]:  # fmt: skip
    made = (
        account("dataset", dataset, pico=pico, accounting=accounting),
        account("role", f"{dataset}/analyst", limited=False, accounting=accounting),
        account("user", f"{dataset}/ann", pico=pico, accounting=accounting),
        account("session", f"{dataset}/ann/1", pico=pico, accounting=accounting, refresh=Refresh.DAY),
    )
    return tuple(replace(a, promise=promise) for a in made)


def promised(ledger: Ledger, promise: Promise, of: tuple[Account, ...], **changes: str) -> tuple[Account, ...]:
    """The accounts after the promise was stated."""
    now = tuple(replace(a, promise=promise) for a in of)
    ledger.pledge(pledge(promise, dataset=of[0].name, **changes), now[0], ask().at)
    return now


def spent(ledger: Ledger, accounts: tuple[Account, ...]) -> list[Cost]:
    return [b.spent for b in ledger.balances(accounts, ask().at)]


class PromiseSuite:
    """Subclasses define the fixtures `open_ledger` and `take_in`, which fills it before it is opened."""

    @pytest.fixture
    def open_ledger(self) -> Callable[[], Ledger]:
        raise NotImplementedError

    @pytest.fixture
    def take_in(self) -> Callable[[Iterator[Item]], object]:
        raise NotImplementedError

    @pytest.fixture
    def ledger(self, open_ledger: Callable[[], Ledger]) -> Iterator[Ledger]:
        opened = open_ledger()
        yield opened
        opened.verify()
        opened.close()

    @pytest.mark.parametrize(
        ("promise", "times", "larger"),
        [(FIVE, 25, True), (REPLACED, 4, False), (BOTH, 100, True), (Promise(), 1, False)],
    )
    def test_what_was_spent_counts_for_what_is_promised_since(
        self, ledger: Ledger, promise: Promise, times: int, larger: bool
    ) -> None:
        accounts = promised(ledger, Promise(), payers())
        ledger.reserve(accounts, want("a", 1000, 0) + want("b", 10, 7, keys=(RULE, RULE)), ask())
        assert spent(ledger, accounts) == [Cost(1010, 7)] * 4
        atto = 2 * shown_atto_up(RULE, 5) if larger else 7
        assert atto > 7 or not larger
        now = promised(ledger, promise, accounts)
        assert spent(ledger, now) == [Cost(1010 * times, atto)] * 4
        assert [t.spent for t in ledger.all_accounts()] == [Cost(1010 * times, atto)] * 4
        ledger.reserve(now, want("c", 3, 2, keys=(RULE,)), ask(after_s=1))
        assert spent(ledger, now) == [Cost(1010 * times + 3, atto + 2)] * 4

    def test_epsilon_counts_as_often_as_units_and_its_square_only_as_rho(self, ledger: Ledger) -> None:
        pure = promised(ledger, Promise(), payers(accounting=Accounting.PURE, pico=9 * PICO))
        ledger.reserve(pure, want("a", PICO // 2, 0), ask())
        pure = promised(ledger, FIVE, pure)
        assert spent(ledger, pure) == [Cost(5 * PICO // 2, 0)] * 4
        zcdp = tuple(replace(a, accounting=Accounting.ZCDP) for a in pure)
        assert spent(ledger, zcdp) == [Cost(25 * PICO // 8, 0)] * 4
        ledger.reserve(zcdp, want("b", 8, 0), ask())
        assert spent(ledger, promised(ledger, BOTH, zcdp)) == [Cost(100 * PICO // 8 + 32, 0)] * 4
        with pytest.raises(AccountingChanged):
            promised(ledger, BOTH, pure)

    def test_an_edit_back_gives_nothing_back_and_later_charges_count_for_the_stronger_promise(
        self, ledger: Ledger
    ) -> None:
        weak = promised(ledger, Promise(), payers())
        ledger.reserve(weak, want("a"), ask())
        strong = promised(ledger, FIVE, weak)
        weak = promised(ledger, Promise(), strong)
        before = spent(ledger, weak)
        assert {c.pico for c in before} == {25_000}
        assert ledger.quote(weak, (want("b", keys=(RULE,))[0].request,)) == (Cost(25_000, shown_atto_up(RULE, 5)),) * 4
        receipt = ledger.reserve(weak, want("b", keys=(RULE,)), ask())
        assert receipt.charged == (Cost(25_000, shown_atto_up(RULE, 5)),) * 4
        assert spent(ledger, weak) == [a + b for a, b in zip(before, receipt.charged, strict=True)]
        assert receipt.balances[0].counted(1000) == 25_000

    def test_windows_of_the_present_count_too(self, ledger: Ledger) -> None:
        daily = (account("dataset", "shop"), account("user", "shop/ann", refresh=Refresh.DAY),
                 account("session", "shop/ann/1", refresh=Refresh.MONTH))  # fmt: skip
        accounts = promised(ledger, Promise(), daily)
        for number, day in enumerate((0, 1)):
            ledger.reserve(accounts, want(f"q{number}", keys=(RULE,)), ask(after_s=day * DAY_S))
        now = promised(ledger, FIVE, accounts)
        found = [b.spent.pico for b in ledger.balances(now, ask(after_s=DAY_S).at)]
        assert found == [50_000, 25_000, 50_000]
        deltas = [b.spent.atto for b in ledger.balances(now, ask(after_s=DAY_S).at)]
        assert deltas == [2 * shown_atto_up(RULE, 5), shown_atto_up(RULE, 5), 2 * shown_atto_up(RULE, 5)]
        assert ledger.balances(now, ask(after_s=2 * DAY_S).at)[1].spent == Cost(0, 0)

    def test_an_account_that_is_overspent_pays_for_nothing_and_repeats_are_free(self, ledger: Ledger) -> None:
        accounts = promised(ledger, Promise(), payers(pico=2000))
        ledger.store.put(reserved_of(ledger.reserve(accounts, want(), ask()).items[0]), b"noise")
        now = tuple(replace(a, promise=FIVE) for a in accounts)
        restated = ledger.pledge(pledge(FIVE), now[0], ask().at)
        assert (restated.before.pico, restated.balance.spent.pico) == (1000, 25_000)
        assert restated.balance.is_overspent
        assert restated.balance.remaining.pico == 0
        with pytest.raises(AccountSpent):
            ledger.reserve(now, want("b", 1, 0), ask())
        assert ledger.reserve(now, want(), ask()).charged == (Cost(0, 0),) * 4
        ledger.grant(gift(now[0], 24_000))
        assert ledger.balances(now)[0].remaining.pico == 1000

    def test_a_pool_that_is_overspent_pays_for_nothing(self, ledger: Ledger) -> None:
        accounts = (account("dataset", "shop", atto=1000), account("user", "shop/ann"))
        ledger.reserve(accounts, want("a", keys=(RULE,)), ask())
        now = promised(ledger, FIVE, accounts)
        assert ledger.balances(now)[0].is_overspent
        with pytest.raises(AccountSpent):
            ledger.reserve(now, want("b", 1, 0), ask())

    def test_a_charge_that_was_planned_before_counts_for_what_is_promised_since(self, ledger: Ledger) -> None:
        before = promised(ledger, Promise(), payers())
        now = promised(ledger, FIVE, before)
        assert ledger.reserve(before, want(keys=(RULE,)), ask()).charged[0].pico == 25_000
        assert spent(ledger, now)[0] == Cost(25_000, shown_atto_up(RULE, 5))

    def test_a_charge_for_a_promise_that_was_never_stated_is_refused(self, ledger: Ledger) -> None:
        promised(ledger, REPLACED, payers())
        for promise in (FIVE, Promise(2)):
            with pytest.raises(LedgerFailed, match="never stated"):
                ledger.reserve(payers(promise), want(), ask())
        assert ledger.all_accounts() == ()

    def test_a_later_stage_whose_rule_comes_too_late_is_not_computed(self, ledger: Ledger) -> None:
        accounts = promised(ledger, Promise(), payers())
        early, late = (i for i in ledger.reserve(accounts, want("x", sql="") + want("y", sql=""), ask()).items)
        assert isinstance(early, Reserved)
        assert isinstance(late, Reserved)
        ledger.bind(early, want("a", keys=(RULE,))[0], ask().at)
        now = promised(ledger, FIVE, accounts)
        with pytest.raises(PolicyOutdated):
            ledger.bind(late, want("b", keys=(RULE,))[0], ask().at)
        assert spent(ledger, now)[0] == Cost(50_000, shown_atto_up(RULE, 5) + 7)
        with pytest.raises(PolicyOutdated):
            ledger.reserve(accounts, want("z", sql=""), ask())
        assert ledger.reserve(accounts, want("z", atto=0, sql=""), ask()).charged[0] == Cost(25_000, 0)

    def test_datasets_are_promised_one_by_one(self, ledger: Ledger) -> None:
        shop, town = payers(), payers(dataset="town")
        for accounts in (shop, town):
            ledger.reserve(promised(ledger, Promise(), accounts), want(accounts[0].name), ask())
        promised(ledger, FIVE, shop)
        assert [c.pico for c in spent(ledger, shop) + spent(ledger, town)] == [25_000] * 4 + [1000] * 4

    def test_what_was_stated_already_is_not_written_again(self, ledger: Ledger) -> None:
        accounts = promised(ledger, FIVE, payers())
        for promise in (Promise(), FIVE, Promise()):
            promised(ledger, promise, accounts)
        stated = [e.pledge.promise for e in ledger.entries() if isinstance(e, Pledged)]
        assert stated == [FIVE, Promise()]

    # --- books of an earlier version ------------------------------------------------------------

    @pytest.fixture
    def earlier(
        self, open_ledger: Callable[[], Ledger], take_in: Callable[[Iterator[Item]], object]
    ) -> Iterator[Ledger]:
        take_in(read(EARLIER.read_text().splitlines()))
        opened = open_ledger()
        yield opened
        opened.verify()
        opened.close()

    def test_books_of_an_earlier_version_go_on_as_they_were(self, earlier: Ledger) -> None:
        accounts = promised(earlier, Promise(), payers(), digest="d2")
        assert spent(earlier, accounts)[0] == Cost(3004, 0)
        earlier.reserve(accounts, want("b"), ask(after_s=9 * DAY_S))
        assert spent(earlier, accounts)[0] == Cost(4004, 7)

    def test_what_an_earlier_version_charged_for_noise_counts_as_for_one_unit(self, earlier: Ledger) -> None:
        assert spent(earlier, promised(earlier, FIVE, payers(), digest="new"))[0] == Cost(25 * 3004, 0)
        assert earlier.pledge(
            pledge(REPLACED, dataset="clinic", digest="new"), payers(REPLACED, dataset="clinic")[0], ask().at
        ).balance.spent == Cost(44_000, 70)  # fmt: skip

    def test_what_an_earlier_version_charged_for_the_present_policy_is_as_that_promises(self, earlier: Ledger) -> None:
        assert spent(earlier, promised(earlier, FIVE, payers(), digest="d2"))[0] == Cost(25 * 1001 + 2003, 0)
        clinic = promised(earlier, FIVE, payers(dataset="clinic"), digest="d3")
        assert spent(earlier, clinic)[0] == Cost(11_000, 70)
        with pytest.raises(PromiseRefused, match="group_size: 6"):
            promised(earlier, Promise(6), clinic, digest="new")

    def test_a_larger_group_is_refused_where_thresholds_were_not_kept(self, earlier: Ledger) -> None:
        clinic = payers(dataset="clinic")
        before = list(earlier.entries())
        with pytest.raises(PromiseRefused, match="group_size: 2") as refused:
            promised(earlier, Promise(2), clinic, digest="new")
        assert "4 of its accounts" in refused.value.detail
        assert list(earlier.entries()) == before
        assert spent(earlier, clinic)[0] == Cost(11_000, 70)

    def test_epsilon_of_an_earlier_version_counts_too(self, earlier: Ledger) -> None:
        town = payers(dataset="town", accounting=Accounting.PURE)
        assert spent(earlier, promised(earlier, FIVE, town, digest="new"))[0] == Cost(5 * 10**9, 0)

    # --- another unit -----------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "change",
        [
            {"unit": "household"},
            {"owners": "the unit is household_id"},
            {"unit": "household", "changed_from": "person"},
        ],
    )
    def test_another_unit_is_refused(self, ledger: Ledger, change: dict[str, str]) -> None:
        promised(ledger, Promise(), payers())
        with pytest.raises(UnitChanged) as refused:
            promised(ledger, FIVE, payers(), digest="new", **change)
        assert "unit_changed_from: customer" in refused.value.hint
        assert refused.value.detail
        assert ledger.balances(payers())[0].standing.group_size == 1

    def test_an_acknowledged_break_is_kept_for_ever_and_lowers_nothing(self, open_ledger: Callable[[], Ledger]) -> None:
        ledger = open_ledger()
        accounts = promised(ledger, Promise(), payers())
        ledger.reserve(accounts, want("a"), ask())
        promised(ledger, FIVE, accounts, unit="household", changed_from="customer", digest="new")
        now = tuple(replace(a, promise=FIVE) for a in accounts)
        ledger.reserve(now, want("b", digest="new"), ask())
        ledger.close()
        ledger = open_ledger()
        promised(ledger, FIVE, accounts, unit="household", digest="later")
        for balance in ledger.balances(now):
            assert [(b.was, b.now, b.at) for b in balance.standing.breaks] == [("customer", "household", ask().at)]
            assert (balance.spent.pico, balance.outside.pico) == (26_000, 25_000)
        assert {(t.outside.pico, len(t.standing.breaks)) for t in ledger.all_accounts()} == {(25_000, 1)}
        ledger.verify()
        ledger.close()

    def test_charges_planned_for_the_unit_before_are_refused(self, ledger: Ledger) -> None:
        accounts = promised(ledger, Promise(), payers())
        promised(ledger, Promise(), accounts, unit="household", changed_from="customer", digest="new")
        with pytest.raises(PolicyOutdated):
            ledger.reserve(accounts, want(), ask())
        ledger.reserve(accounts, want(digest="new"), ask())
        with pytest.raises(UnitChanged):
            promised(ledger, Promise(), accounts)

    def test_nobody_can_state_more_than_a_whole_delta(self, ledger: Ledger) -> None:
        sure = replace(RULE, tau=1.0)
        accounts = promised(ledger, Promise(), payers())
        ledger.reserve(accounts, want(keys=(sure,)), ask())
        assert spent(ledger, promised(ledger, FIVE, accounts))[0].atto == ATTO
