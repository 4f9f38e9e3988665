"""How is a scalar of the algebra spelled for a private engine, so that no row can make it raise?

A column is read in one of three ways: in a test it is NULL outside its declared domain, in a measure
it is clamped to it, in a key it is taken as it is (keys outside are filtered by the statement).
Timestamps with time zone are computed as local times of the policy's zone.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from types import MappingProxyType
from typing import assert_never
from zoneinfo import ZoneInfo

from proxy.policy.model import Bounded, Column, Domain, Listed, Unknown
from proxy.sql.algebra.comparisons import MIRRORED
from proxy.sql.algebra.nodes import Call, Case, ColumnRef, Literal, Member, Null, Scalar, Span, conjuncts
from proxy.sql.functions.domains.intervals import local_time
from proxy.sql.functions.hazards import Operands
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.render import exact
from proxy.sql.render.dialect import Dialect
from proxy.sqltypes import SqlType, Value

_WITH_FRACTIONS = (SqlType.FLOAT4, SqlType.FLOAT8, SqlType.NUMERIC)
_ONE_BYTE = 250  # texts of an enumeration stored in one byte, with room for the engine's own values


class Reading(enum.Enum):
    """How columns are read; see the module's first lines."""

    TEST = "test"
    MEASURE = "measure"
    KEY = "key"


