"""How is one charge written down so that nobody can change it later without being noticed?

An entry is one line of canonical JSON. It names the hash of the entry before it, so a change anywhere changes the
last hash, which is kept outside the file as well (`ledger.head`). There is no secret key: whoever may write every file
of the state directory can forge the books.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime

from proxy.errors import LedgerFailed
from proxy.plan.charge import AccountKind, Cost

GENESIS = "0" * 64
PREVIEW_CHARS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A release that somebody pays for in this entry. `fingerprint` and `data_version` are of its key."""

    release_id: int
    fingerprint: str
    data_version: str
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one account pays: the sum over `releases`. `total` is all it has spent, this entry included."""

    kind: AccountKind
    name: str
    releases: tuple[int, ...]
    cost: Cost
    total: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One statement's charge. `query` is the start of the client's text, `query_sha256` covers all of it."""

    seq: int
    previous: str
    at: datetime
    login: str
    query: str
    query_sha256: str
    policy_digest: str
    releases: tuple[Priced, ...]
    lines: tuple[Line, ...]


def preview(query: str) -> tuple[str, str]:
    """The start of a query for its author's history, and the SHA-256 of all of it."""
    return query[:PREVIEW_CHARS], hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()


def encode(entry: Entry) -> str:
    """The canonical text of an entry: ASCII JSON, keys sorted, no spaces."""
    document = {
        "kind": "charge",
        "seq": entry.seq,
        "previous": entry.previous,
        "at": entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "login": entry.login,
        "query": entry.query,
        "query_sha256": entry.query_sha256,
        "policy_digest": entry.policy_digest,
        "releases": [[r.release_id, r.fingerprint, r.data_version, *_pair(r.cost)] for r in entry.releases],
        "lines": [
            [line.kind, line.name, list(line.releases), *_pair(line.cost), *_pair(line.total)] for line in entry.lines
        ],
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def decode(body: str) -> Entry:
    """The entry that `encode` wrote. Raises LedgerFailed for any other text."""
    try:
        document = json.loads(body)
        entry = Entry(
            seq=document["seq"],
            previous=document["previous"],
            at=datetime.fromisoformat(document["at"]),
            login=document["login"],
            query=document["query"],
            query_sha256=document["query_sha256"],
            policy_digest=document["policy_digest"],
            releases=tuple(
                Priced(release_id=i, fingerprint=f, data_version=v, cost=Cost(pico, atto))
                for i, f, v, pico, atto in document["releases"]
            ),
            lines=tuple(
                Line(
                    kind=AccountKind(k),
                    name=n,
                    releases=tuple(r),
                    cost=Cost(pico, atto),
                    total=Cost(pico_total, atto_total),
                )
                for k, n, r, pico, atto, pico_total, atto_total in document["lines"]
            ),
        )
        is_canonical = encode(entry) == body
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerFailed("an entry of the ledger cannot be read") from error
    if not is_canonical:
        raise LedgerFailed("an entry of the ledger was changed by hand")
    return entry


def digest(body: str) -> str:
    """SHA-256 of an entry's canonical text, in hexadecimal."""
    return hashlib.sha256(body.encode("ascii")).hexdigest()


def _pair(cost: Cost) -> tuple[int, int]:
    return cost.pico, cost.atto
