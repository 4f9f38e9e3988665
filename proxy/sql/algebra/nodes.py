"""What may be asked of private rows, as a closed family of typed values?

Scalars over columns of scans, and blocks: one select-project-join over scans with keys and
aggregates. Only the binder builds these; only renderers and analyses read them. Whatever has no
case here never reaches the private engine.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from proxy.policy.model import Table
from proxy.sqltypes import SqlType, Value


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of the scan with that number."""

    scan: int
    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class Literal:
    """A non-null constant. 0 and -0 are two: functions such as atan2 tell them apart."""

    value: Value
    type: SqlType

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        told = (self.value, self.type, _has_sign(self.value))
        return told == (other.value, other.type, _has_sign(other.value))

    def __hash__(self) -> int:
        return hash((self.value, self.type))

    def __reduce__(self) -> tuple[object, ...]:
        return Literal, (self.value, self.type)  # a long list has many


def _has_sign(value: Value) -> bool:
    return isinstance(value, (float, Decimal)) and math.copysign(1.0, value) < 0


@dataclass(frozen=True, slots=True)
class Null:
    """NULL of a known type."""

    type: SqlType


@dataclass(frozen=True, slots=True)
class Span:
    """A constant interval: months, days and microseconds kept apart as PostgreSQL does."""

    months: int
    days: int
    microseconds: int
    type: SqlType = SqlType.INTERVAL


@dataclass(frozen=True, slots=True)
class Call:
    """A permitted function or operator: a row of `sql.functions`."""

    function: str
    args: tuple[Scalar, ...]
    type: SqlType
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        return self._hash or _remembered(self, (self.function, self.args, self.type))

    def __reduce__(self) -> tuple[object, ...]:
        return Call, (self.function, self.args, self.type)  # a hash is of one process


@dataclass(frozen=True, slots=True)
class Case:
    """CASE WHEN condition THEN value ... ELSE otherwise END."""

    branches: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar
    type: SqlType
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        return self._hash or _remembered(self, (self.branches, self.otherwise, self.type))

    def __reduce__(self) -> tuple[object, ...]:
        return Case, (self.branches, self.otherwise, self.type)  # a hash is of one process


@dataclass(frozen=True, slots=True)
class Member:
    """argument IN (items), items being constants of the argument's family."""

    argument: Scalar
    items: tuple[Literal, ...]
    type: SqlType = SqlType.BOOL
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        return self._hash or _remembered(self, (self.argument, self.items, self.type))

    def __reduce__(self) -> tuple[object, ...]:
        return Member, (self.argument, self.items, self.type)  # a hash is of one process


Scalar = ColumnRef | Literal | Null | Span | Call | Case | Member


def _remembered(scalar: Call | Case | Member, parts: object) -> int:
    """The hash of a scalar, computed once: that of a deep one walks all of it."""
    found = hash(parts) or 1
    object.__setattr__(scalar, "_hash", found)
    return found


TRUE = Literal(True, SqlType.BOOL)


_MOST_IN_A_ROW = 64


def conjunction(parts: tuple[Scalar, ...]) -> Scalar:
    """AND of the parts; TRUE for none. Many are put together in halves, so that they are not deep."""
    if len(parts) > _MOST_IN_A_ROW:
        middle = len(parts) // 2
        parts = (conjunction(parts[:middle]), conjunction(parts[middle:]))
    result: Scalar = TRUE
    for part in parts:
        result = part if result == TRUE else Call("and", (result, part), SqlType.BOOL)
    return result


def is_null(scalar: Scalar) -> Scalar:
    """The test that there is no value."""
    return Call("is null", (scalar,), SqlType.BOOL)


def is_present(scalar: Scalar) -> Scalar:
    """The test that there is a value."""
    return Call("not", (is_null(scalar),), SqlType.BOOL)


def conjuncts(scalar: Scalar) -> tuple[Scalar, ...]:
    """The parts of nested ANDs, TRUE dropped."""
    if isinstance(scalar, Call) and scalar.function == "and":
        return tuple(p for a in scalar.args for p in conjuncts(a))
    return () if scalar == TRUE else (scalar,)


