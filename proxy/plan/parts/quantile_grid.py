"""Among which public values are the quantiles of a measure looked for?

A grid divides the domain of the measure into cells of one width. Every row is in one of them, and an answer is the
middle of a cell: a public value, whatever the rows hold. Depends on policy and query only. `ends` of a grid are those
of a run of its cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import assert_never
from zoneinfo import ZoneInfo

from proxy.analysis.analyse import Analysed, measure_bounds
from proxy.errors import BadGroups, MissingBounds
from proxy.policy.figures import figure
from proxy.policy.model import Bounded, Domain, Listed
from proxy.sql.algebra.nodes import Scalar, columns_in_order
from proxy.sql.functions.domains.intervals import local_time, number_ends, time_range
from proxy.sql.render.dialect import quote
from proxy.sqltypes import SqlType, Value

MOST_CELLS = 1 << 16  # of one group
_ALL_CELLS = 1 << 20  # of all groups of a public domain together: as many rows may come back from the engine
_FEWEST_CELLS = 1 << 8  # fewer are no answer
_PRIVATE_CELLS = 1 << 10  # of each private key
_INT64 = (-(2**63), 2**63 - 1)
_DAY = 24 * 3600 * 10**6
_STEPS_OF_TIME = (  # microseconds that people count in
    *(n * 10**p for p in range(6) for n in (1, 2, 5)),
    *(n * 10**6 for n in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)),
)
_EXACT = Context(prec=400)  # enough for the digits of doubles


@dataclass(frozen=True, slots=True)
class Wholes:
    """Whole numbers from low to high; a cell holds `step` of them."""

    low: int
    high: int
    step: int

    @property
    def cells(self) -> int:
        return -(-(self.high - self.low + 1) // self.step)

    def value(self, cell: int) -> int:
        first = self.low + cell * self.step
        return (first + min(first + self.step - 1, self.high)) // 2

    def ends(self, first: int, last: int) -> tuple[int, int]:
        return self.low + first * self.step, min(self.low + (last + 1) * self.step - 1, self.high)


@dataclass(frozen=True, slots=True)
class Reals:
    """Numbers from low to high, in cells of width `step`."""

    low: float
    high: float
    step: Decimal

    @property
    def cells(self) -> int:
        return max(1, math.ceil(_EXACT.divide(_width(self.low, self.high), self.step)))

    def value(self, cell: int) -> Decimal:
        low = Decimal(repr(self.low))
        middle = _EXACT.add(low, _EXACT.multiply(self.step, Decimal(cell) + Decimal("0.5")))
        return min(middle, Decimal(repr(self.high)))

    def ends(self, first: int, last: int) -> tuple[Decimal, Decimal]:
        low = Decimal(repr(self.low))
        at = [_EXACT.add(low, _EXACT.multiply(self.step, Decimal(cell))) for cell in (first, last + 1)]
        return at[0], min(at[1], Decimal(repr(self.high)))


@dataclass(frozen=True, slots=True)
class Days:
    """Dates from low to high; a cell holds `step` days."""

    low: date
    high: date
    step: int

    @property
    def cells(self) -> int:
        return -(-((self.high - self.low).days + 1) // self.step)

    def value(self, cell: int) -> date:
        first = self.low + timedelta(days=cell * self.step)
        return first + timedelta(days=min(self.step - 1, (self.high - first).days) // 2)

    def ends(self, first: int, last: int) -> tuple[date, date]:
        days = min((last + 1) * self.step - 1, (self.high - self.low).days)
        return self.low + timedelta(days=first * self.step), self.low + timedelta(days=days)


@dataclass(frozen=True, slots=True)
class Moments:
    """Local times from low to high, in cells of `step` microseconds."""

    low: datetime
    high: datetime
    step: int

    @property
    def cells(self) -> int:
        return (self.high - self.low) // timedelta(microseconds=self.step) + 1

    def value(self, cell: int) -> datetime:
        first = self.low + timedelta(microseconds=cell * self.step)
        return first + min(timedelta(microseconds=self.step), self.high - first) // 2

    def ends(self, first: int, last: int) -> tuple[datetime, datetime]:
        step = timedelta(microseconds=self.step)
        return self.low + first * step, self.low + min((last + 1) * step, self.high - self.low)


QuantileGrid = Wholes | Reals | Days | Moments


def cells_left(groups: int, *, has_private_keys: bool) -> int:
    """How many cells each group may have, however few. groups: of the public domain."""
    return min(_PRIVATE_CELLS if has_private_keys else MOST_CELLS, _ALL_CELLS // groups)


def most_cells(groups: int, *, has_private_keys: bool) -> int:
    """The same where few cells are no answer. Raises BadGroups."""
    most = cells_left(groups, has_private_keys=has_private_keys)
    if most < _FEWEST_CELLS:
        raise BadGroups(
            "the grouping has too many possible keys for quantiles, MIN and MAX",
            detail=f"At most {_ALL_CELLS // _FEWEST_CELLS} public keys can each have one.",
            hint="Group by fewer columns, or by coarser values such as date_trunc('month', x).",
        )
    return most


def grid_of(scalar: Scalar, where: Scalar, analysed: Analysed, time_zone: str, most: int) -> QuantileGrid:
    """The grid of a measure of the rows that pass `where`, of at most so many cells. Raises MissingBounds."""
    domain = analysed.domains.of(scalar, where)
    if scalar.type.is_number:
        lo, hi = measure_bounds(scalar, analysed, where)
        if not scalar.type.is_integer:
            return Reals(lo, hi, _nice_step(_EXACT.divide(_width(lo, hi), most)) if lo < hi else Decimal(1))
        ends = number_ends(domain)
        assert ends is not None, "a measure with bounds has ends"
        low, high = (min(max(end, _INT64[0]), _INT64[1]) for end in (math.ceil(ends[0]), math.floor(ends[1])))
        high = max(low, high)
        return Wholes(low, high, _whole_step(-(-(high - low + 1) // most)))
    between = time_range(_local(domain, time_zone))
    if between is None:
        raise _no_times(scalar, where, analysed)
    first, last = between
    if scalar.type is SqlType.DATE:
        days = (last.date() - first.date()).days + 1
        return Days(first.date(), last.date(), -(-days // most))
    return Moments(first, last, _time_step((last - first) / timedelta(microseconds=1) / (most - 1)))


def _no_times(scalar: Scalar, where: Scalar, analysed: Analysed) -> MissingBounds:
    detail = "Quantiles, MIN and MAX are looked for among public values, which need a first and a last one."
    unbounded = [c for c in columns_in_order(scalar) if time_range(analysed.domains.of(c, where)) is None]
    if not unbounded or not unbounded[0].type.is_time:
        return MissingBounds("no bounds can be inferred for this expression", detail=detail,
                             hint="Write it over a date or timestamp column with bounds.")  # fmt: skip
    table, column = analysed.owned.block.scan(unbounded[0].scan).table.name, unbounded[0].name
    return MissingBounds(
        f'no bounds are known for "{table}"."{column}"', detail=detail,
        hint=f"Add a condition with times of your own, WHERE {quote(column)} BETWEEN '2020-01-01' AND '2029-12-31'."
        f" The admin can declare them for everybody: bounds: [2020-01-01, 2029-12-31]"
        f" at tables.{table}.columns.{column}.",
    )  # fmt: skip


def _width(low: float, high: float) -> Decimal:
    return _EXACT.subtract(Decimal(repr(high)), Decimal(repr(low)))


def _nice_step(least: Decimal) -> Decimal:
    """The smallest of 1, 2 and 5 times a power of ten that is not below."""
    power = Decimal(1).scaleb(least.adjusted())
    return next(step for step in (power * n for n in (1, 2, 5, 10)) if step >= least)


def _whole_step(least: int) -> int:
    return max(1, int(_nice_step(Decimal(least))))


def _time_step(least: float) -> int:
    found = next((step for step in _STEPS_OF_TIME if step >= least), None)
    return found or math.ceil(least / _DAY) * _DAY


def _local(domain: Domain, time_zone: str) -> Domain:
    """A domain of instants as local times of the policy's zone, as the engine computes with them."""

    def local(value: Value) -> Value:
        return local_time(value, ZoneInfo(time_zone)) if isinstance(value, datetime) else value

    match domain:
        case Bounded(lo, hi):
            return Bounded(local(lo), local(hi))
        case Listed(values):
            return Listed(tuple(local(v) for v in values))
        case _:
            return domain


def describe(grid: QuantileGrid) -> str:
    """The grid in a few words."""
    match grid:
        case Wholes(low, high, step):
            text = "every whole number" if step == 1 else f"whole numbers {step} apart"
            return f"{text} from {low} to {high}"
        case Reals(low, high, step):
            width, ends = format(step.normalize(), "f"), f"from {figure(low, 6)} to {figure(high, 6)}"
            return f"middles of {grid.cells} cells of width {width} {ends}"
        case Days(low, high, step):
            return f"{'every day' if step == 1 else f'days {step} apart'} from {low} to {high}"
        case Moments(low, high, step):
            return f"middles of {grid.cells} cells of {timedelta(microseconds=step)} from {low} to {high}"
        case _ as never:
            assert_never(never)
