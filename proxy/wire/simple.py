"""How is a Query message answered that may read private tables?

A string with private statements is run as one pipeline of the extended protocol: each statement sees what the earlier
ones did, settings included, and an error undoes them (`transactions`). Replies that a Query would not give are hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from proxy.errors import HushError, NoParameter
from proxy.wire import messages
from proxy.wire.channel import FAILED_TRANSACTION, IDLE, IN_TRANSACTION, UNTOLD, Channel, Held
from proxy.wire.consult import informed, released
from proxy.wire.exchange import NoRefusal, Piece, Refusal, Spliced
from proxy.wire.expect import ErrorPlace, OwedReply, SentKind, Show, Ticket
from proxy.wire.flow import Flow, FrontSaidNo, ask_prepare, wait_for
from proxy.wire.inject import (
    columns_of,
    encode,
    have_same_types,
    inject,
    read_settings,
    refuse,
    send_described,
    send_settings,
)
from proxy.wire.messages import Bind, ResultColumn
from proxy.wire.responses import notice_response
from proxy.wire.skim import first_parameter
from proxy.wire.transactions import BlockControl, ImplicitBlock, control_of, takes_snapshot
from proxy.wire.understanding import SettingsReader, Understanding

#: A Query destroys the unnamed statement and portal, so they are free for our use.
UNNAMED = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryMessage:
    """One Query message. screened: what to say when the marker is raised that stands `screened_at` in its text.

    undo: what to take back when the front skips it.
    """

    text: str
    screened: Refusal | NoRefusal
    screened_at: int
    understanding: Understanding
    reader: SettingsReader
    undo: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Described:
    """A statement that stands on the front, unnamed, and its description."""

    piece: Piece
    ticket: Ticket


def answer_query(channel: Channel, question: QueryMessage) -> Flow[None]:
    """Answer a Query message, its ReadyForQuery included."""
    begun = Ticket()
    is_status_old = bool(channel.queue)
    inject(channel, messages.close_statement(UNNAMED), SentKind.CLOSE, begun)
    try:
        if is_status_old:  # what is under way decides whether the transaction has failed
            channel.send_unanswered(messages.FLUSH)
            yield from wait_for(begun)
        yield from _answer(channel, question)
    except FrontSaidNo:
        # a message before the Query may have failed: then PostgreSQL skips the Query too, up to the client's Sync
        if begun.failed:
            question.undo()
        else:
            _finish(channel)


def _answer(channel: Channel, question: QueryMessage) -> Flow[None]:
    if _is_repeat(channel, question):
        yield from _repeat(channel)
        return
    settings: Mapping[str, str] = {}
    ahead: tuple[Described, ...] = ()
    if channel.status != FAILED_TRANSACTION:
        settings, ahead = yield from _read_and_describe(channel, question)
    try:
        pieces = yield from ask_prepare(question.text, settings, question.understanding)
        if len(pieces) == 1 and settings:
            pieces = ((yield from informed(channel, pieces[0], settings, question.understanding)),)
    except HushError as error:
        return (yield from _not_understood(channel, question, error))
    if _is_for_the_front(channel, pieces):
        _forward(channel, question)
        return
    needs_check = channel.status == FAILED_TRANSACTION or len(pieces) > 1
    if needs_check and not (yield from _is_well_formed(channel, question)):
        _finish(channel)
        return
    if len(pieces) == 1:
        yield from _run_private(channel, question, pieces[0], settings, ahead, is_last=True)
    else:
        yield from _run_several(channel, question, pieces, settings)
        _finish(channel)


def _run_several(
    channel: Channel, question: QueryMessage, pieces: Sequence[Piece], settings: Mapping[str, str]
) -> Flow[None]:
    """Run statements in the transaction that they share as far as they do not say otherwise."""
    block = ImplicitBlock(channel)
    try:
        for piece in pieces:
            block.before(piece.text)
            if piece.is_private:
                yield from _run_private(channel, question, piece, settings, (), is_last=False)
            else:
                yield from _run_public(channel, question, piece, is_quiet=block.is_open)
            block.after(piece.text)
            settings = {}  # this statement may have changed them
    except FrontSaidNo:
        block.abandon()
        raise
    block.commit()


def _is_repeat(channel: Channel, question: QueryMessage) -> bool:
    """Whether the string is the statement that ran last and nothing can have changed what that means."""
    held = channel.held
    known = question.understanding.known(question.text, held.settings) if isinstance(held.statement, Piece) else ()
    return len(known) == 1 and known[0] is held.statement and len(channel.queue) == 1 and channel.status == IDLE


def _repeat(channel: Channel) -> Flow[None]:
    """Run the statement that ran last once more, without asking the front anything before."""
    held = channel.held
    piece = held.statement
    assert isinstance(piece, Piece)
    yield from _release_and_run(channel, piece, held.columns, held.settings, is_last=True)


def _read_and_describe(
    channel: Channel, question: QueryMessage
) -> Flow[tuple[Mapping[str, str], tuple[Described, ...]]]:
    """Read the settings and have the front describe, in the same turn, what the string will probably be taken for."""
    ticket = Ticket()
    is_free = channel.status == IDLE or takes_snapshot(question.text)
    send_settings(channel, question.reader, ticket, takes_snapshot=is_free)
    ahead = tuple(Described(piece, ticket) for piece in _probable(question))
    for found in ahead:
        _send_described(channel, found.piece, Show.AS_SIMPLE, ticket)
    channel.send_unanswered(messages.FLUSH)
    yield from wait_for(ticket)
    return question.reader.read(ticket, channel.codec), ahead


def _probable(question: QueryMessage) -> tuple[Piece, ...]:
    """The one private statement that the string was last time, if the front is to describe it just as it stands."""
    known = question.understanding.known(question.text, question.reader.latest)
    is_whole = len(known) == 1 and known[0].is_private and known[0].describe_text == known[0].text
    return known if is_whole and not known[0].is_part and not known[0].asks else ()


def _finish(channel: Channel) -> None:
    """End the pipeline, and after it, failed or not, what a Query does not leave behind."""
    channel.sync(Show.NOTHING)
    inject(channel, messages.close_portal(UNNAMED), SentKind.CLOSE)
    inject(channel, messages.close_statement(UNNAMED), SentKind.CLOSE)
    channel.sync(Show.ALL)


def _is_for_the_front(channel: Channel, pieces: Sequence[Piece]) -> bool:
    """Nothing private in it, or a lone statement that must fail outside a transaction, as the front says best."""
    if not any(piece.is_private for piece in pieces):
        return True
    return len(pieces) == 1 and pieces[0].needs_transaction and channel.status == IDLE


def _forward(channel: Channel, question: QueryMessage) -> None:
    """Send the string as it is. The Sync ends the transaction that reading the settings has begun."""
    if channel.has_injected:
        channel.sync(Show.NOTHING)
    entry = OwedReply(kind=SentKind.QUERY, refusal=question.screened, refusal_shift=question.screened_at)
    channel.send(messages.query(encode(question.text, channel.codec)), entry)


def _is_well_formed(channel: Channel, question: QueryMessage) -> Flow[bool]:
    """Whether the whole string passes PostgreSQL's grammar, which comes before any of its statements runs.

    The front says no to several statements in any case, which fails what transaction there is; a savepoint undoes that.
    """
    told = Ticket()
    channel.sync(Show.NOTHING, told)
    if channel.status == UNTOLD:
        yield from wait_for(told)
    is_in_block = channel.status == IN_TRANSACTION
    if is_in_block:
        inject(channel, messages.query(b"savepoint _hush"), SentKind.QUERY)
    parsed, synced = Ticket(), Ticket()
    text = messages.parse(UNNAMED, encode(question.text, channel.codec))
    entry = OwedReply(kind=SentKind.PARSE, show=Show.NOTHING, tickets=(parsed,), may_be_several=True)
    channel.send(text, entry)
    channel.sync(Show.NOTHING, synced)
    yield from wait_for(synced)
    if is_in_block and parsed.is_several:
        undone = Ticket()
        inject(channel, messages.query(b"rollback to savepoint _hush; release savepoint _hush"), SentKind.QUERY, undone)
        yield from wait_for(undone)
    return parsed.is_several or not parsed.failed


def _not_understood(channel: Channel, question: QueryMessage, error: HushError) -> Flow[None]:
    """The front's own syntax errors win; a statement it does accept is refused."""
    ticket = Ticket()
    text = encode(question.text, channel.codec)
    entry = OwedReply(
        kind=SentKind.PARSE, show=Show.NOTHING, tickets=(ticket,), refusal=Refusal(error), advised=question.text
    )
    channel.send(messages.parse(UNNAMED, text), entry)
    channel.send_unanswered(messages.FLUSH)
    yield from wait_for(ticket)
    yield from _refused(channel, error, 0)


