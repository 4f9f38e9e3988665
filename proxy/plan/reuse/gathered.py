"""Which cells of a release make up each group of another question, and are its rows those of the question?

A cell is chosen, and put into a group, by what the question's conditions and keys make of the cell's own keys. That is
done only where they have one value for all rows of the cell. See docs/claims/reuse.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from proxy.analysis.absent import may_be_null
from proxy.analysis.domains import Domains
from proxy.analysis.evaluate import Choice, MissingValue
from proxy.analysis.key_values import KeyValues
from proxy.analysis.keys import NULL_KEY, KeyValue, canonical, key_identity, public_values
from proxy.plan.release_plan import AllKeys, ReleasePlan
from proxy.plan.reuse.in_cells import CellKey, CellReader
from proxy.sql.algebra.nodes import Block, Scalar, Span, columns_of

Made = tuple[Choice | None, ...]  # values of the keys of a group
Group = tuple[object, ...]  # what tells it from others
Groups = tuple[
    tuple[CellKey, tuple[CellKey, ...]], ...
]  # each key of an answer with those of the cells that make it up

_MOST_CHECKED = 2_000  # combinations of values of keys


class Gathering:
    """Which cells of releases make up each group of one question. Releases with the same cells are looked at once."""

    def __init__(self, wanted: ReleasePlan) -> None:
        self._wanted = wanted
        self._known: dict[object, Groups] = {}

    def groups(self, source: ReleasePlan) -> Groups:
        """Each key of the question with the source's keys that make it up; nothing if the rows are not the same.

        A key without cells has no rows: no cell that passes the question's conditions is in its group.
        """
        if not isinstance(self._wanted.selection, AllKeys) or not isinstance(source.selection, AllKeys):
            return ()
        ours, theirs = self._wanted.analysed.owned.block, source.analysed.owned.block
        if (ours.scans, ours.joins) != (theirs.scans, theirs.joins) or _reads_no_key(ours, source):
            return ()
        cells = (theirs.where, source.analysed.keys, source.analysed.joints)
        if cells not in self._known:
            self._known[cells] = _of_rows(self._wanted, source)
        return self._known[cells]


def _reads_no_key(ours: Block, source: ReleasePlan) -> bool:
    """Whether a condition that only one of both has reads columns and none of a key, as most that differ do."""
    theirs = source.analysed.owned.block
    keys = frozenset(c for k in source.analysed.keys for c in columns_of(k.scalar))
    differ = (*(c for c in theirs.where if c not in ours.where), *(c for c in ours.where if c not in theirs.where))
    return any((read := columns_of(c)) and read.isdisjoint(keys) for c in differ)


def _of_rows(wanted: ReleasePlan, source: ReleasePlan) -> Groups:
    """The cells of a release of the same tables and joins."""
    ours, theirs = wanted.analysed.owned.block, source.analysed.owned.block
    reader = CellReader(source)
    chosen = [c for c in ours.where if c not in theirs.where]
    if not _holds_all_rows(wanted, reader, chosen, [c for c in theirs.where if c not in ours.where]):
        return ()
    keys = [k.scalar for k in wanted.analysed.keys]
    if not all(reader.may_read(s) for s in (*chosen, *keys)):
        return ()
    return _groups(wanted, source, reader, chosen, keys)


def _groups(
    wanted: ReleasePlan, source: ReleasePlan, reader: CellReader, chosen: Sequence[Scalar], keys: Sequence[Scalar]
) -> Groups:
    """Nothing if a cell that may pass has no one value of a condition or key, or is in a group that is not wanted."""
    there = {tuple(map(key_identity, key)): key for key in wanted.public_keys}
    found: dict[Group, list[CellKey]] = {}
    passing, making, groups = [reader.of(c) for c in chosen], [reader.of(k) for k in keys], dict[Made, Group]()
    for cell in source.public_keys:
        passes = [told(cell) for told in passing]
        if None in passes:
            return ()
        if any(p is not True for p in passes):
            continue
        made = tuple(told(cell) for told in making)
        if None in made:
            return ()
        if made not in groups:
            groups[made] = tuple(_identity(v, k, wanted.analysed.domains) for v, k in zip(made, keys, strict=True))
        found.setdefault(groups[made], []).append(cell)
    is_whole = found and found.keys() <= there.keys()
    return tuple((key, tuple(found.get(i, ()))) for i, key in there.items()) if is_whole else ()


def _identity(value: Choice | None, key: Scalar, domains: Domains) -> object:
    assert value is not None, "what is not known is in no group"
    if isinstance(value, MissingValue):
        return NULL_KEY
    assert not isinstance(value, Span), "an interval is no key"
    return key_identity(canonical(value, key, domains))


def _holds_all_rows(
    wanted: ReleasePlan, reader: CellReader, chosen: Sequence[Scalar], further: Sequence[Scalar]
) -> bool:
    """Whether every row of the question passes the conditions that the source has and the question has not.

    They are looked at for every value that the keys which they read can have in rows of the question.
    """
    places = sorted({place for c in further for place in reader.places(c)})
    if not all(map(reader.may_read, further)):
        return False
    domains = wanted.analysed.domains
    listed, values, size = KeyValues(domains), list[tuple[KeyValue, ...]](), 1
    for place in places:
        scalar = reader.keys[place]
        found = public_values(scalar, domains, listed)
        if found is None or (size := size * (len(found) + 1)) > _MOST_CHECKED:
            return False
        values.append((*found, *((NULL_KEY,) if may_be_null(scalar, domains, listed) else ())))
    known = [c for c in chosen if reader.may_read(c) and set(reader.places(c)) <= set(places)]
    for some in product(*values):
        cell = _at(places, some, len(reader.keys))
        may_be = all(reader.of(c)(cell) in (True, None) for c in known)
        if may_be and any(reader.of(c)(cell) is not True for c in further):
            return False
    return True


def _at(places: Sequence[int], values: Sequence[KeyValue], size: int) -> CellKey:
    """A cell of which only some keys are known; what is asked of it reads no others."""
    cell: list[KeyValue] = [NULL_KEY] * size
    for place, value in zip(places, values, strict=True):
        cell[place] = value
    return tuple(cell)
