"""Statements that mean what the front remembers: asked for, understood, and understood again when run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.errors import HushError, Unsupported
from proxy.wire import messages
from proxy.wire.exchange import Asking, Piece
from proxy.wire.flow import AskPrepare, AskRelease
from proxy.wire.messages import Bind
from proxy.wire.relay import Relay
from tests.unit.wire.make import (
    COLUMNS,
    DESCRIBED,
    DONE,
    FINISHED,
    MARKER,
    ONE,
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

TEXT = "select count(*) from v /* users */"
SETTINGS = {"hush.epsilon": "0.5", "TimeZone": "UTC"}
OPEN = Piece(text=TEXT, start=0, is_private=True, describe_text=TEXT, asks="select kept", is_fleeting=True)
KNOWN = Piece(text=TEXT, start=0, is_private=True, describe_text=TEXT, is_fleeting=True)
KEPT = THREE + ONE + TWO + row(b"view", None) + DONE + THREE + THREE
TOLD = ((("view", None),),)


def test_a_query_is_prepared_again_with_what_the_front_has_said() -> None:
    made = relay()
    made.from_client(messages.query(b"  " + TEXT.encode()))
    made.from_front(THREE + SETTINGS_REPLY)
    assert made.take_ask() == AskPrepare(f"  {TEXT}", SETTINGS)
    made.take_front()
    made.answer((replace(OPEN, start=2),))
    assert b"select kept" in made.take_front()
    made.from_front(KEPT)
    assert made.take_ask() == AskPrepare(TEXT, SETTINGS, TOLD)
    made.answer((replace(OPEN, asks="select more"),))
    assert b"select more" in made.take_front()
    made.from_front(KEPT)
    assert made.take_ask() == AskPrepare(TEXT, SETTINGS, TOLD * 2)
    made.answer((KNOWN,))
    made.from_front(DESCRIBED)
    ask = made.take_ask()
    assert isinstance(ask, AskRelease)
    assert ask.piece == replace(KNOWN, start=2)


def test_what_the_front_refuses_to_say_ends_the_statement() -> None:
    made = relay()
    made.from_client(messages.query(TEXT.encode()))
    made.from_front(THREE + SETTINGS_REPLY)
    made.take_ask()
    made.answer((OPEN,))
    made.from_front(THREE + ONE + TWO + error("division by zero", "22012", P="8") + FINISHED)
    seen = made.take_client()
    assert kinds(seen) == "EZ"
    assert b"P8" not in seen
    assert made.is_idle


def prepared() -> Relay:
    """A statement was prepared when it was private, and is run now; the session is asked what it means."""
    made = relay()
    made.from_client(messages.parse(b"", TEXT.encode()))
    made.from_front(SETTINGS_REPLY + READY + DESCRIBED)
    made.take_ask()
    made.answer((OPEN,))
    made.from_front(KEPT)
    assert made.take_ask() == AskPrepare(TEXT, SETTINGS, TOLD)
    made.answer((KNOWN,))
    made.from_front(READY)  # what was asked has begun no transaction that lasts
    bind = Bind(portal=b"", statement=b"", formats=(), values=(), result_formats=())
    made.from_client(messages.bind(bind) + messages.execute(b"") + messages.SYNC)
    made.from_front(b"".join((messages.build(b"t", b"\0\0"), COLUMNS, THREE, ONE, TWO, THREE, COLUMNS)))
    made.from_front(SETTINGS_REPLY)
    assert made.take_ask() == AskPrepare(TEXT, SETTINGS)
    made.answer((OPEN,))
    made.from_front(KEPT)
    assert made.take_ask() == AskPrepare(TEXT, SETTINGS, TOLD)
    return made


def test_a_prepared_statement_is_understood_again_when_it_is_run() -> None:
    made = prepared()
    now = replace(KNOWN, handle="as it is now")
    made.answer((now,))
    ask = made.take_ask()
    assert isinstance(ask, AskRelease)
    assert ask.piece == now
    made.answer(SPLICED)
    made.from_front(THREE + THREE + ONE + TWO + THREE + COLUMNS + row(b"7") + DONE + READY)
    assert kinds(made.take_client()) == "12NDCZ"


@pytest.mark.parametrize(
    ("answer", "sqlstate"),
    [
        ((Piece(text=TEXT, start=0, is_private=False, describe_text=TEXT),), b"DP006"),
        (Unsupported("unreadable now"), b"DP006"),
    ],
)
def test_a_prepared_statement_that_has_changed_is_refused(
    answer: tuple[Piece, ...] | HushError, sqlstate: bytes
) -> None:
    made = prepared()
    made.answer(answer)
    made.from_front(THREE + error(f'invalid "{MARKER}"', "22P02") + READY)
    seen = made.take_client()
    assert kinds(seen) == "12EZ"
    assert sqlstate in seen


# --- releases that ask the front in between ------------------------------------------------------------------

STAGED = Piece(text="select count(*) from users", start=0, is_private=True, describe_text="select count(*) from users")
STAGE = Asking(sql="select stage", arrays=SPLICED.arrays, piece=replace(STAGED, handle="first stage"))
VALUE = THREE + ONE + TWO + row(b"numeric", "é".encode()) + DONE + THREE + THREE


def test_a_query_goes_on_with_what_the_front_has_said() -> None:
    made = relay()
    made.from_client(messages.query(STAGED.text.encode()))
    made.from_front(THREE + SETTINGS_REPLY)
    made.take_ask()
    made.answer((STAGED,))
    made.from_front(DESCRIBED)
    made.take_ask()
    made.take_front()
    made.answer(STAGE)
    asked = made.take_front()
    assert b"select stage" in asked
    assert b"{7}" in asked
    made.from_front(VALUE)
    ask = made.take_ask()
    assert isinstance(ask, AskRelease)
    assert ask.piece == replace(STAGE.piece, told=(("numeric", "é"),))
    made.answer(SPLICED)
    made.from_front(ONE + TWO + COLUMNS + row(b"7") + DONE + THREE + THREE + READY)
    assert kinds(made.take_client()) == "NTDCZ"


def test_a_stage_that_the_front_cannot_compute_ends_the_statement() -> None:
    made = relay()
    made.from_client(messages.query(STAGED.text.encode()))
    made.from_front(THREE + SETTINGS_REPLY)
    made.take_ask()
    made.answer((STAGED,))
    made.from_front(DESCRIBED)
    made.take_ask()
    made.answer(STAGE)
    made.from_front(THREE + ONE + TWO + error("division by zero", "22012", P="8") + FINISHED)
    seen = made.take_client()
    assert kinds(seen) == "EZ"
    assert b"P8" not in seen
    assert made.is_idle


@pytest.mark.parametrize(("codec", "sent"), [("UTF8", "é".encode()), ("LATIN1", "é".encode("latin-1"))])
def test_stages_see_parameters_as_the_client_sent_them(codec: str, sent: bytes) -> None:
    made = relay()
    made.from_front(messages.build(b"S", f"client_encoding\0{codec}\0".encode()))
    made.from_client(messages.parse(b"", STAGED.text.encode()))
    types = messages.build(b"t", b"\0\3\0\0\0\x19\0\0\0\x17\0\0\0\x17")
    made.from_front(SETTINGS_REPLY + READY + ONE + types + COLUMNS)
    made.take_ask()
    made.answer((STAGED,))
    bind = Bind(portal=b"", statement=b"", formats=(0, 1, 0), values=(sent, b"\0\0\0\7", None), result_formats=())
    made.from_client(messages.bind(bind) + messages.execute(b"") + messages.SYNC)
    made.from_front(b"".join((types, COLUMNS, THREE, ONE, TWO, THREE, COLUMNS)) + SETTINGS_REPLY)
    ask = made.take_ask()
    assert isinstance(ask, AskRelease)
    assert [p.data for p in ask.parameters] == ["é".encode(), b"\0\0\0\7", None]
    made.take_front()
    made.answer(STAGE)
    asked = messages.bind(
        Bind(portal=b"_hush", statement=b"_hush", formats=(0, 1, 0, 0), values=(*bind.values, b"{7}"),
             result_formats=())
    )  # fmt: skip
    assert asked in made.take_front()
    made.from_front(VALUE)
    assert isinstance(made.take_ask(), AskRelease)
