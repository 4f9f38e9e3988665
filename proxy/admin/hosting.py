"""How does a policy file become a version of a dataset, and what becomes of the dataset when its files change?

An edited file is taken as a whole or not at all. One that could not be taken is tried again when it, or the data it
names, are touched. Which engine keeps the data is decided above.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from proxy.admin.files import read_text, read_users, read_with_text, write_over
from proxy.admin.guests import Guests, kept_guests
from proxy.admin.kept_policies import keep_policy
from proxy.admin.open_files import make_room
from proxy.admin.profiles.file import path_of, read_profiles, with_paid
from proxy.admin.proposing.public_values import with_found_values
from proxy.admin.reload import FileWatch
from proxy.admin.role_check import check_roles
from proxy.admin.state import new_spill
from proxy.analysis.units import UniqueKeys
from proxy.config import UsersAt, UsersSource
from proxy.engines.base import Engine
from proxy.errors import ConfigError, HushError
from proxy.events import LoggedEvent, tell
from proxy.front.front import Front
from proxy.identity.vouchers import open_voucher
from proxy.ledger.base import Ledger
from proxy.ledger.lifetime import worst_case_lines
from proxy.ledger.restated import overspent_lines, restated_lines
from proxy.metrics import Metrics
from proxy.plan.profile.learned import with_limits, without_limit
from proxy.plan.profile.profile import TableProfile
from proxy.policy.diff import Effect, diff
from proxy.policy.load import load_policy
from proxy.policy.model import DataFiles, DuckDBFile, Policy, PostgresSource, SparkSource, Table, UnitVia, Users
from proxy.policy.pledge import pledge_of
from proxy.policy.users import UNCHECKED
from proxy.session.asking.plancache import PlanCache
from proxy.session.dataset import Dataset, DataStamp, Version, dataset_account
from proxy.session.uses import Uses

_log = logging.getLogger("hushql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """Opens versions. open_engine: given a policy and where to spill; raises ConfigError. secret: that of a name."""

    state: Path
    ledger: Ledger
    users: UsersSource
    open_engine: Callable[[Policy, Path], Engine]
    secret: Callable[[str], bytes]

    async def open(self, policy: Policy, users: Users | None = None) -> Version:
        """Open the data and check what the policy declares about them, on another thread. Raises HushError.

        users: those of the policy, where they were read before. When cancelled, what that thread opens is closed again.
        """
        opening = asyncio.ensure_future(asyncio.to_thread(self._open, policy, users))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            with contextlib.suppress(HushError):
                (await opening).engine.close()
            raise

    async def reopen(self, policy: Policy, present: Version) -> Version:
        """`open` beside a version in force; with its engine if the policy and the files of the data are the same.

        What is declared of a server's data is checked again: they may be others. Raises HushError.
        """
        if policy != present.policy or not present.data_stamp or data_stamp(policy) != present.data_stamp:
            return await self.open(policy)
        return await asyncio.to_thread(self._checked, policy, present.engine, present.data_stamp)

    def with_profiles(self, version: Version) -> Version:
        """The version with the profiles that were made meanwhile, if their file can be read."""
        try:
            profiles, _ = self.profiles(version.policy)
        except HushError:
            return version
        return replace(version, profiles=profiles)

    def profiles(self, policy: Policy) -> tuple[tuple[TableProfile, ...], tuple[str, ...]]:
        """Those that fit a policy and that its dataset has paid for, and what is said of others. Raises HushError."""
        fitting, said = read_profiles(path_of(self.state, policy.dataset), policy)
        served, more = with_paid(fitting, self.ledger, dataset_account(policy))
        return served, (*said, *more)

    def users_path(self, policy: Policy) -> Path:
        return self.users.path if isinstance(self.users, UsersAt) else Path(policy.users_file)

    def read_users(self, policy: Policy) -> Users:
        """The logins of a policy, whose roles fit it. Raises ConfigError, PolicyError."""
        is_shared = isinstance(self.users, UsersAt)
        users = read_users(self.users_path(policy), UNCHECKED if is_shared else tuple(policy.tables))
        check_roles(policy, users)
        return users

    def _open(self, policy: Policy, users: Users | None) -> Version:
        stamp = data_stamp(policy)  # before the data are opened: what is replaced meanwhile is another
        engine = self.open_engine(policy, new_spill(self.state, policy.dataset))
        try:
            return self._checked(policy, engine, stamp, users)
        except BaseException:
            engine.close()
            raise

    def _checked(self, policy: Policy, engine: Engine, stamp: DataStamp, users: Users | None = None) -> Version:
        users = self.read_users(policy) if users is None else users
        salt = self.secret(f"{policy.dataset}.salt").hex()
        profiles, said = self.profiles(policy)
        for line in said:
            _log.warning("%s: %s", policy.dataset, line)
        for name in without_limit(with_limits(policy.tables, profiles)):
            _log.warning("%s: table %s is not answered until hushql profile tells how many rows units have",
                         policy.dataset, name)  # fmt: skip
        facts = engine.check_facts(policy)
        limited = facts.with_limited_digits(policy.tables)
        better = {**limited, **with_found_values({**policy.tables, **limited}, engine.public_rows)}
        unique = frozenset((j.ref_table, j.ref_column) for j in facts.joins if j.is_unique)
        parents, now = frozenset(_parent_keys(policy)), datetime.now(UTC)
        return Version(
            policy=policy, users=users, engine=engine, unique=UniqueKeys(unique | parents), salt=salt,
            loaded_at=now, in_force_since=now, profiles=profiles, better_known=better, data_stamp=stamp,
        )  # fmt: skip


class PublicSource:
    """The engine that the front copies public tables from; during a reload it is the new one.

    The front is started before there is one: who reads rows waits for it then, in a thread.
    """

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._engine = Future[Engine]()

    @property
    def engine(self) -> Engine:
        return self._engine.result()

    @engine.setter
    def engine(self, engine: Engine) -> None:
        if self._engine.done():
            self._engine = Future()
        self._engine.set_result(engine)

    def close(self) -> None:
        """Close the engine, or let nobody wait for one that will not come."""
        if not self._engine.cancel():
            self.engine.close()

    def rows(self, table: Table) -> Iterator[tuple[object, ...]]:
        engine = self.engine
        with self._uses.of(engine):
            yield from engine.public_rows(table)


@dataclass(slots=True, kw_only=True)
class Hosted:
    """One served policy file: its dataset, its front, and the files it is reloaded from.

    awaited: files whose next change makes it worth trying again; none when the policy on disk is in force.
    """

    path: Path
    users_path: Path
    dataset: Dataset
    front: Front
    public: PublicSource
    plans: PlanCache
    guests: Guests
    awaited: frozenset[Path] = frozenset()

    @property
    def name(self) -> str:
        return self.dataset.current.policy.dataset

    @property
    def files(self) -> frozenset[Path]:
        return frozenset((self.path, self.users_path))

    async def reload(self, opener: Opener) -> Version:
        """Serve what the files say now; the version that was replaced.

        Raises HushError: what was served is served on then, though what was promised may count already.
        """
        self.awaited = self.files
        policy, text = await asyncio.to_thread(read_with_text, self.path, os.environ)
        return await self._serve(opener, policy, text)

    async def edit(self, opener: Opener, edited: Callable[[str], str]) -> Version:
        """Serve what the policy's file says once it is edited, and write that; the version that was replaced.

        Raises HushError: then the file is as it was, and so is what is served.
        """
        awaited, before = self.awaited, await asyncio.to_thread(read_text, self.path, "policy")
        try:
            load_policy(before, filename=str(self.path), environment=os.environ)
            text = edited(before)
            policy = load_policy(text, filename=str(self.path), environment=os.environ)
            return await self._serve(opener, policy, text, before)
        except BaseException:
            self.awaited = awaited
            raise

    async def _serve(self, opener: Opener, policy: Policy, text: str, before: str = "") -> Version:
        """before: the file's text where it is to be replaced, once the data are found to be as declared."""
        self.awaited |= frozenset(_data_files(policy))
        if policy.dataset != self.name:
            raise ConfigError(f'the dataset cannot be renamed from "{self.name}" while it is served')
        if opener.users_path(policy) != self.users_path:
            raise ConfigError("access.users_file cannot change while the policy is served", hint="Restart.")
        make_room(policy.limits.max_sessions)
        old = self.dataset.current
        version = await opener.reopen(policy, old)
        try:
            voucher = await asyncio.to_thread(open_voucher, version.users.outside)
            await asyncio.to_thread(keep_promise, self.dataset.ledger, version)
            self.public.engine = version.engine
            if before:
                await asyncio.to_thread(write_over, self.path, text)
            async with self.guests.turn:
                guests = kept_guests(self.dataset.current.users, version.users)
                version = replace(version, users=replace(version.users, guests=guests))
                await self.front.apply(policy, version.users)
                self.guests.voucher = voucher
                old = self.dataset.swap(opener.with_profiles(version))
        except BaseException:
            self.public.engine = old.engine
            if before:
                await asyncio.to_thread(write_over, self.path, before)
            if version.engine is not old.engine:
                version.engine.close()
            raise
        self.awaited = frozenset()
        self.guests.forget(frozenset(old.users.guests) - frozenset(guests))
        try:
            await asyncio.to_thread(keep_policy, opener.state, policy.dataset, text, datetime.now(UTC))
        except ConfigError as error:  # it is in force all the same
            _log.warning("%s is in force and could not be kept: %s", self.path, error.text())
        return old


