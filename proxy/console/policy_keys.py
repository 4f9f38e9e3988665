"""Which keys and values does the editor of policies propose, and what does it say of each?

All of it is the schema that `hushql policy schema` prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from proxy.policy.document import schema

_REF = "#/$defs/"
_ROOT = ""


@cache
def policy_keys() -> dict[str, dict[str, dict[str, object]]]:
    """The keys of each kind of mapping, by the kind's name, "" for the whole file.

    Each has what it is about, the kind of the mapping that it holds, the kind of those that it holds under names of
    one's own, and its values where these are few; "" and nothing where there is none.
    """
    whole = schema()
    kinds = {_ROOT: whole, **_mapping(whole["$defs"])}
    return {
        name: {key: _about(_mapping(value), kinds) for key, value in _mapping(_mapping(kind)["properties"]).items()}
        for name, kind in kinds.items()
    }


def _about(value: dict[str, object], kinds: dict[str, object]) -> dict[str, object]:
    kind, each = next(_kinds(value), ""), value.get("additionalProperties")
    of_kind = _mapping(kinds[kind]).get("description", "") if kind else ""
    return {
        "about": value.get("description", of_kind),
        "kind": kind,
        "each": next(_kinds(_mapping(each)), "") if isinstance(each, dict) else "",
        "values": ["true", "false"] if value.get("type") == "boolean" else value.get("enum", value.get("examples", [])),
    }


def _kinds(value: dict[str, object]) -> Iterator[str]:
    """The kinds of mapping that a value may be."""
    if "$ref" in value:
        yield str(value["$ref"]).removeprefix(_REF)
    for several in (value.get("anyOf"), value.get("oneOf")):
        if isinstance(several, list):
            for one in several:
                yield from _kinds(_mapping(one))


def _mapping(value: object) -> dict[str, object]:
    assert isinstance(value, dict), "a schema is made of mappings"
    return value
