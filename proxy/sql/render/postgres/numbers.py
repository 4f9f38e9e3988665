"""How does PostgreSQL spell arithmetic so that no row makes it raise, and no digit differs from the other engine's?"""

from __future__ import annotations

import math
from types import MappingProxyType

from proxy.policy.model import Domain
from proxy.sql.functions.domains.intervals import number_range
from proxy.sql.functions.hazards import Operands, overflows
from proxy.sql.render.postgres.spelling import AWAY, LARGE, SMALL, SpelledArguments, Spelling, number_of
from proxy.sqltypes import SqlType

_INT8 = "BETWEEN -9223372036854775808 AND 9223372036854775807"
_X, _Y = "{0}::FLOAT8", "{1}::FLOAT8"
_SIZES = f"abs({_X})", f"abs({_Y})"
_ZERO, _ONE = "'0'::FLOAT8", "'1'::FLOAT8"


def _whole_numbers(operator: str) -> Spelling:
    """Sums and products, by way of numeric where they could be too large."""
    exact = f"{{0}}::NUMERIC {operator} {{1}}::NUMERIC"
    checked = f"CASE WHEN {exact} {_INT8} THEN ({exact})::BIGINT END"
    return Spelling(f"{{0}} {operator} {{1}}", checked, overflows)


# Doubles have the values that IEEE 754 gives them, as in the other engine: what overflows is infinite. But for what is
# nearer to zero than 10^-300, which is zero here. The common sizes are asked for first.
_COMMON = f"{_SIZES[0]} BETWEEN {SMALL} AND {LARGE} AND {_SIZES[1]} BETWEEN {SMALL} AND {LARGE}"
_LARGEST = "'1.7976931348623157e308'::FLOAT8"
_MOST, _LEAST = "'1.797e308'::FLOAT8", "'1e-300'::FLOAT8"  # of results: comparing with quotients is itself not exact
_ARE_NO_NUMBERS = f"{_SIZES[0]} > {_LARGEST} OR {_SIZES[1]} > {_LARGEST}"  # infinite, or NaN: PostgreSQL's largest
_INFINITY, _HALF_THE_RANGE = "'Infinity'::FLOAT8", "'8.98846567431158e307'::FLOAT8"


_SMALL = 1e150  # doubles of this size have sums, differences and products that are doubles
_ABOVE_A_HALF = 0.51  # ends of roots, powers and logarithms are themselves rounded


def _sum_leaves(of: Operands) -> bool:
    """Whether a sum or difference may be beyond the doubles."""
    return not all(map(_is_small, (*of.domains, of.result)))


def _product_leaves(of: Operands) -> bool:
    """The same of a product, which may also be nearer to zero than any double."""
    return _sum_leaves(of) or not any(map(_is_no_fraction, of.kinds, of.domains))


def _is_small(domain: Domain) -> bool:
    """Whether all numbers are far from the largest double."""
    ends = number_range(domain)
    return ends is not None and max(abs(ends[0]), abs(ends[1])) <= _SMALL


def _is_no_fraction(kind: SqlType, factor: Domain) -> bool:
    """Whether no double times the factor is rounded to zero: it is zero itself, or above a half in size."""
    ends = number_range(factor)
    return kind.is_integer or (ends is not None and (ends[0] > _ABOVE_A_HALF or ends[1] < -_ABOVE_A_HALF))


def _doubles(operator: str) -> str:
    """Sums: the largest double has one with anything up to 10^150. Of what is larger, halves are added first."""
    halves = f"abs({_X} / '2'::FLOAT8 {operator} {_Y} / '2'::FLOAT8)"
    return (
        f"CASE WHEN {_SIZES[0]} <= {LARGE} OR {_SIZES[1]} <= {LARGE} THEN {_X} {operator} {_Y} "
        f"WHEN {_ARE_NO_NUMBERS} OR {halves} < {_HALF_THE_RANGE} THEN {_X} {operator} {_Y} "
        f"WHEN {{1}} IS NOT NULL THEN sign({_X}) * {_INFINITY} END"
    )


