"""Claim: a string of statements, or a pipeline of them, means to a transaction what it means to PostgreSQL.

Statements that control transactions, choose their isolation, set settings for them, make cursors and read them are
mixed with private ones. Also with another PostgreSQL that is installed: before version 17 a pipeline begins no implicit
block.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.front.binaries import path_directory, wheel_directory
from proxy.wire import messages
from proxy.wire.messages import SYNC
from tests import places
from tests.wire.front import TestFront, remove, start_front
from tests.wire.serving import Serving, start_serving
from tests.wire.test_random_streams import Compare, bind, compare

__all__ = ["compare"]  # a fixture

PRIVATE = (
    "select count(*) from users",
    "select city, count(*) from users group by city order by city",
    "select 1/(age-30) from users",
    "select nope from users",
    "with a as (select count(*) as c from users) select c + 1 from a",
    "create temp table kept as select age from users",
    "create temp table if not exists kept as select age from users",
    "declare c cursor for select age from users order by age",
    "declare c scroll cursor with hold for select age from users order by age",
)
#: Not prepared alone: what is asked has its own transaction, so that the next statement may choose its isolation.
RUN_AT_ONCE = (
    "select age from users /* asks */ order by age",
    "declare c cursor for select age /* asks */ from users",
    "copy (select city, age from users order by age) to stdout",
    "copy (select height from places order by height limit 2) to stdout",
)
PUBLIC = (
    "select 1",
    "select nope",
    "select 1/0",
    "begin",
    "begin isolation level serializable",
    "start transaction read only",
    "begin work isolation level repeatable read, read only, deferrable",
    "commit",
    "end",
    "rollback",
    "abort work",
    "commit and chain",
    "commit and no chain",
    "rollback and chain",
    "savepoint a",
    "rollback to a",
    "rollback to savepoint b",
    "release a",
    "savepoint b",
    "set transaction isolation level serializable",
    "set transaction isolation level repeatable read",
    "set transaction read only",
    "set session characteristics as transaction isolation level read committed",
    "show transaction_isolation",
    "show transaction_read_only",
    "set local datestyle = 'German'",
    "set datestyle = 'SQL'",
    "show datestyle",
    "set local hush.epsilon = '0.5'",
    "set hush.epsilon = '0.7' /* users */",
    "reset hush.epsilon",
    "show hush.epsilon",
    "fetch 2 from c",
    "fetch all from c",
    "move 1 from c",
    "fetch backward 1 from c",
    "fetch 0 from c",
    "close c",
    "close all",
    "prepare p as select count(*) from places",
    "prepare p as select 1 /* users */",
    "execute p",
    "deallocate p",
    "deallocate all",
    "select count(*) from kept",
    "drop table kept",
    "create temp table made (a int)",
    "insert into made values (2)",
    "select count(*) from made",
    "set constraints all immediate",
    "set constraints all deferred",
    "discard all",
    "discard temp",
    "lock table kept",
    "drop database nowhere",
    "commit prepared 'x'",
    "explain (costs off) select 1",
    "",
)
STATEMENTS = st.one_of(st.sampled_from(PRIVATE), st.sampled_from(PUBLIC), st.sampled_from(PUBLIC))
IN_STRINGS = st.one_of(STATEMENTS, STATEMENTS, st.sampled_from(RUN_AT_ONCE))
STRINGS = st.lists(IN_STRINGS, min_size=1, max_size=6).map("; ".join)


def said(text: str) -> bytes:
    """A Query. What it may leave behind crashes PostgreSQL if it is run, so it is closed."""
    return messages.query(text.encode()) + messages.close_portal(b"")


def run(text: str, portal: bytes, most_rows: list[int], *, is_described: bool) -> bytes:
    """Parse, Bind and Execute, read in portions."""
    described = messages.describe_portal(portal) if is_described else b""
    executed = b"".join(messages.execute(portal, most) for most in most_rows)
    return messages.parse(b"", text.encode()) + bind(portal, b"", (), ()) + described + executed


PORTIONS = st.sampled_from([[0], [0], [1, 0], [2, 1, 0], [1]])
STEPS = st.one_of(
    st.builds(lambda text: SYNC + said(text), STRINGS),
    st.builds(lambda text: messages.parse(b"", text.encode()), STATEMENTS),
    *(st.builds(run, STATEMENTS, st.sampled_from([b"", b"", b"p1"]), PORTIONS, is_described=st.booleans()),) * 3,
    st.just(SYNC),
)
BINARIES = dict.fromkeys(str(found.resolve()) for found in (*wheel_directory(), *path_directory()))


@pytest.fixture(scope="module", params=BINARIES)
def front(request: pytest.FixtureRequest) -> Iterator[TestFront]:
    directory = Path(tempfile.mkdtemp(prefix="hush-wire-", dir=places.fast()))
    directory.chmod(0o755)
    started = start_front(directory, Path(request.param))
    yield started
    started.stop()
    remove(directory)


@pytest.fixture(scope="module")
def shared(front: TestFront) -> Iterator[Serving]:
    serving = start_serving(front, new_loop=uvloop.new_event_loop)
    yield serving
    serving.stop()


QUICK = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
LONG = settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
CONVERSATIONS = st.lists(STRINGS, min_size=1, max_size=3)
PIPELINES = st.lists(STEPS, min_size=1, max_size=8)


@QUICK
@given(CONVERSATIONS)
def test_strings_of_statements(compare: Compare, texts: list[str]) -> None:
    compare([SYNC + said(text) for text in texts], [], 0.0)


@QUICK
@given(PIPELINES)
def test_pipelines(compare: Compare, steps: list[bytes]) -> None:
    compare(steps, [], 0.0)


@pytest.mark.long
@pytest.mark.timeout(0)
@LONG
@given(CONVERSATIONS)
def test_many_strings_of_statements(compare: Compare, texts: list[str]) -> None:
    compare([SYNC + said(text) for text in texts], [], 0.0)


@pytest.mark.long
@pytest.mark.timeout(0)
@LONG
@given(PIPELINES)
def test_many_pipelines(compare: Compare, steps: list[bytes]) -> None:
    compare(steps, [], 0.0)
