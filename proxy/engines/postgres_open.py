"""How is a session with the private PostgreSQL opened, and what should its login not be able to do?

A session reads only, names nothing that is not in `pg_catalog` or written with its schema, and understands dates and
times as the policy does. What libpq or the server say about a failure is dropped: it may repeat a password or a row.
"""

from __future__ import annotations

import psycopg
from psycopg import pq
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import NumericBinaryLoader

from proxy.errors import ConfigError
from proxy.policy.model import Policy, PostgresSource
from proxy.sql.render.dialect import text_literal

EngineConnection = psycopg.Connection[tuple[object, ...]]

OLDEST = 15
_ENCODING = "UTF8"
# a server that is gone without a word is noticed within a minute
_DEFAULTS = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}  # fmt: skip
_SETTINGS = {
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "repeatable read",
    "search_path": "pg_catalog",
    "client_encoding": _ENCODING,
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    # compiled without optimization, statements are no faster; with the server's functions inlined, sessions grow
    "jit_optimize_above_cost": "0",
    "jit_inline_above_cost": "-1",
}

# A row for each unit is kept while rows are grouped; 4 MB, which servers come with, send those of 50,000 units to disk
# and back. Who runs the server says less or more with `alter role ... set work_mem`.
# pg_settings would be kept as a whole first, on disk where the login has little memory.
_MORE_MEMORY = """
select set_config('work_mem', '64MB', false) from (select pg_show_all_settings() as found) as s
where (found).name = 'work_mem' and (found).source in ('default', 'configuration file', 'command line')
  and (found).setting::int < 65536"""

_TOO_MUCH = """
select array_remove(array[
  case when rolsuper then 'is a superuser' end,
  case when rolcreaterole then 'may create roles' end,
  case when rolcreatedb then 'may create databases' end,
  case when rolreplication then 'may read all data by replication' end,
  case when exists (select from pg_roles g where g.rolname in ('pg_read_server_files', 'pg_write_server_files',
    'pg_execute_server_program', 'pg_write_all_data') and pg_has_role(current_user, g.oid, 'member'))
    then 'may use files or programs of the server, or write all data' end,
  case when has_database_privilege(current_database(), 'create') then 'may create schemas' end], null)
from pg_roles where rolname = current_user"""


class _Whole(Loader):
    """Exact sums, which are numeric there and whole numbers here."""

    format = pq.Format.BINARY

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._numeric = NumericBinaryLoader(oid, context)

    def load(self, data: Buffer) -> int:
        return int(self._numeric.load(data))


def connect(source: PostgresSource, zone: str) -> EngineConnection:
    """A session that may only read. Raises psycopg.Error."""
    known = {name: value for name, value in conninfo_to_dict(source.dsn).items() if value is not None}
    dsn = make_conninfo("", **{**_DEFAULTS, **known})
    connection: EngineConnection = psycopg.connect(
        dsn, autocommit=True, application_name="hushql", cursor_factory=psycopg.RawCursor
    )
    try:
        settings = _SETTINGS | {"TimeZone": zone}
        connection.execute("; ".join(f"set {n} = {text_literal(v)}" for n, v in settings.items()).encode())
        connection.execute(_MORE_MEMORY.encode())
        connection.adapters.register_loader("numeric", _Whole)
        connection.prepare_threshold = None
    except BaseException:
        connection.close()
        raise
    return connection


def first_connection(policy: Policy, source: PostgresSource) -> EngineConnection:
    """The session that shows whether the source can be served at all. Raises ConfigError, which shows no DSN."""
    failure = ""
    try:
        connection = connect(source, policy.privacy.time_zone)
    except psycopg.Error as error:
        failure = f"{type(error).__name__} {error.sqlstate or ''}".strip()
    else:
        _check_server(connection)
        return connection
    raise ConfigError(  # outside the handler: libpq's words may hold the password
        f"the private PostgreSQL cannot be used: {failure}",
        hint="Does psql reach it with source.dsn, and does it know privacy.time_zone?",
    )


def unfit(connection: EngineConnection) -> str:
    """Why a server cannot be served; empty if it can. It has said all of that when the session was opened."""
    if connection.info.server_version < OLDEST * 10_000:
        return f"is older than version {OLDEST}"
    if connection.info.parameter_status("server_encoding") != _ENCODING:
        return f"does not keep its texts in {_ENCODING}"
    return ""


def _check_server(connection: EngineConnection) -> None:
    problem = unfit(connection)
    if problem:
        connection.close()
        raise ConfigError(f"the private PostgreSQL {problem}")


def warnings(connection: EngineConnection) -> tuple[str, ...]:
    """What the login may do that no proxy needs, and a way to the server that can be read or changed."""
    found = connection.execute(_TOO_MUCH).fetchone()
    said = [f"the login of source.dsn {words}" for words in (found[0] if found and isinstance(found[0], list) else ())]
    host, is_local = connection.info.host, connection.info.host.startswith("/")
    if not is_local and not connection.pgconn.ssl_in_use:
        said.append(f"the private PostgreSQL on {host} is reached without TLS")
    return tuple(map(str, said))
