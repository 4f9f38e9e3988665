"""What may a query do with the value of the unit itself? Join and count it, nothing else."""

from __future__ import annotations

from proxy.errors import PolicyForbids
from proxy.policy.model import UnitColumns
from proxy.sql.algebra import Block, Call, ColumnRef, Scalar, columns_in_order
from proxy.sql.links import equality


def is_unit_value(block: Block, reference: ColumnRef) -> bool:
    """Whether a column shows the unit itself or a key the policy never shows."""
    table = block.scan(reference.scan).table
    column = table.column(reference.name)
    owned = isinstance(table.ownership, UnitColumns) and reference.name in table.ownership.columns
    return owned or (column is not None and column.key and not table.is_public)


def _null_tested(condition: Scalar) -> frozenset[ColumnRef]:
    """Columns of which a condition asks for nothing but whether they are NULL, which names nobody."""
    match condition:
        case Call("is null", (ColumnRef() as column,)) | Call("not", (Call("is null", (ColumnRef() as column,)),)):
            return frozenset((column,))
        case _:
            return frozenset()


def check_condition(block: Block, condition: Scalar) -> None:
    """Raises PolicyForbids for a scalar that shows more of the unit than that it is there, or is another's."""
    pair = equality(condition)
    if pair is not None and is_unit_value(block, pair[0]) == is_unit_value(block, pair[1]):
        return
    told = _null_tested(condition)
    for reference in columns_in_order(condition):
        table = block.scan(reference.scan).table
        if reference in told:
            continue
        if is_unit_value(block, reference) and not table.unit_filter_allowed:
            raise PolicyForbids(
                f'"{table.name}"."{reference.name}" identifies the privacy unit and may only be joined or counted',
                hint="Filter by attributes instead, or ask the admin for unit_filter: allow.",
            )
