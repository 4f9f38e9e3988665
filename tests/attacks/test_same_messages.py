"""Is every message of a session the same with and without a person, but for the numbers that noise was added to?

One script of raw messages is sent to two datasets that differ in one person: extreme values, NULLs, rows outside the
declared domains, keys of their own, far more rows than the bounds. All that comes back is compared byte by byte:
kinds and order of messages, columns, types, formats, keys, numbers of rows, tags, notices, errors, positions, statuses.
Masked are cells of columns that a release fills, found by their place in RowDescription, and times of the clock; the
size of a masked cell in binary still counts. The one notice that counts noisy numbers is left out. Epsilon is 10 for
each statement: a key with 80 or more holders is missing with a probability below 1e-9, and a key of the one person is
shown with less than 1e-12 (at the 60 of the last script 1e-11).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from proxy.wire import messages
from proxy.wire.messages import Bind, ResultColumn
from tests.attacks.hostile import Attacked, is_comparable
from tests.wire.raw import RawClient, Reply, statement

DATASETS = ("twin_a", "twin_b")  # names of one length
NOISY = ("count", "sum", "avg", "stddev", "corr", "bool_or", "max", "percentile_cont", "noisy", "n", "low")
ENDS = ("_low", "_high")  # of a column that hush.intervals adds
CLOCKS = frozenset(("at", "loaded_at"))

GROUPS = "SELECT kind, count(*), sum(v), avg(num) FROM people GROUP BY kind ORDER BY kind"
NAMES = "SELECT name, count(*) AS noisy FROM people GROUP BY name ORDER BY name"

SIMPLE = (
    "SHOW hush.epsilon",
    GROUPS,
    NAMES,
    "SELECT what, ok, count(*), count(DISTINCT e.n) AS n FROM events e JOIN people USING (pid) GROUP BY 1, 2",
    "SELECT count(*), sum(v), max(v), bool_or(w > 1e300) FROM people WHERE name = 'alice'",
    "SELECT kind, percentile_cont(0.5) WITHIN GROUP (ORDER BY v), stddev(v), corr(v, num) FROM people GROUP BY kind",
    "SELECT n % 3 AS k, count(*) FROM (SELECT pid, count(*) AS n FROM events GROUP BY pid) t GROUP BY k ORDER BY k",
    "SELECT date_trunc('month', at) AS m, sum(x) FROM events GROUP BY m ORDER BY m",
    "SELECT label, count(*) FROM people JOIN labels USING (kind) GROUP BY label ORDER BY label",
    "SELECT kind, count(*) FROM people GROUP BY ROLLUP (kind) ORDER BY kind",
    "SELECT count(*) FILTER (WHERE 1 / (v - 5) > 0 OR i * i > 0 OR sqrt(w) > 1 OR born + 9999999 > born) FROM people",
    "SELECT sum(count(*)) OVER () AS noisy, kind FROM people GROUP BY kind ORDER BY kind LIMIT 2",
    "WITH a AS (SELECT kind, count(*) AS n FROM people GROUP BY kind) SELECT * FROM a WHERE kind <> 'b' ORDER BY 1",
    "SELECT count(*) FROM people; SELECT kind FROM labels ORDER BY 1; SELECT sum(x) FROM events",
    "SELECT count(*) FROM people; SELECT sum(w) FROM people; SELECT 1",
    f"EXPLAIN {GROUPS}",
    f"EXPLAIN (FORMAT JSON) {NAMES}",
    f"EXPLAIN ANALYZE {GROUPS}",
    "SELECT * FROM people",
    "SELECT pid, count(*) FROM people GROUP BY pid",
    "SELECT count(*) FROM people WHERE pid = 777",
    "SELECT max(name) FROM people",
    "SELECT count(*) FROM people WHERE name = 5",
    "SELECT no_such_column FROM people",
    "SELECT count(*) FROM people WHERE",
    "SELECT count(*) / 0 FROM people",
    "SELECT v FROM people LIMIT 0",
    "TABLE people",
    "COPY people TO STDOUT",
    "SELECT relname, reltuples, relpages FROM pg_class WHERE relname IN ('people', 'events') ORDER BY 1",
    "SELECT * FROM pg_stats WHERE tablename = 'people'",
    "BEGIN; DECLARE c SCROLL CURSOR FOR " + NAMES,
    "FETCH 2 FROM c",
    "FETCH BACKWARD 1 FROM c",
    "MOVE ALL FROM c",
    "FETCH c; CLOSE c",
    "SAVEPOINT s",
    "SELECT count(*) FROM people WHERE v > (SELECT v FROM people)",
    "ROLLBACK TO s",
    "SELECT count(*) FROM events WHERE what = 'mine'",
    "ROLLBACK",
    "PREPARE asked (text) AS SELECT count(*) FROM people WHERE name = $1",
    "EXECUTE asked ('alice')",
    "EXECUTE asked ('quo''te')",
    "SET hush.intervals = on",
    "SELECT kind, count(*), hush.low(count(*)) AS low, hush.sd(count(*)) FROM people GROUP BY kind ORDER BY kind",
    "SET hush.intervals = off",
    "SELECT rho, delta, reused, fits, half_width_95, refusal FROM hush.estimate('SELECT max(v) FROM people')",
    "SELECT * FROM hush.budget ORDER BY account",
    "SELECT * FROM hush.history ORDER BY at",
    "SELECT * FROM hush.last_query",
    "SELECT * FROM hush.policy ORDER BY 1, 2",
)  # fmt: skip

#: Of public rows that an outer join keeps, rows of units in an order, keys of one column, and stages.
COMPOSED = (
    "SELECT label, count(p.pid), sum(p.v), avg(p.num) FROM labels l LEFT JOIN people p ON p.kind = l.kind GROUP BY 1",
    "SELECT label, count(p.pid) FROM labels l LEFT JOIN people p ON p.kind = l.kind AND p.name = 'alice' GROUP BY 1",
    "SELECT label, count(p.pid) FROM people p FULL JOIN labels l ON p.kind = l.kind AND p.w > 1e300 GROUP BY 1",
    "SELECT label, count(*) FROM labels l LEFT JOIN people p ON p.kind = l.kind WHERE p.pid IS NULL GROUP BY 1",
    "SELECT pid IS NULL AS a, count(*), count(pid) AS n FROM people GROUP BY 1 ORDER BY 1",
    "SELECT e.pid IS NULL AS a, count(*) FROM people p LEFT JOIN events e ON e.pid = p.pid AND e.n < 0 GROUP BY 1",
    "SELECT e.pid IS NULL a, p.pid IS NULL b, count(*) FROM people p FULL JOIN events e USING (pid) GROUP BY 1, 2",
    "SELECT upper(label), label, p.ok, count(*) FROM people p JOIN labels USING (kind) GROUP BY 1, 2, 3",
    "SELECT t, count(*) FROM (SELECT pid, ntile(3) OVER (PARTITION BY pid ORDER BY x) AS t FROM events) z GROUP BY 1",
    ("SELECT sum(r + c) FROM (SELECT pid, percent_rank() OVER (PARTITION BY pid ORDER BY at DESC) AS r,"
     " cume_dist() OVER (PARTITION BY pid ORDER BY what, n) AS c FROM events) z"),
    ("SELECT t, count(*) FROM (SELECT pid, nth_value(n, 2) OVER (PARTITION BY pid ORDER BY x ROWS BETWEEN"
     " UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS t FROM events) z GROUP BY t ORDER BY t"),
    "SELECT date_trunc('month', at) AS m, extract(quarter FROM at) AS q, count(*) FROM events GROUP BY 1, 2 ORDER BY 1",
    "SELECT n % 2 AS a, n % 3 AS b, n > 4 AS c, count(*) FROM events GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    "SELECT n % 2 AS a, count(*) FROM events GROUP BY 1 ORDER BY 1",
    "SET hush.intervals = on",
    "SELECT kind, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) AS noisy, max(v) FROM people GROUP BY 1 ORDER BY 1",
    "RESET hush.intervals",
    "CREATE TEMP TABLE kept AS SELECT label, count(*) AS noisy FROM people JOIN labels USING (kind) GROUP BY 1",
    "SELECT label FROM kept ORDER BY 1",
    "SELECT kind, count(*) FROM people WHERE v > (SELECT avg(v) FROM people) GROUP BY 1 ORDER BY 1",
    "SELECT count(*) FROM people WHERE v > (SELECT max(w) FROM people)",
    "EXPLAIN SELECT label, count(p.pid) FROM labels l LEFT JOIN people p ON p.kind = l.kind GROUP BY 1",
    "BEGIN; DECLARE k CURSOR FOR SELECT label, count(p.pid) FROM people p RIGHT JOIN labels l USING (kind) GROUP BY 1",
    "FETCH 2 FROM k",
    "FETCH ALL FROM k; COMMIT",
    "SELECT account, rho_spent, delta FROM hush.budget ORDER BY account",
)  # fmt: skip

#: Settings, answers made of other answers, and what PostgreSQL itself would do with a table.
AROUND = (
    "",
    "SET TimeZone = 'Asia/Tokyo'",
    "SELECT count(*) FROM people WHERE tz > '2024-01-05 00:00'",
    "RESET TimeZone",
    "SET hush.target_error = 3",
    "SELECT kind, count(*) FROM people GROUP BY kind ORDER BY kind",
    "EXPLAIN SELECT sum(v) FROM people",
    "RESET hush.target_error; SET hush.weights = '2, 1'",
    "SELECT sum(v), count(*) FROM people",
    "SET hush.weights = '1e-9, 1'",
    "RESET hush.weights; SET hush.max_charge = 0.5",
    "SELECT count(*) FROM people WHERE v < 3",
    "RESET hush.max_charge; SET hush.max_groups = 1",
    "SELECT what, count(*) FROM events GROUP BY what ORDER BY what",
    "RESET hush.max_groups",
    "SELECT reused FROM hush.last_query",
    "SELECT name, kind, count(*) AS noisy FROM people GROUP BY GROUPING SETS ((name), (kind), ()) ORDER BY 1, 2",
    "SELECT DISTINCT name FROM people ORDER BY 1",
    "SELECT name FROM people GROUP BY name HAVING count(*) > 20 ORDER BY name DESC LIMIT 4",
    "SELECT rank() OVER (ORDER BY name) AS r, name FROM people GROUP BY name ORDER BY 1",
    "SELECT min(at) AS noisy, max(at) AS n FROM events",
    "SELECT percentile_disc(array[0.1, 0.9]) WITHIN GROUP (ORDER BY x) AS noisy FROM events WHERE what <> 'mine'",
    "SELECT hush.low(max(v)) AS low, hush.high(max(v)) AS noisy FROM people",
    "SELECT avg(timestamp '2025-01-01' - at) AS noisy, sum(age(at)) AS n FROM events",
    "SELECT count(*) FROM people WHERE name ~ '('",
    "SELECT count(*) FROM people WHERE name ~ '^a' OR regexp_count(name, 'l') > 1 OR substring(name from 2) = 'lice'",
    "SELECT count(*) FROM people WHERE name::int > 0 OR name::date > born OR to_date(name, 'YYYY') > born",
    "SELECT count(DISTINCT name) AS noisy, count(DISTINCT w) AS n FROM people",
    "SELECT count(*) FROM people TABLESAMPLE BERNOULLI (50)",
    "SELECT count(*) FROM people FOR UPDATE",
    "SELECT count(*) FROM people WHERE ctid = '(0,1)'",
    "LOCK TABLE people IN ACCESS SHARE MODE",
    "ANALYZE people",
    "MERGE INTO people USING labels ON true WHEN MATCHED THEN DELETE",
    "CREATE STATISTICS st ON kind, ok FROM people",
    "SELECT * FROM hush.estimate('SELECT count(*) FROM people; SELECT max(v) FROM people WHERE name = ''alice''')",
    "SELECT * FROM people p, hush.estimate(p.name)",
    "SELECT hush.sd(v) FROM people",
    "SELECT row_to_json(people) FROM people",
    "SELECT string_agg(name, ',') FROM people",
    "SELECT mode() WITHIN GROUP (ORDER BY name) AS noisy FROM people",
    "SELECT query_to_xml('SELECT * FROM people', true, true, '')",
    "SELECT ts_stat('SELECT to_tsvector(name) FROM people')",
    "DO $$ BEGIN PERFORM count(*) FROM people; END $$",
    "CREATE TEMP VIEW w AS SELECT kind, count(*) AS noisy FROM people WHERE name = 'alice' GROUP BY kind",
    "SELECT kind FROM w WHERE noisy > -1e9 ORDER BY 1",
    "DECLARE h CURSOR WITH HOLD FOR SELECT name, count(*) AS noisy FROM people GROUP BY name ORDER BY name",
    "FETCH ALL FROM h",
    "CLOSE h",
    "SELECT sum(CASE WHEN count(*) > 1e9 THEN 1 END) OVER () AS r, kind FROM people GROUP BY kind ORDER BY kind",
    "SELECT count(*) FROM people WHERE pid IN (SELECT pid FROM events WHERE what = 'mine')",
    "SELECT kind, ok, count(*) FROM people GROUP BY CUBE (kind, ok) ORDER BY 1, 2",
    "SELECT outcome FROM hush.history ORDER BY at",
    "SELECT account, rho_spent, delta FROM hush.budget ORDER BY account",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Copied:
    """A COPY whose fields at these places are noisy; nothing in its answer names them."""

    sql: str
    noisy: frozenset[int]
    binary: bool = False


COPIES = (
    Copied(f"COPY ({GROUPS}) TO STDOUT", frozenset((1, 2, 3))),
    Copied(f"COPY ({NAMES}) TO STDOUT", frozenset((1,))),
    Copied("COPY (SELECT kind, count(*) FROM people GROUP BY kind ORDER BY 1) TO STDOUT (FORMAT binary)",
           frozenset((1,)), binary=True),
    Copied("COPY (SELECT count(*) FROM people WHERE name = 'alice') TO STDOUT", frozenset((0,))),
)  # fmt: skip


def bound(name: bytes, portal: bytes, formats: tuple[int, ...] = (), *values: bytes) -> bytes:
    return messages.bind(
        Bind(portal=portal, statement=name, formats=(), values=values, result_formats=formats)
    ) + messages.describe_portal(portal)


EXTENDED: tuple[tuple[bytes, ...], ...] = (
    (statement(GROUPS),),
    (statement("SELECT count(*), avg(v) FROM people WHERE name = $1", b"alice"),),
    (messages.parse(b"s", b"SELECT kind, count(*), sum(v) FROM people WHERE v < $1 GROUP BY kind ORDER BY kind"),
     messages.describe_statement(b"s"), bound(b"s", b"p", (0, 1, 1), b"7"), messages.execute(b"p", 2),
     messages.execute(b"p", 2), messages.execute(b"p"), messages.close_portal(b"p")),
    (bound(b"s", b"q", (1,), b"3"), messages.execute(b"q"), messages.close_statement(b"s")),
    (statement(NAMES), statement("SELECT 1 / 0"), statement(GROUPS)),
    (statement(NAMES, max_rows=3),),
    (statement("SELECT sum(w) FROM people"),),
    (statement("SELECT count(*) FROM people WHERE v > $1", b"no number"),),
    (statement("SELECT what, n, x FROM events"),),
    (bound(b"never made", b""),),
    (statement(f"EXPLAIN {NAMES}"),),
    (statement("SELECT * FROM hush.last_query"),),
    (statement(""), statement("SET hush.fresh = on"), statement(NAMES)),
)  # fmt: skip


# --- what of a message must be the same -----------------------------------------------------------------


@dataclass(slots=True)
class Reader:
    """Reads a session's messages in order and takes out what noise or the clock decided."""

    dataset: str
    columns: tuple[ResultColumn, ...] = ()
    shown: list[tuple[str, object]] = field(default_factory=list)

    def read(self, replies: Sequence[Reply]) -> None:
        for reply in filter(is_comparable, replies):
            body = reply.body.replace(self.dataset.encode(), b"dataset")
            if reply.kind == "T":
                self.columns = messages.parse_row_description(reply.body)
            self.shown.append((reply.kind, self._row(reply) if reply.kind == "D" else body))

    def read_copy(self, replies: Sequence[Reply], copied: Copied) -> None:
        take = _binary if copied.binary else _text
        for reply in filter(is_comparable, replies):
            self.shown.append((reply.kind, take(reply.body, copied.noisy) if reply.kind == "d" else reply.body))

    def _row(self, reply: Reply) -> list[object]:
        return [self._cell(c, v) for c, v in zip(self.columns, reply.row, strict=True)]

    def _cell(self, column: ResultColumn, value: bytes | None) -> object:
        name = column.name.decode()
        if name in CLOCKS:
            return value is None
        if name in NOISY or name.endswith(ENDS):
            return len(value) if value is not None and column.format == 1 and column.size > 0 else "noisy"
        return None if value is None else value.replace(self.dataset.encode(), b"dataset")


