"""Which tables does the ledger have in PostgreSQL?

All in the schema hushql. `tip` has one row, the end of the chain: an entry is appended where that says that the chain
ends, and moves it, in one statement.
"""

from __future__ import annotations

import psycopg

from proxy.errors import LedgerFailed
from proxy.ledger.chain import GENESIS
from proxy.ledger.postgres.link import LedgerConnection

VERSION = 1
_LOCK = 6_843_218_705_518_223  # any number that nobody else uses

_TABLES = (
    "create schema if not exists hushql",
    "create table if not exists hushql.version (number integer not null)",
    "create table if not exists hushql.entry (seq bigint primary key, login text, body text not null)",
    "create index if not exists entry_login on hushql.entry (login, seq)",
    """create table if not exists hushql.tip (
        one boolean primary key check (one), seq bigint not null, digest text not null
    )""",
    """create table if not exists hushql.release (
        release_id bigint primary key, fingerprint text not null, policy_digest text not null,
        data_version text not null, payload bytea not null
    )""",
    "create index if not exists release_key on hushql.release (fingerprint, policy_digest, data_version)",
    """create table if not exists hushql.repeat (
        number bigint primary key, at text not null, login text not null, query bytea not null
    )""",
    "create index if not exists repeat_login on hushql.repeat (login, at)",
    "create table if not exists hushql.outcome (statement bigint primary key, outcome text not null)",
    "create table if not exists hushql.secret (name text primary key, value bytea not null)",
    "create sequence if not exists hushql.block",
)
_CREATE = f"""begin; select pg_advisory_xact_lock(%s); {"; ".join(_TABLES)};
    insert into hushql.version select %s where not exists (select from hushql.version);
    insert into hushql.tip values (true, 0, %s) on conflict do nothing; commit"""
BLOCK = 10**12  # repeats that one process may number by itself


def prepare(connection: LedgerConnection) -> None:
    """Create what is missing, in one message: who stops here holds nobody up. Raises psycopg.Error, LedgerFailed."""
    if connection.execute("select to_regclass('hushql.version')").fetchone() == (None,):
        psycopg.ClientCursor(connection).execute(_CREATE.encode(), (_LOCK, VERSION, GENESIS))
    if connection.execute("select number from hushql.version").fetchall() != [(VERSION,)]:
        raise LedgerFailed("the ledger's tables are of another version of this program")
