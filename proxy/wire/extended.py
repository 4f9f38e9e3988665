"""How are Parse, Bind, Describe and Execute answered when the statement reads private tables?

The front prepares and describes the client's own statement. A bound portal holds an empty statement of the same
shape until its first Execute, which releases, binds the rewritten statement under the portal's name and runs it:
the budget is spent there and nowhere before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from proxy.errors import HushError, Unsupported
from proxy.wire import messages
from proxy.wire.book import PrivatePortal, PrivateStatement
from proxy.wire.channel import FAILED_TRANSACTION, IDLE, UNTOLD, Channel, Held
from proxy.wire.consult import informed, released
from proxy.wire.exchange import NoRefusal, Parameter, Piece, Refusal, Spliced
from proxy.wire.expect import PLAIN, ErrorPlace, OwedReply, SentKind, Show, Ticket
from proxy.wire.flow import Flow, ask_prepare, wait_for
from proxy.wire.inject import (
    STATEMENT,
    columns_of,
    describe,
    encode,
    have_same_types,
    inject,
    read_settings,
    refuse,
    send_described,
    send_settings,
    settle,
)
from proxy.wire.messages import Bind, Parse
from proxy.wire.simple import tell_notices
from proxy.wire.transactions import takes_snapshot
from proxy.wire.understanding import SettingsReader, Understanding

# --- Parse --------------------------------------------------------------------------------------------


def forward_parse(channel: Channel, message: Parse, raw: bytes) -> None:
    """Send the Parse of a public statement as it is."""
    book = channel.book
    if not message.name and book.statement(b"") is None and not book.is_doubtful(b""):
        channel.send(raw, PLAIN[SentKind.PARSE])
        return
    channel.send(raw, OwedReply(kind=SentKind.PARSE, undo=channel.book.take_statement_name(message.name)))


def parse_private(
    channel: Channel, understanding: Understanding, reader: SettingsReader, message: Parse, raw: bytes
) -> Flow[None]:
    """Let the front prepare the client's statement, and learn its types."""
    if channel.queue:  # what is under way decides whether the transaction has failed
        yield from settle(channel)
    if channel.status == FAILED_TRANSACTION:
        forward_parse(channel, message, raw)
        return
    text = message.text.decode(channel.codec, "surrogateescape")
    described = Ticket()
    is_first = channel.status in (IDLE, UNTOLD) and not channel.has_begun
    send_settings(channel, reader, described, takes_snapshot=is_first or takes_snapshot(text))
    if is_first:  # a Parse alone begins nothing that the statements after it would notice
        channel.sync(Show.NOTHING)
    entry = OwedReply(
        kind=SentKind.PARSE, tickets=(described,), undo=channel.book.take_statement_name(message.name), advised=text
    )
    send_described(channel, raw, message.name, entry)
    channel.send_unanswered(messages.FLUSH)
    yield from wait_for(described)
    settings = reader.read(described, channel.codec)
    refusal: Refusal | NoRefusal
    try:
        pieces = yield from ask_prepare(text, settings, understanding)
        if len(pieces) == 1:
            pieces = ((yield from informed(channel, pieces[0], settings, understanding, most=1)),)
            if is_first and channel.has_begun:  # by what was asked
                channel.sync(Show.NOTHING)
    except HushError as error:
        piece, refusal = Piece(text=text, start=0, is_private=True, describe_text=text), Refusal(error)
    else:
        if len(pieces) != 1 or not pieces[0].is_private:
            return
        piece, refusal = pieces[0], pieces[0].refusal
    if not piece.is_part and piece.describe_text != piece.text:
        described = yield from _describe_widened(channel, message, piece)
    record = PrivateStatement(
        name=message.name,
        piece=piece,
        refusal=refusal,
        oids=described.parameter_oids,
        columns=columns_of(described),
        has_plan=bool(described.row_description) and not piece.is_part,
    )
    channel.book.put_statement(message.name, record)


def _describe_widened(channel: Channel, message: Parse, piece: Piece) -> Flow[Ticket]:
    """Put the widened text in the place of the client's. Raises FrontSaidNo."""
    inject(channel, messages.close_statement(message.name), SentKind.CLOSE)
    widened = messages.parse(message.name, encode(piece.describe_text, channel.codec), message.oids)
    described = Ticket()

    def undo() -> None:
        channel.book.free_statement_name(message.name)

    entry = OwedReply(kind=SentKind.PARSE, show=Show.NOTHING, tickets=(described,), shift=piece.start, undo=undo)
    send_described(channel, widened, message.name, entry)
    channel.send_unanswered(messages.FLUSH)
    yield from wait_for(described)
    return described


# --- Bind and Describe ------------------------------------------------------------------------------------


