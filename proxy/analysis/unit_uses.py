"""What may a query do with the value of the unit itself? Join and count it, nothing else."""

from __future__ import annotations

from proxy.errors import PolicyForbids
from proxy.policy.model import UnitColumns
from proxy.sql.algebra import Block, Call, ColumnRef, Scalar, children
from proxy.sql.links import equality


def is_unit_value(block: Block, reference: ColumnRef) -> bool:
    """Whether a column shows the unit itself or a key the policy never shows."""
    table = block.scan(reference.scan).table
    column = table.column(reference.name)
    owned = isinstance(table.ownership, UnitColumns) and reference.name in table.ownership.columns
    return owned or (column is not None and column.key and not table.is_public)


def shown(scalar: Scalar) -> tuple[ColumnRef, ...]:
    """The columns of which a scalar tells more than whether they are NULL, which names nobody; always in one order."""
    return tuple(sorted(_shown(scalar), key=lambda c: (c.scan, c.name)))


def _shown(scalar: Scalar) -> frozenset[ColumnRef]:
    match scalar:
        case ColumnRef():
            return frozenset((scalar,))
        case Call("is null", (ColumnRef(),)):
            return frozenset()
        case _:
            return frozenset().union(*map(_shown, children(scalar)))


def check_condition(block: Block, condition: Scalar) -> None:
    """Raises PolicyForbids for a scalar that shows more of the unit than that it is there, or is another's."""
    pair = equality(condition)
    if pair is not None and is_unit_value(block, pair[0]) == is_unit_value(block, pair[1]):
        return
    for reference in shown(condition):
        table = block.scan(reference.scan).table
        if is_unit_value(block, reference) and not table.unit_filter_allowed:
            raise PolicyForbids(
                f'"{table.name}"."{reference.name}" identifies the privacy unit and may only be joined or counted',
                hint="Filter by attributes instead, or ask the admin for unit_filter: allow.",
            )
