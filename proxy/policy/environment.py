"""How do `${NAME}` and `${NAME:-default}` in a file get their values?

The environment is a mapping handed in by the caller. `$${` stands for a literal `${`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_REFERENCE = re.compile(r"\$(?P<escaped>\$)?\{(?P<body>[^{}]*)\}")
_BODY = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<has_default>:-(?P<default>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Substituted:
    """text with its references replaced; complaints name variables, never values."""

    text: str
    used_environment: bool
    complaints: tuple[str, ...]


def substitute(text: str, environment: Mapping[str, str]) -> Substituted:
    """Replace every reference once; what a variable holds is not searched again."""
    complaints: list[str] = []
    used = False

    def replace(found: re.Match[str]) -> str:
        nonlocal used
        if found["escaped"]:
            return found[0][1:]
        used = True
        body = _BODY.fullmatch(found["body"])
        if body is None:
            complaints.append(f"cannot read '{found[0]}'; write ${{NAME}} or ${{NAME:-default}}")
            return ""
        value = environment.get(body["name"], "")
        if value:
            return value
        if body["has_default"]:
            return body["default"]
        if body["name"] not in environment:
            complaints.append(f"environment variable {body['name']} is not set")
        return value

    replaced = _REFERENCE.sub(replace, text)
    return Substituted(replaced, used, tuple(complaints))
