"""Whose rows are in which table, as far as keys and names tell?

What is not known is left out, since a policy that says nothing of a table shows nothing of it. How it is written is in
`proxy.admin.proposing.text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from proxy.admin.proposing.unclear import Unclear, unclear_tables
from proxy.engines.described import ForeignKey, FoundColumn, FoundTable, Unservable
from proxy.errors import ConfigError
from proxy.policy.columns import RESERVED_PREFIXES
from proxy.policy.paths import are_comparable

_PERSONS = frozenset(
    (
        *("account", "citizen", "client", "consumer", "customer", "guest", "household", "member", "participant"),
        *("patient", "passenger", "people", "person", "player", "pupil", "resident", "student", "subscriber", "user"),
        *("visitor", "voter"),
    )
)
_STAFF = frozenset(["agent", "employee", "operator", "staff", "worker"])
_ID = re.compile(r"(.+?)_?id\Z")
DEFAULT_SCHEMAS = ("main", "public")


@dataclass(frozen=True, slots=True)
class OwnUnit:
    """The unit stands in these columns. is_guessed: no foreign key says so, only the columns' names."""

    columns: tuple[str, ...]
    is_guessed: bool = False


@dataclass(frozen=True, slots=True)
class EachRow:
    """Every row is a unit of its own."""


@dataclass(frozen=True, slots=True)
class Via:
    """The unit is that of the row of `parent` (a name in the policy) to which column `on` refers."""

    parent: str
    on: str


@dataclass(frozen=True, slots=True)
class TableLeftOut:
    """Nothing leads to the unit; `reason` is for people. is_of_people: its name says that rows are people's."""

    reason: str
    is_of_people: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedTable:
    """A table under the name it is to have for clients.

    keys: columns to be used in joins and never shown. joins: column, policy's table, its column.
    later: joins that can be opened with the table that they lead to.
    others: other foreign keys by which a row could be a unit's.
    """

    name: str
    found: FoundTable
    owner: OwnUnit | EachRow | Via | TableLeftOut | Unclear
    keys: frozenset[str] = frozenset()
    joins: tuple[tuple[str, str, str], ...] = ()
    later: tuple[tuple[str, str, str], ...] = ()
    others: tuple[str, ...] = ()

    @property
    def is_called_as_units(self) -> bool:
        """Whether its name is that of people whose ids its unit's column holds: then each has one row, it seems."""
        return isinstance(self.owner, OwnUnit) and not self.owner.is_guessed and _kind(self.found, ())[0] < _NOBODY

    @property
    def is_one_row_per_unit(self) -> bool:
        return isinstance(self.owner, OwnUnit) and any(set(u) <= set(self.owner.columns) for u in self.found.unique)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table, in the policy's name, whose rows could be the units, or whose columns name them; why, for people."""

    table: str
    columns: tuple[str, ...]
    reasons: str

    @property
    def option(self) -> str:
        """As `--unit` takes it."""
        return f"{self.table}.{self.columns[0]}" if len(self.columns) == 1 else self.table


@dataclass(frozen=True, slots=True)
class Proposal:
    """unit_table: the policy's name of the table with one row for each unit, or with the unit's column; "" for rows.

    candidates: the likeliest first.
    """

    unit_table: str
    tables: tuple[ProposedTable, ...]
    candidates: tuple[Candidate, ...]


def propose(found: Sequence[FoundTable], wanted: str) -> Proposal:
    """Find the unit and the ways to it.

    wanted: `table` or `table.column` of the unit; `row` for each row; "" to choose. Raises ConfigError when there is no
    telling.
    """
    names = _policy_names(found)
    if wanted == "row":
        rows = (_by_rows(table, names) for table in found)
        return Proposal("", tuple(sorted(rows, key=_place)), candidates(found))
    likely = candidates(found)
    unit, columns = _chosen(found, names, likely, wanted)
    owners = _owners(found, names, unit, columns)
    told = {relation: owner.columns if isinstance(owner, OwnUnit) else () for relation, owner in owners.items()}
    ways: Mapping[tuple[str, ...], OwnUnit | Via | Unclear] = {**owners, **unclear_tables(found, names, told)}
    tables = []
    for table in found:
        is_of_people = _kind(table, ())[0] < _NOBODY
        left_out = TableLeftOut(f"no foreign key leads to {names[unit.relation]}", is_of_people)
        owner = ways.get(table.relation, left_out)
        own = frozenset(owner.columns) if isinstance(owner, (OwnUnit, Unclear)) else frozenset[str]()
        joins = tuple(_joins(table, found, names)) if table.relation in owners else ()
        open_names = {names[relation] for relation in owners}
        tables.append(
            ProposedTable(
                name=names[table.relation], found=table, owner=owner, keys=_keys(table, found, owners) | own,
                joins=tuple(j for j in joins if j[1] in open_names),
                later=tuple(j for j in joins if j[1] not in open_names),
                others=tuple(_others(table, names, owners, owner)),
            )
        )  # fmt: skip
    return Proposal(names[unit.relation], tuple(sorted(tables, key=_place)), likely)


