"""Which functions of numbers may appear over private rows? Rows of `functions`."""

from __future__ import annotations

import math
from collections.abc import Iterator

from proxy.sql.functions import constant_evaluation as images
from proxy.sql.functions import decimals
from proxy.sql.functions import signatures as types
from proxy.sql.functions.decimals import FoldRule
from proxy.sql.functions.domains import answers, bits
from proxy.sql.functions.domains import rules as domains
from proxy.sql.functions.domains.answers import AnswerRule
from proxy.sql.functions.domains.rules import DomainRule
from proxy.sql.functions.function import Function, Nulls, Whole, always, never, overflows
from proxy.sql.functions.signatures import TypeRule

_PARTIAL = Nulls.WITH_ANY_OR_NO_ANSWER

# A half in decimal digits, as in round(1.005, 2), is a double that may lie below it. The factor lifts it above, and no
# other number of 15 digits that far: with this size in units of the last digit kept, such a number has no fraction.
_ABOVE_ONE = "1.0000000000000004e0"
_FRACTIONS_END = "1e14"
_TENS_END = "1e150"  # what is larger is as it is, and so is what is no number: the engine makes a zero of it


def rows() -> tuple[Function, ...]:
    return (*_integers(), *_arithmetic(), *_rounded(), *_curves(), *_angles(), *_digits())


def _integers() -> tuple[Function, ...]:
    def row(
        sign: str, duckdb: str, domain: DomainRule, fold: FoldRule, nulls: Nulls = Nulls.WITH_ANY,
        answered: AnswerRule = answers.nowhere,
    ) -> Function:  # fmt: skip
        return Function(name=f"integer {sign}", types=types.integers, duckdb=duckdb, nulls=nulls, answers=answered,
                        domain=domains.whole(domain), fold=fold, image=images.whole(fold),
                        may_raise=overflows)  # fmt: skip

    def quotient(sign: str, duckdb: str, domain: DomainRule, fold: FoldRule) -> Function:
        return row(sign, duckdb, domain, fold, _PARTIAL, answers.divisible_whole)

    return (
        row("+", "{0} + {1}", domains.add, decimals.add),
        row("-", "{0} - {1}", domains.subtract, decimals.subtract),
        row("*", "{0} * {1}", domains.multiply, decimals.multiply),
        quotient("/", "{0} // nullif({1}, 0)", domains.divide_whole, decimals.divide_whole),
        quotient("%", "{0} % nullif({1}, 0)", domains.modulo_whole, decimals.modulo),
        row("negate", "0 - ({0})", domains.negate, decimals.negate),  # - of a constant may be no bigint
        row("abs", "abs({0})", domains.absolute, decimals.absolute),
        *_bits(),
    )


def _bits() -> Iterator[Function]:
    for sign, duckdb, rule, fold in (
        ("&", "{0} & {1}", bits.common, decimals.common_bits),
        ("|", "{0} | {1}", bits.either, decimals.any_bits),
        ("#", "xor({0}, {1})", bits.either, decimals.other_bits),
        (">>", "{0} >> {1}", bits.shifted, decimals.shifted_bits),
    ):
        yield Function(name=f"integer {sign}", types=types.integers, duckdb=duckdb, domain=rule, fold=fold,
                       image=images.whole(fold))  # fmt: skip


def _fraction(
    name: str, duckdb: str, domain: DomainRule, fold: FoldRule, *, nulls: Nulls = Nulls.WITH_ANY,
    of: TypeRule = types.fractions, whole: Whole = Whole.KEPT, answered: AnswerRule = answers.nowhere,
) -> Function:  # fmt: skip
    """A function whose result has a type with fractions."""
    image = images.nothing_known if whole is Whole.NO else images.whole(fold)
    return Function(name=name, types=of, duckdb=duckdb, nulls=nulls, domain=domain, fold=fold, whole=whole, image=image,
                    answers=answered)  # fmt: skip


