"""Is what was inferred from a query's conditions true of the rows that meet them?

Bounds of measures and lists of public keys are clamped and filtered again in SQL, so a wrong one leaks nothing; it
gives a wrong answer. Rows with a value outside its declared domain are left out: nothing is promised of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from proxy.analysis.analyse import measure_bounds
from proxy.analysis.keys import NullKey, PublicKey
from proxy.plan.release_plan import ReleasePlan
from proxy.policy.model import Unknown
from proxy.sql.algebra.nodes import TRUE, Aggregate, AggregateKind, ColumnRef, JoinKind, columns_of
from tests.oracle.bounded import Key, Oracle
from tests.oracle.scalars import Row
from tests.oracle.values import equal

_NO_MEASURE = (AggregateKind.COUNT_ROWS, AggregateKind.COUNT, AggregateKind.COUNT_UNITS, AggregateKind.COUNT_DISTINCT,
               AggregateKind.REGR_COUNT, AggregateKind.BOOL_AND, AggregateKind.BOOL_OR)  # fmt: skip
_SLACK = 1e-9  # ends of intervals are doubles


def wrong_inferences(oracle: Oracle, plan: ReleasePlan) -> Iterator[str]:
    """Sentences about values outside of what the plan expects."""
    columns = _columns(plan)
    for key, row in oracle.unbounded_rows():
        if all(_is_declared(oracle, plan, column, row) for column in columns):
            yield from _wrong_keys(oracle, plan, key)
            for aggregate in plan.analysed.owned.block.aggregates:
                yield from _wrong_bounds(oracle, plan, aggregate, row)


def _columns(plan: ReleasePlan) -> frozenset[ColumnRef]:
    block = plan.analysed.owned.block
    scalars = (*block.conditions, *block.keys, *(s for a in block.aggregates for s in (*a.arguments, a.where)))
    asked = {s.number for j in block.joins if j.kind is not JoinKind.LEFT for s in j.scans}
    return frozenset(c for s in scalars for c in columns_of(s) if c.scan not in asked)


def _is_declared(oracle: Oracle, plan: ReleasePlan, reference: ColumnRef, row: Row) -> bool:
    column, value = plan.analysed.domains.column(reference), oracle.evaluator.raw(reference, row)
    if value is None:
        return column.nullable
    return isinstance(column.domain, Unknown) or oracle.evaluator.is_inside(reference, value)


def _wrong_keys(oracle: Oracle, plan: ReleasePlan, key: Key) -> Iterator[str]:
    for value, known in zip(key, plan.analysed.keys, strict=True):
        if not isinstance(known, PublicKey):
            continue
        shown = [None if isinstance(v, NullKey) else oracle.evaluator.constant(v, known.scalar.type)
                 for v in known.values]  # fmt: skip
        if not any(v is None if value is None else v is not None and _is_same(value, v) for v in shown):
            yield f"key {value!r} is not among the public ones"


def _is_same(value: object, shown: object) -> bool:
    if value == "NaN" or isinstance(value, bool) or isinstance(shown, bool):
        return value == shown
    if isinstance(value, str) or isinstance(shown, str):
        return value == shown
    assert isinstance(value, (int, float))
    assert isinstance(shown, (int, float))
    return equal(value, shown)


def _wrong_bounds(oracle: Oracle, plan: ReleasePlan, aggregate: Aggregate, row: Row) -> Iterator[str]:
    if aggregate.kind in _NO_MEASURE:
        return
    if aggregate.where != TRUE and not oracle.evaluator.passes(aggregate.where, row):
        return
    for argument in aggregate.arguments:
        value = oracle.measured(argument, row)
        if value is None or not math.isfinite(value):
            continue
        lo, hi = measure_bounds(argument, plan.analysed, aggregate.where)
        slack = _SLACK * max(abs(lo), abs(hi), 1e-300)
        if not lo - slack <= value <= hi + slack:
            yield f"{aggregate.kind.value} of {value!r} is not between {lo!r} and {hi!r}"