def bind_private(channel: Channel, statement: PrivateStatement, message: Bind, raw: bytes) -> None:
    """Bind a statement of the same shape, so that errors in the parameters come here and are PostgreSQL's own.

    Binding the client's statement itself would start its plan, which the guard refuses. What has a prefix or returns
    no rows starts nothing before Execute; a wrong number of parameters fails before anything starts.
    """
    is_sure = _cannot_fail(statement, message)
    entry = OwedReply(kind=SentKind.BIND, is_inert=is_sure, undo=channel.book.take_portal_name(message.portal))
    if not statement.has_plan or len(message.values) != len(statement.oids):
        channel.send(raw, entry)
    else:
        shape = messages.parse(STATEMENT, _shape(channel, statement), statement.oids)
        inject(channel, messages.describe_statement(statement.name), SentKind.DESCRIBE_STATEMENT)
        inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE)
        inject(channel, shape, SentKind.PARSE, is_inert=True)
        channel.send(messages.bind(replace(message, statement=STATEMENT)), entry)
        inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE)
    parameters = _parameters(statement, message, channel.codec)
    portal = PrivatePortal(statement=statement, bound=message, parameters=parameters, is_sure=is_sure)
    channel.book.put_portal(message.portal, portal)


def _cannot_fail(statement: PrivateStatement, message: Bind) -> bool:
    """Whether binding an inert statement can only fail because the front has it no more."""
    is_bare = not (message.portal or message.values or message.formats or statement.oids)
    formats = message.result_formats
    return statement.piece.is_inert and is_bare and len(formats) < 2 and all(code in (0, 1) for code in formats)


def _shape(channel: Channel, statement: PrivateStatement) -> bytes:
    """A statement with as many columns, which nobody is to run: it raises the session's marker if it is."""
    columns = ", ".join(["null"] * len(statement.columns))
    raising = f"pg_catalog.concat('{channel.marks.marker}', pg_catalog.random())::pg_catalog.int4"
    return f"select {columns} where {raising} is null".encode("ascii")


def _parameters(statement: PrivateStatement, message: Bind, codec: str) -> tuple[Parameter, ...]:
    """The values with their types and formats; text comes in UTF-8 whatever the client's encoding."""
    formats = _spread(message.formats, len(message.values))
    found = []
    for oid, code, value in zip(statement.oids, formats, message.values, strict=False):
        is_foreign_text = value is not None and not code and codec != "utf-8"
        data = value.decode(codec, "replace").encode("utf-8") if value is not None and is_foreign_text else value
        found.append(Parameter(oid=oid, format=code, data=data))
    return tuple(found)


def _spread(formats: Sequence[int], count: int) -> tuple[int, ...]:
    """One format code for each of `count` values: none given means text, one means all."""
    return tuple(formats) if len(formats) > 1 else tuple(formats or (0,)) * count


def describe_private(channel: Channel, portal: PrivatePortal, raw: bytes) -> None:
    """Answer with the statement's own description, in the formats of the Bind, if the portal does exist."""
    columns, formats = portal.statement.columns, portal.bound.result_formats
    is_bound = len(formats) in (0, 1, len(columns))  # else the Bind has failed and no description will come
    shown = messages.row_description(columns, formats) if columns and is_bound else b""
    channel.send(raw, OwedReply(kind=SentKind.DESCRIBE_PORTAL, row_description=shown))


# --- Execute ------------------------------------------------------------------------------------------------


def execute_private(
    channel: Channel,
    understanding: Understanding,
    reader: SettingsReader,
    take_sync: Callable[[], bool],
    name: bytes,
    portal: PrivatePortal,
    raw: bytes,
) -> Flow[None]:
    """The first Execute of a portal: release, bind the rewritten statement in its place, run it."""
    statement = portal.statement
    is_repeat = _is_repeat(channel, portal)
    inject(channel, messages.describe_portal(name), SentKind.DESCRIBE_PORTAL)  # fails for a portal that is gone
    if statement.piece.needs_transaction:
        _check_block(channel)
    if is_repeat:
        settings = channel.held.settings
        channel.send_unanswered(messages.FLUSH)  # the front binds while the release is made
    else:
        settings = yield from read_settings(channel, reader)
    if statement.piece.is_fleeting:
        portal = yield from _as_it_is_now(channel, understanding, portal, settings)
        statement = portal.statement
    if statement.piece.is_part:
        yield from _check_inner(channel, statement)
    try:
        if isinstance(statement.refusal, Refusal):
            raise statement.refusal.error
        spliced = yield from released(channel, statement.piece, portal.parameters, settings)
        typed = _send_rebound(channel, name, portal, spliced)
    except HushError as error:
        refuse(channel, error, shift=statement.piece.start)
        return
    tag = messages.command_complete(spliced.tag.encode("ascii")) if spliced.tag else b""
    ends_pipeline = _send_execute(channel, take_sync, raw, tag, is_inert=statement.piece.is_inert)
    yield from wait_for(typed)
    if have_same_types(statement.columns, columns_of(typed)):
        tell_notices(channel, spliced)  # before the first row
        channel.book.put_portal(name, replace(portal, has_run=True, tag=tag))
        channel.hold(Held(statement, settings))
        return
    channel.withhold()
    mistyped = HushError("the statement would return other columns than described")
    refuse(channel, mistyped, shift=statement.piece.start)
    if ends_pipeline:
        channel.sync(Show.ALL)


