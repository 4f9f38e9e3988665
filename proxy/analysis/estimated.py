"""With which weights do rows, as they are stored, count for an aggregate over randomized columns?

A condition on a randomized column removes no row: it is a measure. What an aggregate asks of a row is looked at for
each combination of true values; rows are then told apart by their stored values, and each such cell has a weight whose
mean over the randomization is what the row would have counted before it. See docs/claims/local-answers.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from proxy.analysis.channels import ResponseChannel, channel_of, column_of, randomized_in
from proxy.analysis.domains import LARGEST_MEASURE
from proxy.analysis.evaluate import MISSING, Choice, MissingValue, choices
from proxy.analysis.own_noise import NO_NOISE, OwnNoise, own_noise
from proxy.analysis.owned import Owned
from proxy.errors import Unsupported
from proxy.policy.model import Column
from proxy.sql.algebra.canonical import canonical_scalar
from proxy.sql.algebra.nodes import (
    TRUE,
    Aggregate,
    AggregateKind,
    Block,
    Call,
    Case,
    ColumnRef,
    Grouped,
    Literal,
    Member,
    Null,
    Scalar,
    Span,
    UnitValue,
    columns_of,
    conjunction,
    conjuncts,
    is_null,
    with_parts,
)
from proxy.sql.query.measured import SPREADS, unit_counts
from proxy.sql.syntax.names import spelled
from proxy.sqltypes import SqlType

_MOST_COMBINATIONS = 4_096  # of true values
_MOST_CELLS = 64  # into which rows are told apart for one aggregate
_FALSE = Literal(False, SqlType.BOOL)
_NO_HINT = "Combine conditions on several randomized columns with AND, or ask for each in an aggregate of its own."


@dataclass(frozen=True, slots=True)
class Cell:
    """Rows with some of the stored values. where: which.

    powers: what such a row weighs in the number of rows and in the sums of constants, of their squares and, for a
    variance, of further powers, where the argument is one constant for each true value.
    """

    where: Scalar
    powers: tuple[float, ...]

    @property
    def count(self) -> float:
        """In the number of rows."""
        return self.powers[0]

    @property
    def value(self) -> float:
        """In the sum of constants."""
        return self.powers[1]

    @property
    def square(self) -> float:
        """In the sum of their squares."""
        return self.powers[2]


@dataclass(frozen=True, slots=True)
class Weighted:
    """An aggregate over rows that count with weights.

    where: what else a row must pass. argument: what is aggregated, None for a constant of each true value, which lies
    in `ends`; of a variance, powers are those of constants brought to [-1, 1]. row_sd: the most that the randomization
    of one row moves the number of rows, or the sum of constants. own: the noise that each value of the argument had
    before it was stored. is_of_two: each constant is one of `ends`. per_unit: of a count that a sub-select makes for
    each unit, that of each cell, each at most `most`.
    """

    where: Scalar
    argument: Scalar | None
    cells: tuple[Cell, ...]
    ends: tuple[float, float] = (0.0, 0.0)
    row_sd: float = 0.0
    own: OwnNoise = NO_NOISE
    is_of_two: bool = False
    per_unit: tuple[ColumnRef, ...] = ()
    most: int = 0


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What an aggregate asks of rows with certain true values."""

    where: Scalar
    argument: Scalar


def weighted(aggregate: Aggregate, block: Block) -> Weighted | None:
    """The weights of an aggregate; None where neither it nor a key of the block reads a randomized column.

    A mode has none: its rows are counted as they are stored. Raises Unsupported where no weights are known.
    """
    if aggregate.kind is AggregateKind.MODE:
        return None
    for reference, value in unit_counts(block):
        if aggregate.argument == reference:
            return _weighted_counts(aggregate, reference, value, block)
    read = dict.fromkeys(c for s in (aggregate.where, *aggregate.arguments) for c in randomized_in(s, block))
    channels = [channel_of(c, column_of(c, block)) for c in read]
    finite = [c for c in channels if c is not None]
    keys = key_channels(block)
    if not read and not any(keys):
        return None
    outcomes = _outcomes(aggregate, finite)
    found = _weighted(aggregate, finite, outcomes, [c for c in keys if c is not None])
    if found.argument is None or aggregate.kind is AggregateKind.COUNT:
        return found
    return replace(found, own=own_noise(found.argument, block))


def with_cells(block: Block) -> Block:
    """The block with what sub-selects count for each unit under conditions on randomized columns also by cells."""
    counts = dict(unit_counts(block))
    if not counts:
        return block
    (scan,) = block.scans
    assert isinstance(scan.rows, Grouped), "its rows are those that values are computed for"
    added = tuple(
        replace(value, name=name, where=cell.where)
        for value in counts.values()
        for name, cell in zip(*_cells_of_count(value, scan.rows), strict=True)
    )
    columns = (*scan.table.columns, *(Column(name=v.name, type=v.type) for v in added))
    rows = replace(scan.rows, values=(*scan.rows.values, *added))
    return replace(block, scans=(replace(scan, table=replace(scan.table, columns=columns), rows=rows),))


