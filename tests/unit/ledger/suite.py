"""How every ledger behaves: the same tests for each backend, which supplies `open_ledger`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import count

import pytest

from proxy.dp.accounting import ATTO, PICO
from proxy.errors import BudgetSpent, LedgerFailed
from proxy.ledger.balances import in_present
from proxy.ledger.base import AccountingChanged, AccountSpent, Ledger, Outcome, Question, Receipt, Wanted
from proxy.ledger.books import Books
from proxy.ledger.chain import PREVIEW_CHARS, Entry, Keyed
from proxy.plan.charge import Account, Cost, ReleaseKey, Reserved
from proxy.policy.model import Accounting, Neighbors, Promise, Refresh
from proxy.release.store import NotStored, StoredRelease
from tests.unit.ledger.make import RULE, account, ask, gift, key, payers, pledge, reserved_of, want

NOTHING = Cost(0, 0)
DAY_S = 86400.0
PRICE = Cost(1000, 7)


def _wrong_sum(entry: Entry) -> Entry:
    return replace(entry, lines=tuple(replace(line, total=line.cost) for line in entry.lines))


def _wrong_number(entry: Entry) -> Entry:
    return replace(entry, seq=entry.seq + 1)


def _gap(entry: Entry) -> Entry:
    return replace(
        entry,
        releases=tuple(replace(r, release_id=r.release_id + 1) for r in entry.releases),
        lines=tuple(replace(line, releases=tuple(n + 1 for n in line.releases)) for line in entry.lines),
    )


def _unreadable(entry: Entry) -> Entry:
    return replace(entry, lines=tuple(replace(line, kind="everybody") for line in entry.lines))  # type: ignore[arg-type]


MISTAKES = (_wrong_sum, _wrong_number, _gap, _unreadable)


def finish(ledger: Ledger, receipt: Receipt, payload: bytes = b"noise") -> None:
    for item in receipt.items:
        if isinstance(item, Reserved):
            ledger.store.put(item, payload)


class LedgerSuite:
    """Subclasses define the fixture `open_ledger`: a function that opens the same books each time it is called."""

    @pytest.fixture
    def open_ledger(self) -> Callable[[], Ledger]:
        raise NotImplementedError

    @pytest.fixture
    def ledger(self, open_ledger: Callable[[], Ledger]) -> Iterator[Ledger]:
        opened = open_ledger()
        yield opened
        opened.close()

    # --- charging -----------------------------------------------------------------------------

    def test_a_new_release_charges_every_account(self, ledger: Ledger) -> None:
        receipt = ledger.reserve(payers(), want(), ask())
        assert receipt.charged == (PRICE, PRICE, PRICE)
        assert [b.spent for b in receipt.balances] == [PRICE] * 3
        item = reserved_of(receipt.items[0])
        assert (item.key, item.cost, item.sql) == (key(), PRICE, "select 1")
        assert ledger.balances(payers()) == receipt.balances

    def test_a_statement_charges_the_sum_of_its_releases_once_per_key(self, ledger: Ledger) -> None:
        receipt = ledger.reserve(payers(), want("a") + want("b", 50, 1) + want("a"), ask())
        assert receipt.charged == (Cost(1050, 8),) * 3
        first, second, third = (reserved_of(item) for item in receipt.items)
        assert first == third
        assert first.release_id != second.release_id

    def test_what_was_charged_can_be_settled_again_and_again(self, ledger: Ledger) -> None:
        paid = ledger.reserve(payers(), want("a"), ask())
        finish(ledger, paid)
        for receipt in (paid, ledger.reserve(payers(), want("a"), ask()), ledger.reserve(payers(), want("b"), ask())):
            ledger.settle(receipt.statement)
            ledger.settle(paid.statement)

    def test_the_limit_can_be_reached_and_not_passed(self, ledger: Ledger) -> None:
        accounts = payers(pico=2000)
        ledger.reserve(accounts, want("a"), ask())
        ledger.reserve(accounts, want("b"), ask())
        with pytest.raises(AccountSpent):
            ledger.reserve(accounts, want("c", 1, 0), ask())
        assert [b.spent for b in ledger.balances(accounts)] == [Cost(2000, 14)] * 3

    def test_delta_has_a_limit_of_its_own(self, ledger: Ledger) -> None:
        accounts = (account("dataset"), account("user", "alice", atto=10))
        ledger.reserve(accounts, want("a", 1, 7), ask())
        with pytest.raises(AccountSpent) as refused:
            ledger.reserve(accounts, want("b", 1, 4), ask())
        (short,) = refused.value.shortfalls
        assert (short.needed.atto, short.balance.remaining.atto) == (4, 3)
        ledger.reserve(accounts, want("c", 1, 3), ask())

    @pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.__name__.strip("_"))
    def test_an_entry_that_would_not_verify_is_never_written(
        self, mistake: Callable[[Entry], Entry], open_ledger: Callable[[], Ledger], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else nobody could open the books again: a mistake of ours costs one statement, and charges nothing."""
        ledger, draft = open_ledger(), Books.draft
        ledger.reserve(payers(), want("a"), ask())
        with monkeypatch.context() as patch:
            patch.setattr(Books, "draft", lambda *arguments: mistake(draft(*arguments)))
            with pytest.raises(LedgerFailed, match=r"does not verify|changed by hand|cannot be read"):
                ledger.reserve(payers(), want("b"), ask())
        assert [e.seq for e in ledger.entries()] == [1]
        ledger.reserve(payers(), want("c"), ask())
        ledger.close()
        again = open_ledger()
        assert again.verify().entries == 2
        assert [b.spent for b in again.balances(payers())] == [PRICE + PRICE] * 3
        again.close()

    def test_one_account_that_is_short_stops_all_charges(self, ledger: Ledger) -> None:
        accounts = payers(pico=999)
        with pytest.raises(BudgetSpent) as refused:
            ledger.reserve(accounts, want(), ask())
        assert isinstance(refused.value, AccountSpent)
        (short,) = refused.value.shortfalls
        assert (short.needed, short.balance.account, short.balance.spent) == (PRICE, accounts[1], NOTHING)
        assert [b.spent for b in ledger.balances(accounts)] == [NOTHING] * 3
        assert ledger.all_accounts() == ()

    def test_a_refusal_names_each_of_the_callers_accounts_that_is_short(self, ledger: Ledger) -> None:
        accounts = (account("dataset", pico=0), account("user", pico=5), account("session", pico=6))
        with pytest.raises(AccountSpent) as refused:
            ledger.reserve(accounts, want(), ask())
        assert [(s.balance.account.kind, s.needed) for s in refused.value.shortfalls] == [
            ("user", PRICE),
            ("session", PRICE),
        ]

    def test_the_refusal_of_the_dataset_account_shows_no_figures(self, ledger: Ledger) -> None:
        accounts = (account("dataset", pico=999), account("user"))
        with pytest.raises(AccountSpent) as refused:
            ledger.reserve(accounts, want(), ask())
        assert refused.value.shortfalls == ()
        assert not any(c.isdigit() for c in refused.value.text())

    def test_an_account_without_limit_is_counted_and_never_refuses(self, ledger: Ledger) -> None:
        accounts = (account("dataset", limited=False, pico=0, atto=0),)
        ledger.reserve(accounts, want(pico=10**30, atto=10**30), ask())
        assert ledger.balances(accounts)[0].spent == Cost(10**30, 10**30)

    def test_a_limit_lowered_below_what_is_spent_leaves_nothing(self, ledger: Ledger) -> None:
        ledger.reserve(payers(), want(), ask())
        lowered = payers(pico=10)
        assert ledger.balances(lowered)[1].remaining.pico == 0
        with pytest.raises(AccountSpent):
            ledger.reserve(lowered, want("b", 1), ask())

    def test_accounts_of_one_name_and_different_kinds_are_different(self, ledger: Ledger) -> None:
        accounts = (account("dataset", "x"), account("user", "x"))
        ledger.reserve(accounts, want(), ask())
        assert ledger.balances((account("session", "x"),))[0].spent == NOTHING

    @pytest.mark.parametrize(
        "accounts",
        [
            (),
            (account("user"),),
            (account("dataset", "a"), account("dataset", "b")),
            (account("dataset"), account("user"), account("user")),
        ],
    )
    def test_impossible_accounts_are_refused(self, ledger: Ledger, accounts: tuple[object, ...]) -> None:
        with pytest.raises(ValueError, match="account"):
            ledger.reserve(accounts, want(), ask())  # type: ignore[arg-type]

    def test_impossible_wishes_are_refused(self, ledger: Ledger) -> None:
        other = replace(want("b")[0].request, key=replace(key("b"), policy_digest="other"))
        wrong = [(), want("a", 1) + want("a", 2), want(pico=0), (*want(), replace(want("b")[0], request=other))]
        for wanted in wrong:
            with pytest.raises(ValueError, match=r"release|policy"):
                ledger.reserve(payers(), wanted, ask())
        assert ledger.all_accounts() == ()

    def test_a_question_needs_a_time_zone(self) -> None:
        with pytest.raises(ValueError, match="time zone"):
            Question(login="alice", query="", at=datetime(2026, 1, 1))

    # --- windows, grants, accounting ------------------------------------------------------------

    def test_a_limit_that_refreshes_is_for_each_window_alone(self, ledger: Ledger) -> None:
        daily = (account("dataset"), account("user", pico=1500, refresh=Refresh.DAY))
        ledger.reserve(daily, want("a"), ask())
        with pytest.raises(AccountSpent):
            ledger.reserve(daily, want("b"), ask(after_s=3600))
        assert ledger.reserve(daily, want("b"), ask(after_s=DAY_S)).balances[1].spent == PRICE
        assert [b.spent.pico for b in ledger.balances(daily)] == [2000, 1000]
        assert ledger.balances(daily, ask(after_s=2 * DAY_S).at)[1].spent == NOTHING

    def test_a_clock_that_goes_back_gives_nothing_back(self, ledger: Ledger) -> None:
        daily = (account("dataset"), account("user", pico=1500, refresh=Refresh.DAY))
        ledger.reserve(daily, want("a"), ask())
        ledger.reserve(daily, want("b"), ask(after_s=DAY_S))
        for after_s in (0, -40 * DAY_S, DAY_S):
            with pytest.raises(AccountSpent):
                ledger.reserve(daily, want("c"), ask(after_s=after_s))
            assert ledger.balances(daily, ask(after_s=after_s).at)[1].spent == PRICE

    def test_a_change_of_the_refresh_forgets_nothing(self, ledger: Ledger) -> None:
        def payers_with(refresh: Refresh) -> tuple[Account, ...]:
            return account("dataset"), account("user", pico=2500, refresh=refresh)

        for number, day in enumerate((0, 1, 20)):  # 2 and 3 January, both in one week and month; 22 January
            ledger.reserve(payers_with(Refresh.DAY), want(f"q{number}"), ask(after_s=day * DAY_S))
        found = {r: ledger.balances(payers_with(r))[1].spent.pico for r in Refresh}
        assert found == {Refresh.LIFETIME: 3000, Refresh.DAY: 1000, Refresh.WEEK: 1000, Refresh.MONTH: 3000}
        for refresh in (Refresh.LIFETIME, Refresh.MONTH):
            with pytest.raises(AccountSpent):
                ledger.reserve(payers_with(refresh), want("z", 1), ask(after_s=20 * DAY_S))
        ledger.reserve(payers_with(Refresh.WEEK), want("z"), ask(after_s=20 * DAY_S))

    def test_a_grant_is_for_good_or_for_its_window(self, ledger: Ledger) -> None:
        lifetime, daily = account("user", pico=1000), account("session", pico=1000, refresh=Refresh.DAY)
        accounts = (account("dataset"), lifetime, daily)
        ledger.reserve(accounts, want("a"), ask())
        for one in (lifetime, daily):
            with pytest.raises(AccountSpent):
                ledger.reserve(accounts, want("b"), ask())
            ledger.grant(gift(one, 1500, 7))
        receipt = ledger.reserve(accounts, want("b"), ask())
        assert [(b.limit, b.remaining.pico) for b in receipt.balances[1:]] == [(Cost(2500, ATTO + 7), 500)] * 2
        tomorrow = ledger.balances(accounts, ask(after_s=DAY_S).at)
        assert [b.limit.pico for b in tomorrow[1:]] == [2500, 1000]
        assert [t.granted for t in ledger.all_accounts()] == [NOTHING, Cost(1500, 7), Cost(1500, 7)]
        assert ledger.verify().totals == ledger.all_accounts()

    def test_a_role_pays_once_for_all_its_logins(self, ledger: Ledger) -> None:
        def login(name: str) -> tuple[Account, ...]:
            return account("dataset"), account("role", "analyst", pico=1500), account("user", name)

        finish(ledger, ledger.reserve(login("alice"), want("a"), ask()))
        assert ledger.reserve(login("bob"), want("a"), ask()).charged == (NOTHING, NOTHING, PRICE)
        with pytest.raises(AccountSpent) as refused:
            ledger.reserve(login("bob"), want("b"), ask())
        assert (refused.value.shortfalls, refused.value.shared) == ((), "role")

    def test_pure_accounting_may_become_zcdp_and_never_back(self, ledger: Ledger) -> None:
        def payers_with(accounting: Accounting, pico: int) -> tuple[Account, ...]:
            dataset = account("dataset", pico=9 * PICO, accounting=accounting)
            return dataset, account("user", pico=pico, accounting=accounting)

        pure = payers_with(Accounting.PURE, 3 * PICO // 2)
        ledger.reserve(pure, want("a", PICO, 0), ask())
        ledger.grant(gift(pure[1], PICO))
        ledger.reserve(pure, want("b", PICO, 0), ask())
        zcdp = payers_with(Accounting.ZCDP, 3 * PICO // 2)
        (told, _) = ledger.history("alice", 9)
        assert in_present(told.cost, told.accounting, Accounting.ZCDP) == Cost(PICO // 2, 0)
        assert in_present(told.cost, told.accounting, Accounting.PURE) == told.cost == Cost(PICO, 0)
        assert ledger.balances(zcdp)[1].remaining.pico == PICO // 2  # two releases of epsilon 1: rho 1/2 each
        for dataset in (pure[0], zcdp[0]):
            ledger.pledge(pledge(dataset="the dataset"), dataset, ask().at)
        ledger.reserve(zcdp, want("c", PICO // 2), ask())
        with pytest.raises(AccountingChanged):
            ledger.pledge(pledge(dataset="the dataset"), pure[0], ask().at)
        with pytest.raises(AccountingChanged):
            ledger.reserve(pure, want("d", 1), ask())
        with pytest.raises(AccountSpent):
            ledger.reserve(zcdp, want("d", 1), ask())
        ledger.verify()

    # --- reuse --------------------------------------------------------------------------------

    def test_a_release_seen_again_is_free_for_every_account(self, ledger: Ledger) -> None:
        first = ledger.reserve(payers(), want(), ask())
        finish(ledger, first)
        again = ledger.reserve(payers(), want(), ask())
        stored = StoredRelease(release_id=reserved_of(first.items[0]).release_id, key=key(), payload=b"noise")
        assert again.items == (stored,)
        assert again.charged == (NOTHING,) * 3
        assert again.balances == first.balances

    def test_an_account_pays_the_full_cost_of_every_release_it_is_shown_once(self, ledger: Ledger) -> None:
        finish(ledger, ledger.reserve(payers(), want(), ask()))
        bob = payers(user="bob", session="s2")
        assert ledger.reserve(bob, want(), ask()).charged == (NOTHING, PRICE, PRICE)
        assert ledger.reserve(bob, want(), ask()).charged == (NOTHING,) * 3
        other_session = payers(user="bob", session="s3")
        assert ledger.reserve(other_session, want(), ask()).charged == (NOTHING, NOTHING, PRICE)

    def test_an_own_account_is_refused_alike_whether_or_not_the_release_is_stored(self, ledger: Ledger) -> None:
        finish(ledger, ledger.reserve(payers(), want("stored"), ask()))
        poor = payers(pico=999, user="bob", session="s2")
        with pytest.raises(AccountSpent) as stored:
            ledger.reserve(poor, want("stored"), ask())
        with pytest.raises(AccountSpent) as new:
            ledger.reserve(poor, want("new"), ask())
        assert (stored.value.text(), stored.value.shortfalls) == (new.value.text(), new.value.shortfalls)

    def test_a_spent_account_may_repeat_what_it_paid_for(self, ledger: Ledger) -> None:
        finish(ledger, ledger.reserve(payers(pico=1000), want(), ask()))
        assert ledger.reserve(payers(pico=0), want(), ask()).charged == (NOTHING,) * 3

    def test_a_release_without_result_is_charged_again(self, ledger: Ledger) -> None:
        first = ledger.reserve(payers(), want(), ask())
        second = ledger.reserve(payers(), want(), ask())
        assert second.charged == (PRICE,) * 3
        assert first.items != second.items

    def test_of_two_finished_releases_the_account_gets_the_one_it_paid_for(self, ledger: Ledger) -> None:
        bob = payers(user="bob", session="s2")
        first, second = ledger.reserve(payers(), want(), ask()), ledger.reserve(bob, want(), ask())
        finish(ledger, first, b"first")
        finish(ledger, second, b"second")
        for accounts, payload in ((payers(), b"first"), (bob, b"second")):
            again = ledger.reserve(accounts, want(), ask())
            assert again.charged == (NOTHING,) * 3
            assert [item.payload for item in again.items if isinstance(item, StoredRelease)] == [payload]
        assert ledger.reserve(payers(user="carol", session="s3"), want(), ask()).charged == (NOTHING, PRICE, PRICE)

    def test_what_others_paid_for_is_not_preferred_to_what_the_login_paid_for(self, ledger: Ledger) -> None:
        """A login that changes its role and its session is shown its own release, and pays what is new to it alone."""

        def of(role: str, user: str, session: str) -> tuple[Account, ...]:
            return account("dataset"), account("role", role), account("user", user), account("session", session)

        hers, theirs = (ledger.reserve(of(*a), want(), ask()) for a in (("a", "alice", "1"), ("b", "bob", "2")))
        finish(ledger, hers, b"hers")
        finish(ledger, theirs, b"theirs")
        receipt = ledger.reserve(of("b", "alice", "3"), want(), ask())
        assert receipt.charged == (NOTHING, PRICE, NOTHING, PRICE)
        assert [item.payload for item in receipt.items if isinstance(item, StoredRelease)] == [b"hers"]

    def test_fresh_noise_is_charged_in_full(self, ledger: Ledger) -> None:
        finish(ledger, ledger.reserve(payers(), want(), ask()))
        fresh = ledger.reserve(payers(), want(), ask(), fresh=True)
        assert fresh.charged == (PRICE,) * 3
        finish(ledger, fresh, b"newer")
        assert ledger.store.get(key()) == StoredRelease(
            release_id=reserved_of(fresh.items[0]).release_id, key=key(), payload=b"newer"
        )

    def test_a_quote_is_what_is_charged_then(self, ledger: Ledger) -> None:
        def quoted(*wanted: Wanted, session: str = "s1", fresh: bool = False) -> tuple[Cost, ...]:
            requests = tuple(one.request for one in wanted)
            found = ledger.quote(payers(session=session), requests, fresh=fresh)
            receipt = ledger.reserve(payers(session=session), wanted, ask(), fresh=fresh)
            finish(ledger, receipt)
            assert found == receipt.charged
            return found

        assert ledger.quote(payers(), (want()[0].request,)) == (PRICE,) * 3
        assert [b.spent for b in ledger.balances(payers())] == [NOTHING] * 3
        assert quoted(*want()) == (PRICE,) * 3
        assert quoted(*want()) == (NOTHING,) * 3
        assert quoted(*want(), session="s2") == (NOTHING, NOTHING, PRICE)
        assert quoted(*want(), *want("b", 50, 1)) == (Cost(50, 1),) * 3
        assert quoted(*want(), fresh=True) == (PRICE,) * 3

    def test_a_quote_is_the_full_price_while_others_charge_for_the_same(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is being computed for one session is not there yet for another of the same accounts."""

        def completed(_key: ReleaseKey) -> Iterator[int]:
            monkeypatch.undo()
            yield from ()
            ledger.reserve(payers(), want(), ask())

        monkeypatch.setattr(ledger.store, "completed", completed)
        assert ledger.quote(payers(), (want()[0].request,)) == (PRICE,) * 3
        assert [b.spent for b in ledger.balances(payers())] == [PRICE] * 3

    @pytest.mark.parametrize("part", ["fingerprint", "data_version"])
    def test_another_key_is_another_release(self, ledger: Ledger, part: str) -> None:
        finish(ledger, ledger.reserve(payers(), want(), ask()))
        changed = replace(key(), **{part: "other"})
        wanted = (replace(want()[0], request=replace(want()[0].request, key=changed)),)
        assert ledger.reserve(payers(), wanted, ask()).charged == (PRICE,) * 3
        assert ledger.store.get(changed) == NotStored()

    def test_seen_shows_only_what_all_these_accounts_paid_for(self, ledger: Ledger) -> None:
        assert ledger.seen(payers(), key()) == NotStored()
        finish(ledger, ledger.reserve(payers(), want(), ask()))
        assert isinstance(ledger.seen(payers(), key()), StoredRelease)
        assert ledger.seen(payers(session="s2"), key()) == NotStored()
        assert len(ledger.history("alice", 10)) == 1

    def test_one_charge_stores_one_draw(self, ledger: Ledger) -> None:
        item = reserved_of(ledger.reserve(payers(), want(), ask()).items[0])
        ledger.store.put(item, b"first")
        with pytest.raises(LedgerFailed):
            ledger.store.put(item, b"second")
        assert ledger.store.get(key()) == StoredRelease(release_id=item.release_id, key=key(), payload=b"first")

    def test_a_release_that_is_not_there_cannot_be_loaded(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerFailed, match="vanished"):
            ledger.store.load(99, key())

    def test_a_secret_is_the_one_that_was_drawn(self, ledger: Ledger) -> None:
        assert ledger.shared_secret("salt", b"drawn") == b"drawn"

    # --- stages -------------------------------------------------------------------------------

    def test_a_later_stage_is_bound_once_to_its_sql(self, ledger: Ledger) -> None:
        receipt = ledger.reserve(payers(), want("a") + want("later", sql=""), ask())
        assert receipt.charged == (Cost(2000, 14),) * 3
        ready, waiting = (reserved_of(item) for item in receipt.items)
        (real,) = want("real", sql="select 2")
        bound = ledger.bind(waiting, replace(real, further=("select 3",)), ask().at)
        assert (bound.release_id, bound.cost, bound.key, bound.sql, bound.further) == (
            waiting.release_id,
            waiting.cost,
            key("real"),
            "select 2",
            ("select 3",),
        )
        for wrong in (waiting, ready, bound):
            with pytest.raises(LedgerFailed):
                ledger.bind(wrong, real, ask().at)
        ledger.store.put(bound, b"noise")
        assert ledger.reserve(payers(), want("real"), ask()).charged == (NOTHING,) * 3

    def test_a_stage_is_not_bound_to_nothing(self, ledger: Ledger) -> None:
        waiting = reserved_of(ledger.reserve(payers(), want(sql=""), ask()).items[0])
        with pytest.raises(LedgerFailed):
            ledger.bind(waiting, want(sql="")[0], ask().at)

    def test_the_rule_of_a_later_stage_is_kept_before_it_runs(self, ledger: Ledger) -> None:
        waiting = reserved_of(ledger.reserve(payers(), want("later", sql=""), ask()).items[0])
        assert [e.keys for e in ledger.entries() if isinstance(e, Keyed)] == []
        ledger.bind(waiting, want("real", keys=(RULE,))[0], ask(after_s=9).at)
        (charged, keyed) = ledger.entries()
        assert isinstance(charged, Entry)
        assert isinstance(keyed, Keyed)
        assert (charged.releases[0].keys, keyed.release_id, keyed.keys) == ((), waiting.release_id, (RULE,))
        assert keyed.at == ask(after_s=9).at
        assert ledger.verify().entries == 2

    def test_an_entry_keeps_what_was_promised_and_by_which_rules_keys_are_shown(self, ledger: Ledger) -> None:
        promise = Promise(3, Neighbors.REPLACE_ONE)
        dataset = replace(payers()[0], promise=promise)
        ledger.pledge(pledge(promise), dataset, ask().at)
        ledger.reserve((dataset,), want("a", keys=(RULE, RULE)) + want("b"), ask())
        _, entry = ledger.entries()
        assert isinstance(entry, Entry)
        assert (entry.promise, [r.keys for r in entry.releases]) == (promise, [(RULE, RULE), ()])

    # --- reading ------------------------------------------------------------------------------

    def test_history_is_the_logins_own_newest_first(self, ledger: Ledger) -> None:
        first = ledger.reserve(payers(), want("a"), ask("one", after_s=1))
        finish(ledger, first)
        second = ledger.reserve(payers(), want("a"), ask("two", after_s=2))
        ledger.reserve(payers(session="s2"), want("a"), ask("three", after_s=3))
        ledger.reserve(payers(user="bob"), want("b"), ask("not hers", login="bob", after_s=4))
        ledger.note_outcome(first.statement, Outcome.ANSWERED)
        ledger.note_outcome(second.statement, Outcome.CANCELLED)
        lines = ledger.history("alice", 10)
        assert [(line.query, line.cost, line.reused, line.outcome) for line in lines] == [
            ("three", NOTHING, True, Outcome.UNFINISHED),
            ("two", NOTHING, True, Outcome.CANCELLED),
            ("one", PRICE, False, Outcome.ANSWERED),
        ]
        assert lines[0].at == ask(after_s=3).at
        assert ledger.history("alice", 1) == lines[:1]
        assert ledger.history("nobody", 10) == ()

    def test_an_outcome_never_changes_a_charge(self, ledger: Ledger) -> None:
        receipt = ledger.reserve(payers(), want(), ask())
        for outcome in (Outcome.FAILED, Outcome.CANCELLED):
            ledger.note_outcome(receipt.statement, outcome)
        assert ledger.balances(payers()) == receipt.balances
        assert ledger.history("alice", 1)[0].outcome is Outcome.CANCELLED

    def test_long_and_odd_queries_are_kept_cut(self, ledger: Ledger) -> None:
        odd = "select '\ud800\x00\N{PILE OF POO}'" + "x" * PREVIEW_CHARS
        finish(ledger, ledger.reserve(payers(), want(), ask(odd, after_s=1)))
        ledger.reserve(payers(), want(), ask(odd, after_s=2))
        repeated, charged = ledger.history("alice", 2)
        assert charged.query == odd[:PREVIEW_CHARS]
        assert repeated.query == charged.query.replace("\ud800", "?")

    def test_entries_are_chained_and_complete(self, ledger: Ledger) -> None:
        ledger.reserve(payers(), want("a"), ask("one"))
        ledger.reserve(payers(), want("b"), ask("two"))
        first, second = (entry for entry in ledger.entries() if isinstance(entry, Entry))
        assert (first.seq, second.seq) == (1, 2)
        assert first.previous != second.previous
        assert [line.total.pico for line in second.lines] == [2000] * 3
        assert list(ledger.entries(after=1)) == [second]
        assert second.policy_digest == "policy"

    def test_verify_adds_everything_up_again(self, ledger: Ledger) -> None:
        finish(ledger, ledger.reserve(payers(), want("a"), ask()))
        ledger.reserve(payers(), want("b"), ask())
        report = ledger.verify()
        assert (report.entries, report.releases) == (2, 1)
        assert report.totals == ledger.all_accounts()
        assert {(t.kind, t.name): t.spent for t in report.totals} == {
            ("dataset", "shop"): Cost(2000, 14),
            ("user", "alice"): Cost(2000, 14),
            ("session", "s1"): Cost(2000, 14),
        }

    # --- closing and opening ------------------------------------------------------------------

    def test_everything_is_there_after_opening_again(self, open_ledger: Callable[[], Ledger]) -> None:
        ledger = open_ledger()
        first = ledger.reserve(payers(), want(), ask())
        finish(ledger, first)
        ledger.note_outcome(first.statement, Outcome.ANSWERED)
        repeat = ledger.reserve(payers(), want(), ask("again", after_s=1))
        ledger.note_outcome(repeat.statement, Outcome.ANSWERED)
        before = (ledger.all_accounts(), ledger.history("alice", 9), ledger.verify())
        ledger.close()
        ledger = open_ledger()
        assert (ledger.all_accounts(), ledger.history("alice", 9), ledger.verify()) == before
        assert ledger.reserve(payers(), want(), ask()).charged == (NOTHING,) * 3
        assert reserved_of(ledger.reserve(payers(), want("b"), ask()).items[0]).release_id == 2
        ledger.close()

    def test_a_closed_ledger_charges_nothing(self, open_ledger: Callable[[], Ledger]) -> None:
        ledger = open_ledger()
        ledger.close()
        ledger.close()
        with pytest.raises(LedgerFailed):
            ledger.reserve(payers(), want(), ask())
        with pytest.raises(LedgerFailed):
            ledger.history("alice", 1)

    # --- races --------------------------------------------------------------------------------

    def test_racing_spenders_never_pass_the_limit(self, ledger: Ledger) -> None:
        accounts = (account("dataset", pico=20_500), account("user", pico=10**6))
        numbers, won, lost = count(), list[int](), list[str]()
        gate = threading.Barrier(50)

        def spend() -> None:
            gate.wait()
            try:
                receipt = ledger.reserve(accounts, want(f"q{next(numbers)}"), ask())
            except AccountSpent as error:
                lost.append(error.message)
            else:
                won.append(reserved_of(receipt.items[0]).release_id)

        threads = [threading.Thread(target=spend) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(won) == list(range(1, 21))
        assert len(lost) == 30
        assert ledger.balances(accounts)[0].spent.pico == 20_000
        ledger.verify()