def _by_rows(table: FoundTable, names: Mapping[tuple[str, ...], str]) -> ProposedTable:
    view = Unclear("a view, of which one row may tell of many rows", ())
    return ProposedTable(name=names[table.relation], found=table, owner=view if table.is_view else EachRow())


def _place(table: ProposedTable) -> int:
    """Private tables first, then those that a person may open."""
    return isinstance(table.owner, Unclear) + 2 * isinstance(table.owner, TableLeftOut)


# --- names ----------------------------------------------------------------------------------------------


def _policy_names(found: Sequence[FoundTable]) -> Mapping[tuple[str, ...], str]:
    """One name for each relation: its own in small letters, with its schema where two differ in nothing else."""
    names: dict[tuple[str, ...], str] = {}
    seen: set[str] = set()
    for table in sorted(found, key=lambda t: (t.relation[0] not in DEFAULT_SCHEMAS, t.relation)):
        plain = table.relation[-1].replace(".", "_").lower()
        if plain.lower().startswith(RESERVED_PREFIXES) or plain.lower() in ("hush", "pg_catalog", "information_schema"):
            plain = f"t_{plain}"
        name = plain if plain.lower() not in seen else "_".join(table.relation).replace(".", "_").lower()
        while name.lower() in seen:
            name += "_"
        seen.add(name.lower())
        names[table.relation] = name
    return names


# --- the unit -------------------------------------------------------------------------------------------


def candidates(found: Sequence[FoundTable]) -> tuple[Candidate, ...]:
    """Whose rows could be the units, the likeliest first: words for people, for staff, then how much leads to them."""
    names = _policy_names(found)
    scored = []
    for table in found:
        for columns in [table.primary] if table.primary else list(_named_ids(table)):
            reach = len(_owners(found, names, table, columns)) - 1
            rank, reason = _kind(table, columns if not table.primary else ())
            if reach or (table.primary and rank < _NOBODY):
                others = f"{reach} other table{'s' * (reach != 1)} lead{'s' * (reach == 1)} to it"
                reasons = ", ".join([*([reason] if reason else []), others if reach else "nothing leads to it"])
                is_of_many = not table.primary and not _words(table.relation[-1]) & (_PERSONS | _STAFF)
                scored.append((rank, is_of_many, -reach, names[table.relation], columns, reasons))
    return tuple(Candidate(name, columns, reasons) for *_, name, columns, reasons in sorted(scored))


_PERSON, _EMPLOYEE, _NOBODY = range(3)


def _kind(table: FoundTable, columns: tuple[str, ...]) -> tuple[int, str]:
    """How likely the rows of a table, or what its columns name, are people, and why."""
    words = _words(table.relation[-1]).union(*map(_words, columns))
    for rank, known, what in ((_PERSON, _PERSONS, "a word for people"), (_EMPLOYEE, _STAFF, "a word for staff")):
        if found := sorted(words & known):
            return rank, f"{found[0]} is {what}"
    return _NOBODY, ""


def _named_ids(table: FoundTable) -> Iterator[tuple[str, ...]]:
    """The columns of a table without a key that name people, as player_id or customer."""
    return ((c.name,) for c in table.columns if _words(c.name) & (_PERSONS | _STAFF) and not table.is_view)


def _words(name: str) -> frozenset[str]:
    """The words for people that a name may stand for: of `CustomerID` these are `customer`."""
    plain = name.lower()
    stem = found[1] if (found := _ID.fullmatch(plain)) else plain
    parts = re.split(r"[^a-z]+", stem)
    return frozenset(w for part in (stem, parts[-1]) for w in (part, part.removesuffix("s")))


def _chosen(
    found: Sequence[FoundTable], names: Mapping[tuple[str, ...], str], likely: tuple[Candidate, ...], wanted: str
) -> tuple[FoundTable, tuple[str, ...]]:
    by_name = {names[t.relation]: t for t in found}
    if not wanted:
        if not likely:
            raise ConfigError(
                "no table can be told to be the one whose rows are protected",
                hint="Say it: --unit TABLE.COLUMN, the column that holds the person's id; or --unit row, if each row is"
                f" a person. Tables: {', '.join(sorted(by_name)[:20])}.",
            )
        return by_name[likely[0].table], likely[0].columns
    called = {".".join(t.relation): t for t in found} | {t.relation[-1]: t for t in found} | by_name
    name, _, column = (wanted, "", "") if wanted in called else wanted.rpartition(".")
    if name not in called:
        either = f", and no table {name} with a column {column}" if name else ""
        raise ConfigError(f"there is no table {wanted}{either}", hint=f"Tables: {', '.join(sorted(by_name)[:20])}.")
    table = called[name]
    if column:
        columns = {c.called: c.name for c in table.columns} | {c.name: c.name for c in table.columns}
        if column not in columns:
            raise ConfigError(
                f"table {name} has no column {column}", hint=f"Columns: {', '.join(sorted(columns)[:40])}."
            )
        column = columns[column]
    if not column and not table.primary:
        raise ConfigError(f"table {name} has no primary key", hint=f"Name the unit's column: --unit {name}.COLUMN")
    return table, (column,) if column else table.primary


