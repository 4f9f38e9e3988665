"""What is one function's spelling for Spark, and which parts do several of them share?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from proxy.sql.functions.hazards import Hazard, never

SparkArguments = tuple[str, ...]

LARGEST = "1.7976931348623157e308"
X, Y = "CAST({0} AS DOUBLE)", "CAST({1} AS DOUBLE)"
# between zeros and what has no zero: a divisor that is one is none, as servers differ in what nullif makes of -0
NOT_ZERO = "CASE WHEN {1} <> 0 THEN {1} END"
_MOST_FRACTIONS = "9e15"  # larger doubles are whole
_PLAIN = re.compile(r"[A-Za-z0-9 _.:,+-]*")
_BYTES = re.compile(r"CAST\(X'([0-9A-F]*)' AS STRING\)")


def as_they_are(args: SparkArguments) -> SparkArguments:
    return args


@dataclass(frozen=True, slots=True)
class SparkSpelling:
    """Templates of one function; "" for the same as `plain`.

    Each is total by itself: there is no TRY around an expression, and an engine may compute what stands behind a
    condition for rows that do not meet it. may_raise: whether `plain` could raise for some row, so that `checked` is
    written. whole: for a first argument that is a whole number. prepared: what becomes of the arguments, as a pattern.
    It raises ValueError, naming what is not accepted, where Spark has none.
    """

    plain: str
    checked: str = ""
    may_raise: Hazard = never
    whole: str = ""
    prepared: Callable[[SparkArguments], SparkArguments] = as_they_are


def text_literal(text: str) -> str:
    """Backslashes have a meaning, and servers differ in that of two quotes: what is not plain goes in as bytes."""
    return f"'{text}'" if _PLAIN.fullmatch(text) else f"CAST(X'{text.encode().hex().upper()}' AS STRING)"


def text_of(argument: str) -> str:
    """What a constant text says that stands in parentheses. Raises ValueError for what is no constant."""
    inner = argument[1:-1]
    if found := _BYTES.fullmatch(inner):
        return bytes.fromhex(found[1]).decode()
    if not (len(inner) > 1 and inner[0] == inner[-1] == "'" and _PLAIN.fullmatch(inner[1:-1])):
        raise ValueError("a pattern that is no constant")
    return inner[1:-1]


def number_of(argument: str) -> str:
    """The digits of a constant whole number."""
    return argument[1:-1].partition("::")[0].strip("()")


def rounded_by(name: str, value: str) -> str:
    """floor or ceil of a double as a double: they give a BIGINT, which large ones are not."""
    return f"coalesce(CAST({name}(CASE WHEN abs({value}) < {_MOST_FRACTIONS} THEN {value} END) AS DOUBLE), {value})"


def cut(value: str) -> str:
    """A double without its fraction."""
    within = f"CASE WHEN abs({value}) < {_MOST_FRACTIONS} THEN {value} END"
    return f"coalesce(CAST(CAST({within} AS BIGINT) AS DOUBLE), {value})"
