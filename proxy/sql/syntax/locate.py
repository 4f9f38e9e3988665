"""Where in the text does each SELECT of the tree, or one expression of it, stand?

Splicing by position keeps everything outside a private SELECT exactly as the client wrote it.
A SELECT that cannot be located beyond doubt is refused.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from proxy.errors import Unsupported
from proxy.sql.syntax.parse import parse_item
from proxy.sql.syntax.refusal import refuse


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Characters [start, end) of a statement."""

    start: int
    end: int


_SET_OPERATORS = frozenset((TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.SEMICOLON))
_TRAILERS = frozenset((TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH, TokenType.FOR))


def locate_selects(tree: exp.Expression, tokens: tuple[Token, ...]) -> dict[int, TextSpan]:
    """Spans by `id()` of each Select node. Raises Unsupported when tree and text do not match."""
    places = _Places()
    selects = places.of(tree)[2]
    starts = [i for i, t in enumerate(tokens) if t.token_type is TokenType.SELECT]
    if len(selects) != len(starts):
        raise refuse(tree, "the statement's SELECTs cannot be told apart", "Write it without unusual syntax.")
    spans = {}
    for select, start in zip(selects, starts, strict=True):
        span = TextSpan(tokens[start].start, _end(tokens, start, _ends_union(select)))
        first, last = places.own[id(select)]
        if first < span.start or last >= span.end:
            raise refuse(select, "the statement's SELECTs cannot be told apart", "Write it without unusual syntax.")
        spans[id(select)] = span
    return spans


class _Places:
    """Where the parts of a tree stand. own: the first and last place of a Select's parts, those in its WITH aside."""

    def __init__(self) -> None:
        self.own: dict[int, tuple[float, float]] = {}

    def of(self, node: exp.Expression) -> tuple[float, float, list[exp.Select]]:
        """Its first and last place, infinite if it has none, and the Selects in it in the order of the text."""
        start = node.meta.get("start")
        first, last = (start, start) if isinstance(start, int) else (math.inf, -math.inf)
        clause, before = node.args.get("with_"), list[exp.Select]()
        inside = list[tuple[float, list[exp.Select]]]()
        least, most = math.inf, -math.inf
        for child in node.iter_expressions():
            low, high, selects = self.of(child)
            if child is clause:
                first, last, before = min(first, low), max(last, high), selects
                continue
            if low < least:
                least = low
            if high > most:
                most = high
            if selects:
                inside.append((low, selects))
        if isinstance(node, exp.Select):
            self.own[id(node)] = least, most
            before = [*before, node]
        if inside:
            inside.sort(key=lambda found: found[0])
            before = [*before, *(s for _, found in inside for s in found)]
        return min(first, least), max(last, most), before


def _ends_union(select: exp.Select) -> bool:
    """Whether ORDER BY and LIMIT after this SELECT belong to a set operation around it."""
    parent = select.parent
    return isinstance(parent, exp.SetOperation) and parent.expression is select


def _end(tokens: tuple[Token, ...], start: int, ends_union: bool) -> int:
    depth = 0
    for token in tokens[start + 1 :]:
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            depth += 1
        elif kind is TokenType.R_PAREN:
            depth -= 1
        if depth < 0 or (depth == 0 and (kind in _SET_OPERATORS or (ends_union and kind in _TRAILERS))):
            return token.start
    return tokens[-1].end + 1


# --- one expression ---------------------------------------------------------------------------------

_NESTING = MappingProxyType({"(": 1, "[": 1, ")": -1, "]": -1})
_FARTHEST = 8  # tokens that may stand around an expression's own names: `CASE WHEN`, `::timestamp with time zone`


def locate_expression(node: exp.Expr, text: str, tokens: Sequence[Token]) -> TextSpan:
    """Where an expression of a statement stands: the shortest piece around its names that reads as the same tree.

    tokens: those of the SELECT the expression belongs to. Raises Unsupported when no piece does.
    """
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    ends = [n.meta["end"] for n in node.walk() if "end" in n.meta]
    if starts:
        first = bisect_left(tokens, min(starts), key=lambda t: t.start)
        last = bisect_right(tokens, max(ends), key=lambda t: t.end) - 1
        first, last = _balanced(tokens, first, last) if first <= last else (0, -1)
        for width in range(2 * _FARTHEST + 1 if first <= last else 0):
            for before in range(min(width, _FARTHEST) + 1):
                start, end = first - before, last + width - before
                if start < 0 or end >= len(tokens) or width - before > _FARTHEST:
                    continue
                if _reads_as(node, text, tokens[start : end + 1]):
                    return TextSpan(tokens[start].start, tokens[end].end + 1)
    raise refuse(node, "this expression cannot be told apart from what is around it", "Write it in parentheses.")


def _balanced(tokens: Sequence[Token], first: int, last: int) -> tuple[int, int]:
    """The same tokens with the parentheses that they open or close without a partner."""
    low, end = _depths(tokens[first : last + 1])
    while low < 0 and first > 0:
        first -= 1
        step = _step(tokens[first])
        low, end = min(0, step + low), end + step
    while end > 0 and last + 1 < len(tokens):
        last += 1
        end += _step(tokens[last])
    return first, last


def _depths(tokens: Sequence[Token]) -> tuple[int, int]:
    """Lowest nesting of parentheses and brackets on the way, and the nesting at the end."""
    depth, low = 0, 0
    for token in tokens:
        depth += _step(token)
        low = min(low, depth)
    return low, depth


def _step(token: Token) -> int:
    """How a token changes the nesting. A text may be a parenthesis too, and is longer by its quotes."""
    return _NESTING.get(token.text, 0) if token.end == token.start else 0


def _reads_as(node: exp.Expr, text: str, tokens: Sequence[Token]) -> bool:
    if _depths(tokens) != (0, 0):
        return False
    try:
        tree = parse_item(tokens, text)
    except Unsupported:
        return False
    bare = isinstance(tree, exp.Select) and not any(v for k, v in tree.args.items() if k not in ("expressions", "kind"))
    return bare and len(tree.expressions) == 1 and tree.expressions[0] == node
