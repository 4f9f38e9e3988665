"""What must the front be asked before the session understands a statement?

A statement may mean what the front alone remembers: a view of the session, a statement prepared in SQL. Such a piece
says which rows it wants to see, and is prepared again with them, until it wants no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from proxy.wire import messages
from proxy.wire.channel import Channel
from proxy.wire.exchange import Piece, Row
from proxy.wire.expect import Kind, Place, Ticket
from proxy.wire.flow import Flow, ask_prepare, wait_for
from proxy.wire.inject import STATEMENT, encode, inject
from proxy.wire.messages import Bind
from proxy.wire.understanding import Understanding


def informed(
    channel: Channel, piece: Piece, settings: Mapping[str, str], understanding: Understanding, *, most: int = 2
) -> Flow[Piece]:
    """The piece once it has seen what it wants, after at most so many questions. Raises FrontSaidNo, HushError."""
    told: tuple[tuple[Row, ...], ...] = ()
    start = piece.start
    while piece.asks and len(told) < most:
        rows = yield from _ask_front(channel, piece.asks)
        told = (*told, rows)
        (piece,) = yield from ask_prepare(piece.text, settings, understanding, told)
    return replace(piece, start=start) if told else piece


def _ask_front(channel: Channel, sql: str) -> Flow[tuple[Row, ...]]:
    """The rows of a query as text; NULL is None. An error is the client's to see, but not its place in our text."""
    ticket = Ticket()
    unused = Bind(portal=STATEMENT, statement=STATEMENT, formats=(), values=(), result_formats=())
    inject(channel, messages.close_statement(STATEMENT), Kind.CLOSE, ticket)
    inject(channel, messages.parse(STATEMENT, encode(sql, channel.codec)), Kind.PARSE, ticket, place=Place.NOWHERE)
    inject(channel, messages.bind(unused), Kind.BIND, ticket, place=Place.NOWHERE)
    inject(channel, messages.execute(STATEMENT), Kind.EXECUTE, ticket, place=Place.NOWHERE)
    inject(channel, messages.close_portal(STATEMENT), Kind.CLOSE, ticket)
    inject(channel, messages.close_statement(STATEMENT), Kind.CLOSE, ticket)
    channel.send_unanswered(messages.FLUSH)
    channel.has_injected = True
    yield from wait_for(ticket)
    return tuple(
        tuple(None if cell is None else cell.decode(channel.codec, "replace") for cell in messages.parse_data_row(row))
        for row in ticket.rows
    )
