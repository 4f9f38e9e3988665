"""Which names of the policy may a role read in what is said of its statements?

Those of tables that it may name, and of their columns that are not hidden. A path to the unit may lead through others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from proxy.pipeline.premises import Premises
from proxy.policy.model import Table
from proxy.sql.render.dialect import quote

#: What begins at a place of rendered SQL: a text, a column of a table, a name with perhaps the table's alias behind it.
_PARTS = re.compile(
    r"""'(?:[^']|'')*'|(?P<of>s\d+)\.(?P<column>"(?:[^"]|"")*")"""
    r"""|(?P<name>(?:"(?:[^"]|"")*"\.)*"(?:[^"]|"")*")(?: AS (?P<alias>s\d+)\b)?"""
)


def shown_sql(sql: str, premises: Premises) -> str:
    """Private SQL for a role to read.

    Claim: it holds no name of a table outside the role, nor of a column of such a table or a hidden one, unless a
    table of the role or a column of one that is shown has the same name. A name that is left out is `<table 1>` or
    `<column 1>` instead, the same wherever it stands in this SQL.
    """
    outside = [t for n, t in premises.tables.items() if n not in premises.named]
    hidden = (_names(outside) | _hidden_names(premises.named.values())) - _shown_names(premises.named)
    relations = {premises.dialect.relation(t.relation) for t in outside}
    relations -= {premises.dialect.relation(t.relation) for t in premises.named.values()}
    aliases = {m["alias"] for m in _PARTS.finditer(sql) if m["alias"] and m["name"] in relations}
    given: dict[str, str] = {}

    def placeholder(kind: str, name: str) -> str:
        same = sum(found.startswith(f"<{kind} ") for found in given.values())
        return given.setdefault(f"{kind} {name}", f"<{kind} {same + 1}>")

    def part(found: re.Match[str]) -> str:
        if found["column"] and (found["of"] in aliases or found["column"] in hidden):
            return f"{found['of']}.{placeholder('column', found['column'])}"
        if found["name"] in relations:
            return placeholder("table", found["name"]) + (f" AS {found['alias']}" if found["alias"] else "")
        if found["name"] in hidden:
            return placeholder("column", found["name"]) + (f" AS {found['alias']}" if found["alias"] else "")
        return found[0]

    return _PARTS.sub(part, sql)


def _names(tables: list[Table]) -> set[str]:
    columns = {quote(c.name) for t in tables for c in t.columns}
    return columns | {quote(t.name) for t in tables} | {quote(p) for t in tables for p in t.relation}


def _hidden_names(tables: Iterable[Table]) -> set[str]:
    return {quote(c.name) for t in tables for c in t.columns if c.hidden}


def _shown_names(named: Mapping[str, Table]) -> set[str]:
    columns = {quote(c.name) for t in named.values() for c in t.columns if not c.hidden}
    return columns | {quote(n) for n in named} | {quote(p) for t in named.values() for p in t.relation}
