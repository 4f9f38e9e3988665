"""How are the quantiles of one measure bounded, over which grid, and which statement makes their histogram?

See docs/claims/quantiles.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from proxy.analysis.keys import PrivateKey, public_product
from proxy.dp.accounting import of_pico_down
from proxy.dp.quantiles import MOST_MOVE, Ladder, is_near_end
from proxy.errors import PolicyForbids
from proxy.plan.asked import Quantiles
from proxy.plan.grid import Grid, describe, grid_of, most_cells
from proxy.plan.histogram import histogram
from proxy.plan.moments import RowCount
from proxy.plan.terms import Statement
from proxy.sql.algebra import TRUE
from proxy.sql.describe import describe_scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilePart:
    """The cells of some quantiles of one measure, for each group. pico: its share of the charge."""

    asked: Quantiles
    grid: Grid
    ladder: Ladder
    pico: int
    sql: str = field(repr=False)


def plan_quantiles(asked: Quantiles, statement: Statement, pico: int, factor: int) -> QuantilePart:
    """Bounds, grid and SQL of quantiles of one measure. factor: by how many units neighbours differ."""
    analysed = statement.analysed
    has_private_keys = any(isinstance(k, PrivateKey) for k in analysed.keys)
    most = most_cells(max(1, len(public_product(analysed.keys))), has_private_keys=has_private_keys)
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
        groups=groups, amount=of_pico_down(pico),
    )  # fmt: skip
    present = asked.of if analysed.domains.may_be_null(asked.of) else TRUE
    sql = histogram(statement, RowCount(asked.where, present), asked.of, grid, groups)
    return QuantilePart(asked=asked, grid=grid, ladder=ladder, pico=pico, sql=sql)


def name_of(asked: Quantiles) -> str:
    """What is looked for, in a few words."""
    fractions = ", ".join(f"{float(f):g}" for f in asked.fractions)
    return f"{'quantile' if len(asked.fractions) == 1 else 'quantiles'} {fractions} of {describe_scalar(asked.of)}"


def limits_of(part: QuantilePart) -> str:
    """What counts, and among which values is looked."""
    ladder = part.ladder
    return (
        f"{ladder.move} {'row' if ladder.move == 1 else 'rows'} per unit in a group,"
        f" {ladder.groups} full {'group' if ladder.groups == 1 else 'groups'}; {describe(part.grid)}"
    )


def told(part: QuantilePart, fraction: Fraction) -> str:
    """How an answer comes about."""
    text = "approximate: a public value of the grid, chosen by ranks"
    if is_near_end(fraction):
        text += f", {part.ladder.offset} rows or more from the end; NULL where the noisy count is below that"
    return text