def _arithmetic() -> tuple[Function, ...]:
    row = _fraction
    return (
        row("+", "{0} + {1}", domains.add, decimals.add),
        row("-", "{0} - {1}", domains.subtract, decimals.subtract),
        row("*", "{0} * {1}", domains.multiply, decimals.multiply),
        row(
            "/",
            "{0} / nullif({1}, 0e0)",
            domains.divide,
            decimals.divide,
            nulls=_PARTIAL,
            whole=Whole.NO,
            answered=answers.divisible,
        ),
        row(
            "%",
            "{0} % nullif({1}, 0e0)",
            domains.modulo,
            decimals.modulo,
            nulls=_PARTIAL,
            answered=answers.with_remainder,
        ),
        row("negate", "-({0})", domains.negate, decimals.negate),
        row("abs", "abs({0})", domains.absolute, decimals.absolute),
    )


def _rounded() -> tuple[Function, ...]:
    """Whole numbers near x."""

    def row(name: str, duckdb: str, domain: DomainRule, fold: FoldRule, of: TypeRule) -> Function:
        return _fraction(name, duckdb, domain, fold, of=of, whole=Whole.YES)

    either = types.real_or_numeric
    return (
        row("floor", "floor({0}::DOUBLE)", domains.floor, decimals.floor, either),
        row("ceil", "ceil({0}::DOUBLE)", domains.ceil, decimals.ceil, either),
        row("round", "round({0}::DOUBLE)", domains.rounded, decimals.rounded, types.numeric),
        row("round real", "round_even({0}::DOUBLE, 0)", domains.rounded, decimals.not_folded, types.no_numeric),
        row("trunc", "trunc({0}::DOUBLE)", domains.cut, decimals.truncate, either),
        row("sign", "sign({0}::DOUBLE)::DOUBLE", domains.sign, decimals.not_folded, either),
    )


def _curves() -> tuple[Function, ...]:
    """Roots, powers and logarithms."""

    def row(
        name: str, duckdb: str, domain: DomainRule, answered: AnswerRule, of: TypeRule = types.real_or_numeric,
        nulls: Nulls = _PARTIAL,
    ) -> Function:  # fmt: skip
        return _fraction(name, duckdb, domain, decimals.not_folded, of=of, nulls=nulls, whole=Whole.NO,
                         answered=answered)  # fmt: skip

    power = "pow({0}::DOUBLE, {1}::DOUBLE)"
    return (
        row("sqrt", "sqrt(CASE WHEN {0} >= 0 THEN {0}::DOUBLE END)", domains.square_root, answers.within(0, math.inf)),
        row("exp", "exp(CASE WHEN {0} <= 709 THEN {0}::DOUBLE END)", domains.exponential,
            answers.within(-math.inf, 709)),
        row("ln", "ln(CASE WHEN {0} > 0 THEN {0}::DOUBLE END)", domains.logarithm(math.log), answers.above_zero),
        row("log", "log10(CASE WHEN {0} > 0 THEN {0}::DOUBLE END)", domains.logarithm(math.log10), answers.above_zero),
        row("cbrt", "cbrt({0}::DOUBLE)", domains.cube_root, answers.everywhere, types.no_exact, Nulls.WITH_ANY),
        row("power", f"CASE WHEN isfinite({power}) THEN {power} END", domains.power, answers.has_power, types.power),
        Function(name="log of base", types=types.base_and_number, domain=domains.logarithm_of_base, nulls=_PARTIAL,
                 answers=answers.above_zero,
                 duckdb="CASE WHEN {0} = 2e0 THEN log2(CASE WHEN {1} > 0 THEN {1}::DOUBLE END) "
                        "ELSE ln(CASE WHEN {1} > 0 THEN {1}::DOUBLE END) / ln({0}::DOUBLE) END"),
    )  # fmt: skip


