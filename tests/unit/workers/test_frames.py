"""Frames are the same however their bytes come."""

from __future__ import annotations

import pytest

from proxy.workers.frames import FrameKind, Splitter, WorkFrame

FRAMES = [
    WorkFrame(FrameKind.WORK, 0.25, b"abc"),
    WorkFrame(FrameKind.SLOW),
    WorkFrame(FrameKind.KNOW, 7, bytes(range(256)) * 10),
]


@pytest.mark.parametrize("size", [1, 2, 16, 17, 18, 1000, 10_000])
def test_frames_are_the_same_however_they_are_cut(size: int) -> None:
    raw, splitter = b"".join(frame.raw() for frame in FRAMES), Splitter()
    found = [f for start in range(0, len(raw), size) for f in splitter.feed(raw[start : start + size])]
    assert found == FRAMES


def test_what_is_no_frame_is_an_error() -> None:
    with pytest.raises(ValueError, match="99"):
        Splitter().feed(bytes([99]) + bytes(16))
