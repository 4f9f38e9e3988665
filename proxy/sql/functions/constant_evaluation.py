"""Which value does the engine give for arguments that are known?

Rules for the rows of `sql.functions`, made for public groups: what a function makes of every value that its arguments
can have is all it can give. A rule says the engine's value to the last digit, or nothing. A wrong one would drop rows
from their group, and never show a group that depends on them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal

from proxy.sql.algebra.nodes import Span
from proxy.sql.functions import letters
from proxy.sql.functions.decimals import FoldRule
from proxy.sql.functions.domains.intervals import as_datetime
from proxy.sql.functions.domains.spans import binned
from proxy.sql.functions.domains.times import shifted
from proxy.sql.literals.time_texts import field_of, spell
from proxy.sqltypes import Value

Constant = Value | Span
ConstantValues = tuple[Constant, ...]
ImageRule = Callable[[ConstantValues], tuple[Value, ...]]

_WHOLE_DOUBLES = 2**53


def nothing_known(_: ConstantValues) -> tuple[Value, ...]:
    """The default for a new function."""
    return ()


def an_argument(values: ConstantValues) -> tuple[Value, ...]:
    """One of the arguments, whichever it is; an interval cannot be a group."""
    return tuple(v for v in values if not isinstance(v, Span))


def whole(fold: FoldRule) -> ImageRule:
    """Arithmetic of whole numbers that a double holds exactly, with a whole result."""

    def rule(values: ConstantValues) -> tuple[Value, ...]:
        numbers = tuple(Decimal(v) for v in values if isinstance(v, (int, float, Decimal)) and not isinstance(v, bool))
        found = fold(numbers) if len(numbers) == len(values) and all(map(_is_exact, numbers)) else None
        return (int(found),) if isinstance(found, Decimal) and _is_exact(found) else ()

    return rule


def _is_exact(number: Decimal) -> bool:
    return number.is_finite() and abs(number) < _WHOLE_DOUBLES and number == number.to_integral_value()


def text(function: Callable[..., str | int]) -> ImageRule:
    """A function of texts and whole numbers."""

    def rule(values: ConstantValues) -> tuple[Value, ...]:
        return (function(*values),) if all(isinstance(v, (str, int)) for v in values) else ()

    return rule


def like(values: ConstantValues) -> tuple[Value, ...]:
    """Whether a text is as a pattern says, as its letters are."""
    match values:
        case (str() as text, str() as pattern):
            return (letters.like(text, pattern),)
        case _:
            return ()


def like_in_any_case(values: ConstantValues) -> tuple[Value, ...]:
    """The same of letters that everybody pairs alike."""
    match values:
        case (str() as text, str() as pattern) if text.isascii() and pattern.isascii():
            return (letters.like(text.lower(), pattern.lower()),)
        case _:
            return ()


def truth(function: Callable[[bool], int | str]) -> ImageRule:
    """A cast of a truth value."""

    def rule(values: ConstantValues) -> tuple[Value, ...]:
        match values:
            case (bool() as is_true,):
                return (function(is_true),)
            case _:
                return ()

    return rule


def spelled(values: ConstantValues) -> tuple[Value, ...]:
    """A whole number or a day as text."""
    match values:
        case (bool(),) | (datetime(),):
            return ()
        case (int() as number,):
            return (str(number),)
        case (date() as day,):
            return (day.isoformat(),)
        case _:
            return ()


def moved(sign: int) -> ImageRule:
    """A time and an interval, or a date and days."""

    def rule(values: ConstantValues) -> tuple[Value, ...]:
        try:
            match values:
                case (date() as moment, Span(months, days, microseconds)):
                    return (shifted(as_datetime(moment), sign * months, sign * days, sign * microseconds),)
                case (date() as day, int() as days) if not isinstance(day, datetime):
                    return (day + timedelta(days=sign * days),)
                case _:
                    return ()
        except OverflowError:
            return ()

    return rule


def days_between(values: ConstantValues) -> tuple[Value, ...]:
    match values:
        case (date() as end, date() as start):
            return ((as_datetime(end) - as_datetime(start)).days,)
        case _:
            return ()


def field(name: str) -> ImageRule:
    """A whole field of a date or timestamp."""

    def rule(values: ConstantValues) -> tuple[Value, ...]:
        match values:
            case (date() as moment,):
                return (field_of(name, as_datetime(moment)),)
            case _:
                return ()

    return rule


def formatted(values: ConstantValues) -> tuple[Value, ...]:
    """A time in strftime's directives."""
    match values:
        case (date() as moment, str() as directives):
            return (spell(as_datetime(moment), directives),)
        case _:
            return ()


def moved_often(sign: int) -> ImageRule:
    """A time and so many intervals."""

    def rule(values: ConstantValues) -> tuple[Value, ...]:
        match values:
            case (date() as moment, Span(months, days, microseconds), int() | float() | Decimal() as number):
                times = sign * int(number)
                try:
                    return (shifted(as_datetime(moment), times * months, times * days, times * microseconds),)
                except OverflowError:
                    return ()
            case _:
                return ()

    return rule


def bins(values: ConstantValues) -> tuple[Value, ...]:
    match values:
        case (date() as moment, int() as stride, date() as origin):
            return (binned(as_datetime(moment), stride, as_datetime(origin)),)
        case _:
            return ()


def made_date(values: ConstantValues) -> tuple[Value, ...]:
    match values:
        case (int() as year, int() as month, int() as day):
            try:
                return (date(year, month, day),)
            except (ValueError, OverflowError):
                return ()
        case _:
            return ()


def after_seconds(values: ConstantValues) -> tuple[Value, ...]:
    """Whole seconds, of which a double loses nothing."""
    match values:
        case (int() | float() | Decimal() as seconds,) if _is_exact(Decimal(seconds)):
            try:
                return (datetime(1970, 1, 1) + timedelta(seconds=int(seconds)),)
            except OverflowError:
                return ()
        case _:
            return ()


def spelled_moment(values: ConstantValues) -> tuple[Value, ...]:
    """A timestamp as text, with as many digits of its second as it has."""
    match values:
        case (date() as moment,):
            return (as_datetime(moment).isoformat(sep=" ").rstrip("0") if as_datetime(moment).microsecond
                    else as_datetime(moment).isoformat(sep=" "),)  # fmt: skip
        case _:
            return ()
