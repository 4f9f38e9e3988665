"""The state directory's modes and lock, and the marker.

Modes are compared, never tried out, because root may write anywhere; what only an ordinary user can meet (a directory
without write permission) is shown by a file where a directory is expected.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.errors import ConfigError, LedgerFailed
from proxy.ledger.sqlite.directory import OwnedDirectory, make_private
from proxy.ledger.sqlite.head import Mark, Marker, NoMark, read_mark
from tests.unit.ledger.make import full_disk

ONE, TWO, THREE = (Mark(seq, f"{seq:064x}") for seq in (1, 2, 3))


def test_a_directory_is_made_private_with_its_parents(tmp_path: Path) -> None:
    owned = OwnedDirectory(tmp_path / "a" / "b")
    assert owned.path.stat().st_mode & 0o777 == 0o700
    owned.close()


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
def test_a_directory_that_others_may_enter_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    with pytest.raises(ConfigError, match=f"mode {mode:04o}") as refused:
        OwnedDirectory(tmp_path / "open")
    assert refused.value.hint == f"Run: chmod 700 {tmp_path / 'open'}"


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o644)
    with pytest.raises(ConfigError, match="mode 0644") as refused:
        make_private(tmp_path / "file")
    assert refused.value.hint.startswith("Run: chmod 600")


def test_a_file_in_the_directorys_place_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigError, match="cannot be used"):
            OwnedDirectory(path)


def test_a_full_disk_is_reported_and_the_lock_not_kept(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with full_disk(tmp_path / "empty"), pytest.raises(ConfigError, match="cannot be used: File too large"):
        OwnedDirectory(tmp_path / "state")
    OwnedDirectory(tmp_path / "state").close()


def test_a_directory_in_a_files_place_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        make_private(tmp_path)


def test_an_owned_directory_is_not_owned_twice(tmp_path: Path) -> None:
    owned = OwnedDirectory(tmp_path / "state")
    with pytest.raises(ConfigError, match="in use by process"):
        OwnedDirectory(tmp_path / "state")
    owned.close()
    OwnedDirectory(tmp_path / "state").close()


def test_the_newest_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "head"
    assert read_mark(path) == NoMark()
    marker = Marker(path)
    assert read_mark(path) == NoMark()
    for mark in (ONE, TWO, THREE):
        marker.write(mark)
        assert read_mark(path) == mark
    marker.close()


@pytest.mark.parametrize("kept", range(0, 80, 7))
def test_a_write_that_was_cut_short_leaves_the_mark_before(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "head"
    marker = Marker(path)
    marker.write(ONE).wait()
    marker.write(TWO).wait()
    whole = path.read_bytes()
    marker.write(THREE)
    marker.close()
    torn = path.read_bytes()
    slot = 0  # marks stand in turn in the first and the second
    path.write_bytes(whole[:slot] + torn[slot : slot + kept] + whole[slot + kept :])
    # numbers of one length share their text up to the digits that differ
    assert read_mark(path) in (TWO, THREE)


def test_a_damaged_marker_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "head"
    marker = Marker(path)
    marker.write(ONE)
    marker.close()
    for damage in (b"\0" * 8192, b"1 x y", path.read_bytes().replace(b"1", b"2"), b"\xff\xff \xff \xff"):
        path.write_bytes(damage)
        with pytest.raises(LedgerFailed, match="damaged"):
            read_mark(path)


def test_a_marker_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerFailed, match="cannot be read"):
        read_mark(tmp_path)
