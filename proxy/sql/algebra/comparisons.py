"""What does a comparison say when its sides are exchanged, when it is denied, or of which part and which constant?"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from proxy.sql.algebra.nodes import Call, Literal, Scalar
from proxy.sqltypes import Value

#: What each says of two values that are there and have an order.
HOLDS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType({
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
})  # fmt: skip
#: The same with the sides exchanged: `1 < x` is `x > 1`.
MIRRORED: Mapping[str, str] = MappingProxyType({"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="})
#: What holds where a comparison of values that are there, and have an order, does not.
NEGATED: Mapping[str, str] = MappingProxyType({"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """`part operator constant`, whichever side the text has it on. `is distinct from` is one too."""

    part: Scalar
    operator: str
    value: Value


def with_constant(condition: Scalar) -> Comparison | None:
    """A condition as a comparison with a constant; None if it is none. Of two constants the left one is the part."""
    match condition:
        case Call(name, (part, Literal(value))) if name in HOLDS or name == "is distinct from":
            return Comparison(part, name, value)
        case Call(name, (Literal(value), part)) if name in HOLDS or name == "is distinct from":
            return Comparison(part, MIRRORED.get(name, name), value)
        case _:
            return None
