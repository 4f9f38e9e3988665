"""What is known of the rows of a sub-select that is a scan of its own: whose they are, their domains and bounds?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from proxy.analysis.domains import Domains
from proxy.analysis.key_values import KeyValues
from proxy.analysis.keys import PublicKey, classify_key, public_product
from proxy.analysis.owned import Owned
from proxy.analysis.unit_uses import check_condition
from proxy.analysis.unit_values import bounded, value_column
from proxy.errors import HushError
from proxy.policy.model import Column, FromPolicy, Limit, Table
from proxy.sql.algebra import Block, ColumnRef, Grouped, JoinKind, Scalar, Scan, UnitValue, UnitValueKind
from proxy.sql.joins import nullable

Own = Callable[[Block, int], Owned]


def with_known_scans(block: Block, after: int, own: Own) -> Block:
    """The block with the units of its sub-selects found, and the domains of their columns.

    own: finds the unit of a block, and numbers the scans it adds beyond a number. Raises HushError.
    """
    last = max(after, *(s.number for s in block.every_scan))
    found: dict[int, Scan] = {}
    for scan in (*block.scans, *(s for j in block.joins for s in j.scans)):
        if isinstance(scan.rows, Grouped):
            owned = own(scan.rows.block, last)
            last = max(last, *(s.number for s in owned.block.every_scan))
            found[scan.number] = _grouped(scan, scan.rows, owned)
    if not found:
        return block
    joins = []
    for join in block.joins:
        scans = tuple(found.get(s.number, s) for s in join.scans)
        joins.append(replace(join, scans=tuple(map(nullable, scans)) if join.kind is JoinKind.LEFT else scans))
    return replace(block, scans=tuple(found.get(s.number, s) for s in block.scans), joins=tuple(joins))


def _grouped(scan: Scan, rows: Grouped, owned: Owned) -> Scan:
    """Claim: each row is a function of the rows of the unit that it names. Without keys, a unit has at most one."""
    domains, table = Domains(owned.block), owned.bounds_from
    most = 1 if owned.is_one_row_per_unit else _limit(table.rows_per_unit, 1)
    for value in rows.values:
        check_condition(owned.block, value.where)
        if not _counts_column(value):
            check_condition(owned.block, value.argument)
    values = tuple(bounded(v, domains, most) for v in rows.values)
    known = {v.name: value_column(v, domains) for v in values}
    for name, key in rows.keys:
        if not isinstance(key, ColumnRef):
            check_condition(owned.block, key)
        column = scan.table.column(name)
        assert column is not None, "the binder gave each key a column"
        known[name] = _key_column(column, key, domains)
    bounds = _with_bounds(scan.table, owned, _most_rows(rows, domains, most))
    columns = tuple(known.get(c.name, c) for c in scan.table.columns)
    return replace(scan, table=replace(bounds, columns=columns), rows=replace(rows, block=owned.block, values=values))


def _counts_column(value: UnitValue) -> bool:
    counts = value.kind in (UnitValueKind.COUNT, UnitValueKind.COUNT_DISTINCT)
    return counts and isinstance(value.argument, ColumnRef)


def _key_column(column: Column, key: Scalar, domains: Domains) -> Column:
    """Keys are told apart as they are stored, so the policy's facts of a plain column are those of the key."""
    if isinstance(key, ColumnRef):
        source = domains.column(key)
        return replace(source, name=column.name, type=column.type, key=column.key, sum_bounds=column.sum_bounds)
    return replace(column, domain=domains.of(key), nullable=domains.may_be_null(key))


def _most_rows(rows: Grouped, domains: Domains, most: int) -> int:
    """Of a unit: no more than it has rows below, or than the keys have values that are public."""
    if not rows.keys:
        return 1
    try:
        listed = KeyValues(domains)
        keys = tuple(classify_key(k, domains, listed) for _, k in rows.keys)
        return min(most, len(public_product(keys))) if all(isinstance(k, PublicKey) for k in keys) else most
    except HushError:  # too many values: that is known of them
        return most


def _with_bounds(table: Table, owned: Owned, most: int) -> Table:
    """The bounds of the rows below, which a grouping only makes fewer."""
    source = owned.bounds_from
    if owned.is_one_row_per_unit or table.unit_unique:
        return replace(table, unit_unique=True)
    return replace(table, rows_per_unit=FromPolicy(most), rows_per_group=_lowered(source.rows_per_group, most),
                   groups_per_unit=_lowered(source.groups_per_unit, most),
                   keys_per_unit=source.keys_per_unit)  # fmt: skip


def _limit(limit: Limit, default: int) -> int:
    return limit.limit if isinstance(limit, FromPolicy) else default


def _lowered(limit: Limit, most: int) -> Limit:
    return FromPolicy(min(limit.limit, most)) if isinstance(limit, FromPolicy) else limit
