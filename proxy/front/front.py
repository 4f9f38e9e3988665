"""The public PostgreSQL of one dataset: where does a login's session go?

One server per visibility. A changed policy gets new servers; old ones end with their last session.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from proxy.errors import FrontFailed, FrontRestarting, PolicyError
from proxy.front.account import choose_account
from proxy.front.binaries import Binaries, Search, find_binaries
from proxy.front.configuration import PORT
from proxy.front.process import Blueprint, connect_reader
from proxy.front.quoting import quote_name
from proxy.front.reader import FrontConnection
from proxy.front.roles import check_login
from proxy.front.runtime import RuntimeDirectory, create, sweep
from proxy.front.server import FrontEvent, FrontServer, PublicRows, ServerState, Spec
from proxy.front.visibility import Visibility, group_logins
from proxy.policy.model import Policy, Users

_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontOptions:
    """How to run the front.

    account: what to run as when the proxy is root; "" chooses. address_space_bytes, file_bytes: limits
    of each of its processes (one file holds at most this much of a temporary table).
    """

    state_dir: Path
    binaries: Path | Search = Search()  # noqa: RUF009 - an immutable value
    account: str = ""
    address_space_bytes: int = 1024 * _MEBIBYTE
    file_bytes: int = 512 * _MEBIBYTE
    start_timeout_s: float = 30.0
    max_public_rows: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontAddress:
    """Where and as whom a session is opened. The server admits the proxy's process without a password."""

    socket_dir: str
    port: int
    user: str
    database: str

    @property
    def socket_path(self) -> str:
        return f"{self.socket_dir}/.s.PGSQL.{self.port}"


class Lease:
    """A session's hold on a server: while it is open, a policy change does not end the server."""

    __slots__ = ("_release", "address")

    def __init__(self, address: FrontAddress, release: Callable[[], None]) -> None:
        self.address = address
        self._release: list[Callable[[], None]] = [release]

    def close(self) -> None:
        """Give the hold back; harmless when repeated."""
        while self._release:
            self._release.pop()()


