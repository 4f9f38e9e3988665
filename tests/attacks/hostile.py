"""A proxy over data that its people chose to do harm: extremes, twins, hostile texts, one owner of everything.

Dataset `hostile` holds the person whom an attacker is after, `without` is the same data without that person. `tiny` is
`hostile` with little budget, `race` with what a few statements cost. `twin_a` and `twin_b` are the first two once more,
with a person who has odd rows besides and with as much charged as their own tests charge. `edge_a` and `edge_b` have
what one statement costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg

from tests import places
from tests.attacks.elsewhere import moved
from tests.e2e import served
from tests.e2e.served import PASSWORD
from tests.wire.raw import RawClient, Reply

Client = psycopg.Connection[tuple[object, ...]]

TARGET = 777  # the person who is missing from `without`
PEOPLE = 300
HOLDERS = 80  # people who share each hostile name
HOSTILE_NAMES = (
    "quo'te", 'dou"ble', "back\\slash", "{a,b}", '{"', "$1 $2", "'); drop table people; --", "NULL", "", " ", "é",
    "e\u0301", "a", "A", "a ", "%s %(a)s {0}", "line\nbreak", "/* x */", "hush_r", "\U0001f600", "y" * 200_000,
)  # fmt: skip
NUL_NAME = "before\0after"  # in DuckDB only
DUCKDB, POSTGRES = ENGINES = "duckdb", "postgres"

_CREATE = """
create table people (pid integer, name varchar, kind varchar, v double, w double, i bigint, born date, seen timestamp,
  tz timestamptz, num decimal(12,2), ok boolean);
create table events (pid integer, what varchar, x double, n integer, "at" timestamp);
create table labels (kind varchar, label varchar);
insert into labels values ('a', 'first'), ('b', 'second'), ('c', 'third');
"""
_UNIQUE = "create unique index on people (pid); create unique index on labels (kind);"  # what DuckDB looks up
_ORDINARY = f"""
insert into people select r, ['north', 'south', 'east'][1 + r % 3], ['a', 'b', 'c'][1 + r % 3], r % 11, r * 1.5, r,
  date '1990-01-01' + (r::integer), timestamp '2024-01-01' + to_hours(r::integer),
  timestamptz '2024-01-01 00:00:00+00' + to_hours(r::integer), r % 50, r % 2 = 0
  from range(1, {PEOPLE + 1}) t(r);
insert into events select r % {PEOPLE} + 1, ['x', 'y', 'z'][1 + r % 3], r % 10, r % 7,
  timestamp '2024-01-01' + to_hours(r::integer) from range(0, {5 * PEOPLE}) t(r);
insert into people (pid, v, w, i, num) values (100001, 'nan', 'nan', null, null), (100002, '-inf', '-inf', null, null),
  (100003, -0.0, -0.0, 0, 0), (100004, 5e-324, 5e-324, 0, 0), (null, 5, 5, 5, 5), (null, 5, 5, 5, 5);
"""
_TARGETED = f"""
insert into people values ({TARGET}, 'alice', 'a', 1e308, 'inf', -9223372036854775808, '5000000-01-01', 'infinity',
  '294247-01-10 04:00:54+00', 9999999999.99, null);
insert into events select {TARGET}, 'mine', case when r % 2 = 0 then 1e308 else -1e308 end, 2147483647,
  case when r % 2 = 0 then '-infinity' else timestamp '2024-01-01' + to_minutes(r::integer) end
  from range(0, 1000) t(r);
"""
_ODD = f"""
update people set kind = 'no such kind' where pid = {TARGET};
insert into events values ({TARGET}, null, null, -2147483648, 'infinity'), ({TARGET}, '', 'nan', 0, null);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """A running proxy. log: what it wrote so far. engine: where its private rows are."""

    port: int
    log: Path
    folder: Path
    engine: str

    @property
    def names(self) -> tuple[str, ...]:
        """Of many people each; as a client is shown them."""
        return (*HOSTILE_NAMES, NUL_NAME.replace("\0", "?")) if self.engine == DUCKDB else HOSTILE_NAMES

    def connect(self, dataset: str = "hostile", login: str = "eve", *, epsilon: float = 0, options: str = "") -> Client:
        """epsilon: of each statement from now on; 0 leaves the policy's."""
        client = psycopg.connect(
            f"host=127.0.0.1 port={self.port} dbname={dataset} user={login} password='{PASSWORD}'",
            autocommit=True,
            options=options,
        )
        if epsilon:
            client.execute(f"SET hush.epsilon = {epsilon}".encode())
        return client

    def raw(self, dataset: str = "hostile", login: str = "eve", **parameters: str) -> RawClient:
        client = RawClient(self.port)
        client.log_in(login, PASSWORD, dataset, **parameters)
        return client


def rows(client: Client, sql: str) -> list[tuple[object, ...]]:
    return client.execute(sql.encode()).fetchall()


def value(client: Client, sql: str) -> float:
    """The one number that a statement gives."""
    ((found,),) = rows(client, sql)
    return float(str(found))


def refusal(client: Client, sql: str) -> tuple[str, str]:
    """(SQLSTATE, everything that is said) of a statement that must fail."""
    try:
        client.execute(sql.encode())
    except psycopg.Error as error:
        said = (error.diag.message_primary, error.diag.message_detail, error.diag.message_hint, error.diag.context)
        return error.sqlstate or "", "\n".join(s for s in said if s)
    raise AssertionError(f"not refused: {sql}")


