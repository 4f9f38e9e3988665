"""What are the numbers of an answer that is computed from the releases of other questions?

A function of noisy numbers and the plan alone: see docs/claims/reuse.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from proxy.dp.accuracy import project_nonnegative
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.reuse.derive import Derived, ReleaseSource
from proxy.plan.vector.noise import sd_of
from proxy.plan.vector.recipes import NOTHING, Count, Finish, Linear, Total
from proxy.release.consistent import Adjusted
from proxy.release.digits import last_digit, with_digits
from proxy.release.finish import Release, Released, finish, vectors_of
from proxy.release.keys import identity
from proxy.release.noisy import Check, NoisyCell, NoisyCells, in_order
from proxy.release.sets import adjusted_sets
from proxy.release.solved import MomentLists
from proxy.sql.query.block import Injected


def derived_cells(derived: Derived, cells: Sequence[NoisyCells]) -> NoisyCells:
    """Each key with the sums of the cells that make it up. cells: of each source."""
    first, read = derived.sources[0], [_read(s, of) for s, of in zip(derived.sources, cells, strict=True)]
    if first.chosen is not None:
        named = ((first.chosen.key(c.key), c) for c in read[0])
        return in_order(replace(c, key=key) for key, c in named if key is not None)
    made: dict[object, tuple[int, ...]] = {}
    parts: dict[object, tuple[tuple[int, ...], ...]] = {}
    for source, of in zip(derived.sources, read, strict=True):
        known = {identity(cell.key): cell for cell in of}
        nothing = (0,) * len(source.of.vector.moments)
        for key, stored in source.groups:
            found = [known[identity(s)] for s in stored]
            added = tuple(map(sum, zip(nothing, *(c.moments for c in found), strict=True)))
            made[identity(key)] = (*made.get(identity(key), ()), *added)
            parts[identity(key)] = found[0].parts if len(found) == 1 else ()
    return in_order(NoisyCell(key, made[identity(key)], parts[identity(key)]) for key, _ in first.groups)


def _read(source: ReleaseSource, cells: NoisyCells) -> Sequence[NoisyCell]:
    """The cells of the grouping set that is read."""
    if source.number is None:
        return cells.cells
    return [replace(c, key=c.key[1:]) for c in cells.cells if c.key[0] == source.number]


def finish_derived(
    derived: Derived, cells: Sequence[NoisyCells], columns: tuple[Injected, ...], *, nonnegative: bool, time_zone: str,
    check: Check = lambda: None, is_consistent: bool = False, is_rounded: bool = False,
) -> Release:  # fmt: skip
    """The injected relation. Groups of equally many cells are finished together: their noise is alike.

    is_consistent: numbers that one of several grouping sets shows are those that it shows.
    """
    every = derived_cells(derived, cells)
    finished = partial(
        finish, columns=columns, nonnegative=nonnegative, time_zone=time_zone, check=check, is_rounded=is_rounded
    )
    if not derived.sources[0].groups:  # private groups, none of which is added up
        return finished(derived.shown, every)
    if is_consistent and derived.is_of_a_set:
        shown = _shown_in_set(derived, every, cells[0], nonnegative=nonnegative, check=check, is_rounded=is_rounded)
        plan = replace(derived.shown, agreed=shown.agreed(derived.sources[0].of))
        return finished(plan, every, vectors=shown.vectors, settled=shown.settled)
    counts = {identity(key): n for (key, _), n in zip(derived.sources[0].groups, derived.counts(), strict=True)}
    settled = _settled(derived.shown, vectors_of(derived.shown, every)) if nonnegative else {}
    rows: dict[int, tuple[str | None, ...]] = {}
    for alike in sorted(set(counts.values())):
        places = [i for i, c in enumerate(every.cells) if counts[identity(c.key)] == alike]
        plan = derived.shown_of(alike)
        of_places = {number: [values[i] for i in places] for number, values in settled.items()}
        found = finished(
            plan,
            NoisyCells(tuple(every.cells[i] for i in places)),
            settled=_with_digits(plan, of_places) if is_rounded else of_places,
        )
        rows |= dict(zip(places, zip(*(c.values for c in found.columns), strict=True), strict=True))
    values = zip(*(rows[i] for i in range(len(every.cells))), strict=True) if columns else ()
    return Release(tuple(Released(c, v) for c, v in zip(columns, values, strict=True)), len(every.cells))


def _shown_in_set(
    derived: Derived, every: NoisyCells, stored: NoisyCells, *, nonnegative: bool, check: Check, is_rounded: bool
) -> Adjusted:
    """What a set shows of the answer's groups beside the other sets. Only its own aggregates are settled."""
    (source,) = derived.sources
    several, number = source.plan.several, source.number
    assert several is not None, "one of several sets is read"
    assert number is not None, "one of several sets is read"
    sets = adjusted_sets(several, stored, is_consistent=True, nonnegative=nonnegative, check=check,
                         is_rounded=is_rounded)  # fmt: skip
    own, of = sets[number]
    places = {identity(c.key): place for place, c in enumerate(own.cells)}
    at = {identity(key): places[identity(cell)] for key, (cell,) in source.groups}
    order = [at[identity(c.key)] for c in every.cells]
    ours, theirs = (p.analysed.owned.block.aggregates for p in (derived.shown, source.of))
    alike = {number: theirs.index(a) for number, a in enumerate(ours) if a in theirs}
    settled = {n: [of.settled[t][place] for place in order] for n, t in alike.items() if t in of.settled}
    return Adjusted([of.vectors[place] for place in order], of.sds, settled)


def _with_digits(plan: ReleasePlan, settled: dict[int, list[float]]) -> dict[int, list[float]]:
    sds = {number: sd_of(_signed(plan.vector.finishes[number])[0], plan.sds) for number in settled}
    return {n: [with_digits(v, last_digit(sds[n])) for v in values] for n, values in settled.items()}


def _settled(plan: ReleasePlan, vectors: MomentLists) -> dict[int, list[float]]:
    """Counts and sums of all groups, brought to numbers of one sign together."""
    found: dict[int, list[float]] = {}
    for number, recipe in enumerate(plan.vector.finishes):
        form, sign = _signed(recipe)
        if sign:
            raw = [sign * math.fsum(c * v[i] for i, c in form.terms) for v in vectors]
            found[number] = [sign * v + 0.0 for v in project_nonnegative(raw, math.fsum(raw))]
    return found


def _signed(recipe: Finish) -> tuple[Linear, int]:
    """A count or sum, and the sign that all its values are known to have, or 0."""
    match recipe:
        case Count(number):
            return number, 1
        case Total(value, sign):
            return value, sign
        case _:
            return NOTHING, 0
