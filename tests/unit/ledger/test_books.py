"""Books refuse every entry that does not follow from the ones before it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from proxy.dp.accounting import ATTO, PICO
from proxy.dp.selection import KeyRule
from proxy.errors import LedgerFailed
from proxy.ledger.books import Books, Pick
from proxy.ledger.chain import KINDS, Earlier, Ended, Entry, Limit, Line, Reason, Try, decode, digest, encode
from proxy.plan.charge import AccountKind, Cost, Request
from proxy.policy.model import Accounting, Refresh
from tests.unit.ledger.make import EARLIER, RULE, account, ask, gift, key, payers

PRICE = Cost(1000, 7)


def pick(release_id: int) -> Pick:
    return Pick(Request(key=key(str(release_id)), cost=PRICE), release_id)


def charge(books: Books, release_id: int) -> Entry:
    return books.draft(payers(), (pick(release_id),), ask())


@pytest.fixture
def books() -> Books:
    """Books with release 1 paid by everybody."""
    made = Books()
    made.apply(encode(charge(made, 1)))
    return made


@pytest.fixture
def entry(books: Books) -> Entry:
    """A good next entry: release 2, paid by everybody."""
    return charge(books, 2)


def test_a_drafted_entry_applies_and_survives_writing(books: Books, entry: Entry) -> None:
    body = encode(entry)
    assert decode(body) == entry
    books.apply(body)
    assert (books.seq, books.head, books.last_release) == (2, digest(body), 2)
    assert books.balances(payers())[1].spent == Cost(2000, 14)


def line_of(entry: Entry, **changes: object) -> Entry:
    first, *others = entry.lines
    return replace(entry, lines=(replace(first, **changes), *others))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: replace(e, seq=3), "number 2 is missing"),
        (lambda e: replace(e, previous="0" * 64), "does not continue"),
        (lambda e: replace(e, lines=()), "charges nothing"),
        (lambda e: replace(e, releases=()), "charges nothing"),
        (lambda e: replace(e, releases=e.releases * 2), "something twice"),
        (lambda e: replace(e, lines=e.lines + e.lines[:1]), "something twice"),
        (lambda e: replace(e, releases=(replace(e.releases[0], release_id=3),)), "have a gap"),
        (lambda e: line_of(e, releases=(9,)), "not in it"),
        (lambda e: line_of(e, releases=(2, 2)), "not in it"),
        (lambda e: line_of(e, cost=Cost(999, 7)), "not the sum of its releases"),
        (lambda e: line_of(e, total=Cost(1999, 14)), "not the sum of its charges"),
        (lambda e: line_of(e, limit=Limit(Cost(1999, 14), Refresh.MONTH)), "beyond its account's limit"),
        (lambda e: line_of(e, limit=Limit(Cost(2000, 13), Refresh.LIFETIME)), "beyond its account's limit"),
        (lambda e: replace(e, accounting=Accounting.PURE), "cannot be told in its accounting"),
        (
            lambda e: replace(line_of(e, releases=(1,)), releases=(*e.releases, replace(e.releases[0], release_id=1))),
            "pays twice",
        ),
    ],
)
def test_an_entry_that_does_not_follow_is_refused(books: Books, entry: Entry, change: object, message: str) -> None:
    assert callable(change)
    before = (books.seq, books.head, books.totals())
    with pytest.raises(LedgerFailed, match=message):
        books.apply(encode(change(entry)))
    assert (books.seq, books.head, books.totals()) == before


@pytest.mark.parametrize("change", [{"cost": Cost(0, 0)}, {"reason": ""}])
def test_a_grant_of_nothing_or_without_reason_is_refused(books: Books, change: dict[str, Any]) -> None:
    grant = books.draft_grant(gift(payers()[1], 1, 0))
    with pytest.raises(LedgerFailed, match="grants nothing, or gives no reason"):
        books.apply(encode(replace(grant, **change)))
    body = encode(grant)
    assert books.apply(body) == decode(body) == grant


def end_of(books: Books, attempt: int = 1, release_id: int = 1, **changes: object) -> str:
    """The text of an entry that ends an attempt, right or wrong."""
    tried = Try(release_id=release_id, attempt=attempt, key=key(str(release_id)), is_ticket=False)
    good = Ended(
        seq=books.seq + 1, previous=books.head, at=ask().at, reason=Reason.LOST, is_fresh=False, after=(),
        tries=(tried,),
    )  # fmt: skip
    return encode(replace(good, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attempt", "release", "changes", "message"),
    [
        (1, 1, {"tries": ()}, "ends no attempt"),
        (1, 1, {"after": (1,)}, "or one twice"),
        (1, 2, {}, "nobody was charged for"),
        (1, 0, {}, "nobody was charged for"),
        (1, 1, {"after": (7,)}, "nobody was charged for"),
        (2, 1, {}, "not the latest"),
        (0, 1, {}, "not the latest"),
    ],
)
def test_an_end_of_no_attempt_is_refused(
    books: Books, attempt: int, release: int, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(LedgerFailed, match=message):
        books.apply(end_of(books, attempt, release, **changes))
    body = end_of(books)
    assert books.apply(body) == decode(body)
    with pytest.raises(LedgerFailed, match="not the latest"):
        books.apply(end_of(books))


_NOT_TAKEN = r"is not known to have ended|taken up twice|charges nothing"


def taking(books: Books, *taken: tuple[int, int], after_s: float = 0) -> str:
    """The text of an entry that takes releases up and charges nothing."""
    return encode(replace(books.draft(payers(), (pick(1),), ask(after_s=after_s)), lines=(), releases=(), taken=taken))


@pytest.mark.parametrize("taken", [((1, 1),), ((1, 3),), ((2, 2),), ((1, 2), (1, 2)), ()])
def test_only_what_has_ended_is_taken_up_and_once(books: Books, taken: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(LedgerFailed, match=_NOT_TAKEN):
        books.apply(taking(books, *(taken or ())))
    books.apply(end_of(books))
    with pytest.raises(LedgerFailed, match=_NOT_TAKEN):
        books.apply(taking(books, *taken))
    books.apply(taking(books, (1, 2)))
    assert books.attempts.is_current(1, 2)
    with pytest.raises(LedgerFailed, match="is not known to have ended"):
        books.apply(taking(books, (1, 2)))


def test_a_fourth_attempt_is_refused_whatever_the_entries_say(books: Books) -> None:
    for attempt in (1, 2):
        books.apply(end_of(books, attempt))
        books.apply(taking(books, (1, attempt + 1)))
    with pytest.raises(LedgerFailed, match="was the last one"):
        books.apply(end_of(books, 3))
    with pytest.raises(LedgerFailed, match="is not known to have ended"):
        books.apply(taking(books, (1, 4)))


def test_what_was_paid_in_another_window_is_not_taken_up_by_an_entry_either() -> None:
    books, daily = Books(), (account("dataset"), account("user", refresh=Refresh.DAY))
    books.apply(encode(books.draft(daily, (pick(1),), ask())))
    books.apply(end_of(books))
    with pytest.raises(LedgerFailed, match="of another window"):
        books.apply(taking(books, (1, 2), after_s=86_400))
    books.apply(taking(books, (1, 2), after_s=60))


@pytest.mark.parametrize(("release", "keys"), [(1, ()), (2, (RULE,)), (0, (RULE,))])
def test_keys_of_no_charged_release_are_refused(books: Books, release: int, keys: tuple[KeyRule, ...]) -> None:
    good = books.draft_keyed(1, (RULE,), ask().at)
    with pytest.raises(LedgerFailed, match="tells of no release"):
        books.apply(encode(replace(good, release_id=release, keys=keys)))


def test_the_keys_of_a_release_are_told_once(books: Books) -> None:
    body = encode(books.draft_keyed(1, (RULE,), ask().at))
    assert books.apply(body) == decode(body)
    again = replace(decode(body), seq=books.seq + 1, previous=books.head)
    with pytest.raises(LedgerFailed, match="tells of no release"):
        books.apply(encode(again))


def test_entries_of_earlier_versions_are_read_as_they_stand(books: Books) -> None:
    lines = EARLIER.read_text().splitlines()
    found = [decode(line) for line in lines if json.loads(line)["kind"] in KINDS]
    assert [encode(e) for e in found] == lines[: len(found)]
    assert {type(e.promise) for e in found if isinstance(e, Entry)} == {Earlier}


@pytest.mark.parametrize(
    ("of", "wrong"),
    [('"promise":[1,"add_remove"]', '"promise":[0,"add_remove"]'), ('"promise":[1,', '"promise":[1,2,'),
     ('"promise":[1,"add_remove"]', '"promise":[1,"nobody"]'), (",1000,7]]", ",1000,7,[[30.5,0.0,1.5,10,0]]]]"),
     (",1000,7]]", ",1000,7,[[30.5,5.0,1.5,0,0]]]]"), (",1000,7]]", ",1000,7,[[NaN,5.0,1.5,1,0]]]]")],
)  # fmt: skip
def test_an_impossible_promise_or_rule_cannot_be_read(entry: Entry, of: str, wrong: str) -> None:
    body = encode(entry)
    assert of in body
    with pytest.raises(LedgerFailed, match="cannot be read"):
        decode(body.replace(of, wrong))


@pytest.mark.parametrize("body", ["", '{"kind":"gift"}', "{}", "[]", "null", '{"kind":"charge"}', "\N{SNOWMAN}"])
def test_what_is_no_entry_cannot_be_read(body: str) -> None:
    with pytest.raises(LedgerFailed, match="cannot be read"):
        decode(body)


def test_a_negative_charge_cannot_be_read(entry: Entry) -> None:
    with pytest.raises(LedgerFailed, match="cannot be read"):
        decode(encode(entry).replace("1000", "-1000"))


def test_an_account_of_an_unknown_kind_cannot_be_read(entry: Entry) -> None:
    with pytest.raises(LedgerFailed, match="cannot be read"):
        decode(encode(entry).replace('["user",', '["stranger",'))


def test_an_unknown_field_is_not_overlooked(entry: Entry) -> None:
    with pytest.raises(LedgerFailed, match="changed by hand"):
        decode(encode(entry).replace('"kind"', '"extra":1,"kind"'))


def test_a_line_names_its_account(entry: Entry) -> None:
    limit = Limit(Cost(PICO, ATTO), Refresh.LIFETIME)
    assert entry.lines[1] == Line(
        kind=AccountKind.USER, name="alice", releases=(2,), cost=PRICE, total=Cost(2000, 14), limit=limit
    )
