"""Do the moments of a release, without noise, give back the plain answers of the query?

Only where bounding changes nothing: every unit has at most C rows in a group, K private keys and a
vector of at most B. Measures are clamped to their bounds; otherwise this is SQL's own meaning.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import assert_never

from proxy.analysis.analyse import measure_bounds
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.recipes import (
    Apart,
    Computed,
    Count,
    Linear,
    Mean,
    Measured,
    Ranked,
    Relation,
    Spread,
    Total,
    Verdict,
)
from proxy.sql.algebra.nodes import TRUE, Aggregate, AggregateKind, Scalar
from tests.oracle.bounded import Exact, Key, Oracle
from tests.oracle.scalars import Reading, Row

_TOLERANCE = 1e-6  # of a row's largest value, for each row: rows are rounded to 2^-30 of it, units to the grid


def wrong_answers(oracle: Oracle, plan: ReleasePlan, exact: Exact) -> list[str]:
    """Aggregates whose exact moments do not add up to the answer; empty if bounding changed anything."""
    rows: dict[Key, list[Row]] = defaultdict(list)
    for key, row in oracle.unbounded_rows():
        rows[key].append(row)
    found = []
    for key, vector in exact.cells.items():
        values = [m * u for m, u in zip(vector, plan.units_per_grid, strict=True)]
        for aggregate, recipe in zip(plan.analysed.owned.block.aggregates, plan.vector.finishes, strict=True):
            if isinstance(recipe, Apart):
                continue
            if _is_undeclared(oracle, plan, aggregate, rows[key]):
                continue
            truth = _answer(oracle, plan, aggregate, rows[key])
            for name, told in _told(recipe, values).items():
                expected, slack = truth[name]
                if not math.isclose(told, expected, rel_tol=1e-6, abs_tol=slack):
                    text = f"{name} of {aggregate.kind.value}"
                    found.append(f"{text} of key {key!r} is {expected}, its moments say {told}")
    return found


def _told(recipe: Count | Total | Computed | Ranked, values: list[float]) -> dict[str, float]:
    """The sums that an aggregate is made of, as its moments give them."""
    match recipe:
        case Count(form) | Ranked(number=form):
            return {"n": _linear(form, values)}
        case Total(form):
            return {"y": _linear(form, values)}
        case Mean(number, total, middle, half):
            return {"mean": middle * _linear(number, values) + half * _linear(total, values)}
        case Spread(_, number, measured):
            n = _linear(number, values)
            sums = _told_measure(measured, n, values)
            return {"n": n, "spread": sums["sum"], "spread squares": sums["squares"]}
        case Relation(_, number, y, x, products):
            return _told_relation(number, y, x, products, values)
        case Verdict(holding, failing):
            return {"holding": _linear(holding, values), "failing": _linear(failing, values)}
        case _ as never:
            assert_never(never)


def _told_measure(of: Measured, n: float, values: list[float]) -> dict[str, float]:
    """The sum of x, and that of its squares where it was asked for."""
    total = _linear(of.total, values)
    found = {"sum": of.middle * n + of.half * total}
    if of.squares.terms or of.half == 0:
        squares = of.half**2 * _linear(of.squares, values)
        found["squares"] = of.middle**2 * n + 2 * of.middle * of.half * total + squares
    return found


def _told_relation(number: Linear, y: Measured, x: Measured, products: Linear, values: list[float]) -> dict[str, float]:
    n = _linear(number, values)
    found = {"n": n}
    for name, measured in (("y", y), ("x", x)):
        for what, value in _told_measure(measured, n, values).items():
            found[name if what == "sum" else name * 2] = value
    sides = (x.middle * y.half * _linear(y.total, values), y.middle * x.half * _linear(x.total, values))
    found["yx"] = y.middle * x.middle * n + sum(sides) + y.half * x.half * _linear(products, values)
    return found


def _linear(form: Linear, values: list[float]) -> float:
    return math.fsum(c * values[i] for i, c in form.terms)


def _answer(oracle: Oracle, plan: ReleasePlan, aggregate: Aggregate, rows: list[Row]) -> dict[str, tuple[float, float]]:
    """By name, the sums that make the aggregate over one group's rows, and how far rounding may lead away from each."""
    passing = [r for r in rows if aggregate.where == TRUE or oracle.evaluator.passes(aggregate.where, r)]
    size = max(_TOLERANCE, *plan.units_per_grid) * (1 + len(rows))
    if aggregate.kind.is_quantile or aggregate.kind is AggregateKind.MODE:  # the cell is chosen apart
        return {"n": (float(sum(_is_counted(oracle, plan, aggregate.argument, r) for r in passing)), size)}
    match aggregate.kind:
        case AggregateKind.COUNT_UNITS:
            return {"n": (float(len({oracle.unit_of(r) for r in passing})), size)}
        case AggregateKind.COUNT_ROWS | AggregateKind.COUNT:
            return {"n": (float(sum(_is_counted(oracle, plan, aggregate.argument, r) for r in passing)), size)}
        case AggregateKind.BOOL_AND | AggregateKind.BOOL_OR:
            verdicts = [oracle.evaluator.value(aggregate.argument, r, Reading.TEST) for r in passing]
            return {"holding": (float(sum(v is True for v in verdicts)), size),
                    "failing": (float(sum(v is False for v in verdicts)), size)}  # fmt: skip
        case _:
            return _sums(oracle, plan, aggregate, passing, size)


