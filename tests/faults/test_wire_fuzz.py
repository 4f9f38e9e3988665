"""Made-up messages to a whole proxy with its PostgreSQL: right ones, spoiled ones, and bytes that are none.

The relay alone gets millions of them (`tests/unit/wire/fuzz`). Here they meet sockets, the front and the engine.
"""

from __future__ import annotations

from random import Random

import pytest

from proxy.wire import messages
from proxy.wire.messages import build
from tests.faults.proxied import (
    COUNT,
    DATASET,
    LOGINS,
    PASSWORD,
    PATIENCE_S,
    Proxied,
    children_of,
    descriptors_of,
    resident_kib,
    threads_of,
    wait_until,
)
from tests.faults.test_clients import someone_else, throw
from tests.unit.wire.fuzz.speech import Speaker, broken, spoiled
from tests.wire.raw import RawClient, Reply, startup_packet

TEXTS = (
    "select 1", "select generate_series(1, 50)", "select $1::int4", "begin", "commit", "rollback", "selec", "", ";",
    "select 1/0", "savepoint a", "rollback to a", "select 1; select 2", "prepare p as select 1", "deallocate all",
    "set client_encoding to latin1", "set client_encoding to utf8", "set client_encoding to euc_jp", "discard all",
    "create temp table if not exists t (x text)", "copy t from stdin", "copy t to stdout", "insert into t values ('a')",
    COUNT, f"{COUNT} where age < 30", f"{COUNT} where age < $1", "select age from people", "select nope from people",
    f"copy ({COUNT}) to stdout", f"declare c cursor for {COUNT}", f"select 1; {COUNT}; select 2", f"begin; {COUNT}",
    f"{COUNT} where score < ({COUNT})", f"explain {COUNT}", "notify x", "set work_mem = 1", "execute p",
)  # fmt: skip
#: PostgreSQL ends a session that says anything but data in a COPY, so who only says what is right begins none.
WITHOUT_COPY = tuple(text for text in TEXTS if text != "copy t from stdin")
FEW, EACH_OF_FEW = 8, 100
MANY, EACH_OF_MANY = 600, 600
GROWTH_KIB = 30_000


def talk(proxied: Proxied, seed: int, length: int) -> int:
    """One session; how many messages were said. Raises AssertionError if it does not go on as it must."""
    made = Random(seed)
    wrong, none = made.choice(((0, 0), (20, 0), (150, 0), (20, 20)))
    speaker = Speaker(made, TEXTS if wrong else WITHOUT_COPY)
    said = 0
    with RawClient(proxied.port, timeout_s=PATIENCE_S) as client:
        begun = client.log_in(LOGINS[seed % 4], PASSWORD, DATASET)[-1]
        assert begun.kind == "Z", (seed, begun, proxied.said()[-1000:])
        try:
            while said < length:
                for raw in speaker.say():
                    client.send(as_said(made, raw, wrong, none))
                    said += 1
                for reply in client.read_waiting():  # so that neither side waits for the other
                    check(reply)
            if not none:
                end_well(client)
        except OSError as error:
            is_due = (wrong or none) and not isinstance(error, TimeoutError)
            assert is_due, "a session that only said what is right was ended, or has no answer"
    return said


def as_said(made: Random, raw: bytes, wrong: int, none: int) -> bytes:
    if made.randrange(1000) < wrong:
        return spoiled(made, raw)
    return broken(made, raw) if made.randrange(1000) < none else raw


def end_well(client: RawClient) -> None:
    """Whatever was said, the next statement is answered, unless the session has ended with a word."""
    client.send(build(b"f", b"\0"), messages.SYNC, messages.query(b"rollback"))
    client.send(messages.query(b"select 'the end'"))
    while True:
        reply = client.read()
        check(reply)
        if reply.kind == "D" and b"the end" in reply.body:
            assert client.read_until("Z")[-1].body == b"I"
            return


def check(reply: Reply) -> None:
    """An error is a documented one: never one of our own mistakes, nor with anything of the relay's in it."""
    if reply.kind == "E":
        assert reply.sqlstate != "XX000", reply.fields
        assert "only_aggregates" not in reply.fields["M"]
        assert "_hush" not in reply.fields["M"]


def strangers(proxied: Proxied, seed: int) -> None:
    """Start-up packets that are wrong, each on a connection of its own."""
    made = Random(seed)
    good = startup_packet({"user": LOGINS[0], "database": DATASET})
    throw(proxied, broken(made, good))
    throw(proxied, good[:4] + spoiled(made, b"?" + good)[5:])


def held(proxied: Proxied) -> tuple[int, int, int]:
    """Descriptors, threads, and processes of the public PostgreSQL."""
    (front,) = proxied.fronts()
    return descriptors_of(proxied.pid), threads_of(proxied.pid), len(children_of(front))


def test_made_up_sessions_hurt_nobody_else(shared: Proxied) -> None:
    with someone_else(shared):
        for seed in range(FEW):
            talk(shared, seed, EACH_OF_FEW)
            strangers(shared, seed)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_hundreds_of_thousands_of_made_up_messages_leave_nothing_behind(shared: Proxied) -> None:
    """Descriptors, threads, backends and memory afterwards are those of a proxy that has seen a tenth of them."""
    said = sum(talk(shared, seed, EACH_OF_MANY) for seed in range(1_000_000, 1_000_000 + MANY // 10))
    before, memory = held(shared), resident_kib(shared.pid)
    with someone_else(shared):
        for seed in range(2_000_000, 2_000_000 + MANY):
            said += talk(shared, seed, EACH_OF_MANY)
            strangers(shared, seed)
    print(f"{said} messages, {memory} KiB before, {resident_kib(shared.pid)} KiB after")
    assert said > 200_000
    wait_until(lambda: all(now <= then + 5 for now, then in zip(held(shared), before, strict=True)))
    assert resident_kib(shared.pid) - memory < GROWTH_KIB
