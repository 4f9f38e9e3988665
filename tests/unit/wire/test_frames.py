"""Claim: however the network cuts a stream of messages, the same messages come out."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import ProtocolViolation
from proxy.wire.frames import INCOMPLETE, Frame, FrameLimits, FrameSplitter, Incomplete, Oversized
from proxy.wire.messages import build

LIMITS = FrameLimits(max_bytes=200_000, discard_above={ord("Q"): 10})
STREAM = (
    build(b"P", b"s\0select 1\0\0\0")
    + build(b"S")
    + build(b"Q", b"select 1\0")
    + build(b"Q", b"x" * 30)
    + build(b"d", b"data" * 20)
    + build(b"Q", b"y" * 11)
    + build(b"X")
)
EXPECTED = [
    Frame(ord("P"), build(b"P", b"s\0select 1\0\0\0")),
    Frame(ord("S"), build(b"S")),
    Frame(ord("Q"), build(b"Q", b"select 1\0")),
    Oversized(ord("Q")),
    Frame(ord("d"), build(b"d", b"data" * 20)),
    Oversized(ord("Q")),
    Frame(ord("X"), build(b"X")),
]


def split(parts: list[bytes]) -> list[Frame | Oversized]:
    splitter = FrameSplitter(LIMITS)
    found: list[Frame | Oversized] = []
    for part in parts:
        splitter.feed(part)
        while (taken := splitter.take()) is not INCOMPLETE:
            assert not isinstance(taken, Incomplete)
            found.append(taken)
    assert splitter.buffered_bytes == 0
    return found


def test_every_single_cut_gives_the_same_messages() -> None:
    for at in range(len(STREAM) + 1):
        assert split([STREAM[:at], STREAM[at:]]) == EXPECTED
    assert split([STREAM[i : i + 1] for i in range(len(STREAM))]) == EXPECTED


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_cuts_give_the_same_messages(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert split([STREAM[a:b] for a, b in pairwise(edges)]) == EXPECTED


@given(st.lists(st.tuples(st.sampled_from(b"BCcDdEfHPSX"), st.binary(max_size=300)), max_size=20), st.integers(1, 97))
def test_what_was_built_comes_out(given_messages: list[tuple[int, bytes]], step: int) -> None:
    frames = [Frame(kind, build(bytes([kind]), body)) for kind, body in given_messages]
    raw = b"".join(frame.raw for frame in frames)
    assert split([raw[i : i + step] for i in range(0, len(raw), step)]) == frames
    assert [frame.raw[5:] for frame in frames] == [body for _, body in given_messages]


def test_long_streams_are_taken_piece_by_piece() -> None:
    splitter = FrameSplitter(LIMITS)
    message = build(b"d", b"z" * 70_000)
    splitter.feed(message * 2 + message[:10])
    assert splitter.next_kind() == ord("d")
    assert [splitter.take(), splitter.take()] == [Frame(ord("d"), message)] * 2
    assert splitter.take() is INCOMPLETE
    splitter.feed(message[10:])
    assert splitter.take() == Frame(ord("d"), message)
    assert splitter.next_kind() == 0


def test_nothing_is_next_while_a_message_is_thrown_away() -> None:
    splitter = FrameSplitter(LIMITS)
    splitter.feed(build(b"Q", b"x" * 30)[:20])
    assert splitter.take() is INCOMPLETE
    assert splitter.next_kind() == 0


@pytest.mark.parametrize(
    "raw", [b"?", b"\0", b"p\0\0\0\4", b"Q\0\0\0\3", b"X\0\0\0\0", b"d\x7f\xff\xff\xff", b"S\xff\xff\xff\xff"]
)
def test_what_is_no_message_is_a_violation(raw: bytes) -> None:
    splitter = FrameSplitter(LIMITS)
    splitter.feed(raw)
    with pytest.raises(ProtocolViolation):
        splitter.take()


@given(st.binary(max_size=200))
def test_only_violations_leave_the_splitter(raw: bytes) -> None:
    splitter = FrameSplitter(LIMITS)
    splitter.feed(raw)
    try:
        while splitter.take() is not INCOMPLETE:
            pass
    except ProtocolViolation:
        return
