"""Where may a column stand whose values were randomized before they were stored?

Closed world: as a key by itself, and in what is counted, summed or averaged. A condition on such a column is a
measure: it removes no row, so that one of WHERE becomes a condition of each aggregate. Everything else is refused: what
is no sum over rows is wrong for values that were drawn. See docs/claims/local-answers.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from proxy.errors import Unsupported
from proxy.policy.model import Column
from proxy.policy.response import GaussianNoise, LaplaceNoise, TwoCoins
from proxy.sql.algebra.describe import describe_scalar
from proxy.sql.algebra.nodes import (
    Aggregate,
    AggregateKind,
    Block,
    Call,
    ColumnRef,
    Grouped,
    Literal,
    Scalar,
    Stored,
    UnitValue,
    UnitValueKind,
    Windowed,
    columns_in_order,
    columns_of,
    conjunction,
    conjuncts,
)
from proxy.sql.syntax.names import spelled

Kind = AggregateKind

#: The variances that have estimates.
SPREADS = (Kind.VAR_POP, Kind.VAR_SAMP, Kind.STDDEV_POP, Kind.STDDEV_SAMP)
_ESTIMATED = (Kind.COUNT_ROWS, Kind.COUNT, Kind.SUM, Kind.AVG, *SPREADS)
_WHY = "Its values were randomized before they were stored: counts, sums, averages and variances have estimates alone."


def with_measures(block: Block) -> Block:
    """The block with each condition of WHERE on randomized columns in its aggregates' own. Raises Unsupported."""
    _check_counts(block)
    for scalar in _elsewhere(block):
        for name in _names(scalar, block):
            raise _refused(f"the randomized column {name} cannot be used here",
                           f"Use it in WHERE, FILTER or GROUP BY of the outermost SELECT: {_count(name)}.")  # fmt: skip
    measured = tuple(c for c in block.where if _names(c, block))
    kept = tuple(c for c in block.where if not _names(c, block))
    for key in block.keys:
        _check_key(key, block)
    found = tuple(replace(a, where=conjunction((*conjuncts(a.where), *measured))) for a in block.aggregates)
    is_randomized = any(_names(k, block) for k in block.keys)
    _check_keys_unread(measured if found else (), block)
    for aggregate in found:
        _check_aggregate(aggregate, block, is_grouped=is_randomized)
    if measured and not found:
        raise _refused("a condition on a randomized column chooses no groups", f"Count rows: {_count('x')}.")
    if block.sets and (
        is_randomized or unit_counts(block) or any(_names(s, block) for a in found for s in (a.where, *a.arguments))
    ):
        raise _refused("grouping sets over randomized columns are not supported",
                       _each_grouping(block))  # fmt: skip
    return replace(block, where=kept, aggregates=found)


def _check_keys_unread(measured: Iterable[Scalar], block: Block) -> None:
    """A condition of WHERE on a column that is grouped by chooses groups, which are of true values after the noise."""
    for condition in measured:
        for key in block.keys:
            if columns_of(condition) == {key} and _names(key, block):
                raise _refused(
                    f"a condition on {_names(key, block)[0]}, which is grouped by, is not supported in WHERE",
                    f"Groups are of true values: choose among them, HAVING {describe_scalar(condition)}.",
                )


def _each_grouping(block: Block) -> str:
    """Statements in the place of grouping sets."""
    of = [k for k in block.keys if isinstance(k, ColumnRef) and isinstance(block.scan(k.scan).rows, Stored)]
    (key, table), *_ = (*((spelled(k.name), spelled(block.scan(k.scan).table.name)) for k in of), ("x", "t"))
    return (
        "Ask for each grouping in a SELECT of its own:"
        f" SELECT {key}, count(*) FROM {table} GROUP BY {key} UNION ALL SELECT NULL, count(*) FROM {table}."
    )


def _refused(what: str, hint: str) -> Unsupported:
    return Unsupported(what, detail=_WHY, hint=hint)


def _count(name: str) -> str:
    return f"SELECT count(*) FILTER (WHERE {name} = ...), or SELECT {name}, count(*) ... GROUP BY {name}"


# --- where they stand ------------------------------------------------------------------------------------------


