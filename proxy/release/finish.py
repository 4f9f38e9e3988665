"""What does the client see of a noisy release, column by column?

Post-processing only: every number here is a function of noisy moments, public noise parameters and the
policy. See docs/claims/post-processing.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType

from proxy.analysis.keys import KeyValue, NullKey
from proxy.dp.accuracy import (
    Noisy,
    SharedNoise,
    half_width_beside_95,
    mean_interval_95,
    project_nonnegative,
    ratio_sd,
)
from proxy.dp.mechanisms import noise_sd
from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.parts.modes import ModePart
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.profile.bound_choice import FromProfile
from proxy.plan.profile.left_out import About
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.moments import UnitCount
from proxy.plan.vector.noise import sd_of
from proxy.plan.vector.recipes import Apart, Computed, Count, Linear, Mean, Ranked, Relation, Spread, Total, Verdict
from proxy.release.combined import combined_figures
from proxy.release.digits import decimal_text, last_digit, rounded, rounded_up
from proxy.release.estimates import estimated_figures
from proxy.release.figure import Figure
from proxy.release.modes import foremost, mode_column
from proxy.release.noisy import Check, NoisyCells
from proxy.release.ranks import RankedColumn, ranked_column
from proxy.release.solved import MomentLists, Solved, solved
from proxy.release.spreads import FormReader, relation_figure, spread_figure, verdict_figure
from proxy.sql.query.block import Carries, Injected
from proxy.sqltypes import Family, SqlType

Settled = Mapping[int, Sequence[float | None]]  # by the number of an aggregate, a value for each cell that has one
NOTHING_SETTLED: Settled = MappingProxyType({})
_UNEVEN = 1.5  # losses of single groups, relative to those of groups that lose alike
_BEYOND = 0.5  # of the bound, that a unit above it is taken to have more


@dataclass(frozen=True, slots=True)
class Released:
    """One column of an injected relation: PostgreSQL's text of each value, None for NULL."""

    column: Injected
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """A noisy relation that may be shown. Built here alone.

    quantiles: how many it shows; far: of them, whose rank may be off by more than a tenth of the rows.
    """

    columns: tuple[Released, ...]
    rows: int
    quantiles: int = 0
    far: int = 0


def finish(
    plan: ReleasePlan,
    cells: NoisyCells,
    columns: tuple[Injected, ...],
    *,
    nonnegative: bool,
    time_zone: str,
    check: Check = lambda: None,
    vectors: MomentLists | None = None,
    settled: Settled = NOTHING_SETTLED,
    is_rounded: bool = False,
) -> Release:
    """The injected relation of a release, rows in key order. nonnegative: counts go straight to the client.

    check: called before each column; what it raises ends the work. vectors: other moments than the cells' own.
    settled: counts and sums, by aggregate, that are shown as they are. is_rounded: others have the digits that their
    noise leaves.
    """
    if plan.elects:
        return _elected(plan, cells, columns, time_zone)
    of = solved(plan, cells, vectors_of(plan, cells) if vectors is None else vectors)
    plan, vectors = of.plan, of.vectors
    figures: list[list[Figure]] = []
    ranked: dict[int, RankedColumn] = {}
    for recipe in plan.vector.finishes:
        check()
        if isinstance(recipe, Ranked):
            ranked[len(figures)] = _ranked(recipe, plan, cells, _linear(recipe.number, vectors, plan))
            figures.append([])
            continue
        if isinstance(recipe, (Count, Total, Mean, Spread)) and recipe.response.parts:
            found = _estimates(recipe, of)
        elif isinstance(recipe, Apart):
            found = _apart(recipe, plan, cells, nonnegative=nonnegative)
        else:
            found = _figures(recipe, plan, vectors, nonnegative=nonnegative)
        found = [rounded(f) for f in found] if is_rounded else found
        figures.append(_settled(found, settled.get(len(figures))))
    released = []
    for column in columns:
        check()
        match column.carries:
            case Carries.KEY:
                values = tuple(_key_text(c.key[column.number], column.type, time_zone) for c in cells.cells)
            case Carries.GROUPING:
                values = ("0",) * len(cells.cells)
            case _ if column.formula is not None:
                combined = combined_figures(column.formula, plan, cells, vectors)
                values = tuple(_part_text(f, column.carries, is_rounded=is_rounded) for f in combined)
            case _ if column.number in ranked:
                told = ranked[column.number].shown(column.carries)
                values = tuple(_key_text(v, column.type, time_zone) for v in told)
            case Carries.VALUE:
                values = tuple(_value_text(f, column.type, is_rounded=is_rounded) for f in figures[column.number])
            case _:
                values = tuple(_part_text(f, column.carries, is_rounded=is_rounded) for f in figures[column.number])
        released.append(Released(column, values))
    chosen = [ranked[c.number] for c in columns if c.carries is Carries.VALUE and c.number in ranked]
    return Release(tuple(released), len(cells.cells), sum(r.quantiles for r in chosen), sum(r.far for r in chosen))


