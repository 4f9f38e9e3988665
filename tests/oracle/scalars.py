"""What is the value of a scalar of the algebra for one row?

A second, slow definition of every function, written from PostgreSQL's manual and the null and
totality rules; nothing is shared with the renderer. A function that has no value for its arguments
gives NULL, where PostgreSQL raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum
from typing import TypeGuard
from zoneinfo import ZoneInfo

from proxy.policy.model import Bounded, Column, Domain, Listed
from proxy.sql.algebra import Call, Case, ColumnRef, Literal, Member, Null, Scalar, Span
from proxy.sqltypes import Family, SqlType
from tests.oracle import times

Value = None | bool | int | float | str
Stored = Value | Decimal  # as it is stored: numeric is exact until something is computed from it
Row = Mapping[tuple[int, str], Stored]


class NoValue(Exception):
    """A function has no value for its arguments (overflow, impossible date)."""


class Reading(Enum):
    """How a column's value is seen: NULL outside its domain, clamped to it, or as it is."""

    TEST = "test"
    MEASURE = "measure"
    KEY = "key"


def stored(value: object, kind: SqlType, zone: str) -> Stored:
    """A cell of a table as the oracle computes with it."""
    if value is None or isinstance(value, bool):
        return value
    if kind.family is Family.TIME:
        assert isinstance(value, (date, str))
        return times.moment_of(value, zone if kind is SqlType.TIMESTAMPTZ else "UTC")
    if kind is SqlType.NUMERIC:
        assert isinstance(value, (Decimal, int))
        return Decimal(value)
    if kind.is_number and not kind.is_integer:
        assert isinstance(value, (int, float))
        return float(value)
    assert isinstance(value, (int, float, str))
    return value


class Evaluator:
    """Evaluates scalars of one block. column: the policy's column behind a reference."""

    def __init__(self, column: Callable[[ColumnRef], Column], zone: str) -> None:
        self._column = column
        self._zone = zone

    def passes(self, condition: Scalar, row: Row) -> bool:
        """Whether a row passes a filter: NULL and FALSE do not."""
        return self.value(condition, row, Reading.TEST) is True

    def value(self, scalar: Scalar, row: Row, reading: Reading) -> Value:
        """The value of a scalar for one row."""
        match scalar:
            case ColumnRef():
                return self._read(scalar, row, reading)
            case Literal(value, kind):
                return self.constant(value, kind)
            case Null():
                return None
            case Member(argument, items):
                compared = [self._compared(argument, i, row) for i in items]
                return None if None in compared else 0 in compared
            case Case(branches, otherwise, kind):
                for condition, result in branches:
                    if self.value(condition, row, Reading.TEST) is True:
                        return converted(self.value(result, row, reading), kind)
                return converted(self.value(otherwise, row, reading), kind)
            case Call():
                return self._call(scalar, row, reading)
            case Span():
                raise AssertionError("an interval stands beside a time only")

    def constant(self, value: object, kind: SqlType) -> Value:
        """A literal in the computing type."""
        if isinstance(value, datetime) and value.tzinfo is not None:
            value = value.astimezone(ZoneInfo(self._zone)).replace(tzinfo=None)
        if isinstance(value, date):
            return times.moment_of(value)
        if isinstance(value, int) and not isinstance(value, bool) and (kind.is_integer or not kind.is_number):
            return value if abs(value) < 2**63 else float(value)
        return float(value) if isinstance(value, (Decimal, int)) and not isinstance(value, bool) else value  # type: ignore[return-value]  # text or float

    # --- columns ----------------------------------------------------------------------------------------

    def raw(self, reference: ColumnRef, row: Row) -> Value:
        """The stored value to compute with; a padded text without its padding."""
        value = row[reference.scan, reference.name]
        if isinstance(value, Decimal):
            return float(value)
        return value.rstrip(" ") if isinstance(value, str) and reference.type is SqlType.BPCHAR else value

    def is_inside(self, reference: ColumnRef, value: Value) -> bool:
        """Whether a value lies in its column's declared domain; NULL never does."""
        return value is not None and in_domain(value, self._column(reference).domain, self, reference.type)

    def _read(self, reference: ColumnRef, row: Row, reading: Reading) -> Value:
        value, column = self.raw(reference, row), self._column(reference)
        if reading is Reading.KEY or not isinstance(column.domain, (Bounded, Listed)):
            return value
        if reading is Reading.TEST or not reference.type.is_number:
            return value if self.is_inside(reference, value) else None
        assert value is None or isinstance(value, (int, float))
        lo, hi = ends(column.domain, reference.type)
        if value is not None and math.isfinite(value):
            return min(max(value, lo), hi)
        return None if column.nullable else middle(column.domain, reference.type)

    # --- calls ------------------------------------------------------------------------------------------

    def _call(self, call: Call, row: Row, reading: Reading) -> Value:
        name = call.function
        inner = Reading.TEST if reading is Reading.KEY or call.type is SqlType.BOOL else reading
        if name == "coalesce":
            for argument in call.args:
                found = converted(self.value(argument, row, inner), call.type)
                if found is not None:
                    return found
            return None
        if name in _COMPARISONS:
            found = self._compared(call.args[0], call.args[1], row)
            return None if found is None else _COMPARISONS[name](found)
        if name.startswith("time "):
            return self._shift(call, row, inner)
        values = [self.value(a, row, inner) for a in call.args]
        if name in _LENIENT:
            return _LENIENT[name](call, values)
        if any(v is None for v in values):
            return None
        try:
            return compute(name, call, values)
        except NoValue:
            return None

    def _compared(self, left: Scalar, right: Scalar, row: Row) -> int | None:
        """-1, 0 or 1; None where a side is NULL. Columns and constants that are no doubles compare exactly."""
        ours, theirs = self.value(left, row, Reading.TEST), self.value(right, row, Reading.TEST)
        if ours is None or theirs is None:
            return None
        if not _is_exact(left) or not _is_exact(right):
            return order(ours, theirs)
        exact, other = (s.value if isinstance(s, Literal) else row[s.scan, s.name] for s in (left, right))
        assert isinstance(exact, (int, Decimal))
        assert isinstance(other, (int, Decimal))
        return (exact > other) - (exact < other)

    def _shift(self, call: Call, row: Row, reading: Reading) -> Value:
        moment, span = self.value(call.args[0], row, reading), call.args[1]
        assert isinstance(span, Span)
        if moment is None:
            return None
        assert isinstance(moment, (int, float))
        sign = 1 if call.function == "time + interval" else -1
        found = times.shifted(moment, sign * span.months, sign * span.days, sign * span.microseconds)
        return None if isinstance(found, int) and abs(found) >= 2**63 else found


