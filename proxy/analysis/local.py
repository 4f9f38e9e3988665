"""Which rows may an aggregate over a local table read?

Its rows were randomized before they were stored, so they are outside the dataset's promise: nothing is charged for
them, and nothing of the promise may be among them. See docs/claims/local-tables.md.
"""

from __future__ import annotations

from proxy.errors import UnitNotJoined, Unsupported
from proxy.sql.algebra.nodes import Block, Scan, Stored
from proxy.sql.syntax.names import spelled


def reads_local(block: Block) -> bool:
    """Whether rows of a local table are among what a block reads, wherever they stand in it."""
    return any(s.table.is_local for s in block.every_scan)


def check_local(block: Block) -> Scan:
    """The one local table of a block that reads one. Raises UnitNotJoined, Unsupported.

    Claim: a block that passes reads stored rows of one local table and rows of public tables, and nothing else.
    """
    every = block.every_scan
    local = [s for s in every if s.table.is_local]
    first = local[0].table
    for scan in (s for s in every if isinstance(s.rows, Stored)):  # what others are made of is among them
        if scan.table.is_promised:
            raise _apart(f'the local table "{first.name}" cannot be joined with the private table "{scan.table.name}"')
    if len(local) > 1:
        raise _apart(f'the local table "{first.name}" cannot be joined with a local table')
    if any(not isinstance(s.rows, Stored) for s in every) or local[0] not in block.scans:
        raise Unsupported(
            f'rows of the local table "{first.name}" cannot be put together in a sub-select like this',
            hint=f"Ask for aggregates of the table itself: SELECT count(*) FROM {spelled(first.name)} WHERE ....",
        )
    return local[0]


def _apart(what: str) -> UnitNotJoined:
    return UnitNotJoined(
        what,
        detail="Answers about a local table are outside the dataset's promise, and belong to no unit.",
        hint="Ask each table in a CTE of its own, and join the groups:"
        " WITH a AS (SELECT k, count(*) FROM t GROUP BY k), b AS (SELECT k, count(*) FROM u GROUP BY k)"
        " SELECT * FROM a JOIN b USING (k).",
    )
