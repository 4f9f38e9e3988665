"""How does DuckDB spell conditions and casts, and so every function? What has no answer is NULL."""

from __future__ import annotations

from types import MappingProxyType

from proxy.sql.algebra.comparisons import HOLDS
from proxy.sql.literals.written_values import BLANK, DIGITS, NUMERAL, moment
from proxy.sql.render.duckdb import numbers, texts, times
from proxy.sql.render.duckdb.spelling import Written
from proxy.sqltypes import SqlType

# The engine alone takes 1_000 for a fraction, 12.5 for a whole number and '24-1-5' for a day of the first century
_NUMERAL = f"^{BLANK}{NUMERAL}{BLANK}$"
_MOMENT, _TRIMMED = moment(), "trim({0}, e'\\t\\n\\f\\r ')"
# it writes the era behind the date, PostgreSQL behind the time of day
_MOMENT_TEXT = r"regexp_replace({0}::VARCHAR, ' \(BC\)(.*)', '\1 BC')"

_CONDITIONS = {
    **{sign: Written(f"{{0}} {sign} {{1}}") for sign in HOLDS},
    "and": Written("{0} AND {1}"),
    "or": Written("{0} OR {1}"),
    "not": Written("NOT {0}"),
    "is null": Written("{0} IS NULL"),
    "is distinct from": Written("{0} IS DISTINCT FROM {1}"),
    "coalesce": Written("coalesce({*})"),
    "nullif": Written("nullif({0}, {1})"),
    "greatest": Written("greatest({*})"),
    "least": Written("least({*})"),
}


def _to_integer(kind: SqlType, engine: str) -> dict[str, Written]:
    """What has no such whole number is NULL. Each argument is written once: casts stand in casts."""
    to, cast = kind.pg_name, f"TRY_CAST(%s AS {engine}){'' if engine == 'BIGINT' else '::BIGINT'}"
    return {
        f"cast number to {to}": Written(cast % "round({0})"),
        f"cast real to {to}": Written(cast % "round_even({0}, 0)"),
        f"cast text to {to}": Written(cast % f"regexp_extract({{0}}, '{DIGITS}')"),
        f"cast boolean to {to}": Written("{0}::BIGINT"),
    }


def _to_fraction(to: str) -> dict[str, Written]:
    return {
        f"cast number to {to}": Written("{0}::DOUBLE"),
        f"cast text to {to}": Written(f"TRY_CAST(regexp_extract({{0}}, '{_NUMERAL}') AS DOUBLE)"),
    }


def _to_text(to: str) -> dict[str, Written]:
    return {
        **{f"cast {of} to {to}": Written("{0}::VARCHAR") for of in ("text", "integer", "boolean")},
        f"cast date to {to}": Written("replace({0}::VARCHAR, '(BC)', 'BC')"),
        f"cast timestamp to {to}": Written(_MOMENT_TEXT),
    }


_CASTS = {
    **_to_integer(SqlType.INT2, "SMALLINT"),
    **_to_integer(SqlType.INT4, "INTEGER"),
    **_to_integer(SqlType.INT8, "BIGINT"),
    **_to_fraction(SqlType.NUMERIC.pg_name),
    **_to_fraction(SqlType.FLOAT8.pg_name),
    **_to_text(SqlType.TEXT.pg_name),
    **_to_text(SqlType.VARCHAR.pg_name),
    "cast time to date": Written("{0}::DATE"),
    **{f"cast time to {to}": Written("TRY({0}::TIMESTAMP)") for to in ("timestamp", "timestamptz")},
    **{
        f"cast text to {to}": Written(
            f"CASE WHEN regexp_matches({{0}}, '{_MOMENT}') THEN TRY_CAST({_TRIMMED} AS {to}) END"
        )
        for to in ("date", "timestamp")
    },
}

SPELLINGS = MappingProxyType({**_CONDITIONS, **numbers.SPELLINGS, **texts.SPELLINGS, **times.SPELLINGS, **_CASTS})
