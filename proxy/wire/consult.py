"""What must the front be asked before the session understands a statement?

A statement may mean what the front alone remembers: a view of the session, a statement prepared in SQL. Such a piece
says which rows it wants to see, and is prepared again with them, until it wants no more. A statement that is released
in stages asks the front in between what the released numbers come to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from proxy.wire import messages
from proxy.wire.channel import Channel
from proxy.wire.exchange import Array, Asking, Parameter, Piece, Row, Spliced
from proxy.wire.expect import ErrorPlace, SentKind, Ticket
from proxy.wire.flow import Flow, ask_prepare, ask_release, wait_for
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
        rows = yield from _ask_front(channel, piece.asks, (), ())
        told = (*told, rows)
        (piece,) = yield from ask_prepare(piece.text, settings, understanding, told)
    return replace(piece, start=start) if told else piece


def released(
    channel: Channel, piece: Piece, parameters: tuple[Parameter, ...], settings: Mapping[str, str]
) -> Flow[Spliced]:
    """A statement's releases, whatever the front is to be asked in between. Raises FrontSaidNo, HushError."""
    answer = yield from ask_release(piece, parameters, settings)
    while isinstance(answer, Asking):
        rows = yield from _ask_front(channel, answer.sql, parameters, answer.arrays)
        answer = yield from ask_release(replace(answer.piece, told=rows), parameters, settings)
    return answer


def _ask_front(
    channel: Channel, sql: str, parameters: tuple[Parameter, ...], arrays: tuple[Array, ...]
) -> Flow[tuple[Row, ...]]:
    """The rows of a query as text; NULL is None. An error is the client's to see, but not its place in our text."""
    ticket = Ticket()
    bind = Bind(
        portal=STATEMENT,
        statement=STATEMENT,
        formats=(*(p.format for p in parameters), *(0 for _ in arrays)),
        values=(*(_value(p, channel.codec) for p in parameters), *(encode(a.text, channel.codec) for a in arrays)),
        result_formats=(),
    )
    parse = messages.parse(STATEMENT, encode(sql, channel.codec), [p.oid for p in parameters] + [a.oid for a in arrays])
    inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE, ticket)
    inject(channel, parse, SentKind.PARSE, ticket, place=ErrorPlace.NOWHERE)
    inject(channel, messages.bind(bind), SentKind.BIND, ticket, place=ErrorPlace.NOWHERE)
    inject(channel, messages.execute(STATEMENT), SentKind.EXECUTE, ticket, place=ErrorPlace.NOWHERE)
    inject(channel, messages.close_portal(STATEMENT), SentKind.CLOSE)
    inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE)
    channel.send_unanswered(messages.FLUSH)
    channel.has_injected = True
    yield from wait_for(ticket)
    return tuple(
        tuple(None if cell is None else cell.decode(channel.codec, "replace") for cell in messages.parse_data_row(row))
        for row in ticket.rows
    )


def _value(parameter: Parameter, codec: str) -> bytes | None:
    """A value as the client sent it: the session knows text in UTF-8. Raises Untranslatable for what it was not."""
    if parameter.data is None or parameter.format or codec == "utf-8":
        return parameter.data
    return encode(parameter.data.decode("utf-8"), codec)