def children(scalar: Scalar) -> tuple[Scalar, ...]:
    """Direct sub-expressions."""
    match scalar:
        case ColumnRef() | Literal() | Null() | Span():
            return ()
        case Call(args=args):
            return args
        case Case(branches=branches, otherwise=otherwise):
            return (*(s for b in branches for s in b), otherwise)
        case Member(argument=argument):
            return (argument,)


def with_columns(scalar: Scalar, changed: Callable[[ColumnRef], Scalar]) -> Scalar:
    """The scalar with each column replaced."""
    return with_parts(scalar, lambda part: changed(part) if isinstance(part, ColumnRef) else None)


def with_parts(scalar: Scalar, changed: Callable[[Scalar], Scalar | None]) -> Scalar:
    """The scalar with each outermost part replaced for which there is something else."""
    other = changed(scalar)
    if other is not None:
        return other
    match scalar:
        case ColumnRef() | Literal() | Null() | Span():
            return scalar
        case Call(function, args, kind):
            return Call(function, tuple(with_parts(a, changed) for a in args), kind)
        case Case(branches, otherwise, kind):
            replaced = tuple((with_parts(c, changed), with_parts(v, changed)) for c, v in branches)
            return Case(replaced, with_parts(otherwise, changed), kind)
        case Member(argument, items):
            return Member(with_parts(argument, changed), items)


def column_reads(scalar: Scalar) -> tuple[ColumnRef, ...]:
    """Every column a scalar reads, each as often as it stands there."""
    found, rest = list[ColumnRef](), [scalar]
    while rest:
        part = rest.pop()
        if isinstance(part, ColumnRef):
            found.append(part)
        else:
            rest.extend(children(part))
    return tuple(found)


def columns_of(scalar: Scalar) -> frozenset[ColumnRef]:
    """Every column a scalar reads."""
    return frozenset(column_reads(scalar))


def columns_in_order(scalar: Scalar) -> tuple[ColumnRef, ...]:
    """The same, always in the same order: what is said about the first of them must not change from run to run."""
    return tuple(sorted(columns_of(scalar), key=lambda c: (c.scan, c.name)))


class AggregateKind(enum.Enum):
    """Aggregates over private rows. COUNT_DISTINCT of the unit is COUNT_UNITS once the unit is known."""

    COUNT_ROWS = "count(*)"
    COUNT = "count"
    COUNT_DISTINCT = "count(distinct)"
    COUNT_UNITS = "count(distinct unit)"
    SUM = "sum"
    AVG = "avg"
    VAR_POP = "var_pop"
    VAR_SAMP = "var_samp"
    STDDEV_POP = "stddev_pop"
    STDDEV_SAMP = "stddev_samp"
    COVAR_POP = "covar_pop"
    COVAR_SAMP = "covar_samp"
    CORR = "corr"
    REGR_SLOPE = "regr_slope"
    REGR_INTERCEPT = "regr_intercept"
    REGR_R2 = "regr_r2"
    REGR_COUNT = "regr_count"
    REGR_AVGX = "regr_avgx"
    REGR_AVGY = "regr_avgy"
    REGR_SXX = "regr_sxx"
    REGR_SYY = "regr_syy"
    REGR_SXY = "regr_sxy"
    BOOL_AND = "bool_and"
    BOOL_OR = "bool_or"
    MIN = "min"
    MAX = "max"
    PERCENTILE_CONT = "percentile_cont"
    PERCENTILE_DISC = "percentile_disc"
    MODE = "mode"

    @property
    def is_quantile(self) -> bool:
        return self in (self.MIN, self.MAX, self.PERCENTILE_CONT, self.PERCENTILE_DISC)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate call of a block. `argument` is TRUE for COUNT(*), the unit for COUNT(DISTINCT unit).

    beside: X of an aggregate of two measures f(Y, X), whose argument is Y; TRUE for all others.
    fraction: of the rows below a quantile. is_bracketed: whether the ends of a quantile's interval are wanted as well.
    """

    kind: AggregateKind
    argument: Scalar
    where: Scalar
    type: SqlType
    beside: Scalar = TRUE
    fraction: Fraction = Fraction(0)
    is_bracketed: bool = False

    @property
    def arguments(self) -> tuple[Scalar, ...]:
        """What the aggregate reads of a row that passes its condition."""
        return (self.argument,) if self.beside == TRUE else (self.argument, self.beside)


class UnitValueKind(enum.Enum):
    """Exact aggregates of a unit's own rows."""

    COUNT = "count"
    COUNT_DISTINCT = "count distinct"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class UnitValue:
    """One aggregate of a unit's rows, of those that pass `where`. argument: TRUE for COUNT(*).

    Known once it is analysed: ends, that each row is clamped to, and most, the largest count.
    """

    name: str
    kind: UnitValueKind
    argument: Scalar
    where: Scalar
    type: SqlType
    ends: tuple[float, float] = (-math.inf, math.inf)
    most: int = 0


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows as they are in the engine."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """One row for each unit of a block, and each of its values of the keys: aggregates of the unit's own rows.

    unit, keys: with their names.
    """

    block: Block
    unit: tuple[tuple[str, ColumnRef], ...]
    keys: tuple[tuple[str, Scalar], ...]
    values: tuple[UnitValue, ...]


class Place(enum.Enum):
    """What a row's place among the rows of its unit is told by."""

    ROW_NUMBER = "row_number"
    RANK = "rank"
    DENSE_RANK = "dense_rank"