def keep_promise(ledger: Ledger, version: Version) -> None:
    """State durably what the policy promises, and say what that does to what was spent. Raises LedgerFailed."""
    policy, now = version.policy, datetime.now(UTC)
    restated = ledger.pledge(pledge_of(policy), version.dataset_account(), now)
    own = {account: None for login in version.users.everyone for account in version.accounts(login, "")[1:3]}
    said = (
        *worst_case_lines(policy, version.users),
        *restated_lines(restated, policy.privacy),
        *overspent_lines((restated.balance, *ledger.balances(tuple(own), now)), policy.privacy),
    )
    for line in said:
        _log.warning("%s: %s", policy.dataset, line)


class Reloading:
    """Takes edited files, or keeps what is in force and says why.

    on_new: told of a dataset with a new version, and of the version that it replaces. Replaced engines are closed
    when nobody uses them any more, and all of them by `close`.
    """

    def __init__(
        self, hosted: Sequence[Hosted], opener: Opener, metrics: Metrics, on_new: Callable[[Hosted, Version], None]
    ) -> None:
        self._hosted = hosted
        self._opener = opener
        self._metrics = metrics
        self._on_new = on_new
        self._replaced: list[Engine] = []
        self._turn = asyncio.Lock()

    async def take(self, hosted: Hosted) -> str:
        """Serve what a dataset's files say now, without waiting for the watch; why not, or "" if it is done."""
        async with self._turn:
            await self._reload(hosted)
            return hosted.dataset.trouble

    def watch(self) -> FileWatch:
        """What looks at the files; to be run by the caller."""
        return FileWatch(frozenset[Path]().union(*(h.files for h in self._hosted)), self._changed)

    def close(self) -> None:
        """Close what was replaced, also where it is used."""
        for engine in tuple(self._replaced):
            self._close_replaced(engine)

    async def _changed(self, paths: frozenset[Path]) -> frozenset[Path]:
        for hosted in self._hosted:
            if paths & (hosted.files | hosted.awaited):
                async with self._turn:
                    await self._reload(hosted)
        return frozenset[Path]().union(*(h.awaited for h in self._hosted))

    async def refresh(self, hosted: Hosted, edited: Callable[[str], str]) -> None:
        """Edit a dataset's policy and serve it at once. Raises HushError: then nothing has changed."""
        async with self._turn:
            self._replace(hosted, await hosted.edit(self._opener, edited))

    async def _reload(self, hosted: Hosted) -> None:
        try:
            old = await hosted.reload(self._opener)
        except HushError as error:
            hosted.dataset.trouble = f"the edited file was not taken: {error.text()}"
            self._metrics.reloaded(is_accepted=False)
            tell(
                LoggedEvent.RELOAD, f"{hosted.path} was not taken, the old policy stays in force: {error.text()}",
                {"dataset": hosted.name, "accepted": False}, logging.ERROR,
            )  # fmt: skip
            return
        self._replace(hosted, old)

    def _replace(self, hosted: Hosted, old: Version) -> None:
        """What is to be done once a version is in force in the place of another one."""
        self._on_new(hosted, old)
        if hosted.dataset.current.engine is not old.engine:
            self._replaced.append(old.engine)
            loop = asyncio.get_running_loop()
            close = partial(loop.run_in_executor, None, self._close_replaced, old.engine)
            hosted.dataset.uses.retire(old.engine, partial(loop.call_soon_threadsafe, close))
        self._metrics.reloaded(is_accepted=True)
        changes = diff(old.policy, hosted.dataset.current.policy)
        said = {effect: [f"{c.where}: {c.words}" for c in changes if c.effect is effect] for effect in Effect}
        tell(
            LoggedEvent.RELOAD, f"policy {hosted.path} is in force",
            {"dataset": hosted.name, "accepted": True, "policy": hosted.dataset.current.policy.digest[:12],
             "opens": said[Effect.OPENS], "closes": said[Effect.CLOSES]},
        )  # fmt: skip

    def _close_replaced(self, engine: Engine) -> None:
        with contextlib.suppress(ValueError):
            self._replaced.remove(engine)
            engine.close()


def _data_files(policy: Policy) -> Iterator[Path]:
    match policy.source:
        case DuckDBFile(path):
            yield Path(path)
        case DataFiles(files):
            yield from (Path(path) for _, path in files)
        case PostgresSource() | SparkSource():
            pass


def data_stamp(policy: Policy) -> DataStamp:
    """What tells the data that a policy names from what stood in their place before; nothing if that is not known."""
    if isinstance(policy.source, (PostgresSource, SparkSource)):
        return (("server",),)
    try:
        found = tuple(_stamp(path) for path in _data_files(policy))
        beside = tuple(_stamp(wal) for path in _data_files(policy) if (wal := Path(f"{path}.wal")).exists())
    except OSError:
        return ()
    return found + beside


def _stamp(path: Path) -> tuple[str | int, ...]:
    found = path.stat()
    return str(path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _parent_keys(policy: Policy) -> Iterator[tuple[str, str]]:
    """Keys of path parents, which `check_facts` found unique."""
    for table in policy.tables.values():
        if isinstance(table.ownership, UnitVia):
            yield table.ownership.parent, table.ownership.parent_key
