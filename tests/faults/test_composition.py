"""The parts as they are put together: what may not be served together, reloads that fail half-way, ways to end.

The proxy runs in this process, where one of its parts can be made to fail.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from proxy import app
from proxy.admin.reload import FileWatch
from proxy.admin.state import kept_secret
from proxy.config import ExplainRequest, Listen, ServeConfig, UsersAt
from proxy.errors import ConfigError, FrontFailed
from proxy.front.front import Front
from proxy.server.listener import Server
from tests.faults.proxied import COUNT, DATASET, PASSWORD, PATIENCE_S, Site, running, wait_until
from tests.ports import reserved_port

LOCAL = "127.0.0.1"


def config(site: Site, *more: Path) -> ServeConfig:
    return ServeConfig(policies=(site.policy, *more), state=site.state, listen=Listen(LOCAL, 0))


def count_people(port: int) -> int:
    dsn = f"host={LOCAL} port={port} dbname={DATASET} user=ann password='{PASSWORD}'"
    with psycopg.connect(dsn, autocommit=True) as client:
        return client.execute(COUNT.encode()).rowcount


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 - other threads and files change it
            await asyncio.sleep(0.01)


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


# --- what is not served -----------------------------------------------------------------------------------


def refused(wrong: ServeConfig) -> str:
    """What a start says that fails; it leaves nothing behind."""
    with pytest.raises(ConfigError) as failed:
        asyncio.run(app.Proxy(wrong).start())
    assert not [path.name for path in wrong.state.glob("*") if path.name.startswith(("front-", "spill-"))]
    return failed.value.text()


def test_two_policies_of_one_dataset_are_refused(site: Site, tmp_path: Path) -> None:
    other = site.copy(tmp_path / "other")
    said = refused(config(site, other.policy))
    assert str(site.policy) in said
    assert str(other.policy) in said


def test_a_private_postgresql_that_is_not_there_is_refused_without_its_password(site: Site) -> None:
    dsn = "postgresql://nobody:secret@127.0.0.1:1/x"
    site.write_policy(source={"engine": "postgres", "dsn": dsn, "data_version": "1"})
    said = refused(config(site))
    assert "the private PostgreSQL cannot be used: OperationalError" in said
    assert "secret" not in said


def test_a_secret_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        kept_secret(tmp_path / "nowhere" / "tiny.salt")
    shown = tmp_path / "tiny.salt"
    kept_secret(shown)
    shown.chmod(0o640)
    with pytest.raises(ConfigError, match="mode 0640"):
        kept_secret(shown)


def test_a_plan_is_explained_without_serving(site: Site) -> None:
    text = app.explain(ExplainRequest(policy=site.policy, sql=COUNT, as_json=False))
    assert "Privacy plan: epsilon 0.1" in text
    assert not site.state.exists()


# --- what is served ---------------------------------------------------------------------------------------


def test_logins_of_all_datasets_and_metrics_where_they_are_asked_for(site: Site, port: int) -> None:
    """The policy's own users file is not there."""
    elsewhere = site.folder / "everybody.yaml"
    site.users.rename(elsewhere)
    options = ServeConfig(
        policies=(site.policy,), state=site.state, listen=Listen(LOCAL, 0), users=UsersAt(elsewhere),
        metrics=Listen(LOCAL, port),
    )  # fmt: skip

    async def check() -> str:
        proxied = app.Proxy(options)
        server = await proxied.start()
        try:
            assert await asyncio.to_thread(count_people, server.port) == 1
            return await asyncio.to_thread(read_metrics, port)
        finally:
            await proxied.stop()

    told = asyncio.run(check())
    assert 'hushql_statements_total{kind="private"} 1.0' in told
    assert "people" not in told
    with pytest.raises(urllib.error.URLError):
        read_metrics(port)


def test_a_charge_is_timed_and_a_refusal_counted_once(site: Site, port: int) -> None:
    """Refused while reading, while planning, by the relay; a reused answer and an error of PostgreSQL are neither."""
    options = ServeConfig(
        policies=(site.policy,), state=site.state, listen=Listen(LOCAL, 0), metrics=Listen(LOCAL, port)
    )

    async def check() -> str:
        proxied = app.Proxy(options)
        server = await proxied.start()
        try:
            assert await asyncio.to_thread(outcomes, server.port) == ["", "", *REFUSALS.values(), "22012"]
            return await asyncio.to_thread(read_metrics, port)
        finally:
            await proxied.stop()

    told = asyncio.run(check())
    assert "hushql_reserve_seconds_count 1.0" in told
    found = dict(re.findall(r'hushql_refusals_total\{sqlstate="(\w+)"\} (\S+)', told))
    assert found == dict.fromkeys(REFUSALS.values(), "1.0")


REFUSALS = {
    "select age from people": "DP004",
    "select avg(score * 1e300 * age) from people": "DP002",
    "alter role ann password 'x'": "DP007",
}


def outcomes(port: int) -> list[str]:
    """The SQLSTATEs that statements of one session end with, "" of those that are answered."""
    found = []
    dsn = f"host={LOCAL} port={port} dbname={DATASET} user=ann password='{PASSWORD}'"
    with psycopg.connect(dsn, autocommit=True) as client:
        for sql in (COUNT, COUNT, *REFUSALS, "select 1/0"):
            try:
                client.execute(sql.encode())
                found.append("")
            except psycopg.Error as error:
                found.append(error.sqlstate or "?")
    return found


