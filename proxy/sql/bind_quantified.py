"""What do ANY and ALL over a constant array mean?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from proxy.sql.algebra import Literal, Scalar
from proxy.sql.bind_values import cast_type, parameter
from proxy.sql.binder import Binder, Bound
from proxy.sql.constants import Elements, Untyped, coerce_text
from proxy.sql.parse import unwrapped
from proxy.sql.refusal import only, refuse
from proxy.sql.subqueries import constants_of, one_row
from proxy.sqltypes import SqlType

_ARRAYS = "Write x IN (1, 2), x = ANY(ARRAY[1, 2]) or x = ANY($1)."
_QUERIES = (
    "Write x IN (1, 2), IN (SELECT unnest(ARRAY[1, 2])), IN (SELECT generate_series(1, 5)), IN (SELECT c FROM a public "
    "table), or IN a SELECT of the unit's column with GROUP BY and HAVING."
)
_MOST_TESTS = 100
_WORDS = {"all": True, "some": False}  # that the parser takes for names of functions
_ELEMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^",{}\\\s]|(?<=\S)\s+(?=[^,\s]))+))\s*(?:,(?!$)|$)', re.DOTALL)

Part = tuple[Bound, exp.Expression]
Parts = Sequence[Part]


@dataclass(frozen=True, slots=True)
class Quantified:
    """ALL (every) or ANY of the elements of an array."""

    array: exp.Expression
    every: bool


def quantified_of(node: exp.Expression) -> Quantified | None:
    """The right side of x = ANY(...), x <> ALL(...) and their like; None for all else."""
    match node:
        case exp.Any(this=exp.Expression() as array):
            return Quantified(array, every=False)
        case exp.All(this=exp.Expression() as array):
            return Quantified(array, every=True)
        case exp.Anonymous(this=str() as name, expressions=[exp.Expression() as array]) if name.lower() in _WORDS:
            return Quantified(array, every=_WORDS[name.lower()])
        case _:
            return None


def few(node: exp.Expression, items: Parts) -> Parts:
    """Elements that are compared one by one."""
    if len(items) > _MOST_TESTS:
        raise refuse(node, f"at most {_MOST_TESTS} elements are accepted here", _ARRAYS)
    return items


def combined(binder: Binder, node: exp.Expression, tests: Iterable[Scalar], found: Quantified) -> Scalar:
    """One of the tests, or each of them. Of no elements none is true, and each."""
    parts = tuple(tests)
    if not parts:
        return Literal(found.every, SqlType.BOOL)
    return reduce(lambda a, b: binder.call(node, "and" if found.every else "or", a, b), parts)


def elements(binder: Binder, node: exp.Expression, array: exp.Expression) -> Parts:
    """The elements of a constant array. Raises Unsupported."""
    array = unwrapped(array)
    match array:
        case exp.Array():
            only(array, "expressions", "value_constructor")
            return [(binder.bind(item), item) for item in array.expressions]
        case exp.Parameter():
            value = parameter(binder, array)
            if isinstance(value, Elements):
                return [(item, array) for item in value.items]
        case exp.Cast(args={"to": exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[element])}):
            only(array, "this", "to")
            kind, inner = cast_type(node, element), elements(binder, node, array.this)
            is_split = isinstance(array.this, exp.StringToArray)  # whose texts are read as the type then
            return [(_converted(binder, bound, kind, item, as_text=is_split), item) for bound, item in inner]
        case exp.StringToArray(this=exp.Literal() as text, expression=exp.Literal() as comma) if comma.name:
            only(array, "this", "expression")
            parts = text.name.split(comma.name) if text.name else []
            return [(Literal(part, SqlType.TEXT), array) for part in parts]
        case exp.Select() | exp.Subquery() if constants_of(array.unnest()) is not None:
            return unnested(binder, node, array)
        case exp.Literal(args={"is_string": True}):
            found = _written_out(str(array.this).strip())
            if found is not None:
                return [(Untyped(item), array) for item in found]
        case _:
            pass  # refused below
    raise refuse(node, "ANY and ALL are accepted over constant arrays", _ARRAYS)


def unnested(binder: Binder, node: exp.Expression, query: exp.Expression) -> Parts:
    """The elements of SELECT unnest(array), SELECT * FROM unnest(array), and of generate_series. Raises Unsupported."""
    while isinstance(query, (exp.Subquery, exp.Paren)):
        query = query.this
    plain = one_row(query)
    if plain is not None and plain.args.get("where") is None and len(plain.expressions) == 1:
        item = plain.expressions[0].unalias()
        return [(binder.bind(item), item)]
    match constants_of(query):
        case exp.Explode(this=exp.Expression() as array) | exp.Unnest(expressions=[exp.Expression() as array]):
            return elements(binder, node, array)
        case exp.ExplodingGenerateSeries() as series:
            only(series, "start", "end", "step")
            return [(Literal(n, SqlType.INT4), series) for n in _series(binder, node, series)]
        case _:
            raise refuse(node, "IN with a sub-query is not supported over private rows", _QUERIES)


def _series(binder: Binder, node: exp.Expression, series: exp.Expression) -> range:
    """The whole numbers of generate_series(1, 5)."""
    ends = [binder.scalar(series.args[name]) for name in ("start", "end", "step") if series.args.get(name) is not None]
    numbers = [end.value for end in ends if isinstance(end, Literal) and isinstance(end.value, int)]
    if len(numbers) < len(ends) or 0 in numbers[2:] or max(map(abs, numbers)) >= 2**31:
        raise refuse(node, "generate_series takes whole constants here", _QUERIES)
    first, last, step = (*numbers, 1)[:3]
    return range(first, last + (1 if step > 0 else -1), step)


def _written_out(text: str) -> list[str] | None:
    """The elements of '{a,"b c"}'; None where one is NULL or an array, or it cannot be read."""
    inner = text[1:-1].strip() if text[:1] == "{" and text[-1:] == "}" and len(text) > 1 else None
    if not inner:
        return None if inner is None else []
    found, position = [], 0
    while position < len(inner):
        match = _ELEMENT.match(inner, position)
        if match is None or (match[2] or "").lower() == "null":
            return None
        found.append(match[2] if match[1] is None else re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL))
        position = match.end()
    return found


def _converted(binder: Binder, bound: Bound, kind: SqlType, node: exp.Expression, *, as_text: bool) -> Bound:
    match bound:
        case Literal(str() as text) if as_text:
            return coerce_text(text, kind, node)
        case Untyped(text):
            return coerce_text(text, kind, node)
        case Literal():
            return binder.convert(node, bound, kind)
        case _:
            return bound