def _cells_of_count(value: UnitValue, rows: Grouped) -> tuple[list[str], tuple[Cell, ...]]:
    """The cells of a unit's rows, each with the name of what is counted of it, which an engine may cut short."""
    cells, number = _counted(value, rows.block).cells, [v.name for v in rows.values].index(value.name)
    return [f"cell {number}.{place} of {value.name}" for place in range(len(cells))], cells


def _counted(value: UnitValue, inner: Block) -> Weighted:
    kind = AggregateKind.COUNT_ROWS if value.argument == TRUE else AggregateKind.COUNT
    found = weighted(Aggregate(kind, value.argument, value.where, value.type), inner)
    assert found is not None, "its condition reads a randomized column"
    return found


def _weighted_counts(aggregate: Aggregate, reference: ColumnRef, value: UnitValue, block: Block) -> Weighted:
    """A sum or an average of counts of units: what is counted of each cell, with the cell's weight."""
    rows = block.scan(reference.scan).rows
    assert isinstance(rows, Grouped), "it has a value for each unit"
    names, cells = _cells_of_count(value, rows)
    return Weighted(
        where=aggregate.where, argument=reference, cells=tuple(replace(c, where=aggregate.where) for c in cells),
        row_sd=_counted(value, rows.block).row_sd * math.sqrt(value.most),
        per_unit=tuple(replace(reference, name=name) for name in names), most=value.most,
    )  # fmt: skip


def key_channels(block: Block) -> tuple[ResponseChannel | None, ...]:
    """The channel of each key, None for one that is as it was."""
    return tuple(channel_of(k, column_of(k, block)) if isinstance(k, ColumnRef) else None for k in block.keys)


def key_growth(block: Block) -> float:
    """How many times the noise of stored groups that of groups of true values is, at most."""
    return math.prod(c.growth for c in key_channels(block) if c is not None)


def most_repeated(aggregate: Aggregate, owned: Owned, rows: int) -> int:
    """In how many of a unit's rows one stored value may stand, by a join. rows: that a unit has at most."""
    block = owned.block
    read = [c for s in (aggregate.where, *aggregate.arguments, *block.keys) for c in randomized_in(s, block)]
    is_detailed = all(block.scan(c.scan).table.name == owned.bounds_from.name for c in read)
    if owned.is_one_row_per_unit or (is_detailed and not owned.repeated and not owned.fan_out):
        return 1
    return rows


def is_estimated(block: Block) -> bool:
    """Whether an answer of the block is an estimate of what was there before the randomization."""
    scalars = (*block.keys, *(s for a in block.aggregates for s in (a.where, *a.arguments)))
    return bool(unit_counts(block)) or any(randomized_in(s, block) for s in scalars)


# --- what is asked of each combination of true values -------------------------------------------------------------


def _outcomes(aggregate: Aggregate, channels: Sequence[ResponseChannel]) -> dict[tuple[int, ...], _Outcome]:
    """What is asked of a row by its true values; combinations whose rows never count are left out."""
    if math.prod(len(c.values) for c in channels) > _MOST_COMBINATIONS:
        raise Unsupported(
            "conditions on so many randomized values together are not supported",
            hint="Ask for fewer randomized columns in one aggregate.",
        )
    found = {}
    for chosen in product(*(range(len(c.values)) for c in channels)):
        known: dict[Scalar, Choice] = {c.column: c.values[i] for c, i in zip(channels, chosen, strict=True)}
        where = simplified(aggregate.where, known)
        argument = simplified(aggregate.argument, known)
        if where == _FALSE or isinstance(where, Null) or isinstance(argument, Null):
            continue
        found[chosen] = _Outcome(where, argument)
    return _without_zeros(found) if aggregate.kind is AggregateKind.SUM else found


def _without_zeros(outcomes: dict[tuple[int, ...], _Outcome]) -> dict[tuple[int, ...], _Outcome]:
    """Zeros add nothing to a sum: they need not be told apart from what is no constant."""
    if all(isinstance(o.argument, Literal) for o in outcomes.values()):
        return outcomes
    return {k: o for k, o in outcomes.items() if not (isinstance(o.argument, Literal) and not o.argument.value)}


