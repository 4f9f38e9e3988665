"""How does Spark spell arithmetic so that no row makes it raise, and no digit differs from the other engines'?

ANSI mode raises where a whole number overflows or a divisor is zero; other servers wrap. `try_` of a sum or a product
is NULL on all. Curves are Java's own, and their last bit may be another than elsewhere: see docs/guide/spark.md.
"""

from __future__ import annotations

import math
from types import MappingProxyType

from proxy.sql.functions.hazards import overflows
from proxy.sql.render.spark.spelling import (
    LARGEST,
    NOT_ZERO,
    SparkArguments,
    SparkSpelling,
    X,
    Y,
    cut,
    number_of,
    rounded_by,
)  # fmt: skip

_LIFTED = "1.0000000000000004e0"  # as `functions.numbers` says
_FRACTIONS_END, _TENS_END = "1e14", "1e150"
_ZERO_DIVISOR = "CASE WHEN {1} <> 0 AND {1} <> -1 THEN {1} END"
_POWER = f"power(CASE WHEN NOT ({{0}} = 0 AND {{1}} < 0) THEN {X} END, {Y})"


def _where(name: str, condition: str) -> SparkSpelling:
    return SparkSpelling(f"{name}(CASE WHEN {condition} THEN {X} END)")


def _with_power(args: SparkArguments) -> SparkArguments:
    """Ten to the number of digits, whatever its sign."""
    return args[0], f"{10.0 ** abs(int(number_of(args[1])))!r}".replace("+", "") + _exponent(args[1])


def _exponent(digits: str) -> str:
    """So that the power is a double: below 10^16 Python writes it without an exponent."""
    return "e0" if abs(int(number_of(digits))) < 16 else ""


def _digits(of_units: str) -> SparkSpelling:
    """of_units: the number in units of the last digit kept, as a whole one."""
    near = f"CASE WHEN abs({X}) * {{1}} < {_FRACTIONS_END} THEN {of_units} / {{1}} ELSE {X} END"
    return SparkSpelling(near, prepared=_with_power)


def _tens(of_units: str) -> SparkSpelling:
    near = f"CASE WHEN abs({X}) <= {_TENS_END} THEN {of_units} * {{1}} ELSE {X} END"
    return SparkSpelling(near, prepared=_with_power)


def _buckets(lifted: str = "") -> SparkSpelling:
    inside = "CASE WHEN {0} >= {1} AND {0} < {2} THEN"
    share = f"{inside} ({X} - {Y}) / (CAST({{2}} AS DOUBLE) - {Y}) * {{3}}{lifted} END"
    place = f"least(floor({share}) + 1, {{3}})"
    return SparkSpelling(
        f"CASE WHEN {{0}} < {{1}} THEN 0 WHEN {{0}} >= {{2}} THEN {{3}} + 1 WHEN {{0}} IS NOT NULL THEN {place} END"
    )


SPELLINGS = MappingProxyType({
    "integer +": SparkSpelling("{0} + {1}", "try_add({0}, {1})", overflows),
    "integer -": SparkSpelling("{0} - {1}", "try_subtract({0}, {1})", overflows),
    "integer *": SparkSpelling("{0} * {1}", "try_multiply({0}, {1})", overflows),
    # the one quotient that is too large is that of the smallest number by -1
    "integer /": SparkSpelling(f"{{0}} DIV {NOT_ZERO}", f"CASE WHEN {{1}} = -1 THEN try_subtract(0L, {{0}}) "
                          f"ELSE {{0}} DIV {_ZERO_DIVISOR} END", overflows),
    "integer %": SparkSpelling(f"{{0}} % {NOT_ZERO}"),
    "integer negate": SparkSpelling("-({0})", "try_subtract(0L, {0})", overflows),
    "integer abs": SparkSpelling("abs({0})", "CASE WHEN {0} < 0 THEN try_subtract(0L, {0}) ELSE {0} END", overflows),
    "integer &": SparkSpelling("{0} & {1}"),
    "integer |": SparkSpelling("{0} | {1}"),
    "integer #": SparkSpelling("{0} ^ {1}"),
    "integer >>": SparkSpelling("shiftright({0}, CAST({1} AS INT))"),
    **{sign: SparkSpelling(f"{X} {sign} {Y}") for sign in "+-*"},
    "/": SparkSpelling(f"{X} / CAST({NOT_ZERO} AS DOUBLE)"),
    "%": SparkSpelling(f"{X} % CAST({NOT_ZERO} AS DOUBLE)"),
    "negate": SparkSpelling(f"-({X})"),
    "abs": SparkSpelling(f"abs({X})"),
    "floor": SparkSpelling(rounded_by("floor", X), whole=X),
    "ceil": SparkSpelling(rounded_by("ceil", X), whole=X),
    "round": SparkSpelling(f"round({X})", whole=X),
    "round real": SparkSpelling(f"bround({X})", whole=X),
    "trunc": SparkSpelling(cut(X), whole=X),
    "sign": SparkSpelling(f"sign(CASE WHEN isnan({X}) THEN 0e0 ELSE {X} END)"),
    "round digits": _digits(f"round({X} * {_LIFTED} * {{1}})"),
    "round tens": _tens(f"round({X} / {{1}})"),
    "trunc digits": _digits(cut(f"({X} * {_LIFTED} * {{1}})")),
    "trunc tens": _tens(cut(f"({X} / {{1}})")),
    "width_bucket": _buckets(),
    "width_bucket numeric": _buckets(f" * {_LIFTED}"),
    "sqrt": _where("sqrt", "{0} >= 0"),
    "exp": _where("exp", "{0} <= 709"),
    "ln": _where("ln", "{0} > 0"),
    "log": _where("log10", "{0} > 0"),
    "cbrt": SparkSpelling(f"cbrt({X})"),
    "power": SparkSpelling(f"CASE WHEN abs({_POWER}) <= {LARGEST} THEN {_POWER} END"),
    **{name: _where(name, f"abs({X}) <= {LARGEST}") for name in ("sin", "cos", "tan")},
    **{name: _where(name, f"abs({X}) <= 1") for name in ("asin", "acos")},
    "atan": SparkSpelling(f"atan({X})"),
    "atan2": SparkSpelling(f"atan2({X}, {Y})"),
    "degrees": SparkSpelling(f"{X} * {180 / math.pi!r}e0"),
    "radians": SparkSpelling(f"{X} * {math.pi / 180!r}e0"),
})  # fmt: skip
