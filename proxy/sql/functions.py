"""Which functions and operators may appear over private rows, and what does each mean?

One row a function: types, spelling, when it is NULL, which values it gives, whether it could raise. Nothing about a
function is decided by its name elsewhere. A name that has no row here is refused by the binder (closed world). The
spelling is DuckDB's; `{0}`, `{1}` are rendered arguments. Integers are computed as BIGINT, all other numbers as DOUBLE,
and a function that cannot give an answer gives NULL: no row may ever raise.
"""

from __future__ import annotations

import math
import operator
from types import MappingProxyType

from proxy.sql import decimals, images, text_functions, time_functions
from proxy.sql import domain_rules as domains
from proxy.sql import signatures as types
from proxy.sql import time_rules as times
from proxy.sql.decimals import FoldRule
from proxy.sql.domain_rules import DomainRule
from proxy.sql.function import Function, Nulls, Whole, always, overflows
from proxy.sql.images import ImageRule
from proxy.sql.signatures import TypeRule
from proxy.sqltypes import Family, SqlType

_BOOLEAN, _NUMBER, _TEXT, _TIME = Family.BOOLEAN, Family.NUMBER, Family.TEXT, Family.TIME


_COMPARISONS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
                ">=": operator.ge}  # fmt: skip


def _conditions() -> tuple[Function, ...]:
    comparisons = tuple(
        Function(name=name, types=types.comparison, duckdb=f"{{0}} {name} {{1}}", domain=domains.booleans,
                 fold=decimals.compared(holds))
        for name, holds in _COMPARISONS.items()
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
                 nulls=Nulls.WITH_ANY_OR_NO_ANSWER, domain=domains.first, image=images.an_argument),
        Function(name="greatest", types=types.meeting, duckdb="greatest({*})", nulls=Nulls.WITH_ALL,
                 domain=domains.greatest, image=images.an_argument),
        Function(name="least", types=types.meeting, duckdb="least({*})", nulls=Nulls.WITH_ALL, domain=domains.least,
                 image=images.an_argument),
    )  # fmt: skip


# A half in decimal digits, as in round(1.005, 2), is a double that may lie below it. The factor lifts it above, and no
# other number of 15 digits that far: with this size in units of the last digit kept, such a number has no fraction.
_ABOVE_ONE = "1.0000000000000004e0"
_FRACTIONS_END = "1e14"


def _integers() -> tuple[Function, ...]:
    def row(sign: str, duckdb: str, domain: DomainRule, fold: FoldRule, nulls: Nulls = Nulls.WITH_ANY) -> Function:
        return Function(name=f"integer {sign}", types=types.integers, duckdb=duckdb, nulls=nulls,
                        domain=domains.whole(domain), fold=fold, image=images.whole(fold),
                        may_raise=overflows)  # fmt: skip

    partial = Nulls.WITH_ANY_OR_NO_ANSWER
    return (
        row("+", "{0} + {1}", domains.add, decimals.add),
        row("-", "{0} - {1}", domains.subtract, decimals.subtract),
        row("*", "{0} * {1}", domains.multiply, decimals.multiply),
        row("/", "{0} // nullif({1}, 0)", domains.divide_whole, decimals.divide_whole, partial),
        row("%", "{0} % nullif({1}, 0)", domains.modulo_whole, decimals.modulo, partial),
        row("negate", "-({0})", domains.negate, decimals.negate),
        row("abs", "abs({0})", domains.absolute, decimals.absolute),
    )


