"""What does the relay itself say to the front, between the client's messages?

Batches of injected messages, each with a ticket. Every name and operator is qualified or built in, so that a
client's search_path changes nothing; reserved names begin with `_hush`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proxy.errors import HushError, Untranslatable
from proxy.wire import messages
from proxy.wire.channel import Channel
from proxy.wire.exchange import Field, Refusal
from proxy.wire.expect import Entry, Kind, Place, Show, Ticket
from proxy.wire.flow import Flow, wait_for
from proxy.wire.messages import Bind, Column

STATEMENT = b"_hush"
SETTINGS = b"_hush_settings"
#: Longest value of a setting that is read; no valid one comes near.
_MAX_SETTING_CHARS = 1024


def settings_sql(names: Sequence[str]) -> str:
    """One row with the value of each setting, NULL for those that do not exist."""
    quoted = ("'" + name.replace("'", "''") + "'" for name in names)
    reads = (f"pg_catalog.left(pg_catalog.current_setting({name}, true), {_MAX_SETTING_CHARS})" for name in quoted)
    return "select " + ", ".join(reads)


def read_settings(channel: Channel, names: Sequence[str]) -> Flow[Mapping[str, str]]:
    """The session's settings as the front holds them now. Unset custom settings are left out.

    An unset `hush.x` reads as NULL before and as an empty string after a SET LOCAL; both mean unset.
    Raises FrontSaidNo, e.g. in a failed transaction.
    """
    ticket = Ticket()
    sql = settings_sql(names).encode(channel.codec)
    unused = Bind(portal=SETTINGS, statement=SETTINGS, formats=(), values=(), result_formats=())
    inject(channel, messages.close_statement(SETTINGS), Kind.CLOSE, ticket)
    inject(channel, messages.parse(SETTINGS, sql), Kind.PARSE, ticket)
    inject(channel, messages.bind(unused), Kind.BIND, ticket)
    inject(channel, messages.execute(SETTINGS), Kind.EXECUTE, ticket)
    inject(channel, messages.close_portal(SETTINGS), Kind.CLOSE, ticket)
    inject(channel, messages.close_statement(SETTINGS), Kind.CLOSE, ticket)
    channel.send_unanswered(messages.FLUSH)
    channel.has_injected = True
    yield from wait_for(ticket)
    values = messages.parse_data_row(ticket.rows[0])
    texts = {
        name: value.decode(channel.codec, "replace")
        for name, value in zip(names, values, strict=True)
        if value is not None
    }
    return {name: text for name, text in texts.items() if text or "." not in name}


def inject(
    channel: Channel, raw: bytes, kind: Kind, *tickets: Ticket, shift: int = 0, place: Place = Place.SAME
) -> None:
    """Send a message whose replies the client does not see; errors it does see."""
    channel.send(raw, Entry(kind=kind, show=Show.NOTHING, tickets=tickets, shift=shift, place=place))


def settle(channel: Channel) -> Flow[None]:
    """Wait until everything sent so far is answered. Raises FrontSaidNo when some of it failed."""
    ticket = Ticket()
    inject(channel, messages.close_statement(STATEMENT), Kind.CLOSE, ticket)  # succeeds in any state
    channel.send_unanswered(messages.FLUSH)
    yield from wait_for(ticket)


def describe(
    channel: Channel, name: bytes, text: str, oids: Sequence[int], shift: int, show: Show = Show.NOTHING
) -> Flow[Ticket]:
    """Parse and describe a text under `name`. Raises FrontSaidNo; error positions are moved by `shift`.

    show: AS_SIMPLE lets the client see what the front remarks about the text.
    """
    ticket = Ticket()
    parse = messages.parse(name, encode(text, channel.codec), oids)
    channel.send(parse, Entry(kind=Kind.PARSE, show=show, tickets=(ticket,), shift=shift))
    inject(channel, messages.describe_statement(name), Kind.DESCRIBE_STATEMENT, ticket)
    channel.send_unanswered(messages.FLUSH)
    yield from wait_for(ticket)
    return ticket


def refuse(channel: Channel, error: HushError, *tickets: Ticket, shift: int = 0) -> None:
    """Let the front raise, so that the transaction's state is PostgreSQL's own, and show `error` instead.

    In a failed transaction the front's own error comes first, as it would without the relay. Tickets fail.
    """
    text = raising_sql(channel).encode("ascii")
    inject(channel, messages.close_statement(STATEMENT), Kind.CLOSE)
    entry = Entry(kind=Kind.PARSE, show=Show.NOTHING, tickets=tickets, refusal=Refusal(error), shift=shift)
    channel.send(messages.parse(STATEMENT, text), entry)


def raising_sql(channel: Channel) -> str:
    """A statement that fails at analysis with the session's marker in its message."""
    return f"select '{channel.marks.marker}'::pg_catalog.int4"


def columns_of(ticket: Ticket) -> tuple[Column, ...]:
    """Columns of a description, none for a statement that returns no rows."""
    return messages.parse_row_description(ticket.row_description) if ticket.row_description else ()


def fields_of(columns: Sequence[Column], codec: str) -> tuple[Field, ...]:
    """Columns as a session wants them."""
    return tuple(Field(name=c.name.decode(codec, "replace"), oid=c.oid, typmod=c.typmod) for c in columns)


def have_same_types(left: Sequence[Column], right: Sequence[Column]) -> bool:
    return [c.oid for c in left] == [c.oid for c in right]


def encode(text: str, codec: str) -> bytes:
    """Raises Untranslatable when the client's encoding lacks a character."""
    try:
        return text.encode(codec, "surrogateescape")
    except UnicodeEncodeError:
        raise Untranslatable("the statement or its result has no equivalent in the client's encoding") from None
