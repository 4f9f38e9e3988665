"""How are the quantiles of one measure bounded, over which grid, and which statement makes their histogram?

See docs/claims/quantiles.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from proxy.analysis.keys import PrivateKey, public_product
from proxy.dp.accounting import of_pico_down
from proxy.dp.quantiles import MOST_MOVE, Ladder
from proxy.errors import PolicyForbids
from proxy.plan.parts.histogram import histogram
from proxy.plan.parts.part_requests import Quantiles
from proxy.plan.parts.quantile_grid import QuantileGrid, grid_of, most_cells
from proxy.plan.sql.moment_sql import VectorStatement
from proxy.plan.vector.moments import RowCount
from proxy.sql.algebra.nodes import TRUE


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilePart:
    """The cells of some quantiles of one measure, for each group. pico: its share of the charge."""

    asked: Quantiles
    grid: QuantileGrid
    ladder: Ladder
    pico: int
    sql: str = field(repr=False)


def plan_quantiles(asked: Quantiles, statement: VectorStatement, pico: int, factor: int) -> QuantilePart:
    """Bounds, grid and SQL of quantiles of one measure. factor: by how many units neighbours differ."""
    analysed = statement.analysed
    has_private_keys = any(isinstance(k, PrivateKey) for k in analysed.keys)
    most = most_cells(max(1, len(public_product(analysed.keys, analysed.joints))), has_private_keys=has_private_keys)
    grid = grid_of(asked.of, asked.where, analysed, statement.time_zone, most)
    move = analysed.bounds.rows_per_group * factor
    if move > MOST_MOVE:
        raise PolicyForbids(
            "the policy allows one person too many rows for quantiles, MIN and MAX",
            hint=f"SET hush.max_rows_per_group to {MOST_MOVE // factor} or less.",
        )
    groups = min(analysed.bounds.groups, -(-analysed.bounds.rows // analysed.bounds.rows_per_group))
    ladder = Ladder(
        distribution=statement.distribution, fractions=asked.fractions, cells=grid.cells, move=move,
        groups=groups, amount=of_pico_down(pico), bracketed=asked.bracketed,
    )  # fmt: skip
    present = asked.of if analysed.domains.may_be_null(asked.of) else TRUE
    sql = histogram(statement, RowCount(asked.where, present), asked.of, grid, groups)
    return QuantilePart(asked=asked, grid=grid, ladder=ladder, pico=pico, sql=sql)