def _refused(channel: Channel, error: HushError, shift: int) -> Flow[NoReturn]:
    """Always raises FrontSaidNo."""
    ticket = Ticket()
    refuse(channel, error, ticket, shift=shift)
    yield from wait_for(ticket)
    raise HushError("the front accepted a statement that cannot be valid")


# --- one statement of the string -----------------------------------------------------------------------


def _run_public(channel: Channel, question: QueryMessage, piece: Piece, *, is_quiet: bool = False) -> Flow[None]:
    """Run a statement as it stands and wait for its end: it may be a COPY that reads from the client.

    is_quiet: in a block of the relay, which a BEGIN need not warn of.
    """
    begins = is_quiet and control_of(piece.text) is BlockControl.BEGINS
    ticket = Ticket()
    unnamed = Bind(portal=UNNAMED, statement=UNNAMED, formats=(), values=(), result_formats=())
    parse = OwedReply(kind=SentKind.PARSE, show=Show.AS_SIMPLE, refusal=question.screened, shift=piece.start)
    channel.send(messages.parse(UNNAMED, encode(piece.text, channel.codec)), parse)
    channel.send(messages.bind(unnamed), OwedReply(kind=SentKind.BIND, show=Show.AS_SIMPLE))
    channel.send(messages.describe_portal(UNNAMED), OwedReply(kind=SentKind.DESCRIBE_PORTAL, show=Show.AS_SIMPLE))
    execute = OwedReply(kind=SentKind.EXECUTE, tickets=(ticket,), shift=piece.start, hides_notices=begins)
    channel.send(messages.execute(UNNAMED), execute)
    channel.send_unanswered(messages.FLUSH)
    channel.has_injected = True
    yield from wait_for(ticket)