def _owners(
    found: Sequence[FoundTable], names: Mapping[tuple[str, ...], str], unit: FoundTable, columns: tuple[str, ...]
) -> dict[tuple[str, ...], OwnUnit | Via]:
    """Who owns the rows of each table, by the shortest way of foreign keys; tables without one are missing."""
    if not _are_servable(unit, columns):
        return {}
    owners: dict[tuple[str, ...], OwnUnit | Via] = {unit.relation: OwnUnit(columns)}
    tables = {t.relation: t for t in found}
    is_changed = True
    while is_changed:
        is_changed = False
        reached = dict(owners)
        for table in found:
            owner = next(_ways(table, tables, names, reached), None) if table.relation not in owners else None
            if owner is not None:
                owners[table.relation] = owner
                is_changed = True
    for table in (t for t in found if t.relation not in owners and not t.is_view and columns != ("id",)):
        if _have_same_type(table, columns, unit, columns):
            owners[table.relation] = OwnUnit(columns, is_guessed=True)
    return owners


def _ways(
    table: FoundTable,
    tables: Mapping[tuple[str, ...], FoundTable],
    names: Mapping[tuple[str, ...], str],
    reached: Mapping[tuple[str, ...], OwnUnit | Via],
) -> Iterator[OwnUnit | Via]:
    """The ways from a table to the unit through tables that have one; those that keep it in a column first."""
    useful = [r for r in table.references if r.table in reached and r.table != table.relation]
    useful = [r for r in useful if _have_same_type(table, r.columns, tables[r.table], r.ref_columns)]
    for reference in useful:
        parent = reached[reference.table]
        if isinstance(parent, OwnUnit) and set(reference.ref_columns) == set(parent.columns):
            pairs = dict(zip(reference.ref_columns, reference.columns, strict=True))
            yield OwnUnit(tuple(pairs[c] for c in parent.columns))
    for reference in useful:
        if len(reference.columns) == 1:
            yield Via(names[reference.table], reference.columns[0])


def _others(
    table: FoundTable,
    names: Mapping[tuple[str, ...], str],
    owners: Mapping[tuple[str, ...], OwnUnit | Via],
    owner: OwnUnit | Via | TableLeftOut | Unclear,
) -> Iterator[str]:
    used = owner.columns if isinstance(owner, OwnUnit) else (owner.on,) if isinstance(owner, Via) else ()
    for reference in table.references:
        if reference.table in owners and reference.columns != used and reference.table != table.relation:
            yield f"{', '.join(reference.columns)} to {names[reference.table]}"


# --- columns --------------------------------------------------------------------------------------------


def _keys(
    table: FoundTable, found: Sequence[FoundTable], owners: Mapping[tuple[str, ...], OwnUnit | Via]
) -> frozenset[str]:
    """Columns that tell rows apart or refer to private tables; of a key of several columns those that do so by
    themselves. What refers to other tables may be shown as any column."""
    referred = (c for t in found for r in t.references if r.table == table.relation for c in r.ref_columns)
    primary = table.primary if len(table.primary) == 1 else ()
    return frozenset([*primary, *(c for r in table.references if r.table in owners for c in r.columns), *referred])


def _joins(
    table: FoundTable, found: Sequence[FoundTable], names: Mapping[tuple[str, ...], str]
) -> Iterator[tuple[str, str, str]]:
    tables = {t.relation: t for t in found}
    for reference in table.references:
        if reference.table != table.relation and _is_join(table, reference, tables):
            for column, other in zip(reference.columns, reference.ref_columns, strict=True):
                yield column, names[reference.table], other


def _is_join(table: FoundTable, reference: ForeignKey, tables: Mapping[tuple[str, ...], FoundTable]) -> bool:
    other = tables.get(reference.table)
    return other is not None and _have_same_type(table, reference.columns, other, reference.ref_columns)


def _have_same_type(one: FoundTable, ours: tuple[str, ...], other: FoundTable, theirs: tuple[str, ...]) -> bool:
    pairs = zip((_column(one, c) for c in ours), (_column(other, c) for c in theirs), strict=True)
    return all(
        a is not None
        and b is not None
        and not isinstance(a.type, Unservable)
        and not isinstance(b.type, Unservable)
        and are_comparable(a.type, b.type)
        for a, b in pairs
    )


def _are_servable(table: FoundTable, columns: tuple[str, ...]) -> bool:
    return _have_same_type(table, columns, table, columns)


def _column(table: FoundTable, name: str) -> FoundColumn | None:
    return next((c for c in table.columns if c.name == name), None)
