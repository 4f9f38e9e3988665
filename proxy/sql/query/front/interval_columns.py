"""Which text asks for the same statement with noise intervals beside its aggregates?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from proxy.sql.binding.aggregates.modes import is_mode
from proxy.sql.binding.output_names import output_name
from proxy.sql.query.front.formula import is_aggregate_value, is_formula
from proxy.sql.query.split import SYSTEM_SCHEMA, Split
from proxy.sql.render.dialect import quote, text_literal
from proxy.sql.syntax.locate import locate_expression
from proxy.sql.syntax.outer import find_clauses


def widen(cut: Split) -> str:
    """Append `<column>_low` and `<column>_high` for every select item that is one aggregate, or arithmetic with some.

    Only the outermost SELECT is widened, and only if it is a block itself; other text is returned as it is.
    """
    root = cut.root
    block = next((b for b in cut.blocks if b.select is root), None)
    if block is None:
        return cut.text
    added = []
    for item in block.select.expressions:
        inner = item.this if isinstance(item, exp.Alias) else item
        if isinstance(inner, exp.Grouping) or not (is_aggregate_value(inner) or is_formula(inner)):
            continue
        calls, name = _calls(inner, cut.text, block.tokens), output_name(item, cut.text)
        added += [f"{_ends(calls, end)} AS {quote(f'{name}_{end}')}" for end in ("low", "high") if calls]
    if not added:
        return cut.text
    clause = find_clauses(block.select, block.span, block.tokens).selected.end
    return f"{cut.text[:clause]}, {', '.join(added)} {cut.text[clause:]}"


NOTE = "_note"
_PLACE = "hush_note"


def with_note(cut: Split) -> str:
    """Append a column for what is said of the answer, in which a text stands that `noted` replaces by it.

    Only the outermost SELECT gets it, and only if it is a block itself; other text is returned as it is.
    """
    block = next((b for b in cut.blocks if b.select is cut.root), None)
    if block is None or _PLACE in cut.text:
        return cut.text
    clause = find_clauses(block.select, block.span, block.tokens).selected.end
    return f"{cut.text[:clause]}, '{_PLACE}'::text AS {quote(NOTE)} {cut.text[clause:]}"


def noted(sql: str, note: str) -> str:
    """The statement with the note in its place; NULL for none."""
    return sql.replace(f"'{_PLACE}'", text_literal(note.replace("\\", "/")) if note else "NULL")


_ARRAY = re.compile(r"\bARRAY\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Calls:
    """The texts of which an interval is told: one, or those of an array of percentiles."""

    texts: tuple[str, ...]
    is_array: bool = False

    def __bool__(self) -> bool:
        return bool(self.texts)


def _calls(node: exp.Expr, text: str, tokens: tuple[Token, ...]) -> _Calls:
    """None of an array that is not written out, nor of a mode, which has none."""
    where = locate_expression(node, text, tokens)
    call = text[where.start : where.end]
    within = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(within, exp.WithinGroup):
        return _Calls((call,))
    if is_mode(within):
        return _Calls(())
    fractions = within.this.this
    array = fractions.this if isinstance(fractions, exp.Cast) else fractions
    if not isinstance(array, exp.Array) or not array.expressions:
        is_cast = isinstance(fractions, exp.Cast) and fractions.to.this is exp.DataType.Type.ARRAY
        is_array = is_cast or isinstance(array, exp.Array)
        return _Calls(() if is_array else (call,))
    whole = locate_expression(fractions, text, tokens)
    before, after = _ARRAY.sub("", text[where.start : whole.start]), text[whole.end : where.end]
    spans = [locate_expression(fraction, text, tokens) for fraction in array.expressions]
    return _Calls(tuple(f"{before}{text[s.start : s.end]}{after}" for s in spans), is_array=True)


def _ends(calls: _Calls, end: str) -> str:
    found = ", ".join(f"{SYSTEM_SCHEMA}.{end}({text})" for text in calls.texts)
    return f"ARRAY[{found}]" if calls.is_array else found
