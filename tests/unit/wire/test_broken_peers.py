"""Fronts that say too little or too much, and clients that say something else in the middle of a COPY."""

from __future__ import annotations

import pytest

from proxy.errors import ShuttingDown
from proxy.wire import messages
from proxy.wire.exchange import Asking, Piece
from proxy.wire.flow import AskRelease
from proxy.wire.messages import Bind, build
from proxy.wire.relay import Relay
from tests.unit.wire.make import (
    BLOCK,
    COLUMNS,
    DESCRIBED,
    DONE,
    MARKER,
    ONE,
    PIECE,
    PRIVATE,
    READY,
    SETTINGS_REPLY,
    SPLICED,
    THREE,
    TWO,
    error,
    kinds,
    relay,
    row,
)


@pytest.mark.parametrize("length", [0, 3])
@pytest.mark.parametrize("kind", ["N", "E", "Z"])
def test_a_length_that_cannot_be_ends_the_session(kind: str, length: int) -> None:
    made = relay()
    made.from_client(messages.query(b"select 1"))
    made.from_front(kind.encode() + length.to_bytes(4, "big"))
    assert made.is_over
    assert kinds(made.take_client()) == "E"


def test_a_session_that_ends_inside_a_row_says_so_in_place_of_the_row() -> None:
    """Whatever has come of it, and also if whole ones came before it."""
    whole = row(b"a long value")
    for cut in range(1, len(whole)):
        made = relay()
        made.from_client(messages.query(b"select 1"))
        made.from_front(COLUMNS + whole)
        made.from_front(whole + whole[:cut])
        made.end(ShuttingDown("terminating connection due to administrator command"))
        said = made.take_client()
        assert said.startswith(COLUMNS + whole + whole + b"E")
        assert b"57P01" in said
        assert made.is_over


def test_a_session_that_ends_inside_a_huge_row_says_nothing_more() -> None:
    """The client, which has the beginning, would read the error as the rest of the row."""
    made = relay()
    made.from_client(messages.query(b"select 1"))
    begun = COLUMNS + row(b"x" * 100_000)[:9]
    made.from_front(begun)
    made.end(ShuttingDown("terminating connection due to administrator command"))
    assert made.take_client() == begun
    assert made.is_over


@pytest.mark.parametrize("rows", [b"", row(b"0.5", b"UTC") * 2, row(b"0.5")])
def test_settings_that_are_not_told_end_the_session(rows: bytes) -> None:
    """Without them nobody knows which budget a statement may spend."""
    made = relay()
    made.from_client(messages.query(PRIVATE.encode()))
    made.from_front(THREE + THREE + ONE + TWO + rows + DONE + THREE + THREE)
    assert made.is_over
    said = made.take_client()
    assert kinds(said) == "E"
    assert b"57P01" in said


# --- COPY in the middle of a string ---------------------------------------------------------------------------


def copying() -> Relay:
    """A string whose second statement waits for data of the client."""
    public = Piece(text="copyin", start=len(PRIVATE) + 2, is_private=False, describe_text="copyin")
    made = relay()
    made.from_client(messages.query(f"{PRIVATE}; copyin".encode()))
    made.from_front(THREE + SETTINGS_REPLY)
    made.take_ask()
    made.answer((PIECE, public))
    made.from_front(READY + error("several", "42601", R="exec_parse_message") + READY)
    made.from_front(BLOCK + DESCRIBED)
    made.take_ask()
    made.answer(SPLICED)
    made.from_front(ONE + TWO + COLUMNS)
    made.from_front(row(b"7") + DONE)
    made.from_front(ONE + TWO + build(b"n") + build(b"G", b"\0\0\0"))
    made.take_front()
    assert made.channel.copies_in
    return made


def test_what_postgres_ignores_among_the_data_of_a_copy_passes() -> None:
    made = copying()
    made.from_client(messages.SYNC + build(b"d", b"1\n") + messages.FLUSH + build(b"c"))
    assert kinds(made.take_front()) == "SdHcH"
    made.from_front(messages.command_complete(b"COPY 1"))
    assert kinds(made.take_front()) == "CPBECCSCCS", "the block is committed"


