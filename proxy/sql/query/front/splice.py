"""Which text does the front run in place of the client's statement?

Blocks and system references are cut out by position; everything else is copied. Injected columns go
in as arrays, by parameter or by literal. Sees names and types, never where the values come from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proxy.sql.query.split import RESERVED, EmptiedText
from proxy.sql.render.dialect import quote, text_literal
from proxy.sql.syntax.locate import TextSpan
from proxy.sql.syntax.outer import Edit
from proxy.sqltypes import SqlType


@dataclass(frozen=True, slots=True)
class InjectedColumn:
    """One array to inject: its column name, element type and PostgreSQL's text of each element."""

    name: str
    type: SqlType
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Patch:
    """Replace `span` by `template`, in which `marker` stands once for the injected relation.

    inner: what stands in the template for other patches, and their spans.
    """

    span: TextSpan
    template: str
    marker: str
    columns: tuple[InjectedColumn, ...]
    inner: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class SplicedText:
    """The statement with parameters $first.. for the arrays, and the same with literals."""

    with_parameters: str
    with_literals: str
    arrays: tuple[InjectedColumn, ...]


def splice(text: str, patches: Sequence[Patch], first_parameter: int) -> SplicedText:
    """Apply the patches to the client's text."""
    filled = _Filled({p.span: p for p in patches}, first_parameter)
    held = {edit.span for p in patches for edit in p.inner}
    parameters: list[str] = []
    literals: list[str] = []
    position = 0
    for patch in sorted((p for p in patches if p.span not in held), key=lambda p: p.span.start):
        before = text[position : patch.span.start]
        with_parameters, with_literals = filled.fill(patch)
        parameters += [before, with_parameters]
        literals += [before, with_literals]
        position = patch.span.end
    parameters.append(text[position:])
    literals.append(text[position:])
    return SplicedText("".join(parameters), "".join(literals), tuple(filled.arrays))


class _Filled:
    """Templates with their relations, and the arrays those take, in the order of their numbers."""

    def __init__(self, patches: Mapping[TextSpan, Patch], first_parameter: int) -> None:
        self._patches = patches
        self._first = first_parameter
        self.arrays: list[InjectedColumn] = []

    def fill(self, patch: Patch) -> tuple[str, str]:
        """The patch's text with parameters, and with literals."""
        types = [array_type(c.type) for c in patch.columns]
        typed = [f"${self._first + len(self.arrays) + i}::{t}" for i, t in enumerate(types)]
        spelled = [f"{text_literal_pg(array_text(c.values))}::{t}" for c, t in zip(patch.columns, types, strict=True)]
        self.arrays += patch.columns
        parts = {edit.text: self.fill(self._patches[edit.span]) for edit in patch.inner}
        parts[patch.marker] = (_relation(patch.columns, typed), _relation(patch.columns, spelled))
        marks = re.compile("|".join(map(re.escape, parts)))  # in one pass: values may look like marks
        return marks.sub(lambda m: parts[m[0]][0], patch.template), marks.sub(lambda m: parts[m[0]][1], patch.template)


def system_template(name: str, columns: Sequence[InjectedColumn], *, needs_alias: bool) -> tuple[str, str]:
    """(template, marker) of a relation of the proxy in a FROM clause."""
    marker = f'"hush_system" AS "{RESERVED}"'
    chosen = ", ".join(quote(c.name) for c in columns)
    alias = f" AS {quote(name)}" if needs_alias else ""
    return f"(SELECT {chosen} FROM {marker}){alias}", marker


def erase(emptied: EmptiedText) -> Patch:
    """A SELECT of NULLs in place of text that nothing else may see."""
    return Patch(emptied.span, emptied.text(), '"hush_nothing"', ())


def array_type(kind: SqlType) -> str:
    """The array type, spelled for a cast whatever the search path is."""
    return f"pg_catalog.{_CATALOG_NAMES[kind]}[]"


_CATALOG_NAMES = {
    SqlType.BOOL: "bool", SqlType.INT2: "int2", SqlType.INT4: "int4", SqlType.INT8: "int8",
    SqlType.NUMERIC: "numeric", SqlType.FLOAT4: "float4", SqlType.FLOAT8: "float8", SqlType.TEXT: "text",
    SqlType.VARCHAR: "varchar", SqlType.BPCHAR: "bpchar", SqlType.UUID: "uuid", SqlType.DATE: "date",
    SqlType.TIMESTAMP: "timestamp", SqlType.TIMESTAMPTZ: "timestamptz", SqlType.INTERVAL: "interval",
}  # fmt: skip


def array_text(values: Sequence[str | None]) -> str:
    """PostgreSQL's text of a one-dimensional array; every element is quoted."""
    parts = ("NULL" if v is None else '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"' for v in values)
    return "{" + ",".join(parts) + "}"


def text_literal_pg(text: str) -> str:
    """A string literal that means the same whatever standard_conforming_strings says."""
    if "\\" in text:
        return " E" + text_literal(text.replace("\\", "\\\\"))
    return text_literal(text)


def _relation(columns: Sequence[InjectedColumn], arrays: Sequence[str]) -> str:
    calls = ", ".join(f"pg_catalog.unnest({a})" for a in arrays)
    names = ", ".join(quote(c.name) for c in columns)
    return f"ROWS FROM ({calls}) AS {quote(RESERVED)}({names})"