_ENDLESS = f"sign({_X}) * sign({_Y}) * {_INFINITY}"
_MULTIPLIED = (
    f"CASE WHEN {_COMMON} OR {{0}} = 0 OR {{1}} = 0 OR {_ARE_NO_NUMBERS} THEN {_X} * {_Y} "
    f"WHEN {_SIZES[0]} <= 1 AND {_SIZES[1]} <= 1 THEN "
    f"CASE WHEN {_SIZES[0]} >= {_LEAST} / {_SIZES[1]} THEN {_X} * {_Y} ELSE {_ZERO} END "
    f"WHEN {_SIZES[1]} > 1 AND {_SIZES[0]} > {_MOST} / greatest({_SIZES[1]}, {_ONE}) THEN {_ENDLESS} "
    f"ELSE {_X} * {_Y} END"
)
_DIVIDED = (
    f"CASE WHEN {{1}} = 0 THEN NULL WHEN {_COMMON} OR {{0}} = 0 OR {_ARE_NO_NUMBERS} THEN {_X} / {_Y} "
    f"WHEN {_SIZES[1]} < 1 THEN "
    f"CASE WHEN {_SIZES[0]} > {_MOST} * {_SIZES[1]} THEN {_ENDLESS} ELSE {_X} / {_Y} END "
    f"WHEN {_SIZES[0]} < {_LEAST} * {_SIZES[1]} THEN {_ZERO} ELSE {_X} / {_Y} END"
)

# --- remainders --------------------------------------------------------------------------------------------------

# The remainder of two doubles is a double, and this finds it: the product of the divisor and the whole quotient in two
# parts whose sum is exact (Dekker), taken off one after the other. The quotient may be rounded up, by one at most.
_SPLIT = "'134217729'::FLOAT8"
_LEAST_DIVISOR, _MOST_OFTEN = "'1e-100'::FLOAT8", "'9e15'::FLOAT8"
_IS_LESS = f"{_SIZES[0]} < {_SIZES[1]}"
_REMAINDER = (
    f"CASE WHEN {_SIZES[0]} > {LARGE} OR {_SIZES[1]} > {LARGE} OR {_SIZES[1]} < {_LEAST_DIVISOR} THEN NULL "
    f"WHEN {_IS_LESS} THEN {_X} WHEN abs({_X} / {_Y}) < {_MOST_OFTEN} THEN "
    "(SELECT CASE WHEN sign(r) * sign(x) < 0 THEN r + sign(x) * abs(y) ELSE r END FROM ("
    "SELECT x, y, (x - p) - (((qh * yh - p) + qh * (y - yh) + (q - qh) * yh) + (q - qh) * (y - yh)) AS r FROM ("
    f"SELECT x, y, q, q * y AS p, {_SPLIT} * q - ({_SPLIT} * q - q) AS qh, "
    f"{_SPLIT} * y - ({_SPLIT} * y - y) AS yh FROM ("
    f"SELECT {_X} AS x, {_Y} AS y, trunc({_X} / {_Y}) AS q OFFSET 0) AS v OFFSET 0) AS v OFFSET 0) AS v) END"
)

# --- powers and logarithms ---------------------------------------------------------------------------------------

_POWER = (
    f"CASE WHEN {{0}} IS NULL OR {_SIZES[0]} > '1e308'::FLOAT8 OR {_SIZES[1]} > {LARGE} THEN NULL "
    f"WHEN {{1}} = 0 THEN {_ONE} WHEN {{0}} = 0 THEN CASE WHEN {{1}} > 0 THEN {_ZERO} END "
    f"WHEN {_SIZES[1]} < {SMALL} THEN CASE WHEN {{0}} > 0 THEN {_ONE} END "
    f"WHEN {{0}} < 0 AND floor({_Y}) <> {_Y} THEN NULL "
    f"WHEN {_Y} * ln({_SIZES[0]}) < -700 THEN {_ZERO} WHEN {_Y} * ln({_SIZES[0]}) <= 709 THEN power({_X}, {_Y}) END"
)


def _no_binary(args: SpelledArguments) -> SpelledArguments:
    if float(number_of(args[0])) == 2:
        raise ValueError("a logarithm to base 2")
    return args


def _scaled(factor: float) -> Spelling:
    return Spelling(_MULTIPLIED.replace("{1}", f"('{factor!r}'::FLOAT8)"))


# --- digits ------------------------------------------------------------------------------------------------------

_LIFTED = "'1.0000000000000004'::FLOAT8"  # as `number_functions` says


def _with_power(args: SpelledArguments) -> SpelledArguments:
    """Ten to the number of digits, whatever its sign."""
    return args[0], f"'{10.0 ** abs(int(number_of(args[1])))!r}'::FLOAT8"


def _digits(value: str, whole: str, back: str) -> Spelling:
    """whole: of v, the number in units of the last digit. back: from there. The largest numbers stay as they are."""
    text = f"(SELECT ({whole}) {back} FROM (SELECT {value} AS v OFFSET 0) AS w)"
    return Spelling(
        f"CASE WHEN {_SIZES[0]} < {SMALL} THEN {_ZERO} WHEN {_SIZES[0]} <= {LARGE} THEN {text} ELSE {_X} END",
        prepared=_with_power,
    )


def _fractions(whole: str) -> Spelling:
    found = _digits(f"{_X} * {_LIFTED} * {{1}}", whole, "/ {1}")
    is_whole = f"{_SIZES[0]} <= {LARGE} AND {_SIZES[0]} * {{1}} >= 1e14"
    return Spelling(f"CASE WHEN {is_whole} THEN {_X} ELSE {found.plain} END", prepared=_with_power)


