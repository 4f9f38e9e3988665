"""What other accounts of the machine, and readers of the log, can see of a proxy that runs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.faults.proxied import COUNT, DATASET, PASSWORD, Proxied, Site, children_of

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def below(pid: int) -> Iterator[int]:
    """The process and all below it."""
    yield pid
    for child in children_of(pid):
        yield from below(child)


def told(pid: int, name: str) -> bytes:
    """What the system tells of a process; nothing of one that has ended meanwhile, as sessions of other tests do."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def secrets_of(site: Site) -> tuple[bytes, ...]:
    """What nobody else may read: the password, keys of verifiers, and what was drawn for this installation."""
    text = site.users.read_text()
    verifiers = [word for word in text.split() if word.startswith("SCRAM-SHA-256$")]
    keys = [key for verifier in verifiers for key in verifier.split("$")[2].split(":")]
    drawn = [path.read_bytes() for path in (site.state / f"{DATASET}.salt", site.state / "mock.secret")]
    assert keys
    return (PASSWORD.encode(), *(key.encode() for key in keys), *drawn, *(secret.hex().encode() for secret in drawn))


def test_no_secret_is_shown_and_no_file_is_open_to_others(shared: Proxied) -> None:
    """Passwords are kept as verifiers only; nothing that the proxy starts inherits its environment."""
    site = shared.site
    with shared.connect() as client:
        client.execute(COUNT.encode())
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(shared.dsn().replace(PASSWORD, "another word"))
        processes = tuple(below(shared.pid))
        assert len(processes) > 3
        lines = b"\n".join(told(pid, "cmdline") for pid in processes)
        own, *inherited = [told(pid, "environ") for pid in processes]
    for secret in secrets_of(site):
        assert secret not in lines
        assert secret not in shared.log.read_bytes()
    assert b"OPERATORS_OWN" in own
    assert not [one for one in inherited if b"OPERATORS_OWN" in one]
    assert PASSWORD not in site.users.read_text()
    kept = [site.state, *(path for path in site.state.rglob("*") if not path.name.startswith("hushql-"))]
    files = [path for path in kept if "hushql-" not in str(path.relative_to(site.folder))]
    assert {"ledger.db", "head", f"{DATASET}.salt", "mock.secret"} <= {path.name for path in files}
    for path in files:
        assert not path.lstat().st_mode & OTHERS, path


def test_the_socket_of_the_public_postgresql_is_for_its_own_account(shared: Proxied) -> None:
    (front,) = shared.fronts()
    home = Path(os.readlink(f"/proc/{front}/cwd"))
    sockets = [path for path in home.parent.rglob(".s.PGSQL.5432") if path.is_socket()]
    assert sockets
    for socket in sockets:
        assert not socket.parent.stat().st_mode & OTHERS
        assert not socket.lstat().st_mode & OTHERS
