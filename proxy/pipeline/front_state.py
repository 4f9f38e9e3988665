"""What does a session keep on the front that statements may mean, and how is it asked for?

Temporary views and statements prepared in SQL live on the front alone: rolled back, replaced and dropped there as
PostgreSQL does. The session remembers no more than names, to know when to ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from proxy.sql.syntax.parse import Statement, split_statements
from proxy.sql.syntax.prepared import Execution, asked_as
from proxy.wire.exchange import Row

#: The rows that the front gave, for each thing asked.
Answers = tuple[tuple[Row, ...], ...]

_MOST_CHARS = 400_000  # of all texts; what is beyond is not told, so the front's guard refuses what names it
_MOST_ROWS = 5_000

_EVERYTHING_SQL = """\
SELECT 'view', c.relname::pg_catalog.text, pg_catalog.pg_get_viewdef(c.oid, true), ''
FROM pg_catalog.pg_class c
WHERE c.relkind OPERATOR(pg_catalog.=) 'v' AND c.relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()
UNION ALL
SELECT 'prepared', p.name, p.statement, pg_catalog.array_to_string(ARRAY(
    SELECT pg_catalog.format_type(t.type, NULL)
    FROM ROWS FROM (pg_catalog.unnest(p.parameter_types)) WITH ORDINALITY AS t(type, n) ORDER BY t.n
), pg_catalog.chr(10))
FROM pg_catalog.pg_prepared_statements p WHERE p.from_sql
UNION ALL
SELECT 'relation', c.relname::pg_catalog.text, '', '' FROM pg_catalog.pg_class c
WHERE c.relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()
UNION ALL
SELECT 'cursor', c.name, '', '' FROM pg_catalog.pg_cursors c"""
KEPT_SQL = f"""\
SELECT k.kind, k.name, k.text, k.types FROM (
SELECT e.*, pg_catalog.sum(pg_catalog.length(e.text)) OVER (ROWS UNBOUNDED PRECEDING) AS so_far FROM (
{_EVERYTHING_SQL}
) AS e(kind, name, text, types)
) AS k WHERE k.so_far OPERATOR(pg_catalog.<=) {_MOST_CHARS} LIMIT {_MOST_ROWS}"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement prepared in SQL: the query string it came in, and the types of its parameters."""

    source: str
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RememberedNames:
    """Views by name, each with its SELECT, prepared statements by name, names of temporary relations and of cursors."""

    views: Mapping[str, str]
    prepared: Mapping[str, Prepared]
    relations: frozenset[str]
    cursors: frozenset[str]

    def only_of(self, names: frozenset[str]) -> RememberedNames:
        """Without the views that neither name one of these nor, through other views, lead to one."""
        found: dict[str, str] = {}
        words = {name: _words(body) for name, body in self.views.items()}
        known = set(names)
        while more := [n for n in self.views if n not in found and words[n] & known]:
            found |= {n: self.views[n] for n in more}
            known |= {n.lower() for n in more}
        return replace(self, views=found)


@dataclass(frozen=True, slots=True)
class Taken:
    """The handle of a piece that would keep its rows under a taken name: the front says so, and runs nothing."""


@dataclass(frozen=True, slots=True)
class Noted:
    """The handle of a public piece that makes views or prepared statements of these names."""

    names: tuple[str, ...]


def read_kept(rows: Sequence[Row]) -> RememberedNames:
    """The answer to KEPT_SQL."""
    views: dict[str, str] = {}
    prepared: dict[str, Prepared] = {}
    names: dict[str, set[str]] = {"relation": set(), "cursor": set()}
    for kind, name, text, types in rows:
        assert name is not None
        assert text is not None
        if kind == "view":
            views[name] = text.strip().removesuffix(";")
        elif kind == "prepared":
            prepared[name] = Prepared(text, tuple(types.split("\n")) if types else ())
        else:
            names[str(kind)].add(name)
    return RememberedNames(views, prepared, frozenset(names["relation"]), frozenset(names["cursor"]))


NOTHING_KEPT = RememberedNames({}, {}, frozenset(), frozenset())


def values_sql(call: Execution, types: Sequence[str]) -> str:
    """Asks for the arguments' values, each as a text that means it whatever the session's settings are."""
    return f"SELECT {', '.join(asked_as(f'(({a})::{t})', t) for a, t in zip(call.arguments, types, strict=True))}"


def names_made(statement: Statement) -> tuple[str, ...]:
    """Names that a view or a prepared statement may have after this one, in lower case."""
    words = statement.words(8)
    match words[0]:
        case "PREPARE":
            return _lower(statement, 1)
        case "CREATE" if "VIEW" in words[:6] and "TABLE" not in words[: words.index("VIEW")]:
            at = words.index("VIEW") + 1
            return _lower(statement, at + 2 if words[at + 1 : at + 2] == (".",) else at)
        case "ALTER" if statement.words(len(statement.tokens))[-3:-1] == ("RENAME", "TO"):
            return _lower(statement, len(statement.tokens) - 1)
        case _:
            return ()


def _words(text: str) -> set[str]:
    return {t.text.lower() for s in split_statements(text) for t in s.tokens}


def _lower(statement: Statement, at: int) -> tuple[str, ...]:
    return tuple(t.text.lower() for t in statement.tokens[at : at + 1])
