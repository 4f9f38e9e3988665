"""Starts that fail, with stand-ins for the server's programs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.errors import FrontFailed
from proxy.front import process as module
from proxy.front.account import own_account
from proxy.front.binaries import Binaries
from proxy.front.process import Blueprint, log_tail, start_postmaster
from proxy.front.runtime import RuntimeDirectory, create, processes_in


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[RuntimeDirectory]:
    made = create(tmp_path / "state", own_account())
    yield made
    made.remove()


def blueprint(
    runtime: RuntimeDirectory, tmp_path: Path, *, initdb: str, postgres: str = "exit 1", start_timeout_s: float = 60.0
) -> Blueprint:
    """A server whose programs are these shell scripts."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in (("initdb", initdb), ("postgres", postgres)):
        (programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        (programs / name).chmod(0o755)
    return Blueprint(
        runtime=runtime,
        binaries=Binaries(programs, 18),
        name="0",
        max_sessions=10,
        time_zone="UTC",
        address_space_bytes=0,
        file_bytes=0,
        start_timeout_s=start_timeout_s,
    )


def test_a_cluster_that_cannot_be_made_says_what_initdb_said(runtime: RuntimeDirectory, tmp_path: Path) -> None:
    given = blueprint(runtime, tmp_path, initdb="echo no space left >&2; exit 1")
    with pytest.raises(FrontFailed, match="could not be created") as raised:
        asyncio.run(start_postmaster(given, ()))
    assert raised.value.detail == "initdb said: no space left"


def test_a_locale_that_is_missing_is_done_without(runtime: RuntimeDirectory, tmp_path: Path) -> None:
    script = 'case "$*" in *C.UTF-8*) exit 1;; *--locale=C*) exit 0;; esac'
    given = blueprint(runtime, tmp_path, initdb=script, postgres="echo here >&2; exit 1")
    with pytest.raises(FrontFailed, match="did not start") as raised:
        asyncio.run(start_postmaster(given, ()))
    assert raised.value.detail == "It said: here"


def test_an_initdb_that_hangs_is_ended(
    runtime: RuntimeDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_INITDB_TIMEOUT_S", 2.0)  # in which a busy machine starts a shell
    marker = tmp_path / "pid"
    given = blueprint(runtime, tmp_path, initdb=f"echo $$ > {marker}; exec sleep 60")
    with pytest.raises(FrontFailed, match="initdb did not finish in time"):
        asyncio.run(start_postmaster(given, ()))
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text(encoding="ascii")), 0)


def test_a_server_that_never_answers_is_ended(
    runtime: RuntimeDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it ignores every signal that can be ignored."""
    monkeypatch.setattr(module, "_FAST_STOP_S", 0.1)
    deaf = f"cd {runtime.path}/0/data; trap '' INT QUIT; echo deaf >&2; while :; do sleep 0.05; done"
    given = blueprint(runtime, tmp_path, initdb="exit 0", postgres=deaf, start_timeout_s=5.0)
    with pytest.raises(FrontFailed, match="did not become ready") as raised:
        asyncio.run(start_postmaster(given, ()))
    assert "It said: deaf" in raised.value.detail
    assert processes_in(runtime.path, own_account().uid) == ()


def test_the_log_is_emptied_when_long_and_may_be_missing(
    runtime: RuntimeDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_LOG_BYTES", 10)
    given = blueprint(runtime, tmp_path, initdb="exit 0")
    assert log_tail(given) == ""
    module._shorten(given.log)
    given.home.mkdir()
    given.log.write_text("short", encoding="ascii")
    module._shorten(given.log)
    assert log_tail(given) == "short"
    given.log.write_text("long " * 10, encoding="ascii")
    module._shorten(given.log)
    assert log_tail(given) == ""
