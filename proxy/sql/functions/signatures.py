"""Which types do functions accept, and of which type is the result?

A rule takes the types of the arguments and gives the result's, or None where there is no such signature. As in
PostgreSQL, except that a function may have fewer signatures here.
"""

from __future__ import annotations

from collections.abc import Callable

from proxy.sqltypes import Family, SqlType

Types = tuple[SqlType, ...]
TypeRule = Callable[[Types], SqlType | None]

_NUMBER_RANK = (SqlType.INT2, SqlType.INT4, SqlType.INT8, SqlType.NUMERIC, SqlType.FLOAT4, SqlType.FLOAT8)


def common_type(types: Types) -> SqlType | None:
    """PostgreSQL's result type when values of these types meet in CASE, COALESCE or a comparison."""
    if len(set(types)) == 1:
        return types[0]
    families = {t.family for t in types}
    if families == {Family.NUMBER}:
        widest = max(types, key=_NUMBER_RANK.index)
        return SqlType.FLOAT8 if widest is SqlType.FLOAT4 and SqlType.NUMERIC in types else widest
    if families == {Family.TEXT} and SqlType.UUID not in types:
        return SqlType.TEXT
    if families == {Family.TIME}:
        return SqlType.TIMESTAMPTZ if SqlType.TIMESTAMPTZ in types else SqlType.TIMESTAMP
    return None


def fixed(result: SqlType, *families: Family) -> TypeRule:
    """This result for arguments of these families; a uuid is no text here."""

    def rule(types: Types) -> SqlType | None:
        return result if tuple(t.family for t in types) == families and SqlType.UUID not in types else None

    return rule


def any_one(result: SqlType) -> TypeRule:
    return lambda types: result if len(types) == 1 else None


def comparison(types: Types) -> SqlType | None:
    return SqlType.BOOL if common_type(types) is not None else None


def meeting(types: Types) -> SqlType | None:
    return common_type(types) if types else None


def first_of_compared(types: Types) -> SqlType | None:
    return types[0] if comparison(types) else None


def _arithmetic(types: Types) -> SqlType | None:
    if not all(t.is_number for t in types):
        return None
    found = common_type(types)
    return SqlType.FLOAT8 if found is SqlType.FLOAT4 and len(set(types)) > 1 else found


def integers(types: Types) -> SqlType | None:
    return _arithmetic(types) if all(t.is_integer for t in types) else None


def fractions(types: Types) -> SqlType | None:
    """Numbers of which one at least is no integer."""
    return None if all(t.is_integer for t in types) else _arithmetic(types)


def real_or_numeric(types: Types) -> SqlType | None:
    """Integers and floats become double precision, numeric stays numeric."""
    if len(types) != 1 or not types[0].is_number:
        return None
    return SqlType.NUMERIC if types[0] is SqlType.NUMERIC else SqlType.FLOAT8


def no_exact(types: Types) -> SqlType | None:
    """Double precision for all numbers."""
    return SqlType.FLOAT8 if len(types) == 1 and types[0].is_number else None


def two_as_real(types: Types) -> SqlType | None:
    """Double precision of two numbers."""
    return SqlType.FLOAT8 if len(types) == 2 and all(t.is_number for t in types) else None


def base_and_number(types: Types) -> SqlType | None:
    """Numeric of two exact numbers."""
    fits = len(types) == 2 and all(t.is_integer or t is SqlType.NUMERIC for t in types)
    return SqlType.NUMERIC if fits else None


def power(types: Types) -> SqlType | None:
    """Numeric where one is numeric and none a float, else double precision."""
    if len(types) != 2 or not all(t.is_number for t in types):
        return None
    return SqlType.NUMERIC if common_type(types) is SqlType.NUMERIC else SqlType.FLOAT8


def all_real_numbers(count: int) -> TypeRule:
    """An integer of integers and floats."""

    def rule(types: Types) -> SqlType | None:
        fits = len(types) == count and all(t.is_number and t is not SqlType.NUMERIC for t in types)
        return SqlType.INT4 if fits else None

    return rule


def with_a_numeric(count: int) -> TypeRule:
    """An integer of integers and numerics."""

    def rule(types: Types) -> SqlType | None:
        fits = len(types) == count and all(t.is_integer or t is SqlType.NUMERIC for t in types)
        return SqlType.INT4 if fits and SqlType.NUMERIC in types else None

    return rule


def numeric(types: Types) -> SqlType | None:
    return SqlType.NUMERIC if types == (SqlType.NUMERIC,) else None


def no_numeric(types: Types) -> SqlType | None:
    """Double precision for integers and floats."""
    return None if numeric(types) else real_or_numeric(types)


def exact_and_digits(types: Types) -> SqlType | None:
    fits = len(types) == 2 and (types[0].is_integer or types[0] is SqlType.NUMERIC) and types[1].is_integer
    return SqlType.NUMERIC if fits else None


def text_and_integers(count: int) -> TypeRule:
    def rule(types: Types) -> SqlType | None:
        if len(types) != count + 1 or not types[0].is_text or types[0] is SqlType.UUID:
            return None
        return SqlType.TEXT if all(t.is_integer for t in types[1:]) else None

    return rule


def date_and_integer(types: Types) -> SqlType | None:
    return SqlType.DATE if len(types) == 2 and types[0] is SqlType.DATE and types[1].is_integer else None


def two_dates(types: Types) -> SqlType | None:
    return SqlType.INT4 if types == (SqlType.DATE, SqlType.DATE) else None


def two_spans_of_time(types: Types) -> SqlType | None:
    """Four times of one type."""
    return SqlType.BOOL if len(types) == 4 and len(set(types)) == 1 and types[0].is_time else None


def two_timestamps(types: Types) -> SqlType | None:
    fits = len(types) == 2 and all(t in (SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ) for t in types)
    return SqlType.INTERVAL if fits else None


def time_spans_and_number(types: Types) -> SqlType | None:
    return time_and_span(types[:2]) if len(types) == 3 and types[2].is_number else None


def time_and_zones(result: SqlType) -> TypeRule:
    """A timestamp and the names of two zones."""

    def rule(types: Types) -> SqlType | None:
        fits = len(types) == 3 and types[0] in (SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ)
        return result if fits and types[1:] == (SqlType.TEXT, SqlType.TEXT) else None

    return rule


def bins(types: Types) -> SqlType | None:
    """A timestamp, a number of microseconds and an origin of the same type."""
    fits = len(types) == 3 and types[0] in (SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ) and types[0] is types[2]
    return types[0] if fits and types[1].is_integer else None


def three_integers(types: Types) -> SqlType | None:
    return SqlType.DATE if len(types) == 3 and all(t.is_integer for t in types) else None


def one_number(types: Types) -> SqlType | None:
    return SqlType.TIMESTAMP if len(types) == 1 and types[0].is_number else None


def time_and_span(types: Types) -> SqlType | None:
    if len(types) != 2 or not types[0].is_time or types[1] is not SqlType.INTERVAL:
        return None
    return SqlType.TIMESTAMP if types[0] is SqlType.DATE else types[0]


def clock(types: Types) -> SqlType | None:
    """Fields of the time of day, which a date has not."""
    return SqlType.NUMERIC if len(types) == 1 and types[0].is_time and types[0] is not SqlType.DATE else None


def truncation(types: Types) -> SqlType | None:
    if len(types) != 1 or not types[0].is_time:
        return None
    return SqlType.TIMESTAMP if types[0] is SqlType.TIMESTAMP else SqlType.TIMESTAMPTZ
