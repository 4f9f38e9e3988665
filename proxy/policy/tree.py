"""Which plain values does a YAML text hold, and on which line does each stand?

Only the YAML that configuration needs: mappings with text keys, lists, scalars, aliases. Duplicate keys,
tags, merge keys and several documents are refused. Dates stay text; the column's type reads them later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from proxy.policy.environment import substitute
from proxy.policy.problems import DocumentMarks, FileProblems, Path, Problem, ProblemReport

_DEEPEST = 30
_MOST_NODES = 50_000
_TAG = "tag:yaml.org,2002:"


class Real(float):
    """A number written with a fraction or exponent; keeps its spelling for exact decimals."""

    text: str

    def __new__(cls, text: str) -> Self:
        self = super().__new__(cls, text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
        self.text = text.replace("_", "")
        return self

    def __str__(self) -> str:
        return self.text


Plain = None | bool | int | Real | str | list["Plain"] | dict[str, "Plain"]


@dataclass(frozen=True, slots=True)
class Tree:
    """A file as plain values, with the report that knows its lines."""

    root: Plain
    report: ProblemReport


def unshared(plain: Plain) -> Plain:
    """A copy whose mappings and lists may be changed; scalars are shared."""
    match plain:
        case dict():
            return {key: unshared(value) for key, value in plain.items()}
        case list():
            return [unshared(value) for value in plain]
        case _:
            return plain


def read_tree(
    text: str, filename: str, environment: Mapping[str, str], *, secret_keys: frozenset[str] = frozenset()
) -> Tree:
    """Parse YAML. Raises FileProblems when it is not YAML at all; lesser faults go to the report.

    secret_keys: keys whose values no message may quote, wherever they stand.
    """
    node = _compose(text, filename)
    builder = _Builder(environment, secret_keys)
    if node is None:
        raise FileProblems(filename, [Problem(1, (), "the file is empty")])
    root = builder.build(node, (), 0)
    report = ProblemReport(DocumentMarks(builder.lines, frozenset(builder.secret)))
    for path, message in builder.complaints:
        report.add(path, message)
    return Tree(root, report)


@dataclass(frozen=True, slots=True)
class Reference:
    """A value that names variables of the environment, as YAML means it, and the line where it stands."""

    text: str
    line: int


def references(text: str, filename: str) -> Mapping[Path, Reference]:
    """Every value that names a variable, by its path: escapes are undone and aliases followed; none has its value.

    Raises FileProblems when the text is not YAML at all.
    """
    builder = _Builder({}, frozenset())
    node = _compose(text, filename)
    if node is not None:
        builder.build(node, (), 0)
    return builder.references


def _compose(text: str, filename: str) -> Node | None:
    try:
        found = YAML(typ="rt", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        words = " ".join(str(error.problem or error.context or "cannot be read").split())
        hint = "; put ${...} inside [ ] or { } in quotes" if "${" in _line(text, line) else ""
        raise FileProblems(filename, [Problem(line, (), f"not valid YAML: {words}{hint}")]) from error
    except Exception as error:  # the parser's other faults: characters, nesting, its own bugs
        raise FileProblems(filename, [Problem(1, (), "not valid YAML: the text cannot be read")]) from error
    return found if isinstance(found, Node) else None


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else ""


@dataclass(slots=True)
class _Builder:
    environment: Mapping[str, str]
    secret_keys: frozenset[str]
    lines: dict[Path, int] = field(default_factory=dict)
    secret: set[Path] = field(default_factory=set)
    complaints: list[tuple[Path, str]] = field(default_factory=list)
    references: dict[Path, Reference] = field(default_factory=dict)
    nodes: int = 0

    def build(self, node: Node, path: Path, depth: int) -> Plain:
        self.lines.setdefault(path, node.start_mark.line + 1)
        self.nodes += 1
        if depth > _DEEPEST or self.nodes > _MOST_NODES:
            if not any("too deep" in words for _, words in self.complaints):
                self.complaints.append((path, "nested too deep or repeated too often"))
            return None
        match node:
            case MappingNode():
                return self._mapping(node, path, depth)
            case SequenceNode():
                self._check_tag(node, path, "seq")
                return [self.build(item, (*path, i), depth + 1) for i, item in enumerate(node.value)]
            case ScalarNode():
                return self._scalar(node, path)
            case _:
                raise AssertionError("a YAML node of no known kind")

    def _mapping(self, node: MappingNode, path: Path, depth: int) -> Plain:
        self._check_tag(node, path, "map")
        result: dict[str, Plain] = {}
        for key_node, value_node in node.value:
            key = _key(key_node)
            if key is None:
                self.complaints.append((path, "keys must be plain words; merge keys and nested keys are not used"))
                continue
            if not _is_unicode(key):
                self.complaints.append((path, "a key has half of a surrogate pair, which is no character"))
                continue
            here = (*path, key)
            line = key_node.start_mark.line + 1
            if key in result:
                self.complaints.append((here, f"the key is given twice, again on line {line}"))
                continue
            self.lines[here] = line
            if key in self.secret_keys:
                self.secret.add(here)
            result[key] = self.build(value_node, here, depth + 1)
        return result

    def _scalar(self, node: ScalarNode, path: Path) -> Plain:
        text, tag = str(node.value), str(node.tag)
        if node.style == ">":
            text = text.replace("\a", "")  # the parser's own mark of a line that was folded
        if not tag.startswith(_TAG):
            self._check_tag(node, path, "str")
            return text
        if "${" in text:
            written, done = text, substitute(text, self.environment)
            self.complaints.extend((path, words) for words in done.complaints)
            text = done.text
            if done.used_environment:
                self.secret.add(path)
                self.references[path] = Reference(written, node.start_mark.line + 1)
            tag = _plain_tag(text) if node.style is None and not done.complaints else _TAG + "str"
        if not _is_unicode(text):
            self.complaints.append((path, "has half of a surrogate pair, which is no character"))
            return ""
        try:
            return _scalar_value(tag.removeprefix(_TAG), text)
        except ValueError:
            self.complaints.append((path, "cannot be read as a number"))
            return None

    def _check_tag(self, node: Node, path: Path, usual: str) -> None:
        if node.tag != _TAG + usual:
            self.complaints.append((path, "YAML tags (!name) are not used here; remove it"))


def _key(node: Node) -> str | None:
    """A plain word, or several in [ ] as one text; None for what is neither."""
    match node:
        case ScalarNode():
            return None if node.tag == _TAG + "merge" else str(node.value)
        case SequenceNode():
            words = [_key(item) if isinstance(item, ScalarNode) else None for item in node.value]
            return None if None in words or not words else f"[{', '.join(map(str, words))}]"
        case _:
            return None


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


_NUMBERS = (
    ("bool", re.compile(r"true|false", re.IGNORECASE)),
    ("int", re.compile(r"[-+]?[0-9]+")),
    ("float", re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")),
)


def _plain_tag(text: str) -> str:
    """How a substituted, unquoted scalar reads: a number or a boolean where it looks like one."""
    return _TAG + next((name for name, pattern in _NUMBERS if pattern.fullmatch(text)), "str")


def _scalar_value(kind: str, text: str) -> Plain:
    match kind:
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            digits = text.replace("_", "")
            base = {"0x": 16, "0o": 8, "0b": 2}.get(digits.lstrip("+-")[:2].lower(), 10)
            return int(digits, base)
        case "float":
            return Real(text.lower())
        case _:
            return text
