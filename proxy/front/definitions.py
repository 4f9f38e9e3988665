"""Whose queries can be read in the catalogue? A login's own, and those of the system.

Pure text. PostgreSQL shows the query of every view to everybody, temporary views of other sessions included. Here the
functions that spell a view out ask first whose it is, and the stored form is kept from logins.
"""

from __future__ import annotations

_COLUMNS_OF_RULES = "tableoid, oid, rulename, ev_class, ev_type, ev_enabled, is_instead"  # without the stored query

# (function, its arguments, the relation whose text it gives) for every overload
_SPELLERS = (
    ("pg_get_viewdef", ("oid",), "$1"),
    ("pg_get_viewdef", ("oid", "boolean"), "$1"),
    ("pg_get_viewdef", ("oid", "integer"), "$1"),
    ("pg_get_viewdef", ("text",), "$1::pg_catalog.regclass"),
    ("pg_get_viewdef", ("text", "boolean"), "$1::pg_catalog.regclass"),
    ("pg_get_ruledef", ("oid",), "(SELECT r.ev_class FROM pg_catalog.pg_rewrite AS r WHERE r.oid = $1)"),
    ("pg_get_ruledef", ("oid", "boolean"), "(SELECT r.ev_class FROM pg_catalog.pg_rewrite AS r WHERE r.oid = $1)"),
)
_KEPT = "hush_kept_"  # before the names of PostgreSQL's own functions


def definitions_sql() -> str:
    """The script run once in a fresh database as superuser, before any login exists.

    Claim: no login reads the text of another login's view. session_user is the login, because a login is a member
    of nothing.
    """
    return "\n".join(
        (
            "REVOKE SELECT ON pg_catalog.pg_rewrite FROM PUBLIC;",
            f"GRANT SELECT ({_COLUMNS_OF_RULES}) ON pg_catalog.pg_rewrite TO PUBLIC;",
            *(_ask_first(name, arguments, relation) for name, arguments, relation in _SPELLERS),
            _views_sql(),
        )
    )


def _ask_first(name: str, arguments: tuple[str, ...], relation: str) -> str:
    signature = f"pg_catalog.{name}({', '.join(arguments)})"
    kept = f"pg_catalog.{_KEPT}{name}"
    passed = ", ".join(f"${n}" for n in range(1, len(arguments) + 1))
    return f"""ALTER FUNCTION {signature} RENAME TO {_KEPT}{name};
REVOKE EXECUTE ON FUNCTION {kept}({", ".join(arguments)}) FROM PUBLIC;
CREATE FUNCTION {signature} RETURNS text LANGUAGE sql STABLE STRICT SECURITY DEFINER BEGIN ATOMIC
SELECT {kept}({passed}) FROM pg_catalog.pg_class AS c WHERE c.oid = {relation}
AND (c.relpersistence <> 't' OR pg_catalog.pg_get_userbyid(c.relowner) = session_user); END;"""


def _views_sql() -> str:
    """The catalogue's views keep to the functions they were made with: make them anew with the ones of that name."""
    return f"""SET LOCAL allow_system_table_mods = on;
SET LOCAL search_path = '';
DO $body$ DECLARE found record; BEGIN FOR found IN
SELECT c.relnamespace::pg_catalog.regnamespace AS place, c.relname AS name, pg_catalog.pg_get_viewdef(c.oid) AS query
FROM pg_catalog.pg_class AS c WHERE c.relkind = 'v' AND pg_catalog.pg_get_viewdef(c.oid) LIKE '%{_KEPT}%'
LOOP EXECUTE pg_catalog.format('CREATE OR REPLACE VIEW %s.%I AS %s', found.place, found.name,
pg_catalog.replace(found.query, '{_KEPT}', '')); END LOOP; END $body$;
RESET search_path; RESET allow_system_table_mods;"""
