"""How does PostgreSQL spell casts so that no value makes them raise?

A text is taken apart by a pattern first, and what the pattern lets through always has a value of the type.
"""

from __future__ import annotations

from proxy.sql.literals.written_values import BLANK, NUMERAL, moment
from proxy.sql.render.postgres.spelling import AWAY, IN_CALENDAR, Spelling
from proxy.sqltypes import SqlType

_LONGEST_WRITTEN = 1_000_000  # characters of a text that is read as a whole number or a time
_LONGEST_NUMERAL = 1_000  # with an exponent of four digits still a numeric
_WHOLE = f"^{BLANK}([+-]?)0*([0-9]{{1,19}}){BLANK}$"
_FAR_EXPONENT = "[eE][+-]?0*[1-9][0-9]{4,}$"
_MOMENT = moment(again=r"\2")


def _read(longest: int, pattern: str) -> str:
    text = f"CASE WHEN octet_length({{0}}) <= {longest} THEN {{0}} END"
    return f"(SELECT regexp_match(({text}) COLLATE \"C\", '{pattern}') AS p OFFSET 0) AS found"


def _to_integer(limit: int) -> tuple[Spelling, Spelling, Spelling]:
    """Casts of a number, halves away from zero, of a double, halves to the even neighbour, and of a text."""
    whole = f"CASE WHEN {{0}} BETWEEN {-limit} AND {limit - 1} THEN {{0}} END"
    away, even = (f"(SELECT CASE WHEN n >= {-limit} AND n < {limit} THEN n::BIGINT END FROM (SELECT {n} AS n OFFSET 0)"
                  " AS rounded)" for n in (AWAY, "round({0})"))  # fmt: skip
    digits = f"SELECT (p[1] || p[2])::NUMERIC AS n FROM {_read(_LONGEST_WRITTEN, _WHOLE)} OFFSET 0"
    read = f"(SELECT CASE WHEN n BETWEEN {-limit} AND {limit - 1} THEN n::BIGINT END FROM ({digits}) AS number)"
    return Spelling(away, whole=whole), Spelling(even, whole=whole), Spelling(read)


def _to_double() -> Spelling:
    beyond = "CASE WHEN t ~ '^-' THEN '-Infinity'::FLOAT8 ELSE 'Infinity'::FLOAT8 END"
    size = ("CASE WHEN n BETWEEN -1e-300 AND 1e-300 THEN '0'::FLOAT8 "
            f"WHEN n BETWEEN -1.797e308 AND 1.797e308 THEN n::FLOAT8 WHEN n IS NOT NULL THEN {beyond} END")  # fmt: skip
    number = f"(SELECT {size} FROM (SELECT t::NUMERIC AS n OFFSET 0) AS number)"
    far = f"CASE WHEN t ~ '[eE]-' OR t !~ '^[^eE]*[1-9]' THEN '0'::FLOAT8 ELSE {beyond} END"
    named = f"CASE WHEN t ~ '[aA]' THEN 'NaN'::FLOAT8 ELSE {beyond} END"
    text = f'SELECT p[1] COLLATE "C" AS t FROM {_read(_LONGEST_NUMERAL, f"^{BLANK}({NUMERAL}){BLANK}$")} OFFSET 0'
    return Spelling(
        f"(SELECT CASE WHEN t ~ '[nN]' THEN {named} WHEN t ~ '{_FAR_EXPONENT}' THEN {far} ELSE {number} END"
        f" FROM ({text}) AS numeral)"
    )


def _to_time(made: str) -> Spelling:
    """The months' lengths are asked of the calendar."""
    last = "extract(day FROM make_date(p[1]::INTEGER, p[3]::INTEGER, 1) + INTERVAL '1 month -1 day')"
    inside = f"CASE WHEN p[4]::INTEGER <= {last} THEN {made} END"
    return Spelling(f"(SELECT {inside} FROM {_read(_LONGEST_WRITTEN, _MOMENT)})")


_DATE = "p[1]::INTEGER, p[3]::INTEGER, p[4]::INTEGER"
_SECONDS = "(coalesce(p[7], '0') || '.' || coalesce(p[8], '0'))::FLOAT8"
_CLOCK = f"coalesce(p[5], '0')::INTEGER, coalesce(p[6], '0')::INTEGER, {_SECONDS}"


def casts() -> dict[str, Spelling]:
    found: dict[str, Spelling] = {}
    for kind, limit in ((SqlType.INT2, 2**15), (SqlType.INT4, 2**31), (SqlType.INT8, 2**63)):
        name = kind.pg_name
        number, real, text = _to_integer(limit)
        found |= {f"cast number to {name}": number, f"cast real to {name}": real, f"cast text to {name}": text}
        found[f"cast boolean to {name}"] = Spelling("({0})::INTEGER::BIGINT")
    for kind in (SqlType.NUMERIC, SqlType.FLOAT8):
        found[f"cast number to {kind.pg_name}"] = Spelling("({0})::FLOAT8")
        found[f"cast text to {kind.pg_name}"] = _to_double()
    for kind in (SqlType.TEXT, SqlType.VARCHAR):
        for source in ("text", "integer", "boolean", "date", "timestamp"):
            found[f"cast {source} to {kind.pg_name}"] = Spelling("({0})::TEXT")
    found["cast time to date"] = Spelling("({0})::DATE")
    for name in ("timestamp", "timestamptz"):
        found[f"cast time to {name}"] = Spelling(
            f"CASE WHEN {IN_CALENDAR} OR NOT isfinite({{0}}) THEN {{0}}::TIMESTAMP END"
        )
    found["cast text to date"] = _to_time(f"make_date({_DATE})")
    found["cast text to timestamp"] = _to_time(f"make_timestamp({_DATE}, {_CLOCK})")
    return found