def outcome(client: Client, sql: str) -> float | str:
    """The one number that a statement gives, or the SQLSTATE of its refusal."""
    try:
        return value(client, sql)
    except psycopg.Error as error:
        return error.sqlstate or ""


def is_comparable(reply: Reply) -> bool:
    """Not whether noisy numbers are small, nor how many units are cut: that differs from one answer to the next."""
    words = reply.fields["M"] if reply.kind == "N" else ""
    of_noise = ("averages are NULL", "have rows left out")
    return not words.startswith("the noise is larger than ") and not any(part in words for part in of_noise)


def spent(client: Client, kind: str = "user") -> float:
    """Rho spent by an account of the caller."""
    return value(client, f"SELECT rho_spent FROM hush.budget WHERE kind = '{kind}'")


# --- data and policies ----------------------------------------------------------------------------------


def write_data(path: Path, target: str) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(_CREATE + _ORDINARY + target)
        for number, name in enumerate((*HOSTILE_NAMES, NUL_NAME, None)):
            connection.execute(
                "insert into people (pid, name, kind, v) select ? + r, ?, 'c', 5 from range(0, ?) t(r)",
                [200_000 + 1000 * number, name, HOLDERS],
            )


_TABLES = """tables:
  people:
    unit: pid
    unit_unique: true
    joins: {kind: labels.kind}
    columns:
      pid: {type: integer, key: true}
      name: {type: text}
      kind: {type: text, values: [a, b, c]}
      v: {type: double precision, bounds: [0, 10]}
      w: {type: double precision}
      i: {type: bigint}
      born: {type: date}
      seen: {type: timestamp}
      tz: {type: timestamptz}
      num: {type: numeric, bounds: [0, 100]}
      ok: {type: boolean}
  events:
    unit: pid
    joins: {pid: people.pid}
    max_rows_per_unit: 20
    max_rows_per_group: 5
    max_groups_per_unit: 4
    columns:
      pid: {type: integer, key: true}
      what: {type: text}
      x: {type: double precision, bounds: [0, 10]}
      n: {type: integer, bounds: [0, 10], nullable: false}
      at: {type: timestamp, bounds: [2024-01-01, 2025-01-01]}
  labels:
    public: true
    columns:
      kind: {type: text}
      label: {type: text}
"""


def policy(dataset: str, source: str, budgets: str, epsilon: float = 1) -> str:
    return f"""version: 1
dataset: {dataset}
source: {{{source}, data_version: "1"}}
privacy: {{unit: person, delta: 1e-6, query_epsilon: {epsilon}, max_query_epsilon: 100, time_grid: 0ms}}
budgets: {budgets}
limits: {{engine_memory: 500MB, engine_threads: 1}}
{_TABLES}access: {{users_file: {"more" if dataset == "hostile" else "users"}.yaml}}
"""


PLENTY = "{dataset: {epsilon: 1000000}}"
LITTLE = "{dataset: {epsilon: 4}, user: {epsilon: 2}}"
SESSIONS = "{dataset: {epsilon: 1000000}, user: {epsilon: 1000}, session: {epsilon: 200}}"
POLICIES = {
    "hostile": ("with", PLENTY, 1.0),
    "without": ("without", PLENTY, 1.0),
    "tiny": ("with", LITTLE, 0.5),
    "bits": ("with", "{dataset: {epsilon: 1}}", 0.1),
    "race": ("with", "{dataset: {epsilon: 1}, user: {epsilon: 50}}", 0.25),
    "edge_a": ("with", "{dataset: {epsilon: 1}}", 0.98),
    "edge_b": ("with", "{dataset: {epsilon: 1}}", 0.98),
    "twin_a": ("odd", SESSIONS, 10.0),
    "twin_b": ("without", SESSIONS, 10.0),
}
_PEOPLE = {"with": _TARGETED, "odd": _TARGETED + _ODD, "without": ""}


def sources(folder: Path, engine: str) -> dict[str, str]:
    """What a policy says of where each version of the rows is."""
    files = {name: folder / f"{name}.duckdb" for name in _PEOPLE}
    for name, target in _PEOPLE.items():
        write_data(files[name], target)
    if engine == DUCKDB:
        return {name: f"engine: duckdb, path: {path.name}" for name, path in files.items()}
    script = f"{_CREATE.replace(' double', ' double precision')}{_UNIQUE}"
    dsns = {name: moved(path, f"hostile {name}", script) for name, path in files.items()}
    return {name: f'engine: postgres, dsn: "{dsn}"' for name, dsn in dsns.items()}


def write_world(folder: Path, engine: str) -> list[Path]:
    where = sources(folder, engine)
    logins = {"eve": "analyst", "bob": "analyst", "ida": "analyst", "boss": "boss"}
    served.write_users(folder / "users.yaml", logins, "tables: [events]")
    served.write_users(folder / "more.yaml", {**logins, "clerk": "clerk"}, "tables: [events]")
    paths = []
    for dataset, (data, budgets, epsilon) in POLICIES.items():
        path = folder / f"{dataset}.yaml"
        path.write_text(policy(dataset, where[data], budgets, epsilon))
        paths.append(path)
    return paths


@contextmanager
def serving(folder: Path, engine: str) -> Iterator[Attacked]:
    """A proxy that listens; ended at the end."""
    with served.serving(folder, write_world(folder, engine), places.UNCOUNTED) as running:
        yield Attacked(port=running.port, log=running.log, folder=folder, engine=engine)