def _run_private(
    channel: Channel,
    question: QueryMessage,
    piece: Piece,
    settings: Mapping[str, str],
    ahead: Sequence[Described],
    *,
    is_last: bool,
) -> Flow[None]:
    """Describe, release and run one private statement, to the end of the pipeline if it is the last.

    settings: empty to read them, since earlier statements may have changed them.
    """
    is_open = bool(piece.asks) or not settings
    if not settings:
        settings = yield from read_settings(channel, question.reader)
    if is_open:
        piece = yield from _prepared_again(channel, question, piece, settings)
    if not piece.is_private:
        assert not is_last, "what a lone statement asks for was answered before"
        yield from _run_public(channel, question, piece)
        return
    described = yield from _describe(channel, piece, ahead)
    columns = columns_of(described)
    try:
        if described.parameter_oids:
            raise _no_parameter(piece.text)
        if isinstance(piece.refusal, Refusal):
            raise piece.refusal.error
    except HushError as error:
        yield from _refused(channel, error, piece.start)
    yield from _release_and_run(channel, piece, columns, settings, is_last=is_last)


def _release_and_run(
    channel: Channel, piece: Piece, columns: tuple[ResultColumn, ...], settings: Mapping[str, str], *, is_last: bool
) -> Flow[None]:
    try:
        spliced = yield from released(channel, piece, (), settings)
        yield from _run_spliced(channel, piece, spliced, columns, is_last=is_last)
    except HushError as error:
        yield from _refused(channel, error, piece.start)
    channel.hold(Held(piece, settings, columns))


def _describe(channel: Channel, piece: Piece, ahead: Sequence[Described]) -> Flow[Ticket]:
    """The front's description of a statement. Raises FrontSaidNo."""
    for found in ahead:
        if found.piece is piece:
            return found.ticket
    if piece.is_part:  # its own errors come before those of the part that is described
        whole = messages.parse(UNNAMED, encode(piece.text, channel.codec))
        entry = OwedReply(kind=SentKind.PARSE, show=Show.AS_SIMPLE, shift=piece.start, advised=piece.text)
        channel.send(whole, entry)
    ticket = Ticket()
    # what the front remarks about the text is shown once
    _send_described(channel, piece, Show.NOTHING if piece.is_part or ahead else Show.AS_SIMPLE, ticket)
    channel.send_unanswered(messages.FLUSH)
    yield from wait_for(ticket)
    return ticket


