"""Which functions and operators may appear over private rows, and what does each mean?

One row a function: types, spelling, when it is NULL, which values it gives, whether it could raise. Nothing about a
function is decided by its name elsewhere. A name that has no row here is refused by the binder (closed world). The
spelling is DuckDB's; `{0}`, `{1}` are rendered arguments. Integers are computed as BIGINT, all other numbers as DOUBLE,
and a function that cannot give an answer gives NULL: no row may ever raise.
"""

from __future__ import annotations

from types import MappingProxyType

from proxy.sql.algebra.comparisons import HOLDS
from proxy.sql.functions import constant_evaluation as images
from proxy.sql.functions import decimals
from proxy.sql.functions import numbers as number_functions
from proxy.sql.functions import signatures as types
from proxy.sql.functions import texts as text_functions
from proxy.sql.functions import times as time_functions
from proxy.sql.functions.constant_evaluation import ImageRule
from proxy.sql.functions.domains import answers, times
from proxy.sql.functions.domains import rules as domains
from proxy.sql.functions.domains.answers import AnswerRule
from proxy.sql.functions.domains.rules import DomainRule
from proxy.sql.functions.function import Function, Nulls, Whole
from proxy.sql.literals.written_values import BLANK, DIGITS, NUMERAL, moment
from proxy.sqltypes import Family, SqlType

_BOOLEAN, _NUMBER, _TEXT, _TIME = Family.BOOLEAN, Family.NUMBER, Family.TEXT, Family.TIME


def _conditions() -> tuple[Function, ...]:
    comparisons = tuple(
        Function(name=name, types=types.comparison, duckdb=f"{{0}} {name} {{1}}", domain=domains.booleans,
                 fold=decimals.compared(holds))
        for name, holds in HOLDS.items()
    )  # fmt: skip
    return (
        *comparisons,
        Function(name="and", types=types.fixed(SqlType.BOOL, _BOOLEAN, _BOOLEAN), duckdb="{0} AND {1}",
                 domain=domains.booleans),
        Function(name="or", types=types.fixed(SqlType.BOOL, _BOOLEAN, _BOOLEAN), duckdb="{0} OR {1}",
                 domain=domains.booleans),
        Function(name="not", types=types.fixed(SqlType.BOOL, _BOOLEAN), duckdb="NOT {0}", domain=domains.booleans),
        Function(name="is null", types=types.any_one(SqlType.BOOL), duckdb="{0} IS NULL", nulls=Nulls.NEVER,
                 domain=domains.booleans),
        Function(name="is distinct from", types=types.comparison, duckdb="{0} IS DISTINCT FROM {1}",
                 nulls=Nulls.NEVER, domain=domains.booleans),
    )  # fmt: skip


def _choices() -> tuple[Function, ...]:
    return (
        Function(name="coalesce", types=types.meeting, duckdb="coalesce({*})", nulls=Nulls.WITH_ALL,
                 domain=domains.any_of, image=images.an_argument),
        Function(name="nullif", types=types.first_of_compared, duckdb="nullif({0}, {1})",
                 nulls=Nulls.WITH_ANY_OR_NO_ANSWER, domain=domains.first, image=images.an_argument,
                 answers=answers.apart),
        Function(name="greatest", types=types.meeting, duckdb="greatest({*})", nulls=Nulls.WITH_ALL,
                 domain=domains.greatest, image=images.an_argument),
        Function(name="least", types=types.meeting, duckdb="least({*})", nulls=Nulls.WITH_ALL, domain=domains.least,
                 image=images.an_argument),
    )  # fmt: skip


def _cast(
    name: str, result: SqlType, source: Family, duckdb: str, domain: DomainRule = domains.nothing_known,
    image: ImageRule = images.nothing_known, whole: Whole = Whole.NO, answered: AnswerRule = answers.everywhere,
) -> Function:  # fmt: skip
    return Function(name=f"cast {name}", types=types.fixed(result, source), duckdb=duckdb, answers=answered,
                    nulls=Nulls.WITH_ANY_OR_NO_ANSWER, domain=domain, image=image, whole=whole)  # fmt: skip


