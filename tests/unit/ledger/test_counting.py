"""What charges count for a promise, against exact fractions; and which entries do not fit what was promised."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from proxy.dp.accounting import ATTO
from proxy.dp.selection import KeyRule, key_rule
from proxy.errors import LedgerFailed
from proxy.ledger.balances import Tab
from proxy.ledger.base import AccountingChanged
from proxy.ledger.books import Books, Pick
from proxy.ledger.chain import Earlier, Entry, Event, Keyed, Priced, encode
from proxy.ledger.promises import NEVER_STATED, PromiseRefused, PromiseTerms, Standing, UnitChanged
from proxy.plan.charge import Account, Cost, Request
from proxy.policy.model import Accounting, Neighbors, Promise, Refresh
from proxy.policy.pledge import RowsOwner
from tests.unit.ledger.make import EARLIER, RULE, account, ask, key, pledge

ACCOUNTS = (account("dataset", "shop", pico=10**40, atto=10**40), account("user", "shop/ann", limited=False))
promises = st.builds(Promise, st.integers(1, 12), st.sampled_from(Neighbors))
rules = st.builds(
    lambda delta, sigma, ratio, keys, group, units: key_rule(
        delta_r=10.0**delta, sigma_n=10.0**sigma, norm_ratio=10.0**ratio, keys_per_unit=keys, group_size=group,
        min_units=units,
    ),
    st.floats(-12, -3), st.floats(-1, 2), st.floats(-1, 1), st.integers(1, 20), st.integers(1, 3), st.integers(0, 3),
)  # fmt: skip


def booked(books: Books, event: Event) -> None:
    books.apply(encode(event))


def pick(release_id: int, cost: Cost, keys: tuple[KeyRule, ...] = (), digest: str = "policy") -> Pick:
    of = replace(key(str(release_id)), policy_digest=digest)
    return Pick(Request(key=of, cost=cost, keys=keys), release_id)


def tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


@dataclass(slots=True)
class Charged:
    """A charge as the model remembers it. day: so many days after the first."""

    promise: Promise
    accounting: Accounting
    day: int
    cost: Cost
    keys: tuple[KeyRule, ...]

    def pico(self, reach: int, accounting: Accounting) -> Fraction:
        """What it counts at least, not rounded."""
        grown = max(Fraction(1), Fraction(reach, self.promise.reach))
        if self.accounting is Accounting.ZCDP:
            return self.cost.pico * grown**2
        epsilon = self.cost.pico * grown
        return epsilon**2 / (2 * 10**12) if accounting is Accounting.ZCDP else epsilon

    def atto(self, group: int) -> float:
        """What it counts, but for the last digits."""
        if group <= self.promise.group_size:
            return float(self.cost.atto)
        return max(float(self.cost.atto), sum(ATTO * min(1.0, self._shown(rule, group)) for rule in self.keys))

    @staticmethod
    def _shown(rule: KeyRule, group: int) -> float:
        margin = rule.tau - max(0, rule.min_units - 1)
        return max(
            group * t * tail((margin - group * min(1.0, rule.norm_ratio / math.sqrt(t))) / rule.sigma_n)
            for t in range(1, rule.keys_per_unit + 1)
        )


@dataclass(slots=True)
class Model:
    charges: list[Charged] = field(default_factory=list)
    reach: int = 1
    group: int = 1


class Edits(RuleBasedStateMachine):
    """Any sequence of edits and charges: no edit lowers a sum, and every sum is what the charges count, rounded up."""

    def __init__(self) -> None:
        super().__init__()
        self.books, self.model, self.bodies = Books(), Model(), list[str]()
        self.accounting = Accounting.PURE
        self.day = 0

    @rule(promise=promises)
    def edit(self, promise: Promise) -> None:
        before = self.sums()
        self.book(self.books.draft_pledge(pledge(promise), ask(after_s=86400 * self.day).at))
        self.model.reach = max(self.model.reach, promise.reach)
        self.model.group = max(self.model.group, promise.group_size)
        after = self.sums()
        assert all(a.pico <= b.pico and a.atto <= b.atto for a, b in zip(before, after, strict=True))

    @rule(promise=promises, pico=st.integers(1, 10**13), keys=st.lists(rules, max_size=2), later=st.integers(0, 3))
    def charge(self, promise: Promise, pico: int, keys: list[KeyRule], later: int) -> None:
        if promise.reach > self.model.reach or promise.group_size > self.model.group:
            return
        self.day += later
        atto = 10**9 * len(keys) if self.accounting is Accounting.ZCDP else 0
        cost, shown = Cost(pico, atto), tuple(keys) if atto else ()
        payers = tuple(replace(a, promise=promise, accounting=self.accounting) for a in ACCOUNTS)
        number = self.books.last_release + 1
        entry = self.books.draft(payers, (pick(number, cost, shown),), ask(after_s=86400 * self.day))
        self.book(entry)
        self.model.charges.append(Charged(promise, self.accounting, self.day, cost, shown))
        assert entry.lines[0].cost == self.books.due(replace(payers[0], name="shop/new"), (pick(number, cost, shown),))

    @rule()
    def change_accounting(self) -> None:
        self.accounting = Accounting.ZCDP

    def book(self, event: Event) -> None:
        self.bodies.append(encode(event))
        self.books.apply(self.bodies[-1])

    def sums(self) -> list[Cost]:
        at = ask(after_s=86400 * self.day).at
        every = [replace(ACCOUNTS[0], accounting=self.accounting, refresh=r) for r in Refresh]
        return [b.spent for b in self.books.balances(tuple(every), at)]

    @invariant()
    def every_sum_is_what_the_charges_count(self) -> None:
        of, model = self.accounting, self.model
        lifetime, today, *_ = self.sums()
        for spent, charges in ((lifetime, model.charges), (today, [c for c in model.charges if c.day == self.day])):
            exact = sum((c.pico(model.reach, of) for c in charges), start=Fraction(0))
            assert exact <= spent.pico <= exact + (300 + 2 * model.reach**2) * len(charges)
            atto = sum(c.atto(model.group) for c in charges)
            assert atto * (1 - 1e-9) <= spent.atto <= atto * (1 + 1e-6) + 2 * len(charges)

    def teardown(self) -> None:
        again = Books()
        for body in self.bodies:
            again.apply(body)
        assert (again.head, again.totals()) == (self.books.head, self.books.totals())


TestEdits = Edits.TestCase
TestEdits.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)


# --- entries that do not fit ----------------------------------------------------------------------------------


def payers(promise: Promise) -> tuple[Account, ...]:
    return tuple(replace(a, promise=promise) for a in ACCOUNTS)


@pytest.fixture
def books() -> Books:
    """Books that have promised groups of 3 of one unit, and groups of 2 of another one since."""
    made = Books()
    for one in (pledge(Promise(3)), pledge(Promise(2), unit="household", changed_from="customer", digest="policy")):
        booked(made, made.draft_pledge(one, ask().at))
    return made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: replace(e, promise=Promise(4)), "for a promise that was never stated"),
        (lambda e: replace(e, promise=Promise(2, Neighbors.REPLACE_ONE)), "for a promise that was never stated"),
        (lambda e: replace(e, policy_digest="before"), "about another unit"),
        (lambda e: replace(e, promise=Promise(1)), "not the sum of its releases"),
        (lambda e: replace(e, promise=Earlier("x"), releases=tuple(replace(r, keys=()) for r in e.releases)),
         "cannot be counted for what is promised"),
    ],
)  # fmt: skip
def test_a_charge_that_does_not_fit_what_was_promised_is_refused(
    books: Books, change: Callable[[Entry], Entry], message: str
) -> None:
    good = books.draft(payers(Promise(3)), (pick(1, Cost(9, 7), (RULE,)),), ask())
    with pytest.raises(LedgerFailed, match=message):
        booked(books, change(good))
    booked(books, good)


def test_rules_that_come_too_late_are_refused() -> None:
    books = Books()
    booked(books, books.draft(ACCOUNTS, (pick(1, Cost(9, 7)), pick(2, Cost(9, 0))), ask()))
    late = books.draft_keyed(1, (RULE,), ask().at)
    booked(books, books.draft_pledge(pledge(Promise(1, Neighbors.REPLACE_ONE)), ask().at))
    booked(books, books.draft_pledge(pledge(Promise(2)), ask().at))
    with pytest.raises(LedgerFailed, match="more was promised before its rules were told"):
        booked(books, replace(late, seq=books.seq + 1, previous=books.head))
    with pytest.raises(LedgerFailed, match="waits for its rules"):
        booked(books, Keyed(seq=books.seq + 1, previous=books.head, at=ask().at, release_id=2, keys=(RULE,)))


def test_a_promise_that_does_not_fit_is_refused() -> None:
    books = Books()
    for line in EARLIER.read_text().splitlines()[:6]:
        books.apply(line)
    good = books.draft_pledge(pledge(dataset="clinic"), ask().at)
    with pytest.raises(LedgerFailed, match="cannot be counted for it"):
        booked(books, replace(good, pledge=pledge(Promise(2), dataset="clinic")))
    with pytest.raises(PromiseRefused):
        books.draft_pledge(pledge(Promise(2), dataset="clinic"), ask().at)
    booked(books, good)
    other = pledge(dataset="clinic", unit="household", digest="other")
    with pytest.raises(LedgerFailed, match="about another unit"):
        booked(books, replace(good, seq=books.seq + 1, previous=books.head, pledge=other))
    with pytest.raises(UnitChanged):
        books.draft_pledge(other, ask().at)


def test_what_was_spent_before_is_refused_in_an_accounting_that_has_no_number_for_it() -> None:
    books = Books()
    booked(books, books.draft(ACCOUNTS, (pick(1, Cost(9, 0)),), ask()))
    assert books.spent_before(ACCOUNTS[0], ask().at) == Cost(9, 0)
    with pytest.raises(AccountingChanged):
        books.spent_before(replace(ACCOUNTS[0], accounting=Accounting.PURE), ask().at)


# --- units -----------------------------------------------------------------------------------------------------


def stated(*pledges: object) -> Standing:
    standing = NEVER_STATED
    for one in pledges:
        standing = standing.after(one, ask().at)  # type: ignore[arg-type]  # pledges
    return standing


def test_one_acknowledgement_is_for_one_change() -> None:
    first = pledge(digest="1")
    second = pledge(owners="the unit is account_id", changed_from="customer", digest="2")
    third = pledge(owners="the unit is family_id", changed_from="customer", digest="3")
    assert len(stated(first, second).breaks) == 1
    with pytest.raises(UnitChanged) as refused:
        stated(first, second, third)
    assert "account_id no more, but the unit is family_id" in refused.value.detail
    assert len(stated(first, second, replace(third, unit="family")).breaks) == 2
    assert len(stated(first, second, replace(first, changed_from="customer", unit="person")).breaks) == 2


def test_there_and_back_are_two_changes() -> None:
    there = pledge(unit="household", changed_from="customer", digest="2")
    back = pledge(changed_from="household", digest="3")
    again = pledge(unit="household", changed_from="customer", digest="4")
    found = stated(pledge(digest="1"), there, back, again)
    assert [(b.was, b.now) for b in found.breaks] == [
        ("customer", "household"), ("household", "customer"), ("customer", "household"),
    ]  # fmt: skip
    assert found.digests == {"4"}


def test_tables_that_come_and_go_are_remembered() -> None:
    by_id, by_uid = RowsOwner("the unit is id"), RowsOwner("the unit is uid")
    only = replace(pledge(digest="1"), owners=(("table a", by_id),))
    other = replace(only, policy_digest="2", owners=(("table b", by_uid),))
    back = replace(only, policy_digest="3", owners=(("table a", by_uid), ("table b", by_uid)))
    assert stated(only, other).owners == {"table a": by_id, "table b": by_uid}
    with pytest.raises(UnitChanged) as refused:
        stated(only, other, back)
    assert refused.value.detail.startswith("Of table a, the unit is id no more, but the unit is uid. ")


def test_a_dataset_whose_first_policy_gives_up_a_unit_says_so() -> None:
    found = stated(pledge(changed_from="person"), pledge(digest="2", changed_from="person"))
    assert [(b.was, b.now) for b in found.breaks] == [("person", "customer")]


@given(st.lists(promises, min_size=1, max_size=6), promises)
def test_what_stands_is_the_most_of_each_kind(made: list[Promise], asked: Promise) -> None:
    standing = stated(*map(pledge, made))
    assert standing.reach == max(p.reach for p in made)
    assert standing.group_size == max(p.group_size for p in made)
    assert standing.covers(asked) is (asked.reach <= standing.reach and asked.group_size <= standing.group_size)
    terms = PromiseTerms(standing, {"x": asked}, {})
    assert terms.is_more(Earlier("x")) is terms.is_more(asked) is (standing.group_size > asked.group_size)


def test_counted_again_for_less_nothing_counts_less() -> None:
    """What was promised only grows; a sum would not shrink if it did, on any day."""
    more, less = (stated(pledge(Promise(n))) for n in (3, 1))
    tab = Tab()
    priced = Priced(release_id=1, fingerprint="f", data_version="1", cost=Cost(10**9, 0))
    tab.charge(Accounting.ZCDP, Promise(1), 5, (priced,), PromiseTerms(more, {}, {}))
    before = tab.spent[Accounting.ZCDP]
    for terms in (PromiseTerms(less, {}, {}), PromiseTerms(more, {}, {})):
        tab.recount(terms)
        assert tab.spent[Accounting.ZCDP] == before
