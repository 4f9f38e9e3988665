"""What may a query do with the value of the unit itself? Join and count it, nothing else."""

from __future__ import annotations

from proxy.errors import PolicyForbids
from proxy.policy.model import JoinKey, UnitColumns
from proxy.sql.algebra.links import equality
from proxy.sql.algebra.nodes import (
    Beside,
    Block,
    Call,
    ColumnRef,
    Grouped,
    Null,
    Scalar,
    Scan,
    UnionRows,
    Windowed,
    children,
)


def is_unit_value(block: Block, reference: ColumnRef) -> bool:
    """Whether a column shows the unit itself or a key the policy never shows."""
    table = block.scan(reference.scan).table
    column = table.column(reference.name)
    owned = isinstance(table.ownership, UnitColumns) and reference.name in table.ownership.columns
    return owned or (column is not None and column.key and not table.is_public)


def _is_always_unit_value(block: Block, reference: ColumnRef) -> bool:
    """Whether a column is such a value in all rows, not only in those of some SELECTs of a union: what else it is there
    would choose people where it is compared with them.
    """
    parts = _parts(block.scan(reference.scan), reference.name)
    return is_unit_value(block, reference) and all(
        isinstance(part, ColumnRef) and _is_always_unit_value(inner, part) for inner, part in parts
    )


def _parts(scan: Scan, name: str) -> list[tuple[Block, Scalar]]:
    """What a column of a sub-select is made of, NULL aside; nothing for one that holds the unit of its own row."""
    found: list[tuple[Block, Scalar]] = []
    match scan.rows:
        case UnionRows(columns, branches) if name in columns:
            found = [(b.block, b.columns[columns.index(name)]) for b in branches]
        case Grouped(inner, _, keys):
            found = [(inner, key) for own, key in keys if own == name]
        case Windowed(inner, passed, windows):
            beside = [(w.name, w.of.argument) for w in windows if isinstance(w.of, Beside)]
            found = [(inner, part) for own, part in (*passed, *beside) if own == name]
        case _:
            pass
    return [(inner, part) for inner, part in found if not isinstance(part, Null)]


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


def _is_declared(block: Block, pair: tuple[ColumnRef, ColumnRef]) -> bool:
    """Whether a key other than the unit meets the public column that the policy declares for it."""
    for ours, theirs in (pair, pair[::-1]):
        table, other = block.scan(ours.scan).table, block.scan(theirs.scan).table
        is_unit = isinstance(table.ownership, UnitColumns) and ours.name in table.ownership.columns
        if other.is_public and not is_unit and JoinKey(ours.name, other.name, theirs.name) in table.joins:
            return True
    return False


def check_condition(block: Block, condition: Scalar) -> None:
    """Raises PolicyForbids for a scalar that shows more of the unit than that it is there, or is another's."""
    pair = equality(condition)
    if pair is not None and (all(_is_always_unit_value(block, side) for side in pair) or _is_declared(block, pair)):
        return
    for reference in shown(condition):
        table = block.scan(reference.scan).table
        if is_unit_value(block, reference) and not table.unit_filter_allowed:
            raise PolicyForbids(
                f'"{table.name}"."{reference.name}" identifies the privacy unit and may only be joined or counted',
                hint="Write count(DISTINCT ...) of it, filter by attributes, or ask the admin for unit_filter: allow.",
            )
