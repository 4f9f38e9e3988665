"""What one session may hold, and what it may not say."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from proxy.policy.model import Limits
from proxy.wire import messages
from tests.wire.front import TestFront
from tests.wire.raw import RawClient, kinds, statement, status
from tests.wire.serving import Serving, start_serving


@pytest.fixture(scope="module")
def small(front: TestFront) -> Iterator[Serving]:
    limits = Limits(max_sessions=3, max_sessions_per_user=2, max_statement_bytes=2000)
    serving = start_serving(front, limits=limits)
    yield serving
    serving.stop()


@pytest.mark.parametrize("state", ["I", "T", "E"])
def test_an_oversized_statement_is_refused_and_the_session_goes_on(state: str, small: Serving) -> None:
    big = b"select '" + b"x" * 3000 + b"'"
    with small.raw() as client:
        if state != "I":
            client.query("begin")
        if state == "E":
            client.query("select nope")
        expected = "25P02" if state == "E" else "54000"
        replies = client.query(big.decode())
        assert (kinds(replies), replies[-2].sqlstate) == ("EZ", expected)
        replies = client.sync(messages.parse(b"", big), messages.execute(b""))
        assert (kinds(replies), replies[-2].sqlstate) == ("EZ", "25P02" if state != "I" else "54000")
        replies = client.sync(statement("select nope"), messages.parse(b"", big))
        assert kinds(replies) == "EZ"
        client.query("rollback")
        assert kinds(client.query("select 1")) == "TDCZ"


def test_prepared_statements_are_counted(serving: Serving) -> None:
    with serving.raw() as client:
        for _ in range(2):
            parses = [messages.parse(b"s%d" % i, b"select 1") for i in range(999)]
            assert kinds(client.sync(*parses)) == "1" * 999 + "Z"
            client.query("prepare by_sql as select 1")
            full = client.sync(messages.parse(b"one more", b"select 1"))
            assert full[0].sqlstate == "54000"
            assert kinds(client.sync(messages.parse(b"", b"select 1"))) == "1Z"
            client.query("deallocate by_sql")
            assert kinds(client.sync(messages.parse(b"one more", b"select 1"))) == "1Z"
            client.query("discard all")


def test_a_failed_parse_takes_no_name(serving: Serving) -> None:
    with serving.raw() as client:
        for number in range(1100):
            client.send(messages.parse(b"s%d" % number, b"select nope"), messages.SYNC)
        for _ in range(1100):
            assert kinds(client.read_until("Z")) == "EZ"
        assert kinds(client.sync(messages.parse(b"s", b"select 1"))) == "1Z"


def test_portals_are_counted(serving: Serving) -> None:
    with serving.raw() as client:
        client.query("begin")
        client.sync(messages.parse(b"s", b"select 1"))
        binds = [
            messages.bind(messages.Bind(portal=b"p%d" % i, statement=b"s", formats=(), values=(), result_formats=()))
            for i in range(101)
        ]
        assert kinds(client.sync(*binds[:100])) == "2" * 100 + "Z"
        assert kinds(client.sync(messages.close_portal(b"p7"), binds[7])) == "32Z"
        full = client.sync(binds[100])
        assert full[0].sqlstate == "54000"
        client.query("rollback")
        assert kinds(client.sync(binds[100])) == "2Z"


def test_sessions_are_counted_by_database_and_by_login(small: Serving) -> None:
    first, second = small.raw(), small.raw()
    with first, second, RawClient(small.port) as third:
        error = third.log_in()[-1].fields
        assert (error["S"], error["C"]) == ("FATAL", "53300")
        assert "alice" in error["M"]
        with small.raw(user="bob"), RawClient(small.port) as fifth:
            assert fifth.log_in(user="bob")[-1].fields["M"] == "sorry, too many clients already"
    with small.raw() as again:
        assert status(again.query("select 1")) == "I"


def test_function_calls_are_refused_in_every_state(serving: Serving) -> None:
    call = messages.build(b"F", struct.pack("!IHHIhH", 1, 0, 1, 0, -1, 0)[:12])
    with serving.raw() as client:
        client.send(call)
        assert client.read_until("Z")[0].sqlstate == "DP007"
        client.query("begin")
        client.send(call)
        replies = client.read_until("Z")
        assert (replies[0].sqlstate, status(replies)) == ("DP007", "E")
        client.send(call)
        assert client.read_until("Z")[0].sqlstate == "25P02"


ALLOWED = (
    "set extra_float_digits = 3",
    "set session characteristics as transaction read only",
    "set time zone 'UTC'",
    "set names 'UTF8'",
    "set client_encoding to 'LATIN1'",
    "set hush.epsilon = 0.1",
    "set local hush.epsilon = 0.1",
    "reset all",
    "discard all",
    "unlisten *",
    "select set_config('jit', 'off', false)",
    "select pg_catalog.set_config('search_path', '', false)",
    "set standard_conforming_strings = on",
    "select 'notify', 'alter role x', \"set\" from (select 1 as \"set\") t",
    "/* set work_mem = 1 */ select $$ listen x $$",
)
FORBIDDEN = (
    "set work_mem to 100000",
    "SET LOCAL work_mem = 100000",
    'set "work_mem" = 100000',
    "set session max_parallel_workers_per_gather = 8",
    "select set_config('work_mem', '1GB', false)",
    "select pg_catalog.\"set_config\"('temp_buffers', '1GB', false)",
    "select set_config('work' || '_mem', '1GB', false)",
    "select U&\"set\\005fconfig\"('work_mem', '1GB', false)",
    "select U&\"set!005fconfig\" uescape '!' ('work_mem', '1GB', false)",
    "set standard_conforming_strings = off",
    "set client_encoding = 'MULE_INTERNAL'",
    "update pg_settings set setting = '1GB' where name = 'work_mem'",
    "alter user alice set work_mem = '1GB'",
    "alter group g add user alice",
    "listen x",
    "select pg_notify('a', 'b')",
    "create or replace rule r as on insert to t do also notify x",
    "drop owned by alice",
    "reassign owned by alice to bob",
    "select 1; /* a /* b */ */ notify x",
)


@pytest.mark.parametrize("sql", ALLOWED)
def test_harmless_statements_pass(sql: str, serving: Serving) -> None:
    with serving.raw() as client:
        assert "E" not in kinds(client.query(sql))


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_statements_beyond_the_session_are_refused(sql: str, serving: Serving) -> None:
    with serving.raw() as client:
        assert client.query(sql)[-2].sqlstate == "DP007"
        assert client.query("show work_mem")[1].row == (b"4MB",)
        if ";" not in sql:
            assert client.sync(statement(sql))[-2].sqlstate == "DP007"


@pytest.mark.parametrize("sql", ["select 1 / (height - 1) from places", "select 1 / (age - 30) from users"])
def test_what_a_failed_query_leaves_behind_cannot_crash_the_front(sql: str, serving: Serving) -> None:
    for use in (messages.describe_portal(b""), messages.execute(b"")):
        with serving.raw() as client, serving.raw() as other:
            client.query("begin")
            assert status(client.query(sql)) == "E"
            replies = client.sync(use)
            assert (replies[0].sqlstate, status(replies)) == ("34000", "E")
            assert kinds(other.query("select 1")) == "TDCZ"
            assert status(client.query("rollback")) == "I"


def test_parameters_cannot_name_a_setting(serving: Serving) -> None:
    with serving.raw() as client:
        replies = client.sync(statement("select set_config($1, $2, false)", b"work_mem", b"1GB"))
        assert replies[-2].sqlstate == "DP007"


def test_changing_the_role_is_denied_by_postgres(serving: Serving) -> None:
    with serving.raw() as client:
        assert client.query("set role bob")[0].sqlstate == "42501"
        assert client.query("set session authorization postgres")[0].sqlstate == "42501"
        assert client.query("select set_config('role', 'postgres', false)")[-2].sqlstate == "42501"


@pytest.mark.parametrize("kind", [b"p", b"x", b"\0"])
def test_unknown_messages_end_the_session(kind: bytes, serving: Serving) -> None:
    with serving.raw() as client, serving.raw() as other:
        client.send(messages.build(kind, b"abc"))
        error = client.read().fields
        assert (error["S"], error["C"]) == ("FATAL", "08P01")
        assert client.is_closed()
        assert kinds(other.query("select 1")) == "TDCZ"


@pytest.mark.parametrize("raw", [b"Q\0\0\0\3", b"d\x7f\xff\xff\xff", b"Q" + b"\xff" * 200])
def test_impossible_lengths_do_not_hurt_other_sessions(raw: bytes, serving: Serving) -> None:
    with serving.raw() as client, serving.raw() as other:
        client.send(raw)
        client.socket.shutdown(1)
        assert client.is_closed()
        assert kinds(other.query("select 1")) == "TDCZ"