def _text(body: bytes, noisy: frozenset[int]) -> list[object]:
    return ["noisy" if i in noisy else f for i, f in enumerate(body.rstrip(b"\n").split(b"\t"))]


def _binary(body: bytes, noisy: frozenset[int]) -> list[object]:
    """A row with its fields; the header and the trailer as they are."""
    start = 19 if body.startswith(b"PGCOPY\n") else 0
    found: list[object] = [body[:start]]
    fields = struct.unpack_from("!h", body, start)[0] if len(body) >= start + 2 else -1
    place = start + 2
    for number in range(max(fields, 0)):
        size = struct.unpack_from("!i", body, place)[0]
        found += [size, "noisy" if number in noisy else body[place + 4 : place + 4 + size]]
        place += 4 + max(size, 0)
    return [*found, fields, body[place:]]


def said(dataset: str, script: Callable[[RawClient, Reader], None], attacked: Attacked) -> list[tuple[str, object]]:
    reader = Reader(dataset)
    with attacked.raw(dataset) as client:
        script(client, reader)
    return reader.shown


def simple(client: RawClient, reader: Reader) -> None:
    for sql in SIMPLE:
        reader.read(client.query(sql))


def composed(client: RawClient, reader: Reader) -> None:
    for sql in COMPOSED:
        reader.read(client.query(sql))