def _send_described(channel: Channel, piece: Piece, show: Show, ticket: Ticket) -> None:
    text = encode(piece.describe_text, channel.codec)
    shift = piece.start + piece.prefix_chars
    entry = OwedReply(
        kind=SentKind.PARSE,
        show=show,
        tickets=(ticket,),
        shift=shift,
        is_inert=piece.is_inert,
        advised=piece.describe_text,
    )
    send_described(channel, messages.parse(UNNAMED, text), UNNAMED, entry)


def _no_parameter(text: str) -> NoParameter:
    """A Query has no parameters; the pipeline it is run as could have some."""
    first = first_parameter(text)
    return NoParameter(f"there is no parameter {first.text}", position=first.start + 1)


def _prepared_again(channel: Channel, question: QueryMessage, piece: Piece, settings: Mapping[str, str]) -> Flow[Piece]:
    """Earlier statements of the string may have changed what this one means."""
    try:
        (again,) = yield from ask_prepare(piece.text, settings, question.understanding)
        again = yield from informed(channel, again, settings, question.understanding)
    except HushError as error:
        return (yield from _refused(channel, error, piece.start))
    return replace(again, start=piece.start + again.start)


def _run_spliced(
    channel: Channel, piece: Piece, spliced: Spliced, columns: tuple[ResultColumn, ...], *, is_last: bool
) -> Flow[None]:
    """Run the statement with its releases in place. Raises HushError when it returns what was not described.

    Everything is sent at once; what it returns is compared before the first row of it reaches the client.
    """
    is_part = piece.is_part
    arrays = () if is_part else spliced.arrays
    text = encode(spliced.literal_sql if is_part else spliced.sql, channel.codec)
    values = tuple(encode(a.text, channel.codec) for a in arrays)
    bind = Bind(portal=UNNAMED, statement=UNNAMED, formats=(), values=values, result_formats=())
    tag = messages.command_complete(spliced.tag.encode("ascii")) if spliced.tag else b""
    typed, run = Ticket(), Ticket()
    parse = messages.parse(UNNAMED, text, [a.oid for a in arrays])
    inject(channel, parse, SentKind.PARSE, typed, place=ErrorPlace.NOWHERE, is_inert=piece.is_inert)
    inject(channel, messages.bind(bind), SentKind.BIND, typed, place=ErrorPlace.NOWHERE, is_inert=piece.is_inert)
    inject(channel, messages.describe_portal(UNNAMED), SentKind.DESCRIBE_PORTAL, typed)
    execute = OwedReply(
        kind=SentKind.EXECUTE, place=ErrorPlace.NOWHERE, tag=tag, tickets=(run,), is_inert=piece.is_inert
    )
    channel.send(messages.execute(UNNAMED), execute)
    if is_last:
        inject(channel, messages.close_portal(UNNAMED), SentKind.CLOSE)
        inject(channel, messages.close_statement(UNNAMED), SentKind.CLOSE)
        channel.sync(Show.ALL)
    else:
        channel.send_unanswered(messages.FLUSH)
    try:
        yield from wait_for(typed)
        returned = columns_of(typed)
        if not is_part and not have_same_types(columns, returned):
            channel.withhold()
            raise HushError("the statement would return other columns than described")
        tell_notices(channel, spliced)
        if returned:
            channel.tell(messages.row_description(returned if is_part else columns))
        yield from wait_for(run)
    except FrontSaidNo:
        channel.withhold()  # the Sync: the unnamed statement is still to be closed before the Query ends
        raise


def tell_notices(channel: Channel, spliced: Spliced) -> None:
    """Write a statement's notices, before its first row."""
    for n in spliced.notices:
        notice = notice_response(
            severity=n.severity, sqlstate=n.sqlstate, message=n.message, detail=n.detail, codec=channel.codec
        )
        channel.tell(notice)