def _is_exact(scalar: Scalar) -> TypeGuard[ColumnRef | Literal]:
    is_double = isinstance(scalar, Literal) and isinstance(scalar.value, float)
    return isinstance(scalar, (ColumnRef, Literal)) and not is_double and (
        scalar.type.is_integer or scalar.type is SqlType.NUMERIC)  # fmt: skip


# --- domains --------------------------------------------------------------------------------------------


def ends(domain: Domain, kind: SqlType) -> tuple[float, float]:
    """Lowest and highest value of a numeric domain, as the column's own type has them."""
    assert isinstance(domain, (Bounded, Listed))
    values = (domain.lo, domain.hi) if isinstance(domain, Bounded) else domain.values
    numbers = [v for v in values if isinstance(v, (int, float, Decimal))]
    if kind.is_integer:
        return math.ceil(min(numbers)), math.floor(max(numbers))
    return float(min(numbers)), float(max(numbers))


def middle(domain: Domain, kind: SqlType) -> float:
    """What stands for NULL in a column declared without."""
    lo, hi = ends(domain, kind)
    return (lo + hi) // 2 if kind.is_integer else lo / 2 + hi / 2


def in_domain(value: Value, domain: Domain, evaluator: Evaluator, kind: SqlType) -> bool:
    match domain:
        case Bounded(lo, hi):
            low, high = evaluator.constant(lo, kind), evaluator.constant(hi, kind)
            return order(low, value) <= 0 and order(value, high) <= 0
        case Listed(values):
            return any(equal(value, evaluator.constant(v, kind)) for v in values)
        case _:
            return True


# --- comparison -----------------------------------------------------------------------------------------


def order(left: Value, right: Value) -> int:
    """-1, 0 or 1: numbers as doubles unless both are integers, NaN above all and equal to itself, texts by code."""
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    assert isinstance(left, (int, float))
    assert isinstance(right, (int, float))
    if not (isinstance(left, int) and isinstance(right, int)):
        left, right = float(left), float(right)
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) - math.isnan(right)
    return (left > right) - (left < right)


def equal(left: Value, right: Value) -> bool:
    return order(left, right) == 0


def converted(value: Value, kind: SqlType) -> Value:
    """A value that meets others, in their common type."""
    if isinstance(value, int) and not isinstance(value, bool) and kind.is_number and not kind.is_integer:
        return float(value)
    return value


def _both(call: Call, values: list[Value]) -> Value:
    left, right = values
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _either(call: Call, values: list[Value]) -> Value:
    left, right = values
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _differs(call: Call, values: list[Value]) -> Value:
    left, right = values
    return not equal(left, right) if left is not None and right is not None else left is not right


