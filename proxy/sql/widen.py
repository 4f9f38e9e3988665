"""Which text asks for the same statement with noise intervals beside its aggregates?"""

from __future__ import annotations

from sqlglot import exp

from proxy.sql.render import quote
from proxy.sql.scope import output_name
from proxy.sql.split import SYSTEM_SCHEMA, Split


def widen(cut: Split) -> str:
    """Append `<column>_low` and `<column>_high` for every select item that is one aggregate.

    Only the outermost SELECT is widened, and only if it is a block itself; other text is returned as it is.
    """
    root = cut.root
    block = next((b for b in cut.blocks if b.select is root), None)
    if block is None:
        return cut.text
    added = []
    for item in block.select.expressions:
        inner = item.this if isinstance(item, exp.Alias) else item
        if not isinstance(inner, (exp.AggFunc, exp.Filter)):
            continue
        text, name = inner.sql(dialect="postgres", comments=False), output_name(item)
        added += [f"{SYSTEM_SCHEMA}.{p}({text}) AS {quote(f'{name}_{p}')}" for p in ("low", "high")]
    clause = next(iter(_from_positions(cut, block.span.start)), None)
    if not added or clause is None:
        return cut.text
    return f"{cut.text[:clause]}, {', '.join(added)} {cut.text[clause:]}"


def _from_positions(cut: Split, start: int) -> list[int]:
    """Offsets of the FROM keywords of the outermost SELECT."""
    depth, found = 0, []
    for token in cut.tokens:
        if token.start < start:
            continue
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.text.upper() == "FROM":
            found.append(token.start)
    return found
