"""What does the editor propose as one types: tables, columns, their listed values, functions, settings and theirs?

All of it follows from the policy and the login, never from data: of values only those that the policy lists.
"""

from __future__ import annotations

from collections.abc import Iterable

from proxy.front.quoting import quote_text
from proxy.front.relations import setting_defaults
from proxy.pipeline.settings import choices
from proxy.policy.model import Column, Listed, Policy
from proxy.sqltypes import SqlType

#: Beside names of the policy and words of SQL.
FUNCTIONS = (
    "count(*)", "count(DISTINCT ", "sum(", "avg(", "min(", "max(", "stddev(", "variance(", "hush.low(", "hush.high(",
    "hush.sd(", "percentile_cont(0.5) WITHIN GROUP (ORDER BY ", "mode() WITHIN GROUP (ORDER BY ",
)  # fmt: skip
#: Values of one column; they are in the page.
MOST_VALUES = 200


def completion_of(policy: Policy, known: Iterable[tuple[str, str]]) -> dict[str, object]:
    """What the page needs. known: the tables and columns that the login may name, as hush.policy has them.

    values, settings: as they are written in SQL; a setting without any is completed by its name alone.
    """
    columns = {(t.name, c.name): c for t in policy.tables.values() for c in t.columns}
    schema: dict[str, list[str]] = {}
    values: dict[str, dict[str, list[str]]] = {}
    for table, name in known:
        schema.setdefault(table, []).append(name)
        listed = _listed(columns[table, name]) if (table, name) in columns else []
        if listed:
            values.setdefault(name, {})[table] = listed
    settings = {
        name: [c if c in {"on", "off"} else quote_text(c) for c in choices(name)] or ([default] if default else [])
        for name, default in setting_defaults(policy)
    }
    return {"schema": schema, "values": values, "settings": settings, "functions": FUNCTIONS}


def _listed(column: Column) -> list[str]:
    """The first values that the policy declares; what a public table was found to hold is not proposed."""
    if column.found or not isinstance(column.domain, Listed):
        return []
    is_bare = column.type.is_number or column.type is SqlType.BOOL
    return [word if is_bare else quote_text(word) for word in column.domain.words()[:MOST_VALUES]]