# The engine alone takes 1_000 for a fraction, 12.5 for a whole number and '24-1-5' for a day of the first century
_NUMERAL = f"^{BLANK}{NUMERAL}{BLANK}$"
_MOMENT, _TRIMMED = moment(), "trim({0}, e'\\t\\n\\f\\r ')"
# it writes the era behind the date, PostgreSQL behind the time of day
_MOMENT_TEXT = r"regexp_replace({0}::VARCHAR, ' \(BC\)(.*)', '\1 BC')"
_SAME_WHOLE = images.whole(lambda numbers: numbers[0])


def _casts_to_integers() -> tuple[Function, ...]:
    """What has no such whole number is NULL. Each argument is written once: casts stand in casts."""

    def rows(kind: SqlType, engine: str) -> tuple[Function, ...]:
        near, to = domains.whole(domains.rounded), f"to {kind.pg_name}"
        cast, fits = f"TRY_CAST(%s AS {engine}){'' if engine == 'BIGINT' else '::BIGINT'}", answers.fits(kind)
        same = images.whole(lambda numbers: numbers[0] if abs(numbers[0]) < 2 ** (8 * kind.value.size - 1) else None)
        return (
            _cast(f"number {to}", kind, _NUMBER, cast % "round({0})", near, same, answered=fits),
            _cast(f"real {to}", kind, _NUMBER, cast % "round_even({0}, 0)", near, same, answered=fits),
            _cast(f"text {to}", kind, _TEXT, cast % f"regexp_extract({{0}}, '{DIGITS}')", answered=answers.nowhere),
            _cast(f"boolean {to}", kind, _BOOLEAN, "{0}::BIGINT", domains.listed(0, 1), images.truth(int)),
        )

    return (*rows(SqlType.INT2, "SMALLINT"), *rows(SqlType.INT4, "INTEGER"), *rows(SqlType.INT8, "BIGINT"))


def _casts() -> tuple[Function, ...]:
    fractions = tuple(
        row for kind in (SqlType.NUMERIC, SqlType.FLOAT8) for row in (
            _cast(f"number to {kind.pg_name}", kind, _NUMBER, "{0}::DOUBLE", domains.same, _SAME_WHOLE, Whole.KEPT),
            _cast(f"text to {kind.pg_name}", kind, _TEXT,
                  f"TRY_CAST(regexp_extract({{0}}, '{_NUMERAL}') AS DOUBLE)", answered=answers.nowhere),
        )
    )  # fmt: skip
    texts = tuple(
        row for kind in (SqlType.TEXT, SqlType.VARCHAR) for row in (
            _cast(f"text to {kind.pg_name}", kind, _TEXT, "{0}::VARCHAR", domains.first, images.an_argument),
            _cast(f"integer to {kind.pg_name}", kind, _NUMBER, "{0}::VARCHAR", image=images.spelled),
            _cast(f"date to {kind.pg_name}", kind, _TIME, "replace({0}::VARCHAR, '(BC)', 'BC')", image=images.spelled),
            _cast(f"timestamp to {kind.pg_name}", kind, _TIME, _MOMENT_TEXT, image=images.spelled_moment),
            _cast(f"boolean to {kind.pg_name}", kind, _BOOLEAN, "{0}::VARCHAR", domains.listed("false", "true"),
                  images.truth(lambda is_true: str(is_true).lower())),
        )
    )  # fmt: skip
    return (
        *_casts_to_integers(),
        *fractions,
        *texts,
        _cast("time to date", SqlType.DATE, _TIME, "{0}::DATE", times.to_date, answered=answers.times),
        *(
            _cast(
                f"time to {name}",
                kind,
                _TIME,
                "TRY({0}::TIMESTAMP)",
                times.to_timestamp,
                images.an_argument,
                answered=answers.times,
            )
            for name, kind in (("timestamp", SqlType.TIMESTAMP), ("timestamptz", SqlType.TIMESTAMPTZ))
        ),
        *(
            _cast(
                f"text to {name}",
                kind,
                _TEXT,
                f"CASE WHEN regexp_matches({{0}}, '{_MOMENT}') THEN TRY_CAST({_TRIMMED} AS {name}) END",
                answered=answers.nowhere,
            )
            for kind, name in ((SqlType.DATE, "date"), (SqlType.TIMESTAMP, "timestamp"))
        ),
    )


_ROWS = (
    *_conditions(), *_choices(), *number_functions.rows(), *text_functions.rows(), *time_functions.rows(), *_casts(),
)  # fmt: skip

FUNCTIONS = MappingProxyType({row.name: row for row in _ROWS})
