"""How does one logged-in session run from its first byte to its last?

Sockets and tasks around `proxy.wire.relay`: bytes in both directions, questions to the session as one task at a
time, backpressure, time-outs and the end. Holds no rule of the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import math
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from proxy.errors import FrontFailed, HushError, IdleTooLong, QueryCanceled, ShuttingDown, TooMuch
from proxy.front.front import Lease
from proxy.policy.model import Limits
from proxy.server.cancel import cancel_on_front
from proxy.server.link import Receiver, SocketLink
from proxy.session.contract import Asking, Piece, Session, Spliced
from proxy.wire.flow import Ask, AskPrepare, AskRelease, NoAnswer
from proxy.wire.messages import TERMINATE
from proxy.wire.relay import Relay
from proxy.wire.settings import duration_s

_log = logging.getLogger(__name__)
#: A statement that goes on this long after it was cancelled ends its session.
_CANCEL_GRACE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What a session is made of and owns from then on. until_s: when it ends at the latest, by the loop's clock."""

    client: SocketLink
    front: SocketLink
    session: Session
    lease: Lease
    limits: Limits
    database: str
    login: str
    close_within_s: float
    until_s: float = math.inf


class RelayedSession:
    """One session. Call `run` once; it ends itself and then calls `ended`."""

    def __init__(self, ends: Ends, relay: Relay, ended: Callable[[RelayedSession], None]) -> None:
        self.database = ends.database
        self.login = ends.login
        self._ends = ends
        self._relay = relay
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None  # None: no question is open
        self._helpers: set[asyncio.Task[None]] = set()
        self._client_is_slow = False
        self._front_is_slow = False
        self._is_closed = False
        self._last_heard_s = self._loop.time()
        self._progress = -1
        self._progress_since_s = 0.0
        self._is_cancelled = False

    def run(self, startup_packet: bytes) -> None:
        """Open the session on the front and start relaying."""
        self._relay.start(startup_packet)
        self._flush()
        front = Receiver(self._from_front, self._front_lost, self._front_writable)
        client = Receiver(self._from_client, self._close, self._client_writable)
        self._ends.front.attach(front)
        self._ends.client.attach(client)

    # --- what others ask of it ------------------------------------------------------------------------------

    @property
    def key(self) -> bytes:
        """What a CancelRequest for this session carries; empty until the front has told it."""
        return self._relay.channel.backend_key

    @property
    def is_idle(self) -> bool:
        """Between statements and outside a transaction."""
        return self._relay.is_idle

    def cancel(self) -> None:
        """Cancel the statement under way: the release if one is pending, else what the front does."""
        if self._task is not None:
            self._task.cancel()
        elif self._relay.is_busy:
            self._help(cancel_on_front(self._ends.lease.address.socket_path, self.key))

    def end(self, error: HushError) -> None:
        """End the session with a FATAL error."""
        self._relay.end(error)
        self._flush()

    def check_time(self, now_s: float) -> None:
        """Enforce the policy's time-outs; called from time to time."""
        relay, limits = self._relay, self._ends.limits
        if now_s > self._ends.until_s:
            self.end(ShuttingDown("terminating connection because what let it in has expired", hint="Log in again."))
            return
        if not relay.is_busy or relay.channel.copies_in:  # a COPY takes as long as the client sends
            self._progress = -1
            if now_s - self._last_heard_s > limits.idle_timeout_s:
                self.end(IdleTooLong("terminating connection due to idle-session timeout"))
            return
        if relay.is_asking or relay.channel.completed != self._progress:
            self._progress, self._progress_since_s, self._is_cancelled = relay.channel.completed, now_s, False
            return
        waited_s = now_s - self._progress_since_s
        if waited_s > limits.statement_timeout_s + _CANCEL_GRACE_S:
            self.end(ShuttingDown("terminating connection because a statement did not end in time"))
        elif waited_s > limits.statement_timeout_s and not self._is_cancelled:
            self._is_cancelled = True
            self.cancel()

    # --- bytes ----------------------------------------------------------------------------------------------

    def _from_client(self, data: bytes) -> None:
        self._last_heard_s = self._loop.time()
        self._relay.from_client(data)
        self._flush()

    def _from_front(self, data: bytes) -> None:
        self._relay.from_front(data)
        self._flush()

    def _client_writable(self, is_writable: bool) -> None:
        self._client_is_slow = not is_writable
        self._ends.front.set_reading(is_writable)

    def _front_writable(self, is_writable: bool) -> None:
        self._front_is_slow = not is_writable
        self._pace_client()

    def _pace_client(self) -> None:
        self._ends.client.set_reading(not self._front_is_slow and self._relay.wants_client_bytes)

    def _flush(self) -> None:
        """Write and ask what the relay wants written and asked."""
        relay = self._relay
        if self._is_closed:
            return
        self._ends.front.write(relay.take_front())
        self._ends.client.write(relay.take_client())
        ask = relay.take_ask()
        if not isinstance(ask, NoAnswer):
            task = self._loop.create_task(self._ask(ask))
            self._task = task
            task.add_done_callback(self._never_asked)
        if relay.is_over:
            self._close()
        else:
            self._pace_client()

    # --- the session's answers ----------------------------------------------------------------------------------

    async def _ask(self, ask: Ask) -> None:
        """Ask the session, and tell the relay in the same turn of the loop what it said."""
        try:
            outcome: tuple[Piece, ...] | Spliced | Asking | HushError = await self._answer(ask)
        except HushError as error:
            if error.told() is not error:
                _log.error("%s: %s", error.sqlstate, error.text())
            outcome = error
        except asyncio.CancelledError:
            outcome = _cancelled()
        except Exception as error:  # noqa: BLE001 - the session goes on, and its client is told that this failed
            outcome = _failed(error)
        self._answered(outcome)

    async def _answer(self, ask: Ask) -> tuple[Piece, ...] | Spliced | Asking:
        asked_s = duration_s(ask.settings.get("statement_timeout", ""))
        limit_s = self._ends.limits.statement_timeout_s
        async with asyncio.timeout(min(asked_s or limit_s, limit_s)):
            match ask:
                case AskPrepare(text, settings, told):
                    return await self._ends.session.prepare(text, settings, told)
                case AskRelease(piece, parameters, settings):
                    return await self._ends.session.release(piece, parameters, settings)

    def _answered(self, outcome: tuple[Piece, ...] | Spliced | Asking | HushError) -> None:
        self._task = None
        if not self._is_closed:
            self._relay.answer(outcome)
            self._flush()

    def _never_asked(self, task: asyncio.Task[None]) -> None:
        """A task that is cancelled before it begins runs none of its code."""
        if task is self._task:
            self._answered(_cancelled())

    # --- the end --------------------------------------------------------------------------------------------------

    def _front_lost(self) -> None:
        self._relay.end(FrontFailed("terminating connection because the public PostgreSQL has closed it"))
        self._flush()

    def _close(self) -> None:
        """Hang up on both sides and give back what the session holds."""
        if self._is_closed:
            return
        self._is_closed = True
        ends = self._ends
        if self._task is not None:
            self._task.cancel()
        if self._relay.channel.queue and not ends.front.is_lost and self.key:
            self._help(cancel_on_front(ends.lease.address.socket_path, self.key))
        ends.client.close(ends.close_within_s)
        ends.front.write(TERMINATE)
        ends.front.close(ends.close_within_s)
        self._help(self._give_back())

    async def _give_back(self) -> None:
        try:
            if self._task is not None:
                await asyncio.wait([self._task])
            await self._ends.session.close()
        finally:
            self._ends.lease.close()
            self._ended(self)

    def _help(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._helpers.add(task)
        task.add_done_callback(self._helpers.discard)


def _cancelled() -> HushError:
    return QueryCanceled("canceling statement due to user request")


def _failed(error: Exception) -> HushError:
    """What the client is told of a failure of the session itself."""
    if isinstance(error, TimeoutError):
        return TooMuch()
    # where and what kind, but no message: it may quote private data
    places = "".join(traceback.format_tb(error.__traceback__))
    _log.error("a session failed with %s\n%s", type(error).__name__, places)
    return HushError("internal error", detail="The statement was not answered; what it was charged stays charged.")
