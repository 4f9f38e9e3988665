"""What is known of the rows of a sub-select that is a scan of its own: whose they are, their domains and bounds?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from proxy.analysis.absent import may_be_null
from proxy.analysis.domains import Domains
from proxy.analysis.key_values import KeyValues
from proxy.analysis.keys import PublicKey, classify_key, public_product
from proxy.analysis.owned import Owned
from proxy.analysis.rows_together import known_together
from proxy.analysis.unit_uses import check_condition, is_unit_value
from proxy.analysis.unit_values import bounded, value_column
from proxy.errors import HushError
from proxy.policy.model import Bounded, BoundSource, Column, Domain, NotGiven, Table, Unknown, WrittenBound, limit_or
from proxy.sql.algebra.nodes import (
    Beside,
    Block,
    ColumnRef,
    Grouped,
    JoinKind,
    Placed,
    Scalar,
    Scan,
    Stored,
    UnionRows,
    UnitValue,
    UnitValueKind,
    Windowed,
    WindowFrame,
    WindowValue,
)
from proxy.sql.functions.domains.intervals import closed
from proxy.sql.relations.joins import nullable

OwnBlock = Callable[[Block, int], Owned]


def with_known_scans(block: Block, after: int, own: OwnBlock) -> Block:
    """The block with the units of its sub-selects found, and the domains of their columns.

    own: finds the unit of a block, and numbers the scans it adds beyond a number. Raises HushError.
    """
    last = max(after, *(s.number for s in block.every_scan))
    found: dict[int, Scan] = {}
    for scan in (*block.scans, *(s for j in block.joins for s in j.scans)):
        owned = []
        for inner in scan.below:
            owned.append(own(inner, last))
            last = max(last, *(s.number for s in owned[-1].block.every_scan))
        if owned:
            found[scan.number] = _known(scan, tuple(owned))
    if not found:
        return block
    joins = []
    for join in block.joins:
        scans = tuple(found.get(s.number, s) for s in join.scans)
        joins.append(replace(join, scans=tuple(map(nullable, scans)) if join.kind is JoinKind.LEFT else scans))
    return replace(block, scans=tuple(found.get(s.number, s) for s in block.scans), joins=tuple(joins))


def _known(scan: Scan, owned: tuple[Owned, ...]) -> Scan:
    match scan.rows:
        case Stored():
            return scan
        case Grouped() as rows:
            return _grouped(scan, rows, owned[0])
        case Windowed() as rows:
            return _windowed(scan, rows, owned[0])
        case UnionRows() as rows:
            return known_together(scan, rows, owned)
        case _ as never:
            assert_never(never)


def _grouped(scan: Scan, rows: Grouped, owned: Owned) -> Scan:
    """Claim: each row is a function of the rows of the unit that it names. Without keys, a unit has at most one."""
    domains, table = Domains(owned.block), owned.bounds_from
    listed = KeyValues(domains)
    most = 1 if owned.is_one_row_per_unit else limit_or(table.rows_per_unit, 1)
    for value in rows.values:
        _check_value(value, owned.block)
    values = tuple(bounded(v, domains, most) for v in rows.values)
    known = {v.name: value_column(v, domains) for v in values}
    for name, key in rows.keys:
        if not isinstance(key, ColumnRef):
            check_condition(owned.block, key)
        column = scan.table.column(name)
        assert column is not None, "the binder gave each key a column"
        known[name] = _key_column(column, key, owned.block, domains, listed)
    bounds = _with_bounds(scan.table, owned, _most_rows(rows, domains, listed, most))
    columns = tuple(known.get(c.name, c) for c in scan.table.columns)
    return replace(scan, table=replace(bounds, columns=columns), rows=replace(rows, block=owned.block, values=values))


def _check_value(value: UnitValue, block: Block) -> None:
    check_condition(block, value.where)
    if not _counts_column(value):
        check_condition(block, value.argument)


def _counts_column(value: UnitValue) -> bool:
    counts = value.kind in (UnitValueKind.COUNT, UnitValueKind.COUNT_DISTINCT)
    return counts and isinstance(value.argument, ColumnRef)


def _key_column(column: Column, key: Scalar, block: Block, domains: Domains, listed: KeyValues) -> Column:
    """Keys are told apart as they are stored, so the policy's facts of a plain column are those of the key.

    What shows the unit goes on to do so, also the unit of a row that an outer join has met.
    """
    if isinstance(key, ColumnRef):
        source = domains.column(key)
        is_key = source.key or is_unit_value(block, key)
        return replace(source, name=column.name, type=column.type, key=is_key, sum_bounds=column.sum_bounds)
    return replace(column, domain=closed(domains.of(key)), nullable=may_be_null(key, domains, listed))


# --- windows --------------------------------------------------------------------------------------------------


def _windowed(scan: Scan, rows: Windowed, owned: Owned) -> Scan:
    """Claim: the rows of a unit are a function of the multiset of its rows below, of which there are as many.

    Rows that are equal in all columns are alike, and all others have an order of their own.
    """
    domains, table = Domains(owned.block), owned.bounds_from
    most = 1 if owned.is_one_row_per_unit else limit_or(table.rows_per_unit, 1)
    windows = tuple(_known_window(w, owned.block, domains, most) for w in rows.windows)
    known = {w.name: _window_column(w, domains) for w in windows}
    for name, reference in rows.passed:
        source = domains.column(reference)
        is_key = source.key or is_unit_value(owned.block, reference)
        known[name] = replace(source, name=name, key=is_key, hidden=False)
    constant = tuple(n for n, c in rows.passed if c.scan in owned.constant_scans or c in owned.enforced_constants)
    bounds = replace(
        scan.table, columns=tuple(known[c.name] for c in scan.table.columns), unit_unique=owned.is_one_row_per_unit,
        rows_per_unit=table.rows_per_unit, rows_per_group=table.rows_per_group, groups_per_unit=table.groups_per_unit,
        keys_per_unit=table.keys_per_unit, unit_constant=() if owned.is_one_row_per_unit else constant,
    )  # fmt: skip
    return replace(scan, table=bounds, rows=replace(rows, block=owned.block, windows=windows))


def _known_window(window: WindowValue, block: Block, domains: Domains, most: int) -> WindowValue:
    for scalar in (*window.partition, *(o.scalar for o in window.order)):
        if not isinstance(scalar, ColumnRef):
            check_condition(block, scalar)
    match window.of:
        case Placed():
            return replace(window, most=most)
        case Beside(argument=argument):
            if not isinstance(argument, ColumnRef):
                check_condition(block, argument)
            return window
        case UnitValue() as value:
            _check_value(value, block)
            return replace(window, of=bounded(value, domains, most))
        case _ as never:
            assert_never(never)


def _window_column(window: WindowValue, domains: Domains) -> Column:
    match window.of:
        case Placed():
            return Column(name=window.name, type=window.type, domain=Bounded(1, window.most), nullable=False)
        case Beside(argument=ColumnRef() as argument):
            source = domains.column(argument)
            return replace(source, name=window.name, nullable=True, hidden=False)
        case Beside(argument=argument):
            return Column(name=window.name, type=window.type, domain=_with_two_ends(domains.of(argument)))
        case UnitValue() as value:
            column = replace(value_column(value, domains), name=window.name)
            is_empty = isinstance(window.frame, WindowFrame) and window.frame.may_be_empty
            return _of_no_rows(column, value) if is_empty else column
        case _ as never:
            assert_never(never)


def _with_two_ends(domain: Domain) -> Domain:
    """A domain as a column has it: what conditions bound on one side only is not known."""
    match domain:
        case Bounded(int() | float() as lo, int() | float() as hi) if not (math.isfinite(lo) and math.isfinite(hi)):
            return Unknown()
        case _:
            return domain


def _of_no_rows(column: Column, value: UnitValue) -> Column:
    """The column of an aggregate that may be of no row: a count is 0 then, all else NULL."""
    if value.kind is UnitValueKind.COUNT:
        return replace(column, domain=Bounded(0, value.most))
    return replace(column, nullable=True)


# --- bounds ---------------------------------------------------------------------------------------------------


def _most_rows(rows: Grouped, domains: Domains, listed: KeyValues, most: int) -> int:
    """Of a unit: no more than it has rows below, or than the keys have values that are public."""
    if not rows.keys:
        return 1
    try:
        keys = tuple(classify_key(k, domains, listed) for _, k in rows.keys)
        return min(most, max(1, len(public_product(keys)))) if all(isinstance(k, PublicKey) for k in keys) else most
    except HushError:  # too many values: that is known of them
        return most


def _with_bounds(table: Table, owned: Owned, most: int) -> Table:
    """The bounds of the rows below, which a grouping only makes fewer."""
    source = owned.bounds_from
    if owned.is_one_row_per_unit or table.unit_unique:
        return replace(table, unit_unique=True)
    return replace(table, rows_per_unit=WrittenBound(most), rows_per_group=_lowered(source.rows_per_group, most),
                   groups_per_unit=_lowered(source.groups_per_unit, most),
                   keys_per_unit=source.keys_per_unit)  # fmt: skip


def _lowered(limit: BoundSource, most: int) -> BoundSource:
    return limit if isinstance(limit, NotGiven) else replace(limit, limit=min(limit.limit, most))
