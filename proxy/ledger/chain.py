"""How is what accounts are charged and given written down so that nobody can change it later without being noticed?

An entry is one line of canonical JSON. It names the hash of the entry before it, so a change anywhere changes the
last hash, which is kept outside the file as well (`ledger.head`). There is no secret key: whoever may write every file
of the state directory can forge the books.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_never

from proxy.dp.selection import KeyRule
from proxy.errors import LedgerFailed
from proxy.plan.charge import AccountKind, Cost, ReleaseKey
from proxy.policy.model import Accounting, Neighbors, Promise, Refresh
from proxy.policy.pledge import Pledge, RowsOwner

GENESIS = "0" * 64
PREVIEW_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Earlier:
    """Entries of earlier versions name the policy alone, not what it promised nor how private keys were shown."""

    policy_digest: str


Origin = Promise | Earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A release that somebody pays for in this entry. `fingerprint` and `data_version` are of its key.

    keys: the rules by which it shows private keys; none if it has none, or if they are known later: see `Keyed`.
    """

    release_id: int
    fingerprint: str
    data_version: str
    cost: Cost
    keys: tuple[KeyRule, ...] = ()


@dataclass(frozen=True, slots=True)
class Unlimited:
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
    limit: Limit | Unlimited


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
    """One statement's charge. `query` is the start of the client's text, `query_sha256` covers all of it.

    promise: for which the costs were computed. taken: releases that were paid for before and are attempted again, with
    the number of the attempt that begins.
    """

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
    promise: Origin
    taken: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """By which rules a later stage shows private keys: known when it is asked, after its charge and before it runs."""

    seq: int
    previous: str
    at: datetime
    release_id: int
    keys: tuple[KeyRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pledged:
    """What was promised of a dataset from then on."""

    seq: int
    previous: str
    at: datetime
    pledge: Pledge


class Reason(enum.StrEnum):
    """Why an attempt ended that may be made again."""

    UNREACHABLE = "unreachable"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """An attempt at a release. key: what it was to answer. is_ticket: nothing was asked for yet."""

    release_id: int
    attempt: int
    key: ReleaseKey
    is_ticket: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Attempts of one statement have ended, with their sessions, before any noise was drawn for these releases.

    after: releases that the statement had been shown before.
    """

    seq: int
    previous: str
    at: datetime
    reason: Reason
    is_fresh: bool
    after: tuple[int, ...]
    tries: tuple[Try, ...]


Event = Entry | Grant | Keyed | Pledged | Ended


def preview(query: str) -> tuple[str, str]:
    """The start of a query for its author's history, and the SHA-256 of all of it."""
    return query[:PREVIEW_CHARS], hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()


def encode(event: Event) -> str:
    """The canonical text of an entry: ASCII JSON, keys sorted, no spaces."""
    document = _document(event)
    document |= {"seq": event.seq, "previous": event.previous}
    document["at"] = event.at.astimezone(UTC).isoformat(timespec="microseconds")
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _document(event: Event) -> dict[str, object]:
    match event:
        case Entry():
            return _charge(event)
        case Grant():
            return _grant(event)
        case Keyed(release_id=number, keys=keys):
            return {"kind": "keys", "release": number, "keys": _rules(keys)}
        case Pledged(pledge=pledge):
            return _pledge(pledge)
        case Ended():
            return _ended(event)
        case _ as never:
            assert_never(never)


def _charge(entry: Entry) -> dict[str, object]:
    charge: dict[str, object] = {
        "kind": "charge",
        "login": entry.login,
        "query": entry.query,
        "query_sha256": entry.query_sha256,
        "policy_digest": entry.policy_digest,
        "accounting": entry.accounting.value,
        "releases": [_release(r) for r in entry.releases],
        "lines": [
            [line.kind, line.name, list(line.releases), *_pair(line.cost), *_pair(line.total), _limit(line.limit)]
            for line in entry.lines
        ],
    }
    if isinstance(entry.promise, Promise):
        charge["promise"] = _promise(entry.promise)
    if entry.taken:
        charge["taken"] = [list(one) for one in entry.taken]
    return charge


def _pledge(pledge: Pledge) -> dict[str, object]:
    return {
        "kind": "pledge",
        "dataset": pledge.dataset,
        "policy_digest": pledge.policy_digest,
        "promise": _promise(pledge.promise),
        "unit": pledge.unit,
        "owners": [[name, owner.words, list(owner.parents)] for name, owner in pledge.owners],
        "changed_from": pledge.changed_from,
    }


def _promise(promise: Promise) -> list[object]:
    return [promise.group_size, promise.neighbors.value]


def _release(release: Priced) -> list[object]:
    keys = [_rules(release.keys)] if release.keys else []
    return [release.release_id, release.fingerprint, release.data_version, *_pair(release.cost), *keys]


def _rules(keys: tuple[KeyRule, ...]) -> list[list[object]]:
    return [[k.tau, k.sigma_n, k.norm_ratio, k.keys_per_unit, k.min_units] for k in keys]


def _grant(grant: Grant) -> dict[str, object]:
    return {
        "kind": "grant",
        "by": grant.by,
        "reason": grant.reason,
        "account": [grant.kind, grant.name],
        "accounting": grant.accounting.value,
        "cost": _pair(grant.cost),
    }


def _ended(ended: Ended) -> dict[str, object]:
    tries = [
        [o.release_id, o.attempt, o.key.fingerprint, o.key.policy_digest, o.key.data_version, o.is_ticket]
        for o in ended.tries
    ]
    after = list(ended.after)
    return {"kind": "ended", "reason": ended.reason.value, "fresh": ended.is_fresh, "after": after, "tries": tries}


def _limit(limit: Limit | Unlimited) -> list[object]:
    return [] if isinstance(limit, Unlimited) else [*_pair(limit.cost), limit.refresh]


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
        releases=tuple(_read_release(*release) for release in document["releases"]),
        lines=tuple(_read_line(*line) for line in document["lines"]),
        promise=_read_promise(*document["promise"]) if "promise" in document else Earlier(document["policy_digest"]),
        taken=tuple((release_id, attempt) for release_id, attempt in document.get("taken", ())),
    )


