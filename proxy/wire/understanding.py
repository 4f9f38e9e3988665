"""What must the relay know of its session without asking and waiting?

Calls that answer at once, and the messages that read the session's settings on the front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from proxy.errors import FrontFailed, HushError
from proxy.wire import messages
from proxy.wire.exchange import Piece
from proxy.wire.expect import INERT, OwedReply, SentKind, Show, Ticket
from proxy.wire.messages import Bind

_NAME = b"_hush_settings"
#: Longest value of a setting that is read; no valid one comes near.
_MAX_SETTING_CHARS = 1024


def no_advice(_text: str, _sqlstate: str, _position: int) -> str:
    """PostgreSQL's own hint."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Understanding:
    """may_be_private, known: see Session. refused: called for each refusal that is shown.

    advice: the hint for an error of PostgreSQL in a text, its SQLSTATE and 1-based place; "" to leave it as it is.
    """

    may_be_private: Callable[[str], bool]
    known: Callable[[str, Mapping[str, str]], tuple[Piece, ...]]
    setting_names: tuple[str, ...]
    refused: Callable[[HushError], None]
    advice: Callable[[str, str, int], str] = no_advice


class SettingsReader:
    """Reads one session's settings, in one of two batches of messages that are the same each time."""

    def __init__(self, names: Sequence[str]) -> None:
        self.latest: Mapping[str, str] = {}
        self._names = tuple(names)
        self._batches = {True: (settings_sql(names),), False: tuple(f"show {name}" for name in names)}
        self._raw = {kind: b"".join(map(_batch, sqls)) for kind, sqls in self._batches.items()}
        self._answer: tuple[tuple[bytes, ...], str] = ((), "")

    def messages(self, ticket: Ticket, *, takes_snapshot: bool) -> tuple[bytes, tuple[OwedReply, ...]]:
        """The batch and what is owed for it; the rows go to `ticket`.

        takes_snapshot: it may fix what the transaction sees, after which PostgreSQL lets nobody choose its isolation.
        """
        read = OwedReply(kind=SentKind.EXECUTE, show=Show.NOTHING, tickets=(ticket,), is_inert=True)
        close = INERT[SentKind.CLOSE]
        owed = (close, INERT[SentKind.PARSE], INERT[SentKind.BIND], read, close, close)
        return self._raw[takes_snapshot], owed * len(self._batches[takes_snapshot])

    def read(self, ticket: Ticket, codec: str) -> Mapping[str, str]:
        """The settings as the front held them then. Unset custom settings are left out.

        An unset `hush.x` reads as NULL before and as an empty string after a SET LOCAL; both mean unset.
        Raises FrontFailed and ProtocolViolation.
        """
        answer = (tuple(ticket.rows), codec)
        if answer != self._answer:
            values = [value for row in ticket.rows for value in messages.parse_data_row(row)]
            if len(values) != len(self._names):
                raise FrontFailed("the front does not tell the session's settings")
            texts = ((n, v.decode(codec, "replace")) for n, v in zip(self._names, values, strict=True) if v is not None)
            self.latest = {name: text[:_MAX_SETTING_CHARS] for name, text in texts if text or "." not in name}
            self._answer = answer
        return self.latest


def settings_sql(names: Sequence[str]) -> str:
    """One row with the value of each setting, NULL for those that do not exist."""
    quoted = ("'" + name.replace("'", "''") + "'" for name in names)
    reads = (f"pg_catalog.left(pg_catalog.current_setting({name}, true), {_MAX_SETTING_CHARS})" for name in quoted)
    return "select " + ", ".join(reads)


def _batch(sql: str) -> bytes:
    unused = Bind(portal=_NAME, statement=_NAME, formats=(), values=(), result_formats=())
    parts = (
        messages.close_statement(_NAME),
        messages.parse(_NAME, sql.encode("ascii")),
        messages.bind(unused),
        messages.execute(_NAME),
        messages.close_portal(_NAME),
        messages.close_statement(_NAME),
    )
    return b"".join(parts)