@dataclass(frozen=True, slots=True)
class Placed:
    """The place of a row: no two rows have one row number, and rows of equal rank differ in no ordering expression."""

    place: Place


class Neighbour(enum.Enum):
    """Another row of the unit, told by its place."""

    LAG = "lag"
    LEAD = "lead"
    FIRST_VALUE = "first_value"
    LAST_VALUE = "last_value"
    NTH_VALUE = "nth_value"


@dataclass(frozen=True, slots=True)
class Beside:
    """What an expression is in another row, that many rows before or after this one; NULL where there is none."""

    row: Neighbour
    argument: Scalar
    distance: int = 1


@dataclass(frozen=True, slots=True)
class Ordered:
    """One expression of an ORDER BY."""

    scalar: Scalar
    is_descending: bool
    is_null_first: bool


@dataclass(frozen=True, slots=True)
class UpToPeers:
    """The frame of a window without one: all rows up to those that are equal to this one in the order."""


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """The rows from `start` to `end` rows after this one; None for the first and the last of all.

    by_peers: groups of rows that the order calls equal are counted, not rows.
    """

    start: int | None
    end: int | None
    by_peers: bool = False

    @property
    def may_be_empty(self) -> bool:
        """Whether it may lack this row."""
        return (self.start or 0) > 0 or (self.end or 0) < 0


UP_TO_PEERS = UpToPeers()


@dataclass(frozen=True, slots=True)
class WindowValue:
    """A window function over the rows of one unit, or of one of its values of further expressions.

    most: the largest place, known once it is analysed. frame: of aggregates, and of first and last values.
    """

    name: str
    of: Placed | Beside | UnitValue
    unit: tuple[ColumnRef, ...]
    partition: tuple[Scalar, ...]
    order: tuple[Ordered, ...]
    type: SqlType
    most: int = 0
    frame: WindowFrame | UpToPeers = UP_TO_PEERS

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """Whatever it reads of a row."""
        return (*self._own, *self.partition, *(o.scalar for o in self.order))

    @property
    def _own(self) -> tuple[Scalar, ...]:
        match self.of:
            case Placed():
                return ()
            case Beside(argument=argument):
                return (argument,)
            case UnitValue(argument=argument, where=where):
                return (argument, where)
            case _ as never:
                assert_never(never)