def _elsewhere(block: Block) -> Iterator[Scalar]:
    """All scalars but the keys, aggregates and conditions of the block's own rows."""
    for join in block.joins:
        yield from join.on
    counted = {v.where for _, v in unit_counts(block)}
    for scan in block.every_scan:
        yield from (s for s in scan.computed if s not in counted)
        if isinstance(scan.rows, Windowed):
            yield from (c for _, c in scan.rows.passed)
        for inner in scan.below:
            yield from (*inner.conditions, *inner.keys, *(s for a in inner.aggregates for s in (a.where, *a.arguments)))
    met = {s.number for j in block.joins for s in j.scans}
    own = (*block.where, *block.keys, *(s for a in block.aggregates for s in (a.where, *a.arguments)))
    yield from (c for scalar in own for c in columns_in_order(scalar) if c.scan in met)


def unit_counts(block: Block) -> tuple[tuple[ColumnRef, UnitValue], ...]:
    """What sub-selects compute for each unit under conditions on randomized columns, with what refers to it."""
    return tuple(
        (ColumnRef(scan.number, value.name, value.type), value)
        for scan in block.scans if isinstance(scan.rows, Grouped)
        for value in scan.rows.values if _names(value.where, scan.rows.block)
    )  # fmt: skip


def _check_counts(block: Block) -> None:
    """A count for each unit is a sum of weights over its rows: added up over units it is one over all rows."""
    counts = dict(unit_counts(block))
    if not counts:
        return
    value = next(iter(counts.values()))
    (*_, inner) = (s.rows.block for s in block.scans if isinstance(s.rows, Grouped))
    table = spelled(inner.scans[0].table.name)
    instead = f"Count rows: SELECT count(*) FILTER (WHERE ...) FROM {table}."
    if any(v.kind is not UnitValueKind.COUNT or _names(v.argument, inner) for v in counts.values()):
        raise _refused(f"{value.kind.value} for each unit under a condition on a randomized column is not supported",
                       f"Count rows of a unit, count(*) FILTER (WHERE ...), or sum over all rows: SELECT sum(x)"
                       f" FILTER (WHERE ...) FROM {table}.")  # fmt: skip
    if len(block.every_scan) > 2 or any(isinstance(s.rows, Grouped) and s.rows.keys for s in block.scans):
        raise _refused("a count for each unit under a condition on a randomized column is of one table by itself",
                       f"Group by the unit alone and join nothing. {instead}")  # fmt: skip
    others = (*block.where, *block.keys, *(a.where for a in block.aggregates))
    bent = [a for a in block.aggregates if a.kind not in (Kind.SUM, Kind.AVG) or a.argument not in counts]
    for scalar in (*others, *(s for a in bent for s in a.arguments)):
        if any(c in counts for c in columns_of(scalar)):
            raise Unsupported(
                "only sums and averages have estimates of a count for each unit that reads a randomized column",
                detail="A unit's own count is far from the truth: what chooses, compares or groups by it is wrong on"
                " average.",
                hint=f"Write avg(c) or sum(c) of the count c itself. {instead}",
            )  # fmt: skip


def column_of(reference: ColumnRef, block: Block) -> Column | None:
    """The policy's column behind a reference; None for one that a sub-select computes."""
    return block.scan(reference.scan).table.column(reference.name)


def _randomized(scalar: Scalar, block: Block) -> Iterator[tuple[ColumnRef, Column]]:
    for reference in columns_in_order(scalar):
        column = column_of(reference, block)
        if column is not None and column.is_randomized:
            yield reference, column


def _names(scalar: Scalar, block: Block) -> tuple[str, ...]:
    return tuple(f'"{c.name}"' for _, c in _randomized(scalar, block))


def _numbers(scalar: Scalar, block: Block) -> tuple[str, ...]:
    """The columns of a scalar to which noise was added."""
    found = ((r, c) for r, c in _randomized(scalar, block))
    return tuple(spelled(c.name) for _, c in found if isinstance(c.randomized, (LaplaceNoise, GaussianNoise)))