def read_metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://{LOCAL}:{port}/metrics", timeout=PATIENCE_S) as answer:
        text: str = answer.read().decode()
        return text


# --- reloads ----------------------------------------------------------------------------------------------


def test_what_cannot_change_while_it_is_served_does_not(site: Site) -> None:
    with running(site) as proxied, proxied.connect() as client:
        site.write_policy(dataset="other")
        proxied.signal(signal.SIGHUP)
        wait_until(lambda: "cannot be renamed" in proxied.said())
        site.write_policy(access={"users_file": "more.yaml"})
        proxied.signal(signal.SIGHUP)
        wait_until(lambda: "cannot change while" in proxied.said())
        assert client.execute(COUNT.encode()).rowcount == 1


def test_a_front_that_does_not_take_a_policy_leaves_the_old_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine opened for the new policy is closed again; the next edit is taken, and the old engine goes."""
    monkeypatch.setattr(app, "_DRAIN_S", -59.5)  # beside the time that a statement may take
    site.write_policy(limits={"statement_timeout": "60s"})
    whole = Front.apply

    async def fail(*_: object) -> None:
        raise FrontFailed("the public PostgreSQL does not answer")

    async def check() -> None:
        proxied = app.Proxy(config(site))
        server = await proxied.start()
        (hosted,) = proxied._hosted
        old = hosted.dataset.current
        try:
            monkeypatch.setattr(Front, "apply", fail)
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: "does not answer" in hosted.dataset.trouble)
            assert hosted.dataset.current is old
            assert hosted.public.engine is old.engine
            (spill,) = site.state.glob("spill-*")
            assert await asyncio.to_thread(count_people, server.port) == 1
            monkeypatch.setattr(Front, "apply", whole)
            site.write_policy(limits={"statement_timeout": "60s", "max_sessions": 60})
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: hosted.dataset.current is not old)
            await until(lambda: len(list(site.state.glob("spill-*"))) == 1)
            assert not spill.exists(), "what is left is the new engine's"
            assert await asyncio.to_thread(count_people, server.port) == 1
        finally:
            await proxied.stop()

    asyncio.run(check())
    assert not list(site.state.glob("spill-*"))


def test_a_reload_without_an_edit_keeps_the_engine_and_a_front_that_fails_does_not_close_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise FrontFailed("the public PostgreSQL does not answer")

    async def check() -> None:
        proxied = app.Proxy(config(site))
        server = await proxied.start()
        (hosted,) = proxied._hosted
        first = hosted.dataset.current
        try:
            with monkeypatch.context() as patch:
                patch.setattr(Front, "apply", fail)
                os.kill(os.getpid(), signal.SIGHUP)
                await until(lambda: "does not answer" in hosted.dataset.trouble)
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: hosted.dataset.current is not first)
            second = hosted.dataset.current
            assert second.engine is first.engine is hosted.public.engine
            assert second.in_force_since == first.in_force_since
            site.data.touch()  # other data, for all that is known
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: hosted.dataset.current is not second)
            assert hosted.dataset.current.engine is not first.engine
            assert await asyncio.to_thread(count_people, server.port) == 1
        finally:
            await proxied.stop()

    asyncio.run(check())


# --- ways to end ------------------------------------------------------------------------------------------


def check_that_it_ends(site: Site, why: type[Exception], on_ready: Callable[[Server], Awaitable[None]] | None) -> None:
    with pytest.raises(why):
        app.serve(config(site), on_ready)
    assert not [path.name for path in site.state.glob("*") if path.name.startswith(("front-", "spill-"))]


def test_what_is_done_when_it_serves_may_fail_and_ends_it(site: Site) -> None:
    ports: list[int] = []

    async def fail(server: Server) -> None:
        ports.append(server.port)
        raise ConfigError("nothing to do")

    check_that_it_ends(site, ConfigError, fail)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOCAL, ports[0])).close()


def test_a_state_directory_that_turned_read_only_is_told_in_one_line_at_the_end(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when both the record of the front and the socket for commands cannot be removed."""
    whole, kept = Path.unlink, []

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.parent == site.state:
            kept.append(path)
            raise OSError(errno.EROFS, "Read-only file system")
        whole(path, missing_ok=missing_ok)

    async def turn_read_only(server: Server) -> None:
        assert await asyncio.to_thread(count_people, server.port) == 1
        monkeypatch.setattr(Path, "unlink", refuse)

    with pytest.raises(ConfigError, match="could not be removed: Read-only file system"):
        app.serve(config(site), turn_read_only)
    assert len(kept) == 2
    monkeypatch.undo()
    assert site.spent() == site.price()
    with running(site) as proxied, proxied.connect() as client:
        assert client.execute(COUNT.encode()).rowcount == 1


def test_a_watch_that_breaks_ends_the_proxy(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than to go on with logins that were removed. It is a mistake of ours, and leaves as one."""

    async def fail(_: FileWatch) -> None:
        raise NotImplementedError("no more watching")

    monkeypatch.setattr(FileWatch, "run", fail)
    check_that_it_ends(site, NotImplementedError, None)
