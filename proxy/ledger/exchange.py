"""How do books leave a store, and come into another, as lines of JSON?

Entries are lines as they stand in the chain, oldest first; then stored releases; then a last line that says how many
there were and what the chain ends in, so that a file that was cut short is noticed. Whoever can write such a file can
forge all of it, as with the books themselves: compare its last hash with one that was kept elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from proxy.errors import LedgerFailed
from proxy.ledger.base import VerifiedLedger
from proxy.ledger.books import Books
from proxy.ledger.chain import KINDS
from proxy.plan.charge import ReleaseKey
from proxy.release.store import StoredRelease


@dataclass(frozen=True, slots=True)
class Body:
    """The canonical text of one entry."""

    text: str


Item = Body | StoredRelease


def written(items: Iterable[Item]) -> Iterator[str]:
    """The lines of an export. Raises LedgerFailed, in the middle of it, for books that do not verify."""
    tally = _Tally()
    for item in items:
        tally.add(item)
        yield item.text if isinstance(item, Body) else _release_line(item)
    report = tally.report()
    yield _line({"kind": "end", "entries": report.entries, "releases": report.releases, "head": report.head})


def read(lines: Iterable[str]) -> Iterator[Item]:
    """The items of an export. Raises LedgerFailed, at the latest at its end, unless it is whole and verifies."""
    tally, has_ended = _Tally(), False
    for number, line in enumerate(lines, start=1):
        if has_ended:
            raise LedgerFailed(f"line {number} of the export stands behind its end")
        text = line.rstrip("\n")
        found = _item(text, number)
        if isinstance(found, _End):
            tally.compare(found, number)
            has_ended = True
        else:
            tally.add(found)
            yield found
    if not has_ended:
        raise LedgerFailed("the export was cut short: its last line is missing")


def verified(lines: Iterable[str]) -> VerifiedLedger:
    """What an export holds. Raises LedgerFailed unless it is whole and verifies."""
    tally = _Tally()
    for item in read(lines):
        tally.add(item)
    return tally.report()


@dataclass(frozen=True, slots=True)
class _End:
    entries: int
    releases: int
    head: str


class _Tally:
    """Books that are added up again, and the releases that follow them."""

    def __init__(self) -> None:
        self._books = Books()
        self._releases = 0
        self._last_release = 0

    def add(self, item: Item) -> None:
        if isinstance(item, Body):
            if self._releases:
                raise LedgerFailed("an entry of the export stands behind its releases")
            self._books.apply(item.text)
            return
        if not self._last_release < item.release_id <= self._books.last_release:
            raise LedgerFailed("a stored release was never charged to anybody, or stands twice in the export")
        if item.release_id in self._books.attempts.open_ids:
            raise LedgerFailed("a release is stored whose attempt had ended before")
        self._releases += 1
        self._last_release = item.release_id

    def report(self) -> VerifiedLedger:
        books = self._books
        return VerifiedLedger(entries=books.seq, releases=self._releases, head=books.head, totals=books.totals())

    def compare(self, end: _End, number: int) -> None:
        if (end.entries, end.releases, end.head) != (self._books.seq, self._releases, self._books.head):
            raise LedgerFailed(f"line {number} of the export says that it held something else")


def _item(text: str, number: int) -> Item | _End:
    try:
        document = json.loads(text)
        kind = document["kind"]
        if kind in KINDS:
            return Body(text)
        if kind == "end":
            return _End(document["entries"], document["releases"], document["head"])
        if kind == "release":
            key = ReleaseKey(**{name: str(document[name]) for name in ReleaseKey.__slots__})
            payload = base64.b64decode(document["payload"], validate=True)
            return StoredRelease(release_id=int(document["release_id"]), key=key, payload=payload)
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise LedgerFailed(f"line {number} of the export cannot be read") from error
    raise LedgerFailed(f"line {number} of the export is of no known kind")


def _release_line(stored: StoredRelease) -> str:
    key = {name: getattr(stored.key, name) for name in ReleaseKey.__slots__}
    payload = base64.b64encode(stored.payload).decode("ascii")
    return _line({"kind": "release", "release_id": stored.release_id, **key, "payload": payload})


def _line(document: dict[str, object]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
