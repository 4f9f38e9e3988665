"""About how much of what is asked for do a release's bounds leave out?

A forecast from a profile, the policy and the text: never from the data. It decides about words and widths of intervals
alone. See docs/claims/left-out.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import assert_never

from proxy.analysis.analyse import Analysed
from proxy.analysis.owned import EveryRow
from proxy.dp.mechanisms import Distribution
from proxy.plan.profile.bound_choice import ChosenBound, FromProfile
from proxy.plan.profile.kept import KeptShare
from proxy.plan.profile.profile import TableProfile
from proxy.plan.profile.thinning import thinned
from proxy.plan.vector.allocation import Allocation
from proxy.plan.vector.moments import ROW_UNITS, Moment, UnitTotal, is_linear
from proxy.sql.algebra.nodes import ColumnRef

_OFF = 2.5  # times less or more than forecast is usual where only a tail is left out
_MOST = 0.95  # a larger share is told as this one
WORTH_SAYING = 0.01


@dataclass(frozen=True, slots=True)
class Complete:
    """Every row counts, as far as bounds on a unit's rows go."""


@dataclass(frozen=True, slots=True)
class Untold:
    """There is no profile that would tell. rows, per_group: what counts of a unit, in all and in a group.

    groups: of which a unit counts, where units are counted; else 0. growth: how much larger the noise is because the
    answer tells of how many units something is left out; 0 where it does not.
    """

    rows: int
    per_group: int
    groups: int = 0
    growth: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Shares of the whole of all groups together.

    share: about what is left out of counts and sums; least, most: its range. units: the share of units of which
    something is. is_filtered: forecast for more rows than are asked for, since nothing is known of some condition.
    outdated: data versions, of the profile and now, where they differ.
    """

    share: float
    least: float
    most: float
    units: float
    is_filtered: bool
    outdated: tuple[str, str] | None = None

    @property
    def is_worth_saying(self) -> bool:
        return self.share >= WORTH_SAYING or self.outdated is not None

    @property
    def missing(self) -> float:
        """What is left out, relative to what is shown."""
        return self.share / (1.0 - self.share)


LeftOut = Complete | Untold | About
COMPLETE = Complete()


def left_out(
    moments: tuple[Moment, ...], allocation: Allocation, bound: ChosenBound, analysed: Analysed,
    profile: TableProfile | None, distribution: Distribution, groups: int, kept: KeptShare,
) -> LeftOut:  # fmt: skip
    """What the bounds leave out, and whether other data than are asked for tell it. See `_forecast`."""
    found = _forecast(moments, allocation, bound, analysed, profile, distribution, groups, kept)
    if profile is None or not profile.newer or not isinstance(found, About):
        return found
    return replace(found, outdated=(profile.data_version, profile.newer))


def _forecast(
    moments: tuple[Moment, ...], allocation: Allocation, bound: ChosenBound, analysed: Analysed,
    profile: TableProfile | None, distribution: Distribution, groups: int, kept: KeptShare,
) -> LeftOut:  # fmt: skip
    """What the bounds leave out. profile: of the rows' table, if it is about them. groups: that are shown, if public.
    kept: what WHERE keeps.

    Claim: a function of the profile, the price, the policy and the text.
    """
    owned, bounds = analysed.owned, analysed.bounds
    is_whole = isinstance(owned.unit, EveryRow) or owned.is_one_row_per_unit or bounds.is_implied
    if is_whole and not allocation.is_chosen:
        return COMPLETE
    is_told = profile is not None and profile.rows.is_told
    if not any(is_linear(m) or isinstance(m, UnitTotal) for m in moments):
        return COMPLETE if is_told else _of_counted_units(moments, analysed, groups)
    if profile is None or not profile.rows.is_told:
        return Untold(bounds.rows, bounds.rows_per_group)
    tail, is_filtered = thinned(profile.rows.tail, kept), bool(kept.untold)
    if bounds.declared.rows:
        tail = tail.within(bounds.declared.rows)
    if not any(map(is_linear, moments)):
        return _of_totals([m for m in moments if isinstance(m, UnitTotal)], profile, is_filtered=is_filtered)
    if isinstance(bound, FromProfile):
        return _about(bound.loss / _OFF, bound.loss, bound.loss * _OFF, tail.units_above(bound.rows) / tail.units,
                      is_filtered=is_filtered)  # fmt: skip
    spread = max(1, min(bounds.groups, groups))
    rows = allocation.unit_norm / allocation.row_norm if allocation.row_norm > 0 else math.inf
    grows = float(spread) if distribution is Distribution.LAPLACE else math.sqrt(spread)
    even = min(float(bounds.rows), float(bounds.rows_per_group * spread), rows * grows)
    alone = even if bounds.declared.per_group else min(float(bounds.rows), float(bounds.rows_per_group), rows)
    least, most = tail.share_above(even), tail.share_above(alone)
    return _about(least, (least + most) / 2.0, most, tail.units_above(alone) / tail.units, is_filtered=is_filtered)


def _of_counted_units(moments: tuple[Moment, ...], analysed: Analysed, groups: int) -> LeftOut:
    """Units that are counted lose nothing but groups. groups: that are shown, if public."""
    bounds = analysed.bounds
    if not moments or analysed.has_constant_keys or not (analysed.private_keys or bounds.groups < groups):
        return COMPLETE
    most = min(bounds.groups, bounds.keys) if analysed.private_keys else bounds.groups
    return Untold(bounds.rows, bounds.rows_per_group, most)


def _about(least: float, share: float, most: float, units: float, *, is_filtered: bool) -> LeftOut:
    """With a filter the rows asked for may be of units of which nothing is left out."""
    share = min(share, _MOST)
    least = 0.0 if is_filtered else least
    return About(share=share, least=least, most=min(max(most, share), 1.0), units=min(units, 1.0),
                 is_filtered=is_filtered)  # fmt: skip


def _of_totals(totals: list[UnitTotal], profile: TableProfile, *, is_filtered: bool) -> LeftOut:
    """What is cut off the sums of units that are bounded as they are, in one group at least."""
    shares, units = [0.0], [0.0]
    for total in totals:
        of = total.scaled.of
        known = profile.sum_of(of.name) if isinstance(of, ColumnRef) else None
        if known is None or not known[1].is_told:
            return Untold(profile.most_rows, profile.most_rows)
        most = max(abs(total.least), abs(total.most)) / ROW_UNITS * total.scaled.half / known[0]
        shares.append(known[1].tail.share_above(most))
        units.append(known[1].tail.units_above(most) / known[1].tail.units)
    return _about(max(shares) / _OFF, max(shares), max(shares) * _OFF, max(units), is_filtered=is_filtered)


def told(of: LeftOut, unit: str) -> str:
    """In words for people; "" where nothing is to be said."""
    match of:
        case Complete():
            return ""
        case Untold(rows, per_group, groups, growth):
            within = f"{rows:,} rows" + (f", {per_group:,} in a group" if per_group < rows else "")
            limit = f"a {unit} counts in {groups:,} groups" if groups else f"of a {unit} count as much as {within}"
            if not growth:
                return f"{limit}, at most; without a profile nothing tells what is left out"
            return (
                f"{limit}, at most; the answer tells how many {unit}s have rows left out,"
                f" which makes its noise {100 * growth:.1g} % larger"
            )
        case About():
            whole = "all rows, before WHERE" if of.is_filtered else "the whole"
            by = ""
            if of.outdated is not None:
                by = f", by a profile of data version {of.outdated[0]}, while the data are of version {of.outdated[1]}"
            if of.share < WORTH_SAYING:
                return f"bounds leave out less than 1 % of {whole}{by}"
            return (
                f"bounds leave out about {_percent(of.share)} % ({_percent(of.least)} to {_percent(of.most)} %)"
                f" of {whole}, of about {_percent(of.units)} % of {unit}s{by}"
            )
        case _ as never:
            assert_never(never)


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.995 else "100"