def _fractions() -> tuple[Function, ...]:
    def row(
        name: str, duckdb: str, domain: DomainRule, fold: FoldRule, *, nulls: Nulls = Nulls.WITH_ANY,
        of: TypeRule = types.fractions, whole: Whole = Whole.KEPT,
    ) -> Function:  # fmt: skip
        image = images.nothing_known if whole is Whole.NO else images.whole(fold)
        return Function(name=name, types=of, duckdb=duckdb, nulls=nulls, domain=domain, fold=fold, whole=whole,
                        image=image)  # fmt: skip

    partial, rounding = Nulls.WITH_ANY_OR_NO_ANSWER, types.real_or_numeric
    return (
        row("+", "{0} + {1}", domains.add, decimals.add),
        row("-", "{0} - {1}", domains.subtract, decimals.subtract),
        row("*", "{0} * {1}", domains.multiply, decimals.multiply),
        row("/", "{0} / nullif({1}, 0e0)", domains.divide, decimals.divide, nulls=partial, whole=Whole.NO),
        row("%", "{0} % nullif({1}, 0e0)", domains.modulo, decimals.modulo, nulls=partial),
        row("negate", "-({0})", domains.negate, decimals.negate),
        row("abs", "abs({0})", domains.absolute, decimals.absolute),
        row("floor", "floor({0}::DOUBLE)", domains.floor, decimals.floor, of=rounding, whole=Whole.YES),
        row("ceil", "ceil({0}::DOUBLE)", domains.ceil, decimals.ceil, of=rounding, whole=Whole.YES),
        row("round", "round({0}::DOUBLE)", domains.rounded, decimals.rounded, of=types.numeric, whole=Whole.YES),
        row("round real", "round_even({0}::DOUBLE, 0)", domains.rounded, decimals.not_folded, of=types.no_numeric,
            whole=Whole.YES),
        row("trunc", "trunc({0}::DOUBLE)", domains.rounded, decimals.truncate, of=rounding, whole=Whole.YES),
        row("sqrt", "sqrt(CASE WHEN {0} >= 0 THEN {0}::DOUBLE END)", domains.square_root, decimals.not_folded,
            nulls=partial, of=rounding, whole=Whole.NO),
        row("exp", "exp(CASE WHEN {0} <= 709 THEN {0}::DOUBLE END)", domains.exponential, decimals.not_folded,
            nulls=partial, of=rounding, whole=Whole.NO),
        row("ln", "ln(CASE WHEN {0} > 0 THEN {0}::DOUBLE END)", domains.logarithm(math.log), decimals.not_folded,
            nulls=partial, of=rounding, whole=Whole.NO),
        row("log", "log10(CASE WHEN {0} > 0 THEN {0}::DOUBLE END)", domains.logarithm(math.log10), decimals.not_folded,
            nulls=partial, of=rounding, whole=Whole.NO),
        row("cbrt", "cbrt({0}::DOUBLE)", domains.cube_root, decimals.not_folded, of=types.no_exact, whole=Whole.NO),
        row("sign", "sign({0}::DOUBLE)::DOUBLE", domains.sign, decimals.not_folded, of=rounding, whole=Whole.YES),
        row("power", "CASE WHEN isfinite(pow({0}::DOUBLE, {1}::DOUBLE)) THEN pow({0}::DOUBLE, {1}::DOUBLE) END",
            domains.power, decimals.not_folded, nulls=partial, of=types.power, whole=Whole.NO),
        _buckets("width_bucket", types.all_real_numbers(4), ""),
        _buckets("width_bucket numeric", types.with_a_numeric(4), f" * {_ABOVE_ONE}"),
        Function(name="round digits", types=types.exact_and_digits, domain=domains.rounded_to_digits,
                 fold=decimals.rounded, may_raise=always,
                 duckdb=f"CASE WHEN abs({{0}}::DOUBLE) * pow(10e0, {{1}}) < {_FRACTIONS_END} THEN "
                        f"round({{0}}::DOUBLE * {_ABOVE_ONE}, {{1}}::INTEGER) ELSE {{0}}::DOUBLE END"),
        Function(name="round tens", types=types.exact_and_digits, domain=domains.rounded_to_tens,
                 fold=decimals.rounded, whole=Whole.YES, may_raise=always,
                 duckdb="round({0}::DOUBLE, {1}::INTEGER)"),
        Function(name="trunc digits", types=types.exact_and_digits, domain=domains.rounded_to_digits,
                 fold=decimals.truncate,
                 duckdb=f"CASE WHEN abs({{0}}::DOUBLE) * pow(10e0, {{1}}) < {_FRACTIONS_END} THEN "
                        f"trunc({{0}}::DOUBLE * {_ABOVE_ONE} * pow(10e0, {{1}})) / pow(10e0, {{1}}) "
                        "ELSE {0}::DOUBLE END"),
        Function(name="trunc tens", types=types.exact_and_digits, domain=domains.rounded_to_tens,
                 fold=decimals.truncate, whole=Whole.YES,
                 duckdb="trunc({0}::DOUBLE / pow(10e0, -({1}))) * pow(10e0, -({1}))"),
        Function(name="log of base", types=types.base_and_number, domain=domains.logarithm_of_base, nulls=partial,
                 duckdb="CASE WHEN {0} = 2e0 THEN log2(CASE WHEN {1} > 0 THEN {1}::DOUBLE END) "
                        "ELSE ln(CASE WHEN {1} > 0 THEN {1}::DOUBLE END) / ln({0}::DOUBLE) END"),
    )  # fmt: skip