def simplified(scalar: Scalar, known: Mapping[Scalar, Choice]) -> Scalar:
    """The scalar for rows in which these columns have these values: of the same value, as far as that is decided.

    Raises Unsupported for a function of such values alone of which nobody here knows what the engine makes of them.
    """
    columns = columns_of(scalar)
    if not any(c in known for c in columns):
        return scalar
    found = choices(scalar, known)
    if len(found) == 1:
        (value,) = found
        if isinstance(value, MissingValue):
            return Null(scalar.type)
        if not isinstance(value, Span):
            return Literal(value, scalar.type)
    if (
        isinstance(scalar, Call)
        and all(c in known for c in columns)
        and all(isinstance(a, (ColumnRef, Literal)) for a in scalar.args)
    ):
        column = min(columns, key=lambda c: (c.scan, c.name))
        raise Unsupported(
            f'what this asks of the randomized column "{column.name}" is not known for each of its values',
            detail="A condition on such a column is counted by the values that pass it.",
            hint=f"Write which values are meant: {spelled(column.name)} IN (...).",
        )
    return _parts_simplified(scalar, known)


def _parts_simplified(scalar: Scalar, known: Mapping[Scalar, Choice]) -> Scalar:
    match scalar:
        case Call("and"):
            parts = [simplified(p, known) for p in conjuncts(scalar)]
            return conjunction(tuple(p for p in parts if p != TRUE))
        case Call("or", (left, right)):
            either = [s for s in (simplified(left, known), simplified(right, known)) if s != _FALSE]
            return either[0] if len(either) == 1 else Call("or", tuple(either), SqlType.BOOL)
        case Case(branches, otherwise, kind):
            return _case_simplified(branches, otherwise, kind, known)
        case Call(function, args, kind):
            return Call(function, tuple(simplified(a, known) for a in args), kind)
        case _:
            return with_parts(scalar, lambda s: _stored(s, known))


def _stored(scalar: Scalar, known: Mapping[Scalar, Choice]) -> Scalar | None:
    if scalar not in known:
        return None
    return simplified(scalar, known)


def _case_simplified(
    branches: tuple[tuple[Scalar, Scalar], ...], otherwise: Scalar, kind: SqlType, known: Mapping[Scalar, Choice]
) -> Scalar:
    left = []
    for condition, value in branches:
        truth = simplified(condition, known)
        if truth == _FALSE or isinstance(truth, Null):
            continue
        if truth == TRUE:
            otherwise = value
            break
        left.append((truth, simplified(value, known)))
    rest = simplified(otherwise, known)
    return Case(tuple(left), rest, kind) if left else rest


# --- the weights ---------------------------------------------------------------------------------------------------


def _weighted(
    aggregate: Aggregate, channels: Sequence[ResponseChannel], outcomes: Mapping[tuple[int, ...], _Outcome],
    keys: Sequence[ResponseChannel],
) -> Weighted:  # fmt: skip
    wheres = dict.fromkeys(canonical_scalar(o.where) for o in outcomes.values())
    arguments = dict.fromkeys(o.argument for o in outcomes.values())
    are_constants = all(isinstance(a, Literal) for a in arguments)
    if len(wheres) > 1 or not (are_constants or len(arguments) == 1):
        raise Unsupported(
            "what this aggregate counts of a row depends on randomized columns and on others at once",
            detail="Each true value must ask for the same of the other columns, or for no row.", hint=_NO_HINT,
        )  # fmt: skip
    (where,) = wheres or (TRUE,)
    values = {k: _number(o.argument) for k, o in outcomes.items()}
    ends = (min(values.values(), default=0.0), max(values.values(), default=0.0))
    if not all(abs(v) <= LARGEST_MEASURE for v in values.values()):
        raise Unsupported("a constant of this aggregate is too large",
                          hint="Sums are computed for numbers of up to 1e100.")  # fmt: skip
    is_spread = aggregate.kind in SPREADS
    cells = tuple(_cells(channels, _about_middle(values, ends) if is_spread else values, where, 5 if is_spread else 3))
    if len(cells) > _MOST_CELLS:
        raise Unsupported(
            "conditions on so many randomized values together are not supported",
            hint="Ask for fewer randomized columns or values in one aggregate.",
        )
    argument = None if are_constants and aggregate.argument != TRUE else next(iter(arguments), TRUE)
    if aggregate.kind in (AggregateKind.COUNT, AggregateKind.COUNT_ROWS):
        argument = TRUE if are_constants else argument
    row_sd = _row_sd(channels, _of_one_row(aggregate.kind, argument, values, ends), keys)
    return Weighted(where, argument, cells, ends, row_sd, is_of_two={*values.values()} <= {*ends})


def _about_middle(values: Mapping[tuple[int, ...], float], ends: tuple[float, float]) -> dict[tuple[int, ...], float]:
    """The values brought to [-1, 1]; 0 where all are alike."""
    middle, half = ends[0] / 2.0 + ends[1] / 2.0, ends[1] / 2.0 - ends[0] / 2.0
    return {k: (v - middle) / half if half else 0.0 for k, v in values.items()}


