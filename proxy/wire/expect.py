"""Which reply does the front owe for each message sent to it?

One `Entry` per message that gets a definite reply, in order, and one table: (what is owed, reply) to step.
A pair that is absent is a violation of the protocol by the front. Nothing about the order of replies lives elsewhere.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from proxy.wire.exchange import NoRefusal, Refusal


class SentKind(enum.IntEnum):
    """What was sent. An integer, because it is looked up for every message."""

    STARTUP = enum.auto()
    PARSE = enum.auto()
    BIND = enum.auto()
    CLOSE = enum.auto()
    DESCRIBE_STATEMENT = enum.auto()
    DESCRIBE_PORTAL = enum.auto()
    EXECUTE = enum.auto()
    QUERY = enum.auto()
    SYNC = enum.auto()
    COPY_END = enum.auto()  # CopyDone or CopyFail: no reply of its own
    BAD_FLUSH = enum.auto()  # has a body, so the only reply is an error


class ReplyStep(enum.Enum):
    """What a reply does to the entry at the head of the queue."""

    STAY = enum.auto()
    DONE = enum.auto()


class Show(enum.Enum):
    """What of the replies the client gets to see."""

    ALL = enum.auto()
    NOTHING = enum.auto()
    AS_SIMPLE = enum.auto()  # what a Query would show: no ParseComplete, BindComplete, CloseComplete, NoData


class Ticket:
    """The replies to a batch of injected messages. `is_done`: all have arrived, or the front failed one of them."""

    __slots__ = ("failed", "is_several", "open_entries", "parameter_oids", "row_description", "rows")

    def __init__(self) -> None:
        self.open_entries = 0
        self.failed = False
        self.is_several = False  # failed because the text holds several statements; the client was not told
        self.parameter_oids: tuple[int, ...] = ()
        self.row_description = b""
        self.rows: list[bytes] = []

    @property
    def is_done(self) -> bool:
        return self.failed or not self.open_entries


class ErrorPlace(enum.Enum):
    """Where in the client's text an error of the front points to."""

    SAME = enum.auto()  # as reported, moved by `shift`
    NOWHERE = enum.auto()  # the front saw another text


def _nothing() -> None:
    """Undo nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwedReply:
    """One owed reply.

    tickets: whom to tell, none for most messages. row_description, tag: whole messages that take the place of
    the front's, empty to keep these. refusal: the error to show when the front raises the session's marker or its
    guard. undo: what to take back when the front skips this message. shift: characters
    that the client's text has before the one the front saw; refusal_shift: before the statement that is refused.
    may_be_several: the front's refusal to parse several statements at once is expected and not shown.
    is_inert: what was sent changes nothing that the next statement could see. hides_notices: what the front remarks is
    about what the relay does, not about what the client said. advised: a text whose errors may get a hint.
    """

    kind: SentKind
    show: Show = Show.ALL
    tickets: tuple[Ticket, ...] = ()
    row_description: bytes = b""
    tag: bytes = b""
    refusal: Refusal | NoRefusal = field(default_factory=NoRefusal)
    place: ErrorPlace = ErrorPlace.SAME
    shift: int = 0
    refusal_shift: int = 0
    may_be_several: bool = False
    is_inert: bool = False
    hides_notices: bool = False
    advised: str = ""
    undo: Callable[[], None] = field(default=_nothing)


#: Entries of messages that are forwarded as they are; shared, since they carry nothing of their own.
PLAIN: Mapping[SentKind, OwedReply] = {kind: OwedReply(kind=kind) for kind in SentKind}
#: The same for our own messages that nobody waits for.
HIDDEN: Mapping[SentKind, OwedReply] = {kind: OwedReply(kind=kind, show=Show.NOTHING) for kind in SentKind}
#: And for those of them that are inert.
INERT: Mapping[SentKind, OwedReply] = {kind: replace(entry, is_inert=True) for kind, entry in HIDDEN.items()}
#: Messages of these kinds run something.
RUNS = frozenset({SentKind.PARSE, SentKind.BIND, SentKind.EXECUTE, SentKind.QUERY})

_ROWS = dict.fromkeys(b"DGHdc", ReplyStep.STAY)

REPLIES: Mapping[tuple[SentKind, int], ReplyStep] = {
    **{(SentKind.STARTUP, kind): ReplyStep.STAY for kind in b"RvK"},
    (SentKind.STARTUP, ord("Z")): ReplyStep.DONE,
    (SentKind.PARSE, ord("1")): ReplyStep.DONE,
    (SentKind.BIND, ord("2")): ReplyStep.DONE,
    (SentKind.CLOSE, ord("3")): ReplyStep.DONE,
    (SentKind.DESCRIBE_STATEMENT, ord("t")): ReplyStep.STAY,
    (SentKind.DESCRIBE_STATEMENT, ord("T")): ReplyStep.DONE,
    (SentKind.DESCRIBE_STATEMENT, ord("n")): ReplyStep.DONE,
    (SentKind.DESCRIBE_PORTAL, ord("T")): ReplyStep.DONE,
    (SentKind.DESCRIBE_PORTAL, ord("n")): ReplyStep.DONE,
    **{(SentKind.EXECUTE, kind): step for kind, step in _ROWS.items()},
    **{(SentKind.EXECUTE, kind): ReplyStep.DONE for kind in b"CIs"},
    **{(SentKind.QUERY, kind): step for kind, step in _ROWS.items()},
    **{(SentKind.QUERY, kind): ReplyStep.STAY for kind in b"TCI"},
    (SentKind.QUERY, ord("Z")): ReplyStep.DONE,
    (SentKind.SYNC, ord("Z")): ReplyStep.DONE,
}

#: Entries that an error leaves standing, since a ReadyForQuery still follows.
ENDS_WITH_READY = frozenset({SentKind.QUERY, SentKind.SYNC})
