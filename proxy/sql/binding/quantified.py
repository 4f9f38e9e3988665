"""What do ANY and ALL over a constant array mean?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from proxy.sql.algebra.constants import Elements, Untyped
from proxy.sql.algebra.nodes import Literal, Scalar
from proxy.sql.binding.binder import Binder, Bound
from proxy.sql.binding.subqueries import constants_of, one_row
from proxy.sql.binding.values import cast_type, parameter
from proxy.sql.syntax.parse import unwrapped
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_ARRAYS = "Write x IN (1, 2), x = ANY(ARRAY[1, 2]) or x = ANY($1)."
_QUERIES = (
    "Write x IN (1, 2), IN (SELECT unnest(ARRAY[1, 2])), IN (SELECT generate_series(1, 5)), IN (SELECT c FROM a public "
    "table), or IN a SELECT of the unit's column with GROUP BY and HAVING."
)
_MOST_TESTS = 100
_WORDS = {"all": True, "some": False}  # that the parser takes for names of functions

QuantifiedPart = tuple[Bound, exp.Expression]
QuantifiedParts = Sequence[QuantifiedPart]


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


def few(node: exp.Expression, items: QuantifiedParts) -> QuantifiedParts:
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


def elements(
    binder: Binder, node: exp.Expression, array: exp.Expression, beside: SqlType = SqlType.TEXT
) -> QuantifiedParts:
    """The elements of a constant array. beside: the type of a text that has none. Raises Unsupported."""
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
            return _cast_elements(binder, node, cast_type(node, element), unwrapped(array.this))
        case exp.StringToArray():
            only(array, "this", "expression")
            return [(Literal(part, SqlType.TEXT), array) for part in _split(binder, node, array)]
        case exp.Select() | exp.Subquery() if constants_of(array.unnest()) is not None:
            return unnested(binder, node, array)
        case exp.Literal(args={"is_string": True}):
            return [(item, array) for item in binder.constants.elements(node, array.name, beside).items]
        case _:
            pass  # refused below
    raise refuse(node, "ANY and ALL are accepted over constant arrays", _ARRAYS)


def _cast_elements(binder: Binder, node: exp.Expression, kind: SqlType, source: exp.Expression) -> QuantifiedParts:
    """The elements of an array that is cast, texts among them read as PostgreSQL reads them."""
    is_array = isinstance(source, exp.Cast) and source.args["to"].this is exp.DataType.Type.ARRAY
    if isinstance(source, (exp.Parameter, exp.Cast)) and not is_array:
        given = parameter(binder, source) if isinstance(source, exp.Parameter) else binder.bind(source)
        if isinstance(given, Literal) and isinstance(given.value, str):
            return [(item, source) for item in binder.constants.elements(node, given.value, kind).items]
    return [(_converted(binder, bound, kind, item), item) for bound, item in elements(binder, node, source, kind)]


def _split(binder: Binder, node: exp.Expression, call: exp.Expression) -> list[str]:
    """The parts of string_to_array('a,b', ',')."""
    text, comma = (binder.scalar(part) for part in (call.this, call.expression))
    if not all(isinstance(v, Literal) and isinstance(v.value, str) for v in (text, comma)):
        raise refuse(node, "ANY and ALL are accepted over constant arrays", _ARRAYS)
    whole, between = (str(v.value) for v in (text, comma) if isinstance(v, Literal))
    if not between:
        return [whole] if whole else []
    return whole.split(between) if whole else []


def unnested(binder: Binder, node: exp.Expression, query: exp.Expression) -> QuantifiedParts:
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


def _converted(binder: Binder, bound: Bound, kind: SqlType, node: exp.Expression) -> Bound:
    match bound:
        case Untyped(text):
            return binder.read(node, text, kind)
        case Literal():
            return binder.convert(node, bound, kind)
        case _:
            return bound