_ROUNDED, _CUT = AWAY.replace("{0}", "v"), "trunc(v)"


def _buckets(lifted: str = "") -> Spelling:
    """A bucket of such a small share is the first; the share itself might underflow."""
    share = f"({_X} - {_Y}) / ({{2}}::FLOAT8 - {_Y})"
    inside = f"least(floor({share} * {{3}}::FLOAT8{lifted})::BIGINT + 1, {{3}})"
    return Spelling(f"CASE WHEN {{0}} < {{1}} THEN 0 WHEN {{0}} >= {{2}} THEN {{3}} + 1 "
                    f"WHEN {_X} - {_Y} < {SMALL} THEN 1 WHEN {{0}} IS NOT NULL THEN {inside} END")  # fmt: skip


SPELLINGS = MappingProxyType({
    **{f"integer {sign}": _whole_numbers(sign) for sign in ("+", "-", "*")},
    # the one quotient that is too large is that of the smallest number by -1
    "integer /": Spelling("{0} / nullif({1}, 0)", "CASE WHEN {1} = -1 THEN CASE WHEN {0} > -9223372036854775808 "
                          "THEN -{0} END ELSE {0} / nullif({1}, 0) END", overflows),
    "integer %": Spelling("{0} % nullif({1}, 0)"),
    "integer negate": Spelling("-({0})", "CASE WHEN {0} > -9223372036854775808 THEN -{0} END", overflows),
    **{f"integer {sign}": Spelling(f"{{0}} {sign} {{1}}") for sign in ("&", "|", "#")},
    "integer >>": Spelling("({0})::BIGINT >> ({1})::INTEGER"),
    "integer abs": Spelling("abs({0})", "CASE WHEN {0} > -9223372036854775808 THEN abs({0}) END", overflows),
    "+": Spelling(f"{_X} + {_Y}", _doubles("+"), _sum_leaves),
    "-": Spelling(f"{_X} - {_Y}", _doubles("-"), _sum_leaves),
    "*": Spelling(f"{_X} * {_Y}", _MULTIPLIED, _product_leaves),
    "/": Spelling(_DIVIDED),
    "%": Spelling(_REMAINDER),
    "negate": Spelling("-({0})"),
    "abs": Spelling("abs({0})"),
    "floor": Spelling("floor({0}::FLOAT8)"),
    "ceil": Spelling("ceil({0}::FLOAT8)"),
    "round": Spelling(AWAY, whole="{0}::FLOAT8"),
    "round real": Spelling("round({0}::FLOAT8)"),
    "trunc": Spelling("trunc({0}::FLOAT8)"),
    "sign": Spelling("sign({0}::FLOAT8)"),
    "round digits": _fractions(_ROUNDED),
    "round tens": _digits(f"{_X} / {{1}}", _ROUNDED, "* {1}"),
    "trunc digits": _fractions(_CUT),
    "trunc tens": _digits(f"{_X} / {{1}}", _CUT, "* {1}"),
    "width_bucket": _buckets(),
    "width_bucket numeric": _buckets(f" * {_LIFTED}"),
    "sqrt": Spelling("sqrt(CASE WHEN {0} >= 0 THEN {0}::FLOAT8 END)"),
    "exp": Spelling("CASE WHEN {0} < -700 THEN '0'::FLOAT8 WHEN {0} <= 709 THEN exp({0}::FLOAT8) END"),
    "ln": Spelling("ln(CASE WHEN {0} > 0 THEN {0}::FLOAT8 END)"),
    "log": Spelling("log(CASE WHEN {0} > 0 THEN {0}::FLOAT8 END)"),
    "log of base": Spelling("ln(CASE WHEN {1} > 0 THEN {1}::FLOAT8 END) / ln({0}::FLOAT8)", prepared=_no_binary),
    "power": Spelling(_POWER),
    "cbrt": Spelling("cbrt({0}::FLOAT8)"),
    **{name: Spelling(f"{name}(CASE WHEN abs({{0}}::FLOAT8) <= {_LARGEST} THEN {{0}}::FLOAT8 END)")
       for name in ("sin", "cos", "tan")},
    **{name: Spelling(f"{name}(CASE WHEN abs({{0}}::FLOAT8) <= 1 THEN {{0}}::FLOAT8 END)")
       for name in ("asin", "acos")},
    "atan": Spelling("atan({0}::FLOAT8)"),
    "atan2": Spelling("atan2({0}::FLOAT8, {1}::FLOAT8)"),
    "degrees": _scaled(180 / math.pi),
    "radians": _scaled(math.pi / 180),
})  # fmt: skip
