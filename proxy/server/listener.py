"""Where do clients connect, and how does a connection become a session?

Accepts, greets, logs in and starts sessions; keeps the limits on their number, swaps datasets when a policy
changes, and stops. What a session does is `client`'s business.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from ipaddress import ip_address
from typing import Any

from proxy.errors import (
    AuthenticationFailed,
    FrontFailed,
    HushError,
    QueryCanceled,
    ShuttingDown,
    TooManyConnections,
)
from proxy.events import LoggedEvent, tell
from proxy.server.client import Ends, RelayedSession
from proxy.server.datasets import Datasets, ServerOptions
from proxy.server.greeting import Greeted, greet
from proxy.server.link import SocketLink
from proxy.server.login import Admitted, ByScram, log_in, way_of
from proxy.server.sockets import listen, port_of
from proxy.sql.advice.front_errors import advice_for_error
from proxy.wire.channel import ErrorMarks
from proxy.wire.relay import Relay, RelayLimits
from proxy.wire.responses import error_response
from proxy.wire.scram import AUTHENTICATION_OK
from proxy.wire.startup import CancelRequest, front_packet
from proxy.wire.understanding import Understanding

_log = logging.getLogger(__name__)
_TOKEN_BYTES = 16
_PAUSE_WITHOUT_DESCRIPTORS_S = 0.1
_STOP_STEP_S = 0.05
_LOGIN_TIMEOUT_S = 10.0


class Server:
    """All listening sockets and sessions of one proxy.

    Use: `Server(options, datasets, random_bytes)`, `await start()`, any number of `serve(...)` to replace the datasets
    (sessions under way keep what they have), `await stop(...)`. `datasets` maps the database names that clients
    connect to; see `proxy.server.datasets.ServedDataset` for what each is made of.
    random_bytes: the source of nonces and session tokens, from the one door for randomness.
    """

    def __init__(self, options: ServerOptions, datasets: Datasets, random_bytes: Callable[[int], bytes]) -> None:
        self._options = options
        self._datasets = datasets
        self._random_bytes = random_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self._greeting: dict[asyncio.Task[Any], str] = {}  # who has shown no password yet, and from where
        self._sessions: set[RelayedSession] = set()
        self._taken: Counter[tuple[str, ...]] = Counter()

    # --- life ------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen. Raises ConfigError when the address cannot be had."""
        for bound in self._options.sockets:
            listen(bound)
        for bound in self._options.sockets:
            self._do(self._accept(bound))
        self._do(self._watch())

    @property
    def port(self) -> int:
        """The port that is listened on, also when a free one was asked for."""
        return port_of(self._options.sockets[0])

    @property
    def listening(self) -> socket.socket:
        """The first socket that is listened on."""
        return self._options.sockets[0]

    def serve(self, datasets: Datasets) -> None:
        """Use these datasets for sessions that begin from now on."""
        self._datasets = datasets

    def open_logins(self, database: str) -> frozenset[str]:
        """The logins that have sessions there."""
        return frozenset(session.login for session in self._sessions if session.database == database)

    def session_counts(self) -> Counter[str]:
        """Open sessions by database."""
        return Counter(session.database for session in self._sessions)

    def end_login(self, database: str, login: str) -> None:
        """End all sessions of a login that has lost its access."""
        for session in tuple(self._sessions):
            if (session.database, session.login) == (database, login):
                session.end(ShuttingDown("terminating connection because the login was removed"))

    async def stop(self, drain_s: float) -> None:
        """Stop listening, let sessions finish their transaction for that long, then end them all."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for bound in self._options.sockets:
            bound.close()
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + drain_s
        while self._sessions:
            is_late = loop.time() >= deadline_s
            for session in tuple(self._sessions):
                if is_late or session.is_idle:
                    session.end(ShuttingDown("terminating connection due to administrator command"))
            await asyncio.sleep(_STOP_STEP_S)

    # --- connections --------------------------------------------------------------------------------------

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:  # out of descriptors, or the client is gone already
                _log.warning("a connection was not accepted: %s", error)
                await asyncio.sleep(_PAUSE_WITHOUT_DESCRIPTORS_S)
                continue
            # asyncio leaves accepted sockets as they are
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._make_room()
            task = self._do(self._meet(connection))
            self._greeting[task] = origin_of(address[0])
            task.add_done_callback(lambda ended: self._greeting.pop(ended, ""))
            await asyncio.sleep(0)  # a task that is cancelled before it has begun does not close its connection

    def _make_room(self) -> None:
        """When as many wait as may, end the oldest of those from where most come: a login takes a moment only."""
        if len(self._greeting) >= self._options.max_greeting:
            ((busiest, _),) = Counter(self._greeting.values()).most_common(1)
            oldest = next(task for task, origin in self._greeting.items() if origin == busiest)
            del self._greeting[oldest]
            oldest.cancel()

    def _do(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _meet(self, connection: socket.socket) -> None:
        """One connection until it is a session, a cancel request or closed."""
        deadline_s = asyncio.get_running_loop().time() + self._login_timeout_s()
        try:
            async with asyncio.timeout_at(deadline_s):
                wanted = await greet(connection, self._options.tls)
        except (HushError, OSError, TimeoutError) as error:
            _log.info("a connection ended before its login: %s", str(error) or type(error).__name__)
            return
        if isinstance(wanted, CancelRequest):
            self._cancel(wanted.key)
            return
        await self._welcome(wanted, deadline_s)

    async def _welcome(self, greeted: Greeted, deadline_s: float) -> None:
        origin = self._greeting.get(_this_task(), "")
        datasets = self._datasets
        way = way_of(greeted, datasets, self._options)
        try:
            async with asyncio.timeout_at(deadline_s):
                admitted = await log_in(greeted, way, datasets, self._random_bytes)
                if isinstance(way, ByScram) and way_of(greeted, self._datasets, self._options) != way:
                    raise AuthenticationFailed("the login was changed meanwhile")  # a name may be somebody else's now
                self._greeting.pop(_this_task())
                await self._open(greeted, admitted, origin, way.method)
            return
        except HushError as reason:
            error = reason
        except TimeoutError:
            error = QueryCanceled("canceling authentication due to timeout")
        except ConnectionResetError:
            return  # the client hung up
        except BaseException:
            greeted.link.close(self._options.close_within_s)
            raise
        kind = error.reason if isinstance(error, AuthenticationFailed) else ""
        why = f" ({way.method}: {error.__cause__ or kind})" if kind else ""
        tell(
            LoggedEvent.LOGIN_FAILED, f"a login ended: {error.sqlstate} {error.text()}{why}",
            {"login": greeted.startup.user, "dataset": greeted.startup.database, "address": origin,
             "code": error.sqlstate, "method": way.method, "reason": kind},
        )  # fmt: skip
        greeted.link.write(error_response(error, severity="FATAL"))
        greeted.link.close(self._options.close_within_s)

    async def _open(self, greeted: Greeted, admitted: Admitted, origin: str, method: str) -> None:
        """Turn an admitted connection into a session. Raises HushError."""
        login, database, limits = admitted.login.name, admitted.database, admitted.dataset.limits
        self._take_place(database, login, limits.max_sessions, limits.max_sessions_per_user)
        async with AsyncExitStack() as undo:
            undo.callback(self._free_place, database, login)
            lease = admitted.dataset.lease(login)
            undo.callback(lease.close)
            address = lease.address
            packet = front_packet(greeted.startup, role=address.user, database=address.database)
            session_id = self._token()
            session = await admitted.dataset.sessions.open(login, database, session_id)
            undo.push_async_callback(session.close)
            front = await _connect(address.socket_path)
            undo.pop_all()
        tell(
            LoggedEvent.LOGIN, f"{database}/{login} logged in from {origin}",
            {"login": login, "dataset": database, "role": admitted.login.role, "address": origin,
             "session": session_id, "method": method},
        )  # fmt: skip
        greeted.link.write(AUTHENTICATION_OK)
        marks = ErrorMarks(marker=self._token(), guard=admitted.dataset.guard)
        understanding = Understanding(
            may_be_private=session.may_be_private,
            known=session.known,
            setting_names=session.setting_names,
            refused=session.refused,
            advice=advice_for_error,
        )
        relay = Relay(marks, understanding, RelayLimits(max_statement_bytes=limits.max_statement_bytes))
        ends = Ends(
            client=greeted.link,
            front=front,
            session=session,
            lease=lease,
            limits=limits,
            database=database,
            login=login,
            until_s=admitted.until_s,
            close_within_s=self._options.close_within_s,
        )
        running = RelayedSession(ends, relay, self._ended)
        self._sessions.add(running)
        running.run(packet)

    def _token(self) -> str:
        return self._random_bytes(_TOKEN_BYTES).hex()

    # --- limits -------------------------------------------------------------------------------------------

    def _take_place(self, database: str, login: str, most: int, most_per_login: int) -> None:
        """Count a session in. Raises TooManyConnections."""
        if self._taken[(database,)] >= most:
            raise TooManyConnections("sorry, too many clients already")
        if self._taken[(database, login)] >= most_per_login:
            raise TooManyConnections(f'too many connections for role "{login}"')
        self._taken[(database,)] += 1
        self._taken[(database, login)] += 1

    def _free_place(self, database: str, login: str) -> None:
        self._taken[(database,)] -= 1
        self._taken[(database, login)] -= 1

    def _login_timeout_s(self) -> float:
        return max((d.limits.login_timeout_s for d in self._datasets.values()), default=_LOGIN_TIMEOUT_S)

    # --- sessions -----------------------------------------------------------------------------------------

    def _cancel(self, key: bytes) -> None:
        """Cancel what the session with this key does. A wrong key does nothing, and the time taken does not tell."""
        for session in tuple(self._sessions):
            if hmac.compare_digest(session.key, key):
                session.cancel()

    def _ended(self, session: RelayedSession) -> None:
        self._sessions.discard(session)
        self._free_place(session.database, session.login)

    async def _watch(self) -> None:
        """Look at every session's time-outs from time to time."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._options.check_every_s)
            for session in tuple(self._sessions):
                session.check_time(loop.time())


async def _connect(socket_path: str) -> SocketLink:
    """Raises FrontFailed."""
    try:
        _, link = await asyncio.get_running_loop().create_unix_connection(SocketLink, socket_path)
    except OSError as error:
        raise FrontFailed("the public PostgreSQL cannot be reached") from error
    return link


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def origin_of(address: str) -> str:
    """Who counts as one stranger: an address of IPv4, the network of 2^64 addresses that one of IPv6 is from."""
    found = ip_address(address)
    return str(found) if found.version == 4 else str(ip_address(int(found) >> 64 << 64))
