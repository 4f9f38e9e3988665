"""The relay and texts that cannot be read, or that the client's encoding cannot spell."""

from __future__ import annotations

from proxy.errors import BudgetSpent
from proxy.wire import messages
from proxy.wire.exchange import Piece, Refusal, Spliced
from proxy.wire.flow import AskPrepare, NoAnswer
from proxy.wire.messages import build
from tests.unit.wire.make import (
    BLOCK,
    COLUMNS,
    DESCRIBED,
    DONE,
    FINISHED,
    MARKER,
    ONE,
    PIECE,
    PRIVATE,
    READY,
    SETTINGS_REPLY,
    THREE,
    TWO,
    error,
    kinds,
    relay,
    row,
)


def test_a_statement_the_clients_encoding_cannot_spell_is_refused() -> None:
    made = relay()
    made.from_front(build(b"S", b"client_encoding\0LATIN1\0"))
    made.take_client()
    made.from_client(messages.query(PRIVATE.encode()))
    made.from_front(THREE + SETTINGS_REPLY)
    made.answer((PIECE,))
    made.from_front(DESCRIBED)
    made.answer(Spliced(sql="select '€'", literal_sql="", arrays=(), notices=()))
    made.from_front(THREE + error(f'invalid "{MARKER}"', "22P02"))
    assert b"22P05" in made.take_client()
    made.from_front(FINISHED)
    assert kinds(made.take_client()) == "Z"


def test_an_encoding_nobody_knows_is_read_as_utf8() -> None:
    made = relay()
    made.from_front(build(b"S", b"client_encoding\0MULE_INTERNAL\0"))
    assert made.channel.codec == "utf-8"


def test_a_query_the_encoding_cannot_spell_ends_the_session() -> None:
    """The text that is sent back is the client's own, so this cannot be but for a change of encoding meanwhile."""
    made = relay()
    made.from_client(messages.query("select '€' from users".encode()))
    made.from_front(THREE + SETTINGS_REPLY)
    made.from_front(build(b"S", b"client_encoding\0LATIN1\0"))
    public = Piece(text="select '€'", start=0, is_private=False, describe_text="")
    made.answer((public,))
    assert made.is_over
    assert b"22P05" in made.take_client()


def test_a_string_that_turns_out_unreadable_midway_is_refused() -> None:
    other = Piece(text="select 1", start=0, is_private=False, describe_text="select 1")
    private = Piece(text=PRIVATE, start=10, is_private=True, describe_text=PRIVATE)
    made = relay()
    made.from_client(messages.query(b"select 1; " + PRIVATE.encode()))
    made.from_front(THREE + SETTINGS_REPLY)
    made.take_ask()
    made.answer((other, private))
    made.from_front(READY + error("several", "42601", R="exec_parse_message") + READY)
    made.from_front(BLOCK + ONE + TWO + COLUMNS + row(b"1") + DONE)
    made.from_front(SETTINGS_REPLY)
    assert isinstance(made.take_ask(), AskPrepare)
    assert isinstance(made.take_ask(), NoAnswer)
    made.answer(BudgetSpent("unreadable now", position=2))
    made.from_front(THREE + error(f'invalid "{MARKER}"', "22P02"))
    assert kinds(made.take_front()).endswith("SQSCCS"), "the block is rolled back"
    made.from_front(READY + DONE + READY + FINISHED)
    seen = made.take_client()
    assert kinds(seen) == "TDCEZ"
    assert b"P12\0" in seen


def test_a_front_that_accepts_the_raising_statement_ends_the_session() -> None:
    made = relay()
    made.from_client(messages.query(PRIVATE.encode()))
    made.from_front(THREE + SETTINGS_REPLY)
    made.answer(
        (Piece(text=PRIVATE, start=0, is_private=True, describe_text=PRIVATE, refusal=Refusal(BudgetSpent("no"))),)
    )
    made.from_front(DESCRIBED + THREE + ONE)
    assert made.is_over
    assert b"XX000" in made.take_client()
