"""Directories of fronts: made, found again, swept."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from proxy.errors import FrontFailed
from proxy.front import runtime as module
from proxy.front.account import SystemUser, own_account
from proxy.front.runtime import RuntimeDirectory, create, end_processes, processes_in, sweep

ME = own_account()
STRANGER = SystemUser("stranger", 3_000_000_000, 3_000_000_000)
PATIENCE_S = 60.0


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A short place for temporary files, whatever the tests' own is."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/tmp")
    return Path("/tmp")


def forget(directory: RuntimeDirectory) -> None:
    """What the kernel does when the proxy dies."""
    os.close(directory.lock)


def test_the_state_directory_is_used_when_short_and_reachable(short: Path) -> None:
    with tempfile.TemporaryDirectory(dir=short) as state:
        made = create(Path(state), ME)
        assert made.path.parent == Path(state).resolve()
        made.remove()


def test_a_long_or_private_state_directory_is_avoided(tmp_path: Path, short: Path) -> None:
    for state, account in ((tmp_path / ("x" * 90), ME), (tmp_path / "private", STRANGER)):
        made = create(state, account)
        assert made.path.parent == short.resolve()
        assert stat.S_IMODE(made.path.stat().st_mode) == 0o711
        assert made.record.parent == state
        made.remove()
        assert list(state.iterdir()) == []


def test_no_reachable_place_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_traverse", lambda _directory, _account: False)
    with pytest.raises(FrontFailed, match="short enough path"):
        create(tmp_path, ME)


def test_private_directories_are_fresh_and_files_only_readable(tmp_path: Path, short: Path) -> None:
    made = create(tmp_path, ME)
    (made.make_private("0/data") / "old").touch()
    fresh = made.make_private("0/data")
    assert list(fresh.iterdir()) == []
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o700
    written = made.write_readable("0/conf", "a")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    made.write_readable("0/conf", "b")
    assert written.read_text(encoding="utf-8") == "b"
    made.remove_server("0")
    assert list(made.path.iterdir()) == []
    made.remove()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes directories for others")
def test_directories_for_another_account_are_its_own_and_files_are_not(tmp_path: Path, short: Path) -> None:
    made = create(tmp_path, STRANGER)
    data, written = made.make_private("0/data"), made.write_readable("0/conf", "a")
    assert (data.stat().st_uid, stat.S_IMODE(data.stat().st_mode)) == (STRANGER.uid, 0o700)
    assert (written.stat().st_uid, written.stat().st_gid) == (0, STRANGER.gid)
    assert stat.S_IMODE(written.stat().st_mode) == 0o640
    made.remove()


def test_the_living_are_left_alone_and_the_dead_are_swept(tmp_path: Path, short: Path) -> None:
    living, dead = create(tmp_path, ME), create(tmp_path, ME)
    (dead.path / "file").touch()
    forget(dead)
    assert sweep(tmp_path) == 1
    assert living.path.is_dir()
    assert not dead.path.exists()
    living.remove()
    assert sweep(tmp_path) == 0


def test_records_that_cannot_be_believed_delete_nothing(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / "front-1.json").write_text("{", encoding="ascii")
    (tmp_path / "front-2.json").write_text(json.dumps({"directory": str(precious), "uid": ME.uid}), encoding="ascii")
    (tmp_path / "front-3.json").write_text(
        json.dumps({"directory": str(tmp_path / "hushql-gone"), "uid": ME.uid}), encoding="ascii"
    )
    assert sweep(tmp_path) == 3
    assert list(tmp_path.iterdir()) == [precious]


def worker(directory: Path, *, stubborn: bool) -> subprocess.Popen[bytes]:
    """A process that waits. It says what SIGQUIT does: below a shell's background job that would be nothing."""
    action = "SIG_IGN" if stubborn else "SIG_DFL"
    script = f"import signal as s; s.signal(s.SIGQUIT, s.{action}); print(flush=True); s.sigwait([s.SIGUSR1])"
    process = subprocess.Popen([sys.executable, "-S", "-c", script], cwd=directory, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


@pytest.mark.parametrize("stubborn", [False, True])
def test_processes_that_work_inside_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stubborn: bool) -> None:
    monkeypatch.setattr(module, "_QUIT_WAIT_S", 0.3 if stubborn else PATIENCE_S)
    inside, outside = tmp_path / "d" / "data", tmp_path / "d2"
    inside.mkdir(parents=True)
    outside.mkdir()
    victim, bystander = worker(inside, stubborn=stubborn), worker(outside, stubborn=False)
    try:
        assert processes_in(tmp_path / "d", ME.uid) == (victim.pid,)
        assert processes_in(tmp_path / "d", ME.uid + 1) == ()
        end_processes(tmp_path / "d", ME.uid + 1)
        assert victim.poll() is None
        end_processes(tmp_path / "d", ME.uid)
        assert victim.wait(PATIENCE_S) == (-9 if stubborn else -3)
        assert bystander.poll() is None
    finally:
        for process in (victim, bystander):
            process.kill()
            process.wait()


def test_a_deleted_directory_still_betrays_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUIT_WAIT_S", PATIENCE_S)
    inside = tmp_path / "d" / "data"
    inside.mkdir(parents=True)
    victim = worker(inside, stubborn=False)
    inside.rmdir()
    started = time.monotonic()
    end_processes(tmp_path / "d", ME.uid)
    assert victim.wait(PATIENCE_S) == -3
    assert time.monotonic() - started < PATIENCE_S  # nobody waits for the dead


def test_a_directory_that_was_removed_is_made_again_and_held(tmp_path: Path, short: Path) -> None:
    made = create(tmp_path, ME)
    made.restore()
    made.path.rmdir()
    made.restore()
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o711
    assert sweep(tmp_path) == 0, "its proxy lives"
    made.remove()
