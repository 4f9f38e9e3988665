"""How every ledger hands out again what was paid for and never drawn: see docs/claims/retry.md."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from proxy.errors import LedgerFailed
from proxy.ledger.attempts import MOST_ATTEMPTS
from proxy.ledger.base import AccountSpent, Ending, Ledger, Receipt, Wanted
from proxy.ledger.chain import Ended, Entry, Reason
from proxy.plan.charge import Account, Cost, Reserved
from proxy.policy.model import Refresh
from proxy.release.store import StoredRelease
from tests.unit.ledger.make import account, ask, key, payers, reserved_of, want
from tests.unit.ledger.suite import DAY_S, NOTHING, PRICE

FREE, FULL = (NOTHING,) * 3, (PRICE,) * 3
TICKETS = want("first") + want("later 2", sql="") + want("later 1", sql="")


def ended(*reserved: Reserved, fresh: bool = False, after: tuple[int, ...] = (), after_s: float = 0) -> Ending:
    at = ask(after_s=after_s).at
    return Ending(reserved=reserved, reason=Reason.LOST, is_fresh=fresh, after=after, at=at)


def attempted(
    ledger: Ledger, accounts: tuple[Account, ...] | None = None, wanted: tuple[Wanted, ...] | None = None,
    *, after_s: float = 0, fresh: bool = False,
) -> tuple[Receipt, tuple[Reserved, ...]]:  # fmt: skip
    """What a statement gets that must be computed."""
    asked = accounts or payers(), wanted or want()
    ledger.balances(asked[0])  # a quote is of what is known here
    quoted = ledger.quote(asked[0], tuple(w.request for w in asked[1]), ask(after_s=after_s).at, fresh=fresh)
    receipt = ledger.reserve(*asked, ask(after_s=after_s), fresh=fresh)
    assert quoted == receipt.charged
    return receipt, tuple(map(reserved_of, receipt.items))


def numbers(reserved: tuple[Reserved, ...]) -> list[tuple[int, int]]:
    return [(r.release_id, r.attempt) for r in reserved]


class RetrySuite:
    """Subclasses define the fixture `open_ledger`: a function that opens the same books each time it is called."""

    @pytest.fixture
    def open_ledger(self) -> Callable[[], Ledger]:
        raise NotImplementedError

    @pytest.fixture
    def ledger(self, open_ledger: Callable[[], Ledger]) -> Iterator[Ledger]:
        opened = open_ledger()
        yield opened
        opened.verify()
        opened.close()

    def test_an_attempt_that_is_known_to_have_ended_is_made_again_without_a_second_charge(self, ledger: Ledger) -> None:
        receipt, (item,) = attempted(ledger)
        ledger.end(ended(item))
        again, (taken,) = attempted(ledger, after_s=1)
        assert (again.charged, again.balances) == (FREE, receipt.balances)
        assert taken == replace(item, attempt=2)
        assert again.statement > receipt.statement
        ledger.settle(again.statement)
        ledger.store.put(taken, b"noise")
        last = ledger.reserve(payers(), want(), ask(after_s=2))
        assert last.items == (StoredRelease(release_id=item.release_id, key=key(), payload=b"noise"),)
        assert last.charged == FREE
        assert [line.reused for line in ledger.history("alice", 9)] == [True, True, False]

    def test_what_has_no_entry_is_never_taken_up(self, open_ledger: Callable[[], Ledger]) -> None:
        """Nothing was stored, nothing was noted, the process is gone: none of that proves anything."""
        ledger = open_ledger()
        _, (item,) = attempted(ledger)
        ledger.close()
        ledger = open_ledger()
        receipt, (other,) = attempted(ledger)
        assert receipt.charged == FULL
        assert other.release_id == item.release_id + 1
        ledger.close()

    def test_what_has_ended_is_there_after_opening_again(self, open_ledger: Callable[[], Ledger]) -> None:
        ledger = open_ledger()
        _, (item,) = attempted(ledger)
        ledger.end(ended(item))
        ledger.close()
        ledger = open_ledger()
        receipt, taken = attempted(ledger)
        assert (receipt.charged, numbers(taken)) == (FREE, [(item.release_id, 2)])
        ledger.close()
        ledger = open_ledger()
        assert attempted(ledger)[0].charged == FULL  # the second attempt has no end
        ledger.close()

    def test_a_release_is_attempted_three_times_at_most(self, ledger: Ledger) -> None:
        _, items = attempted(ledger)
        for number in range(2, MOST_ATTEMPTS + 1):
            ledger.end(ended(*items))
            receipt, items = attempted(ledger)
            assert (receipt.charged, numbers(items)) == (FREE, [(1, number)])
        with pytest.raises(LedgerFailed, match="was the last one"):
            ledger.end(ended(*items))
        receipt, items = attempted(ledger)
        assert (receipt.charged, numbers(items)) == (FULL, [(2, 1)])

    def test_one_of_many_takes_it_up(self, ledger: Ledger) -> None:
        ledger.end(ended(*attempted(ledger)[1]))
        found, gate = list[tuple[int, int]](), threading.Barrier(8)

        def take() -> None:
            gate.wait()
            found.extend(numbers(tuple(map(reserved_of, ledger.reserve(payers(), want(), ask()).items))))

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [(1, 2), *((number, 1) for number in range(2, 9))]

    def test_an_attempt_that_is_over_stores_nothing(self, ledger: Ledger) -> None:
        """It stalled, was taken for ended or not, and wakes up: what it drew is dropped."""
        _, (first,) = attempted(ledger)
        ledger.end(ended(first))
        with pytest.raises(LedgerFailed, match="an attempt that had ended"):
            ledger.store.put(first, b"before anybody else")
        _, (second,) = attempted(ledger)
        with pytest.raises(LedgerFailed, match="an attempt that had ended"):
            ledger.store.put(first, b"beside the second")
        ledger.store.put(second, b"second")
        for late in (first, second):
            with pytest.raises(LedgerFailed):
                ledger.store.put(late, b"again")
        assert ledger.store.load(1, key()).payload == b"second"

    def test_only_the_latest_attempt_can_end(self, ledger: Ledger) -> None:
        _, (first,) = attempted(ledger)
        ledger.end(ended(first))
        with pytest.raises(LedgerFailed, match="not the latest"):
            ledger.end(ended(first))
        _, (second,) = attempted(ledger)
        with pytest.raises(LedgerFailed, match="not the latest"):
            ledger.end(ended(first))
        ledger.end(ended(second))
        for wrong in (ended(), ended(second, second), ended(second, after=(1,)), ended(second, after=(9,))):
            with pytest.raises(LedgerFailed, match="cannot be booked"):
                ledger.end(wrong)

    def test_a_stored_release_is_given_and_not_drawn_again(self, ledger: Ledger) -> None:
        """One that ended is not stored; if another of its key is, the login gets the one that it paid for."""
        ledger.end(ended(*attempted(ledger)[1]))
        bob = payers(user="bob", session="s2")
        _, (item,) = attempted(ledger, bob)
        ledger.store.put(item, b"bob's")
        receipt, taken = attempted(ledger)
        assert (receipt.charged, numbers(taken)) == (FREE, [(1, 2)])
        ledger.store.put(taken[0], b"hers")
        for accounts, payload in ((payers(), b"hers"), (bob, b"bob's")):
            (found,) = ledger.reserve(accounts, want(), ask()).items
            assert isinstance(found, StoredRelease)
            assert found.payload == payload

    # --- who, what, when ----------------------------------------------------------------------

    def test_another_session_pays_for_it_as_if_it_were_new(self, ledger: Ledger) -> None:
        ledger.end(ended(*attempted(ledger)[1]))
        receipt, taken = attempted(ledger, payers(session="s2"))
        assert (receipt.charged, numbers(taken)) == ((NOTHING, NOTHING, PRICE), [(1, 2)])
        ledger.end(ended(*taken))
        receipt, taken = attempted(ledger)
        assert (receipt.charged, numbers(taken)) == (FREE, [(1, 3)])
        poor = (*payers()[:2], account("session", "poor", pico=999))
        ledger.store.put(taken[0], b"noise")
        with pytest.raises(AccountSpent):
            ledger.reserve(poor, want(), ask())

    def test_a_session_that_cannot_pay_takes_nothing_up(self, ledger: Ledger) -> None:
        ledger.end(ended(*attempted(ledger)[1]))
        with pytest.raises(AccountSpent):
            ledger.reserve((*payers()[:2], account("session", "poor", pico=999)), want(), ask())
        assert numbers(attempted(ledger)[1]) == [(1, 2)]

    def test_another_login_gets_a_release_of_its_own(self, ledger: Ledger) -> None:
        """So what it does with it, and whether it asks at all, changes nothing of what the first one pays."""
        ledger.end(ended(*attempted(ledger)[1]))
        bob = payers(user="bob", session="s2")
        receipt, items = attempted(ledger, bob)
        assert (receipt.charged, numbers(items)) == (FULL, [(2, 1)])
        assert attempted(ledger, payers()[:1])[0].charged == (PRICE,)  # one without login
        receipt, taken = attempted(ledger)
        assert (receipt.charged, numbers(taken)) == (FREE, [(1, 2)])

    def test_who_has_no_login_takes_up_what_nobody_with_one_paid(self, ledger: Ledger) -> None:
        dataset = payers()[:1]
        ledger.end(ended(*attempted(ledger, dataset)[1]))
        assert attempted(ledger)[0].charged == FULL
        receipt, taken = attempted(ledger, dataset)
        assert (receipt.charged, numbers(taken)) == ((NOTHING,), [(1, 2)])

    @pytest.mark.parametrize("part", ["fingerprint", "data_version", "policy_digest"])
    def test_it_answers_its_own_question_only(self, ledger: Ledger, part: str) -> None:
        ledger.end(ended(*attempted(ledger)[1]))
        changed = replace(want()[0], request=replace(want()[0].request, key=replace(key(), **{part: "other"})))
        receipt, items = attempted(ledger, wanted=(changed,))
        assert (receipt.charged, numbers(items)) == (FULL, [(2, 1)])

    def test_fresh_noise_and_any_noise_are_different_questions(self, ledger: Ledger) -> None:
        ledger.end(ended(*attempted(ledger)[1]))
        receipt, items = attempted(ledger, fresh=True)
        assert (receipt.charged, numbers(items)) == (FULL, [(2, 1)])
        ledger.end(ended(*items, fresh=True))
        assert numbers(attempted(ledger)[1]) == [(1, 2)]
        receipt, items = attempted(ledger, fresh=True)
        assert (receipt.charged, numbers(items)) == (FREE, [(2, 2)])

    @pytest.mark.parametrize(
        ("refresh", "days", "is_taken"),
        [
            (Refresh.LIFETIME, 400, True),
            (Refresh.MONTH, 28, True),  # from 2 January 2026, a Friday
            (Refresh.MONTH, 30, False),
            (Refresh.WEEK, 2, True),
            (Refresh.WEEK, 3, False),
            (Refresh.DAY, 0.8, True),
            (Refresh.DAY, 1, False),
        ],
    )
    @pytest.mark.parametrize("kind", ["dataset", "user", "session"])
    def test_what_was_paid_in_another_window_is_not_taken_up(
        self, ledger: Ledger, kind: str, refresh: Refresh, days: float, is_taken: bool
    ) -> None:
        accounts = tuple(account(k, refresh=refresh if k == kind else Refresh.LIFETIME) for k in
                         ("dataset", "user", "session"))  # fmt: skip
        ledger.end(ended(*attempted(ledger, accounts)[1]))
        receipt, items = attempted(ledger, accounts, after_s=days * DAY_S)
        assert (receipt.charged, numbers(items)) == ((FREE, [(1, 2)]) if is_taken else (FULL, [(2, 1)]))

    def test_windows_are_those_of_everybody_who_paid_and_of_the_policy_now(self, ledger: Ledger) -> None:
        """Another session of the login, whose limit came back, would be shown it in a second window."""
        daily = (*payers()[:2], account("session", "s2", refresh=Refresh.DAY))
        ledger.end(ended(*attempted(ledger)[1]))
        ledger.end(ended(*attempted(ledger, daily)[1]))
        assert numbers(attempted(ledger, after_s=DAY_S)[1]) == [(2, 1)]
        ledger.end(ended(*attempted(ledger, wanted=want("b"))[1]))
        edited = payers()[0], account("user", "alice", refresh=Refresh.DAY), payers()[2]
        assert numbers(attempted(ledger, edited, want("b"), after_s=3 * DAY_S)[1]) == [(4, 1)]
        assert numbers(attempted(ledger, payers(), want("b"), after_s=3 * DAY_S)[1]) == [(3, 2)]

    def test_a_clock_that_goes_back_opens_no_window_again(self, ledger: Ledger) -> None:
        daily = (account("dataset"), account("user", refresh=Refresh.DAY))
        ledger.end(ended(*attempted(ledger, daily)[1]))
        attempted(ledger, daily, want("b"), after_s=DAY_S)
        assert numbers(attempted(ledger, daily)[1]) == [(3, 1)]

    # --- stages -------------------------------------------------------------------------------

    def test_the_tickets_of_a_first_stage_are_taken_up_with_it(self, ledger: Ledger) -> None:
        receipt, items = attempted(ledger, wanted=TICKETS)
        ledger.end(ended(*items))
        again, taken = attempted(ledger, wanted=TICKETS)
        assert (again.charged, again.balances) == (FREE, receipt.balances)
        assert numbers(taken) == [(1, 2), (2, 2), (3, 2)]
        bound = ledger.bind(taken[1], want("real")[0], ask().at)
        assert (bound.release_id, bound.attempt) == (2, 2)
        with pytest.raises(LedgerFailed):
            ledger.bind(taken[1], want("real")[0], ask().at)
        ledger.store.put(bound, b"noise")

    def test_a_bound_ticket_is_taken_up_for_its_key_with_those_after_it(self, ledger: Ledger) -> None:
        _, (first, second, third) = attempted(ledger, wanted=TICKETS)
        ledger.store.put(first, b"41")
        ledger.end(ended(ledger.bind(second, want("real")[0], ask().at), third, after=(1,)))
        receipt, items = attempted(ledger, wanted=want("other") + want("later 1", sql=""))
        assert (receipt.charged, numbers(items)) == ((Cost(2000, 14),) * 3, [(4, 1), (5, 1)])
        assert ledger.reserve(payers(), want("first"), ask()).charged == FREE
        receipt, items = attempted(ledger, wanted=want("real") + want("later 1", sql=""))
        assert (receipt.charged, numbers(items)) == (FREE, [(2, 2), (3, 2)])

    def test_a_first_stage_that_is_lost_or_drawn_anew_closes_all_tickets(self, ledger: Ledger) -> None:
        _, (first, second, third) = attempted(ledger, wanted=TICKETS)
        ledger.end(ended(ledger.bind(second, want("real")[0], ask().at), third, after=(first.release_id,)))
        assert ledger.store.has(first.release_id) is False  # as after a power cut
        receipt, items = attempted(ledger, wanted=TICKETS)
        assert (receipt.charged, numbers(items)) == ((Cost(3000, 21),) * 3, [(4, 1), (5, 1), (6, 1)])
        assert attempted(ledger, wanted=want("real"))[0].charged == FULL

    def test_a_ticket_alone_is_not_taken_up(self, ledger: Ledger) -> None:
        """The stage before it is another than the one it was reserved with."""
        _, (first, *tickets) = attempted(ledger, wanted=TICKETS)
        ledger.end(ended(*tickets))
        ledger.end(ended(first))
        receipt, items = attempted(ledger, wanted=TICKETS)
        assert receipt.charged == (Cost(2000, 14),) * 3
        assert numbers(items) == [(1, 2), (4, 1), (5, 1)]

    # --- what is written ----------------------------------------------------------------------

    def test_entries_say_which_attempts_ended_and_which_began(self, ledger: Ledger) -> None:
        _, (item,) = attempted(ledger)
        ledger.end(ended(item, after_s=1))
        attempted(ledger, payers(session="s2"), after_s=2)
        charge, end, again = ledger.entries()
        assert isinstance(charge, Entry)
        assert isinstance(end, Ended)
        assert isinstance(again, Entry)
        (one,) = end.tries
        assert (one.release_id, one.attempt, one.key, one.is_ticket) == (1, 1, key(), False)
        assert (end.reason, end.is_fresh, end.after) == (Reason.LOST, False, ())
        assert (charge.taken, again.taken) == ((), ((1, 2),))
        assert [line.name for line in again.lines] == ["s2"]
        report = ledger.verify()
        assert (report.entries, report.releases) == (3, 0)
        assert report.totals == ledger.all_accounts()

    def test_a_closed_ledger_ends_nothing(self, open_ledger: Callable[[], Ledger]) -> None:
        ledger = open_ledger()
        _, items = attempted(ledger)
        ledger.close()
        with pytest.raises(LedgerFailed):
            ledger.end(ended(*items))