@pytest.mark.parametrize("raw", [messages.query(b"select 1"), messages.execute(b""), messages.TERMINATE])
def test_anything_else_in_a_copy_ends_the_session(raw: bytes) -> None:
    """As PostgreSQL does; waiting for the end of the data would be waiting for ever."""
    made = copying()
    made.take_client()
    made.from_client(raw)
    assert made.is_over
    said = made.take_client()
    assert kinds(said) == "E"
    assert b"08P01" in said


# --- stages ---------------------------------------------------------------------------------------------------


def test_a_parameter_that_is_no_text_of_its_encoding_refuses_the_stage() -> None:
    """PostgreSQL and Python disagree about some byte sequences of the Asian encodings."""
    made = relay()
    made.from_front(build(b"S", b"client_encoding\0EUC_JP\0"))
    made.from_client(messages.parse(b"", PRIVATE.encode()))
    types = build(b"t", b"\0\1\0\0\0\x19")
    made.from_front(SETTINGS_REPLY + READY + ONE + types + COLUMNS)
    made.take_ask()
    made.answer((PIECE,))
    bind = Bind(portal=b"", statement=b"", formats=(), values=(b"\xff",), result_formats=())
    made.from_client(messages.bind(bind) + messages.execute(b"") + messages.SYNC)
    made.from_front(b"".join((types, COLUMNS, THREE, ONE, TWO, THREE, COLUMNS)) + SETTINGS_REPLY)
    made.take_ask()
    made.answer(Asking(sql="select stage", arrays=(), piece=PIECE))
    made.from_front(THREE + error(f'invalid "{MARKER}"', "22P02") + READY)
    said = made.take_client()
    assert kinds(said) == "S12EZ"
    assert b"22P05" in said


def test_a_flush_with_a_body_fails_the_pipeline() -> None:
    """PostgreSQL skips what follows up to the Sync, so nothing that follows may be waited for."""
    made = relay()
    made.from_client(build(b"H", b"$$") + messages.parse(b"", PRIVATE.encode()))
    made.take_front()
    made.from_front(error("invalid message format", "08P01"))
    made.from_client(messages.SYNC)
    made.from_front(READY)
    assert kinds(made.take_client()) == "EZ"
    assert made.is_idle


# --- a Query in a pipeline that fails ---------------------------------------------------------------------------


def pipelined(text: bytes, failing: bytes) -> Relay:
    """Something is bound and a private statement prepared; behind it come a message and, without a Sync, a Query."""
    made = relay()
    made.from_client(messages.bind(Bind(portal=b"p", statement=b"s", formats=(), values=(), result_formats=())))
    made.from_front(TWO)
    made.from_client(messages.parse(b"", PRIVATE.encode()))
    made.from_front(SETTINGS_REPLY + DESCRIBED)
    made.take_ask()
    made.answer((PIECE,))
    made.take_client()
    made.take_front()
    made.from_client(failing + messages.query(text))
    assert kinds(made.take_front()) == kinds(failing) + "CH"
    return made


@pytest.mark.parametrize("text", [b"drop table t", b"alter role a password 'x'"])
def test_a_query_behind_a_message_that_fails_is_skipped(text: bytes) -> None:
    """A Sync between the two, which the settings need, must not make PostgreSQL read on there."""
    made = pipelined(text, messages.execute(b"nope"))
    made.from_front(error("portal does not exist", "34000"))
    assert kinds(made.take_client()) == "E"
    assert made.take_front() == b""
    made.from_client(messages.SYNC)
    made.from_front(READY)
    assert made.is_idle
    assert made.channel.book.statement(b"") is not None


def test_a_query_behind_a_message_that_succeeds_runs() -> None:
    made = pipelined(b"drop table t", messages.close_portal(b"p"))
    made.from_front(THREE + THREE)
    assert kinds(made.take_front()) == "SQ"
    made.from_front(READY + messages.command_complete(b"DROP TABLE") + READY)
    assert kinds(made.take_client()) == "3CZ"
    assert made.channel.book.statement(b"") is None


