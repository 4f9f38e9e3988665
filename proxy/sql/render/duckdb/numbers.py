"""How does DuckDB spell arithmetic? Integers are computed as BIGINT, all other numbers as DOUBLE."""

from __future__ import annotations

from types import MappingProxyType

from proxy.sql.functions.hazards import always, overflows
from proxy.sql.render.duckdb.spelling import Written

# A half in decimal digits, as in round(1.005, 2), is a double that may lie below it. The factor lifts it above, and no
# other number of 15 digits that far: with this size in units of the last digit kept, such a number has no fraction.
_ABOVE_ONE = "1.0000000000000004e0"
_FRACTIONS_END = "1e14"
_TENS_END = "1e150"  # what is larger is as it is, and so is what is no number: the engine makes a zero of it
_TO_DIGITS = f"CASE WHEN abs({{0}}::DOUBLE) * pow(10e0, {{1}}) < {_FRACTIONS_END} THEN %s ELSE {{0}}::DOUBLE END"
_TO_TENS = f"CASE WHEN abs({{0}}::DOUBLE) <= {_TENS_END} THEN %s ELSE {{0}}::DOUBLE END"
_LIFTED = f"{{0}}::DOUBLE * {_ABOVE_ONE}"
_POWER = "pow({0}::DOUBLE, {1}::DOUBLE)"


def _where(name: str, condition: str) -> Written:
    return Written(f"{name}(CASE WHEN {condition} THEN {{0}}::DOUBLE END)")


def _buckets(lifted: str) -> Written:
    """lifted: what makes up for digits that a double cuts from a numeric."""
    share = "({0}::DOUBLE - {1}::DOUBLE) / ({2}::DOUBLE - {1}::DOUBLE)"
    inside = f"least(floor({share} * {{3}}{lifted})::BIGINT + 1, {{3}})"
    return Written(
        f"CASE WHEN {{0}} < {{1}} THEN 0 WHEN {{0}} >= {{2}} THEN {{3}} + 1 WHEN {{0}} IS NOT NULL THEN {inside} END"
    )


SPELLINGS = MappingProxyType({
    "integer +": Written("{0} + {1}", overflows),
    "integer -": Written("{0} - {1}", overflows),
    "integer *": Written("{0} * {1}", overflows),
    "integer /": Written("{0} // nullif({1}, 0)", overflows),
    "integer %": Written("{0} % nullif({1}, 0)", overflows),
    "integer negate": Written("0 - ({0})", overflows),  # - of a constant may be no bigint
    "integer abs": Written("abs({0})", overflows),
    "integer &": Written("{0} & {1}"),
    "integer |": Written("{0} | {1}"),
    "integer #": Written("xor({0}, {1})"),
    "integer >>": Written("{0} >> {1}"),
    "+": Written("{0} + {1}"),
    "-": Written("{0} - {1}"),
    "*": Written("{0} * {1}"),
    "/": Written("{0} / nullif({1}, 0e0)"),
    "%": Written("{0} % nullif({1}, 0e0)"),
    "negate": Written("-({0})"),
    "abs": Written("abs({0})"),
    "floor": Written("floor({0}::DOUBLE)"),
    "ceil": Written("ceil({0}::DOUBLE)"),
    "round": Written("round({0}::DOUBLE)"),
    "round real": Written("round_even({0}::DOUBLE, 0)"),
    "trunc": Written("trunc({0}::DOUBLE)"),
    "sign": Written("sign({0}::DOUBLE)::DOUBLE"),
    "sqrt": _where("sqrt", "{0} >= 0"),
    "exp": _where("exp", "{0} <= 709"),
    "ln": _where("ln", "{0} > 0"),
    "log": _where("log10", "{0} > 0"),
    "cbrt": Written("cbrt({0}::DOUBLE)"),
    "power": Written(f"CASE WHEN isfinite({_POWER}) THEN {_POWER} END"),
    "log of base": Written("CASE WHEN {0} = 2e0 THEN log2(CASE WHEN {1} > 0 THEN {1}::DOUBLE END) "
                            "ELSE ln(CASE WHEN {1} > 0 THEN {1}::DOUBLE END) / ln({0}::DOUBLE) END"),
    **{name: _where(name, "isfinite({0}::DOUBLE)") for name in ("sin", "cos", "tan")},
    **{name: _where(name, "abs({0}::DOUBLE) <= 1") for name in ("asin", "acos")},
    **{name: Written(f"{name}({{0}}::DOUBLE)") for name in ("atan", "degrees", "radians")},
    "atan2": Written("atan2({0}::DOUBLE, {1}::DOUBLE)"),
    "round digits": Written(_TO_DIGITS % f"round({_LIFTED}, {{1}}::INTEGER)", always),
    "round tens": Written(_TO_TENS % "round({0}::DOUBLE, {1}::INTEGER)", always),
    "trunc digits": Written(_TO_DIGITS % f"trunc({_LIFTED} * pow(10e0, {{1}})) / pow(10e0, {{1}})"),
    "trunc tens": Written(_TO_TENS % "trunc({0}::DOUBLE / pow(10e0, -({1}))) * pow(10e0, -({1}))"),
    "width_bucket": _buckets(""),
    "width_bucket numeric": _buckets(f" * {_ABOVE_ONE}"),
})  # fmt: skip
