"""Which name does an identifier or a table reference of a client's text mean?"""

from __future__ import annotations

from sqlglot import exp


def identifier(node: exp.Expression | None) -> str:
    """The name an identifier means: folded to lower case unless quoted."""
    if not isinstance(node, exp.Identifier):
        return ""
    text = str(node.this)
    return text if node.args.get("quoted") else fold(text)


def fold(text: str) -> str:
    """Lower case as PostgreSQL folds names: ASCII letters only."""
    return text.lower() if text.isascii() else "".join(c.lower() if c.isascii() else c for c in text)


def is_here(node: exp.Expression, database: str) -> bool:
    """Whether a table or column is named without a database, or with this one."""
    named = node.args.get("catalog")
    return named is None or (database != "" and identifier(named) == database)


def table_name(node: exp.Table, database: str = "") -> str:
    """The policy name of a table reference, or "" when a database or schema other than public qualifies it."""
    if not is_here(node, database) or identifier(node.args.get("db")) not in ("", "public"):
        return ""
    return identifier(node.this)
