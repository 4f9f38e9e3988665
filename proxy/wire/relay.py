"""What does one session do with each byte from its client and from its front?

The whole relay without a socket: feed it bytes and answers, take bytes and questions. Public messages pass as they
are; what may name a private table starts a flow (`simple`, `extended`). One message of the client at a time: while a
flow waits, later bytes wait in the buffer. Nothing is raised: a broken protocol ends the session with a FATAL error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from proxy.errors import FrontFailed, HushError, ProtocolViolation
from proxy.wire.book import Book
from proxy.wire.channel import IDLE, Channel, ErrorMarks
from proxy.wire.dispatch import Dispatch, DispatchOutcome, Done
from proxy.wire.expect import Ticket
from proxy.wire.flow import NO_ANSWER, Answer, Ask, Flow, FrontSaidNo, NoAnswer, Wait
from proxy.wire.frames import FrameLimits, FrameSplitter, Incomplete, Oversized
from proxy.wire.responses import error_response
from proxy.wire.understanding import Understanding

#: What passes by a flow that waits for the end of a COPY: its data, and what PostgreSQL ignores among them.
_COPY_KINDS = frozenset(b"dcfHS")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayLimits:
    """What one session may hold.

    max_statement_bytes: of a Query or a Parse. max_message_bytes: of any other message. max_buffered_bytes: of the
    client's bytes that wait for a flow before the client is to be slowed down.
    """

    max_statement_bytes: int = 1_000_000
    max_message_bytes: int = 16 * 1024 * 1024
    max_buffered_bytes: int = 256 * 1024
    max_statements: int = 1000
    max_portals: int = 100


class Relay:
    """One session. Call `from_client`, `from_front` or `answer`; then take what is to be written or asked."""

    def __init__(self, marks: ErrorMarks, understanding: Understanding, limits: RelayLimits) -> None:
        book = Book(max_statements=limits.max_statements, max_portals=limits.max_portals)
        self.channel = Channel(marks, book, self._wake, understanding.refused, understanding.advice)
        self.is_over = False  # both connections are to be closed once everything is written
        self._max_buffered_bytes = limits.max_buffered_bytes
        statement_limit = limits.max_statement_bytes
        discard = {ord("Q"): statement_limit, ord("P"): statement_limit, ord("B"): limits.max_message_bytes}
        self._frames = FrameSplitter(FrameLimits(max_bytes=limits.max_message_bytes, discard_above=discard))
        self._dispatch = Dispatch(self.channel, understanding, self._frames.take_sync)
        self._flow: Flow[None] | None = None  # None: no flow is under way
        self._ticket = Ticket()  # what the flow waits for, unless it waits for the session
        self._asks: list[Ask] = []
        self.is_asking = False  # the session is at work for this relay

    # --- what the shell may know ---------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """A reply is owed to the client, by the front or by the session."""
        return self._flow is not None or bool(self.channel.queue)

    @property
    def is_idle(self) -> bool:
        """Nothing would be lost if the session ended now."""
        return not self.is_busy and self.channel.status == IDLE

    @property
    def wants_client_bytes(self) -> bool:
        """False: the client is ahead of us by more than it should."""
        return self._frames.buffered_bytes < self._max_buffered_bytes or self._flow is None

    # --- bytes and answers in ---------------------------------------------------------------------------

    def start(self, packet: bytes) -> None:
        """Open the session on the front with this start-up message."""
        self.channel.send_unanswered(packet)

    def from_client(self, data: bytes) -> None:
        """Take bytes of the client as they arrived."""
        self._frames.feed(data)
        self._pump()

    def from_front(self, data: bytes) -> None:
        """Take bytes of the front as they arrived."""
        try:
            self.channel.receive(data)
        except HushError as error:
            self.end(FrontFailed(f"the public PostgreSQL broke the protocol: {error.message}"))
        if self.channel.is_fatal:
            self.is_over = True

    def answer(self, answer: Answer | HushError) -> None:
        """The session's answer to the question taken last, or its refusal."""
        self.is_asking = False
        if not self.is_over:
            self._advance(answer)
            self._pump()

    def end(self, error: HushError) -> None:
        """End the session with a FATAL error, unless the client would take that for the rest of a row."""
        if not self.is_over:
            self.is_over = True
            if not self.channel.is_inside_message:
                self.channel.tell(error_response(error, codec=self.channel.codec, severity="FATAL"))

    # --- bytes and questions out -------------------------------------------------------------------------

    def take_client(self) -> bytes:
        """Bytes to write to the client. While the session is at work, what PostgreSQL would keep back too is kept."""
        if self.is_asking and not self.is_over and self.channel.keeps_back:
            return b""
        self.channel.has_ended = False
        return _take(self.channel.to_client)

    def take_front(self) -> bytes:
        """Bytes to write to the front."""
        return _take(self.channel.to_front)

    def take_ask(self) -> Ask | NoAnswer:
        """The question that waits for an answer, once."""
        return self._asks.pop() if self._asks else NO_ANSWER

    # --- flows -----------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Handle whole messages until none is left or a flow waits. Data of a COPY passes by a waiting flow."""
        while not self.is_over and (self._flow is None or self._passes_by()):
            try:
                message = self._frames.take()
            except ProtocolViolation as error:
                self.end(error)
                return
            if isinstance(message, Incomplete):
                return
            if isinstance(message, Oversized):
                self._start(self._dispatch.handle_oversized(message))
            else:
                self._start(self._dispatch.handle(message))
            if self._dispatch.has_terminated:
                self.is_over = True

    def _passes_by(self) -> bool:
        """Whether the next message belongs to a COPY for whose end a flow waits. PostgreSQL gives up on any other."""
        kind = self._frames.next_kind()
        if not (self.channel.copies_in and kind):
            return False
        if kind not in _COPY_KINDS:
            self.end(ProtocolViolation(f"unexpected message type 0x{kind:02X} during COPY from stdin"))
        return kind in _COPY_KINDS

    def _start(self, outcome: DispatchOutcome) -> None:
        if not isinstance(outcome, Done):
            self._flow = outcome
            self._run(partial(next, outcome))

    def _wake(self) -> None:
        """A ticket is done, perhaps the one that is waited for, or the front asks for data."""
        if self._flow is not None and not self.is_asking and self._ticket.is_done:
            self._advance(FrontSaidNo() if self._ticket.failed else NO_ANSWER)
        self._pump()

    def _advance(self, answer: Answer | Exception) -> None:
        flow = self._flow
        assert flow is not None
        self._run(partial(flow.throw, answer) if isinstance(answer, Exception) else partial(flow.send, answer))

    def _run(self, resume: Callable[[], Wait]) -> None:
        """Run the flow until it waits again or ends. What it waits for was sent just now, so it is not there yet."""
        try:
            wait = resume()
        except (StopIteration, FrontSaidNo):
            self._flow = None
        except HushError as error:
            self._flow = None
            self.end(error)
        else:
            if isinstance(wait, Ticket):
                self._ticket = wait
            else:
                self.is_asking = True
                self._asks.append(wait)


def _take(parts: list[bytes]) -> bytes:
    if not parts:
        return b""
    joined = parts[0] if len(parts) == 1 else b"".join(parts)
    parts.clear()
    return joined
