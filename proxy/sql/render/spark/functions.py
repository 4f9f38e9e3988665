"""Which functions does the private engine spark compute, and how are they spelled so that no row makes them raise?

For Spark 4 in ANSI mode. A function that has no row here is refused on this engine: its spelling has not been shown to
give what the others give.
"""

from __future__ import annotations

from types import MappingProxyType

from proxy.sql.algebra.comparisons import HOLDS
from proxy.sql.functions.hazards import leaves_calendar
from proxy.sql.literals.written_values import BLANK, NUMERAL
from proxy.sql.render.spark import numbers, texts, times
from proxy.sql.render.spark.spelling import SparkSpelling, X, text_literal
from proxy.sql.render.spark.times import in_calendar
from proxy.sqltypes import SqlType

_LONGEST_NUMBER = 400  # characters of a text that are read as a number

_CONDITIONS = {
    **{sign: SparkSpelling(f"{{0}} {sign} {{1}}") for sign in HOLDS},
    "and": SparkSpelling("{0} AND {1}"),
    "or": SparkSpelling("{0} OR {1}"),
    "not": SparkSpelling("NOT {0}"),
    "is null": SparkSpelling("{0} IS NULL"),
    "is distinct from": SparkSpelling("NOT ({0} <=> {1})"),
    "coalesce": SparkSpelling("coalesce({*})"),
    "nullif": SparkSpelling("CASE WHEN {0} = {1} THEN NULL ELSE {0} END"),
    "greatest": SparkSpelling("greatest({*})"),
    "least": SparkSpelling("least({*})"),
}
ALIKE = frozenset({*HOLDS, "is distinct from", "coalesce", "nullif", "greatest", "least"})  # of values of one kind


def _to_integer(kind: SqlType, engine: str) -> dict[str, SparkSpelling]:
    """What has no such whole number is NULL."""
    to = kind.pg_name
    whole = f"CAST(try_cast({{0}} AS {engine}) AS BIGINT)"
    return {
        f"cast number to {to}": SparkSpelling(f"CAST(try_cast(round({X}) AS {engine}) AS BIGINT)", whole=whole),
        f"cast real to {to}": SparkSpelling(f"CAST(try_cast(bround({X}) AS {engine}) AS BIGINT)", whole=whole),
        f"cast text to {to}": SparkSpelling(f"CAST(try_cast({_numeral(r'[+-]?[0-9]+')} AS {engine}) AS BIGINT)"),
        f"cast boolean to {to}": SparkSpelling("CAST({0} AS BIGINT)"),
    }


def _numeral(pattern: str) -> str:
    """A number in a text, without the blanks around it; empty for any other text."""
    whole = text_literal(f"^{BLANK}({pattern}){BLANK}\\z")
    return f"regexp_extract(substring({{0}}, 1, {_LONGEST_NUMBER + 1}), {whole}, 1)"


def _to_fraction(to: str) -> dict[str, SparkSpelling]:
    return {
        f"cast number to {to}": SparkSpelling(X),
        f"cast text to {to}": SparkSpelling(f"try_cast({_numeral(NUMERAL)} AS DOUBLE)"),
    }


def _to_text(to: str) -> dict[str, SparkSpelling]:
    """Times as every engine writes those of four digits of a year."""
    return {
        f"cast text to {to}": SparkSpelling("{0}"),
        **{f"cast {of} to {to}": SparkSpelling("CAST({0} AS STRING)") for of in ("integer", "boolean")},
        **{
            f"cast {of} to {to}": SparkSpelling(f"CAST({in_calendar('{0}')} AS STRING)") for of in ("date", "timestamp")
        },
    }


_CASTS = {
    **_to_integer(SqlType.INT2, "SMALLINT"),
    **_to_integer(SqlType.INT4, "INT"),
    **_to_integer(SqlType.INT8, "BIGINT"),
    **_to_fraction(SqlType.NUMERIC.pg_name),
    **_to_fraction(SqlType.FLOAT8.pg_name),
    **_to_text(SqlType.TEXT.pg_name),
    **_to_text(SqlType.VARCHAR.pg_name),
    "cast time to date": SparkSpelling("CAST({0} AS DATE)", f"CAST({in_calendar('{0}')} AS DATE)", leaves_calendar),
    **{f"cast time to {to}": SparkSpelling("try_cast({0} AS TIMESTAMP_NTZ)") for to in ("timestamp", "timestamptz")},
}

SPELLINGS = MappingProxyType({**_CONDITIONS, **numbers.SPELLINGS, **texts.SPELLINGS, **times.SPELLINGS, **_CASTS})


def template_of(spelling: SparkSpelling, kinds: tuple[SqlType, ...], *, may_raise: bool) -> str:
    """The template for arguments of these types."""
    if spelling.whole and kinds[0].is_integer:
        return spelling.whole
    return spelling.checked if may_raise and spelling.checked else spelling.plain
