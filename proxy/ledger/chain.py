"""How is a charge or a grant written down so that nobody can change it later without being noticed?

An entry is one line of canonical JSON. It names the hash of the entry before it, so a change anywhere changes the
last hash, which is kept outside the file as well (`ledger.head`). There is no secret key: whoever may write every file
of the state directory can forge the books.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from proxy.errors import LedgerFailed
from proxy.plan.charge import AccountKind, Cost
from proxy.policy.model import Accounting, Refresh

GENESIS = "0" * 64
PREVIEW_CHARS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A release that somebody pays for in this entry. `fingerprint` and `data_version` are of its key."""

    release_id: int
    fingerprint: str
    data_version: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class NoLimit:
    """The account was counted without a limit."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What the policy allowed an account in each window when it was charged."""

    cost: Cost
    refresh: Refresh


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one account pays: the sum over `releases`. `total` is all it has spent, this entry included.

    limit: that of the policy then, so that books show by themselves that no charge went beyond it.
    """

    kind: AccountKind
    name: str
    releases: tuple[int, ...]
    cost: Cost
    total: Cost
    limit: Limit | NoLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """An administrator gave one account more than its policy says: for good, or in the window of `at`."""

    seq: int
    previous: str
    at: datetime
    by: str
    reason: str
    kind: AccountKind
    name: str
    accounting: Accounting
    cost: Cost


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
    accounting: Accounting
    releases: tuple[Priced, ...]
    lines: tuple[Line, ...]


Event = Entry | Grant


def preview(query: str) -> tuple[str, str]:
    """The start of a query for its author's history, and the SHA-256 of all of it."""
    return query[:PREVIEW_CHARS], hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()


def encode(event: Event) -> str:
    """The canonical text of an entry: ASCII JSON, keys sorted, no spaces."""
    document = _charge(event) if isinstance(event, Entry) else _grant(event)
    document |= {"seq": event.seq, "previous": event.previous, "accounting": event.accounting.value}
    document["at"] = event.at.astimezone(UTC).isoformat(timespec="microseconds")
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _charge(entry: Entry) -> dict[str, object]:
    return {
        "kind": "charge",
        "login": entry.login,
        "query": entry.query,
        "query_sha256": entry.query_sha256,
        "policy_digest": entry.policy_digest,
        "releases": [[r.release_id, r.fingerprint, r.data_version, *_pair(r.cost)] for r in entry.releases],
        "lines": [
            [line.kind, line.name, list(line.releases), *_pair(line.cost), *_pair(line.total), _limit(line.limit)]
            for line in entry.lines
        ],
    }


def _grant(grant: Grant) -> dict[str, object]:
    account = [grant.kind, grant.name]
    return {"kind": "grant", "by": grant.by, "reason": grant.reason, "account": account, "cost": _pair(grant.cost)}


def _limit(limit: Limit | NoLimit) -> list[object]:
    return [] if isinstance(limit, NoLimit) else [*_pair(limit.cost), limit.refresh]


def decode(body: str) -> Event:
    """The entry that `encode` wrote. Raises LedgerFailed for any other text."""
    try:
        document = json.loads(body)
        event = _READERS[document["kind"]](document)
        is_canonical = encode(event) == body
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerFailed("an entry of the ledger cannot be read") from error
    if not is_canonical:
        raise LedgerFailed("an entry of the ledger was changed by hand")
    return event


def _read_charge(document: dict[str, Any]) -> Entry:
    return Entry(
        seq=document["seq"],
        previous=document["previous"],
        at=datetime.fromisoformat(document["at"]),
        login=document["login"],
        query=document["query"],
        query_sha256=document["query_sha256"],
        policy_digest=document["policy_digest"],
        accounting=Accounting(document["accounting"]),
        releases=tuple(
            Priced(release_id=i, fingerprint=f, data_version=v, cost=Cost(pico, atto))
            for i, f, v, pico, atto in document["releases"]
        ),
        lines=tuple(_read_line(*line) for line in document["lines"]),
    )


def _read_line(
    kind: str, name: str, releases: list[int], pico: int, atto: int, pico_total: int, atto_total: int, limit: list[Any]
) -> Line:
    return Line(
        kind=AccountKind(kind),
        name=name,
        releases=tuple(releases),
        cost=Cost(pico, atto),
        total=Cost(pico_total, atto_total),
        limit=Limit(Cost(limit[0], limit[1]), Refresh(limit[2])) if limit else NoLimit(),
    )


def _read_grant(document: dict[str, Any]) -> Grant:
    kind, name = document["account"]
    pico, atto = document["cost"]
    return Grant(
        seq=document["seq"],
        previous=document["previous"],
        at=datetime.fromisoformat(document["at"]),
        by=document["by"],
        reason=document["reason"],
        kind=AccountKind(kind),
        name=name,
        accounting=Accounting(document["accounting"]),
        cost=Cost(pico, atto),
    )


_READERS: Mapping[str, Callable[[dict[str, Any]], Event]] = {"charge": _read_charge, "grant": _read_grant}


def digest(body: str) -> str:
    """SHA-256 of an entry's canonical text, in hexadecimal."""
    return hashlib.sha256(body.encode("ascii")).hexdigest()


def _pair(cost: Cost) -> tuple[int, int]:
    return cost.pico, cost.atto
