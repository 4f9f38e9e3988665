"""Which text asks for the same statement with noise intervals beside its aggregates?"""

from __future__ import annotations

from sqlglot import exp

from proxy.sql.dialect import quote
from proxy.sql.formula import is_aggregate_value, is_formula
from proxy.sql.locate import locate_expression
from proxy.sql.outer import find_clauses
from proxy.sql.output_names import output_name
from proxy.sql.split import SYSTEM_SCHEMA, Split


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
        if not (is_aggregate_value(inner) or is_formula(inner)):
            continue
        where = locate_expression(inner, cut.text, block.tokens)
        text, name = cut.text[where.start : where.end], output_name(item, cut.text)
        added += [f"{SYSTEM_SCHEMA}.{p}({text}) AS {quote(f'{name}_{p}')}" for p in ("low", "high")]
    if not added:
        return cut.text
    clause = find_clauses(block.select, block.span, block.tokens).selected.end
    return f"{cut.text[:clause]}, {', '.join(added)} {cut.text[clause:]}"
