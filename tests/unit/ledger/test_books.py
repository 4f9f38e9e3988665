"""Books refuse every entry that does not follow from the ones before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.errors import LedgerFailed
from proxy.ledger.books import Books, Pick
from proxy.ledger.chain import Entry, Line, decode, digest, encode
from proxy.plan.charge import AccountKind, Cost, Request
from tests.unit.ledger.make import ask, key, payers

PRICE = Cost(1000, 7)


def pick(release_id: int) -> Pick:
    return Pick(Request(key=key(str(release_id)), cost=PRICE), release_id)


@pytest.fixture
def books() -> Books:
    """Books with release 1 paid by everybody."""
    made = Books()
    made.apply(encode(made.draft(payers(), (pick(1),), ask())))
    return made


@pytest.fixture
def entry(books: Books) -> Entry:
    """A good next entry: release 2, paid by everybody."""
    return books.draft(payers(), (pick(2),), ask())


def test_a_drafted_entry_applies_and_survives_writing(books: Books, entry: Entry) -> None:
    body = encode(entry)
    assert decode(body) == entry
    books.apply(body)
    assert (books.seq, books.head, books.last_release) == (2, digest(body), 2)
    assert books.spent(AccountKind.USER, "alice") == Cost(2000, 14)


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


@pytest.mark.parametrize("body", ["", "{}", "[]", "null", '{"kind":"charge"}', "\N{SNOWMAN}"])
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
    assert entry.lines[1] == Line(kind=AccountKind.USER, name="alice", releases=(2,), cost=PRICE, total=Cost(2000, 14))