def _angles() -> tuple[Function, ...]:
    """Angles and their functions, in radians."""

    def row(name: str, domain: DomainRule, present: str = "", answered: AnswerRule = answers.everywhere) -> Function:
        duckdb = f"{name}(CASE WHEN {present} THEN {{0}}::DOUBLE END)" if present else f"{name}({{0}}::DOUBLE)"
        return Function(name=name, types=types.no_exact, duckdb=duckdb, domain=domain, answers=answered,
                        nulls=_PARTIAL if present else Nulls.WITH_ANY)  # fmt: skip

    finite = "isfinite({0}::DOUBLE)", answers.is_number
    inside = "abs({0}::DOUBLE) <= 1", answers.within(-1, 1)
    return (
        row("sin", domains.within(-1, 1), *finite),
        row("cos", domains.within(-1, 1), *finite),
        row("tan", domains.nothing_known, *finite),
        row("asin", domains.within(-2, 2), *inside),
        row("acos", domains.within(0, 4), *inside),
        row("atan", domains.within(-2, 2)),
        row("degrees", domains.scaled(180 / math.pi)),
        row("radians", domains.scaled(math.pi / 180)),
        Function(name="atan2", types=types.two_as_real, domain=domains.within(-4, 4),
                 duckdb="atan2({0}::DOUBLE, {1}::DOUBLE)"),
    )  # fmt: skip


def _digits() -> tuple[Function, ...]:
    """What the digits of a numeric decide, which a double cuts: rounding to some of them, and buckets."""

    def row(
        name: str, duckdb: str, domain: DomainRule, fold: FoldRule, whole: Whole = Whole.NO, *, raises: bool = False
    ) -> Function:
        return Function(name=name, types=types.exact_and_digits, duckdb=duckdb, domain=domain, fold=fold, whole=whole,
                        may_raise=always if raises else never,
                        answers=answers.is_number if raises else answers.nowhere)  # fmt: skip

    to_digits = f"CASE WHEN abs({{0}}::DOUBLE) * pow(10e0, {{1}}) < {_FRACTIONS_END} THEN %s ELSE {{0}}::DOUBLE END"
    to_tens = f"CASE WHEN abs({{0}}::DOUBLE) <= {_TENS_END} THEN %s ELSE {{0}}::DOUBLE END"
    lifted = f"{{0}}::DOUBLE * {_ABOVE_ONE}"
    return (
        row("round digits", to_digits % f"round({lifted}, {{1}}::INTEGER)", domains.rounded_to_digits,
            decimals.rounded, raises=True),
        row("round tens", to_tens % "round({0}::DOUBLE, {1}::INTEGER)", domains.rounded_to_tens, decimals.rounded,
            Whole.YES, raises=True),
        row("trunc digits", to_digits % f"trunc({lifted} * pow(10e0, {{1}})) / pow(10e0, {{1}})",
            domains.rounded_to_digits, decimals.truncate),
        row("trunc tens", to_tens % "trunc({0}::DOUBLE / pow(10e0, -({1}))) * pow(10e0, -({1}))",
            domains.rounded_to_tens, decimals.truncate, Whole.YES),
        _buckets("width_bucket", types.all_real_numbers(4), ""),
        _buckets("width_bucket numeric", types.with_a_numeric(4), f" * {_ABOVE_ONE}"),
    )  # fmt: skip


def _buckets(name: str, of: TypeRule, lifted: str) -> Function:
    """width_bucket(x, low, high, count), whose bounds are constants of at most 10^15: nothing overflows.

    lifted: what makes up for digits that a double cuts from a numeric.
    """
    share = "({0}::DOUBLE - {1}::DOUBLE) / ({2}::DOUBLE - {1}::DOUBLE)"
    inside = f"least(floor({share} * {{3}}{lifted})::BIGINT + 1, {{3}})"
    text = f"CASE WHEN {{0}} < {{1}} THEN 0 WHEN {{0}} >= {{2}} THEN {{3}} + 1 WHEN {{0}} IS NOT NULL THEN {inside} END"
    return Function(name=name, types=of, duckdb=text, domain=domains.buckets)
