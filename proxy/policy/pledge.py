"""For whom does a policy promise what, so that it can be compared with what was promised before?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from proxy.policy.model import (
    DataFiles,
    LocalTable,
    Policy,
    Promise,
    PublicTable,
    RowUnit,
    Table,
    UnitColumns,
    UnitVia,
)


@dataclass(frozen=True, slots=True)
class RowsOwner:
    """Whose rows of a table are. parents: the names, if the unit is that of a parent: of the table and of its rows."""

    words: str
    parents: tuple[str, ...] = ()

    def is_same(self, other: RowsOwner) -> bool:
        """A parent may get another name or be moved, not both at once."""
        return self.words == other.words and (self.parents == other.parents or bool({*self.parents} & {*other.parents}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pledge:
    """What a policy promises.

    unit: its word. owners: whose the private rows are, by the names of tables and of their rows, in order.
    changed_from: the word of the unit that the policy gives up: all that was released for it is outside the promise.
    """

    dataset: str
    policy_digest: str
    promise: Promise
    unit: str
    owners: tuple[tuple[str, RowsOwner], ...]
    changed_from: str = ""


def pledge_of(policy: Policy) -> Pledge:
    """What a policy promises."""
    return Pledge(
        dataset=policy.dataset,
        policy_digest=policy.digest,
        promise=policy.privacy.promise,
        unit=policy.privacy.unit,
        owners=tuple(sorted(_owners(policy), key=lambda named: named[0])),
        changed_from=policy.unit_changed_from,
    )


def changed_unit(unit: str, owners: Mapping[str, RowsOwner], pledge: Pledge) -> str:
    """What is no more the same of whose rows they are as in policies before; "" if nothing is."""
    if pledge.unit != unit:
        return f"The unit was {unit} and is {pledge.unit} now"
    changed = ((name, owners.get(name, owner), owner) for name, owner in pledge.owners)
    return next((f"Of {name}, {_words(was)} no more, but {_words(now)}" for name, was, now in changed
                 if not now.is_same(was)), "")  # fmt: skip


def _words(owner: RowsOwner) -> str:
    return f"{owner.words} in {owner.parents[-1]}" if owner.parents else owner.words


def _owners(policy: Policy) -> Iterator[tuple[str, RowsOwner]]:
    """A table that gets another name is known by its rows, one whose rows are elsewhere by its name."""
    for table in policy.private_tables():
        owner = _owner(table, policy)
        for name in _names(table, policy):
            yield name, owner


def _names(table: Table, policy: Policy) -> tuple[str, ...]:
    name = f"table {table.name}"
    return (name,) if isinstance(policy.source, DataFiles) else (name, f"rows of {'.'.join(table.relation)}")


def _owner(table: Table, policy: Policy) -> RowsOwner:
    match table.ownership:
        case RowUnit():
            return RowsOwner("each row is a unit")
        case UnitColumns(columns):
            return RowsOwner(f"the unit is {', '.join(sorted(columns))}")
        case UnitVia(parent, on, parent_key):
            return RowsOwner(f"the unit is found by {on} = {parent_key}", _names(policy.tables[parent], policy))
        case PublicTable() | LocalTable():
            raise AssertionError("a private table belongs to a unit")
        case _ as never:
            assert_never(never)