def around(client: RawClient, reader: Reader) -> None:
    for sql in AROUND:
        reader.read(client.query(sql))


def copies(client: RawClient, reader: Reader) -> None:
    for copied in COPIES:
        reader.read_copy(client.query(copied.sql), copied)


def extended(client: RawClient, reader: Reader) -> None:
    for sent in EXTENDED:
        reader.read(client.sync(*sent))


def exhaustion(client: RawClient, reader: Reader) -> None:
    """Until the session's account is empty: after as many answers, and with the same words."""
    reader.read(client.query("SET hush.epsilon = 60; SET hush.fresh = on"))
    for sql in (GROUPS, NAMES, "SELECT count(*) FROM people WHERE name = 'alice'") * 3:
        reader.read(client.query(sql))


@pytest.mark.parametrize("script", [simple, composed, around, copies, extended, exhaustion])
def test_all_messages_are_the_same_with_and_without_a_person(
    script: Callable[[RawClient, Reader], None], attacked: Attacked
) -> None:
    ours, theirs = (said(dataset, script, attacked) for dataset in DATASETS)
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        assert one == other, (number, ours[max(0, number - 3) : number])
    assert len(ours) == len(theirs)


def test_keys_of_many_people_are_compared_and_those_of_one_person_are_not_there(attacked: Attacked) -> None:
    """What is masked are numbers alone."""
    reader = Reader(DATASETS[0])
    with attacked.raw(DATASETS[0]) as client:
        reader.read(client.query(NAMES))
    keys = [row for kind, row in reader.shown if kind == "D"]
    assert [b"quo'te", "noisy"] in keys
    assert [None, "noisy"] in keys
    assert [b"alice", "noisy"] not in keys