class Renderer:
    """Spells the scalars of one block.

    column: the policy's column behind a reference. operands: what is declared of a call's arguments and of its result.
    """

    def __init__(
        self, column: Callable[[ColumnRef], Column], operands: Callable[[Call], Operands], time_zone: str,
        dialect: Dialect, named: Mapping[ColumnRef, str] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """named: columns whose clamped values a sub-select has, by their names there."""
        self.dialect = dialect
        self.reads_stored = False  # whether anything was spelled that is in the rows themselves
        self._named = named
        self.column = column
        self._operands = operands
        self._zone = time_zone
        self._known: dict[tuple[int, Reading], tuple[Case, str]] = {}  # by identity: a wide one is spelled often

    # --- whole expressions ----------------------------------------------------------------------------

    def condition(self, scalar: Scalar) -> str:
        """A boolean in filter position, where NULL and FALSE are the same."""
        parts = conjuncts(scalar)
        return " AND ".join(self._filter(p) for p in parts) if parts else "TRUE"

    def measure(self, scalar: Scalar) -> str:
        """A number to aggregate, or whose presence is counted: NULL where it cannot be computed."""
        return self._spell(scalar, Reading.MEASURE)

    def unclamped(self, scalar: Scalar) -> str:
        """A column as it is stored, for a measure that is clamped right after."""
        assert isinstance(scalar, ColumnRef)
        return self._raw(scalar)

    def identity(self, reference: ColumnRef) -> str:
        """A column as it is stored, for joins and grouping by the unit: texts are equal byte by byte or not at all."""
        text = self.stored(reference)
        if reference.type.is_text and reference.type is not SqlType.UUID:
            return self.dialect.bytes_of(text)  # a collation of the column would merge spellings by row order
        return text

    def stored(self, reference: ColumnRef) -> str:
        """A column's name."""
        return f"s{reference.scan}.{self.dialect.quote(reference.name)}"

    def link(self, reference: ColumnRef) -> str:
        """A column in an equality that joins: exact and total. A fraction equals nothing."""
        text = self.identity(reference)
        if reference.type is SqlType.NUMERIC:  # two scales may have no common one
            return self.dialect.link(text)
        return text

    def key(self, scalar: Scalar) -> str:
        """A grouping key in its one canonical spelling."""
        text = self.inner_key(scalar)
        if isinstance(scalar, ColumnRef) and self.column(scalar).case_blind:
            text = self.dialect.lower(text)
        return text

    def inner_key(self, scalar: Scalar) -> str:
        """A key of a unit's own rows, which may be a key again: one spelling of each value, letters as they are."""
        text = self._spell(scalar, Reading.KEY)
        if scalar.type in _WITH_FRACTIONS and not isinstance(scalar, Null):
            return self.dialect.one_spelling(text)
        return text

    def distinct(self, scalar: Scalar) -> str:
        """A value to be told apart from others of a unit: NULL where there is none that is finite."""
        text = self.measure(scalar)
        if scalar.type in (SqlType.FLOAT4, SqlType.FLOAT8, SqlType.NUMERIC):
            return f"CASE WHEN {self.dialect.finite(text)} THEN {text} + {self.dialect.double(0.0)} END"
        return text

    def listed_key(self, scalar: Scalar) -> str:
        """A public grouping key; a column of few listed texts as an enumeration, NULL outside, read back as text.

        The statement drops rows outside the list, so that NULL stands for NULL alone. Its order is the list's.
        """
        if isinstance(scalar, ColumnRef) and scalar.type in (SqlType.TEXT, SqlType.VARCHAR):
            column = self.column(scalar)
            values = column.domain.values if isinstance(column.domain, Listed) else ()
            texts = [v for v in dict.fromkeys(values) if isinstance(v, str) and v.isprintable()]
            if not column.case_blind and 0 < len(texts) == len(values) <= _ONE_BYTE:
                return self.dialect.enumerated(self.identity(scalar), texts) or self.key(scalar)
        return self.key(scalar)

    def private_key(self, scalar: Scalar) -> str:
        """A key whose values nobody has listed: a time outside PostgreSQL's and Python's common years is NULL."""
        text = self.key(scalar)
        if scalar.type is SqlType.DATE:
            first, last = self.dialect.day(date.min), self.dialect.day(date.max)
            return f"CASE WHEN {text} BETWEEN {first} AND {last} THEN {text} END"
        if scalar.type.is_time:
            first = self.dialect.moment(datetime.combine(date.min, time.min))
            last = self.dialect.moment(datetime.combine(date.max, time.max))
            return f"CASE WHEN {text} BETWEEN {first} AND {last} THEN {text} END"
        return text

    def told_apart(self, scalar: Scalar) -> str:
        """A value to be counted once however often it is there, in its one spelling; NULL outside its domain."""
        text = self._spell(scalar, Reading.TEST)
        if isinstance(scalar, ColumnRef) and self.column(scalar).case_blind:
            text = self.dialect.lower(text)
        return self.dialect.one_spelling(text) if scalar.type in _WITH_FRACTIONS else text

    def in_domain(self, reference: ColumnRef, domain: Domain) -> str:
        """TRUE for values inside a declared domain; NULL for NULL."""
        return self._inside(self._raw(reference), domain)

    def has_value(self, reference: ColumnRef) -> str:
        """Whether a stored column is something that can be computed with; FALSE or NULL if not."""
        return self.dialect.has_value(
            self.stored(reference), reference.type, limited=self.column(reference).limited_digits
        )

    def constant(self, value: Value, kind: SqlType) -> str:
        """A constant in the engine's computing type."""
        return self._literal(Literal(value, kind))

    # --- filters ----------------------------------------------------------------------------------------

    def _filter(self, scalar: Scalar) -> str:
        match scalar:
            case Call("or", args):
                return "(" + " OR ".join(self.condition(a) for a in args) + ")"
            case Call("=" | "<>" | "<" | "<=" | ">" | ">=" as op, (ColumnRef() as left, Literal() as right)):
                return self._compare_column(op, left, right)
            case Call("=" | "<>" | "<" | "<=" | ">" | ">=" as op, (Literal() as left, ColumnRef() as right)):
                return self._compare_column(MIRRORED[op], right, left)
            case Member(ColumnRef() as column, items):
                return self._member_column(column, items)
            case Call("not", (Call("is null", (ColumnRef() as column,)),)) if self._is_read_whole(column):
                return f"({self.has_value(column)})"
            case _:
                # DuckDB 2.0 takes a test that the statistics of all rows pass for one of whether the column is there,
                # even where what is tested is NULL: others' rows would decide. It does not inside coalesce.
                return f"coalesce({self._spell(scalar, Reading.TEST)}, FALSE)"

    def _is_read_whole(self, column: ColumnRef) -> bool:
        """Whether reading a column in a test gives NULL only where it has no value that can be computed with."""
        bounded = isinstance(self.column(column).domain, (Bounded, Listed))
        return not bounded and column.type is not SqlType.TIMESTAMPTZ

    def _compare_column(self, op: str, column: ColumnRef, literal: Literal) -> str:
        """column op constant, with only those sides of the domain check that the comparison leaves open."""
        text = f"({self._compared(column, op, literal)}"
        match self.column(column).domain:
            case Bounded(lo, hi):
                if op not in ("<", "<=", "=") or (op != "=" and not _is_at_most(literal.value, hi, hi)):
                    text += f" AND {self._end(column, '<=', hi)}"
                if op not in (">", ">=", "=") or (op != "=" and not _is_at_most(lo, literal.value, lo)):
                    text += f" AND {self._end(column, '>=', lo)}"
                if op == "=":
                    text += f" AND {self._inside(self._raw(column), Bounded(lo, hi), column.type)}"
            case Listed(values) if op == "=" and isinstance(literal.value, str) and literal.value in values:
                pass
            case Listed() as listed:
                text += f" AND {self._inside(self._raw(column), listed, column.type)}"
            case Unknown() if column.type is SqlType.NUMERIC and op != "=":
                text += f" AND {self.has_value(column)}"
            case Unknown():
                pass
            case _ as never:
                assert_never(never)
        return text + ")"

    def _compared(self, column: ColumnRef, op: str, literal: Literal) -> str:
        """One comparison; with a whole number the engine compares a numeric column as it is stored, in its scan.

        The same wherever it stands: conditions are told apart by their comparisons.
        """
        real = (self._raw(column), self._literal(literal))
        if not exact.compares_exactly(column, literal):
            return f"{real[0]} {op} {real[1]}"
        if column.type is SqlType.NUMERIC and exact.is_small_whole(literal.value):
            return f"{self.stored(column)} {op} {int(literal.value)}"
        return self.dialect.compare(op, (self.stored(column), exact.digits_of(literal.value)), real)

    def _end(self, column: ColumnRef, op: str, end: Value) -> str:
        """One side of a domain check."""
        if column.type is SqlType.NUMERIC and exact.is_small_whole(end):
            return f"{self.stored(column)} {op} {int(end)}"
        return f"{self._raw(column)} {op} {self._value(end, column.type)}"

    def _member_column(self, column: ColumnRef, items: tuple[Literal, ...]) -> str:
        text = f"({self._is_member(column, items)}"
        domain = self.column(column).domain
        if not isinstance(domain, Unknown):
            text += f" AND {self._inside(self._raw(column), domain, column.type)}"
        return text + ")"

    def _is_member(self, column: ColumnRef, items: tuple[Literal, ...]) -> str:
        if any(exact.compares_exactly(column, i) for i in items) and all(exact.is_exact(i) for i in items):
            if column.type is SqlType.NUMERIC and all(exact.is_small_whole(i.value) for i in items):
                return f"{self.stored(column)} IN ({', '.join(exact.digits_of(i.value) for i in items)})"
            found = self.dialect.member(self.stored(column), [exact.digits_of(i.value) for i in items])
            if found:
                return found
        return f"{self._raw(column)} IN ({', '.join(self._literal(i) for i in items)})"

    def _present(self, columns: Iterable[ColumnRef], test: str) -> str:
        """A test that is NULL where a column is, in its domain."""
        conditions = []
        for column in columns:
            domain = self.column(column).domain
            inside = self._inside(self._raw(column), domain, column.type)
            conditions.append(self.has_value(column) if isinstance(domain, Unknown) else inside)
        return f"CASE WHEN {' AND '.join(conditions)} THEN {test} END"

    # --- columns ----------------------------------------------------------------------------------------

    def _raw(self, reference: ColumnRef) -> str:
        """The stored value in its computing type; never raises for the types a policy may declare."""
        self.reads_stored = True
        text = self.stored(reference)
        if reference.type is SqlType.TIMESTAMPTZ:
            return self.dialect.local_time(text, self._zone)
        if reference.type is SqlType.BPCHAR:
            return f"rtrim({self.identity(reference)})"
        if reference.type.is_text and reference.type is not SqlType.UUID:
            return self.identity(reference)
        return self.dialect.stored(text, reference.type, limited=self.column(reference).limited_digits)

    def _read(self, reference: ColumnRef, reading: Reading) -> str:
        if reading is Reading.MEASURE and reference in self._named:
            return self._named[reference]
        raw = self._raw(reference)
        column = self.column(reference)
        if reading is Reading.KEY or not isinstance(column.domain, (Bounded, Listed)):
            return raw
        if reading is Reading.TEST or not reference.type.is_number:
            read = f"CASE WHEN {self._inside(raw, column.domain, reference.type)} THEN {raw} END"
        else:
            read = self._clamped(raw, column, reference.type)
        is_quicker = reading is not Reading.TEST or is_costly(reference, self.dialect)
        if reference.type.is_number and is_quicker and isinstance(column.domain, Bounded):
            ends = numeric_ends(column.domain, reference.type)
            return self.dialect.read_within(self.stored(reference), reference.type, ends, read)
        return read

    def _clamped(self, raw: str, column: Column, kind: SqlType) -> str:
        lo, hi = numeric_ends(column.domain, kind)
        low, high = self.constant(lo, kind), self.constant(hi, kind)
        present = f"{raw} IS NOT NULL" if kind.is_integer else self.dialect.finite(raw)
        clamped = f"CASE WHEN {present} THEN least(greatest({raw}, {low}), {high}) END"
        if column.nullable:
            return clamped
        return f"coalesce({clamped}, {self.constant(middle_of(column.domain, kind), kind)})"

    def _inside(self, raw: str, domain: Domain, kind: SqlType | None = None) -> str:
        match domain:
            case Bounded(lo, hi):
                return f"{raw} BETWEEN {self._value(lo, kind)} AND {self._value(hi, kind)}"
            case Listed(values) if values:
                return f"{raw} IN ({', '.join(self._value(v, kind) for v in values)})"
            case Listed():
                return "FALSE"
            case Unknown():
                return "TRUE"
            case _ as never:
                assert_never(never)

    # --- constants ----------------------------------------------------------------------------------------

    def _value(self, value: Value, kind: SqlType | None) -> str:
        return self._literal(Literal(value, kind or natural_type(value)))

    def _literal(self, literal: Literal) -> str:
        value = literal.value
        match value:
            case bool():
                return "TRUE" if value else "FALSE"
            case int() if literal.type.is_integer or not literal.type.is_number:
                if value == -(2**63):
                    return f"({value})::BIGINT"  # without parentheses it is minus what no bigint is
                return f"{value}::BIGINT" if abs(value) < 2**63 else self.dialect.double(float(value))
            case int() | float() | Decimal():
                return self.dialect.double(float(value))
            case datetime():
                return self.dialect.moment(local_time(value, ZoneInfo(self._zone)))
            case date():
                if literal.type in (SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ):
                    return self.dialect.moment(datetime.combine(value, time()))
                return self.dialect.day(value)
            case str():
                return self.dialect.text_literal(value)

    # --- everything else ------------------------------------------------------------------------------------

    def _spell(self, scalar: Scalar, reading: Reading) -> str:
        match scalar:
            case ColumnRef():
                return self._read(scalar, reading)
            case Literal():
                return self._literal(scalar)
            case Null(kind):
                return f"CAST(NULL AS {self.dialect.types[kind]})"
            case Span(months, days, microseconds):
                return self.dialect.span(months, days, microseconds)
            case Member(ColumnRef() as column, items) if any(exact.compares_exactly(column, i) for i in items):
                return self._present((column,), f"({self._is_member(column, items)})")
            case Member(argument, items):
                left = self._spell(argument, Reading.TEST)
                return f"({left} IN ({', '.join(self._literal(i) for i in items)}))"
            case Case():
                place = id(scalar), reading
                if place not in self._known:
                    self._known[place] = scalar, self._case(scalar, reading)
                return self._known[place][1]
            case Call("=" | "<>" | "<" | "<=" | ">" | ">=" as op, (left, right)) if exact.compares_exactly(left, right):
                return self._compare_exactly(op, left, right)
            case Call():
                return self._call(scalar, reading)

    def _compare_exactly(self, op: str, left: Scalar, right: Scalar) -> str:
        """A comparison of exact numbers that is NULL where it cannot be computed."""
        match left, right:
            case ColumnRef(), Literal():
                return self._present((left,), f"({self._compared(left, op, right)})")
            case Literal(), ColumnRef():
                return self._present((right,), f"({self._compared(right, MIRRORED[op], left)})")
            case ColumnRef(), ColumnRef():
                doubles = (self._raw(left), self._raw(right))
                test = self.dialect.compare(op, (self.stored(left), self.stored(right)), doubles)
                return self._present((left, right), f"({test})")
            case _:
                raise AssertionError("one side of an exact comparison is a column")

    def _case(self, case: Case, reading: Reading) -> str:
        branches, otherwise, kind = case.branches, case.otherwise, case.type
        whens = " ".join(
            f"WHEN {self._spell(c, Reading.TEST)} THEN {self._spell(v, reading)}::{self.dialect.types[kind]}"
            for c, v in branches
        )
        other = f"{self._spell(otherwise, reading)}::{self.dialect.types[kind]}"
        if not branches:  # constants decided all others, and its type is theirs
            return other
        text = f"CASE {whens} ELSE {other} END"
        # DuckDB 2.0 raises when statistics of the rows turn a CASE of texts into NULL inside a comparison; TRY hides it
        return self.dialect.total(text) if kind.is_text else text

    def _call(self, call: Call, reading: Reading) -> str:
        kinds = tuple(a.type for a in call.args)
        inner = Reading.TEST if reading is Reading.KEY else reading
        if FUNCTIONS[call.function].types(kinds) is SqlType.BOOL:
            inner = Reading.TEST
        args = tuple(f"({self._spell(a, inner)})" for a in call.args)
        may_raise = self.dialect.may_raise(call.function, self._operands(call))
        return self.dialect.call(call.function, args, kinds, may_raise=may_raise)


def is_costly(column: ColumnRef, dialect: Dialect) -> bool:
    """Whether reading a column as a double costs more than what is done with it."""
    return column.type is SqlType.NUMERIC and dialect.abilities.numerics_cost


def natural_type(value: Value) -> SqlType:
    """The computing type a bare constant has."""
    match value:
        case bool():
            return SqlType.BOOL
        case int():
            return SqlType.INT8
        case float() | Decimal():
            return SqlType.FLOAT8
        case datetime():
            return SqlType.TIMESTAMP
        case date():
            return SqlType.DATE
        case str():
            return SqlType.TEXT


def _is_at_most(low: Value, high: Value, end: Value) -> bool:
    """Whether low <= high holds beyond doubt, whatever type the engine compares the two in; see `exact`."""
    match low, high, end:
        case (int() | float() | Decimal(), int() | float() | Decimal(), int() | float() | Decimal()):
            return exact.is_surely_at_most(low, high, end)
        case datetime(), datetime(), _:
            return low.tzinfo is None and high.tzinfo is None and low <= high
        case (date(), date(), _) if type(low) is type(high):
            return low <= high
        case _:
            return False


def middle_of(domain: Domain, kind: SqlType) -> int | float:
    """What NULL stands for in a measure of a column that is declared not to be NULL."""
    lo, hi = numeric_ends(domain, kind)
    return (int(lo) + int(hi)) // 2 if kind.is_integer else lo / 2 + hi / 2


def numeric_ends(domain: Domain, kind: SqlType) -> tuple[int, int] | tuple[float, float]:
    """Lowest and highest number of a declared domain; for an integer column whole numbers that a bigint holds."""
    match domain:
        case Bounded(lo, hi):
            values: tuple[Value, ...] = (lo, hi)
        case Listed(values):
            pass
        case _:
            raise ValueError("no numeric domain")
    numbers = [v for v in values if isinstance(v, (int, float, Decimal))]
    if kind.is_integer:
        return _held(math.ceil(min(numbers))), _held(math.floor(max(numbers)))
    return float(min(numbers)), float(max(numbers))


def _held(number: int) -> int:
    """The number, or the nearest bigint: what is inferred of an expression may lie beyond."""
    return min(max(number, -(2**63)), 2**63 - 1)
