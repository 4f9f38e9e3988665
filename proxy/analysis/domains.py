"""Which values can a scalar of a block have, and can it be NULL?

Facts come from the policy's column domains, the function table's rules and the block's own WHERE.
They decide accuracy and which keys are public; every bound is enforced again in the rendered SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import assert_never

from proxy.policy.model import Bounded, Column, Domain, Listed, Unknown
from proxy.sql.algebra import Block, Call, Case, ColumnRef, Literal, Member, Null, Scalar, Span
from proxy.sql.domain_rules import Argument
from proxy.sql.functions import FUNCTIONS, Nulls
from proxy.sql.intervals import union
from proxy.sqltypes import Value


class Domains:
    """Domains of the scalars of one block. Values are memoised: scalars are immutable.

    Claim: `may_raise` rests on declared domains alone. Those hold wherever a scalar is computed, since columns are
    read through them; what WHERE says holds only for rows that have passed it, and an engine computes one
    condition of a WHERE before another as it likes.
    """

    def __init__(self, block: Block) -> None:
        self._tables = {scan.number: scan.table for scan in block.scans}
        self._where = block.where
        self._known: dict[Scalar, Domain] = {}
        self._anywhere: dict[Scalar, Domain] = {}

    def column(self, reference: ColumnRef) -> Column:
        """The policy's column behind a reference."""
        column = self._tables[reference.scan].column(reference.name)
        assert column is not None, "the binder made a reference to a column that the policy lacks"
        return column

    def of(self, scalar: Scalar) -> Domain:
        """The scalar's domain, narrowed by the block's conditions on the very same scalar."""
        if scalar not in self._known:
            domain = self._plain(scalar, self.of)
            for condition in self._where:
                domain = _narrow(domain, scalar, condition)
            self._known[scalar] = domain
        return self._known[scalar]

    def declared(self, scalar: Scalar) -> Domain:
        """The scalar's domain on any row, whatever the block's conditions say."""
        if scalar not in self._anywhere:
            self._anywhere[scalar] = self._plain(scalar, self.declared)
        return self._anywhere[scalar]

    def _plain(self, scalar: Scalar, of: Callable[[Scalar], Domain]) -> Domain:
        match scalar:
            case ColumnRef():
                return self.column(scalar).domain
            case Literal(value):
                return Listed((value,))
            case Null():
                return Listed(())
            case Span():
                return Unknown()
            case Call(function, args):
                return FUNCTIONS[function].domain(tuple(Argument(of(a), isinstance(a, Literal)) for a in args))
            case Case(branches, otherwise):
                parts = (*(v for _, v in branches), otherwise)
                return union(tuple(of(p) for p in parts if not isinstance(p, Null)))
            case Member():
                return Listed((False, True))

    def may_be_null(self, scalar: Scalar) -> bool:
        """Whether a row that passes the block's conditions can give NULL (out-of-domain values aside)."""
        if any(_implies_present(condition, scalar) for condition in self._where):
            return False
        match scalar:
            case ColumnRef():
                return self.column(scalar).nullable
            case Literal() | Span():
                return False
            case Null():
                return True
            case Case(branches, otherwise):
                return any(self.may_be_null(v) for v in (*(v for _, v in branches), otherwise))
            case Call():
                return self.may_raise(scalar) or self._call_may_be_null(scalar)
            case Member(argument):
                return self.may_be_null(argument)

    def _call_may_be_null(self, call: Call) -> bool:
        match FUNCTIONS[call.function].nulls:
            case Nulls.NEVER:
                return False
            case Nulls.WITH_ALL:
                return all(self.may_be_null(a) for a in call.args)
            case Nulls.WITH_ANY:
                return any(self.may_be_null(a) for a in call.args)
            case Nulls.WITH_ANY_OR_NO_ANSWER:
                return True
            case _ as never:
                assert_never(never)

    def may_raise(self, scalar: Scalar) -> bool:
        """Whether DuckDB could raise computing the scalar itself, its parts aside; such a call is rendered in TRY."""
        if not isinstance(scalar, Call):
            return False
        arguments = tuple(self.declared(a) for a in scalar.args)
        return FUNCTIONS[scalar.function].may_raise(arguments, self.declared(scalar))


def _implies_present(condition: Scalar, scalar: Scalar) -> bool:
    match condition:
        case Member(argument):
            return argument == scalar
        case Call("=" | "<>" | "<" | "<=" | ">" | ">=", args):
            return scalar in args
        case Call("not", (Call("is null", (argument,)),)):
            return argument == scalar
        case _:
            return False


def _narrow(domain: Domain, scalar: Scalar, condition: Scalar) -> Domain:
    """The domain cut by one condition that every row passes."""
    match condition:
        case Member(argument, items) if argument == scalar:
            return _cut(domain, tuple(i.value for i in items))
        case Call("=", (left, Literal(value))) | Call("=", (Literal(value), left)) if left == scalar:
            return _cut(domain, (value,))
        case Call("<" | "<=", (left, Literal(value))) | Call(">" | ">=", (Literal(value), left)) if left == scalar:
            return _limit(domain, value, upper=True)
        case Call(">" | ">=", (left, Literal(value))) | Call("<" | "<=", (Literal(value), left)) if left == scalar:
            return _limit(domain, value, upper=False)
        case _:
            return domain


def _cut(domain: Domain, values: tuple[Value, ...]) -> Domain:
    """Only these values, in the domain's own order and spelling where it has one."""
    match domain:
        case Listed(known):
            return Listed(tuple(k for k in known if any(same_value(k, v) for v in values)))
        case Bounded():
            return Listed(tuple(dict.fromkeys(v for v in values if inside(v, domain))))
        case Unknown():
            return Listed(tuple(dict.fromkeys(values)))


def _limit(domain: Domain, value: Value, *, upper: bool) -> Domain:
    match domain:
        case Listed(known):
            kept = [k for k in known if (less_or_equal(k, value) if upper else less_or_equal(value, k))]
            return Listed(tuple(kept))
        case Bounded(lo, hi) if upper:
            return Bounded(lo, value) if inside(value, domain) else domain
        case Bounded(lo, hi):
            return Bounded(value, hi) if inside(value, domain) else domain
        case Unknown():
            return domain


def _comparable(left: Value, right: Value) -> tuple[Value, Value]:
    """Dates meet timestamps as midnights; time zones are dropped (all are the policy's)."""
    if isinstance(left, date) and isinstance(right, date) and type(left) is not type(right):
        return _moment(left), _moment(right)
    if isinstance(left, datetime) and isinstance(right, datetime):
        return left.replace(tzinfo=None), right.replace(tzinfo=None)
    if isinstance(left, Decimal) != isinstance(right, Decimal):
        return float(left) if isinstance(left, Decimal) else left, float(right) if isinstance(right, Decimal) else right
    return left, right


def _moment(value: date) -> datetime:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return datetime(value.year, value.month, value.day)


def same_value(left: Value, right: Value) -> bool:
    """SQL equality of two constants of one family."""
    a, b = _comparable(left, right)
    return a == b


def less_or_equal(left: Value, right: Value) -> bool:
    """SQL order of two constants of one family; False when they do not compare."""
    a, b = _comparable(left, right)
    try:
        return bool(a <= b)  # type: ignore[operator]  # families are equal, checked by the binder
    except TypeError:
        return False


def inside(value: Value, domain: Bounded) -> bool:
    """Whether a constant lies in an interval."""
    return less_or_equal(domain.lo, value) and less_or_equal(value, domain.hi)
