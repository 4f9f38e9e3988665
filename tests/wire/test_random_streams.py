"""Claim: any stream of messages, however cut and timed, is answered as PostgreSQL would over the released rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.wire import messages
from proxy.wire.messages import SYNC, Bind
from tests.wire.front import NATIVE, TestFront
from tests.wire.raw import RawClient, Reply, shown, startup_packet
from tests.wire.serving import Serving

NAMES = (b"", b"s1")
PORTALS = (b"", b"p1")
TEXTS = (
    b"select height from places order by height limit 3",
    b"select age from users order by age",
    b"select city, count(*) from users group by city order by city",
    b"select age from users where age > $1::int4 order by age",
    b"select nope from users",
    b"select 1/(age-30) from users",
    b"selec users",
    b"begin",
    b"commit",
    b"rollback",
    b"savepoint a",
    b"rollback to a",
    b"create temp table if not exists t as select age from users",
    b"declare c cursor with hold for select age from users",
    b"declare c cursor for select age from users",
    b"copy (select age from users) to stdout",
    b"deallocate all",
    b"",
)
STRINGS = (
    *TEXTS,
    b"select 1; select count(*) from users; select 2",
    b"begin; select count(*) from users",
    b"rollback; select count(*) from users; begin",
    b"select count(*) from users; select nope",
    b"select count(*) from users; selec 1",
    b"fetch 2 from c",
    b"close c",
    b"select count(*) from t",
)


def bind(portal: bytes, name: bytes, values: tuple[bytes, ...], formats: tuple[int, ...]) -> bytes:
    return messages.bind(Bind(portal=portal, statement=name, formats=(), values=values, result_formats=formats))


ATOMS = st.one_of(
    # PostgreSQL may crash over the portal that a failed Query leaves, so it is closed; through the relay it need not be
    st.builds(lambda text: SYNC + messages.query(text) + messages.close_portal(b""), st.sampled_from(STRINGS)),
    st.builds(messages.parse, st.sampled_from(NAMES), st.sampled_from(TEXTS)),
    st.builds(
        bind,
        st.sampled_from(PORTALS),
        st.sampled_from(NAMES),
        st.sampled_from([(), (b"40",), (b"x",)]),
        st.sampled_from([(), (0,), (1,), (0, 1)]),
    ),
    st.builds(messages.describe_statement, st.sampled_from(NAMES)),
    st.builds(messages.describe_portal, st.sampled_from(PORTALS)),
    st.builds(messages.execute, st.sampled_from(PORTALS), st.sampled_from([0, 1, 2])),
    st.builds(messages.close_statement, st.sampled_from(NAMES)),
    st.builds(messages.close_portal, st.sampled_from(PORTALS)),
    st.sampled_from([SYNC, messages.FLUSH]),
    st.builds(
        lambda text, values: messages.parse(b"", text) + bind(b"", b"", values, ()) + messages.execute(b"") + SYNC,
        st.sampled_from(TEXTS),
        st.sampled_from([(), (b"40",)]),
    ),
)
END = SYNC + messages.query(b"rollback") + messages.query(b"select 'the end'")


def converse(client: RawClient, stream: bytes, cuts: list[int], pause_s: float) -> list[tuple[str, object]]:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for start, end in pairwise(edges):
        client.send(stream[start:end])
        time.sleep(pause_s)
    client.send(END)
    replies: list[Reply] = []
    while not replies or not (replies[-1].kind == "D" and replies[-1].row == (b"the end",)):
        replies.append(client.read())
    client.read_until("Z")
    return [shown(r) for r in replies if r.kind not in "NSA" or is_warning(r)]


def is_warning(reply: Reply) -> bool:
    """Notices that are none are the relay's own, or say no more than what is noticed anyway."""
    return reply.kind == "N" and reply.fields["V"] == "WARNING"


Compare = Callable[[list[bytes], list[int], float], None]


@pytest.fixture
def compare(serving: Serving, front: TestFront) -> Compare:
    """Send a stream of messages both ways."""

    def check(atoms: list[bytes], cuts: list[int], pause_s: float) -> None:
        stream = b"".join(atoms)
        with RawClient(front.socket_path) as direct:
            direct.send(startup_packet({"user": "alice", "database": NATIVE}))
            direct.read_until("Z")
            expected = converse(direct, stream, [], 0)
        with serving.raw() as relayed:
            assert converse(relayed, stream, cuts, pause_s) == expected
        serving.diary.prepared.clear()
        serving.diary.released.clear()

    return check


PAUSES = st.sampled_from([0.0, 0.0, 0.002])


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(ATOMS, max_size=12), st.lists(st.integers(0, 800), max_size=3), PAUSES)
def test_random_streams(compare: Compare, atoms: list[bytes], cuts: list[int], pause_s: float) -> None:
    compare(atoms, cuts, pause_s)


@pytest.mark.long
@pytest.mark.timeout(0)
@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ATOMS, max_size=25), st.lists(st.integers(0, 1500), max_size=4), PAUSES)
def test_many_random_streams(compare: Compare, atoms: list[bytes], cuts: list[int], pause_s: float) -> None:
    compare(atoms, cuts, pause_s)


def test_a_skipped_message_gives_back_no_name_that_has_changed_hands(compare: Compare) -> None:
    """The Parse after the error is skipped. The unnamed statement it would have replaced is not there again later."""
    private, public = b"select 1/(age-30) from users", b"select height from places order by height limit 3"
    skipped = [messages.parse(b"", private), messages.describe_portal(b""), messages.parse(b"", public), SYNC]
    closed = messages.close_portal(b"")
    replaced = [messages.parse(b"", public), bind(b"", b"", (), ()), messages.execute(b""), SYNC]
    compare([*skipped, messages.query(public), closed, *replaced], [], 0.0)


def test_a_parse_that_failed_gives_back_no_name_that_was_taken_behind_it(compare: Compare) -> None:
    """The statement without a name is a public one by then, though the error that kept the private one comes later."""
    private, public = b"select count(*) from users", b"select height from places order by height limit 3"
    failed = [messages.parse(b"", private), SYNC, messages.parse(b"", b"select nope"), SYNC]
    compare([*failed, messages.parse(b"", public), bind(b"", b"", (), ()), messages.execute(b""), SYNC], [], 0.0)
