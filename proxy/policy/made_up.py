"""Which rows can be shown in the place of a private table's, so that nothing in them is of the private table?

They follow from the policy: types, bounds, listed values, and keys that join. Rows, the engine, what was learned or
found of data, and the clock are not at hand here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from proxy.policy.made_keys import KeyMember, MadeKeys, keys_of
from proxy.policy.made_values import any_value
from proxy.policy.model import Column, Policy, Table

_ONE_NULL_IN = 20
_MOST_PLACES = 1 << 30


@dataclass(frozen=True, slots=True)
class OwnValues:
    """The values are the column's own."""


@dataclass(frozen=True, slots=True)
class DrawnFrom:
    """The values are those of a public table's column at these places, as long as it has rows."""

    table: str
    column: str
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeColumn:
    """A column's values in all rows, as PostgreSQL's texts; NULL is None."""

    column: Column
    values: tuple[str | None, ...]
    source: OwnValues | DrawnFrom = field(default_factory=OwnValues)


def made_up(policy: Policy, visible: Mapping[str, Table], name: str) -> tuple[MadeColumn, ...]:
    """The made-up rows of a private table, by column, those that clients may name, in the policy's order.

    Claim: a function of the policy's text, its data version and the declared tables that the asker may see; equal for
    all databases, with whatever profiles, salts, stored answers and clocks. visible: tables as the policy has them.
    """
    table, keys = visible[name], keys_of(visible)
    seed = hashlib.sha256(json.dumps([name, policy.digest, policy.data_version]).encode()).digest()
    return tuple(_made(table, c, keys, seed) for c in table.columns if not c.hidden)


def _made(table: Table, column: Column, keys: MadeKeys, seed: bytes) -> MadeColumn:
    member = KeyMember(table.name, column.name)
    rows = range(keys.rows[table.name])
    drawn = tuple(
        _draws(seed, column.name, [keys.unit(table, r) for r in rows] if _is_constant(table, column) else rows)
    )
    places = tuple(keys.place(member, row) for row in rows) if keys.is_linked(member) else ()
    numbers = places or tuple(number % _MOST_PLACES for number, _ in drawn)
    public = keys.public_source(member)
    source = OwnValues() if public is None else DrawnFrom(public.table, public.column, numbers)
    if places:
        return MadeColumn(column=column, values=tuple(keys.value(member, p) for p in places), source=source)
    never = not column.nullable or column.key or public is not None
    values = tuple(None if is_null and not never else any_value(column, number) for number, is_null in drawn)
    return MadeColumn(column=column, values=values, source=source)


def _is_constant(table: Table, column: Column) -> bool:
    """Whether all rows of a unit have the same value."""
    return column.name in table.unit_constant


def _draws(seed: bytes, column: str, of: range | list[int]) -> Iterator[tuple[int, bool]]:
    """A number for each row, or each unit, and whether NULL may stand in its place."""
    for place in of:
        drawn = hashlib.sha256(seed + json.dumps([column, place]).encode()).digest()
        yield int.from_bytes(drawn[:16], "big"), drawn[16] % _ONE_NULL_IN == 0
