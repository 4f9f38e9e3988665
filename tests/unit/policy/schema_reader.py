"""Does a document fit a JSON Schema? Knows the words our schema uses and fails on any other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]
Rule = Callable[[Any, Any, Schema, Schema], bool]

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "null": lambda v: v is None,
}
_SAYS_NOTHING = {"$schema", "$defs", "title", "description", "default", "examples"}


def fits(value: Any, schema: Schema, root: Schema) -> bool:
    """Whether the value is valid; KeyError for a word of the schema that is not known here."""
    return all(_RULES[word](value, rule, schema, root) for word, rule in schema.items() if word not in _SAYS_NOTHING)


def _properties(value: Any, rule: Any, schema: Schema, root: Schema) -> bool:
    return not isinstance(value, dict) or all(fits(v, rule[k], root) for k, v in value.items() if k in rule)


def _additional(value: Any, rule: Any, schema: Schema, root: Schema) -> bool:
    if not isinstance(value, dict):
        return True
    rest = [v for k, v in value.items() if k not in schema.get("properties", {})]
    return not rest if rule is False else all(fits(v, rule, root) for v in rest)


def _is_long_enough(value: Any, rule: Any, schema: Schema, root: Schema) -> bool:
    return not hasattr(value, "__len__") or len(value) >= rule


_RULES: dict[str, Rule] = {
    "$ref": lambda v, rule, _, root: fits(v, root["$defs"][rule.rsplit("/", 1)[-1]], root),
    "type": lambda v, rule, *_: any(_TYPES[name](v) for name in ([rule] if isinstance(rule, str) else rule)),
    "enum": lambda v, rule, *_: v in rule,
    "const": lambda v, rule, *_: type(v) is type(rule) and bool(v == rule),
    "anyOf": lambda v, rule, _, root: any(fits(v, one, root) for one in rule),
    "oneOf": lambda v, rule, _, root: sum(fits(v, one, root) for one in rule) == 1,
    "required": lambda v, rule, *_: not isinstance(v, dict) or set(rule) <= set(v),
    "properties": _properties,
    "additionalProperties": _additional,
    "items": lambda v, rule, _, root: not isinstance(v, list) or all(fits(one, rule, root) for one in v),
    "pattern": lambda v, rule, *_: not isinstance(v, str) or re.search(rule, v) is not None,
    "minLength": _is_long_enough,
    "minItems": _is_long_enough,
    "minProperties": _is_long_enough,
    "maxLength": lambda v, rule, *_: not isinstance(v, str) or len(v) <= rule,
    "minimum": lambda v, rule, *_: not isinstance(v, int | float) or v >= rule,
    "maximum": lambda v, rule, *_: not isinstance(v, int | float) or v <= rule,
}