def _sums(
    oracle: Oracle, plan: ReleasePlan, aggregate: Aggregate, passing: list[Row], size: float
) -> dict[str, tuple[float, float]]:
    """Sums over the rows that have all arguments, each clamped to its bounds."""
    bounds = [measure_bounds(a, plan.analysed, aggregate.where) for a in aggregate.arguments]
    complete = [r for r in passing if all(_is_counted(oracle, plan, a, r) for a in aggregate.arguments)]
    found: dict[str, tuple[float, float]] = {"n": (float(len(complete)), size)}
    columns, scales = [], [max(abs(lo), abs(hi), 1e-9) for lo, hi in bounds]
    for name, argument, (lo, hi), scale in zip("yx", aggregate.arguments, bounds, scales, strict=False):
        values = [_clamped(oracle.measured(argument, r), lo, hi) for r in complete]
        columns.append(values)
        found[name] = (math.fsum(values), size * scale)
        found[name * 2] = (math.fsum(v * v for v in values), size * scale * scale)
    if len(columns) == 2:
        products = math.fsum(y * x for y, x in zip(*columns, strict=True))
        found["yx"] = (products, size * math.prod(scales))
    is_x = aggregate.kind in (AggregateKind.REGR_AVGX, AggregateKind.REGR_SXX)
    found["mean"] = found["spread"] = found["x" if is_x else "y"]
    found["spread squares"] = found["xx" if is_x else "yy"]
    return found


def _clamped(value: float | None, lo: float, hi: float) -> float:
    """A row without a finite value adds nothing to a sum."""
    return min(max(value, lo), hi) if value is not None and math.isfinite(value) else 0.0


def _is_undeclared(oracle: Oracle, plan: ReleasePlan, aggregate: Aggregate, rows: list[Row]) -> bool:
    """Whether a measure is missing that the policy says is never missing: it stands for some value in between."""
    return any(
        (value := oracle.measured(argument, r)) is None or not math.isfinite(value)
        for argument in aggregate.arguments
        if argument.type.is_number and argument != TRUE and not plan.analysed.domains.may_be_null(argument)
        for r in rows
    )


def _is_counted(oracle: Oracle, plan: ReleasePlan, argument: Scalar, row: Row) -> bool:
    if argument == TRUE or not plan.analysed.domains.may_be_null(argument):
        return True
    if argument.type.is_number:
        value = oracle.evaluator.value(argument, row, Reading.MEASURE)
        return value is not None and math.isfinite(float(value))
    return oracle.evaluator.value(argument, row, Reading.MEASURE) is not None