def _elected(plan: ReleasePlan, cells: NoisyCells, columns: tuple[Injected, ...], time_zone: str) -> Release:
    """A row for each group, with the value that most of its rows have as far as noisy numbers tell."""
    (recipe,) = plan.vector.finishes
    assert isinstance(recipe, Count), "rows of each value are counted"
    groups = foremost(plan, cells, _linear(recipe.number, vectors_of(plan, cells), plan))
    released = []
    for column in columns:
        is_key = column.carries is Carries.KEY
        values = tuple(_key_text(key[column.number] if is_key else v, column.type, time_zone) for key, v in groups)
        released.append(Released(column, values))
    return Release(tuple(released), len(groups))


def vectors_of(plan: ReleasePlan, cells: NoisyCells) -> MomentLists:
    """The moments of each cell in their own units."""
    units = plan.units_per_grid
    return [[m * u for m, u in zip(c.moments, units, strict=True)] for c in cells.cells]


def _settled(figures: list[Figure], values: Sequence[float | None] | None) -> list[Figure]:
    if values is None:
        return figures
    return [f if v is None else replace(f, value=v) for f, v in zip(figures, values, strict=True)]


# --- figures --------------------------------------------------------------------------------------------


def _apart(recipe: Apart, plan: ReleasePlan, cells: NoisyCells, *, nonnegative: bool) -> list[Figure]:
    """What a part of the release counts."""
    part = plan.parts[recipe.part]
    assert isinstance(part, DistinctPart), "what is counted apart is computed by such a part"
    results = [c.parts[recipe.part][recipe.place] for c in cells.cells]
    return _counts([Noisy(r / part.scale, part.sd) for r in results], plan, nonnegative=nonnegative)


def _ranked(recipe: Ranked, plan: ReleasePlan, cells: NoisyCells, numbers: list[Noisy]) -> RankedColumn:
    part = plan.parts[recipe.part]
    if isinstance(part, ModePart):
        return mode_column(recipe, part, cells, numbers)
    assert isinstance(part, QuantilePart), "what is ranked is computed by such a part"
    return ranked_column(recipe, part, cells, numbers)


def _estimates(recipe: Count | Total | Mean | Spread, of: Solved) -> list[Figure]:
    """Estimates over randomized values, which are of either sign."""
    found = estimated_figures(recipe, of)
    match recipe:
        case Count(form) | Total(form):
            return _widened(found, Missing(missing_of(form, of.plan)))
        case Mean():
            return _moved(found, _lost_of_mean(recipe, of.plan), recipe)
        case Spread():
            return found


def _figures(
    recipe: Count | Total | Computed, plan: ReleasePlan, vectors: list[list[float]], *, nonnegative: bool
) -> list[Figure]:
    match recipe:
        case Count(number):
            missing = Missing(missing_of(number, plan), _hidden_of(number, plan), 1)
            return _counts(_linear(number, vectors, plan), plan, missing, nonnegative=nonnegative)
        case Total(value, sign):
            missing = Missing(missing_of(value, plan), _hidden_of(value, plan), sign)
            return _signed(_linear(value, vectors, plan), plan, sign if nonnegative else 0, missing)
        case Mean(number=number, total=total):
            pairs = zip(_linear(number, vectors, plan), _linear(total, vectors, plan), strict=True)
            noises = _shared(recipe, plan)
            found = [_mean(recipe, n, t, noises) for n, t in pairs]
            return _moved(found, _lost_of_mean(recipe, plan), recipe)
        case Spread() | Relation() | Verdict():
            return _computed(recipe, plan, vectors)


