"""What is one function's spelling for PostgreSQL, and which parts do several of them share?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proxy.sql.functions.hazards import Hazard, never

SpelledArguments = tuple[str, ...]


def as_they_are(args: SpelledArguments) -> SpelledArguments:
    return args


@dataclass(frozen=True, slots=True)
class Spelling:
    """Templates of one function; "" for the same as `plain`.

    may_raise: whether `plain` could raise for some row, so that `checked` is written.
    prepared: what becomes of the arguments, as a format or a pattern. It raises ValueError where PostgreSQL has none.
    """

    plain: str
    checked: str = ""
    may_raise: Hazard = never
    whole: str = ""
    prepared: Callable[[SpelledArguments], SpelledArguments] = as_they_are


LARGE, SMALL = "'1e150'::FLOAT8", "'1e-150'::FLOAT8"
# away from zero, as PostgreSQL's numeric rounds; its doubles go to the even neighbour
AWAY = "trunc({0}) + CASE WHEN abs({0} - trunc({0})) >= 0.5 THEN sign({0}) ELSE 0 END"
FIRST, LAST = "'4000-01-01 00:00:00 BC'::TIMESTAMP", "'200000-01-01 00:00:00'::TIMESTAMP"
IN_CALENDAR = f"{{0}} BETWEEN {FIRST} AND {LAST}"
IN_OUR_ERA = f"{{0}} BETWEEN '0001-01-01 00:00:00'::TIMESTAMP AND {LAST}"  # any span leads to the calendar's years


def bare(constant: str) -> str:
    """A constant without the parentheses in which arguments stand."""
    return constant[1:-1]


def text_of(constant: str) -> str:
    """What a string constant says."""
    inner = bare(constant)
    assert inner[:1] == inner[-1:] == "'"
    return inner[1:-1].replace("''", "'")


def number_of(constant: str) -> str:
    """The digits of a constant number."""
    return bare(constant).partition("::")[0].strip("'")
