"""How is an aggregate over a local table computed, about which the dataset promises nothing?

As a release of rows that are a unit each, without noise and at no charge: what protects them was done before they were
stored. What is counted is turned into estimates of the truth as for any randomized column. See
docs/claims/local-tables.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from proxy.analysis.analyse import Analysed, analyse
from proxy.analysis.keys import public_product
from proxy.dp.mechanisms import Distribution
from proxy.dp.response import ApproximateRow, PureRow, RhoRow, of_row
from proxy.errors import Unsupported
from proxy.plan.charge import Cost, Unpromised
from proxy.plan.release_plan import AllKeys, KeysOfRows, PlanContext, ReleasePlan, with_sql
from proxy.plan.sql.moment_sql import VectorStatement
from proxy.plan.sql.statement import render
from proxy.plan.vector.allocation import Allocation
from proxy.plan.vector.moments import ROW_UNITS
from proxy.plan.vector.vector import moments_of
from proxy.policy.figures import figure
from proxy.policy.model import Privacy, Table
from proxy.sql.algebra.describe import describe_scalar
from proxy.sql.algebra.nodes import AggregateKind, Block
from proxy.sql.syntax.names import spelled

#: What is no sum over rows, and what to ask in its place of groups by x of n rows each.
_OVER_GROUPS: Mapping[AggregateKind, str] = MappingProxyType({
    AggregateKind.COUNT_DISTINCT: "count(x)", AggregateKind.MIN: "min(x)", AggregateKind.MAX: "max(x)",
    AggregateKind.PERCENTILE_CONT: "x, sum(n) OVER (ORDER BY x)",
    AggregateKind.PERCENTILE_DISC: "x, sum(n) OVER (ORDER BY x)",
    AggregateKind.MODE: "x, rank() OVER (ORDER BY n DESC)",
})  # fmt: skip


def plan_unpromised(block: Block, context: PlanContext) -> ReleasePlan:
    """The plan of a block over a local table. Raises HushError.

    Each moment counts whole rows, or a measure in steps of 2^-30 of half the width between its bounds.
    """
    if block.sets:
        raise Unsupported("grouping sets over a local table are not supported",
                          hint="Ask for each grouping in a statement of its own: it costs nothing.")  # fmt: skip
    analysed = analyse(block, context.tables, context.unique, context.privacy, context.lowered)
    assert analysed.owned.is_local, "it reads a local table, so it reads nothing that is promised"
    _check_aggregates(analysed)
    vector = moments_of(analysed, pure=False)
    weights = (1.0,) * len(vector.moments)
    allocation = Allocation(weights=weights, row_norm=1.0, cell_norm=1.0, unit_norm=1.0, exclusions=())
    scale, distribution = float(ROW_UNITS), Distribution.GAUSSIAN  # of what is drawn before rows are stored, nearly
    statement = VectorStatement(
        analysed=analysed, moments=vector.moments, allocation=allocation, distribution=distribution, scale=scale,
        salt="", time_zone=context.privacy.time_zone, dialect=context.dialect,
    )  # fmt: skip
    plan = ReleasePlan(
        analysed=analysed, vector=vector, allocation=allocation, distribution=distribution, sensitivity=0.0,
        scale=scale, selection=KeysOfRows() if analysed.private_keys else AllKeys(),
        public_keys=public_product(analysed.keys, analysed.joints), cost=Cost(0, 0), sum_choices=(), sql="", parts=(),
        salt="", fingerprint="", is_unpromised=True,
    )  # fmt: skip
    return with_sql(plan, render(statement))


def ticket_of(plan: ReleasePlan) -> Unpromised:
    """What lets an engine run the plan's SQL without a charge.

    Claim (docs/claims/local-tables.md): there is one only for SQL that reads rows of local and public tables alone.
    """
    promised = [s.table.name for s in plan.analysed.owned.block.every_scan if s.table.is_promised]
    if not plan.is_unpromised or promised or len(plan.stages) != 1:
        raise AssertionError(f"a plan without a charge reads what is promised: {promised}")
    return Unpromised(plan.sql)


def local_table(plan: ReleasePlan) -> Table:
    """The local table that a plan without a charge reads."""
    return next(s.table for s in plan.analysed.owned.block.scans if s.table.is_local)


def protected_words(table: Table, privacy: Privacy) -> str:
    """What a row's randomized columns together protect."""
    match of_row(table.randomized, privacy):
        case PureRow(epsilon):
            return f"epsilon {figure(epsilon)} for each row"
        case RhoRow(rho):
            return f"rho {figure(rho)} for each row"
        case ApproximateRow(rho, epsilon, delta):
            return f"rho {figure(rho)}, which is epsilon {figure(epsilon)} at delta {figure(delta)}, for each row"


def _check_aggregates(analysed: Analysed) -> None:
    block = analysed.owned.block
    (table,) = (s.table for s in block.scans if s.table.is_local)
    for aggregate in block.aggregates:
        if aggregate.kind in _OVER_GROUPS:
            of, what = describe_scalar(aggregate.argument), aggregate.kind.value
            raise Unsupported(
                f"{what} over a local table is not supported",
                hint="Group first: the groups are exact, and what is computed from them is PostgreSQL's. For example"
                f" SELECT {_OVER_GROUPS[aggregate.kind]} FROM (SELECT {of} AS x, count(*) AS n FROM"
                f" {spelled(table.name)} GROUP BY {of} HAVING count(*) > 0) AS g.",
            )
