"""Exports verify by themselves, and come in again as they were."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from proxy.errors import ConfigError, LedgerFailed
from proxy.ledger.books import Books
from proxy.ledger.exchange import read, verified, written
from proxy.ledger.moving import items_of, take_in
from proxy.ledger.replay import inspect
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.plan.charge import Cost
from tests.unit.ledger.make import EARLIER, ask, full_disk, gift, payers, reserved_of, want


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """Three charges, a grant between them, two stored releases."""
    with closing(SqliteLedger(tmp_path / "old")) as ledger:
        for name in "abc":
            receipt = ledger.reserve(payers(), want(name), ask("odd \ud800 \x00"))
            if name != "b":
                ledger.store.put(reserved_of(receipt.items[0]), bytes(range(256)))
            else:
                ledger.grant(gift(payers()[1], 5))
    return tmp_path / "old"


@pytest.fixture
def lines(books: Path) -> list[str]:
    return list(written(items_of(books, Books())))


def test_what_comes_in_is_what_went_out(books: Path, lines: list[str], tmp_path: Path) -> None:
    assert [json.loads(line)["kind"] for line in lines] == [
        "charge",
        "charge",
        "grant",
        "charge",
        *["release"] * 2,
        "end",
    ]
    assert all(line.isascii() and "\n" not in line for line in lines)
    new = tmp_path / "new"
    report = take_in(new, read(f"{line}\n" for line in lines))
    assert report == verified(lines) == inspect(books) == inspect(new)
    assert list(written(items_of(new, Books()))) == lines
    with closing(SqliteLedger(new)) as ledger:
        assert list(written(items_of(new, Books()))) == lines  # beside a running proxy
        assert ledger.reserve(payers(), want("a"), ask()).charged == (Cost(0, 0),) * 3
        receipt = ledger.reserve(payers(), want("b"), ask())
        assert reserved_of(receipt.items[0]).release_id == 4
        assert receipt.balances[1].granted == Cost(5, 0)


def change(number: int, old: str, new: str) -> Callable[[list[str]], list[str]]:
    def changed(lines: list[str]) -> list[str]:
        assert old in lines[number]
        return [line.replace(old, new, 1) if line is lines[number] else line for line in lines]

    return changed


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (lambda lines: lines[:-1], "was cut short"),
        (lambda lines: lines[:0], "was cut short"),
        (lambda lines: lines[:2] + lines[3:], "number 3 is missing"),
        (lambda lines: lines[:3] + lines[4:], "never charged to anybody"),
        (lambda lines: lines[:5] + lines[6:], "held something else"),
        (lambda lines: [*lines, lines[0]], "stands behind its end"),
        (lambda lines: [lines[0], lines[4], *lines[1:]], "stands behind its releases"),
        (lambda lines: [*lines[:5], lines[4], *lines[5:]], "stands twice"),
        (change(0, "1000", "1001"), "does not verify"),
        (change(2, '"kind"', ' "kind"'), "changed by hand"),
        (change(3, "odd", "even"), "held something else"),
        (change(4, '"payload":"A', '"payload":"*'), "line 5 of the export cannot be read"),
        (change(4, '"kind":"release"', '"kind":"other"'), "line 5 of the export is of no known kind"),
        (change(6, '"entries":4', '"entries":3'), "line 7 .* held something else"),
        (lambda lines: ["nonsense", *lines], "line 1 of the export cannot be read"),
    ],
)
def test_a_forged_export_is_refused_and_leaves_nothing(
    lines: list[str], tmp_path: Path, forge: Callable[[list[str]], list[str]], message: str
) -> None:
    with pytest.raises(LedgerFailed, match=message):
        verified(forge(lines))
    with pytest.raises(LedgerFailed, match=message):
        take_in(tmp_path / "new", read(forge(lines)))
    assert take_in(tmp_path / "new", read(lines)).entries == 4


def test_books_are_not_written_over(books: Path, lines: list[str], tmp_path: Path) -> None:
    for directory in (books, tmp_path / "empty"):
        SqliteLedger(directory).close()
        with pytest.raises(ConfigError, match="holds a ledger already"):
            take_in(directory, read(lines))
    assert inspect(books).entries == 4
    with closing(SqliteLedger(books)), pytest.raises(ConfigError, match="in use"):
        take_in(books, read(lines))


def test_a_full_disk_leaves_nothing(lines: list[str], tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"x" * 20)
    with full_disk(small), pytest.raises(LedgerFailed, match="could not be written"):
        take_in(tmp_path / "new", read(lines))
    assert take_in(tmp_path / "new", read(lines)).releases == 2


def test_a_broken_file_is_not_exported(books: Path) -> None:
    (books / "ledger.db").write_bytes(b"not a database" * 1000)
    with pytest.raises(LedgerFailed, match="cannot be read"):
        list(items_of(books, Books()))


def test_books_of_an_earlier_version_come_in_as_they_were(tmp_path: Path) -> None:
    lines = EARLIER.read_text().splitlines()
    report = take_in(tmp_path / "new", read(lines))
    assert list(written(items_of(tmp_path / "new", Books()))) == lines
    spent = {t.name: t.spent for t in report.totals}
    assert (spent["shop"], spent["clinic"], spent["town"]) == (Cost(3004, 0), Cost(11000, 70), Cost(10**9, 0))