def _computed(recipe: Spread | Relation | Verdict, plan: ReleasePlan, vectors: list[list[float]]) -> list[Figure]:
    reader = FormReader(recipe, plan)
    match recipe:
        case Spread():
            return [spread_figure(recipe, reader, v) for v in vectors]
        case Relation():
            return [relation_figure(recipe, reader, v) for v in vectors]
        case Verdict():
            return [verdict_figure(recipe, reader, v) for v in vectors]


def _linear(form: Linear, vectors: list[list[float]], plan: ReleasePlan) -> list[Noisy]:
    sd = sd_of(form, plan.sds)
    return [Noisy(math.fsum(c * v[i] for i, c in form.terms), sd) for v in vectors]


@dataclass(frozen=True, slots=True)
class Missing:
    """What bounding is expected to leave out of the counts or sums of all groups, relative to what is shown.

    hidden: what units that a profile cannot see may lack beside it, in standard deviations of a group's noise.
    sign: of all values, which are only made smaller; 0: they may have been made smaller or larger.
    """

    share: float = 0.0
    hidden: float = 0.0
    sign: int = 0

    def by_group(self, values: Sequence[float], sd: float) -> list[float]:
        """At most, of each group: half by its size, half by an equal share."""
        sizes, groups = [abs(v) for v in values], len(values)
        equal, uneven = math.fsum(sizes) / max(1, groups), _UNEVEN if groups > 1 else 1.0
        hidden = self.hidden * sd * float(groups) ** -0.25 / equal if equal else 0.0
        return [(uneven * self.share + hidden) * (size + equal) / 2.0 for size in sizes]


NOTHING_MISSING = Missing()


def _counts(
    noisy: list[Noisy], plan: ReleasePlan, missing: Missing = NOTHING_MISSING, *, nonnegative: bool
) -> list[Figure]:
    return _signed(noisy, plan, 1 if nonnegative else 0, missing)


def _signed(noisy: list[Noisy], plan: ReleasePlan, sign: int, missing: Missing = NOTHING_MISSING) -> list[Figure]:
    """Counts or sums of all groups, brought to numbers of one sign that add up to what they did; 0 leaves them.

    Intervals hold, beside noise, anything from nothing to all of what is expected to be missing.
    """
    values = [n.value for n in noisy]
    if sign:
        values = [sign * v for v in project_nonnegative([sign * v for v in values], sign * math.fsum(values))]
    least, most = (-math.inf if sign < 1 else 0.0), (math.inf if sign > -1 else 0.0)
    found = []
    lacking = missing.by_group(values, noisy[0].sd) if noisy else []
    for value, raw, lost in zip(values, noisy, lacking, strict=True):
        below, above = (0.0 if missing.sign > 0 else lost), (0.0 if missing.sign < 0 else lost)
        reach = half_width_beside_95(plan.distribution, raw.sd, below + above)
        low, high = (min(max(end, least), most) for end in (raw.value - reach - below, raw.value + reach + above))
        found.append(Figure(value + 0.0, raw.sd, low, high))
    return found


def missing_of(form: Linear, plan: ReleasePlan) -> float:
    """What bounding is expected to leave out of a count or sum of all groups, relative to what is shown of it."""
    is_bounded = any(not isinstance(plan.vector.moments[i], UnitCount) for i, _ in form.terms)
    return plan.left_out.missing if is_bounded and isinstance(plan.left_out, About) else 0.0


def _hidden_of(form: Linear, plan: ReleasePlan) -> float:
    """What units that a profile's noise hides may lack, half as much as the bound each, in sd of the noise.

    Whether they share a group or are in all of them nothing tells: see `Missing`, which takes the middle of both.
    """
    if not isinstance(plan.bound, FromProfile) or not missing_of(form, plan):
        return 0.0
    return _BEYOND * plan.bound.unseen * plan.allocation.unit_norm / noise_sd(plan.distribution, plan.scale)


