"""Which functions and operators may appear over private rows, and what does each mean?

One row a function: types, when it is NULL, which values it gives. Nothing about a function is decided by its name
elsewhere, but for its spelling, of which each engine has a table. A name that has no row here is refused by the binder
(closed world). Integers are computed as BIGINT, all other numbers as DOUBLE, and a function that cannot give an answer
gives NULL: no row may ever raise.
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
from proxy.sqltypes import Family, SqlType

_BOOLEAN, _NUMBER, _TEXT, _TIME = Family.BOOLEAN, Family.NUMBER, Family.TEXT, Family.TIME


def _conditions() -> tuple[Function, ...]:
    comparisons = tuple(
        Function(name=name, types=types.comparison, domain=domains.booleans,
                 fold=decimals.compared(holds))
        for name, holds in HOLDS.items()
    )  # fmt: skip
    return (
        *comparisons,
        Function(name="and", types=types.fixed(SqlType.BOOL, _BOOLEAN, _BOOLEAN),
                 domain=domains.booleans),
        Function(name="or", types=types.fixed(SqlType.BOOL, _BOOLEAN, _BOOLEAN),
                 domain=domains.booleans),
        Function(name="not", types=types.fixed(SqlType.BOOL, _BOOLEAN), domain=domains.booleans),
        Function(name="is null", types=types.any_one(SqlType.BOOL), nulls=Nulls.NEVER,
                 domain=domains.booleans),
        Function(name="is distinct from", types=types.comparison,
                 nulls=Nulls.NEVER, domain=domains.booleans),
    )  # fmt: skip


def _choices() -> tuple[Function, ...]:
    return (
        Function(name="coalesce", types=types.meeting, nulls=Nulls.WITH_ALL,
                 domain=domains.any_of, image=images.an_argument),
        Function(name="nullif", types=types.first_of_compared,
                 nulls=Nulls.WITH_ANY_OR_NO_ANSWER, domain=domains.first, image=images.an_argument,
                 answers=answers.apart),
        Function(name="greatest", types=types.meeting, nulls=Nulls.WITH_ALL,
                 domain=domains.greatest, image=images.an_argument),
        Function(name="least", types=types.meeting, nulls=Nulls.WITH_ALL, domain=domains.least,
                 image=images.an_argument),
    )  # fmt: skip


def _cast(
    name: str, result: SqlType, source: Family, domain: DomainRule = domains.nothing_known,
    image: ImageRule = images.nothing_known, whole: Whole = Whole.NO, answered: AnswerRule = answers.everywhere,
) -> Function:  # fmt: skip
    return Function(name=f"cast {name}", types=types.fixed(result, source), answers=answered,
                    nulls=Nulls.WITH_ANY_OR_NO_ANSWER, domain=domain, image=image, whole=whole)  # fmt: skip


_SAME_WHOLE = images.whole(lambda numbers: numbers[0])


def _casts_to_integers() -> tuple[Function, ...]:
    """What has no such whole number is NULL."""

    def rows(kind: SqlType) -> tuple[Function, ...]:
        near, to = domains.whole(domains.rounded), f"to {kind.pg_name}"
        fits = answers.fits(kind)
        same = images.whole(lambda numbers: numbers[0] if abs(numbers[0]) < 2 ** (8 * kind.value.size - 1) else None)
        return (
            _cast(f"number {to}", kind, _NUMBER, near, same, answered=fits),
            _cast(f"real {to}", kind, _NUMBER, near, same, answered=fits),
            _cast(f"text {to}", kind, _TEXT, answered=answers.nowhere),
            _cast(f"boolean {to}", kind, _BOOLEAN, domains.listed(0, 1), images.truth(int)),
        )

    return (*rows(SqlType.INT2), *rows(SqlType.INT4), *rows(SqlType.INT8))


def _casts() -> tuple[Function, ...]:
    fractions = tuple(
        row for kind in (SqlType.NUMERIC, SqlType.FLOAT8) for row in (
            _cast(f"number to {kind.pg_name}", kind, _NUMBER, domains.same, _SAME_WHOLE, Whole.KEPT),
            _cast(f"text to {kind.pg_name}", kind, _TEXT, answered=answers.nowhere),
        )
    )  # fmt: skip
    texts = tuple(
        row for kind in (SqlType.TEXT, SqlType.VARCHAR) for row in (
            _cast(f"text to {kind.pg_name}", kind, _TEXT, domains.first, images.an_argument),
            _cast(f"integer to {kind.pg_name}", kind, _NUMBER, image=images.spelled),
            _cast(f"date to {kind.pg_name}", kind, _TIME, image=images.spelled),
            _cast(f"timestamp to {kind.pg_name}", kind, _TIME, image=images.spelled_moment),
            _cast(f"boolean to {kind.pg_name}", kind, _BOOLEAN, domains.listed("false", "true"),
                  images.truth(lambda is_true: str(is_true).lower())),
        )
    )  # fmt: skip
    return (
        *_casts_to_integers(),
        *fractions,
        *texts,
        _cast("time to date", SqlType.DATE, _TIME, times.to_date, answered=answers.times),
        *(
            _cast(
                f"time to {name}",
                kind,
                _TIME,
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
                answered=answers.nowhere,
            )
            for kind, name in ((SqlType.DATE, "date"), (SqlType.TIMESTAMP, "timestamp"))
        ),
    )


_ROWS = (
    *_conditions(), *_choices(), *number_functions.rows(), *text_functions.rows(), *time_functions.rows(), *_casts(),
)  # fmt: skip

FUNCTIONS = MappingProxyType({row.name: row for row in _ROWS})
