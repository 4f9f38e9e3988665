"""Which noisy results exist already, so that the same question is answered with the same numbers?

The payload is opaque here: the canonical bytes of a finished release, noisy numbers and keys only. Nothing in this
file charges anybody; who pays for seeing a stored release is the ledger's rule.

The rows live in the ledger's SQLite file, not in one beside it: release ids are given out by the ledger, and two files
could be restored to different moments, so that an id paid for in one would name other numbers in the other. A `put` is
not forced to disk. A release lost in a crash is charged again when it is asked again, which is sound; the only
unsound loss would be a second draw under one charge, and `put` refuses a release id it has seen. One that was attempted
before is forced, so that a further attempt would find it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from proxy.errors import LedgerFailed
from proxy.plan.charge import ReleaseKey, Reserved

SCHEMA = (
    """create table if not exists release (
        release_id integer primary key,
        fingerprint text not null,
        policy_digest text not null,
        data_version text not null,
        payload blob not null
    ) strict""",
    "create index if not exists release_key on release (fingerprint, policy_digest, data_version)",
)

_AT_A_TIME = 8
_NO_RELEASE = 2**63 - 1  # above every id


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRelease:
    """A finished release: the noisy numbers that everybody who asks for `key` may be shown once they paid."""

    release_id: int
    key: ReleaseKey
    payload: bytes


@dataclass(frozen=True, slots=True)
class NotStored:
    """No finished release has that key."""


class ReleaseStore(Protocol):
    """Finished releases by key, wherever they are kept. Safe to call from any thread.

    Every method raises LedgerFailed when the store cannot be read or written.
    """

    def put(self, reserved: Reserved, payload: bytes) -> None:
        """Keep the finished release that `reserved` paid for; durably before it returns if it was attempted before.

        Raises LedgerFailed when this release id is stored already, or attempted by somebody else since: one charge
        buys one draw of noise.
        """
        ...

    def has(self, release_id: int) -> bool:
        """Whether the release is finished."""
        ...

    def completed(self, key: ReleaseKey) -> Iterator[int]:
        """Ids of the finished releases of `key`, newest first; several if asked at the same time, or fresh."""
        ...

    def load(self, release_id: int, key: ReleaseKey) -> StoredRelease:
        """The finished release `release_id`, which `completed(key)` named."""
        ...

    def get(self, key: ReleaseKey) -> StoredRelease | NotStored:
        """The newest finished release of `key`, whoever paid for it."""
        ...

    def close(self) -> None: ...


class SqliteStore:
    """Finished releases over one connection to the ledger's file. Implements `ReleaseStore`.

    attempting: keeps an attempt the latest one, or raises.
    """

    def __init__(
        self, connection: sqlite3.Connection, attempting: Callable[[Reserved], AbstractContextManager[None]]
    ) -> None:
        self._connection = connection
        self._attempting = attempting
        self._lock = threading.Lock()

    def put(self, reserved: Reserved, payload: bytes) -> None:
        """Claim (docs/claims/retry.md): only the latest attempt stores, once; a further one on the disk."""
        key = reserved.key
        row = (reserved.release_id, key.fingerprint, key.policy_digest, key.data_version, payload)
        with self._attempting(reserved), self._lock:
            try:
                with self._forced(reserved.attempt > 1):
                    self._connection.execute("insert into release values (?, ?, ?, ?, ?)", row)
            except sqlite3.IntegrityError as error:
                raise LedgerFailed("a release was about to be stored twice under one charge") from error
            except sqlite3.Error as error:
                raise LedgerFailed(
                    "a finished release could not be stored",
                    hint="Free space on the disk of the state directory; the charge stays.",
                ) from error

    def completed(self, key: ReleaseKey) -> Iterator[int]:
        """Ids of the finished releases of `key`, newest first, read when they are asked for.

        More than one if two were asked at the same time, or fresh ones.
        """
        sql = (
            "select release_id from release where fingerprint = ? and policy_digest = ? and data_version = ?"
            " and release_id < ? order by release_id desc limit ?"
        )
        below = _NO_RELEASE
        while rows := self._read(sql, (key.fingerprint, key.policy_digest, key.data_version, below, _AT_A_TIME)):
            for (release_id,) in rows:
                below = int(release_id)
                yield below

    def load(self, release_id: int, key: ReleaseKey) -> StoredRelease:
        """The finished release `release_id`, which `completed(key)` named."""
        rows = self._read("select payload from release where release_id = ?", (release_id,))
        if not rows:
            raise LedgerFailed("a stored release has vanished")
        return StoredRelease(release_id=release_id, key=key, payload=bytes(rows[0][0]))

    def has(self, release_id: int) -> bool:
        return bool(self._read("select 1 from release where release_id = ?", (release_id,)))

    @contextmanager
    def _forced(self, is_forced: bool) -> Iterator[None]:
        """Commits inside are on the disk when they return, if that is wanted."""
        if not is_forced:
            yield
            return
        self._connection.execute("pragma synchronous = full")
        try:
            yield
        finally:
            self._connection.execute("pragma synchronous = normal")

    def get(self, key: ReleaseKey) -> StoredRelease | NotStored:
        """The newest finished release of `key`, whoever paid for it."""
        newest = next(self.completed(key), _NO_RELEASE)
        return self.load(newest, key) if newest != _NO_RELEASE else NotStored()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _read(self, sql: str, parameters: tuple[object, ...]) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except sqlite3.Error as error:
                raise LedgerFailed("stored releases cannot be read") from error
