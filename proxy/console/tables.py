"""What may be asked about? Tables, their columns, bounds, listed values and joins, and questions that work on each.

All of it comes over the wire from the login's own catalogues, so a table that the login may not name is not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from starlette.responses import Response

from proxy.console.visits import Console, Visit
from proxy.console.wire import Wire
from proxy.policy.model import Policy

_COLUMNS = """
SELECT p."table", p."column", quote_ident(p."table"), quote_ident(p."column"), p."type", p.bounds, p."values", p.unit,
       p.public, p.profile FROM hush.policy p
"""
_COMMENTS = """
SELECT c.relname, coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_catalog.pg_class c
WHERE c.relnamespace = 'public'::regnamespace
"""
_COLUMN_COMMENTS = """
SELECT c.relname, a.attname, coalesce(col_description(a.attrelid, a.attnum), '') FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0
"""
_JOINS = """
SELECT c.relname, pg_get_constraintdef(k.oid) FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
WHERE k.contype = 'f' AND c.relnamespace = 'public'::regnamespace ORDER BY 1, 2
"""
_NUMBERS = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision"})
_TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})
_MOST_EXAMPLES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """One column. quoted: its name as SQL. is_key: serves joins and is never shown.

    bounds, values, profile: as hush.policy words them, "" if there are none.
    """

    name: str
    quoted: str
    type: str
    bounds: str
    values: str
    profile: str
    comment: str
    is_key: bool

    @property
    def is_measure(self) -> bool:
        """Whether a sum of it is bounded."""
        return self.type in _NUMBERS and bool(self.bounds)

    @property
    def is_time(self) -> bool:
        """Whether it can be cut into months, all of which are known."""
        return self.type in _TIMES and bool(self.bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """One table. unit: how the person of a row is found, "" for a public table. joins: foreign keys in SQL's words."""

    name: str
    quoted: str
    comment: str
    unit: str
    is_public: bool
    columns: tuple[ColumnFacts, ...]
    joins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A question in words, and as a statement."""

    words: str
    statement: str


async def read_tables(wire: Wire, policy: Policy) -> tuple[TableFacts, ...]:
    """Every table that the wire's login may name. policy: tells keys among its columns. Raises as `Wire.rows` does."""
    columns = await wire.rows(_COLUMNS)
    comments = {str(t): str(words) for t, words in await wire.rows(_COMMENTS)}
    of_columns = {(str(t), str(c)): str(words) for t, c, words in await wire.rows(_COLUMN_COMMENTS)}
    joins = [(str(t), str(words)) for t, words in await wire.rows(_JOINS)]
    keys = {(t.name, c.name) for t in policy.tables.values() for c in t.columns if c.key}
    found: dict[str, list[ColumnFacts]] = {}
    heads: dict[str, tuple[str, str, bool]] = {}
    for table, name, quoted_table, quoted, kind, bounds, values, unit, public, profile in columns:
        heads[table] = str(quoted_table), str(unit or ""), bool(public)
        found.setdefault(table, []).append(
            ColumnFacts(
                name=str(name),
                quoted=str(quoted),
                type=str(kind),
                bounds=str(bounds or ""),
                values=str(values or ""),
                profile=str(profile or ""),
                comment=of_columns.get((table, name), ""),
                is_key=(table, name) in keys,
            )
        )
    return tuple(
        TableFacts(
            name=table, quoted=quoted, comment=comments.get(table, ""), unit=unit, is_public=public,
            columns=tuple(found[table]), joins=tuple(words for t, words in joins if t == table),
        )
        for table, (quoted, unit, public) in heads.items()
    )  # fmt: skip


def examples(table: TableFacts) -> tuple[Example, ...]:
    """Questions about one table, from its declared bounds and values alone."""
    if table.is_public:
        return (Example("Its rows, exactly and for nothing", f"SELECT * FROM {table.quoted} LIMIT 10"),)
    return tuple(_questions(table))[:_MOST_EXAMPLES]


def _questions(table: TableFacts) -> Iterator[Example]:
    name = table.quoted
    yield Example("How many rows?", f"SELECT count(*) FROM {name}")
    measures = [c for c in table.columns if c.is_measure]
    for key in _keys(table.columns):
        yield Example(f"How many by {key.name}?", f"SELECT {key.quoted}, count(*) FROM {name} GROUP BY {key.quoted}")
        for measure in measures[:1]:
            if measure is not key:
                asked = f"SELECT {key.quoted}, avg({measure.quoted}) FROM {name} GROUP BY {key.quoted}"
                yield Example(f"What {measure.name} on average, by {key.name}?", asked)
    for measure in measures:
        words = f"The sum and the average of {measure.name}?"
        yield Example(words, f"SELECT sum({measure.quoted}), avg({measure.quoted}) FROM {name}")
    for time in (c for c in table.columns if c.is_time):
        month = f"date_trunc('month', {time.quoted})"
        yield Example(
            f"How many each month, by {time.name}?", f"SELECT {month} AS month, count(*) FROM {name} GROUP BY 1"
        )


def _keys(columns: Sequence[ColumnFacts]) -> Iterator[ColumnFacts]:
    """Columns with listed values first, then texts of which frequent values are shown."""
    yield from (c for c in columns if c.values)
    yield from (c for c in columns if c.type == "text" and not c.values and not c.is_key)


@dataclass(frozen=True, slots=True)
class TablesPage:
    """The page."""

    console: Console

    async def page(self, visit: Visit) -> Response:
        """Every table of the login, with what may be said about it."""
        tables = await read_tables(visit.browser.wires.looking, self.console.served(visit).policy())
        shown = [(table, examples(table)) for table in tables]
        return self.console.page("tables.html", visit, tables=shown)
