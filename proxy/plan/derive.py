"""Can a question be answered from the release of another one, and with how much noise?

By adding up cells of a finer grouping over public keys, by leaving out groups, by changing the order of keys, by
another aggregate of the same moments, or from one of several grouping sets. The rows must be the same, apart from
conditions that only choose groups, and a unit that the question would count in full must have been counted in full by
the release. See docs/claims/reuse.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from proxy.analysis.analyse import Analysed
from proxy.analysis.keys import KeyValue, PublicKey, key_identity
from proxy.plan.moments import MomentVector, UnitCount, UnitTotal, condition_of, is_linear
from proxy.plan.noise import noise_of
from proxy.plan.release_plan import AllKeys, ReleasePlan, vector_of
from proxy.plan.sets import Plan, SetsPlan
from proxy.sql.algebra import Call, ColumnRef, Literal, Member, Scalar
from proxy.sqltypes import SqlType

_ROUNDING = 1.0 - 2.0**-30
# of a key that a condition may choose groups by: the engine compares it as Python does
_COMPARED = frozenset(
    (SqlType.BOOL, SqlType.INT2, SqlType.INT4, SqlType.INT8, SqlType.TEXT, SqlType.VARCHAR, SqlType.DATE)
)
Key = tuple[KeyValue, ...]
StoredKey = Key  # of several grouping sets it begins with the number of its set


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """An answer computed from the release of another question.

    source: what was released, and paid, maybe with other grouping sets. shown: how it is finished, with its noise.
    groups: each key with those of the source's cells that add up to it.
    """

    source: Plan
    shown: ReleasePlan
    groups: tuple[tuple[Key, tuple[StoredKey, ...]], ...]

    @property
    def noise(self) -> float:
        """The variance of a sum, relative to that of other answers of the same question."""
        return self.shown.added / self.shown.cost.pico


def derive(wanted: ReleasePlan, source: Plan, factor: float, if_cheaper: float = 1.0) -> Derived | None:
    """The answer of `wanted` from the release of `source`, None if it cannot be had or is too noisy.

    factor: how many times the noise of a fresh release is acceptable. if_cheaper: that of a source which cost less than
    `wanted` would; who asks for more accuracy gets it.
    """
    most = factor if source.cost.pico >= wanted.cost.pico else if_cheaper
    if not isinstance(source, SetsPlan):
        return _derive(wanted, source, most)
    found = [(n, d) for n, s in enumerate(source.sets) if n not in source.together
             if (d := _derive(wanted, s.plan, most)) is not None]  # fmt: skip
    if not found:
        return None
    number, best = min(found, key=lambda item: item[1].noise)
    groups = tuple((key, tuple((number, *cell) for cell in cells)) for key, cells in best.groups)
    return replace(best, source=source, groups=groups)


def _derive(wanted: ReleasePlan, source: ReleasePlan, most: float) -> Derived | None:
    groups = _groups(wanted, source)
    if not groups:
        return None
    added = len(groups[0][1])
    if any(len(cells) != added for _, cells in groups) or not _counts_as_much(wanted, source, added):
        return None
    vector = _vector(wanted, source)
    if vector is None:
        return None
    shown = replace(
        wanted, vector=vector, allocation=source.allocation, scale=source.scale, sensitivity=source.sensitivity,
        sql=source.sql, cost=source.cost, fingerprint=source.fingerprint, sum_choices=(), added=added,
    )  # fmt: skip
    return Derived(source=source, shown=shown, groups=groups) if _is_near(wanted, shown, most) else None


def _is_near(wanted: ReleasePlan, shown: ReleasePlan, most: float) -> bool:
    """Whether no number's noise is more than `most` times that of a fresh release."""
    ours, fresh = shown.sds, wanted.sds
    pairs = zip(shown.vector.finishes, wanted.vector.finishes, strict=True)
    return all(noise_of(a, ours) <= most * noise_of(b, fresh) / _ROUNDING for a, b in pairs)


# --- which cells ------------------------------------------------------------------------------------------


