"""Segments of shared memory: those of a server that has ended go, those of others stay."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.front import segments
from proxy.front.segments import remove_segment_named_in, remove_segments_of

ME = os.geteuid()
_MAKE = "import ctypes; print(ctypes.CDLL(None).shmget({key}, 56, 0o1600))"


def made(key: int) -> tuple[int, int]:
    """A segment of a process that has ended: that process and the segment's number."""
    with subprocess.Popen([sys.executable, "-c", _MAKE.format(key=key)], stdout=subprocess.PIPE, text=True) as child:
        number = int(child.communicate()[0])
    assert number >= 0
    return child.pid, number


def is_there(number: int) -> bool:
    return any(row["shmid"] == number for row in segments._rows())


@pytest.fixture
def left() -> Iterator[tuple[int, int]]:
    pid, number = made(0)
    yield pid, number
    ctypes.CDLL(None).shmctl(number, 0, None)


def test_what_a_server_left_is_removed_once(left: tuple[int, int]) -> None:
    pid, number = left
    assert remove_segments_of(pid, ME + 1) == 0, "another account's"
    assert is_there(number)
    assert remove_segments_of(pid, ME) == 1
    assert not is_there(number)
    assert remove_segments_of(pid, ME) == 0


def test_what_somebody_uses_stays(left: tuple[int, int]) -> None:
    pid, number = left
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    place = ctypes.c_void_p(libc.shmat(number, None, 0))
    assert remove_segments_of(pid, ME) == 0
    libc.shmdt(place)
    assert remove_segments_of(pid, ME) == 1


@pytest.mark.parametrize("wrong", ["", "pid", "key", "number", "short", "absent", "words"])
def test_a_directory_names_its_servers_segment_by_number_key_and_process(
    left: tuple[int, int], tmp_path: Path, wrong: str
) -> None:
    pid, number = left
    (key,) = [row["key"] for row in segments._rows() if row["shmid"] == number]
    named = {"pid": pid, "key": key, "number": number}
    if wrong in named:
        named[wrong] += 1
    lines = [str(named["pid"]), "/data", "1", "5432", "/s", "", f"  {named['key']}  {named['number']}", "ready"]
    if wrong == "short":
        lines = lines[:3]
    if wrong == "words":
        lines[6] = "words"
    if wrong != "absent":
        (tmp_path / "postmaster.pid").write_text("\n".join(lines))
    assert remove_segment_named_in(tmp_path, ME) == (not wrong)
    assert is_there(number) is bool(wrong)


def test_without_a_list_of_segments_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_TABLE", tmp_path / "nowhere")
    assert remove_segments_of(1, ME) == 0
