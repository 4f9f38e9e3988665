"""What is the value of a function of present arguments?"""

from __future__ import annotations

import math
import re

from proxy.sql.algebra.nodes import Call
from proxy.sqltypes import SqlType
from tests.oracle import times
from tests.oracle.numbers import half_away, integer, real
from tests.oracle.texts import text_function
from tests.oracle.values import NoValue, Value


def compute(name: str, call: Call, values: list[Value]) -> Value:
    """A function of present arguments. Raises NoValue."""
    if name == "not":
        return not values[0]
    if name.startswith("integer "):
        return integer(name.removeprefix("integer "), [int(v) for v in values])  # type: ignore[arg-type]
    if name.startswith("cast "):
        return _cast(name.removeprefix("cast "), call, values[0])
    if name.startswith(("extract ", "date_trunc ", "date ")):
        return _time(name, values)
    if name == "isfinite":
        return isinstance(values[0], int)
    if name == "to_char":
        assert isinstance(values[0], (int, float))
        return times.spelled(values[0], str(values[1]))
    if name in _SPANS:
        return _span(name, values)
    if name.startswith("age"):
        return _age(name.removeprefix("age").strip(), values)
    if name == "interval":
        return values[0]
    if name == "time of day":
        return values[0] % times.DAY if isinstance(values[0], int) else None
    if call.args[0].type.is_text:
        return text_function(name, values)
    return real(name, [float(v) for v in values])  # type: ignore[arg-type]


def _time(name: str, values: list[Value]) -> Value:
    left, right = values[0], values[-1]
    assert isinstance(left, (int, float))
    assert isinstance(right, (int, float))
    if name.startswith("extract "):
        found = times.field_of(name.removeprefix("extract "), left)
        return None if found is None else float(found)
    if name.startswith("date_trunc "):
        found = times.truncated(name.removeprefix("date_trunc "), left)
        return found if found is None else _in_calendar(found)
    if name == "date - date":
        if not (isinstance(left, int) and isinstance(right, int)):
            return None
        return (left - right) // times.DAY
    if not -(10**8) < right < 10**8:
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
        found = times.read(str(value))
        return found if found is None or kind is not SqlType.DATE else found - found % times.DAY
    assert isinstance(value, (int, float))
    if kind is SqlType.DATE:
        return value - value % times.DAY if isinstance(value, int) else value
    return _in_calendar(value)


def _to_integer(source: str, kind: SqlType, value: Value) -> Value:
    if source == "boolean":
        return int(bool(value))
    if source == "text":
        text = str(value).strip()
        size = {SqlType.INT2: 2**15, SqlType.INT4: 2**31, SqlType.INT8: 2**63}[kind]
        return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) and -size <= int(text) < size else None
    assert isinstance(value, (int, float))
    limit = {SqlType.INT2: 2**15, SqlType.INT4: 2**31, SqlType.INT8: 2**63}[kind]
    if not math.isfinite(value):
        return None
    whole = value if isinstance(value, int) else round(value) if source == "real" else int(half_away(value))
    return whole if -limit <= whole < limit else None


def _parsed_number(text: str) -> Value:
    number = r"\s*([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|[+-]?inf(inity)?)\s*"
    return float(text) if re.fullmatch(number, text, re.IGNORECASE) else None


def _to_text(source: str, value: Value) -> Value:
    if source == "timestamp":
        assert isinstance(value, (int, float))
        return times.time_text(value)
    if source == "date":
        assert isinstance(value, (int, float))
        return times.date_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _age(field: str, values: list[Value]) -> Value:
    """An age in months of thirty days, or a field of it."""
    end, start = values
    assert isinstance(end, (int, float))
    assert isinstance(start, (int, float))
    found = times.age_of(end, start)
    if found is None:
        return None
    months, rest = found
    sign, clock = (1, rest % times.DAY) if (months, rest) >= (0, 0) else (-1, -rest % times.DAY)
    return {
        "": months * 30 * times.DAY + rest, "year": sign * (abs(months) // 12), "month": sign * (abs(months) % 12),
        "day": sign * (abs(rest) // times.DAY), "hour": sign * (clock // 3_600_000_000),
        "minute": sign * (clock // 60_000_000 % 60), "microseconds": sign * (clock % 60_000_000),
    }[field]  # fmt: skip


_SPANS = ("time - time", "date_bin", "make_date", "to_timestamp", "local time", "instant")


def _span(name: str, values: list[Value]) -> Value:
    """Differences and bins of times, times made of numbers, and clocks of other zones."""
    left, right = values[0], values[-1]
    assert isinstance(left, (int, float))
    match name:
        case "time - time":
            assert isinstance(right, (int, float))
            return int(left - right) if isinstance(left, int) and isinstance(right, int) else None
        case "date_bin":
            assert isinstance(values[1], int)
            assert isinstance(right, int)
            return right + (left - right) // values[1] * values[1] if isinstance(left, int) else left
        case "make_date":
            return times.made(int(left), int(values[1] or 0), int(right or 0))
        case "to_timestamp":
            return round(left * 1e6) if abs(left) < 9e11 else None
        case _:
            return times.on_clocks(left, str(values[1]), str(right))