def _read_release(
    number: int, fingerprint: str, data_version: str, pico: int, atto: int, keys: list[list[Any]] | None = None
) -> Priced:
    rules = _read_rules(keys or [])
    cost = Cost(pico, atto)
    return Priced(release_id=number, fingerprint=fingerprint, data_version=data_version, cost=cost, keys=rules)


def _read_promise(group_size: int, neighbors: str) -> Promise:
    return Promise(group_size, Neighbors(neighbors))


def _read_rules(keys: list[list[Any]]) -> tuple[KeyRule, ...]:
    return tuple(
        KeyRule(tau=tau, sigma_n=sigma_n, norm_ratio=norm_ratio, keys_per_unit=keys_per_unit, min_units=min_units)
        for tau, sigma_n, norm_ratio, keys_per_unit, min_units in keys
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
        limit=Limit(Cost(limit[0], limit[1]), Refresh(limit[2])) if limit else Unlimited(),
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


def _read_keyed(document: dict[str, Any]) -> Keyed:
    return Keyed(
        seq=document["seq"],
        previous=document["previous"],
        at=datetime.fromisoformat(document["at"]),
        release_id=document["release"],
        keys=_read_rules(document["keys"]),
    )


def _read_pledged(document: dict[str, Any]) -> Pledged:
    pledge = Pledge(
        dataset=document["dataset"],
        policy_digest=document["policy_digest"],
        promise=_read_promise(*document["promise"]),
        unit=document["unit"],
        owners=tuple((name, RowsOwner(words, tuple(parents))) for name, words, parents in document["owners"]),
        changed_from=document["changed_from"],
    )
    at = datetime.fromisoformat(document["at"])
    return Pledged(seq=document["seq"], previous=document["previous"], at=at, pledge=pledge)


def _read_ended(document: dict[str, Any]) -> Ended:
    return Ended(
        seq=document["seq"],
        previous=document["previous"],
        at=datetime.fromisoformat(document["at"]),
        reason=Reason(document["reason"]),
        is_fresh=document["fresh"],
        after=tuple(document["after"]),
        tries=tuple(_read_try(*one) for one in document["tries"]),
    )


def _read_try(
    release_id: int, attempt: int, fingerprint: str, policy_digest: str, data_version: str, is_ticket: bool
) -> Try:
    key = ReleaseKey(fingerprint=fingerprint, policy_digest=policy_digest, data_version=data_version)
    return Try(release_id=release_id, attempt=attempt, key=key, is_ticket=is_ticket)


_READERS: Mapping[str, Callable[[dict[str, Any]], Event]] = {
    "charge": _read_charge,
    "grant": _read_grant,
    "keys": _read_keyed,
    "pledge": _read_pledged,
    "ended": _read_ended,
}
KINDS = frozenset(_READERS)


def digest(body: str) -> str:
    """SHA-256 of an entry's canonical text, in hexadecimal."""
    return hashlib.sha256(body.encode("ascii")).hexdigest()


def _pair(cost: Cost) -> tuple[int, int]:
    return cost.pico, cost.atto
