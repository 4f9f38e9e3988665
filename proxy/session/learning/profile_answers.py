"""What do the noisy answers say that units were asked about, and what profile of a table do they make?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from proxy.plan.charge import Request
from proxy.plan.profile.profile import BUCKETS, ColumnShares, PaidPart, ProfilePart, Sizes, TableProfile, UnitMeans
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.recipes import Count, Finish, Total
from proxy.policy.model import Policy, Table
from proxy.release.noisy import NoisyCells
from proxy.session.learning.profile_questions import Averaging, Sharing, Size, Sizing, UnitQuestion, allowed_rows

_OF_SIZES = {Size.ROWS: ProfilePart.ROWS, Size.SUM: ProfilePart.SUM, Size.GROUPS: ProfilePart.GROUPS}
ProfileAnswer = Sizes | UnitMeans | ColumnShares


def answer_of(question: UnitQuestion, plan: ReleasePlan, cells: NoisyCells) -> ProfileAnswer:
    """What a question's noisy numbers say."""
    match question:
        case Sizing():
            return sizes_of(question, plan, cells)
        case Averaging():
            return means_of(question, plan, cells)
        case Sharing():
            return shares_of(question, plan, cells)
        case _ as never:
            assert_never(never)


def sizes_of(of: Sizing, plan: ReleasePlan, cells: NoisyCells) -> Sizes:
    """What was counted, with the noise that its plan says it has."""
    counts = [0.0] * BUCKETS
    for cell in cells.cells:
        (bucket,), (units,) = cell.key, cell.moments
        assert isinstance(bucket, int), "buckets are numbered"
        counts[bucket] = units * plan.units_per_grid[0]
    return Sizes(of.least, tuple(counts), plan.sds[0])


def means_of(of: Averaging, plan: ReleasePlan, cells: NoisyCells) -> UnitMeans:
    """What was counted; of units with too few rows nothing is kept."""
    counts = [0.0] * (len(of.ends) - 1)
    for cell in cells.cells:
        (number,), (units,) = cell.key, cell.moments
        assert isinstance(number, int), "cells are numbered"
        if number:
            counts[number - 1] = units * plan.units_per_grid[0]
    return UnitMeans(of.column, of.ends, tuple(counts), plan.sds[0])


def shares_of(of: Sharing, plan: ReleasePlan, cells: NoisyCells) -> ColumnShares:
    """What was added up, with the noise that its plan says it has."""
    rows, pairs = [0.0] * of.cells.number, [0.0] * of.cells.number
    ways = [_moment_of(finish) for finish in plan.vector.finishes]
    for cell in cells.cells:
        (number,) = cell.key
        assert isinstance(number, int), "cells are numbered"
        for output, (moment, factor) in zip((rows, pairs), ways, strict=False):
            output[number] = cell.moments[moment] * plan.units_per_grid[moment] * factor
    sd = max(plan.sds[moment] * factor for moment, factor in ways)
    return ColumnShares(column=of.column, rows=tuple(rows), pairs=tuple(pairs), sd=sd)


def _moment_of(finish: Finish) -> tuple[int, float]:
    """The moment that an answer is, and what one of its units is worth."""
    assert isinstance(finish, (Count, Total)), "only counts and sums are asked for"
    ((moment, factor),) = (finish.number if isinstance(finish, Count) else finish.value).terms
    return moment, factor


def profile_of(
    table: Table,
    found: Sequence[tuple[UnitQuestion, ProfileAnswer]],
    policy: Policy,
    requests: Mapping[UnitQuestion, Request],
) -> TableProfile:
    """What was found of a table. requests: the release of each question, with its price."""
    shares = tuple(a for of, a in found if isinstance(a, ColumnShares) and of.table is table)
    own = [(of, a) for of, a in found if isinstance(of, Sizing) and isinstance(a, Sizes) and of.table is table]
    rows = next((sizes for of, sizes in own if of.of is Size.ROWS), None) or _one_each(own[0][1])
    groups = tuple((of.column, sizes) for of, sizes in own if of.of is Size.GROUPS)
    means = tuple(a for of, a in found if isinstance(a, UnitMeans) and of.table is table)
    sums = tuple((of.column, of.largest, sizes) for of, sizes in own if of.of is Size.SUM)
    return TableProfile(
        table=table.name, allowed=allowed_rows(table), rows=rows, sums=sums, data_version=policy.data_version,
        shares=shares, means=means, groups=groups,
        paid=tuple(PaidPart(*part, requests[of]) for of, _ in found if of.table is table and (part := _part_of(of))),
    )  # fmt: skip


def _part_of(question: UnitQuestion) -> tuple[ProfilePart, str] | None:
    """Which part of a profile a question is about; what the largest values are is told to administrators alone."""
    match question:
        case Averaging():
            return ProfilePart.MEANS, question.column
        case Sharing():
            return ProfilePart.SHARES, question.column
        case Sizing():
            part = _OF_SIZES.get(question.of)
            return None if part is None else (part, question.column)
        case _ as never:
            assert_never(never)


def _one_each(of: Sizes) -> Sizes:
    """The rows of units that have one each: as many as were counted by another size."""
    units = of.tail.units
    return Sizes(1.0, (units, *([0.0] * (BUCKETS - 1))), of.sd)