def _extreme(sign: int) -> Callable[[Call, list[Value]], Value]:
    def best(call: Call, values: list[Value]) -> Value:
        found: Value = None
        for value in (converted(v, call.type) for v in values):
            if value is not None and (found is None or order(value, found) * sign > 0):
                found = value
        return found

    return best


def _nullif(call: Call, values: list[Value]) -> Value:
    left, right = values
    return None if left is not None and right is not None and equal(left, right) else left


_LENIENT: dict[str, Callable[[Call, list[Value]], Value]] = {
    "and": _both,
    "or": _either,
    "is null": lambda _, v: v[0] is None,
    "is distinct from": _differs,
    "greatest": _extreme(1),
    "least": _extreme(-1),
    "nullif": _nullif,
}
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "=": lambda o: o == 0,
    "<>": lambda o: o != 0,
    "<": lambda o: o < 0,
    "<=": lambda o: o <= 0,
    ">": lambda o: o > 0,
    ">=": lambda o: o >= 0,
}


# --- functions ------------------------------------------------------------------------------------------


def compute(name: str, call: Call, values: list[Value]) -> Value:
    """A function of present arguments. Raises NoValue."""
    if name == "not":
        return not values[0]
    if name.startswith("integer "):
        return _integer(name.removeprefix("integer "), [int(v) for v in values])  # type: ignore[arg-type]
    if name.startswith("cast "):
        return _cast(name.removeprefix("cast "), call, values[0])
    if name.startswith(("extract ", "date_trunc ", "date ")):
        return _time(name, values)
    if call.args[0].type.is_text:
        return _text(name, values)
    return _real(name, [float(v) for v in values])  # type: ignore[arg-type]


def _integer(name: str, values: list[int]) -> Value:
    left, right = values[0], values[-1]
    if name in ("/", "%") and right == 0:
        return None
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1) if right else 0
    result = {
        "+": left + right, "-": left - right, "*": left * right, "/": quotient, "%": left - right * quotient,
        "negate": -left, "abs": abs(left),
    }[name]  # fmt: skip
    if not -(2**63) <= result < 2**63:
        raise NoValue
    return result


def _real(name: str, values: list[float]) -> Value:
    left, right = values[0], values[-1]
    match name:
        case "+" | "-":
            return left + right if name == "+" else left - right
        case "*":
            return left * right
        case "/":
            return None if right == 0 else left / right
        case "%":
            return None if right == 0 else _remainder(left, right)
        case "negate":
            return -left
        case "abs":
            return abs(left)
        case "sqrt":
            return None if left < 0 else math.sqrt(left) if math.isfinite(left) else left
        case "exp" | "ln" | "log" | "sign" | "power":
            return _smooth(name, left, right)
        case "width_bucket" | "width_bucket numeric":
            return _bucket(left, values[1], values[2], int(right), is_exact=name.endswith("numeric"))
        case "round digits" | "round tens":
            return _round_digits(left, int(right))
        case _:
            return _rounded(name, left)


def _smooth(name: str, value: float, exponent: float) -> Value:
    try:
        match name:
            case "exp":
                return math.exp(value) if value <= 709 else None
            case "ln" | "log":
                return None if value <= 0 else math.log(value) if name == "ln" else math.log10(value)
            case "sign":
                return float((value > 0) - (value < 0))
            case _:
                found = math.pow(value, exponent)
                return found if math.isfinite(found) else None
    except (OverflowError, ValueError):
        return None


def _bucket(value: float, low: float, high: float, count: int, *, is_exact: bool) -> Value:
    """Numerics are divided in decimal digits, as written."""
    if math.isnan(value) or value >= high:
        return count + 1
    if value < low:
        return 0
    if is_exact:
        at, first, last = (Decimal(f"{v:.15g}") for v in (value, low, high))
        return min(int((at - first) * count / (last - first)) + 1, count)
    return min(math.floor((value - low) / (high - low) * count) + 1, count)


def _half_away(value: float) -> float:
    whole = math.trunc(value)
    return whole + math.copysign(1, value) if abs(value - whole) >= 0.5 else whole


_ROUNDINGS: dict[str, Callable[[float], float]] = {
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": _half_away, "round real": round,
}  # fmt: skip


def _rounded(name: str, left: float) -> float:
    if not math.isfinite(left):
        return left
    return float(_ROUNDINGS[name](left))


def _remainder(left: float, right: float) -> float:
    return math.nan if math.isinf(left) or math.isnan(left) or math.isnan(right) else math.fmod(left, right)


