"""Which name does an identifier or a table reference of a client's text mean?"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from proxy.sql.render.dialect import quote

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
#: PostgreSQL's words that name no column unless they are quoted.
_TAKEN = """
all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
column concurrently constraint create cross current_catalog current_date current_role current_schema
current_time current_timestamp current_user default deferrable desc distinct do else end except false fetch for
foreign freeze from full grant group having ilike in initially inner intersect into is isnull join lateral
leading left like limit localtime localtimestamp natural not notnull null offset on only or order outer overlaps
placing primary references returning right select session_user similar some symmetric system_user table
tablesample then to trailing true union unique user using variadic verbose when where window with
"""
_QUOTED = frozenset(_TAKEN.split())


def identifier(node: exp.Expression | None) -> str:
    """The name an identifier means: folded to lower case unless quoted."""
    if not isinstance(node, exp.Identifier):
        return ""
    text = str(node.this)
    return text if node.args.get("quoted") else fold(text)


def token_name(token: Token) -> str:
    """The same of a token."""
    return token.text if token.token_type is TokenType.IDENTIFIER else fold(token.text)


def fold(text: str) -> str:
    """Lower case as PostgreSQL folds names: ASCII letters only."""
    return text.lower() if text.isascii() else "".join(c.lower() if c.isascii() else c for c in text)


def spelled(name: str) -> str:
    """A name as a client has to write it."""
    return name if _PLAIN.fullmatch(name) and name not in _QUOTED else quote(name)


def is_here(node: exp.Expression, database: str) -> bool:
    """Whether a table or column is named without a database, or with this one."""
    named = node.args.get("catalog")
    return named is None or (database != "" and identifier(named) == database)


def table_name(node: exp.Table, database: str = "") -> str:
    """The policy name of a table reference, or "" when a database or schema other than public qualifies it."""
    if not is_here(node, database) or identifier(node.args.get("db")) not in ("", "public"):
        return ""
    return identifier(node.this)
