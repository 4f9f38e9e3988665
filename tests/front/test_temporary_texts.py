"""Nothing that a login writes into temporary objects stands in a catalogue that another login reads."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tests.front.catalogue_texts import KINDS, KNOWN, REASONS
from tests.front.conftest import Client

SECRET = "written by bob 4711"
#: What tools make; all of it stays possible.
MADE = (
    "CREATE TEMP TABLE t AS SELECT 'written by bob 4711' AS x, g AS n FROM generate_series(1, 4711) AS g",
    "CREATE TEMP TABLE u (id serial PRIMARY KEY, a int GENERATED ALWAYS AS IDENTITY, b text NOT NULL, UNIQUE (b))",
    "CREATE INDEX ON t (n, x)",
    "CREATE TEMP VIEW v AS SELECT 'written by bob 4711' AS w, count(*) FROM t",
    "CREATE TEMP SEQUENCE s",
    "ALTER TABLE t ALTER n TYPE bigint",
    "ALTER TABLE t ADD PRIMARY KEY (n)",
    "ALTER TABLE t RENAME x TO y",
    "SELECT * INTO TEMP TABLE w FROM t",
    "INSERT INTO u (b) VALUES ('written by bob 4711')",
    "GRANT SELECT ON t TO PUBLIC",
    "DROP TABLE w",
    "TRUNCATE t",
    "INSERT INTO t SELECT 'written by bob 4711', g FROM generate_series(1, 4711) AS g",
)
REFUSED = (
    "CREATE TEMP TABLE d (a text DEFAULT 'written by bob 4711')",
    "ALTER TABLE kept ALTER a SET DEFAULT 'written by bob 4711'",
    "ALTER TABLE kept ADD b text DEFAULT 'written by bob 4711'",
    "CREATE TEMP TABLE d (a int, b int GENERATED ALWAYS AS (a + 4711) STORED)",
    "CREATE TEMP TABLE d (a text CHECK (a <> 'written by bob 4711'))",
    "ALTER TABLE kept ADD CHECK (a <> 'written by bob 4711')",
    "COMMENT ON TABLE kept IS 'written by bob 4711'",
    "COMMENT ON COLUMN kept.a IS 'written by bob 4711'",
    "CREATE INDEX ON kept ((a || 'written by bob 4711'))",
    "CREATE INDEX ON kept (a) WHERE a <> 'written by bob 4711'",
    "CREATE TYPE pg_temp.e AS ENUM ('written by bob 4711')",
    "CREATE TYPE pg_temp.c AS (a int)",
    "CREATE DOMAIN pg_temp.dm AS text DEFAULT 'written by bob 4711'",
    "CREATE DOMAIN pg_temp.dm AS text CHECK (VALUE <> 'written by bob 4711')",
    "CREATE POLICY p ON kept USING (a = 'written by bob 4711')",
    ("CREATE TRIGGER tr BEFORE UPDATE ON kept FOR EACH ROW WHEN (new.a = 'written by bob 4711')"
     " EXECUTE FUNCTION suppress_redundant_updates_trigger()"),
    "CREATE TEMP TABLE d (a text) PARTITION BY LIST (a)",
    "CREATE STATISTICS pg_temp.st ON (a || 'written by bob 4711'), (length(a)) FROM kept",
    "CREATE TEXT SEARCH DICTIONARY pg_temp.dict (TEMPLATE = simple, accept = false)",
    "CREATE COLLATION pg_temp.coll (locale = 'C')",
    "CREATE OPERATOR pg_temp.<<<< (FUNCTION = int4pl, LEFTARG = int, RIGHTARG = int)",
)  # fmt: skip

TABLES = """SELECT c.relname || '.' || a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
AND format_type(a.atttypid, NULL) = ANY (%s)"""
WALK = """SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v', 'm') AND a.attnum > 0
AND NOT a.attisdropped AND format_type(a.atttypid, NULL) = ANY (%s)
AND has_column_privilege(c.oid, a.attnum, 'SELECT') ORDER BY 1, 2"""


def everything(client: Client) -> dict[str, str]:
    """What a login reads in each column of the catalogues that can hold a text, or a number of rows."""
    kinds = ["pg_node_tree", "text", "text[]", "real", "anyarray", "bytea", "pg_ndistinct", "pg_dependencies"]
    found = {}
    for relation, column in client.execute(WALK, [kinds]).fetchall():
        read = f'SELECT string_agg("{column}"::text, E\'\\n\') FROM pg_catalog."{relation}"'
        try:
            found[f"{relation}.{column}"] = str(client.execute(read.encode()).fetchone())
        except psycopg.errors.InsufficientPrivilege:
            continue
    return found


def test_every_column_that_can_hold_a_text_has_its_reason(alice: Client) -> None:
    """So that the next version of PostgreSQL adds none unseen."""
    found = {str(column) for (column,) in alice.execute(TABLES, [list(KINDS)]).fetchall()}
    assert found - KNOWN == set()
    assert len(found) > 120
    assert sum(map(len, REASONS.values())) == len(KNOWN)  # one reason each


FUNCTIONS = (
    "SELECT pg_get_constraintdef(oid) FROM pg_constraint",
    "SELECT pg_get_indexdef(indexrelid) FROM pg_index",
    "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef",
    "SELECT obj_description(oid), col_description(oid, 1) FROM pg_class",
    "SELECT pg_get_viewdef(oid) FROM pg_class",
    "SELECT pg_get_triggerdef(oid) FROM pg_trigger",
    "SELECT pg_get_statisticsobjdef(oid) FROM pg_statistic_ext",
    "SELECT pg_get_partkeydef(oid) FROM pg_class",
    "SELECT enum_range FROM (SELECT enumlabel AS enum_range FROM pg_enum) AS e",
    "SELECT * FROM information_schema.columns",
    "SELECT * FROM information_schema.check_constraints",
    "SELECT * FROM information_schema.triggers",
    "SELECT * FROM information_schema.views",
)


@pytest.mark.parametrize("sql", REFUSED)
def test_a_text_in_a_temporary_object_is_refused(sql: str, connect: Callable[[str], Client]) -> None:
    owner = connect("bob")
    owner.execute("CREATE TEMP TABLE kept (a text)")
    with pytest.raises(psycopg.Error) as raised:
        owner.execute(sql.encode())
    assert raised.value.sqlstate in ("DP007", "42501"), raised.value
    assert SECRET not in str(everything(connect("alice")))


def test_no_column_of_a_catalogue_holds_what_another_login_wrote(connect: Callable[[str], Client]) -> None:
    """Whichever columns this version of PostgreSQL has."""
    owner, other = connect("bob"), connect("alice")
    before = everything(other)
    for sql in MADE:
        owner.execute(sql.encode())
    seen = everything(other)
    assert len(seen) > 60
    assert SECRET not in str(seen)
    assert "4711" not in str(seen)
    assert {c for c in seen if seen[c] != before[c]} <= GROWS, "a column that is new, or that tells of others"
    for sql in FUNCTIONS:
        told = str(other.execute(sql.encode()).fetchall())
        assert SECRET not in told, sql


#: Columns of such types that change when another login makes temporary objects, and what of them shows.
GROWS = {
    "pg_class.reltuples",  # -1: not known
    "pg_attrdef.adbin",  # nextval of a sequence, by its number
    "pg_indexes.indexdef",  # names of tables and columns
    "pg_rules.definition", "pg_views.definition",  # NULL for others' views
    "pg_stat_database.stats_reset", "pg_locks.locktype", "pg_locks.mode", "pg_locks.virtualtransaction",
    "pg_locks.virtualxid", "pg_stat_activity.application_name", "pg_stat_activity.backend_type",
    "pg_stat_activity.query", "pg_stat_activity.state", "pg_stat_activity.wait_event",
    "pg_stat_activity.wait_event_type", "pg_settings.setting",
}  # fmt: skip


def test_the_number_of_rows_of_another_login_s_table_is_not_kept(connect: Callable[[str], Client]) -> None:
    owner, other = connect("bob"), connect("alice")
    for sql in MADE[:3]:
        owner.execute(sql.encode())
    counted = other.execute("SELECT max(reltuples) FROM pg_class WHERE relname LIKE 't%' AND relpersistence = 't'")
    assert counted.fetchone() == (-1,)


def test_tables_of_one_s_own_are_described_as_ever(connect: Callable[[str], Client]) -> None:
    owner = connect("bob")
    for sql in MADE:
        owner.execute(sql.encode())
    defaults = "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'u'::regclass"
    assert str(owner.execute(defaults.encode()).fetchall()).startswith("[(\"nextval('u_id_seq'::regclass)")
    keys = "SELECT conname FROM pg_constraint WHERE conrelid = 'u'::regclass AND contype IN ('p', 'u') ORDER BY 1"
    assert owner.execute(keys.encode()).fetchall() == [("u_b_key",), ("u_pkey",)]
