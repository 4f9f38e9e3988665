"""What does the relay itself say to the front, between the client's messages?

Batches of injected messages, each with a ticket. Every name and operator is qualified or built in, so that a
client's search_path changes nothing; reserved names begin with `_hush`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from proxy.errors import HushError, Untranslatable
from proxy.wire import messages
from proxy.wire.channel import Channel
from proxy.wire.exchange import Refusal
from proxy.wire.expect import HIDDEN, INERT, ErrorPlace, OwedReply, SentKind, Show, Ticket
from proxy.wire.flow import Flow, wait_for
from proxy.wire.messages import ResultColumn
from proxy.wire.understanding import SettingsReader

STATEMENT = b"_hush"


def send_settings(channel: Channel, reader: SettingsReader, ticket: Ticket, *, takes_snapshot: bool = True) -> None:
    """Ask the front for the session's settings; a Flush must follow. takes_snapshot: see `SettingsReader`."""
    channel.send_batch(*reader.messages(ticket, takes_snapshot=takes_snapshot))
    channel.has_injected = True


def read_settings(channel: Channel, reader: SettingsReader) -> Flow[Mapping[str, str]]:
    """The session's settings as the front holds them now. Raises FrontSaidNo, e.g. in a failed transaction."""
    ticket = Ticket()
    send_settings(channel, reader, ticket)
    channel.send_unanswered(messages.FLUSH)
    yield from wait_for(ticket)
    return reader.read(ticket, channel.codec)


def inject(
    channel: Channel,
    raw: bytes,
    kind: SentKind,
    *tickets: Ticket,
    shift: int = 0,
    place: ErrorPlace = ErrorPlace.SAME,
    is_inert: bool = False,
) -> None:
    """Send a message whose replies the client does not see; errors it does see."""
    entry = INERT[kind] if is_inert else HIDDEN[kind]
    if tickets or shift or place is not ErrorPlace.SAME:
        entry = replace(entry, tickets=tickets, shift=shift, place=place)
    channel.send(raw, entry)


def settle(channel: Channel) -> Flow[None]:
    """Wait until everything sent so far is answered. Raises FrontSaidNo when some of it failed."""
    ticket = Ticket()
    inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE, ticket)  # succeeds in any state
    channel.send_unanswered(messages.FLUSH)
    yield from wait_for(ticket)


def describe(
    channel: Channel, name: bytes, text: str, oids: Sequence[int], shift: int, show: Show = Show.NOTHING
) -> Flow[Ticket]:
    """Parse and describe a text under `name`. Raises FrontSaidNo; error positions are moved by `shift`.

    show: AS_SIMPLE lets the client see what the front remarks about the text.
    """
    ticket = Ticket()
    send_described(channel, messages.parse(name, encode(text, channel.codec), oids), name,
                   OwedReply(kind=SentKind.PARSE, show=show, tickets=(ticket,), shift=shift))  # fmt: skip
    channel.send_unanswered(messages.FLUSH)
    yield from wait_for(ticket)
    return ticket


def send_described(channel: Channel, parse: bytes, name: bytes, entry: OwedReply) -> None:
    """Send a Parse of `name` and ask for its description, for the tickets of its entry; a Flush must follow."""
    channel.send(parse, entry)
    inject(channel, messages.describe_statement(name), SentKind.DESCRIBE_STATEMENT, *entry.tickets)


def refuse(channel: Channel, error: HushError, *tickets: Ticket, shift: int = 0) -> None:
    """Let the front raise, so that the transaction's state is PostgreSQL's own, and show `error` instead.

    In a failed transaction the front's own error comes first, as it would without the relay. Tickets fail.
    """
    text = raising_sql(channel).encode("ascii")
    inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE)
    entry = OwedReply(kind=SentKind.PARSE, show=Show.NOTHING, tickets=tickets, refusal=Refusal(error), shift=shift)
    channel.send(messages.parse(STATEMENT, text), entry)


def raising_sql(channel: Channel) -> str:
    """A statement that fails at analysis with the session's marker in its message."""
    return f"select '{channel.marks.marker}'::pg_catalog.int4"


def columns_of(ticket: Ticket) -> tuple[ResultColumn, ...]:
    """Columns of a description, none for a statement that returns no rows."""
    return messages.parse_row_description(ticket.row_description) if ticket.row_description else ()


def have_same_types(left: Sequence[ResultColumn], right: Sequence[ResultColumn]) -> bool:
    return [c.oid for c in left] == [c.oid for c in right]


def encode(text: str, codec: str) -> bytes:
    """Raises Untranslatable when the client's encoding lacks a character."""
    try:
        return text.encode(codec, "surrogateescape")
    except UnicodeEncodeError:
        raise Untranslatable("the statement or its result has no equivalent in the client's encoding") from None
