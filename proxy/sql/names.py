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


def table_name(node: exp.Table) -> str:
    """The policy name of a table reference, or "" when a schema other than public qualifies it."""
    if node.args.get("catalog") is not None or identifier(node.args.get("db")) not in ("", "public"):
        return ""
    return identifier(node.this)
