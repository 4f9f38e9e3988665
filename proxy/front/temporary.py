"""What may a login's temporary objects hold, given that every login of the server can read its catalogues?

Pure text. Names of relations and columns, and types. Whatever PostgreSQL keeps as a text or an expression beside them
is refused where it is made: such texts are written from what a login was answered, and catalogues have no rows that
are somebody's own.
"""

from __future__ import annotations

from proxy.front.quoting import quote_text

#: Commands that leave nothing but names behind, once their result was looked at. All others are refused.
_HARMLESS = (
    "CREATE TABLE", "CREATE TABLE AS", "SELECT INTO", "CREATE VIEW", "CREATE INDEX", "CREATE SEQUENCE",
    "ALTER TABLE", "ALTER VIEW", "ALTER INDEX", "ALTER SEQUENCE",
    "DROP TABLE", "DROP VIEW", "DROP INDEX", "DROP SEQUENCE", "GRANT", "REVOKE",
)  # fmt: skip
_CHECK = "information_schema.hush_refuse_texts"
# What a command may have made that holds a text: its words, and whether it is there.
_TEXTS = (
    ("a default", """EXISTS (SELECT FROM pg_catalog.pg_attrdef AS d JOIN pg_catalog.pg_class AS c ON c.oid = d.adrelid
      WHERE c.relnamespace = own AND pg_catalog.pg_get_expr(d.adbin, d.adrelid) !~ '^nextval\\(')"""),
    ("a default", """EXISTS (SELECT FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c
      ON c.oid = a.attrelid WHERE c.relnamespace = own AND a.atthasmissing)"""),
    ("a CHECK", "EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE connamespace = own AND conbin IS NOT NULL)"),
    ("an index of an expression or with a condition", """EXISTS (SELECT FROM pg_catalog.pg_index AS i
      JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
      WHERE c.relnamespace = own AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))"""),
    ("partitions", """EXISTS (SELECT FROM pg_catalog.pg_class
      WHERE relnamespace = own AND (relkind = 'p' OR relpartbound IS NOT NULL))"""),
)  # fmt: skip


def temporary_sql() -> str:
    """The end of the script that fills an empty database.

    Claim: when a command of a login has ended, no catalogue holds a text or an expression that the login wrote, but
    for names and the queries of views (`definitions`). Numbers of rows of its tables are forgotten when it commits.
    """
    harmless = ", ".join(map(quote_text, _HARMLESS))
    checks = "\n".join(f"  IF {there} THEN found := {quote_text(words)}; END IF;" for words, there in _TEXTS)
    return f"""CREATE FUNCTION {_CHECK}() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog AS $body$
DECLARE found text; own pg_catalog.oid := pg_catalog.pg_my_temp_schema();
BEGIN
  IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = session_user) THEN RETURN; END IF;
  IF TG_TAG NOT IN ({harmless}) THEN found := pg_catalog.format('what %s makes', TG_TAG); END IF;
{checks}
  IF found IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'DP007', MESSAGE = pg_catalog.format('%s is not available', found),
      HINT = 'Other logins could read it. Temporary tables have columns, keys and plain indexes.';
  END IF;
  UPDATE pg_catalog.pg_class SET reltuples = -1, relpages = 0, relallvisible = 0
    WHERE relnamespace = own AND (reltuples > 0 OR relpages > 0);
END$body$;
REVOKE ALL ON FUNCTION {_CHECK}() FROM PUBLIC;
CREATE EVENT TRIGGER hush_refuse_texts ON ddl_command_end EXECUTE FUNCTION {_CHECK}();"""
