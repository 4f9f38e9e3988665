"""What is known about one function, whichever engine computes it?

The rows themselves are listed in `functions`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from proxy.sql.functions import constant_evaluation as images
from proxy.sql.functions import decimals
from proxy.sql.functions.constant_evaluation import ImageRule
from proxy.sql.functions.decimals import FoldRule
from proxy.sql.functions.domains import answers
from proxy.sql.functions.domains import rules as domains
from proxy.sql.functions.domains.answers import AnswerRule
from proxy.sql.functions.domains.rules import DomainRule
from proxy.sql.functions.hazards import Hazard, never
from proxy.sql.functions.signatures import TypeRule


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One permitted function.

    types: result type for argument types, None when there is no such signature.
    nulls: when the result is NULL. domain: its values for arguments with known values.
    fold: its value for numeric and integer constants.
    whole: whether a result of a type with fractions is whole. image: what it makes of known values, for public groups.
    beyond: where a value may lie outside of what is computed with: the function is NULL there, on every engine.
    answers: where it has an answer, if that is not wherever no value is beyond.
    """

    name: str
    types: TypeRule
    nulls: Nulls = Nulls.WITH_ANY
    domain: DomainRule = domains.nothing_known
    whole: Whole = Whole.NO
    fold: FoldRule = decimals.not_folded
    image: ImageRule = images.nothing_known
    beyond: Hazard = never
    answers: AnswerRule = answers.nowhere