def _groups(wanted: ReleasePlan, source: ReleasePlan) -> tuple[tuple[Key, tuple[Key, ...]], ...]:
    """Each key of `wanted` with the source's keys that make it up; nothing if the rows are not the same."""
    if wanted.parts or not isinstance(wanted.selection, AllKeys) or not isinstance(source.selection, AllKeys):
        return ()
    ours, theirs = wanted.analysed.owned.block, source.analysed.owned.block
    if (ours.scans, ours.joins) != (theirs.scans, theirs.joins) or not set(theirs.where) <= set(ours.where):
        return ()
    finer = [k for k in source.analysed.keys if isinstance(k, PublicKey)]
    scalars = [k.scalar for k in finer]
    if any(k.scalar not in scalars for k in wanted.analysed.keys):
        return ()
    places = [scalars.index(k.scalar) for k in wanted.analysed.keys]
    left = source.public_keys
    for condition in set(ours.where) - set(theirs.where):
        chosen = _chosen(condition, scalars, source.analysed)
        if chosen is None:
            return ()
        place, values = chosen
        left = tuple(key for key in left if key_identity(key[place]) in values)
    return _gathered(wanted, left, places)


def _gathered(
    wanted: ReleasePlan, cells: Sequence[Key], places: Sequence[int]
) -> tuple[tuple[Key, tuple[Key, ...]], ...]:
    """Nothing unless the cells make up exactly the keys that are wanted."""
    found: dict[tuple[object, ...], list[Key]] = {}
    for cell in cells:
        found.setdefault(tuple(key_identity(cell[place]) for place in places), []).append(cell)
    keys = {tuple(map(key_identity, key)): key for key in wanted.public_keys}
    return tuple((key, tuple(found[i])) for i, key in keys.items()) if keys.keys() == found.keys() else ()


def _chosen(condition: Scalar, keys: list[Scalar], analysed: Analysed) -> tuple[int, frozenset[object]] | None:
    """The key that a condition is about, and the values that pass; None if it does more than choose groups."""
    match condition:
        case Call("=", (scalar, Literal() as value)):
            items: tuple[Literal, ...] = (value,)
        case Member(scalar, items):
            pass
        case Call("not", (scalar,)) if scalar.type is SqlType.BOOL:
            items = (Literal(False, SqlType.BOOL),)
        case _:
            scalar, items = condition, (Literal(True, SqlType.BOOL),)
    if scalar not in keys or not _is_compared_plainly(scalar, items, analysed):
        return None
    return keys.index(scalar), frozenset(key_identity(i.value) for i in items)


def _is_compared_plainly(scalar: Scalar, items: tuple[Literal, ...], analysed: Analysed) -> bool:
    if scalar.type not in _COMPARED or any(i.type.family is not scalar.type.family for i in items):
        return False
    if any(type(i.value) is float for i in items):
        return False
    return not (isinstance(scalar, ColumnRef) and analysed.domains.column(scalar).case_blind)


# --- which rows count -------------------------------------------------------------------------------------


def _counts_as_much(wanted: ReleasePlan, source: ReleasePlan, added: int) -> bool:
    """Whether a unit that a fresh release would count in full was counted in full by the source."""
    ours, theirs = wanted.analysed, source.analysed
    if theirs.owned.is_one_row_per_unit:
        return True
    bounds = theirs.bounds
    if bounds.rows < ours.bounds.rows or not all(map(is_linear, source.vector.moments)):
        return False
    counts_all_rows = (
        bounds.rows_per_group >= bounds.rows
        and source.allocation.unit_norm >= source.allocation.row_norm * bounds.rows * _ROUNDING
    )
    if counts_all_rows:
        return True
    has_all_groups = bounds.groups >= min(bounds.rows, len(source.public_keys))
    is_same_rows = _conditions(source) <= _conditions(wanted)
    return added == 1 and bounds.rows_per_group >= ours.bounds.rows_per_group and has_all_groups and is_same_rows


def _conditions(plan: ReleasePlan) -> set[Scalar]:
    """Which rows count for some moment."""
    return {condition_of(m) for m in plan.vector.moments if not isinstance(m, (UnitCount, UnitTotal))}


# --- which numbers ----------------------------------------------------------------------------------------


def _vector(wanted: ReleasePlan, source: ReleasePlan) -> MomentVector | None:
    """The source's moments with the recipes of `wanted`; None if they do not give all of its aggregates."""
    theirs, ours = source.analysed.owned, wanted.analysed.owned
    both = tuple(dict.fromkeys((*theirs.block.aggregates, *ours.block.aggregates)))
    owned = replace(theirs, block=replace(theirs.block, aggregates=both))
    joint = vector_of(replace(source.analysed, owned=owned), source.distribution)
    if joint.moments != source.vector.moments:
        return None
    finishes = tuple(joint.finishes[both.index(a)] for a in ours.block.aggregates)
    return MomentVector(joint.moments, finishes)
