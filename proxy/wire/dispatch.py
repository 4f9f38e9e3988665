"""What is done with each message of the client?

One handler a message type. Public statements are forwarded as they are; a handler that must wait returns a flow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from proxy.errors import PolicyForbids, ProtocolViolation, SessionLimit
from proxy.wire import messages
from proxy.wire.channel import Channel
from proxy.wire.exchange import Refusal
from proxy.wire.expect import PLAIN, OwedReply, SentKind, Show, Ticket
from proxy.wire.extended import bind_private, describe_private, execute_private, forward_parse, parse_private
from proxy.wire.flow import Flow, FrontSaidNo
from proxy.wire.frames import Frame, Oversized
from proxy.wire.inject import raising_sql, refuse, settle
from proxy.wire.messages import HEADER_BYTES
from proxy.wire.screen import screen
from proxy.wire.simple import UNNAMED, QueryMessage, answer_query
from proxy.wire.understanding import SettingsReader, Understanding

_SYNC = ord("S")
_QUERY = ord("Q")
_BIND = ord("B")
_TERMINATE = ord("X")
_FLUSH = ord("H")
_DESCRIBE = ord("D")
_EXECUTE = ord("E")
_KINDS = {
    _QUERY: SentKind.QUERY,
    ord("P"): SentKind.PARSE,
    _BIND: SentKind.BIND,
    ord("D"): SentKind.DESCRIBE_PORTAL,
    ord("E"): SentKind.EXECUTE,
    ord("C"): SentKind.CLOSE,
    _FLUSH: SentKind.BAD_FLUSH,
}


@dataclass(frozen=True, slots=True)
class Done:
    """The message needs nothing further."""


DONE = Done()
DispatchOutcome = Flow[None] | Done


class Dispatch:
    """The client's side of one session."""

    def __init__(self, channel: Channel, understanding: Understanding, take_sync: Callable[[], bool]) -> None:
        """take_sync: take the client's next message if it is a Sync that has arrived."""
        self.has_terminated = False
        self._has_left_portal = False  # a Query may have left an unnamed portal
        self._closing = Ticket()  # of the Close of that
        self._channel = channel
        self._book = channel.book
        self._understanding = understanding
        self._reader = SettingsReader(understanding.setting_names)
        self._take_sync = take_sync
        self._raising = raising_sql(channel)
        self._handlers: Mapping[int, Callable[[bytes], DispatchOutcome]] = {
            ord("Q"): self._query,
            ord("P"): self._parse,
            _BIND: self._bind,
            ord("D"): self._describe,
            ord("E"): self._execute,
            ord("C"): self._close,
            ord("F"): self._function_call,
            _FLUSH: self._flush,
            ord("d"): self._forward_unanswered,
            ord("c"): self._copy_end,
            ord("f"): self._copy_end,
            _SYNC: self._sync,
            _TERMINATE: self._terminate,
        }

    def handle(self, frame: Frame) -> DispatchOutcome:
        """Act on one whole message. One that cannot be read is for the front to complain about."""
        if self._channel.skips and frame.kind not in (_SYNC, _TERMINATE):
            return DONE  # the front would ignore it, so no reply may be expected
        try:
            return self._handlers[frame.kind](frame.raw)
        except ProtocolViolation:
            self._channel.send(frame.raw, PLAIN[_KINDS[frame.kind]])
            return DONE

    def handle_oversized(self, message: Oversized) -> DispatchOutcome:
        """Refuse a message that was too long to be read."""
        if self._channel.skips:
            return DONE
        error = SessionLimit("the message is longer than this server allows")
        if message.kind == _QUERY:
            return self._refuse_query(Refusal(error))
        refuse(self._channel, error)
        return DONE

    # --- simple protocol -------------------------------------------------------------------------------

    def _query(self, raw: bytes) -> DispatchOutcome:
        channel = self._channel
        text = messages.parse_query(raw[HEADER_BYTES:]).decode(channel.codec, "surrogateescape")
        undo = self._book.drop_unnamed()
        self._has_left_portal = True
        screened = screen(text, self._raising)
        if self._understanding.may_be_private(screened.text):
            question = QueryMessage(
                text=screened.text,
                screened=screened.refusal,
                screened_at=screened.start,
                understanding=self._understanding,
                reader=self._reader,
                undo=undo,
            )
            return answer_query(channel, question)
        if isinstance(screened.refusal, Refusal):
            raw = messages.query(screened.text.encode(channel.codec, "surrogateescape"))
            shown = OwedReply(kind=SentKind.QUERY, refusal=screened.refusal, refusal_shift=screened.start, undo=undo)
            return self._send_query(raw, shown)
        return self._send_query(
            raw, OwedReply(kind=SentKind.QUERY, undo=undo) if channel.queue else PLAIN[SentKind.QUERY]
        )

    def _send_query(self, raw: bytes, entry: OwedReply) -> DispatchOutcome:
        """Send a Query, after the end of a pipeline with an Execute of ours, which must not leave its transaction open.

        If something of the pipeline fails, PostgreSQL skips the Query; a Sync of ours would have it run.
        """
        channel = self._channel
        if channel.has_injected and channel.queue:
            return self._send_settled(raw, entry)
        if channel.has_injected:
            channel.sync(Show.NOTHING)
        channel.send(raw, entry)
        return DONE

    def _send_settled(self, raw: bytes, entry: OwedReply) -> Flow[None]:
        try:
            yield from settle(self._channel)
        except FrontSaidNo:
            entry.undo()
            raise
        self._send_query(raw, entry)

    def _refuse_query(self, refusal: Refusal) -> DispatchOutcome:
        return self._send_query(
            messages.query(self._raising.encode("ascii")), OwedReply(kind=SentKind.QUERY, refusal=refusal)
        )

    def _function_call(self, raw: bytes) -> DispatchOutcome:
        error = PolicyForbids("the function call message is not available", hint="Use SELECT.")
        return self._refuse_query(Refusal(error))

    # --- extended protocol -------------------------------------------------------------------------------

    def _parse(self, raw: bytes) -> DispatchOutcome:
        channel = self._channel
        message = messages.parse_parse(raw[HEADER_BYTES:])
        text = message.text.decode(channel.codec, "surrogateescape")
        screened = screen(text, self._raising)
        if not self._book.has_room_for_statement(message.name):
            refuse(channel, SessionLimit("too many prepared statements", hint="Close some of them."))
        elif isinstance(screened.refusal, Refusal):
            refuse(channel, screened.refusal.error, shift=screened.start)
        elif self._understanding.may_be_private(text):
            return parse_private(channel, self._understanding, self._reader, message, raw)
        else:
            forward_parse(channel, message, raw)
        return DONE

    def _bind(self, raw: bytes) -> DispatchOutcome:
        portal, name = messages.parse_bind_names(raw[HEADER_BYTES:])
        if self._is_unsure(portal):
            return self._handle_settled(Frame(_BIND, raw))
        self._close_left_portal(portal)  # a Bind that fails would leave it there
        if self._book.is_doubtful(name):
            return self._bind_settled(raw)
        statement = self._book.statement(name)
        if not self._book.has_room_for_portal(portal):
            refuse(self._channel, SessionLimit("too many portals", hint="Close some of them."))
        elif statement is not None:
            bind_private(self._channel, statement, messages.parse_bind(raw[HEADER_BYTES:]), raw)
        elif portal or self._book.portal(portal) is not None:
            self._channel.send(raw, OwedReply(kind=SentKind.BIND, undo=self._book.take_portal_name(portal)))
        else:
            self._channel.send(raw, PLAIN[SentKind.BIND])
        return DONE

    def _bind_settled(self, raw: bytes) -> Flow[None]:
        """Bind once it is known which statement goes by the name."""
        yield from settle(self._channel)
        self._book.settled()
        self.handle(Frame(_BIND, raw))

    def _describe(self, raw: bytes) -> DispatchOutcome:
        named = messages.parse_named(raw[HEADER_BYTES:])
        if not named.is_statement and self._is_unsure(named.name):
            return self._handle_settled(Frame(_DESCRIBE, raw))
        portal = None if named.is_statement else self._book.portal(named.name)
        if not named.is_statement:
            self._close_left_portal(named.name)
        if portal is not None:
            describe_private(self._channel, portal, raw)
        else:
            self._channel.send(
                raw, PLAIN[SentKind.DESCRIBE_STATEMENT if named.is_statement else SentKind.DESCRIBE_PORTAL]
            )
        return DONE

    def _execute(self, raw: bytes) -> DispatchOutcome:
        name = messages.parse_execute(raw[HEADER_BYTES:]).portal
        if self._is_unsure(name):
            return self._handle_settled(Frame(_EXECUTE, raw))
        portal = self._book.portal(name)
        if portal is not None and not portal.has_run:
            return execute_private(self._channel, self._understanding, self._reader, self._take_sync, name, portal, raw)
        self._close_left_portal(name)
        tag = portal.tag if portal is not None else b""
        self._channel.send(raw, OwedReply(kind=SentKind.EXECUTE, tag=tag) if tag else PLAIN[SentKind.EXECUTE])
        return DONE

    def _close_left_portal(self, name: bytes) -> None:
        """A Query that fails in a transaction block leaves its unnamed portal behind with freed memory in it.

        PostgreSQL (seen on 18.6) crashes when that is described or executed, and ends all sessions with it.
        """
        if not name and self._has_left_portal:
            self._has_left_portal = False
            self._closing = Ticket()
            close = OwedReply(kind=SentKind.CLOSE, show=Show.NOTHING, tickets=(self._closing,), undo=self._leave_portal)
            self._channel.send(messages.close_portal(UNNAMED), close)

    def _is_unsure(self, name: bytes) -> bool:
        """Whether a Sync was sent behind a Close that the front may yet skip: what goes by no name is not known."""
        return not (name or self._closing.is_done) and any(e.kind is SentKind.SYNC for e in self._channel.queue)

    def _handle_settled(self, frame: Frame) -> Flow[None]:
        yield from settle(self._channel)
        outcome = self.handle(frame)
        if not isinstance(outcome, Done):
            yield from outcome

    def _leave_portal(self) -> None:
        """The front has skipped the message that would have closed it."""
        self._has_left_portal = True

    def _close(self, raw: bytes) -> DispatchOutcome:
        named = messages.parse_named(raw[HEADER_BYTES:])
        free = self._book.free_statement_name if named.is_statement else self._book.free_portal_name
        self._channel.send(raw, OwedReply(kind=SentKind.CLOSE, undo=free(named.name)))
        return DONE

    def _sync(self, raw: bytes) -> DispatchOutcome:
        if self._channel.copies_in:
            self._channel.send_unanswered(raw)  # the front ignores it until the data ends
        else:
            self._channel.sync(Show.ALL)
        return DONE

    # --- the rest ------------------------------------------------------------------------------------------

    def _forward_unanswered(self, raw: bytes) -> DispatchOutcome:
        self._channel.send_unanswered(raw)
        return DONE

    def _flush(self, raw: bytes) -> DispatchOutcome:
        if len(raw) > HEADER_BYTES and not self._channel.copies_in:
            raise ProtocolViolation("invalid message format")
        return self._forward_unanswered(raw)

    def _copy_end(self, raw: bytes) -> DispatchOutcome:
        self._channel.end_copy(raw)
        return DONE

    def _terminate(self, raw: bytes) -> DispatchOutcome:
        self.has_terminated = True
        self._channel.send_unanswered(raw)
        return DONE
