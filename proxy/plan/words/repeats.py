"""What is said of a join that brings together rows of a unit with other rows of it, and what to write instead?

From the query and the policy alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.plan.release_plan import ReleasePlan
from proxy.plan.sets.sets import Plan
from proxy.plan.vector.moments import is_linear
from proxy.policy.model import Table
from proxy.sql.algebra.nodes import Stored
from proxy.sql.syntax.names import spelled

_ALIASES = "abcdefgh"


@dataclass(frozen=True, slots=True)
class Repeated:
    """what: the rows that meet. cut: what becomes of them. instead: what to write."""

    what: str
    cut: str
    instead: str


def repeated_rows(plan: Plan, unit: str) -> Repeated | None:
    """None where rows of a unit are met by one row of it each, or where only units are counted."""
    one = plan.plans[0]
    scans = one.analysed.owned.repeated
    if len(scans) < 2 or not (one.parts or any(map(is_linear, one.vector.moments))):
        return None
    named = [f'"{s.table.name}"' if isinstance(s.rows, Stored) else "a sub-select" for s in scans]
    bounds = one.analysed.bounds
    return Repeated(
        what=f"the join repeats rows: each of one {unit} in {named[0]} meets several of the same {unit} in {named[1]}",
        cut=f"At most {bounds.rows:,} joined rows of a {unit} count, {bounds.rows_per_group:,} in a group. "
            "What is beyond is left out, so that the answer may be far too small.",
        instead=_instead(one, [s.table for s in scans if isinstance(s.rows, Stored)], unit),
    )  # fmt: skip


def _instead(plan: ReleasePlan, tables: list[Table], unit: str) -> str:
    owners = {t.shown_unit for t in tables}
    if len(tables) < len(plan.analysed.owned.repeated) or len(owners) != 1 or owners == {()}:
        return f"Aggregate each of them by {unit} in a sub-select first, and join these."
    columns = ", ".join(map(spelled, *owners))
    parts = [
        f"(SELECT {columns}, count(*) AS n FROM {spelled(t.name)} GROUP BY {columns}) {alias}"
        for t, alias in zip(tables, _ALIASES, strict=False)
    ]
    first, *others = parts
    return f"Aggregate each by {unit} first: FROM {first} " + " ".join(f"JOIN {p} USING ({columns})" for p in others)