def _buckets(name: str, of: TypeRule, lifted: str) -> Function:
    """width_bucket(x, low, high, count), whose bounds are constants of at most 10^15: nothing overflows.

    lifted: what makes up for digits that a double cuts from a numeric.
    """
    share = "({0}::DOUBLE - {1}::DOUBLE) / ({2}::DOUBLE - {1}::DOUBLE)"
    inside = f"least(floor({share} * {{3}}{lifted})::BIGINT + 1, {{3}})"
    text = f"CASE WHEN {{0}} < {{1}} THEN 0 WHEN {{0}} >= {{2}} THEN {{3}} + 1 WHEN {{0}} IS NOT NULL THEN {inside} END"
    return Function(name=name, types=of, duckdb=text, domain=domains.buckets)


def _cast(
    name: str, result: SqlType, source: Family, duckdb: str, domain: DomainRule = domains.nothing_known,
    image: ImageRule = images.nothing_known, whole: Whole = Whole.NO,
) -> Function:  # fmt: skip
    return Function(name=f"cast {name}", types=types.fixed(result, source), duckdb=duckdb,
                    nulls=Nulls.WITH_ANY_OR_NO_ANSWER, domain=domain, image=image, whole=whole)  # fmt: skip


_SAME_WHOLE = images.whole(lambda numbers: numbers[0])


def _casts_to_integers() -> tuple[Function, ...]:
    def rows(kind: SqlType, limit: int) -> tuple[Function, ...]:
        inside = f"CASE WHEN {{0}} >= {-limit} AND {{0}} < {limit} THEN %s END"
        near, to = domains.whole(domains.rounded), f"to {kind.pg_name}"
        return (
            _cast(f"number {to}", kind, _NUMBER, inside % "TRY_CAST(round({0}) AS BIGINT)", near, _SAME_WHOLE),
            _cast(f"real {to}", kind, _NUMBER, inside % "TRY_CAST(round_even({0}, 0) AS BIGINT)", near, _SAME_WHOLE),
            _cast(f"text {to}", kind, _TEXT, "TRY_CAST({0} AS BIGINT)"),
            _cast(f"boolean {to}", kind, _BOOLEAN, "{0}::BIGINT", domains.listed(0, 1)),
        )

    return (*rows(SqlType.INT2, 2**15), *rows(SqlType.INT4, 2**31), *rows(SqlType.INT8, 2**63))


def _casts() -> tuple[Function, ...]:
    fractions = tuple(
        row for kind in (SqlType.NUMERIC, SqlType.FLOAT8) for row in (
            _cast(f"number to {kind.pg_name}", kind, _NUMBER, "{0}::DOUBLE", domains.same, _SAME_WHOLE, Whole.KEPT),
            _cast(f"text to {kind.pg_name}", kind, _TEXT, "TRY_CAST({0} AS DOUBLE)"),
        )
    )  # fmt: skip
    texts = tuple(
        row for kind in (SqlType.TEXT, SqlType.VARCHAR) for row in (
            _cast(f"text to {kind.pg_name}", kind, _TEXT, "{0}::VARCHAR", domains.first, images.an_argument),
            _cast(f"integer to {kind.pg_name}", kind, _NUMBER, "{0}::VARCHAR", image=images.spelled),
            _cast(f"date to {kind.pg_name}", kind, _TIME, "{0}::VARCHAR", image=images.spelled),
            _cast(f"boolean to {kind.pg_name}", kind, _BOOLEAN, "{0}::VARCHAR", domains.listed("false", "true")),
        )
    )  # fmt: skip
    return (
        *_casts_to_integers(),
        *fractions,
        *texts,
        _cast("time to date", SqlType.DATE, _TIME, "{0}::DATE", times.to_date),
        *(
            _cast(f"time to {name}", kind, _TIME, "TRY_CAST({0} AS TIMESTAMP)", times.to_timestamp, images.an_argument)
            for name, kind in (("timestamp", SqlType.TIMESTAMP), ("timestamptz", SqlType.TIMESTAMPTZ))
        ),
        _cast("text to date", SqlType.DATE, _TEXT, "TRY_CAST({0} AS DATE)"),
        _cast("text to timestamp", SqlType.TIMESTAMP, _TEXT, "TRY_CAST({0} AS TIMESTAMP)"),
    )


_ROWS = (
    *_conditions(), *_choices(), *_integers(), *_fractions(), *text_functions.rows(), *time_functions.rows(), *_casts(),
)  # fmt: skip

FUNCTIONS = MappingProxyType({row.name: row for row in _ROWS})

__all__ = ["FUNCTIONS", "Function", "Nulls", "Whole"]
