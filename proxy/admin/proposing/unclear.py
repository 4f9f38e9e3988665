"""Which tables may well hold rows of units although no way that a policy can take leads from them to the unit?

Nobody should be told to open them to everybody, as may be done with tables that nothing connects with a unit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from proxy.engines.described import ForeignKey, FoundTable

RelationName = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unclear:
    """A person must say whose rows they are. columns: the table's that are called as the unit is elsewhere, if any."""

    reason: str
    columns: tuple[str, ...]


def unclear_tables(
    found: Sequence[FoundTable], names: Mapping[RelationName, str], owned: Mapping[RelationName, tuple[str, ...]]
) -> dict[RelationName, Unclear]:
    """Views, and tables that lead to a unit, to another such table or to one that may not be read, or name the unit.

    found: all tables. names: theirs in the policy. owned: those whose unit is known, with its columns there if any.
    """
    known = {table.relation for table in found}
    unclear: dict[RelationName, Unclear] = {}
    is_changed = True
    while is_changed:
        is_changed = False
        for table in (t for t in found if t.relation not in owned and t.relation not in unclear):
            alike = _alike(table, list(owned.values()))
            called = f"it has {' and '.join(alike)} as the unit is called, of another type" if alike else ""
            reason = next(_reasons(table, names, known, owned.keys(), unclear.keys()), called)
            if reason:
                unclear[table.relation] = Unclear(reason, alike)
                is_changed = True
    return unclear


def _reasons(
    table: FoundTable, names: Mapping[RelationName, str], known: Set[RelationName], owned: Set[RelationName],
    unclear: Set[RelationName],
) -> Iterator[str]:  # fmt: skip
    if table.is_view:
        read = ", ".join(names.get(r, ".".join(r)) for r in table.reads)
        yield f"a view{f' of {read}' if read else ''}, and no key says whose rows it shows"
    for reference in table.references:
        name = names.get(reference.table, ".".join(reference.table))
        if reference.table not in known:
            yield f"it refers to {name}, which this login may not read"
        elif reference.table in owned and reference.table != table.relation:
            yield f"it refers to {name} {_by(reference)}, a way that no policy can take"
        elif reference.table in unclear:
            yield f"it refers to {name}, of which it is not known whose rows they are"


def _by(reference: ForeignKey) -> str:
    return f"by {' and '.join(reference.columns)}"


def _alike(table: FoundTable, units: Collection[tuple[str, ...]]) -> tuple[str, ...]:
    """Columns called as the unit is in most other tables."""
    own = {column.name for column in table.columns}
    there = [unit for unit in units if unit and own.issuperset(unit) and unit != ("id",)]
    return max(sorted(set(there)), key=there.count, default=())