@dataclass(slots=True, kw_only=True)
class Front:
    """All servers of one dataset. Made by `Front.start`; `stop` ends everything."""

    options: FrontOptions
    binaries: Binaries
    runtime: RuntimeDirectory
    rows: PublicRows
    on_event: Callable[[FrontEvent], None]
    _current: dict[Visibility, FrontServer] = field(default_factory=dict)
    _retired: list[FrontServer] = field(default_factory=list)
    _by_login: dict[str, FrontServer] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _ending: set[asyncio.Task[None]] = field(default_factory=set)
    _applying: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    async def start(
        cls,
        policy: Policy,
        users: Users,
        options: FrontOptions,
        rows: PublicRows,
        on_event: Callable[[FrontEvent], None] = lambda _event: None,
    ) -> Front:
        """Clean up after killed proxies, then start a server for each visibility.

        Raises FrontFailed (no binaries, no start), PolicyError (names PostgreSQL cannot hold).
        """
        account = choose_account(options.account)
        if options.state_dir.is_dir():
            await asyncio.to_thread(sweep, options.state_dir)
        runtime = await asyncio.to_thread(create, options.state_dir, account)
        try:
            binaries = await asyncio.to_thread(find_binaries, options.binaries, account, runtime.path / "pg")
            front = cls(options=options, binaries=binaries, runtime=runtime, rows=rows, on_event=on_event)
            await front.apply(policy, users)
        except BaseException:
            await asyncio.to_thread(runtime.remove)
            raise
        return front

    def address_for(self, login: str) -> FrontAddress:
        """Where `login`'s sessions go now. Raises FrontFailed for a stranger and during a restart."""
        server = self._server_for(login)
        return FrontAddress(
            socket_dir=str(server.blueprint.socket_dir), port=PORT, user=login, database=server.spec.policy.dataset
        )

    def connect_reader(self) -> FrontConnection:
        """A connection on which texts are read, to any server. Raises psycopg.Error, FrontFailed."""
        for server in self._current.values():
            if server.state is ServerState.RUNNING:
                return connect_reader(server.blueprint, server.spec.policy.dataset)
        raise FrontFailed("the public PostgreSQL is restarting", hint="Try again in a moment.")

    def lease(self, login: str) -> Lease:
        """`address_for` with a hold on the server; close it when the session ends."""
        server = self._server_for(login)
        lease = Lease(self.address_for(login), lambda: self._give_back(server))
        server.leases += 1
        return lease

    async def apply(self, policy: Policy, users: Users) -> None:
        """Serve this policy and these users from now on.

        Same policy: roles are added and shut out in place. Changed policy: new servers start first;
        if that fails nothing changes. Old servers go on for sessions that hold a lease, of logins to which the rows
        that are stored there are shown still.
        """
        async with self._applying:
            groups = group_logins(policy, users)
            _check_names(policy, users)
            fresh = {v: self._server(policy, v, logins) for v, logins in groups.items() if not self._fits(v, policy)}
            kept = {v: self._current[v] for v in groups if v not in fresh}
            await _start_all(tuple(fresh.values()))
            try:
                for visible, server in kept.items():
                    await server.set_logins(groups[visible])
            except BaseException:
                await _stop_all(tuple(fresh.values()))
                raise
            replaced = [s for v, s in self._current.items() if kept.get(v) is not s]
            self._current = {v: fresh.get(v) or kept[v] for v in groups}
            self._by_login = {login: self._current[v] for v, logins in groups.items() for login in logins}
            for server in replaced:
                await self._retire(server)
            for server in tuple(self._retired):
                await self._shut_out(server)

    async def stop(self) -> None:
        """End all servers, retired ones too, and remove their directory."""
        async with self._applying:
            self._by_login.clear()
            await _stop_all(self.servers)
            await asyncio.gather(*self._ending)
            await asyncio.to_thread(self.runtime.remove)

    @property
    def servers(self) -> tuple[FrontServer, ...]:
        """Current and still draining servers."""
        return (*self._current.values(), *self._retired)

    # --- one server -----------------------------------------------------------------------------

    def _server_for(self, login: str) -> FrontServer:
        server = self._by_login.get(login)
        if server is None:
            raise FrontFailed(f'the login "{login}" has no place in the public PostgreSQL')
        if server.state is not ServerState.RUNNING:
            raise FrontRestarting("the public PostgreSQL is restarting", hint="Try again in a moment.")
        return server

    def _spec(self, policy: Policy, visible: Visibility) -> Spec:
        return Spec(policy=visible.shown(policy), visible=visible, max_public_rows=self.options.max_public_rows)

    def _fits(self, visible: Visibility, policy: Policy) -> bool:
        present = self._current.get(visible)
        return present is not None and present.spec == self._spec(policy, visible)

    def _server(self, policy: Policy, visible: Visibility, logins: tuple[str, ...]) -> FrontServer:
        blueprint = Blueprint(
            runtime=self.runtime,
            binaries=self.binaries,
            name=str(next(self._numbers)),
            max_sessions=policy.limits.max_sessions,
            time_zone=policy.privacy.time_zone,
            address_space_bytes=self.options.address_space_bytes,
            file_bytes=self.options.file_bytes,
            start_timeout_s=self.options.start_timeout_s,
        )
        spec = self._spec(policy, visible)
        return FrontServer(spec=spec, blueprint=blueprint, rows=self.rows, on_event=self.on_event, logins=logins)

    async def _retire(self, server: FrontServer) -> None:
        """Stop at once if unused, else when the last lease is given back."""
        server.is_retired = True
        if server.leases == 0:
            await server.stop()
        else:
            self._retired.append(server)

    async def _shut_out(self, server: FrontServer) -> None:
        """End sessions, on a server that is retired, of logins that were removed or to which it shows too much by now.

        Claim (docs/claims/roles.md): the rows that a server stores are read by those alone who may see all of them.
        """
        try:
            await server.set_logins(tuple(name for name in server.logins if self._may_stay(name, server)))
        except FrontFailed:
            await server.stop()  # better no session than one of a removed login

    def _may_stay(self, login: str, server: FrontServer) -> bool:
        return login in self._by_login and server.spec.shown_rows <= self._by_login[login].spec.shown_rows

    def _give_back(self, server: FrontServer) -> None:
        server.leases -= 1
        if server.leases == 0 and server in self._retired:
            self._retired.remove(server)
            task = asyncio.get_running_loop().create_task(server.stop())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


def _check_names(policy: Policy, users: Users) -> None:
    quote_name(policy.dataset)
    if policy.dataset in ("template0", "template1"):
        raise PolicyError(f'the dataset cannot be called "{policy.dataset}": PostgreSQL has such a database')
    for login in users.everyone:
        check_login(login)


async def _start_all(servers: tuple[FrontServer, ...]) -> None:
    """Start all or none."""
    done = await asyncio.gather(*(s.start() for s in servers), return_exceptions=True)
    failures = [d for d in done if isinstance(d, BaseException)]
    if failures:
        await _stop_all(servers)
        raise failures[0]


async def _stop_all(servers: tuple[FrontServer, ...]) -> None:
    await asyncio.gather(*(s.stop() for s in servers))
