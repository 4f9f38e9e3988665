"""The relay and bytes: cut anywhere it does the same, and nobody's nonsense breaks it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire import messages
from proxy.wire.exchange import Piece, Spliced
from proxy.wire.flow import NoAnswer
from proxy.wire.frames import CLIENT_KINDS
from proxy.wire.messages import Bind, build
from tests.unit.wire.make import (
    COLUMNS,
    DESCRIBED,
    DONE,
    ONE,
    PIECE,
    PRIVATE,
    READY,
    ROWS,
    SETTINGS_REPLY,
    SPLICED,
    THREE,
    TWO,
    answered_query,
    column,
    error,
    kinds,
    relay,
    row,
)

CONVERSATION = (
    messages.row_description([column()])
    + row(b"1") * 3
    + DONE
    + build(b"S", b"TimeZone\0UTC\0")
    + build(b"N", b"SNOTICE\0\0")
    + build(b"A", b"\0\0\0\1c\0p\0")
    + build(b"H", b"\0\0\0")
    + build(b"d", b"line\n") * 3
    + build(b"c")
    + DONE
    + build(b"I")
    + error("nope")
    + READY
)


@pytest.mark.parametrize("step", [*range(1, 40), 1000])
def test_every_cut_of_the_fronts_bytes_gives_the_client_the_same(step: int) -> None:
    made = relay()
    made.from_client(messages.query(b"select 1"))
    seen = b""
    for at in range(0, len(CONVERSATION), step):
        made.from_front(CONVERSATION[at : at + step])
        seen += made.take_client()
    assert seen == CONVERSATION
    assert made.is_idle


@given(st.lists(st.integers(0, 700), max_size=8))
def test_any_cut_of_a_private_querys_replies_gives_the_same(cuts: list[int]) -> None:
    whole, made = answered_query(relay()), relay()
    made.from_client(messages.query(PRIVATE.encode()))
    stages = (THREE + SETTINGS_REPLY, DESCRIBED, ONE + TWO + COLUMNS, ROWS)
    answers: list[tuple[Piece, ...] | Spliced] = [(PIECE,), SPLICED]
    seen = b""
    for stage in stages:
        edges = [0, *sorted(min(cut, len(stage)) for cut in cuts), len(stage)]
        for start, end in pairwise(edges):
            made.from_front(stage[start:end])
        if not isinstance(made.take_ask(), NoAnswer):
            made.answer(answers.pop(0))
        seen += made.take_client()
    assert seen == whole


@given(st.lists(st.integers(0, 300), max_size=8))
def test_any_cut_of_the_clients_bytes_gives_the_front_the_same(cuts: list[int]) -> None:
    bind = Bind(portal=b"", statement=b"", formats=(), values=(b"1",), result_formats=())
    stream = messages.parse(b"", b"select $1") + messages.bind(bind) + messages.execute(b"") + messages.SYNC
    stream += messages.query(b"select 1") + build(b"d", b"x") + build(b"H") + messages.TERMINATE
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    made = relay()
    for start, end in pairwise(edges):
        made.from_client(stream[start:end])
    assert made.take_front() == stream
    assert made.is_over


@given(st.lists(st.binary(max_size=30), max_size=6))
def test_no_bytes_of_a_client_break_the_relay(parts: list[bytes]) -> None:
    made = relay()
    for part in parts:
        made.from_client(part)
    assert not made.is_over or made.take_client()[:1] in (b"E", b"")


@given(st.lists(st.tuples(st.sampled_from(sorted(CLIENT_KINDS)), st.binary(max_size=20)), max_size=6))
def test_no_message_of_a_client_breaks_the_relay(given_messages: list[tuple[int, bytes]]) -> None:
    made = relay()
    for kind, body in given_messages:
        made.from_client(build(bytes([kind]), body))
    assert kinds(made.take_client()) == ""


@given(st.lists(st.tuples(st.sampled_from(b"123AcCdDEGHIKnNRsStTvZ?"), st.binary(max_size=20)), max_size=6))
def test_no_message_of_a_front_breaks_the_relay(given_messages: list[tuple[int, bytes]]) -> None:
    made = relay()
    made.from_client(messages.parse(b"", b"x") + messages.query(b"select 1"))
    for kind, body in given_messages:
        made.from_front(build(bytes([kind]), body))
