"""Which combinations of public keys can a row be in, where several keys are computed from one column?

Claim: where a row's columns lie in their domains and the row passes the block's conditions, its keys, NULL included,
are among the combinations. They depend on policy and query only; a row of another combination is never looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from proxy.analysis.absent import may_be_null
from proxy.analysis.domains import Domains
from proxy.analysis.evaluate import MISSING, Choice, MissingValue, choices, reads_through
from proxy.analysis.grain import moments
from proxy.analysis.key_values import MOST_KEYS, KeyValues
from proxy.analysis.keys import NULL_KEY, Joint, Key, KeyValue, PublicKey, canonical, key_identity
from proxy.sql.algebra.nodes import Call, ColumnRef, Scalar, Span, children, columns_of
from proxy.sqltypes import Value

_MOST_VALUES = 5_000  # of the part that all keys are computed from
_MOST_PARTS = 100  # of the keys' expressions
_MOST_READERS = 3


def joints_of(
    keys: Sequence[Key], domains: Domains, listed: KeyValues, enforced: frozenset[ColumnRef]
) -> tuple[Joint, ...]:
    """One for each column that several public keys are computed from, if not all combinations are possible.

    enforced: columns that are said to be the same in all rows of a unit. Each key is the least of a unit's there, and
    where the data do not keep the word, two keys need not be of one row.
    """
    public = [k for k in keys if isinstance(k, PublicKey)]
    by_column: dict[ColumnRef, list[int]] = {}
    for place, key in enumerate(public):
        match tuple(columns_of(key.scalar)):
            case (column,):
                by_column.setdefault(column, []).append(place)
            case _:
                pass  # a constant, or more than can be looked at one by one
    found = (
        _joint(column, places, [public[p] for p in places], domains, listed)
        for column, places in by_column.items()
        if len(places) > 1 and column not in enforced and not domains.column(column).case_blind
    )
    return tuple(j for j in found if j is not None)


def _joint(
    column: ColumnRef, places: Sequence[int], keys: Sequence[PublicKey], domains: Domains, listed: KeyValues
) -> Joint | None:
    scalars = [k.scalar for k in keys]
    size = sum(map(_size, scalars))
    for part, values in _readers(column, scalars, domains, listed):
        if size > _MOST_PARTS or not listed.may_spend(len(values) * size):
            continue
        found = _combinations(keys, part, values, domains, listed)
        if found is not None:
            return Joint(tuple(places), found) if len(found) < math.prod(len(k.values) for k in keys) else None
    return None


def _readers(
    column: ColumnRef, scalars: Sequence[Scalar], domains: Domains, listed: KeyValues
) -> Iterator[tuple[Scalar, tuple[Value, ...]]]:
    """Parts that all keys are computed from, with all their values."""
    calls = [c for c in _calls(scalars[0]) if all(reads_through(s, c) for s in scalars)][:_MOST_READERS]
    known: list[tuple[Scalar, tuple[Value, ...] | None]] = [
        (column, listed.of(column)),
        (column, moments(scalars, column, domains.of(column), _MOST_VALUES)),
        *((c, listed.of(c)) for c in calls),
    ]
    yield from ((part, values) for part, values in known if values is not None and len(values) <= _MOST_VALUES)


def _calls(scalar: Scalar) -> Iterator[Call]:
    if isinstance(scalar, Call) and columns_of(scalar):
        yield scalar
    for child in children(scalar):
        yield from _calls(child)


def _size(scalar: Scalar) -> int:
    return 1 + sum(map(_size, children(scalar)))


def _combinations(
    keys: Sequence[PublicKey], part: Scalar, values: Sequence[Value], domains: Domains, listed: KeyValues
) -> tuple[tuple[KeyValue, ...], ...] | None:
    """What all keys are where the part has each of its values, or none; None where one is not known."""
    shown = [{key_identity(v): v for v in k.values} for k in keys]
    found: dict[tuple[KeyValue, ...], None] = {}
    every: list[Choice] = [*values, *((MISSING,) if may_be_null(part, domains, listed) else ())]
    for value in every:
        lists = [
            _shown(choices(k.scalar, {part: value}), k, known, domains) for k, known in zip(keys, shown, strict=True)
        ]
        if None in lists or len(found) > MOST_KEYS:
            return None
        found.update(dict.fromkeys(product(*(known for known in lists if known is not None))))
    return tuple(found)


def _shown(
    found: tuple[Choice, ...], key: PublicKey, shown: dict[object, KeyValue], domains: Domains
) -> list[KeyValue] | None:
    """The choices among the key's values; a choice that is none of them is dropped wherever it comes from."""
    if not found:
        return None
    identities = (_identity(choice, key, domains) for choice in found)
    return [shown[i] for i in identities if i in shown]


def _identity(choice: Choice, key: PublicKey, domains: Domains) -> object:
    if isinstance(choice, (MissingValue, Span)):
        return NULL_KEY
    return key_identity(canonical(choice, key.scalar, domains))
