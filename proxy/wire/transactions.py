"""What does a statement do to the transaction that it stands in, and how does a string of several keep theirs?

PostgreSQL runs a Query of several statements in one implicit transaction block. The relay runs them one by one and
opens an explicit block in its place, which it ends where the implicit one would. Statements are told by their first
words. Source: PostgreSQL documentation, "Message Flow"; `PlannedStmtRequiresSnapshot` in its source.
"""

from __future__ import annotations

import enum
from itertools import dropwhile, islice

from proxy.wire import messages
from proxy.wire.channel import IDLE, Channel
from proxy.wire.expect import ErrorPlace, SentKind, Show
from proxy.wire.inject import STATEMENT, inject
from proxy.wire.lexer import Sort, tokens
from proxy.wire.messages import Bind


class BlockControl(enum.Enum):
    """What becomes of an implicit transaction block by a statement of it."""

    NONE = enum.auto()
    BEGINS = enum.auto()  # it becomes the client's own
    COMMITS = enum.auto()
    ABORTS = enum.auto()  # by the statement, or by the error that no block of the client's is open


_MOST_WORDS = 6
_CONTROLS = {
    **dict.fromkeys(("begin", "start"), BlockControl.BEGINS),
    **dict.fromkeys(("commit", "end"), BlockControl.COMMITS),
    **dict.fromkeys(("rollback", "abort", "savepoint", "release"), BlockControl.ABORTS),
}
_ENDS = frozenset(("commit", "end", "rollback", "abort"))
_WITHOUT_SNAPSHOT = frozenset((
    *_CONTROLS, "checkpoint", "fetch", "listen", "lock", "move", "notify", "reset", "set", "show", "unlisten", "",
))  # fmt: skip


def control_of(text: str) -> BlockControl:
    """What a statement does to the implicit block around it."""
    words = _words(text)
    if "prepared" in words[1:2]:
        return BlockControl.NONE
    control = _CONTROLS.get(words[0], BlockControl.NONE)
    return BlockControl.ABORTS if control is BlockControl.COMMITS and _chains(words) else control


def leaves_block(text: str) -> bool:
    """Whether a statement that succeeds ends the explicit block around it for good."""
    words = _words(text)
    return words[0] in _ENDS and not _chains(words) and not {"to", "prepared"}.intersection(words)


def takes_snapshot(text: str) -> bool:
    """Whether the first statement of a string fixes, as it begins, what its transaction sees."""
    return _words(text)[0] not in _WITHOUT_SNAPSHOT


def _chains(words: list[str]) -> bool:
    return "chain" in words and "no" not in words


def _words(text: str) -> list[str]:
    """The first words, at least one; "?" is what is none."""
    begun = dropwhile(lambda t: t.text == ";" and t.sort is Sort.SYMBOL, tokens(text))
    return [t.text if t.sort is Sort.WORD else "?" for t in islice(begun, _MOST_WORDS)] or [""]


class ImplicitBlock:
    """The transaction of a string of statements. Of each, `before` and `after` are called; at the end, one of the rest.

    is_open: a block stands open that the client does not know of.
    """

    def __init__(self, channel: Channel) -> None:
        self.is_open = False
        self._channel = channel
        self._is_inside = channel.status != IDLE  # a block of the client's

    def before(self, text: str) -> None:
        """Open or end the block as the next statement wants it."""
        if self._is_inside:
            return
        control = control_of(text)
        if control is BlockControl.NONE and not self.is_open:
            self.is_open = True
            self._run(b"begin")
        elif control in (BlockControl.COMMITS, BlockControl.ABORTS) and self.is_open:
            self.is_open = False
            self._run(b"commit" if control is BlockControl.COMMITS else b"rollback")

    def after(self, text: str) -> None:
        """The statement has succeeded."""
        if control_of(text) is BlockControl.BEGINS:
            self.is_open, self._is_inside = False, True
        elif leaves_block(text):
            self._is_inside = False

    def commit(self) -> None:
        """All statements have succeeded."""
        if self.is_open:
            self._run(b"commit")

    def abandon(self) -> None:
        """A statement has failed."""
        if self.is_open:
            self._channel.sync(Show.NOTHING)
            inject(self._channel, messages.query(b"rollback"), SentKind.QUERY)

    def _run(self, sql: bytes) -> None:
        """In the pipeline, so that an error ends it."""
        channel = self._channel
        bind = Bind(portal=STATEMENT, statement=STATEMENT, formats=(), values=(), result_formats=())
        inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE)
        inject(channel, messages.parse(STATEMENT, sql), SentKind.PARSE)
        inject(channel, messages.bind(bind), SentKind.BIND)
        inject(channel, messages.execute(STATEMENT), SentKind.EXECUTE, place=ErrorPlace.NOWHERE)
        inject(channel, messages.close_portal(STATEMENT), SentKind.CLOSE)
        inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE)
