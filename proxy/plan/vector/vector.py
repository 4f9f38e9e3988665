"""Which moments does each aggregate of a block need, and which recipe finishes it from them?

See docs/claims/joint-moments.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import assert_never

from proxy.analysis.analyse import Analysed, measure_bounds
from proxy.analysis.estimated import Weighted, most_repeated, weighted
from proxy.plan.parts.part_requests import apart, asked_of, elected, ranked
from proxy.plan.vector.moments import (
    HalfSum,
    Moment,
    MomentVector,
    ProductSum,
    QuarterSum,
    RowCount,
    ScaledSum,
    SquareSum,
    UnitCount,
    UnitTotal,
    sorted_vector,
)
from proxy.plan.vector.recipes import (
    NOTHING,
    Count,
    Finish,
    Linear,
    Mean,
    Measured,
    Relation,
    RelationKind,
    Spread,
    SpreadKind,
    Total,
    Verdict,
)
from proxy.plan.vector.weighing import (
    WeighedRows,
    counted,
    mean_of_constants,
    mean_of_counts,
    mean_of_values,
    spread_of_constants,
    spread_of_values,
    sum_of_constants,
    sum_of_counts,
    sum_of_values,
)
from proxy.sql.algebra.canonical import in_order
from proxy.sql.algebra.nodes import TRUE, Aggregate, AggregateKind, Call, Scalar, conjunction, conjuncts
from proxy.sqltypes import SqlType

Kind = AggregateKind
Totals = Mapping[Aggregate, UnitTotal]
NO_TOTALS: Totals = MappingProxyType({})
Centres = Mapping[Scalar, float]
NO_CENTRES: Centres = MappingProxyType({})
Scalars = tuple[Scalar, ...]

_SPREADS = {
    Kind.VAR_POP: (SpreadKind.VARIANCE, False), Kind.VAR_SAMP: (SpreadKind.VARIANCE, True),
    Kind.STDDEV_POP: (SpreadKind.DEVIATION, False), Kind.STDDEV_SAMP: (SpreadKind.DEVIATION, True),
    Kind.REGR_SXX: (SpreadKind.SQUARES, False), Kind.REGR_SYY: (SpreadKind.SQUARES, False),
}  # fmt: skip
_RELATIONS = {
    Kind.COVAR_POP: (RelationKind.COVARIANCE, False), Kind.COVAR_SAMP: (RelationKind.COVARIANCE, True),
    Kind.CORR: (RelationKind.CORRELATION, False), Kind.REGR_SXY: (RelationKind.PRODUCTS, False),
    Kind.REGR_SLOPE: (RelationKind.SLOPE, False), Kind.REGR_INTERCEPT: (RelationKind.INTERCEPT, False),
    Kind.REGR_R2: (RelationKind.DETERMINATION, False),
}  # fmt: skip
_SQUARES_OF_Y = (RelationKind.CORRELATION, RelationKind.DETERMINATION)
_SQUARES_OF_X = (*_SQUARES_OF_Y, RelationKind.SLOPE, RelationKind.INTERCEPT)
_CHOSEN = (Kind.MIN, Kind.MAX, Kind.PERCENTILE_CONT, Kind.PERCENTILE_DISC, Kind.MODE)
_COUNTS = (Kind.COUNT_ROWS, Kind.COUNT, Kind.REGR_COUNT, *_CHOSEN)  # the moments of which are counts of rows
_MEANS = (Kind.AVG, Kind.REGR_AVGX, Kind.REGR_AVGY)
_FIRST_MOMENTS = (Kind.SUM, *_MEANS)
_NO_COUNT = (Kind.COUNT_DISTINCT, Kind.COUNT_UNITS, Kind.BOOL_AND, Kind.BOOL_OR)  # count not the rows of their FILTER


def moments_of(
    analysed: Analysed, *, pure: bool, totals: Totals = NO_TOTALS, centres: Centres = NO_CENTRES
) -> MomentVector:
    """The joint vector of a block, without moments if all of it is computed apart. Raises MissingBounds.

    totals: sums to be clipped as totals of a unit. centres: public values about which averages are expected; those of
    measures of which second moments are wanted too are not used.
    """
    return _Vector(analysed, pure, totals, centres).build()


def averaged(aggregates: Sequence[Aggregate]) -> frozenset[Scalar]:
    """The measures of which averages are wanted and no second moments."""
    means = {m for a in aggregates if a.kind in _MEANS for m in _measures(a)}
    return frozenset(means - {m for a in aggregates if a.kind in _SPREADS or a.kind in _RELATIONS for m in a.arguments})


class _Vector:
    def __init__(self, analysed: Analysed, pure: bool, totals: Totals, centres: Centres) -> None:
        self._analysed = analysed
        self._pure = pure
        self._totals = totals
        self._aggregates = analysed.owned.block.aggregates
        of = averaged(self._aggregates)
        self._centres = {measure: centre for measure, centre in centres.items() if measure in of}
        self._weighted = {a: weighted(a, analysed.owned.block) for a in self._aggregates}
        plain = [p for a in self._aggregates for p in self._plain(a)]
        self._needs = {a: self._look_for_needs(a) for a in plain}  # read for each beside each other one
        self._pairs: dict[Scalar, Scalars] = {}
        self._asked = asked_of(self._aggregates)
        self._moments: dict[Moment, int] = {}
        self._filtered: dict[Scalar, list[Aggregate]] = {}  # those that count or measure rows, by their FILTER
        for a in plain:
            if a.kind not in _NO_COUNT and a not in totals:
                self._filtered.setdefault(a.where, []).append(a)
        self._beside_sums: dict[Scalar, frozenset[Scalars]] = {}

    def build(self) -> MomentVector:
        finishes = tuple(self._finish(a) for a in self._aggregates)
        if not self._moments and not self._asked:
            self._add(RowCount(TRUE, TRUE))
        return sorted_vector(MomentVector(tuple(self._moments), finishes))

    def _add(self, moment: Moment) -> int:
        return self._moments.setdefault(moment, len(self._moments))

    def _finish(self, aggregate: Aggregate) -> Finish:
        of = self._weighted[aggregate]
        if of is not None:
            times = most_repeated(aggregate, self._analysed.owned, self._analysed.bounds.rows)
            found = self._estimate(aggregate, of)
            return replace(found, response=found.response.repeated(times))
        match aggregate.kind:
            case Kind.COUNT_DISTINCT:
                return apart(aggregate, self._asked)
            case Kind.MIN | Kind.MAX | Kind.PERCENTILE_CONT | Kind.PERCENTILE_DISC:
                return ranked(aggregate, self._asked, self._number(aggregate.where, self._needed(aggregate)))
            case Kind.MODE:
                return elected(aggregate, self._asked, self._number(aggregate.where, self._needed(aggregate)))
            case Kind.COUNT_UNITS:
                return Count(Linear(((self._add(UnitCount(aggregate.where)), 1.0),)))
            case Kind.COUNT_ROWS | Kind.COUNT | Kind.REGR_COUNT:
                return Count(self._number(aggregate.where, self._needed(aggregate)))
            case Kind.SUM:
                return self._sum(aggregate)
            case Kind.AVG | Kind.REGR_AVGX | Kind.REGR_AVGY:
                return self._mean(aggregate, *_measures(aggregate))
            case Kind.VAR_POP | Kind.VAR_SAMP | Kind.STDDEV_POP | Kind.STDDEV_SAMP | Kind.REGR_SXX | Kind.REGR_SYY:
                return self._spread(aggregate, *_measures(aggregate))
            case Kind.BOOL_AND | Kind.BOOL_OR:
                return self._verdict(aggregate)
            case (
                Kind.COVAR_POP | Kind.COVAR_SAMP | Kind.CORR | Kind.REGR_SLOPE | Kind.REGR_INTERCEPT | Kind.REGR_R2
                | Kind.REGR_SXY
            ):  # fmt: skip
                return self._relation(aggregate)
            case _ as never:
                assert_never(never)

    # --- rows with weights ------------------------------------------------------------------------------

    def _plain(self, aggregate: Aggregate) -> tuple[Aggregate, ...]:
        """The aggregates of rows as they are stored that one is computed from."""
        of = self._weighted[aggregate]
        if of is None:
            return (aggregate,)
        if of.per_unit:
            return (
                *(replace(aggregate, kind=Kind.SUM, argument=c) for c in of.per_unit),
                replace(aggregate, kind=Kind.COUNT_ROWS, argument=TRUE),
            )
        kind = aggregate.kind if of.argument not in (None, TRUE) else Kind.COUNT_ROWS
        argument = of.argument or TRUE
        return tuple(replace(aggregate, kind=kind, argument=argument, where=c.where) for c in of.cells)

    def _estimate(self, aggregate: Aggregate, of: Weighted) -> Count | Total | Mean | Spread:
        is_sum = aggregate.kind is Kind.SUM
        if of.argument is not None and of.most:
            units = self._number(of.where, ())
            measured = [self._measured(of.where, c, ()) for c in of.per_unit]
            numbers = [units.times(m.middle).plus(m.total, m.half) for m in measured]
            return sum_of_counts(of, numbers) if is_sum else mean_of_counts(of, units, numbers)
        plain = self._plain(aggregate)
        numbers = [self._number(p.where, self._needed(p)) for p in plain]
        if aggregate.kind in (Kind.COUNT_ROWS, Kind.COUNT):
            return counted(of, numbers)
        if aggregate.kind in _SPREADS:
            return self._estimated_spread(aggregate, of, numbers)
        if of.argument is None:
            return sum_of_constants(of, numbers) if is_sum else mean_of_constants(of, numbers)
        measured = [self._measured(p.where, p.argument, self._needed(p)) for p in plain]
        rows = [WeighedRows(n, m) for n, m in zip(numbers, measured, strict=True)]
        lo, hi = measure_bounds(of.argument, self._analysed, of.where)
        if is_sum:
            return sum_of_values(of, rows, max(abs(lo), abs(hi)))
        scaled = self._scaled(of.where, of.argument, ())
        return mean_of_values(of, rows, (scaled.least, scaled.most))

    def _estimated_spread(self, aggregate: Aggregate, of: Weighted, numbers: Sequence[Linear]) -> Spread:
        kind, is_sample = _SPREADS[aggregate.kind]
        if of.argument is None:
            return spread_of_constants(kind, of, numbers, is_sample=is_sample)
        plain = self._plain(aggregate)
        measured = [self._measured(p.where, p.argument, self._needed(p), squares=True) for p in plain]
        rows = [WeighedRows(n, m) for n, m in zip(numbers, measured, strict=True)]
        return spread_of_values(kind, of, rows, is_sample=is_sample)

    # --- which rows -------------------------------------------------------------------------------------

    def _needed(self, aggregate: Aggregate) -> Scalars:
        """What must be present for a row to count, of what may be missing."""
        return self._needs[aggregate]

    def _look_for_needs(self, aggregate: Aggregate) -> Scalars:
        if aggregate.argument == TRUE:
            return ()
        return in_order(tuple(s for s in aggregate.arguments if self._analysed.domains.may_be_null(s)))

    def _under(self, where: Scalar) -> tuple[Aggregate, ...]:
        """The aggregates under one FILTER that count or measure its rows."""
        return tuple(self._filtered.get(where, ()))

    def _number(self, where: Scalar, needed: Scalars) -> Linear:
        """A count, from (n_x, n_null) where a nullable x is measured beside all rows."""
        if self._pure and (whole := self._divided(where, needed)):
            return Linear(tuple((self._add(m), 1.0) for m in whole))
        pair = self._counting_pair(where)
        if not needed and pair:
            present = self._number(where, pair)
            return Linear((*present.terms, (self._add(_rows(where, pair, absent=True)), 1.0)))
        return Linear(((self._add(_rows(where, needed)), 1.0),))

    def _counting_pair(self, where: Scalar) -> Scalars:
        """What is needed beside COUNT(*) under `where`, if all other aggregates there need the same; else nothing."""
        if where not in self._pairs:
            sets = {self._needed(a) for a in self._under(where)}
            needed = sets - {()}
            self._pairs[where] = needed.pop() if len(needed) == 1 and () in sets else ()
        return self._pairs[where]

    # --- pure accounting --------------------------------------------------------------------------------

    def _divided(self, where: Scalar, needed: Scalars) -> tuple[HalfSum | QuarterSum, ...]:
        """In pure accounting: the parts into which one measure divides these rows, which also give their number."""
        alike = [a for a in self._under(where) if self._needed(a) == needed and a.kind not in _COUNTS]
        alike = [a for a in alike if not self._is_alone(a)]
        measures = {m for a in alike for m in _measures(a)}
        if len(measures) != 1:
            return ()
        scaled = self._scaled(where, measures.pop(), needed)
        if scaled.half == 0:
            return ()
        if all(a.kind in _FIRST_MOMENTS for a in alike):
            return tuple(HalfSum(scaled, sign) for sign in (1, -1))
        return tuple(QuarterSum(scaled, sign) for sign in (1, -1, 0))

    # --- sums and averages ------------------------------------------------------------------------------

    def _is_alone(self, aggregate: Aggregate) -> bool:
        """A SUM with no count or average of the same rows beside it; of an estimate the number tells its error."""
        if aggregate.kind is not Kind.SUM or aggregate not in self._weighted or self._weighted[aggregate] is not None:
            return False
        needed = self._needed(aggregate)
        is_paired = bool(needed) and needed == self._counting_pair(aggregate.where)
        others = self._needs_beside_sums(aggregate.where)
        return not others if is_paired else needed not in others

    def _needs_beside_sums(self, where: Scalar) -> frozenset[Scalars]:
        """What must be present for what is no SUM under one FILTER."""
        if where not in self._beside_sums:
            others = (a for a in self._under(where) if a.kind is not Kind.SUM)
            self._beside_sums[where] = frozenset(map(self._needed, others))
        return self._beside_sums[where]

    def _sum(self, aggregate: Aggregate) -> Finish:
        if aggregate in self._totals or self._is_alone(aggregate):
            scaled = uncentred(aggregate, self._analysed)
            if scaled.half == 0:
                return Total(NOTHING)
            index = self._add(self._totals.get(aggregate, scaled))
            return Total(Linear(((index, scaled.half),)), self._sign(aggregate))
        needed = self._needed(aggregate)
        measured = self._measured(aggregate.where, aggregate.argument, needed)
        number = self._number(aggregate.where, needed)
        return Total(number.times(measured.middle).plus(measured.total, measured.half), self._sign(aggregate))

    def _sign(self, aggregate: Aggregate) -> int:
        lo, hi = measure_bounds(aggregate.argument, self._analysed, aggregate.where)
        return int(lo >= 0) - int(hi <= 0)

    def _mean(self, aggregate: Aggregate, argument: Scalar) -> Finish:
        needed = self._needed(aggregate)
        measured, scaled = (
            self._measured(aggregate.where, argument, needed),
            self._scaled(aggregate.where, argument, needed),
        )
        number = self._number(aggregate.where, needed)
        return Mean(number, measured.total, measured.middle, measured.half, scaled.least, scaled.most)

    # --- second moments ---------------------------------------------------------------------------------

    def _spread(self, aggregate: Aggregate, argument: Scalar) -> Finish:
        kind, is_sample = _SPREADS[aggregate.kind]
        needed = self._needed(aggregate)
        number = self._number(aggregate.where, needed)
        return Spread(kind, number, self._measured(aggregate.where, argument, needed, squares=True), is_sample)

    def _relation(self, aggregate: Aggregate) -> Finish:
        kind, is_sample = _RELATIONS[aggregate.kind]
        where, needed = aggregate.where, self._needed(aggregate)
        number = self._number(where, needed)
        is_one = aggregate.argument == aggregate.beside
        y = self._measured(where, aggregate.argument, needed, squares=kind in _SQUARES_OF_Y or is_one)
        x = self._measured(where, aggregate.beside, needed, squares=kind in _SQUARES_OF_X or is_one)
        if is_one or y.half == 0 or x.half == 0:
            return Relation(kind, number, y, x, y.squares if is_one else NOTHING, is_sample)
        scaled = [self._scaled(where, s, needed) for s in in_order(aggregate.arguments)]
        products = Linear(((self._add(ProductSum(scaled[0], scaled[1])), 1.0),))
        return Relation(kind, number, y, x, products, is_sample)

    def _measured(self, where: Scalar, argument: Scalar, needed: Scalars, *, squares: bool = False) -> Measured:
        """One measure over the rows that have all that is needed, as linear forms over the released moments."""
        scaled = self._scaled(where, argument, needed)
        if scaled.half == 0:
            return Measured(NOTHING, NOTHING, scaled.middle, 0.0)
        parts = self._divided(where, needed) if self._pure else ()
        if parts and parts[0].scaled == scaled:
            total = Linear(tuple((self._add(m), float(m.sign)) for m in parts if m.sign))
            squared = Linear(tuple((self._add(m), 1.0 if m.sign else -1.0) for m in parts)) if squares else NOTHING
            return Measured(total, squared, scaled.middle, scaled.half)
        total, squared = Linear(((self._add(scaled), 1.0),)), NOTHING
        if squares:  # z^2 = ((2 z^2 - 1) + 1) / 2
            squared = Linear(((self._add(SquareSum(scaled)), 0.5),)).plus(self._number(where, needed), 0.5)
        return Measured(total, squared, scaled.middle, scaled.half)

    def _scaled(self, where: Scalar, argument: Scalar, needed: Scalars) -> ScaledSum:
        """z of one measure. Raises MissingBounds."""
        lo, hi = measure_bounds(argument, self._analysed, where)
        given = next((s for s in needed if s != argument), TRUE)
        if argument not in self._centres or lo == hi:
            return ScaledSum(where, argument, lo / 2 + hi / 2, (hi - lo) / 2, given=given)
        middle = min(max(self._centres[argument], lo), hi)
        half = max(hi - middle, middle - lo)
        return ScaledSum(where, argument, middle, half, (lo - middle) / half, (hi - middle) / half, given)

    # --- conditions -------------------------------------------------------------------------------------

    def _verdict(self, aggregate: Aggregate) -> Finish:
        """Rows where the condition holds and rows where it fails: no row is both."""
        opposite = Call("not", (aggregate.argument,), SqlType.BOOL)
        holding, failing = (
            Linear(((self._add(RowCount(conjunction((*conjuncts(aggregate.where), test)), TRUE)), 1.0),))
            for test in (aggregate.argument, opposite)
        )
        return Verdict(holding, failing, aggregate.kind is Kind.BOOL_AND)


def uncentred(aggregate: Aggregate, analysed: Analysed) -> ScaledSum:
    """x/max(|lo|, |hi|) of a SUM. Raises MissingBounds."""
    lo, hi = measure_bounds(aggregate.argument, analysed, aggregate.where)
    largest = max(abs(lo), abs(hi))
    least, most = (lo / largest, hi / largest) if largest else (0.0, 0.0)
    return ScaledSum(aggregate.where, aggregate.argument, 0.0, largest, least, most)


def _measures(aggregate: Aggregate) -> Scalars:
    """The arguments whose values matter; of the others only whether they are there."""
    match aggregate.kind:
        case Kind.REGR_AVGX | Kind.REGR_SXX:
            return (aggregate.beside,)
        case Kind.REGR_AVGY | Kind.REGR_SYY:
            return (aggregate.argument,)
        case _:
            return aggregate.arguments


def _rows(where: Scalar, needed: Scalars, *, absent: bool = False) -> RowCount:
    of, given = (*needed, TRUE, TRUE)[:2]
    return RowCount(where, of, absent, given)