def _widened(figures: list[Figure], missing: Missing) -> list[Figure]:
    """Intervals that hold what is expected to be missing, to either side."""
    lacking = missing.by_group([f.value or 0.0 for f in figures], 0.0)
    return [replace(f, low=f.low - m, high=f.high + m) for f, m in zip(figures, lacking, strict=True)]


def _lost_of_mean(recipe: Mean, plan: ReleasePlan) -> float:
    """What an average is expected to be moved by, where units are cut."""
    return plan.bound.missing_of(recipe) if isinstance(plan.bound, FromProfile) else 0.0


def _moved(figures: list[Figure], lost: float, recipe: Mean) -> list[Figure]:
    """Intervals of averages that hold what they are expected to be moved by, to either side, where units are cut."""
    lost *= _UNEVEN if len(figures) > 1 else 1.0
    least, most = recipe.ends
    return [
        f if f.value is None else replace(f, low=max(least, f.low - lost), high=min(most, f.high + lost))
        for f in figures
    ]


def _shared(recipe: Mean, plan: ReleasePlan) -> SharedNoise:
    """The noises of an average's total and number; of what agrees with other sets they are not told apart."""
    total, number = dict(recipe.total.terms), dict(recipe.number.terms)
    used = () if plan.agreed else sorted({*total, *number})
    return SharedNoise(
        plan.distribution, tuple((total.get(i, 0.0) * plan.sds[i], number.get(i, 0.0) * plan.sds[i]) for i in used)
    )


def _mean(recipe: Mean, number: Noisy, total: Noisy, noises: SharedNoise) -> Figure:
    """NULL when the noisy count is below max(1, 2 sd): a test of noisy numbers only."""
    lo, hi = recipe.ends
    if number.value < max(1.0, 2 * number.sd):
        return Figure(None, math.inf, lo, hi)
    value = recipe.middle + recipe.half * total.value / number.value
    interval = mean_interval_95(total=total, count=number, middle=recipe.middle, half=recipe.half, noises=noises)
    value, low, high = (min(max(v, lo), hi) for v in (value, interval.low, interval.high))
    return Figure(value, recipe.half * ratio_sd(total, number), low, high)


# --- text -----------------------------------------------------------------------------------------------


def _value_text(figure: Figure, kind: SqlType, *, is_rounded: bool) -> str | None:
    if figure.value is None or not math.isfinite(figure.value):
        return None
    if kind is SqlType.BOOL:
        return "t" if figure.value else "f"
    if kind.is_integer:
        return str(min(max(round(figure.value), -(2**63)), 2**63 - 1))
    if kind is SqlType.NUMERIC:
        return decimal_text(figure.value, last_digit(figure.sd, is_rounded=is_rounded), is_rounded=is_rounded)
    return repr(figure.value)


def _part_text(figure: Figure, carries: Carries, *, is_rounded: bool) -> str | None:
    place = last_digit(figure.sd, is_rounded=is_rounded)
    match carries:
        case Carries.LOW:
            part = -rounded_up(-figure.low, place)
        case Carries.HIGH:
            part = rounded_up(figure.high, place)
        case _:
            part = figure.sd
    return repr(part + 0.0) if math.isfinite(part) else None  # no -0.0


def _key_text(value: KeyValue, kind: SqlType, time_zone: str) -> str | None:
    match value:
        case NullKey():
            return None
        case bool():
            return "t" if value else "f"
        case int() | float() | Decimal():
            return _number_text(value, kind)
        case datetime():
            text = value.replace(tzinfo=None).isoformat(sep=" ")
            return f"{text} {time_zone}" if kind is SqlType.TIMESTAMPTZ else text
        case date():
            return value.isoformat()
        case str():
            return value.replace("\0", "?")  # PostgreSQL's text holds every character but this


def _number_text(value: int | float | Decimal, kind: SqlType) -> str:
    if kind.is_integer:
        return str(int(value))
    if kind.family is Family.NUMBER and kind is not SqlType.NUMERIC:
        return repr(float(value))
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        return "NaN" if number.is_nan() else str(number)
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
