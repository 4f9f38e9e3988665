"""In which order, which nobody foresees without the salt, does a bound cut off what a unit has too much of?

A value goes into the hash in one spelling, the same for every equal value and on every engine; engines print numbers
and times differently. Which keys are cut would else depend on where the rows are.
"""

from __future__ import annotations

from collections.abc import Sequence

from proxy.analysis.units import UnitOf
from proxy.plan.sql.moment_sql import MomentTerms, VectorStatement
from proxy.sql.render.dialect import Dialect
from proxy.sqltypes import SqlType

_FRACTIONS = (SqlType.FLOAT4, SqlType.FLOAT8, SqlType.NUMERIC)
_MOST_WHOLE = 9.2e18  # as a BIGINT
_LONG = 1e15  # written with an exponent by one engine; fractions of numbers this large are eighths
_NO_WHOLE = 2.0**-515  # twice: any larger number becomes one below 2^-6, to the last bit

NamedColumn = tuple[str, SqlType]


def salted(statement: VectorStatement, terms: MomentTerms, values: Sequence[NamedColumn]) -> str:
    """A hash of a unit (`u0`, ...) and of values, by their names; the dataset's salt is its beginning."""
    dialect, unit = statement.dialect, statement.analysed.owned.unit
    columns = unit.columns if isinstance(unit, UnitOf) else ()
    units = [(name, c.type) for name, c in zip(terms.units, columns, strict=True)]
    texts = [spelled(dialect.stored(n, t) if t in _FRACTIONS else n, t, dialect) for n, t in units]
    texts += [spelled(name, kind, dialect) for name, kind in values]
    parts = (f"coalesce(length({t}) || ':' || {t}, '-')" for t in texts)
    return f"md5({dialect.text_literal(statement.salt)} || {' || '.join(parts)})"


def spelled(value: str, kind: SqlType, dialect: Dialect) -> str:
    """A value's text: one for all that are equal, and the same on every engine."""
    if kind in _FRACTIONS:
        return _number(dialect.as_double(value), dialect)
    if kind.is_time:
        return _time(dialect.as_text(value, kind))
    return dialect.as_text(value, kind)


def _number(value: str, dialect: Dialect) -> str:
    """Whole numbers as such; others so that both engines' shortest spelling is one and the same."""
    double, text = dialect.double, dialect.as_text(value, SqlType.FLOAT8)
    small = dialect.as_text(f"({value} * {double(_NO_WHOLE)} * {double(_NO_WHOLE)})", SqlType.FLOAT8)
    whole, eighths = (
        dialect.as_text(f"{number}::BIGINT", SqlType.INT8) for number in (value, f"({value} * {double(8.0)})")
    )
    return (
        f"(CASE WHEN NOT {dialect.finite(value)} THEN replace(lower({text}), 'inity', '')"
        f" WHEN abs({value}) >= {double(_MOST_WHOLE)} THEN {small} || 'p1030'"
        f" WHEN {value} = trunc({value}) THEN {whole}"
        f" WHEN abs({value}) >= {double(_LONG)} THEN {eighths} || '/8'"
        f" ELSE {text} END)"
    )


def _time(text: str) -> str:
    """DuckDB writes the era behind the date, PostgreSQL behind the time of day."""
    without = f"replace(replace({text}, ' (BC)', ''), ' BC', '')"
    return f"(CASE WHEN {text} LIKE '%BC%' THEN {without} || ' BC' ELSE {text} END)"