@dataclass(frozen=True, slots=True)
class Windowed:
    """The rows of a block, with columns that are passed on under new names and values of window functions."""

    block: Block
    passed: tuple[tuple[str, ColumnRef], ...]
    windows: tuple[WindowValue, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """The rows of one SELECT of a UNION ALL. columns: what each column of the union is in it.

    unit: its columns, known once it is analysed; none where each row is a unit.
    """

    block: Block
    unit: tuple[ColumnRef, ...]
    columns: tuple[ColumnRef | Literal | Null, ...]


@dataclass(frozen=True, slots=True)
class UnionRows:
    """The rows of several blocks. columns: names of those beside the unit's.

    is_unit_in_one_branch: whether no unit has rows in two of them. most_in_branch, is_one_row_in_branch: rows of a unit
    in one group of one of them, and whether it has one in each at most, once that is analysed.
    """

    columns: tuple[str, ...]
    branches: tuple[Branch, ...]
    is_unit_in_one_branch: bool = False
    most_in_branch: int = 0
    is_one_row_in_branch: bool = False


STORED = Stored()


@dataclass(frozen=True, slots=True)
class Scan:
    """All rows of a policy table, or of a sub-select; scans differ in number."""

    number: int
    table: Table
    rows: Stored | Grouped | Windowed | UnionRows = STORED

    @property
    def below(self) -> tuple[Block, ...]:
        """The blocks whose rows these are."""
        match self.rows:
            case Stored():
                return ()
            case Grouped(block=block) | Windowed(block=block):
                return (block,)
            case UnionRows(branches=branches):
                return tuple(b.block for b in branches)
            case _ as never:
                assert_never(never)

    @property
    def computed(self) -> tuple[Scalar, ...]:
        """What its columns are computed from."""
        match self.rows:
            case Stored():
                return ()
            case Grouped(keys=keys, values=values):
                return (*(k for _, k in keys), *(s for v in values for s in (v.argument, v.where)))
            case Windowed(windows=windows):
                return tuple(s for w in windows for s in w.scalars)
            case UnionRows(branches=branches):
                return tuple(s for b in branches for s in b.columns)
            case _ as never:
                assert_never(never)


class JoinKind(enum.Enum):
    """What becomes of a row when it is matched with rows of a join's scans."""

    LEFT = "LEFT"
    SEMI = "SEMI"
    ANTI = "ANTI"


@dataclass(frozen=True, slots=True)
class Join:
    """Scans that meet the rows found so far. on: conjuncts.

    LEFT: a row that meets none stays, with NULLs in their place. SEMI and ANTI: rows stay as they are if they meet one,
    or none; what they meet has no columns for others.
    """

    kind: JoinKind
    scans: tuple[Scan, ...]
    on: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One aggregate over scans: everything below one piece of the noise line.

    The rows are all combinations of `scans`, then met by each of `joins` in order, then filtered by `where`: conjuncts,
    conditions of inner joins included.

    sets: the numbers of the keys of each grouping set; none where all keys are one set.
    """

    scans: tuple[Scan, ...]
    joins: tuple[Join, ...] = ()
    where: tuple[Scalar, ...]
    keys: tuple[Scalar, ...]
    aggregates: tuple[Aggregate, ...]
    sets: tuple[tuple[int, ...], ...] = ()

    @property
    def every_scan(self) -> tuple[Scan, ...]:
        """Those of joins and of sub-selects included."""
        own = (*self.scans, *(s for j in self.joins for s in j.scans))
        return (*own, *(inner for s in own for block in s.below for inner in block.every_scan))

    @property
    def conditions(self) -> tuple[Scalar, ...]:
        """Those of WHERE and of all joins."""
        return (*self.where, *(c for j in self.joins for c in j.on))

    def scan(self, number: int) -> Scan:
        return next(s for s in self.every_scan if s.number == number)


def types_in(block: Block) -> frozenset[SqlType]:
    """Types of all scalars of a block and of their parts."""
    below = [c for s in block.every_scan for c in (*s.computed, *(c for b in s.below for c in b.conditions))]
    waiting = [*below, *block.conditions, *block.keys, *(s for a in block.aggregates for s in (*a.arguments, a.where))]
    found = set()
    while waiting:
        scalar = waiting.pop()
        found.add(scalar.type)
        waiting += children(scalar)
    return frozenset(found)