def _round_digits(value: float, digits: int) -> float:
    """Halves of the decimal digits go away from zero; a double stands for its first 15 digits."""
    if not math.isfinite(value):
        return value
    if digits < 0:
        return float(_half_away(value / 10.0**-digits)) * 10.0**-digits
    if abs(value) * 10.0**digits >= 1e14:
        return value  # no fraction is left among the digits
    return float(Decimal(f"{value:.15g}").quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def _text(name: str, values: list[Value]) -> Value:
    text = str(values[0])
    match name:
        case "lower" | "upper":
            return "".join(_one_letter(c, name) for c in text)
        case "length":
            return len(text)
        case "||":
            return text + str(values[1])
        case "trim" | "ltrim" | "rtrim":
            return {"trim": str.strip, "ltrim": str.lstrip, "rtrim": str.rstrip}[name](text, str(values[1]))
        case "substring" | "substring from":
            first = int(values[1] or 0) - 1
            return text[first : first + int(values[2] or 0)] if len(values) > 2 else text[first:]
        case "matches" | "matches, any case":
            flags = re.DOTALL | (re.IGNORECASE if name != "matches" else 0)
            return re.search(str(values[1]).replace("$", r"\Z"), text, flags) is not None
        case "like" | "ilike":
            flags = re.DOTALL | (re.IGNORECASE if name == "ilike" else 0)
            return re.fullmatch(_pattern(str(values[1])), text, flags) is not None
        case _:
            return _searched(name, text, values)


def _searched(name: str, text: str, values: list[Value]) -> Value:
    match name:
        case "right":
            return text[len(text) - min(int(values[1] or 0), len(text)) :]
        case "position":
            return text.find(str(values[1])) + 1
        case "starts with":
            return text.startswith(str(values[1]))
        case "replace":
            return text.replace(str(values[1]), str(values[2])) if values[1] else text
        case "lpad" | "rpad":
            return _padded(name, text, int(values[1] or 0), str(values[2]))
        case _:
            raise AssertionError(name)


def _padded(name: str, text: str, count: int, fill: str) -> str:
    if len(text) >= count:
        return text[:count]
    missing = (fill * count)[: count - len(text)]
    return missing + text if name == "lpad" else text + missing


def _one_letter(letter: str, case: str) -> str:
    changes = (letter.lower(), {"İ": "i"}) if case == "lower" else (letter.upper(), {"ß": "ẞ"})
    return changes[0] if len(changes[0]) == 1 else changes[1].get(letter, letter)


def _pattern(like: str) -> str:
    found, letters = "", iter(like)
    for letter in letters:
        found += {"%": ".*", "_": "."}.get(letter) or re.escape(next(letters) if letter == "\\" else letter)
    return found


def _time(name: str, values: list[Value]) -> Value:
    left, right = values[0], values[-1]
    assert isinstance(left, (int, float))
    assert isinstance(right, (int, float))
    if name.startswith("extract "):
        found = times.field_of(name.removeprefix("extract "), left)
        return None if found is None else float(found)
    if name.startswith("date_trunc "):
        return times.truncated(name.removeprefix("date_trunc "), left)
    if name == "date - date":
        if not (isinstance(left, int) and isinstance(right, int)):
            return None
        return (left - right) // times.DAY
    if not -(2**31) <= right < 2**31:
        raise NoValue
    days = int(right) if name == "date + integer" else -int(right)
    return _in_calendar(left + days * times.DAY, times.DAY * 2**31) if isinstance(left, int) else left


def _in_calendar(moment: times.Moment, limit: int = 2**63) -> times.Moment:
    if isinstance(moment, int) and not -limit < moment < limit:
        raise NoValue
    return moment


def _cast(name: str, call: Call, value: Value) -> Value:
    source, _, _target = name.partition(" to ")
    kind = call.type
    if kind.is_integer:
        return _to_integer(source, kind, value)
    if kind.is_number:
        return float(value) if source == "number" else _parsed_number(str(value))  # type: ignore[arg-type]
    if kind.is_text:
        return _to_text(source, value)
    if source == "text":
        return None  # the fuzzer's texts hold no dates
    assert isinstance(value, (int, float))
    return value - value % times.DAY if kind is SqlType.DATE and isinstance(value, int) else value


def _to_integer(source: str, kind: SqlType, value: Value) -> Value:
    if source == "boolean":
        return int(bool(value))
    if source == "text":
        text = str(value).strip()
        return int(text) if re.fullmatch(r"[+-]?\d+", text) and abs(int(text)) < 2**63 else None
    assert isinstance(value, (int, float))
    limit = {SqlType.INT2: 2**15, SqlType.INT4: 2**31, SqlType.INT8: 2**63}[kind]
    if math.isnan(value) or not -limit <= value < limit:
        return None
    if isinstance(value, int):
        return value
    return round(value) if source == "real" else int(_half_away(value))


def _parsed_number(text: str) -> Value:
    return float(text) if re.fullmatch(r"\s*[+-]?\d+(\.\d*)?\s*", text) else None


def _to_text(source: str, value: Value) -> Value:
    if source == "date":
        assert isinstance(value, (int, float))
        return times.date_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
