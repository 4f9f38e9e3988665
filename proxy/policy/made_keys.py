"""How many made-up rows has each table, and which keys stand in them, so that tables join along what is declared?

Every key is a place in a list of values. Rows of all tables go through these lists at the same pace, so that a row's
keys agree with each other along every path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from proxy.policy.made_values import nth_value
from proxy.policy.model import Column, RowUnit, Table, UnitColumns, UnitVia, Unknown, WrittenBound
from proxy.sqltypes import SqlType

#: Rows of a table with one row for each unit, and of a unit elsewhere: what the guide says of them.
UNITS, ROWS_OF_A_UNIT = 100, 3
_TEXTS = (SqlType.TEXT, SqlType.VARCHAR)


@dataclass(frozen=True, slots=True, order=True)
class KeyMember:
    """A column of a table."""

    table: str
    column: str


@dataclass(frozen=True, slots=True)
class _Link:
    """Columns that hold the same keys, and these, all different."""

    members: tuple[KeyMember, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MadeKeys:
    """rows: of each private table. sizes: how many values of a link occur."""

    rows: Mapping[str, int]
    _links: Mapping[KeyMember, _Link]
    _sizes: Mapping[_Link, int]
    _homes: frozenset[KeyMember]
    _tables: Mapping[str, Table]

    def is_linked(self, member: KeyMember) -> bool:
        """Whether the column holds keys that others hold too, or that tell rows apart."""
        return member in self._links

    def place(self, member: KeyMember, row: int) -> int:
        """Which of its keys a row has."""
        return row if member in self._homes else row * self._sizes[self._links[member]] // self.rows[member.table]

    def value(self, member: KeyMember, place: int) -> str:
        """The key at a place."""
        return self._links[member].values[place]

    def unit(self, table: Table, row: int) -> int:
        """Whose a row is."""
        return row * self._units(table) // self.rows[table.name]

    def _units(self, table: Table) -> int:
        match table.ownership:
            case UnitColumns(columns=(first, *_)) if KeyMember(table.name, first) in self._links:
                return self._sizes[self._links[KeyMember(table.name, first)]]
            case UnitVia(parent=parent) if parent in self.rows:
                return self._units(self._tables[parent])
            case _:
                return min(UNITS, self.rows[table.name])

    def public_source(self, member: KeyMember) -> KeyMember | None:
        """The column of a public table from whose rows the keys are drawn; None: they are not."""
        members = self._links[member].members if member in self._links else (member,)
        found = sorted(s for m in members for s in _public_joins(self._tables, m))
        here = [self._tables[m.table].column(m.column) for m in members]
        return next((s for s in found if all(c is not None and _holds(c, self._of(s)) for c in here)), None)

    def _of(self, member: KeyMember) -> Column:
        column = self._tables[member.table].column(member.column)
        assert column is not None, "a declared join is to a column"
        return column


def keys_of(tables: Mapping[str, Table]) -> MadeKeys:
    """The keys of private tables. tables: all that the asker may see, as the policy has them."""
    private = {name: table for name, table in tables.items() if not table.is_public}
    homes = frozenset(_homes(private))
    links = _links(private, homes)
    homes = homes & links.keys()
    rows = {name: _most_rows(table) for name, table in private.items()}
    sizes = {link: len(link.values) for link in links.values()}
    while _narrow(private, links, homes, rows, sizes):
        pass
    return MadeKeys(rows, links, sizes, homes, tables)


# --- which columns hold the same keys --------------------------------------------------------------------


def _homes(tables: Mapping[str, Table]) -> Iterator[KeyMember]:
    """Columns with another value in each row."""
    for table in tables.values():
        if table.unit_unique:
            yield from (KeyMember(table.name, c) for c in _unit_columns(table))
        for join in table.joins:
            target = tables.get(join.table)
            if target is not None and join.ref_column not in _unit_columns(target):
                yield KeyMember(join.table, join.ref_column)


def _links(tables: Mapping[str, Table], homes: frozenset[KeyMember]) -> dict[KeyMember, _Link]:
    groups = {m: [m] for m in _members(tables)}
    for one, other in _equated(tables):
        if one in groups and other in groups and groups[one] is not groups[other]:
            groups[one] += groups[other]
            for member in groups[other]:
                groups[member] = groups[one]
    units = {KeyMember(t.name, c) for t in tables.values() for c in _unit_columns(t)}
    found: dict[KeyMember, _Link] = {}
    for group in groups.values():
        members = tuple(sorted(group))
        values = () if members[0] in found or not (homes | units).intersection(members) else _values(tables, members)
        if values:
            found |= dict.fromkeys(members, _Link(members, values))
    return found


def _members(tables: Mapping[str, Table]) -> Iterator[KeyMember]:
    for table in tables.values():
        yield from (KeyMember(table.name, c.name) for c in table.columns)


def _equated(tables: Mapping[str, Table]) -> Iterator[tuple[KeyMember, KeyMember]]:
    owners: dict[int, list[Table]] = {}
    for table in tables.values():
        yield from ((KeyMember(table.name, j.column), KeyMember(j.table, j.ref_column)) for j in table.joins)
        owners.setdefault(len(_unit_columns(table)), []).append(table)
    for first, *others in owners.values():
        for other in others:
            pairs = zip(_unit_columns(first), _unit_columns(other), strict=True)
            yield from ((KeyMember(first.name, a), KeyMember(other.name, b)) for a, b in pairs)


def _unit_columns(table: Table) -> tuple[str, ...]:
    return table.ownership.columns if isinstance(table.ownership, UnitColumns) else ()


def _values(tables: Mapping[str, Table], members: tuple[KeyMember, ...]) -> tuple[str, ...]:
    """Keys that each of the columns may hold, called like the first that is shown; none if that is not sure."""
    columns = [c for m in members if (c := tables[m.table].column(m.column)) is not None]
    domains = {c.domain for c in columns if not isinstance(c.domain, Unknown)}
    if len(domains) > 1 or (domains and len({c.type for c in columns}) > 1):
        return ()
    named = next((c for c in columns if not c.hidden), columns[0])
    shown = Column(
        name=named.name,
        type=named.type,
        domain=next(iter(domains), Unknown()),
        case_blind=any(c.case_blind for c in columns),
    )
    found = (nth_value(shown, place) for place in range(UNITS * ROWS_OF_A_UNIT))
    return tuple(v for v in found if v is not None)


# --- how many rows there are -----------------------------------------------------------------------------


def _rows_of_a_unit(table: Table) -> int:
    if table.unit_unique or isinstance(table.ownership, RowUnit):
        return 1
    limit = table.rows_per_unit
    return min(ROWS_OF_A_UNIT, limit.limit) if isinstance(limit, WrittenBound) else ROWS_OF_A_UNIT


def _most_rows(table: Table) -> int:
    return UNITS * _rows_of_a_unit(table)


def _narrow(
    tables: Mapping[str, Table], links: Mapping[KeyMember, _Link], homes: frozenset[KeyMember], rows: dict[str, int],
    sizes: dict[_Link, int],
) -> bool:  # fmt: skip
    """Whether something had to become smaller, so that no key occurs twice where it must not."""
    before = (*rows.values(), *sizes.values())
    units = {links[m] for t in tables.values() for c in _unit_columns(t) if (m := KeyMember(t.name, c)) in links}
    for link, size in tuple(sizes.items()):
        own = [rows[m.table] for m in link.members if m in homes]
        sizes[link] = min(size, *own, *([UNITS] if link in units else []), UNITS * ROWS_OF_A_UNIT)
    for table in tables.values():
        of_home = [sizes[links[m]] for m in homes if m.table == table.name]
        of_units = [sizes[links[m]] for c in _unit_columns(table) if (m := KeyMember(table.name, c)) in links]
        most = [size * _rows_of_a_unit(table) for size in of_units]
        rows[table.name] = min(rows[table.name], *of_home, *most, UNITS * ROWS_OF_A_UNIT)
    return (*rows.values(), *sizes.values()) != before


# --- keys of public tables -------------------------------------------------------------------------------


def _public_joins(tables: Mapping[str, Table], member: KeyMember) -> Iterator[KeyMember]:
    for join in tables[member.table].joins:
        target = tables.get(join.table)
        column = target.column(join.ref_column) if target is not None and target.is_public else None
        if join.column == member.column and column is not None and not column.hidden:
            yield KeyMember(join.table, join.ref_column)


def _holds(column: Column, source: Column) -> bool:
    """Whether each value of the source is one of the column's type."""
    one, other = column.type, source.type
    is_wider = one.is_integer and other.is_integer and one.value.size >= other.value.size
    return (
        one is other or is_wider or (one in _TEXTS and other in _TEXTS) or (one is SqlType.NUMERIC and other.is_integer)
    )
