"""A statement that is repeated at once asks the front nothing before its release, unless something may have changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from proxy.wire import messages
from proxy.wire.exchange import Piece
from proxy.wire.flow import AskRelease, NoAnswer
from proxy.wire.messages import Bind, build
from proxy.wire.relay import Relay
from tests.unit.wire.make import (
    COLUMNS,
    DESCRIBED,
    DONE,
    FINISHED,
    ONE,
    READY,
    ROWS,
    SETTINGS_REPLY,
    SPLICED,
    THREE,
    TWO,
    column,
    error,
    kinds,
    relay,
    row,
)

TEXT = "select count(*) from users"
INERT = Piece(text=TEXT, start=0, is_private=True, describe_text=TEXT, is_inert=True)
SETTINGS = {"hush.epsilon": "0.5", "TimeZone": "UTC"}
BIND = Bind(portal=b"", statement=b"s", formats=(), values=(), result_formats=())
RUN = messages.bind(BIND) + messages.describe_portal(b"") + messages.execute(b"") + messages.SYNC
SHAPED = build(b"t", b"\0\0") + COLUMNS + THREE + ONE + TWO + THREE + COLUMNS + COLUMNS
REBOUND = THREE + THREE + ONE + TWO + THREE + COLUMNS + row(b"7") + DONE + READY


def queried(piece: Piece = INERT) -> Relay:
    """A session whose last statement was the Query."""
    made = relay(known=lambda text, _settings: (piece,) if text == TEXT else ())
    made.from_client(messages.query(TEXT.encode()))
    made.from_front(THREE + SETTINGS_REPLY + DESCRIBED)
    assert isinstance(made.take_ask(), AskRelease)
    made.answer(SPLICED)
    made.from_front(ONE + TWO + COLUMNS + ROWS)
    return cleared(made)


def prepared(piece: Piece = INERT) -> Relay:
    """A session that has prepared the statement and run it once."""
    made = relay()
    made.from_client(messages.parse(b"s", TEXT.encode()) + messages.SYNC)
    made.from_front(SETTINGS_REPLY + READY + DESCRIBED)
    made.take_ask()
    made.answer((piece,))
    made.from_front(READY)
    made.from_client(RUN)
    made.from_front(SHAPED + SETTINGS_REPLY)
    return finished(made)


def finished(made: Relay) -> Relay:
    """Answer the question for the release that is due, and all that follows from it."""
    assert isinstance(made.take_ask(), AskRelease)
    made.answer(SPLICED)
    made.from_front(REBOUND)
    return cleared(made)


def cleared(made: Relay) -> Relay:
    assert made.is_idle
    made.take_client()
    made.take_front()
    return made


def is_asking(made: Relay) -> bool:
    """Whether it wants a release before the front has said anything."""
    ask = made.take_ask()
    assert isinstance(ask, NoAnswer) or ask.settings == SETTINGS
    return isinstance(ask, AskRelease)


def test_a_repeated_query_waits_once_for_the_front() -> None:
    made = queried()
    for _ in range(3):
        made.from_client(messages.query(TEXT.encode()))
        ask = made.take_ask()
        assert isinstance(ask, AskRelease)
        assert ask.settings == SETTINGS
        made.answer(SPLICED)
        assert kinds(made.take_front()) == "CPBDECCS"
        made.from_front(THREE + ONE + TWO + COLUMNS + ROWS)
        assert kinds(made.take_client()) == "NTDCZ"
        assert made.is_idle


def test_a_repeated_execute_waits_once_for_the_front() -> None:
    made = prepared()
    for _ in range(3):
        made.from_client(RUN)
        assert is_asking(made)
        assert kinds(made.take_front()) == "DCPBCDDH", "the front binds while the release is made"
        made.from_front(SHAPED)
        made.answer(SPLICED)
        assert kinds(made.take_front()) == "CCPBCDES"
        made.from_front(REBOUND)
        assert kinds(made.take_client()) == "2TNDCZ"
        assert made.is_idle


def public(made: Relay) -> None:
    made.from_client(messages.query(b"set hush.epsilon = 9"))
    made.from_front(DONE + READY)


def public_pipeline(made: Relay) -> None:
    made.from_client(messages.parse(b"", b"select 1") + messages.SYNC)
    made.from_front(ONE + READY)


def failed(made: Relay) -> None:
    made.from_client(messages.close_statement(b"x") + messages.SYNC)
    made.from_front(error("out of memory", "53200") + READY)


def began(made: Relay) -> None:
    made.from_client(messages.query(b"begin"))
    made.from_front(DONE + build(b"Z", b"T"))


def is_under_way(made: Relay) -> None:
    made.from_client(messages.query(b"select 1"))


def other_private(made: Relay) -> None:
    made.from_client(messages.query(b"select sum(age) from users"))
    made.from_front(THREE + SETTINGS_REPLY)
    made.take_ask()
    other = replace(INERT, text="select sum(age) from users", describe_text="select sum(age) from users")
    made.answer((other,))
    made.from_front(DESCRIBED)
    made.take_ask()
    made.answer(SPLICED)
    made.from_front(ONE + TWO + COLUMNS + ROWS)


@pytest.mark.parametrize("happens", [public, public_pipeline, failed, began, is_under_way, other_private])
@pytest.mark.parametrize("ran", [queried, prepared])
def test_what_may_have_changed_the_settings_is_read_again(
    ran: Callable[[], Relay], happens: Callable[[Relay], None]
) -> None:
    made = ran()
    happens(made)
    made.take_client()
    made.take_front()
    made.from_client(messages.query(TEXT.encode()) if ran is queried else RUN)
    assert not is_asking(made)


@pytest.mark.parametrize("ran", [queried, prepared])
def test_a_statement_that_may_change_settings_is_not_trusted(ran: Callable[[Piece], Relay]) -> None:
    made = ran(replace(INERT, is_inert=False))
    made.from_client(messages.query(TEXT.encode()) if ran is queried else RUN)
    assert not is_asking(made)


def test_what_follows_an_error_in_the_rows_reads_the_settings() -> None:
    made = queried()
    made.from_client(messages.query(TEXT.encode()))
    assert is_asking(made)
    made.answer(SPLICED)
    made.from_front(THREE + ONE + TWO + COLUMNS + row(b"7") + error("division by zero", "22012"))
    made.from_front(READY + FINISHED)
    cleared(made)
    made.from_client(messages.query(TEXT.encode()))
    assert not is_asking(made)


def test_a_refused_repeat_is_refused_by_the_front() -> None:
    made = queried()
    made.from_client(messages.query(TEXT.encode()))
    assert is_asking(made)
    mistyped = messages.row_description([column(oid=23)])
    made.answer(SPLICED)
    made.from_front(THREE + ONE + TWO + mistyped + ROWS)
    made.from_front(THREE + error('invalid "0123456789abcdef"', "22P02") + FINISHED)
    assert kinds(made.take_client()) == "EZ"


UNSURE = {
    "a named portal": messages.bind(replace(BIND, portal=b"p")) + messages.execute(b"p"),
    "formats that do not fit": messages.bind(replace(BIND, result_formats=(0, 0))) + messages.execute(b""),
    "a format that does not exist": messages.bind(replace(BIND, result_formats=(7,))) + messages.execute(b""),
    "a value too many": messages.bind(replace(BIND, values=(b"1",))) + messages.execute(b""),
    "a portal of an earlier pipeline": messages.bind(BIND) + messages.SYNC + messages.execute(b""),
    "an Execute before it": RUN[: -len(messages.SYNC)] + messages.bind(BIND) + messages.execute(b""),
}


@pytest.mark.parametrize("sent", UNSURE.values(), ids=UNSURE)
def test_what_the_front_may_refuse_is_asked_before_the_charge(sent: bytes) -> None:
    made = prepared()
    made.from_client(sent)
    if sent is UNSURE["an Execute before it"]:
        assert is_asking(made)
        made.from_front(SHAPED)
        made.answer(SPLICED)
        made.from_front(REBOUND[: -len(READY)])
    assert not is_asking(made)
