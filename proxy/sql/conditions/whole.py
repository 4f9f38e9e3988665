"""Is a number whole on every row?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import assert_never

from proxy.sql.algebra.nodes import Call, Case, Literal, Null, Scalar
from proxy.sql.functions.function import Whole
from proxy.sql.functions.table import FUNCTIONS


def is_whole(scalar: Scalar) -> bool:
    """Whether a number is always whole."""
    if scalar.type.is_integer:
        return True
    match scalar:
        case Literal(int() | float() | Decimal() as value):
            return value == math.floor(value)
        case Case(branches, otherwise):
            return all(isinstance(v, Null) or is_whole(v) for v in (*(v for _, v in branches), otherwise))
        case Call(function, args):
            return _gives_whole(FUNCTIONS[function].whole, args)
        case _:
            return False


def _gives_whole(whole: Whole, args: Iterable[Scalar]) -> bool:
    match whole:
        case Whole.YES:
            return True
        case Whole.KEPT:
            return all(is_whole(a) for a in args)
        case Whole.NO:
            return False
        case _ as never:
            assert_never(never)
