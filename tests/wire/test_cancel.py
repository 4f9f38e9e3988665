"""Cancelling, time-outs, and that one session's release does not hold up another."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from select import select

import pytest

from proxy.policy.model import Limits
from proxy.wire import messages
from proxy.wire.expect import PLAIN, SentKind
from proxy.wire.startup import cancel_packet
from tests.wire.front import TestFront
from tests.wire.raw import RawClient, kinds, statement, status
from tests.wire.serving import MovableTime, Serving, start_serving

SLOW = "select /* slow */ count(*) from users"
ENDLESS = "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b"


def cancel(port: int, key: bytes) -> None:
    with RawClient(port) as client:
        client.send(cancel_packet(key))
        assert client.is_closed()


@pytest.mark.parametrize("is_extended", [False, True], ids=["simple", "extended"])
def test_a_pending_release_is_cancelled(is_extended: bool, serving: Serving) -> None:
    for before, after in (((), "I"), (("begin",), "E")):
        with serving.raw() as client:
            for step in before:
                client.query(step)
            client.send(statement(SLOW) + messages.SYNC if is_extended else messages.query(SLOW.encode()))
            serving.wait_until_asleep()
            cancel(serving.port, client.key)
            replies = client.read_until("Z")
            error = replies[-2].fields
            assert (error["C"], error["M"]) == ("57014", "canceling statement due to user request")
            assert status(replies) == after
            client.query("rollback")
            assert kinds(client.query("select count(*) from users")) == "TDCZ"
    assert serving.diary.cancelled == 2


def test_a_statement_on_the_front_is_cancelled(serving: Serving) -> None:
    with serving.raw() as client:
        client.send(messages.query(ENDLESS.encode()))
        wait_until_busy(serving, client)
        cancel(serving.port, client.key)
        replies = client.read_until("Z")
        assert (replies[-2].sqlstate, status(replies)) == ("57014", "I")


def wait_until_busy(serving: Serving, client: RawClient) -> None:
    """Until the front works for this client."""
    pid = struct.unpack("!I", client.key[:4])[0]
    deadline = time.monotonic() + 60
    with serving.connect() as other:
        while time.monotonic() < deadline:
            row = other.execute("select state, query from pg_stat_activity where pid = %s", [pid]).fetchone()
            if row is not None and row[0] == "active":
                return
    raise TimeoutError


def test_a_guessed_key_cancels_nothing(serving: Serving) -> None:
    with serving.raw() as client:
        client.send(messages.query(SLOW.encode()))
        serving.wait_until_asleep()
        cancel(serving.port, client.key[:-1] + bytes([client.key[-1] ^ 1]))
        cancel(serving.port, client.key[:4] + b"\0" * 4)
        cancel(serving.port, b"\0" * 8)
        assert serving.diary.cancelled == 0
        cancel(serving.port, client.key)
        assert client.read_until("Z")[-2].sqlstate == "57014"


def test_cancelling_an_idle_session_changes_nothing(serving: Serving) -> None:
    with serving.raw() as client:
        cancel(serving.port, client.key)
        assert kinds(client.query("select 1")) == "TDCZ"


def test_other_sessions_answer_while_releases_are_pending(serving: Serving) -> None:
    slow = [serving.raw() for _ in range(4)]
    with serving.raw() as client:
        for each in slow:
            each.send(messages.query(SLOW.encode()))
            serving.wait_until_asleep()
        for _ in range(50):
            assert kinds(client.query("select 1")) == "TDCZ"
    assert select([each.socket for each in slow], [], [], 0)[0] == [], "the releases were pending all the time"
    for each in slow:
        cancel(serving.port, each.key)
        assert each.read_until("Z")[-2].sqlstate == "57014"
        each.socket.close()


def test_later_messages_wait_behind_a_pending_release(serving: Serving) -> None:
    with serving.raw() as client:
        client.send(messages.query(SLOW.encode()), messages.query(b"select 1"), statement("select 2"), messages.SYNC)
        serving.wait_until_asleep()
        cancel(serving.port, client.key)
        assert kinds(client.read_until("Z")) == "EZ"
        assert kinds(client.read_until("Z")) == "TDCZ"
        assert kinds(client.read_until("Z")) == "12TDCZ"


def test_statement_timeout_of_the_session_covers_releases(serving: Serving) -> None:
    with serving.raw() as client:
        client.query("set statement_timeout = '100ms'")
        for replies in (client.query(SLOW), client.sync(statement(SLOW))):
            error = replies[-2].fields
            assert error["C"] == "57014"
            assert error["M"].startswith("canceling statement due to statement timeout")  # of the front, or ours
        assert client.query(ENDLESS)[-2].sqlstate == "57014"


STATEMENT_S, IDLE_S = 10.0, 1000.0


@pytest.fixture(scope="module")
def hasty(front: TestFront) -> Iterator[Serving]:
    limits = Limits(statement_timeout_s=STATEMENT_S, idle_timeout_s=IDLE_S)
    serving = start_serving(front, limits=limits, new_loop=MovableTime)
    yield serving
    serving.stop()


def test_the_policys_limit_holds_whatever_the_session_sets(hasty: Serving) -> None:
    with hasty.raw() as client:
        client.query("set statement_timeout = 0")
        client.send(messages.query(SLOW.encode()))
        hasty.wait_until_asleep()
        hasty.pass_time(STATEMENT_S + 1)
        assert client.read_until("Z")[-2].sqlstate == "57014"
        client.send(messages.query(ENDLESS.encode()))
        wait_until_busy(hasty, client)
        session = hasty.call(lambda: next(s for s in hasty.server._sessions if s.key == client.key))
        hasty.call(lambda: session.check_time(hasty.loop.time()))  # as the server does now and then
        hasty.pass_time(STATEMENT_S + 1)
        assert client.read_until("Z")[-2].sqlstate == "57014"
        assert kinds(client.query("select 1")) == "TDCZ"


def test_a_copy_lasts_as_long_as_the_client_sends(hasty: Serving) -> None:
    with hasty.raw() as client:
        client.query("create temp table t (a int)")
        client.send(messages.query(b"copy t from stdin"))
        assert client.read_until("G")
        for _ in range(8):  # together longer than a statement may take
            hasty.pass_time(STATEMENT_S - 1)
            client.send(messages.build(b"d", b"1\n"))
        client.send(messages.build(b"c"))
        assert kinds(client.read_until("Z")) == "CZ"
        client.send(messages.query(b"copy t from stdin"))
        assert client.read_until("G")
        hasty.pass_time(IDLE_S + 1)
        assert client.read_until("E")[-1].sqlstate == "57P05"


def test_a_statement_that_cannot_be_cancelled_ends_its_session(hasty: Serving) -> None:
    with hasty.raw() as client:
        session = hasty.call(lambda: next(s for s in hasty.server._sessions if s.key == client.key))
        hasty.call(lambda: session._relay.channel.queue.append(PLAIN[SentKind.SYNC]))  # a reply that never comes
        now = hasty.loop.time()
        for later, is_over in ((0.0, False), (STATEMENT_S + 1, False), (STATEMENT_S + 2, False), (100.0, True)):
            hasty.call(lambda at=now + later: session.check_time(at))  # type: ignore[misc]
            assert session._relay.is_over is is_over
        assert client.read_until("E")[-1].sqlstate == "57P01"


def test_an_idle_session_is_ended(hasty: Serving) -> None:
    with hasty.raw() as client:
        hasty.pass_time(IDLE_S + 1)
        error = client.read().fields
        assert (error["S"], error["C"]) == ("FATAL", "57P05")
        assert client.is_closed()


def test_a_client_that_hangs_up_stops_its_release_and_its_statement(serving: Serving, front: TestFront) -> None:
    with serving.raw() as client:
        client.send(messages.query(SLOW.encode()))
        serving.wait_until_asleep()
    with serving.raw() as client:
        client.send(messages.query(ENDLESS.encode()))
        wait_until_busy(serving, client)
    deadline = time.monotonic() + 60
    while serving.leases and time.monotonic() < deadline:
        time.sleep(0.01)
    assert serving.diary.cancelled == 1
    assert serving.leases == []
    with front.direct() as connection:
        query = "select count(*) from pg_stat_activity where usename = 'alice' and state = 'active'"
        while connection.execute(query).fetchone() != (0,) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert connection.execute(query).fetchone() == (0,)
