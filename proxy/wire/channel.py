"""What does the relay owe the client for each byte from the front?

Holds the front's side of one session: the queue of owed replies, the transaction status, the bytes to be written
to either end. Rows are passed on by the chunk; every other message goes through the table of `proxy.wire.expect`.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from proxy.errors import FrontFailed, HushError, Unsupported
from proxy.wire import messages
from proxy.wire.book import Book, PrivateStatement
from proxy.wire.encodings import codec_of
from proxy.wire.exchange import Piece, Refusal
from proxy.wire.expect import (
    ENDS_WITH_READY,
    PLAIN,
    REPLIES,
    RUNS,
    ErrorPlace,
    OwedReply,
    ReplyStep,
    SentKind,
    Show,
    Ticket,
)
from proxy.wire.messages import ResultColumn
from proxy.wire.responses import (
    HINT,
    MESSAGE,
    POSITION,
    ROUTINE,
    SEVERITY_PLAIN,
    SQLSTATE,
    error_response,
    moved_error,
    parse_fields,
    placeless_error,
)
from proxy.wire.understanding import no_advice

_LENGTH = struct.Struct("!I")
_ROW = ord("D")
_ERROR = ord("E")
_NOTICE = ord("N")
_PARAMETER_STATUS = ord("S")
_AUTHENTICATION_OK = b"\0\0\0\0"
_ROWS = b"Dd"
#: Errors and what comes at any time.
_UNASKED = frozenset(b"ENSA")
#: Replies that later messages or a flow depend on.
_NOTED = frozenset(b"ZCGKRtTD")
_NOT_IN_SIMPLE = frozenset(b"123n")
#: The relay has authenticated the client and agreed on a version itself.
_OURS_AT_STARTUP = frozenset(b"Rv")
#: Errors and notices longer than this pass unread: neither our marker nor the guard makes one.
_READ_ERROR_BYTES = 65_536
#: PostgreSQL's own buffer for replies.
_KEPT_BACK_BYTES = 8192
#: No other message of the front needs to be whole to be passed; longer ones end the session.
_MAX_BUFFERED_BYTES = 16 * 1024 * 1024
_WHOLE_ROW_BYTES = 64 * 1024  # larger rows pass in parts

IDLE = ord("I")
IN_TRANSACTION = ord("T")
FAILED_TRANSACTION = ord("E")
#: A transaction was ended in the middle of a pipeline, or a part of it: which of the first two it is, no reply says.
UNTOLD = ord("?")
#: What a pipeline has begun is over after these, and after what changes the status in the middle of it.
_ENDS_TRANSACTION = frozenset({b"DISCARD ALL", b"VACUUM", b"COMMIT", b"ROLLBACK"})
_STATUS_AFTER = {b"BEGIN": IN_TRANSACTION, b"START TRANSACTION": IN_TRANSACTION, b"COMMIT": UNTOLD, b"ROLLBACK": UNTOLD}
#: What the end of a transaction undoes in a pipeline.
_BEGINS = frozenset({SentKind.BIND, SentKind.EXECUTE})

GUARDED = Unsupported(
    "private tables can only be read through aggregates",
    detail="This statement would read rows of a private table.",
    hint="Aggregate them in a SELECT: SELECT count(*) FROM that_table. To keep the answer write CREATE TEMP TABLE t AS "
    "SELECT ... for INSERT, and CREATE TEMP VIEW for CREATE VIEW.",
)


@dataclass(frozen=True, slots=True)
class ErrorMarks:
    """How the relay recognises errors that it has provoked itself.

    marker: text that no client can guess, one per session. guard: the relation that the front's private tables
    are guarded with, as PostgreSQL's message names it.
    """

    marker: str
    guard: str


@dataclass(frozen=True, slots=True)
class Held:
    """What a repeat of the statement that ran last need not ask the front.

    statement: the private statement itself. settings: the session's when it ran. columns: the front's description.
    """

    statement: PrivateStatement | Piece | None
    settings: Mapping[str, str]
    columns: tuple[ResultColumn, ...] = ()


NOTHING_HELD = Held(None, {})


class Channel:
    """The front's side of one session; bytes for both ends collect in `to_client` and `to_front`."""

    def __init__(
        self,
        marks: ErrorMarks,
        book: Book,
        woken: Callable[[], None],
        refused: Callable[[HushError], None],
        advice: Callable[[str, str, int], str] = no_advice,
    ) -> None:
        """woken: called when the ticket that a flow waits for may be done. refused: for each of our errors shown.

        advice: see `Understanding`.
        """
        self.marks = marks
        self.book = book
        self.to_client: list[bytes] = []
        self.to_front: list[bytes] = []
        self.queue: deque[OwedReply] = deque((PLAIN[SentKind.STARTUP],))
        self.status = IDLE
        self.codec = "utf-8"
        self.backend_key = b""
        self.skips = False  # the front ignores everything up to the next Sync
        self.has_begun = False  # something is bound or was run since the last Sync, which would end its transaction
        self.has_injected = False  # an Execute of ours, since the last Sync
        self.is_undisturbed = False  # only inert messages since all was answered outside a transaction, and no error
        self.held = NOTHING_HELD
        self.copies_in = False
        self.is_ready = False  # the start-up phase is over
        self.is_fatal = False  # the front has said why it hangs up
        self.has_ended = False  # a ReadyForQuery waits in `to_client`
        self.completed = 0  # replies that were final; grows while a statement makes progress
        self._woken = woken
        self._refused = refused
        self._advice = advice
        self._guard = marks.guard.encode("utf-8")
        self._rest = bytearray()
        self._rest_needs = 0
        self._passing_bytes = 0
        self._wakes = False

    # --- to the front --------------------------------------------------------------------------------

    def send(self, raw: bytes, entry: OwedReply) -> None:
        """Write a message that gets a reply. The one way to the front besides `send_unanswered`."""
        self.send_batch(raw, (entry,))

    def send_batch(self, raw: bytes, entries: Iterable[OwedReply]) -> None:
        """Write several messages with what is owed for each of them."""
        self.to_front.append(raw)
        for entry in entries:
            self.queue.append(entry)
            if entry.kind in RUNS and not entry.is_inert:
                self._disturb()
            self.has_begun = entry.kind in _BEGINS or (self.has_begun and entry.kind not in ENDS_WITH_READY)
            if entry.kind in ENDS_WITH_READY:
                self.book.transaction_may_end()
            for ticket in entry.tickets:
                ticket.open_entries += 1

    def send_unanswered(self, raw: bytes) -> None:
        """Write a message that has no reply of its own."""
        self.to_front.append(raw)

    def hold(self, held: Held) -> None:
        """Remember what the statement that ran last was, unless something may have changed it meanwhile."""
        if self.is_undisturbed:
            self.held = held

    def _disturb(self) -> None:
        self.is_undisturbed = False
        self.held = NOTHING_HELD

    def sync(self, show: Show, *tickets: Ticket) -> None:
        """Write a Sync; the front stops skipping there."""
        self.send(messages.SYNC, OwedReply(kind=SentKind.SYNC, show=show, tickets=tickets))
        self.skips = False
        self.has_injected = False

    def withhold(self) -> None:
        """Show the client nothing of the replies that are owed for what was sent so far."""
        self.queue = deque(replace(entry, show=Show.NOTHING) for entry in self.queue)

    def end_copy(self, raw: bytes) -> None:
        """Write CopyDone or CopyFail, which the front may read before or after it asked for the data."""
        self.to_front.append(raw)
        if not self.copies_in:
            self.queue.append(PLAIN[SentKind.COPY_END])
        elif self.has_injected:
            self.to_front.append(messages.FLUSH)  # our own pipeline: the Sync comes once the COPY is over
        self.copies_in = False

    def tell(self, raw: bytes) -> None:
        """Write to the client."""
        self.to_client.append(raw)

    @property
    def is_inside_message(self) -> bool:
        """Whether the client has the beginning of a message whose rest is still to come."""
        return self._passing_bytes > 0

    @property
    def keeps_back(self) -> bool:
        """Whether PostgreSQL would not send yet what is to be written to the client: few bytes inside a pipeline."""
        return not self.has_ended and sum(map(len, self.to_client)) < _KEPT_BACK_BYTES

    # --- from the front -------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take bytes as they arrived. Raises FrontFailed or ProtocolViolation when they are not what it owes."""
        if self._rest_needs:
            if len(self._rest) + len(data) < self._rest_needs:
                self._rest += data
                return
            data = bytes(self._rest + data)
            self._rest.clear()
            self._rest_needs = 0
        start, at, end = 0, min(self._passing_bytes, len(data)), len(data)
        length_at = _LENGTH.unpack_from
        self._passing_bytes -= at
        while at + messages.HEADER_BYTES <= end:
            if self.queue and self.queue[0].show is not Show.NOTHING:
                at = _past_rows(data, at, end)
                if at + messages.HEADER_BYTES > end:
                    break
            kind = data[at]
            after = at + 1 + length_at(data, at + 1)[0]
            if after < at + messages.HEADER_BYTES:
                raise FrontFailed("the front's message has an impossible length")
            if after > end and not _passes_unread(kind, after - at - 1):
                break
            raw = data[at:after]
            replacement = self._step(kind, raw)
            if replacement is not raw:
                if start < at:
                    self.to_client.append(data[start:at])
                self._pass(replacement)
                start = after
            at = after
            if self._wakes:
                self._wakes = False
                self._pass(data[start:at])
                start = at
                self._woken()
        self._pass(data[start:at])
        self._keep(data, at)

    def _pass(self, raw: bytes) -> None:
        if raw:
            self.to_client.append(raw)

    def _keep(self, data: bytes, at: int) -> None:
        """Remember what of the last message is still to come, or what of it has come."""
        left = len(data) - at
        if left < 0:
            self._passing_bytes = -left
        elif left > 0:
            self._rest += data[at:]
            has_header = left >= messages.HEADER_BYTES
            self._rest_needs = 1 + _length_at(data, at + 1) if has_header else messages.HEADER_BYTES
            if self._rest_needs > _MAX_BUFFERED_BYTES:
                raise FrontFailed("the front's message is too long")

    def _step(self, kind: int, raw: bytes) -> bytes:
        """What the client gets for one whole message: `raw` itself, something else, or nothing."""
        if kind in _UNASKED:
            return self._error(raw) if kind == _ERROR else self._asynchronous(kind, raw)
        self._skip_copy_ends()
        if not self.queue:
            raise FrontFailed("the front answered what was not asked")
        entry = self.queue[0]
        step = REPLIES.get((entry.kind, kind))
        if step is None:
            raise FrontFailed("the front's answer is not one to the message sent")
        if kind in _NOTED:
            self._take_note(kind, raw, entry)
        if step is ReplyStep.DONE:
            self.queue.popleft()
            self.completed += 1
            for ticket in entry.tickets:
                ticket.open_entries -= 1
                self._wakes = self._wakes or ticket.is_done
        return b"" if entry.show is Show.NOTHING else _shown(kind, raw, entry)

    def _skip_copy_ends(self) -> None:
        while self.queue and self.queue[0].kind is SentKind.COPY_END:
            self.queue.popleft()

    def _asynchronous(self, kind: int, raw: bytes) -> bytes:
        if kind == _PARAMETER_STATUS:
            name, value = messages.parse_parameter_status(raw[messages.HEADER_BYTES :])
            if name == b"client_encoding":
                self.codec = codec_of(value.decode("ascii", "replace")) or "utf-8"
            return raw
        if kind != _NOTICE or not self.queue or _length_at(raw, 1) > _READ_ERROR_BYTES:
            return raw
        return b"" if self.queue[0].show is Show.NOTHING or self.queue[0].hides_notices else raw

    def _take_note(self, kind: int, raw: bytes, entry: OwedReply) -> None:
        """Remember what later messages depend on."""
        body = raw[messages.HEADER_BYTES :]
        if kind == ord("Z"):
            self._ready(body, entry)
        elif kind == ord("C"):
            self.copies_in = False
            self.book.completed(body[:-1])
            self._note_status(body[:-1])
        elif kind == ord("G"):
            self._start_copy_in()
        elif kind == ord("K"):
            self.backend_key = body
        elif kind == ord("R") and body != _AUTHENTICATION_OK:
            raise FrontFailed("the front asks for a password")
        for ticket in entry.tickets:
            _collect(ticket, kind, body)

    def _ready(self, body: bytes, entry: OwedReply) -> None:
        if not body:
            raise FrontFailed("the front does not tell the transaction's status")
        self.status = body[0]
        self.has_ended = True
        self.is_ready = True
        self.copies_in = False
        if entry.kind in ENDS_WITH_READY:
            self.book.ready(is_idle=self.status == IDLE)
        if self.status == IDLE and len(self.queue) == 1:  # the reply at hand answers the last message
            self.is_undisturbed = True

    def _note_status(self, tag: bytes) -> None:
        """What is known of the transaction before the next ReadyForQuery."""
        self.status = _STATUS_AFTER.get(tag, self.status)
        if tag in _ENDS_TRANSACTION:
            self.has_begun = False
            for entry in islice(self.queue, 1, None):
                self.has_begun = entry.kind in _BEGINS or (self.has_begun and entry.kind not in ENDS_WITH_READY)

    def _start_copy_in(self) -> None:
        """The front ignores each Sync between the COPY and the end of its data."""
        head = self.queue.popleft()
        kept: list[OwedReply] = []
        self.copies_in = True
        for entry in self.queue:
            if entry.kind is SentKind.COPY_END:
                self.copies_in = False
            if entry.kind is not SentKind.SYNC or not self.copies_in:
                kept.append(entry)
            else:
                self.book.ready(is_idle=False)
        self.queue = deque((head, *kept))
        self._wakes = True  # data may be waiting already

    # --- errors ----------------------------------------------------------------------------------------

    def _error(self, raw: bytes) -> bytes:
        """Show an error and drop what the front now skips."""
        self._skip_copy_ends()
        self._disturb()
        is_read = _length_at(raw, 1) <= _READ_ERROR_BYTES
        fields = parse_fields(raw[messages.HEADER_BYTES :], self.codec) if is_read else {}
        if fields.get(SEVERITY_PLAIN) in ("FATAL", "PANIC"):
            self.is_fatal = True
            return raw
        entry = self.queue[0] if self.queue else PLAIN[SentKind.SYNC]
        self.copies_in = False
        if entry.kind not in ENDS_WITH_READY:
            self._drop_skipped()
        return self._shown_error(entry, raw, fields)

    def _drop_skipped(self) -> None:
        """After an error in the extended protocol the front reads on at the next Sync."""
        dropped: list[OwedReply] = []
        while self.queue and self.queue[0].kind is not SentKind.SYNC:
            dropped.append(self.queue.popleft())
            if dropped[-1].kind is SentKind.QUERY:
                self.book.ready(is_idle=False)
        self.skips = not self.queue
        for entry in reversed(dropped):
            entry.undo()
            for ticket in entry.tickets:
                ticket.failed = True
                self._wakes = True

    def _shown_error(self, entry: OwedReply, raw: bytes, fields: Mapping[str, str]) -> bytes:
        if entry.may_be_several and _is_about_several(fields):
            for ticket in entry.tickets:
                ticket.is_several = True
            return b""
        is_ours = self.marks.marker in fields.get(MESSAGE, "") or (bool(fields) and self._guard in raw)
        if is_ours or (isinstance(entry.refusal, Refusal) and _is_about_several(fields)):
            error: HushError = entry.refusal.error if isinstance(entry.refusal, Refusal) else GUARDED
            self._refused(error)
            return error_response(error, codec=self.codec, shift=entry.shift + entry.refusal_shift)
        if entry.place is ErrorPlace.NOWHERE and fields:
            return placeless_error(fields, self.codec)
        advice = self._advice_for(entry.advised, fields) if entry.advised else ""
        if fields and (entry.shift or advice):
            return moved_error({**fields, HINT: advice} if advice else fields, entry.shift, self.codec)
        return raw

    def _advice_for(self, text: str, fields: Mapping[str, str]) -> str:
        position = fields.get(POSITION, "")
        return self._advice(text, fields.get(SQLSTATE, ""), int(position)) if position.isdecimal() else ""


