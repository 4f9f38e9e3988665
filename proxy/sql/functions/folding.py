"""Which constant does a cast or a function of constants give?

Drivers write `$1::integer`, people `12 * 4`. Folded, such an expression is as good as a constant for IN lists and
bounds. It is also exact then, as numeric is in PostgreSQL, while the engine computes with doubles. What is not folded
here is computed by the engine as for any other argument.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from types import MappingProxyType
from typing import Any

from proxy.policy.model import Listed
from proxy.sql.algebra.comparisons import HOLDS
from proxy.sql.algebra.nodes import Literal, Scalar, Span
from proxy.sql.functions.constant_evaluation import ImageRule
from proxy.sql.functions.decimals import FoldRule
from proxy.sql.functions.domains.rules import Argument
from proxy.sql.functions.function import Function
from proxy.sqltypes import SqlType, Value

_MOST_DIGITS = 1000  # longer numbers are left to the engine
_SIZES = {SqlType.INT2: 15, SqlType.INT4: 31, SqlType.INT8: 63}


def fold_cast(literal: Literal, wanted: SqlType) -> Literal | None:
    """The constant, or None where the cast is left to the engine. Raises ValueError if PostgreSQL would."""
    value = _convert(literal, wanted)
    return None if value is None else Literal(value, wanted)


def _convert(literal: Literal, wanted: SqlType) -> Value | None:
    value = literal.value
    match value:
        case bool():
            return int(value) if wanted is SqlType.INT4 else None
        case int() | Decimal() | float() if wanted.is_integer:
            return _whole(value, wanted)
        case int() | Decimal() | float() if wanted.is_number:
            return _fraction(value, wanted)
        case int() if wanted.is_text and wanted is not SqlType.UUID:
            return str(value)
        case str() if literal.type.is_text and wanted in (SqlType.TEXT, SqlType.VARCHAR):
            return value
        case datetime() if literal.type is SqlType.TIMESTAMP and wanted is SqlType.DATE:
            return value.date()
        case date() if literal.type is SqlType.DATE and wanted is SqlType.TIMESTAMP:
            return datetime(value.year, value.month, value.day)
        case _:
            return None


def _whole(value: int | Decimal | float, wanted: SqlType) -> int:
    """Numeric rounds halves away from zero, double precision to even."""
    rounding = ROUND_HALF_EVEN if isinstance(value, float) else ROUND_HALF_UP
    number = int(Decimal(value).to_integral_value(rounding))
    if not -(2 ** _SIZES[wanted]) <= number < 2 ** _SIZES[wanted]:
        raise ValueError(value)
    return number


def _fraction(value: int | Decimal | float, wanted: SqlType) -> Value:
    if wanted is SqlType.NUMERIC:
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if wanted is SqlType.FLOAT4:
        try:
            (single,) = struct.unpack("<f", struct.pack("<f", float(value)))
        except OverflowError as error:
            raise ValueError(value) from error
        return float(single)
    return float(value)


def fold_call(rule: FoldRule, args: tuple[Scalar, ...], wanted: SqlType) -> Literal | None:
    """The constant that a function of exact numbers is, or None where it is left to the engine."""
    values = tuple(a.value for a in args if isinstance(a, Literal) and a.type.is_number)
    exact = tuple(Decimal(v) for v in values if isinstance(v, (int, Decimal)))
    if len(exact) < len(args) or wanted in (SqlType.FLOAT4, SqlType.FLOAT8):
        return None
    try:
        found = rule(exact)
    except ArithmeticError:
        return None
    if found is None or isinstance(found, bool):
        return None if found is None else Literal(found, wanted)
    if wanted.is_integer:
        limit = 2 ** _SIZES[wanted]
        return Literal(int(found), wanted) if -limit <= found < limit else None
    is_short = max(len(found.as_tuple().digits), -found.adjusted()) <= _MOST_DIGITS and math.isfinite(float(found))
    return Literal(found or abs(found), wanted) if is_short else None


def fold_time(function: Function, args: tuple[Scalar, ...], wanted: SqlType) -> Literal | None:
    """The constant that a time moved by an interval or cut to a unit is, or None where it is left to the engine."""
    if wanted not in _TIMES or not function.name.startswith(_OF_TIMES) or not isinstance(args[0], Literal):
        return None
    values = tuple(a.value if isinstance(a, Literal) else a for a in args if isinstance(a, (Literal, Span)))
    if len(values) < len(args):
        return None
    found = function.image(values)
    if not found and len(args) == 1:
        known = function.domain((Argument(Listed((args[0].value,)), is_constant=True),))
        found = known.values if isinstance(known, Listed) else ()
    match found:
        case (datetime() as moment,):
            return Literal(moment, wanted)
        case _:
            return None


_TIMES = frozenset((SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ))
_OF_TIMES = ("time + interval", "time - interval", "date_trunc ", "to_timestamp", "cast time to timestamptz")


def fold_compared(name: str, args: tuple[Scalar, ...]) -> Literal | None:
    """Whether two constants of one type are equal, ordered or apart, where everybody compares them alike."""
    match args:
        case (Literal(left, kind), Literal(right, other)) if kind is other and kind in _PLAIN and name in _COMPARED:
            return Literal(_COMPARED[name](left, right), SqlType.BOOL)
        case _:
            return None


_PLAIN = frozenset((SqlType.TEXT, SqlType.VARCHAR, SqlType.BOOL, SqlType.DATE))
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        **HOLDS,
        "is distinct from": operator.ne,
    }
)


def fold_text(rule: ImageRule, args: tuple[Scalar, ...], wanted: SqlType) -> Literal | None:
    """The constant that a function of constants gives as a text, or None where it is left to the engine."""
    values = tuple(a.value for a in args if isinstance(a, Literal))
    found = rule(values) if len(values) == len(args) and wanted is SqlType.TEXT else ()
    return Literal(found[0], wanted) if found and isinstance(found[0], str) else None