def _check_key(key: Scalar, block: Block) -> None:
    for name in _numbers(key, block):
        raise _refused(f"{name} has noise of its own and cannot be grouped by", f"Average it: avg({name}).")
    for name in _names(key, block) if not isinstance(key, ColumnRef) else ():
        raise _refused(f"an expression of the randomized column {name} cannot be grouped by",
                       f"Group by the column itself: SELECT {name}, count(*) ... GROUP BY {name}.")  # fmt: skip


def _check_aggregate(aggregate: Aggregate, block: Block, *, is_grouped: bool) -> None:
    read = [n for s in (aggregate.where, *aggregate.arguments) for n in _names(s, block)]
    if not read and not is_grouped:
        return
    if aggregate.kind is Kind.MODE and not is_grouped and not _names(aggregate.where, block):
        _check_mode(aggregate, block)
        return
    if aggregate.kind not in _ESTIMATED:
        raise _refused(
            f"{aggregate.kind.value} over randomized values is not supported",
            "Use count(*), sum(x), avg(x) or stddev(x), with FILTER (WHERE ...) on such columns.",
        )
    for name in _numbers(aggregate.where, block):
        raise _refused(f"{name} has noise of its own and cannot be compared", f"Average it: avg({name}).")
    if _numbers(aggregate.argument, block) and not _is_linear(aggregate, block):
        (name, *_) = _numbers(aggregate.argument, block)
        raise _refused(f"only sums, averages and variances of {name} itself have estimates",
                       f"Write avg({name}), sum({name}) or stddev({name}).")  # fmt: skip
    _check_once(aggregate, block)


def _check_mode(aggregate: Aggregate, block: Block) -> None:
    """Of values that are all drawn alike: the one that most rows had is then the one that most rows have."""
    name, of = _names(aggregate.argument, block)[0], aggregate.argument
    column = column_of(of, block) if isinstance(of, ColumnRef) else None
    if column is None:
        raise _refused(f"the most frequent value of an expression of the randomized column {name} is not supported",
                       f"Order by the column itself: mode() WITHIN GROUP (ORDER BY {name}).")  # fmt: skip
    if isinstance(column.randomized, (LaplaceNoise, GaussianNoise)):
        raise _refused(f"{name} has noise of its own and has no most frequent value", f"Average it: avg({name}).")
    if isinstance(column.randomized, TwoCoins) and column.randomized.p + column.randomized.q != 1:
        raise _refused(
            f"the coins of {name} favour one answer, so that it may be the most frequent one whatever is true",
            f"Compare estimates: SELECT {name}, count(*) ... GROUP BY {name} ORDER BY 2 DESC.",
        )


def _is_linear(aggregate: Aggregate, block: Block) -> bool:
    """Whether what is summed is a number with noise, or that and a constant, added or multiplied."""
    if aggregate.kind is Kind.COUNT_ROWS:
        return False
    return aggregate.kind is Kind.COUNT or _is_linear_in(aggregate.argument, block)


def _is_linear_in(scalar: Scalar, block: Block) -> bool:
    match scalar:
        case ColumnRef():
            return True
        case Call("+" | "-" | "*", (Literal(), inner)) | Call("+" | "-" | "*" | "/", (inner, Literal())):
            return _is_linear_in(inner, block)
        case _:
            return False


def _check_once(aggregate: Aggregate, block: Block) -> None:
    """One stored value stands once in a product of weights: not also as a key, and not twice by a join of its table."""
    read = {r for s in (aggregate.where, *aggregate.arguments) for r, _ in _randomized(s, block)}
    keys = [r for k in block.keys for r, _ in _randomized(k, block)]
    for reference in sorted(read, key=lambda r: (r.scan, r.name)):
        if reference in keys:
            name = spelled(reference.name)
            raise _refused(f'a condition on "{reference.name}", which is grouped by, is not supported',
                           f"Choose among the groups, HAVING {name} = ..., or do not group by it: SELECT count(*)"
                           f" FILTER (WHERE {name} = ...).")  # fmt: skip
    stored = [(block.scan(r.scan).table.name, r.name) for r in {*read, *keys}]
    for table, name in sorted(stored):
        if stored.count((table, name)) > 1:
            raise _refused(f'the randomized column "{table}"."{name}" stands twice, by a join of its table to itself',
                           "One stored value tells once: use it of one of the two.")  # fmt: skip