def _is_about_several(fields: Mapping[str, str]) -> bool:
    """Whether a Parse was refused for holding several statements; told by the routine, since words are translated."""
    return fields.get(SQLSTATE) == "42601" and fields.get(ROUTINE) == "exec_parse_message"


def _past_rows(data: bytes, at: int, end: int) -> int:
    """Where the first message begins that is no row, or is a row to be kept until it is whole.

    The one loop that runs for every row of every result. Inside a row nobody could be told that the session ends.
    """
    last, row = end - messages.HEADER_BYTES, at
    length_at = _LENGTH.unpack_from
    while at <= last and data[at] in _ROWS:
        row = at
        at += 1 + length_at(data, at + 1)[0]
    return row if at > end and at - row <= _WHOLE_ROW_BYTES else at


def _length_at(data: bytes, at: int) -> int:
    return int(_LENGTH.unpack_from(data, at)[0])


def _passes_unread(kind: int, size: int) -> bool:
    return size > _READ_ERROR_BYTES and kind in (_ERROR, _NOTICE)


def _shown(kind: int, raw: bytes, entry: OwedReply) -> bytes:
    """What the client sees of a definite reply that is not hidden."""
    if kind == ord("T") and entry.row_description:
        return entry.row_description
    if kind == ord("C") and entry.tag:
        return entry.tag
    is_hidden = (kind in _NOT_IN_SIMPLE and entry.show is Show.AS_SIMPLE) or kind in _OURS_AT_STARTUP
    return b"" if is_hidden else raw


def _collect(ticket: Ticket, kind: int, body: bytes) -> None:
    if kind == ord("t"):
        ticket.parameter_oids = messages.parse_parameter_description(body)
    elif kind == ord("T"):
        ticket.row_description = body
    elif kind == _ROW:
        ticket.rows.append(body)
