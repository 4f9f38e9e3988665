"""What must the relay know of its session without asking and waiting?

Calls that answer at once, and the messages that read the session's settings on the front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from proxy.errors import FrontFailed, HushError
from proxy.wire import messages
from proxy.wire.exchange import Piece
from proxy.wire.expect import INERT, Entry, Kind, Show, Ticket
from proxy.wire.messages import Bind

_NAME = b"_hush_settings"
#: Longest value of a setting that is read; no valid one comes near.
_MAX_SETTING_CHARS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Understanding:
    """may_be_private, known: see Session. refused: called for each refusal that is shown."""

    may_be_private: Callable[[str], bool]
    known: Callable[[str, Mapping[str, str]], tuple[Piece, ...]]
    setting_names: tuple[str, ...]
    refused: Callable[[HushError], None]


class SettingsReader:
    """Reads one session's settings, in one batch of messages that is the same each time."""

    def __init__(self, names: Sequence[str]) -> None:
        self.latest: Mapping[str, str] = {}
        self._names = tuple(names)
        self._batch = _batch(settings_sql(names).encode("ascii"))
        self._answer: tuple[bytes, str] = (b"", "")

    def messages(self, ticket: Ticket) -> tuple[bytes, tuple[Entry, ...]]:
        """The batch and what is owed for it; the row goes to `ticket`."""
        read = Entry(kind=Kind.EXECUTE, show=Show.NOTHING, tickets=(ticket,), is_inert=True)
        close = INERT[Kind.CLOSE]
        return self._batch, (close, INERT[Kind.PARSE], INERT[Kind.BIND], read, close, close)

    def read(self, ticket: Ticket, codec: str) -> Mapping[str, str]:
        """The settings as the front held them then. Unset custom settings are left out.

        An unset `hush.x` reads as NULL before and as an empty string after a SET LOCAL; both mean unset.
        Raises FrontFailed and ProtocolViolation.
        """
        if len(ticket.rows) != 1:
            raise FrontFailed("the front does not tell the session's settings")
        answer = (ticket.rows[0], codec)
        if answer != self._answer:
            values = messages.parse_data_row(ticket.rows[0])
            if len(values) != len(self._names):
                raise FrontFailed("the front tells other settings than it was asked for")
            texts = ((n, v.decode(codec, "replace")) for n, v in zip(self._names, values, strict=True) if v is not None)
            self.latest = {name: text for name, text in texts if text or "." not in name}
            self._answer = answer
        return self.latest


def settings_sql(names: Sequence[str]) -> str:
    """One row with the value of each setting, NULL for those that do not exist."""
    quoted = ("'" + name.replace("'", "''") + "'" for name in names)
    reads = (f"pg_catalog.left(pg_catalog.current_setting({name}, true), {_MAX_SETTING_CHARS})" for name in quoted)
    return "select " + ", ".join(reads)


def _batch(sql: bytes) -> bytes:
    unused = Bind(portal=_NAME, statement=_NAME, formats=(), values=(), result_formats=())
    parts = (
        messages.close_statement(_NAME),
        messages.parse(_NAME, sql),
        messages.bind(unused),
        messages.execute(_NAME),
        messages.close_portal(_NAME),
        messages.close_statement(_NAME),
    )
    return b"".join(parts)