def _of_one_row(
    kind: AggregateKind, argument: Scalar | None, values: dict[tuple[int, ...], float], ends: tuple[float, float]
) -> dict[tuple[int, ...], float]:
    """What a row adds to what is computed; to an average and a variance, about the middle of its range."""
    if argument is not None:
        return dict.fromkeys(values, 1.0)
    middle = 0.0 if kind is AggregateKind.SUM else (ends[0] + ends[1]) / 2.0
    return {k: v - middle for k, v in values.items()}


def _number(argument: Scalar) -> float:
    return float(argument.value) if isinstance(argument, Literal) and argument.type.is_number else 1.0  # type: ignore[arg-type]


_Classes = tuple[frozenset[int], ...]


def _cells(
    channels: Sequence[ResponseChannel], values: Mapping[tuple[int, ...], float], where: Scalar, powers: int
) -> Iterator[Cell]:
    """Rows told apart by stored values, as far as weights differ. powers: how many of constants are wanted."""
    if not values:
        return
    classes = [_classes(channels, place, values) for place in range(len(channels))]
    for stored in product(*classes):
        found = [0.0] * powers
        for true in product(*classes):
            of = values.get(tuple(min(c) for c in true))
            if of is not None:
                pairs = zip(channels, stored, true, strict=True)
                weight = math.prod(channel.weight(min(ours), theirs) for channel, ours, theirs in pairs)
                for power in range(powers):
                    found[power] += weight
                    weight *= of
        tests = [_test(c, s) for c, s in zip(channels, stored, strict=True) if len(s) < len(c.values)]
        yield Cell(conjunction((*conjuncts(where), *tests)), tuple(found))


def _classes(channels: Sequence[ResponseChannel], place: int, values: Mapping[tuple[int, ...], float]) -> _Classes:
    """The values of one column, those together that mean the same whatever the other columns hold."""
    others = [range(len(c.values)) for i, c in enumerate(channels) if i != place]
    found: dict[tuple[bool, tuple[float | None, ...]], set[int]] = {}
    for own in range(len(channels[place].values)):
        meant = tuple(values.get((*rest[:place], own, *rest[place:])) for rest in product(*others))
        is_absent = channels[place].values[own] is MISSING  # which is tested in another way
        found.setdefault((is_absent, meant), set()).add(own)
    return tuple(frozenset(s) for s in found.values())


def _test(channel: ResponseChannel, stored: frozenset[int]) -> Scalar:
    values = [channel.values[i] for i in sorted(stored)]
    items = tuple(Literal(v, channel.column.type) for v in values if not isinstance(v, (MissingValue, Span)))
    if not items:
        return is_null(channel.column)
    if len(items) == 1:
        return Call("=", (channel.column, items[0]), SqlType.BOOL)
    return canonical_scalar(Member(channel.column, items))


def _row_sd(
    channels: Sequence[ResponseChannel], values: Mapping[tuple[int, ...], float], keys: Sequence[ResponseChannel]
) -> float:
    """The largest standard deviation of what one row adds, over its true values."""
    if not values:
        return 0.0
    classes = [_classes(channels, place, values) for place in range(len(channels))]
    largest = 0.0
    for true in product(*classes):
        second = 0.0
        for stored in product(*classes):
            chance = math.prod(c.chance(s, min(t)) for c, s, t in zip(channels, stored, true, strict=True))
            second += chance * _added(channels, stored, classes, values) ** 2
        own = values.get(tuple(min(c) for c in true), 0.0)
        for in_group in product((True, False), repeat=len(keys)):
            grown = math.prod(_key_square(k, is_own=own_key) for k, own_key in zip(keys, in_group, strict=True))
            largest = max(largest, second * grown - (own * own if all(in_group) else 0.0))
    return math.sqrt(max(largest, 0.0))


def _added(
    channels: Sequence[ResponseChannel], stored: tuple[frozenset[int], ...], classes: Sequence[_Classes],
    values: Mapping[tuple[int, ...], float],
) -> float:  # fmt: skip
    found = 0.0
    for true in product(*classes):
        of = values.get(tuple(min(c) for c in true), 0.0)
        if of:
            pairs = zip(channels, stored, true, strict=True)
            found += of * math.prod(channel.weight(min(ours), theirs) for channel, ours, theirs in pairs)
    return found


def _key_square(key: ResponseChannel, *, is_own: bool) -> float:
    """The mean square of a row's weight in the group of one value, whether that is its true one."""
    each = range(len(key.values))
    if is_own:
        return max(key.stays[x] * key.on[x] ** 2 + (1.0 - key.stays[x]) * key.off[x] ** 2 for x in each)
    found = 0.0
    for x in each:
        for true in each[:2] if x else each[1:3]:
            if true != x:
                there = (1.0 - key.stays[true]) / (len(key.values) - 1)
                found = max(found, there * key.on[x] ** 2 + (1.0 - there) * key.off[x] ** 2)
    return found
