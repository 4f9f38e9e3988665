"""Does a document have the shape its model describes, and what would be accepted where it has not?

Faulty parts are reported and cut out, so that the rest can be checked further in the same run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from proxy.policy.document import UNION_KINDS, UNIONS
from proxy.policy.problems import Path, ProblemReport, did_you_mean, one_of
from proxy.policy.tree import Plain, Tree, unshared

Model = TypeVar("Model", bound=BaseModel)

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "list_type": "a list in [ ]",
}
_LIMITS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


@dataclass(frozen=True, slots=True)
class Shaped(Generic[Model]):
    """The document without its faulty parts, and the paths that were cut out."""

    document: Model
    cut: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Shapeless:
    """Too much is missing to say more than the report does already."""


@dataclass(slots=True)
class _Reader(Generic[Model]):
    model: type[Model]
    report: ProblemReport
    stand_ins: Mapping[Path, Plain]
    schema: Mapping[str, object]
    cut: list[Path] = field(default_factory=list)


def read_shape(
    tree: Tree, model: type[Model], *, stand_ins: Mapping[Path, Plain] = MappingProxyType({})
) -> Shaped[Model] | Shapeless:
    """Validate a tree; every fault goes to the tree's report.

    stand_ins: what takes the place of required parts that are missing or faulty, so that reading can go on.
    """
    reader = _Reader(model, tree.report, stand_ins, model.model_json_schema())
    if not isinstance(tree.root, dict):
        keys = one_of(_children(reader, ()))
        tree.report.add((), f"expected a mapping with the keys {keys}, found {tree.report.show((), tree.root)}")
        return Shapeless()
    data: Plain = unshared(tree.root)
    while True:
        try:
            return Shaped(model.model_validate(data), tuple(reader.cut))
        except ValidationError as error:
            if not _cut_out(reader, data, error.errors(include_url=False, include_context=True)):
                return Shapeless()


def _cut_out(reader: _Reader[Model], data: Plain, faults: Sequence[ErrorDetails]) -> bool:
    """Report faults and remove what they are about; False when that is not possible."""
    told = {problem.path for problem in reader.report.problems}
    is_changed = False
    for fault in faults:
        path = _path(fault["loc"])
        is_missing = fault["type"] == "missing"
        if path not in told and path not in reader.cut and not (is_missing and path[:-1] in told):
            reader.report.add(path, _words(reader, path, fault))
        is_part = is_missing and path not in reader.stand_ins
        is_changed = _remove(reader, data, path[:-1] if is_part else path) or is_changed
    return is_changed


def _path(location: tuple[int | str, ...]) -> Path:
    """The path in the file: without the words by which a union tells its members apart."""
    parts = enumerate(location)
    return tuple(part for i, part in parts if not (part in UNION_KINDS and i > 0 and location[i - 1] in UNIONS))


def _remove(reader: _Reader[Model], data: Plain, path: Path) -> bool:
    """Drop the mapping entry the path is in, or put its stand-in there; False if nothing is left to drop."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    here: Plain = data
    for part in path[:-1]:
        here = here.get(str(part)) if isinstance(here, dict) else None
    if not path or not isinstance(here, dict):
        return False
    key = str(path[-1])
    is_changed = key in here or path in reader.stand_ins
    here.pop(key, None)
    if path in reader.stand_ins:
        here[key] = unshared(reader.stand_ins[path])
    reader.cut.append(path)
    return is_changed


def _words(reader: _Reader[Model], path: Path, fault: ErrorDetails) -> str:
    kind, context = fault["type"], fault.get("ctx", {})
    found = reader.report.show(path, fault["input"])
    if kind == "extra_forbidden":
        keys = _children(reader, path[:-1])
        return f"unknown key{did_you_mean(str(path[-1]), keys)}; accepted here: {one_of(keys)}"
    if kind == "missing":
        return f"required and missing: {_describe(reader, path)}"
    if kind in _EXPECTED and _alternatives(_node(reader, path)) > 1:
        return f"expected another kind of value: {_describe(reader, path)} Found {found}"
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, found {found}"
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        return f"must be {words} {context[name]}, found {found}"
    if kind == "literal_error":
        wrong = fault["input"]
        close = (
            did_you_mean(wrong, _literals(context)) if isinstance(wrong, str) and wrong != context["expected"] else ""
        )
        return f"expected {context['expected']}, found {found}{close}"
    if kind in ("too_short", "string_too_short"):
        return "must not be empty"
    if kind in ("too_long", "string_too_long"):
        return f"must not be longer than {context['max_length']}, found {found}"
    return f"{_describe(reader, path)} Found {found}"


def _alternatives(node: Mapping[str, object]) -> int:
    """How many kinds of value are accepted, nothing not counted."""
    several = node.get("anyOf", node.get("oneOf"))
    if not isinstance(several, list):
        return 0 if node == {"type": "null"} else 1
    return sum(_alternatives(one) for one in several)


def _literals(context: Mapping[str, object]) -> list[str]:
    return [word.strip(" '") for word in str(context["expected"]).replace(" or ", ",").split(",")]


# --- the JSON Schema as a source of words ---------------------------------------------------------


def _children(reader: _Reader[Model], path: Path) -> list[str]:
    node = _node(reader, path)
    properties = node.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _describe(reader: _Reader[Model], path: Path) -> str:
    return str(_node(reader, path).get("description", "a value of another kind is wanted."))


def _node(reader: _Reader[Model], path: Path) -> Mapping[str, object]:
    node: Mapping[str, object] = reader.schema
    for part in path:
        node = _step(reader, node, part)
    return node


def _step(reader: _Reader[Model], node: Mapping[str, object], part: str | int) -> Mapping[str, object]:
    for choice in _choices(reader, node):
        properties = choice.get("properties")
        if isinstance(properties, dict) and part in properties:
            return _merged(reader, properties[part])
        rest = choice.get("items" if isinstance(part, int) else "additionalProperties")
        if isinstance(rest, dict):
            return _merged(reader, rest)
    return {}


def _choices(reader: _Reader[Model], node: Mapping[str, object]) -> list[Mapping[str, object]]:
    parts = [node]
    for word in ("anyOf", "oneOf"):
        several = node.get(word)
        if isinstance(several, list):
            parts.extend(_merged(reader, one) for one in several)
    return parts


def _merged(reader: _Reader[Model], node: Mapping[str, object]) -> Mapping[str, object]:
    """A schema node with its reference followed; words beside the reference win.

    Of several choices the first with named keys lends them, so that keys can be listed.
    """
    reference = node.get("$ref")
    if isinstance(reference, str):
        definitions = reader.schema.get("$defs")
        target = definitions.get(reference.rsplit("/", 1)[-1], {}) if isinstance(definitions, dict) else {}
        node = {**target, **node}
    for choice in _choices(reader, node)[1:]:
        if "properties" in choice and "properties" not in node:
            node = {**node, "properties": choice["properties"]}
    return node
