"""Claim: through the relay every sequence of messages is answered as PostgreSQL would over the released rows.

Each case is run twice: through the relay with a session whose releases are fixed rows, and directly against a
database that holds these rows. Types and order of the replies, rows, tags, error codes, texts and positions, and the
transaction status after every step must be the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from proxy.wire import messages
from proxy.wire.messages import SYNC, Bind
from tests.wire.front import NATIVE, TestFront
from tests.wire.raw import RawClient, Reply, shown, startup_packet, statement
from tests.wire.serving import Serving

#: A step is a Query (text) or any messages; its answer is read up to ReadyForQuery.
Step = str | bytes

GROUPS = "select city, count(*) from users group by city order by city"
AGES = "select age from users where age >= $1::int4 order by age"


def extended(sql: str, *values: bytes | None) -> bytes:
    return statement(sql, *values) + SYNC


def named(sql: str, name: bytes = b"s1") -> bytes:
    return messages.parse(name, sql.encode()) + messages.describe_statement(name) + SYNC


def bound(
    name: bytes,
    *values: bytes | None,
    portal: bytes = b"",
    formats: tuple[int, ...] = (),
    results: tuple[int, ...] = (),
) -> bytes:
    return messages.bind(Bind(portal=portal, statement=name, formats=formats, values=values, result_formats=results))


RUN = messages.describe_portal(b"") + messages.execute(b"") + SYNC

STATEMENTS = {
    "public": "select height from places order by height limit 2",
    "private": GROUPS,
    "public wrong": "select nope from places",
    "private wrong": "select city, nope from users",
    "private syntax": "select count(*) from users whre age > 3",
    "private run-time error": "select 1 / (age - 30) from users",
    "public run-time error": "select 1 / (height - 1) from places",
    "commit": "commit",
    "rollback": "rollback",
    "temp table": "create temp table kept as select city from users",
    "declare": "declare c cursor for select city from users",
    "declare with hold": "declare c cursor with hold for select city from users",
    "copy": "copy (select city, age from users) to stdout",
    "copy binary": "copy (select city, age from users) to stdout (format binary)",
    "copy csv": "copy (select city, age from users) to stdout with (format csv, header)",
    "copy wrong": "copy (select city, nope from users) to stdout",
    "empty": "",
    "comment": "/* users */",
    "set": "set application_name = 'x'",
    "insert": "insert into pg_temp.kept select city from users",
    "asks": "select city from users /* asks */ order by city",
    "asks, public": "select /* asks */ /* users */ 7",
    "asks, wrong": "select /* asks */ nope from users",
    "asks, declare": "declare c cursor for select city /* asks */ from users",
    "asks, copy": "copy (select /* asks */ city, age from users) to stdout",
}
STATES: dict[str, tuple[Step, ...]] = {
    "autocommit": (),
    "block": ("begin",),
    "failed block": ("begin", "select nope"),
    "after savepoint": ("begin", "savepoint a", "select nope", "rollback to a"),
}


def matrix() -> Iterator[tuple[str, tuple[Step, ...]]]:
    for state, before in STATES.items():
        for name, sql in STATEMENTS.items():
            yield f"simple {state}: {name}", (*before, sql, "select 1", "rollback", "select 2")
            yield f"extended {state}: {name}", (*before, extended(sql), "select 1", extended("rollback"), "select 2")


CASES: dict[str, tuple[Step, ...]] = {
    **dict(matrix()),
    "several statements": ("select 1; " + GROUPS + "; select 2",),
    "several that ask": (
        "select /* asks */ age from users; select /* asks */ 7; select /* asks */ city from users; select /* asks */ 8",
    ),
    "several that ask after failure": (
        "begin",
        "select nope",
        "rollback; select /* asks */ age from users",
        "select 1",
    ),
    "one that asks, run twice": (
        named("select age from users /* asks */ where age > $1"),
        bound(b"s1", b"40") + RUN,
        bound(b"s1", b"50") + RUN,
    ),
    "several private": (f"{GROUPS}; select count(*) from users",),
    "several, later fails": (f"create temp table a as select 1; {GROUPS}; select nope", "select * from a"),
    "several, syntax": (f"select 1; {GROUPS}; selec 2",),
    "several, syntax in a block": ("begin", f"select 1; {GROUPS}; selec 2", "select 1", "rollback"),
    "several, syntax after a savepoint": (
        "begin; savepoint a; create temp table kept (n int); declare c cursor for select 1",
        f"select 1; {GROUPS}; select 2",
        "fetch 1 from c",
        f"select 1; {GROUPS}; selec 2",
        "rollback to a",
        f"{GROUPS}; select 2",
        "commit",
    ),
    "several in a block": ("begin", f"select 1; {GROUPS}; select 2", "commit"),
    "several with block": (f"begin; {GROUPS}; commit", "select 1"),
    "several with open block": (f"begin; {GROUPS}", "rollback"),
    "several after failure": ("begin", "select nope", f"rollback; {GROUPS}"),
    "several still failed": ("begin", "select nope", f"select 1; {GROUPS}", "rollback"),
    "several, table made before": (
        "create temp table a as select 40 as least; select age from users, a where age > least",
    ),
    "several with error position": ("select 1; select city,\n nöpe from users",),
    "position after multi-byte": ("select 'äöü€', nope from users",),
    "position in copy": ("copy (select 'ä', nope from users) to stdout",),
    "position in declare": ("begin", "declare c cursor for select nope from users", "rollback"),
    "declare, fetch, move, close": (
        "begin",
        "declare c scroll cursor for select age from users",
        "fetch 2 from c",
        "move 1 from c",
        "fetch backward 1 from c",
        "close c",
        "commit",
    ),
    "declare in string": ("declare c cursor for select age from users; fetch 1 from c", "fetch 1 from c"),
    "declare with hold": ("declare c cursor with hold for select age from users", "fetch 3 from c", "close c"),
    "extended declare in block": (
        "begin",
        extended("declare c cursor for select age from users where age > $1", b"30"),
        "fetch all from c",
        "commit",
    ),
    "parameters": (extended(AGES, b"40"), extended(AGES, None), extended(AGES, b"forty"), "select 1"),
    "parameters inside and outside": (
        extended("select age + $2, $3::text from users where age > $1 order by 1", b"30", b"5", b"x"),
    ),
    "parameter of unknown type": (
        extended("select $1 from users", b"a"),
        extended("select count(*) from users where $1", b"t"),
    ),
    "parameter in a query": (
        "select age from users where age > $1",
        "select 1; select 'ä', $1::int4 from users",
        "begin",
        "declare c cursor for select $1 from users",
        "rollback",
    ),
    "too few parameters": (extended(AGES), "select 1"),
    "too many parameters": (extended(AGES, b"1", b"2"), "select 1"),
    "binary parameters and results": (
        messages.parse(b"", AGES.encode(), [23]) + bound(b"", struct.pack("!i", 40), formats=(1,), results=(1,)) + RUN,
        messages.parse(b"", AGES.encode()) + bound(b"", struct.pack("!i", 50), formats=(1,), results=(1,)) + RUN,
        messages.parse(b"", AGES.encode()) + bound(b"", b"\0\0", formats=(1,)) + RUN,
    ),
    "mixed result formats": (
        messages.parse(b"", GROUPS.encode()) + bound(b"", results=(0, 1)) + RUN,
        messages.parse(b"", GROUPS.encode()) + bound(b"", results=(0, 1, 0)) + RUN,
    ),
    "named statement, many times": (
        named(AGES),
        bound(b"s1", b"30") + RUN,
        bound(b"s1", b"50") + RUN,
        named(AGES),
        bound(b"s1", b"60") + RUN,
        messages.close_statement(b"s1") + SYNC,
        bound(b"s1", b"60") + RUN,
    ),
    "statement dropped by SQL": (
        named(AGES),
        "deallocate all",
        bound(b"s1", b"30") + RUN,
        named(AGES),
        bound(b"s1", b"50") + RUN,
    ),
    "statement discarded": (named(AGES), "discard all", bound(b"s1", b"30") + RUN),
    "name taken": (named("select 1"), named(AGES), bound(b"s1") + RUN, "select 1"),
    "name taken by private": (named(AGES), named("select 1"), bound(b"s1", b"50") + RUN),
    "describe both": (
        messages.parse(b"s1", AGES.encode())
        + messages.describe_statement(b"s1")
        + bound(b"s1", b"40", portal=b"p1", results=(1,))
        + messages.describe_portal(b"p1")
        + SYNC,
    ),
    "describe after run": (
        "begin",
        messages.parse(b"", AGES.encode())
        + bound(b"", b"40", portal=b"p1")
        + messages.execute(b"p1", 1)
        + messages.describe_portal(b"p1")
        + SYNC,
        "commit",
    ),
    "suspension": (
        "begin",
        messages.parse(b"", AGES.encode()) + bound(b"", b"0", portal=b"p1") + messages.execute(b"p1", 2) + SYNC,
        messages.execute(b"p1", 1) + SYNC,
        messages.execute(b"p1", 0) + SYNC,
        messages.execute(b"p1", 0) + SYNC,
        messages.close_portal(b"p1") + SYNC,
        messages.execute(b"p1", 0) + SYNC,
        "commit",
    ),
    "suspension in one go": (
        messages.parse(b"", AGES.encode())
        + bound(b"", b"0")
        + messages.execute(b"", 2)
        + messages.execute(b"", 1)
        + messages.execute(b"", 5)
        + SYNC,
    ),
    "portal after its transaction": (
        messages.parse(b"", AGES.encode()) + bound(b"", b"0", portal=b"p1") + SYNC,
        messages.execute(b"p1") + SYNC,
    ),
    "portal after its savepoint": (
        "begin",
        "savepoint a",
        messages.parse(b"", AGES.encode()) + bound(b"", b"0", portal=b"p1") + SYNC,
        "rollback to a",
        messages.execute(b"p1") + SYNC,
        "rollback",
    ),
    "two portals": (
        messages.parse(b"s1", AGES.encode())
        + bound(b"s1", b"0", portal=b"p1")
        + bound(b"s1", b"50", portal=b"p2")
        + messages.execute(b"p2")
        + messages.execute(b"p1")
        + SYNC,
    ),
    "portal name taken": (
        messages.parse(b"", AGES.encode()) + bound(b"", b"0", portal=b"p1") + bound(b"", b"0", portal=b"p1") + SYNC,
        "select 1",
    ),
    "unnamed portal replaced": (
        messages.parse(b"s1", AGES.encode())
        + bound(b"s1", b"0")
        + messages.parse(b"", b"select 7")
        + bound(b"")
        + messages.execute(b"")
        + SYNC,
    ),
    "pipeline": (statement("select 1") + statement(AGES, b"50") + statement("select 2") + SYNC, "select 3"),
    "pipeline, syncs": (extended("select 1") + extended(AGES, b"50") + extended("select 2"),),
    "pipeline fails before": (statement("select nope") + statement(AGES, b"50") + SYNC, "select 3"),
    "pipeline fails after": (
        statement(AGES, b"50") + statement("select nope") + statement(AGES, b"50") + SYNC,
        "select 3",
    ),
    "pipeline fails running": (
        statement("create temp table gone as select 1") + statement("select 1 / 0") + statement(AGES, b"50") + SYNC,
        "select * from gone",
    ),
    "query skipped in a failed pipeline": (
        statement("select nope") + messages.query(GROUPS.encode()) + SYNC,
        "select 3",
    ),
    "public query skipped": (statement("select nope") + messages.query(b"select 9") + SYNC, "select 3"),
    "queries without waiting": (messages.query(GROUPS.encode()) + messages.query(b"select 1") + SYNC,),
    "query after unsynced parse": (
        messages.parse(b"s1", AGES.encode()) + messages.FLUSH + messages.query(b"select 1"),
        "begin",
        "rollback",
    ),
    "query destroys unnamed": (
        messages.parse(b"", AGES.encode()) + SYNC,
        "select 1",
        bound(b"", b"1") + SYNC,
    ),
    "several in parse": (extended(f"select 1; {GROUPS}"), "select 1"),
    "malformed": (
        messages.build(b"P", b"no zero") + SYNC,
        messages.build(b"B", b"x\0") + SYNC,
        messages.build(b"D", b"Q\0") + SYNC,
        messages.build(b"E", b"") + SYNC,
        messages.build(b"C", b"Zx\0") + SYNC,
        messages.build(b"Q", b"select 1"),
        "select 1",
    ),
    "malformed bind of private": (
        messages.parse(b"s1", AGES.encode()) + SYNC,
        messages.build(b"B", b"\0s1\0\0\0\0\1\0\0\0\x09abc") + SYNC,
        messages.build(b"B", b"\0s1\0\0\0\0\1\xff\xff\xff\x00\0\0") + SYNC,
        bound(b"s1", b"1", formats=(0, 0)) + SYNC,
        "select 1",
    ),
    "copy in": (
        "create temp table t (a int)",
        messages.query(b"copy t from stdin") + messages.build(b"d", b"1\n2\n") + messages.build(b"c"),
        messages.query(b"copy t from stdin") + messages.build(b"d", b"x\n") + messages.build(b"c"),
        messages.query(b"copy t from stdin") + messages.build(b"f", b"no\0"),
        "select sum(a) from t",
        statement("copy t from stdin") + SYNC + messages.build(b"d", b"5\n") + messages.build(b"c") + SYNC,
        statement("copy t from stdin") + SYNC + messages.build(b"f", b"no\0") + SYNC,
        "select sum(a) from t",
    ),
    "copy in among private": (
        "create temp table t (a int)",
        messages.query(
            b"select 1; copy t from stdin; select sum(a) from t, (select count(*) from users) as u; select 2"
        )
        + messages.build(b"d", b"3\n4\n")
        + messages.build(b"c"),
        messages.query(b"copy t from stdin; select count(*) from users") + messages.build(b"f", b"no\0"),
        "select count(*) from t",
    ),
    "sql prepare of public": ("prepare p as select 1", "execute p", "deallocate p"),
    "flush": (
        messages.parse(b"", AGES.encode())
        + messages.FLUSH
        + bound(b"", b"50")
        + messages.FLUSH
        + messages.execute(b"")
        + messages.FLUSH
        + SYNC,
    ),
    "commit fails": (
        "create temp table d (a int unique deferrable initially deferred)",
        extended("insert into d values (1), (1)"),
        extended("insert into d select 1 from users"),
        "select 1",
    ),
    "set local in string": ("begin", f"set local timezone = 'UTC'; {GROUPS}", "commit"),
    "view of private": ("create temp view v as select 1 as x", "select x from v"),
    "temp table in pipeline": (
        statement("create temp table a as select count(*) from users") + statement("select * from a") + SYNC,
    ),
    "bind sent before the sync ahead of it is answered": (
        named(AGES),
        extended("select 1") + bound(b"s1", b"50"),
        messages.execute(b"") + SYNC,
        messages.query(b"select 1") + bound(b"s1", b"60", portal=b"p"),
        messages.execute(b"p") + SYNC,
        messages.execute(b"p") + SYNC,
    ),
    "rollback and more without waiting": (
        "begin",
        "select nope",
        extended("rollback") + extended(AGES, b"50"),
        "begin",
        "select nope",
        messages.query(b"rollback") + messages.query(GROUPS.encode()) + SYNC,
        "begin",
        "select nope",
        extended("rollback") + extended("begin") + messages.query(GROUPS.encode()) + SYNC,
        "rollback",
    ),
    "wrong after a failure without waiting": (
        "begin",
        messages.query(b"select nope") + extended("selec users") + extended(AGES, b"1") + extended("rollback"),
    ),
    "statement kept by an error before its replacement": (
        messages.parse(b"", AGES.encode()) + bound(b"", b"1", b"2") + extended("select 7") + bound(b"", b"50") + RUN,
        messages.parse(b"", AGES.encode()) + extended("select 7") + bound(b"") + RUN,
        named(AGES) + messages.close_statement(b"s1") + messages.parse(b"s1", b"select 7") + bound(b"s1") + RUN,
        messages.close_statement(b"s1") + bound(b"s1") + SYNC,
    ),
    "closing what is not there": (messages.close_statement(b"no") + messages.close_portal(b"no") + SYNC,),
    "portals replaced": (
        "begin",
        messages.parse(b"s1", AGES.encode()) + messages.parse(b"s2", b"select 7") + SYNC,
        bound(b"s1", b"50") + bound(b"s2") + RUN,
        bound(b"s2") + bound(b"s1", b"50") + RUN,
        bound(b"s1", b"50", portal=b"p") + messages.close_portal(b"p") + bound(b"s2", portal=b"p") + SYNC,
        messages.execute(b"p") + SYNC,
        "commit",
    ),
    "notices": ("do 'begin end'", "rollback"),
    "isolation in a string": (
        "begin; set transaction isolation level serializable; select count(*) from users; commit",
        "set transaction isolation level repeatable read; select count(*) from users",
        "begin",
        "set hush.epsilon = '1' /* users */",
        "set transaction isolation level serializable; show transaction_isolation; select count(*) from users",
        "commit",
    ),
    "isolation in a pipeline": (
        "begin",
        extended("set hush.epsilon = '1' /* users */"),
        extended("set transaction isolation level serializable"),
        extended(GROUPS) + extended("show transaction_isolation") + extended("commit"),
    ),
    "a block that ends in a string": (
        f"{GROUPS}; commit; discard all; {GROUPS}",
        f"{GROUPS}; rollback; lock table places; {GROUPS}",
        f"begin; {GROUPS}; savepoint a; select nope",
        f"rollback to a; {GROUPS}; commit and chain; {GROUPS}; rollback; savepoint b; {GROUPS}",
    ),
    "cursor in a string, no block": (
        "declare c cursor for select age from users; fetch all from c; move backward 2 from c; fetch 1 from c; close c",
        "declare c cursor for select age from users; commit; fetch all from c",
    ),
    "cursor in a pipeline": (
        statement("select 1") + statement("declare c cursor for select age from users") + SYNC,
        statement("commit") + statement("declare c cursor for select age from users") + SYNC,
        statement("begin") + statement("declare c cursor for select age from users") + extended("fetch all from c"),
        extended("commit"),
    ),
    "a failed block ends in a pipeline": (
        "begin",
        "select nope",
        statement("rollback") + statement(GROUPS) + SYNC,
        "begin",
        "savepoint a",
        "select nope",
        statement("rollback to a") + statement(GROUPS) + SYNC,
        "select nope",
        statement("commit") + statement(AGES, b"40") + SYNC,
        "begin",
        "select nope",
        statement("rollback") + messages.query(f"select 1; {GROUPS}".encode()),
    ),
    "a parse begins nothing": (
        messages.parse(b"s1", AGES.encode()) + statement("discard all") + SYNC,
        messages.parse(b"s1", AGES.encode()) + statement("set local timezone = 'UTC'") + SYNC,
        statement("discard all") + messages.parse(b"s2", AGES.encode()) + statement("discard all") + SYNC,
        bound(b"s1", b"40") + messages.parse(b"", GROUPS.encode()) + messages.execute(b"") + SYNC,
    ),
}


def run(client: RawClient, steps: tuple[Step, ...]) -> list[list[tuple[str, object]]]:
    """What the client sees after each step."""
    seen = []
    for step in steps:
        raw = messages.query(step.encode()) if isinstance(step, str) else step
        ready = max(1, raw.count(SYNC) + raw.count(b"Q\0\0\0") - ignored_syncs(raw))
        client.send(raw)
        replies: list[Reply] = []
        for _ in range(ready):
            replies += client.read_until("Z")
        seen.append([shown(r) for r in replies if r.kind not in "NSA"])
    return seen


def ignored_syncs(raw: bytes) -> int:
    """A Sync before the data of a COPY ends is not answered, and neither is a Query that is skipped."""
    if b"select nope\0" in raw and b"Q\0\0\0" in raw:
        return 1
    return 1 if b"copy t from stdin\0" in raw and raw[:1] == b"P" else 0


@pytest.mark.parametrize("name", CASES)
def test_answers_are_those_of_postgres(name: str, serving: Serving, front: TestFront) -> None:
    with RawClient(front.socket_path) as direct:
        direct.send(startup_packet({"user": "alice", "database": NATIVE}))
        direct.read_until("Z")
        expected = run(direct, CASES[name])
    with serving.raw() as relayed:
        assert run(relayed, CASES[name]) == expected
