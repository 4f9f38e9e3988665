"""How does a release of several grouping sets come out of its stages, and what does the client see of it?

Each set is published as a release of its own. The key of a stored cell begins with the number of its set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from proxy.dp.quantiles import Choose
from proxy.dp.samplers import Noise
from proxy.dp.samplers import choose as drawn
from proxy.plan.sets.sets import GroupingSet, Plan, SetsPlan
from proxy.release.consistent import Adjusted, make_consistent
from proxy.release.finish import Release, Released, finish, vectors_of
from proxy.release.noisy import Check, NoisyCell, NoisyCells, NoisyCut, check_size
from proxy.release.parts import publish_release
from proxy.release.raw import KeptKeys, RawResult
from proxy.sql.query.block import Carries, Injected

Columns = tuple[Injected, ...]


def publish_plan(
    plan: Plan,
    run: Callable[[int, KeptKeys], RawResult],
    noise: Noise,
    check: Check = lambda: None,
    choose: Choose = drawn,
) -> NoisyCells:
    """`publish_release` of each set of a plan, or of the whole."""
    if plan.several is None:
        (whole,) = plan.plans
        return publish_release(whole, run, noise, check, choose)
    first, cells, cut = 0, list[NoisyCell](), list[NoisyCut]()
    for number, one in enumerate(plan.plans):
        start = first
        found = publish_release(one, lambda stage, kept, start=start: run(start + stage, kept), noise, check, choose)  # type: ignore[misc]
        first += len(one.stages)
        cells += (NoisyCell((number, *c.key), c.moments, c.parts) for c in found.cells)
        cut += (replace(c, number=number) for c in found.cut)
        check_size([c.key for c in cells], 1)
    return NoisyCells(tuple(cells), tuple(cut))


def finish_plan(
    plan: Plan,
    cells: NoisyCells,
    columns: Columns,
    *,
    is_consistent: bool,
    nonnegative: bool,
    time_zone: str,
    check: Check = lambda: None,
    is_rounded: bool = False,
) -> Release:
    """The injected relation: that of `finish`, or those of all sets one after the other.

    is_consistent: totals become the sums of their parts.
    """
    several = plan.several
    if several is None:
        (whole,) = plan.plans
        return finish(whole, cells, columns, nonnegative=nonnegative, time_zone=time_zone, check=check,
                      is_rounded=is_rounded)  # fmt: skip
    finished = []
    each = adjusted_sets(several, cells, is_consistent=is_consistent, nonnegative=nonnegative, check=check,
                         is_rounded=is_rounded)  # fmt: skip
    for one, (own, of) in zip(several.sets, each, strict=True):
        there = tuple(c for c in (_within(c, one) for c in columns) if c is not None)
        finished.append(
            finish(replace(one.plan, agreed=of.agreed(one.plan)), own, there, nonnegative=nonnegative,
                   time_zone=time_zone, check=check, vectors=of.vectors, settled=of.settled, is_rounded=is_rounded)
        )  # fmt: skip
    return _together(several, columns, finished)


def adjusted_sets(
    plan: SetsPlan,
    cells: NoisyCells,
    *,
    is_consistent: bool,
    nonnegative: bool,
    check: Check = lambda: None,
    is_rounded: bool = False,
) -> list[tuple[NoisyCells, Adjusted]]:
    """The cells of each set, and what is shown of them."""
    of_sets = [_of_set(cells, number) for number in range(len(plan.sets))]
    adjusted = [Adjusted(vectors_of(p, c)) for p, c in zip(plan.plans, of_sets, strict=True)]
    if is_consistent:
        make_consistent(plan, of_sets, adjusted, nonnegative=nonnegative, check=check, is_rounded=is_rounded)
    return list(zip(of_sets, adjusted, strict=True))


def _of_set(cells: NoisyCells, number: int) -> NoisyCells:
    """The cells of one set, in key order as they were published."""
    return NoisyCells(
        tuple(NoisyCell(c.key[1:], c.moments, c.parts) for c in cells.cells if c.key[0] == number)
    )  # fmt: skip


def _within(column: Injected, one: GroupingSet) -> Injected | None:
    """A column in the words of a set's own plan; None if its value follows from the set alone."""
    match column.carries:
        case Carries.KEY if column.number in one.keys:
            return Injected(Carries.KEY, one.keys.index(column.number), column.type)
        case Carries.KEY | Carries.GROUPING:
            return None
        case _:
            return column


def _together(plan: SetsPlan, columns: Columns, finished: list[Release]) -> Release:
    found = []
    for column in columns:
        values: list[str | None] = []
        for number in plan.shown:
            one, release = plan.sets[number], finished[number]
            within = _within(column, one)
            if within is not None:
                values += next(c.values for c in release.columns if c.column == within)
            else:
                values += [_told(column, one)] * release.rows
        found.append(Released(column, tuple(values)))
    return Release(tuple(found), sum(finished[n].rows for n in plan.shown))


def _told(column: Injected, one: GroupingSet) -> str | None:
    """What every row of a set has: NULL for a key that it lacks; a bit for each that GROUPING names, leftmost first."""
    if column.carries is Carries.KEY:
        return None
    bits = "".join("0" if key in one.keys else "1" for key in column.keys)
    return str(int(bits, 2))
