"""Which values are left of a domain, once a condition holds?

Only conditions that compare the very same scalar with constants say anything. Ends are closed: what `<` leaves of whole
numbers, dates and timestamps ends one step before. An end may be infinite; see `sql.intervals`.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import Decimal

from proxy.policy.model import Bounded, Domain, Listed, Unknown
from proxy.sql.algebra.comparisons import NEGATED, Comparison, with_constant
from proxy.sql.algebra.nodes import Call, Member, Scalar, conjuncts, is_null
from proxy.sql.conditions.decided import decided
from proxy.sql.conditions.factored import alternatives
from proxy.sql.functions.domains.intervals import as_datetime, half_open
from proxy.sqltypes import SqlType, Value

_EXACT_DOUBLES = 2**53
_STEP = {SqlType.DATE: timedelta(days=1), SqlType.TIMESTAMP: timedelta(microseconds=1),
         SqlType.TIMESTAMPTZ: timedelta(microseconds=1)}  # fmt: skip


def narrow(domain: Domain, scalar: Scalar, condition: Scalar) -> Domain:
    """The domain of a scalar, cut by one condition that every row passes."""
    if condition == scalar:
        return _cut(domain, (True,), scalar.type)
    left = decided(condition)
    compared = with_constant(left)
    if compared is not None and compared.part == scalar:
        return _compared(domain, compared, scalar.type)
    match left:
        case Member(argument, items) if argument == scalar:
            return _cut(domain, tuple(i.value for i in items), scalar.type)
        case Call("not", (inner,)) if inner == scalar:
            return _cut(domain, (False,), scalar.type)
        case Call("not", (inner,)):
            for implied in negations(inner):
                domain = narrow(domain, scalar, implied)
            return domain
        case Call("or"):
            return _either(domain, scalar, condition)
        case _:
            return domain


def _compared(domain: Domain, by: Comparison, kind: SqlType) -> Domain:
    match by.operator:
        case "=":
            return _cut(domain, (by.value,), kind)
        case "<>" | "is distinct from":
            return _without(domain, by.value, kind)
        case _:
            return _limit(domain, by.operator, by.value, kind)


def _either(domain: Domain, scalar: Scalar, condition: Scalar) -> Domain:
    """What is left by any alternative of an OR, where each leaves a list of values."""
    found: list[Value] = []
    for alternative in alternatives(condition):
        left = domain
        for part in conjuncts(alternative):
            left = Listed(()) if part == is_null(scalar) else narrow(left, scalar, part)
        if not isinstance(left, Listed) or left == domain:
            return domain
        found += left.values
    return _cut(domain, tuple(found), scalar.type)


def negations(condition: Scalar) -> tuple[Scalar, ...]:
    """Comparisons that hold where a condition does not, NULL aside. Those it cannot tell are left out."""
    match condition:
        case Call(op, args) if op in NEGATED:
            return (Call(NEGATED[op], args, SqlType.BOOL),)
        case Call("or", (left, right)):
            return (*negations(left), *negations(right))
        case Call("not", (inner,)):
            return conjuncts(inner)
        case Member(argument, items):
            return tuple(Call("<>", (argument, item), SqlType.BOOL) for item in items)
        case _:
            return ()


def _cut(domain: Domain, constants: tuple[Value, ...], kind: SqlType) -> Domain:
    """Only these values, in the domain's own order and spelling where it has one."""
    if kind.is_integer and any(_is_blurred(c) for c in constants):
        return domain
    values = tuple(v for c in constants if (v := _of_type(c, kind)) is not None)
    match domain:
        case Listed(known):
            return Listed(tuple(k for k in known if any(same_value(k, v) for v in values)))
        case Bounded():
            return Listed(tuple(dict.fromkeys(v for v in values if inside(v, domain))))
        case Unknown():
            return Listed(tuple(dict.fromkeys(values)))


def _without(domain: Domain, constant: Value, kind: SqlType) -> Domain:
    """The values of a list that are not this one."""
    if not isinstance(domain, Listed) or (kind.is_integer and _is_blurred(constant)):
        return domain
    return Listed(tuple(k for k in domain.values if not same_value(k, constant)))


def _is_blurred(constant: Value) -> bool:
    """Whether a constant of double precision equals several whole numbers, since it is compared as a double."""
    return isinstance(constant, float) and not abs(constant) < _EXACT_DOUBLES


def _of_type(constant: Value, kind: SqlType) -> Value | None:
    """The value of the type that equals a constant; None if there is none, as for 2.5 among whole numbers."""
    if not kind.is_integer or not isinstance(constant, (float, Decimal)):
        return constant
    return int(constant) if constant == int(constant) else None


def _limit(domain: Domain, op: str, value: Value, kind: SqlType) -> Domain:
    if kind.is_integer and _is_blurred(value):
        return domain
    is_upper, is_strict = op in ("<", "<="), op in ("<", ">")
    end = _closed(value, kind, is_upper=is_upper, is_strict=is_strict)
    match domain:
        case Listed(known):
            sides = (k for k in known if (less_or_equal(k, value) if is_upper else less_or_equal(value, k)))
            return Listed(tuple(k for k in sides if not (is_strict and same_value(k, value))))
        case Bounded(lo, hi):
            if not inside(end, domain):
                return domain
            return Bounded(lo, end) if is_upper else Bounded(end, hi)
        case Unknown():
            return half_open(end, is_upper=is_upper)


def _closed(value: Value, kind: SqlType, *, is_upper: bool, is_strict: bool) -> Value:
    """The last value of the type that a comparison leaves on its side."""
    sign = -1 if is_upper else 1
    if kind.is_integer and isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        whole = math.floor(value) if is_upper else math.ceil(value)
        return whole + sign if is_strict and whole == value else whole
    is_moment = isinstance(value, datetime) if kind is not SqlType.DATE else type(value) is date
    if is_strict and kind in _STEP and is_moment and isinstance(value, date):
        try:
            return value + sign * _STEP[kind]
        except OverflowError:
            return value
    return value


def _comparable(left: Value, right: Value) -> tuple[Value, Value]:
    """Dates meet timestamps as midnights; time zones are dropped (all are the policy's)."""
    if isinstance(left, date) and isinstance(right, date) and type(left) is not type(right):
        return as_datetime(left), as_datetime(right)
    if isinstance(left, datetime) and isinstance(right, datetime):
        return left.replace(tzinfo=None), right.replace(tzinfo=None)
    if isinstance(left, Decimal) and isinstance(right, float):
        return float(left), right
    if isinstance(left, float) and isinstance(right, Decimal):
        return left, float(right)
    return left, right


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