def _send_execute(channel: Channel, take_sync: Callable[[], bool], raw: bytes, tag: bytes, *, is_inert: bool) -> bool:
    """Run what was put under the portal's name; whether the client's Sync was taken along."""
    channel.send(raw, OwedReply(kind=SentKind.EXECUTE, place=ErrorPlace.NOWHERE, tag=tag, is_inert=is_inert))
    ends_pipeline = take_sync()
    if ends_pipeline:
        channel.sync(Show.ALL)
    else:
        channel.send_unanswered(messages.FLUSH)
    return ends_pipeline


_ENDS = frozenset({SentKind.EXECUTE, SentKind.QUERY, SentKind.SYNC})


def _is_repeat(channel: Channel, portal: PrivatePortal) -> bool:
    """Whether it is the statement that ran last, bound in this pipeline, and nothing can have failed or changed."""
    kinds = [entry.kind for entry in channel.queue]
    is_first = SentKind.BIND in kinds and not _ENDS.intersection(kinds) and channel.status == IDLE
    return portal.is_sure and is_first and channel.held.statement is portal.statement


def _as_it_is_now(
    channel: Channel, understanding: Understanding, portal: PrivatePortal, settings: Mapping[str, str]
) -> Flow[PrivatePortal]:
    """The portal with its statement understood again. Raises FrontSaidNo."""
    statement = portal.statement
    piece = statement.piece
    refusal: Refusal | NoRefusal
    try:
        (again,) = yield from ask_prepare(piece.text, settings, understanding)
        again = yield from informed(channel, again, settings, understanding)
        refusal = again.refusal if again.is_private else Refusal(_CHANGED)
    except HushError as error:
        again, refusal = piece, Refusal(error)
    again = replace(again, start=piece.start)
    return replace(portal, statement=replace(statement, piece=again, refusal=refusal))


_CHANGED = Unsupported("what this statement reads has changed since it was prepared", hint="Prepare it again.")


def _check_block(channel: Channel) -> None:
    """Let the front object, in its own words, to a cursor outside a transaction block: what is run next begins one."""
    for sql in (b"declare _hush_block cursor for select", b"close _hush_block"):
        inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE)
        inject(channel, messages.parse(STATEMENT, sql), SentKind.PARSE, place=ErrorPlace.NOWHERE)
        unused = Bind(portal=STATEMENT, statement=STATEMENT, formats=(), values=(), result_formats=())
        inject(channel, messages.bind(unused), SentKind.BIND)
        inject(channel, messages.execute(STATEMENT), SentKind.EXECUTE, place=ErrorPlace.NOWHERE)
        inject(channel, messages.close_portal(STATEMENT), SentKind.CLOSE)


def _check_inner(channel: Channel, statement: PrivateStatement) -> Flow[None]:
    """Before the charge, that the front takes the query inside COPY, DECLARE, ...: COPY looks into it no sooner.

    Raises FrontSaidNo.
    """
    piece = statement.piece
    inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE)
    yield from describe(channel, STATEMENT, piece.describe_text, statement.oids, piece.start + piece.prefix_chars)


def _send_rebound(channel: Channel, name: bytes, portal: PrivatePortal, spliced: Spliced) -> Ticket:
    """Put the rewritten statement under the portal's name. Raises Untranslatable, having sent nothing."""
    statement = portal.statement
    as_literals = statement.piece.is_part and not statement.oids
    arrays = () if as_literals else spliced.arrays
    text = encode(spliced.literal_sql if as_literals else spliced.sql, channel.codec)
    bound = portal.bound
    bind = Bind(
        portal=name,
        statement=STATEMENT,
        formats=(*_spread(bound.formats, len(bound.values)), *(0 for _ in arrays)),
        values=(*bound.values, *(encode(a.text, channel.codec) for a in arrays)),
        result_formats=bound.result_formats,
    )
    oids = (*statement.oids, *(a.oid for a in arrays))
    ticket, is_inert = Ticket(), statement.piece.is_inert
    inject(channel, messages.close_portal(name), SentKind.CLOSE)
    inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE)
    parse = messages.parse(STATEMENT, text, oids)
    inject(channel, parse, SentKind.PARSE, ticket, place=ErrorPlace.NOWHERE, is_inert=is_inert)
    inject(channel, messages.bind(bind), SentKind.BIND, ticket, place=ErrorPlace.NOWHERE, is_inert=is_inert)
    inject(channel, messages.close_statement(STATEMENT), SentKind.CLOSE)
    inject(channel, messages.describe_portal(name), SentKind.DESCRIBE_PORTAL, ticket)
    return ticket
