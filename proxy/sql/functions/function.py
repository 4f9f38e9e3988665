"""What is known about one function, and which hazards does it bring?

The rows themselves are listed in `functions`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from proxy.policy.model import Domain
from proxy.sql.functions import constant_evaluation as images
from proxy.sql.functions import decimals
from proxy.sql.functions.constant_evaluation import ImageRule
from proxy.sql.functions.decimals import FoldRule
from proxy.sql.functions.domains import answers
from proxy.sql.functions.domains import rules as domains
from proxy.sql.functions.domains.answers import AnswerRule
from proxy.sql.functions.domains.intervals import INT64_SAFE, number_range, time_range
from proxy.sql.functions.domains.rules import DomainRule
from proxy.sql.functions.signatures import TypeRule

Hazard = Callable[[tuple[Domain, ...], Domain], bool]


class Nulls(enum.Enum):
    """When a result is NULL."""

    WITH_ANY = "where an argument is NULL"
    WITH_ANY_OR_NO_ANSWER = "where an argument is NULL or the function has no answer"
    WITH_SOME = "where those arguments are NULL that decide it"
    WITH_ALL = "where all arguments are NULL"
    NEVER = "never"


class Whole(enum.Enum):
    """Whether a number of a type with fractions is always whole."""

    NO = "no"
    YES = "yes"
    KEPT = "if the argument is"


def never(_arguments: tuple[Domain, ...], _result: Domain) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One permitted function.

    types: result type for argument types, None when there is no such signature.
    duckdb: spelling. nulls: when the result is NULL. domain: its values for arguments with known values.
    fold: its value for numeric and integer constants.
    whole: whether a result of a type with fractions is whole. image: what it makes of known values, for public groups.
    may_raise: whether DuckDB could raise, given the argument domains and the result's domain; such a call is
    rendered inside TRY, and NULL where it would have raised. Its arguments never raise themselves, since an
    engine may compute a part apart from what stands around it.
    answers: where it has an answer, if that is not wherever it cannot raise.
    """

    name: str
    types: TypeRule
    duckdb: str
    nulls: Nulls = Nulls.WITH_ANY
    domain: DomainRule = domains.nothing_known
    whole: Whole = Whole.NO
    fold: FoldRule = decimals.not_folded
    image: ImageRule = images.nothing_known
    may_raise: Hazard = never
    answers: AnswerRule = answers.nowhere


# --- hazards ------------------------------------------------------------------------------------------------


def overflows(arguments: tuple[Domain, ...], result: Domain) -> bool:
    """Integer arithmetic may leave int64 unless the result's interval proves otherwise."""
    return not all(_fits(d) for d in (*arguments, result))


def _fits(domain: Domain) -> bool:
    ends = number_range(domain)
    return ends is not None and max(abs(ends[0]), abs(ends[1])) < INT64_SAFE


def leaves_calendar(arguments: tuple[Domain, ...], _result: Domain) -> bool:
    """Times without declared bounds may be where an engine's calendar ends."""
    return time_range(arguments[0]) is None


def arrives_outside(arguments: tuple[Domain, ...], result: Domain) -> bool:
    """Arithmetic of times may leave an engine's calendar unless bounds prove that it stays in the common years."""
    return time_range(arguments[0]) is None or (time_range(result) is None and number_range(result) is None)


def always(_arguments: tuple[Domain, ...], _result: Domain) -> bool:
    return True
