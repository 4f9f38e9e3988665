"""A proxy that cannot do its work says so in one line, exits with a status that is not 0, and leaves nothing behind."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from proxy.ledger.sqlite.ledger import SqliteLedger
from tests.faults.proxied import DATASET, Site, hushql, launch, processes_under, running
from tests.unit.ledger.make import account, ask, want

FAILED, MISUSED = 1, 2


def _remove(path: Path) -> None:
    path.unlink()


def _overwrite(path: Path) -> None:
    path.write_bytes(b"not what it was" * 1000)


def _cut(path: Path) -> None:
    os.truncate(path, 5000)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _open_to_all(path: Path) -> None:
    path.chmod(0o644)


def check_refused(site: Site, status: int, *words: str, listen: str = "127.0.0.1:0", state: Path | None = None) -> None:
    """Start; look at status, message and what is left."""
    started = launch(site, listen=listen, state=state)
    try:
        found = started.wait()
    finally:
        started.end()
    lines = started.said().splitlines()
    assert found == status, started.said()
    assert len(lines) == 1, started.said()
    assert all(word in lines[0] for word in ("hushql: ", *words)), lines[0]
    folder = state or site.state
    left = [path.name for path in folder.glob("*") if path.name.startswith(("front-", "spill-"))]
    assert not left
    assert not processes_under(site.folder)


@pytest.mark.parametrize(
    "harm, words",
    [
        (_remove, ("tiny.duckdb", "does not exist")),
        (_overwrite, ("tiny.duckdb", "cannot be opened as a DuckDB database")),
        (_cut, ("tiny.duckdb", "cannot be opened as a DuckDB database")),
        (_empty, ("tiny.duckdb", "cannot be opened as a DuckDB database")),
    ],
)
def test_missing_or_damaged_data_are_refused_at_start(
    site: Site, harm: Callable[[Path], None], words: tuple[str, ...]
) -> None:
    harm(site.data)
    check_refused(site, MISUSED, *words)


@pytest.mark.parametrize(
    "harm, words",
    [
        (_remove, ("users.yaml", "does not exist", "hushql user add")),
        (_open_to_all, ("users.yaml", "mode 0644", "chmod")),
    ],
)
def test_missing_or_open_users_files_are_refused_at_start(
    site: Site, harm: Callable[[Path], None], words: tuple[str, ...]
) -> None:
    harm(site.users)
    check_refused(site, MISUSED, *words)


def test_a_state_directory_that_is_a_file_is_refused(site: Site) -> None:
    site.state.write_text("not a directory")
    check_refused(site, MISUSED, "is not a directory")
    assert site.state.read_text() == "not a directory"


def test_a_state_directory_that_cannot_be_made_is_refused(site: Site) -> None:
    """Nobody, root included, may make a directory there."""
    check_refused(site, MISUSED, "cannot be used", state=Path("/sys/hushql-state"))


def test_a_state_directory_that_others_may_read_is_refused(site: Site) -> None:
    site.state.mkdir(mode=0o755)
    site.state.chmod(0o755)
    check_refused(site, MISUSED, "mode 0755", "chmod 700")


def test_a_port_in_use_is_refused(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = f"cannot listen on 127.0.0.1 port {port}: Address already in use. Name another"
        check_refused(site, MISUSED, words, listen=f"127.0.0.1:{port}")
    assert not site.state.exists(), "nothing was started before"


@pytest.mark.long
def test_an_address_of_another_machine_is_refused(site: Site) -> None:
    check_refused(site, MISUSED, "cannot listen on 203.0.113.7 port 6432", listen="203.0.113.7:6432")


def test_a_second_proxy_on_one_state_directory_is_refused_and_the_first_goes_on(site: Site) -> None:
    with running(site) as first:
        with first.connect() as client:
            started = launch(site)
            try:
                assert started.wait() == MISUSED
            finally:
                started.end()
            assert client.execute("select count(*) from people").rowcount == 1
        lines = started.said().splitlines()
        assert len(lines) == 1
        assert f"is in use by process {first.pid}" in lines[0]
        learned = hushql(
            "profile",
            str(site.policy),
            "--state",
            str(site.state),
            "--table",
            "people",
            "--column",
            "people.age",
            "--epsilon",
            "1",
        )
        assert learned.returncode == 0, learned.stderr
        assert (
            "charged to the dataset: epsilon 1" in learned.stdout
        )  # asked of the first, which is its ledger's one writer
        assert "a profile was made at epsilon 1 and is in use" in first.said()


@pytest.mark.parametrize("name", ["ledger.db", "head"])
def test_a_damaged_ledger_is_refused_and_left_as_it_is(site: Site, name: str) -> None:
    site.state.mkdir(mode=0o700)
    with closing(SqliteLedger(site.state)) as ledger:
        ledger.reserve((account("dataset", DATASET),), want("k", 1), ask())
    _overwrite(site.state / name)
    before = (site.state / name).read_bytes()
    check_refused(site, FAILED, "ledger")
    assert (site.state / name).read_bytes() == before
    verified = hushql("ledger", "verify", "--state", str(site.state))
    assert verified.returncode == FAILED
    assert len(verified.stderr.splitlines()) == 1


def test_a_damaged_salt_is_refused(site: Site) -> None:
    site.state.mkdir(mode=0o700)
    (site.state / "tiny.salt").write_bytes(b"short")
    (site.state / "tiny.salt").chmod(0o600)
    check_refused(site, MISUSED, "tiny.salt", "damaged")


def test_binaries_that_are_not_there_are_refused(site: Site, tmp_path: Path) -> None:
    empty = tmp_path / "no-postgres"
    empty.mkdir()
    done = hushql(
        "serve", str(site.policy), "--state", str(site.state), "--listen", "127.0.0.1:0", "--front-bin", str(empty)
    )
    assert done.returncode == MISUSED
    assert len(done.stderr.splitlines()) == 1
    assert "initdb" in done.stderr