# --- what a failed Query leaves -----------------------------------------------------------------------------------


def failed_in_a_block() -> Relay:
    made = relay()
    made.from_client(messages.query(b"rollback to a"))
    made.from_front(error("savepoint does not exist", "3B001") + build(b"Z", b"E"))
    made.take_front()
    return made


FAILED = build(b"Z", b"E")
UNNAMED = messages.bind(Bind(portal=b"", statement=b"", formats=(), values=(), result_formats=()))


def test_a_bind_that_fails_does_not_leave_the_portal_of_a_failed_query() -> None:
    """PostgreSQL crashes when that is executed."""
    made = failed_in_a_block()
    made.from_client(UNNAMED + messages.SYNC)
    assert made.take_front() == messages.close_portal(b"") + UNNAMED + messages.SYNC


def test_the_portal_of_a_failed_query_is_closed_again_if_closing_it_was_skipped() -> None:
    made = failed_in_a_block()
    made.from_client(messages.parse(b"", b"nope") + UNNAMED + messages.SYNC)
    made.take_front()
    made.from_front(error("current transaction is aborted", "25P02") + build(b"Z", b"E"))
    made.from_client(messages.execute(b""))
    assert made.take_front() == messages.close_portal(b"") + messages.execute(b"")


def test_a_portal_is_not_bound_before_it_is_known_what_goes_by_no_name() -> None:
    """Else it would be closed in the place of the one that the first Close was skipped for."""
    made = failed_in_a_block()
    made.from_client(messages.parse(b"", b"nope") + UNNAMED + messages.SYNC + UNNAMED)
    assert kinds(made.take_front()) == "PCBSCH"
    made.from_front(error("current transaction is aborted", "25P02") + FAILED + THREE)
    assert made.take_front() == messages.close_portal(b"") + UNNAMED
    made.from_client(messages.execute(b""))
    made.from_front(THREE + TWO)
    assert made.take_front() == messages.execute(b"")


@pytest.mark.parametrize("ask", [messages.execute(b""), messages.describe_portal(b"")])
@pytest.mark.parametrize("is_skipped", [True, False])
def test_what_goes_by_no_name_is_not_asked_for_until_it_is_known(ask: bytes, *, is_skipped: bool) -> None:
    """Sent ahead, before the error has come that the Close was skipped for."""
    made = failed_in_a_block()
    first = messages.parse(b"", b"nope") if is_skipped else messages.close_statement(b"x")
    made.from_client(first + UNNAMED + messages.SYNC + ask)
    assert kinds(made.take_front()) == kinds(first) + "CBSCH"
    aborted = error("current transaction is aborted", "25P02")
    made.from_front((aborted if is_skipped else THREE + THREE + TWO) + build(b"Z", b"E") + THREE)
    assert made.take_front() == (messages.close_portal(b"") if is_skipped else b"") + ask


def test_a_private_portal_without_a_name_is_computed_once_it_is_known() -> None:
    """Nothing is asked of the session, which would charge for it, before the front has told what the portal is."""
    made = relay()
    made.from_client(messages.parse(b"p", PRIVATE.encode()))
    made.from_front(SETTINGS_REPLY + READY + DESCRIBED)
    made.take_ask()
    made.answer((PIECE,))
    made.from_client(messages.SYNC + messages.query(b"rollback to a"))
    made.from_front(READY + error("savepoint does not exist", "3B001") + FAILED)
    made.take_front()
    bound = messages.bind(Bind(portal=b"", statement=b"p", formats=(), values=(), result_formats=()))
    made.from_client(bound + messages.SYNC + messages.execute(b""))
    assert kinds(made.take_front()) == "CDCPBCSCH"
    made.take_client()
    made.from_front(THREE + DESCRIBED[len(ONE) :] + THREE + ONE + TWO + THREE + FAILED + THREE)
    assert kinds(made.take_client()) == "2Z"
    assert kinds(made.take_front()) == "DCPBECCH"
    made.from_front(error("current transaction is aborted", "25P02"))
    assert kinds(made.take_client()) == "E"
    assert not isinstance(made.take_ask(), AskRelease)
