"""Do the moments of a release, without noise, give back the plain answers of the query?

Only where bounding changes nothing: every unit has at most C rows in a group, K private keys and a
vector of at most B. Measures are clamped to their bounds; otherwise this is SQL's own meaning.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import assert_never

from proxy.analysis.analyse import measure_bounds
from proxy.plan.moments import Count, Finish, Linear, Mean, Total
from proxy.plan.release_plan import ReleasePlan
from proxy.sql.algebra import TRUE, Aggregate, AggregateKind
from tests.oracle.bounded import Exact, Key, Oracle
from tests.oracle.scalars import Reading, Row

_TOLERANCE = 1e-6  # of a row's largest value, for each row: rows are rounded to 2^-30 of it


def wrong_answers(oracle: Oracle, plan: ReleasePlan, exact: Exact) -> list[str]:
    """Aggregates whose exact moments do not add up to the answer; empty if bounding changed anything."""
    rows: dict[Key, list[Row]] = defaultdict(list)
    for key, row in oracle.unbounded_rows():
        rows[key].append(row)
    found = []
    for key, vector in exact.cells.items():
        values = [m * u for m, u in zip(vector, plan.units_per_grid, strict=True)]
        for aggregate, recipe in zip(plan.analysed.owned.block.aggregates, plan.vector.finishes, strict=True):
            if _is_undeclared(oracle, plan, aggregate, rows[key]):
                continue
            told = _told(recipe, values)
            truth, slack = _answer(oracle, plan, aggregate, rows[key])
            if not math.isclose(told, truth, rel_tol=1e-6, abs_tol=slack):
                found.append(f"{aggregate.kind.value} of key {key!r} is {truth}, its moments say {told}")
    return found


def _told(recipe: Finish, values: list[float]) -> float:
    """An aggregate as its moments give it; of an average its sum."""
    match recipe:
        case Count(form) | Total(form):
            return _linear(form, values)
        case Mean(number, total, middle, half):
            return middle * _linear(number, values) + half * _linear(total, values)
        case _ as never:
            assert_never(never)


def _linear(form: Linear, values: list[float]) -> float:
    return math.fsum(c * values[i] for i, c in form.terms)


def _answer(oracle: Oracle, plan: ReleasePlan, aggregate: Aggregate, rows: list[Row]) -> tuple[float, float]:
    """The aggregate over one group's rows (an average's sum), and how far rounding may lead away from it."""
    passing = [r for r in rows if aggregate.where == TRUE or oracle.evaluator.passes(aggregate.where, r)]
    match aggregate.kind:
        case AggregateKind.COUNT_UNITS:
            return float(len({oracle.unit_of(r) for r in passing})), _TOLERANCE * (1 + len(rows))
        case AggregateKind.COUNT_ROWS | AggregateKind.COUNT:
            present = [r for r in passing if _is_counted(oracle, plan, aggregate, r)]
            return float(len(present)), _TOLERANCE * (1 + len(rows))
        case AggregateKind.SUM | AggregateKind.AVG:
            lo, hi = measure_bounds(aggregate.argument, plan.analysed, aggregate.where)
            values = [v for r in passing if (v := oracle.measured(aggregate.argument, r)) is not None]
            total = math.fsum(min(max(v, lo), hi) for v in values if math.isfinite(v))
            return total, _TOLERANCE * max(abs(lo), abs(hi), 1e-9) * (1 + len(rows))


def _is_undeclared(oracle: Oracle, plan: ReleasePlan, aggregate: Aggregate, rows: list[Row]) -> bool:
    """Whether a measure is missing that the policy says is never missing: it stands for some value in between."""
    if aggregate.kind not in (AggregateKind.SUM, AggregateKind.AVG):
        return False
    if plan.analysed.domains.may_be_null(aggregate.argument):
        return False
    return any(oracle.measured(aggregate.argument, r) is None for r in rows)


def _is_counted(oracle: Oracle, plan: ReleasePlan, aggregate: Aggregate, row: Row) -> bool:
    argument = aggregate.argument
    if argument == TRUE or not plan.analysed.domains.may_be_null(argument):
        return True
    if argument.type.is_number:
        value = oracle.evaluator.value(argument, row, Reading.MEASURE)
        return value is not None and math.isfinite(float(value))
    return oracle.evaluator.value(argument, row, Reading.MEASURE) is not None
