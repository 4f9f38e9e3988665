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
from proxy.sql.functions.function import Function, Nulls, Whole
from proxy.sql.functions.hazards import always, never, overflows
from proxy.sql.functions.signatures import TypeRule

_PARTIAL = Nulls.WITH_ANY_OR_NO_ANSWER


def rows() -> tuple[Function, ...]:
    return (*_integers(), *_arithmetic(), *_rounded(), *_curves(), *_angles(), *_digits())


def _integers() -> tuple[Function, ...]:
    def row(
        sign: str, domain: DomainRule, fold: FoldRule, nulls: Nulls = Nulls.WITH_ANY,
        answered: AnswerRule = answers.nowhere,
    ) -> Function:  # fmt: skip
        return Function(name=f"integer {sign}", types=types.integers, nulls=nulls, answers=answered,
                        domain=domains.whole(domain), fold=fold, image=images.whole(fold),
                        beyond=overflows)  # fmt: skip

    def quotient(sign: str, domain: DomainRule, fold: FoldRule) -> Function:
        return row(sign, domain, fold, _PARTIAL, answers.divisible_whole)

    return (
        row("+", domains.add, decimals.add),
        row("-", domains.subtract, decimals.subtract),
        row("*", domains.multiply, decimals.multiply),
        quotient("/", domains.divide_whole, decimals.divide_whole),
        quotient("%", domains.modulo_whole, decimals.modulo),
        row("negate", domains.negate, decimals.negate),
        row("abs", domains.absolute, decimals.absolute),
        *_bits(),
    )


def _bits() -> Iterator[Function]:
    for sign, rule, fold in (
        ("&", bits.common, decimals.common_bits),
        ("|", bits.either, decimals.any_bits),
        ("#", bits.either, decimals.other_bits),
        (">>", bits.shifted, decimals.shifted_bits),
    ):
        yield Function(name=f"integer {sign}", types=types.integers, domain=rule, fold=fold,
                       image=images.whole(fold))  # fmt: skip


def _fraction(
    name: str, domain: DomainRule, fold: FoldRule, *, nulls: Nulls = Nulls.WITH_ANY,
    of: TypeRule = types.fractions, whole: Whole = Whole.KEPT, answered: AnswerRule = answers.nowhere,
) -> Function:  # fmt: skip
    """A function whose result has a type with fractions."""
    image = images.nothing_known if whole is Whole.NO else images.whole(fold)
    return Function(name=name, types=of, nulls=nulls, domain=domain, fold=fold, whole=whole, image=image,
                    answers=answered)  # fmt: skip


def _arithmetic() -> tuple[Function, ...]:
    row = _fraction
    return (
        row("+", domains.add, decimals.add),
        row("-", domains.subtract, decimals.subtract),
        row("*", domains.multiply, decimals.multiply),
        row(
            "/",
            domains.divide,
            decimals.divide,
            nulls=_PARTIAL,
            whole=Whole.NO,
            answered=answers.divisible,
        ),
        row(
            "%",
            domains.modulo,
            decimals.modulo,
            nulls=_PARTIAL,
            answered=answers.with_remainder,
        ),
        row("negate", domains.negate, decimals.negate),
        row("abs", domains.absolute, decimals.absolute),
    )


def _rounded() -> tuple[Function, ...]:
    """Whole numbers near x."""

    def row(name: str, domain: DomainRule, fold: FoldRule, of: TypeRule) -> Function:
        return _fraction(name, domain, fold, of=of, whole=Whole.YES)

    either = types.real_or_numeric
    return (
        row("floor", domains.floor, decimals.floor, either),
        row("ceil", domains.ceil, decimals.ceil, either),
        row("round", domains.rounded, decimals.rounded, types.numeric),
        row("round real", domains.rounded, decimals.not_folded, types.no_numeric),
        row("trunc", domains.cut, decimals.truncate, either),
        row("sign", domains.sign, decimals.not_folded, either),
    )


def _curves() -> tuple[Function, ...]:
    """Roots, powers and logarithms."""

    def row(
        name: str, domain: DomainRule, answered: AnswerRule, of: TypeRule = types.real_or_numeric,
        nulls: Nulls = _PARTIAL,
    ) -> Function:  # fmt: skip
        return _fraction(name, domain, decimals.not_folded, of=of, nulls=nulls, whole=Whole.NO,
                         answered=answered)  # fmt: skip

    return (
        row("sqrt", domains.square_root, answers.within(0, math.inf)),
        row("exp", domains.exponential,
            answers.within(-math.inf, 709)),
        row("ln", domains.logarithm(math.log), answers.above_zero),
        row("log", domains.logarithm(math.log10), answers.above_zero),
        row("cbrt", domains.cube_root, answers.everywhere, types.no_exact, Nulls.WITH_ANY),
        row("power", domains.power, answers.has_power, types.power),
        Function(name="log of base", types=types.base_and_number, domain=domains.logarithm_of_base, nulls=_PARTIAL,
                 answers=answers.above_zero),
    )  # fmt: skip


def _angles() -> tuple[Function, ...]:
    """Angles and their functions, in radians."""

    def row(name: str, domain: DomainRule, answered: AnswerRule = answers.everywhere) -> Function:
        return Function(name=name, types=types.no_exact, domain=domain, answers=answered,
                        nulls=Nulls.WITH_ANY if answered is answers.everywhere else _PARTIAL)  # fmt: skip

    inside = answers.within(-1, 1)
    return (
        row("sin", domains.within(-1, 1), answers.is_number),
        row("cos", domains.within(-1, 1), answers.is_number),
        row("tan", domains.nothing_known, answers.is_number),
        row("asin", domains.within(-2, 2), inside),
        row("acos", domains.within(0, 4), inside),
        row("atan", domains.within(-2, 2)),
        row("degrees", domains.scaled(180 / math.pi)),
        row("radians", domains.scaled(math.pi / 180)),
        Function(name="atan2", types=types.two_as_real, domain=domains.within(-4, 4)),
    )  # fmt: skip


def _digits() -> tuple[Function, ...]:
    """What the digits of a numeric decide, which a double cuts: rounding to some of them, and buckets."""

    def row(
        name: str, domain: DomainRule, fold: FoldRule, whole: Whole = Whole.NO, *, is_rounded: bool = False
    ) -> Function:
        return Function(name=name, types=types.exact_and_digits, domain=domain, fold=fold, whole=whole,
                        beyond=always if is_rounded else never,
                        answers=answers.is_number if is_rounded else answers.nowhere)  # fmt: skip

    return (
        row("round digits", domains.rounded_to_digits, decimals.rounded, is_rounded=True),
        row("round tens", domains.rounded_to_tens, decimals.rounded, Whole.YES, is_rounded=True),
        row("trunc digits", domains.rounded_to_digits, decimals.truncate),
        row("trunc tens", domains.rounded_to_tens, decimals.truncate, Whole.YES),
        _buckets("width_bucket", types.all_real_numbers(4)),
        _buckets("width_bucket numeric", types.with_a_numeric(4)),
    )


def _buckets(name: str, of: TypeRule) -> Function:
    """width_bucket(x, low, high, count), whose bounds are constants of at most 10^15: nothing overflows."""
    return Function(name=name, types=of, domain=domains.buckets)
