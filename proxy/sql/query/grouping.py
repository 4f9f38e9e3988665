"""Which sets of expressions does GROUP BY group by, once ROLLUP, CUBE and GROUPING SETS are written out?

As in PostgreSQL: each item of GROUP BY stands for one or more sets, and the items' sets are combined each with each.
"""

from __future__ import annotations

import math
from itertools import combinations, product

from sqlglot import exp

from proxy.errors import BadGroups
from proxy.sql.syntax.parse import position_of, unwrapped
from proxy.sql.syntax.refusal import only

MOST_SETS = 64  # of one SELECT; each has its own share of the charge

Nodes = tuple[exp.Expression, ...]


def grouping_sets(group: exp.Expression) -> list[Nodes]:
    """The sets that a GROUP BY clause means, in the order in which they are written. Raises HushError."""
    only(group, "expressions", "all")
    if math.prod(_number(item) for item in group.expressions) > MOST_SETS:
        raise BadGroups(
            f"GROUP BY stands for more than {MOST_SETS} grouping sets",
            detail="Each set has its own share of the charge, so many of them would drown in noise.",
            hint="List the sets that are needed: GROUP BY GROUPING SETS ((a, b), (a), ()).",
            position=position_of(group),
        )
    combined = product(*(_sets(item) for item in group.expressions))
    return [tuple(node for part in parts for node in part) for parts in combined]


def _number(node: exp.Expression) -> int:
    """How many sets an item stands for, without writing them out."""
    match node:
        case exp.Rollup():
            return len(node.expressions) + 1
        case exp.Cube():
            return 1 << len(node.expressions)
        case exp.GroupingSets():
            return sum(_number(item) for item in node.expressions)
        case _:
            return 1


def _sets(node: exp.Expression) -> list[Nodes]:
    match node:
        case exp.Rollup():
            parts = [_members(item) for item in node.expressions]
            return [_joined(parts[:size]) for size in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_members(item) for item in node.expressions]
            return [_joined(chosen) for size in range(len(parts), -1, -1) for chosen in combinations(parts, size)]
        case exp.GroupingSets():
            return [found for item in node.expressions for found in _sets(item)]
        case _:
            return [_members(node)]


def _members(node: exp.Expression) -> Nodes:
    """The expressions of one set: of a row its elements, however deep, and of () none."""
    node = unwrapped(node)
    if isinstance(node, exp.Tuple):
        return tuple(member for item in node.expressions for member in _members(item))
    return (node,)


def _joined(parts: list[Nodes] | tuple[Nodes, ...]) -> Nodes:
    return tuple(node for part in parts for node in part)
