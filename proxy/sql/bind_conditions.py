"""What do comparisons, IN, LIKE, NULL tests and their combinations mean?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra import Literal, Member, Null, Scalar, conjunction
from proxy.sql.bind_values import cast_type, parameter
from proxy.sql.binder import Binder, Bound, Rule
from proxy.sql.constants import Elements, Untyped, coerce_text
from proxy.sql.patterns import check_regular, of_similar
from proxy.sql.refusal import only, refuse
from proxy.sql.words import construct
from proxy.sqltypes import SqlType

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_MOST_ITEMS = 10_000
_MOST_ROWS = 100
_ARRAYS = "Write x IN (1, 2), x = ANY(ARRAY[1, 2]) or x = ANY($1)."
_PLAIN_ARRAY = re.compile(r"\{(?!\s*null\s*[,}])(?:(?!,\s*null\s*[,}])[^\"\\{}])*\}", re.IGNORECASE)
_REGULAR = "Accepted: characters, . [a-z] ( ) | * + ? {2,3} ^ $ and \\d, at most 200 characters."

Part = tuple[Bound, exp.Expression]
Parts = Sequence[Part]


def _compare(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    if isinstance(node.this, exp.Tuple) and isinstance(node, (exp.EQ, exp.NEQ)):
        equal = _rows_equal(binder, node, node.this, node.expression)
        return binder.negated(node, equal, isinstance(node, exp.NEQ))
    if isinstance(node.expression, exp.Any) or _is_all(node.expression):
        return _quantified(binder, node)
    left, right = binder.together(node, node.this, node.expression)
    return binder.call(node, _COMPARISONS[type(node)], left, right)


def _is_all(node: exp.Expression) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "all" and len(node.expressions) == 1


def _quantified(binder: Binder, node: exp.Expression) -> Scalar:
    """x = ANY(array) and x <> ALL(array), the array being constant."""
    wanted = exp.NEQ if _is_all(node.expression) else exp.EQ
    if not isinstance(node, wanted):
        raise refuse(node, "ANY is accepted with =, and ALL with <>", _ARRAYS)
    items = _elements(binder, node, node.expression.this if wanted is exp.EQ else node.expression.expressions[0])
    argument = binder.bind(node.this)
    if not items:
        return Literal(wanted is exp.NEQ, SqlType.BOOL)
    return binder.negated(node, _member(binder, node, (argument, node.this), items), wanted is exp.NEQ)


def _elements(binder: Binder, node: exp.Expression, array: exp.Expression) -> Parts:
    while isinstance(array, exp.Paren):
        array = array.this
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
            kind, inner = cast_type(node, element), _elements(binder, node, array.this)
            return [(_converted(binder, bound, kind, item), item) for bound, item in inner]
        case exp.Literal(args={"is_string": True}):
            text = str(array.this).strip()
            if _PLAIN_ARRAY.fullmatch(text):
                items = text[1:-1].split(",") if text[1:-1].strip() else []
                return [(Untyped(item.strip()), array) for item in items]
        case _:
            pass  # refused below
    raise refuse(node, "ANY and ALL are accepted over constant arrays", _ARRAYS)


def _converted(binder: Binder, bound: Bound, kind: SqlType, node: exp.Expression) -> Bound:
    match bound:
        case Untyped(text):
            return coerce_text(text, kind, node)
        case Literal():
            return binder.convert(node, bound, kind)
        case _:
            return bound


def _logic(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    return binder.call(node, node.key.lower(), binder.condition(node.this), binder.condition(node.expression))


def _not(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this")
    return binder.negated(node, binder.condition(node.this), True)


def _is(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression", "negate")
    negate = bool(node.args.get("negate"))
    if isinstance(node.expression, exp.Null):
        return binder.negated(node, binder.call(node, "is null", binder.scalar(node.this)), negate)
    if isinstance(node.expression, exp.Boolean):
        wanted = Literal(bool(node.expression.this), SqlType.BOOL)
        different = binder.call(node, "is distinct from", binder.condition(node.this), wanted)
        return binder.negated(node, different, not negate)
    raise refuse(node, "IS is accepted with NULL, TRUE and FALSE")


def _distinct_from(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    left, right = binder.together(node, node.this, node.expression)
    different = binder.call(node, "is distinct from", left, right)
    return binder.negated(node, different, isinstance(node, exp.NullSafeEQ))


def _between(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "low", "high")
    found, lowest, highest = ((binder.bind(p), p) for p in (node.this, node.args["low"], node.args["high"]))
    value, low = binder.united(node, (found, lowest))
    again, high = binder.united(node, (found, highest))
    return conjunction((binder.call(node, ">=", value, low), binder.call(node, "<=", again, high)))


def _rows_equal(binder: Binder, node: exp.Expression, left: exp.Expression, right: exp.Expression) -> Scalar:
    """(a, b) = (1, 2), which is a = 1 AND b = 2, also where one of them is NULL."""
    if not isinstance(right, exp.Tuple) or len(left.expressions) != len(right.expressions):
        raise refuse(node, "a row is compared with a row of as many values")
    pairs = (binder.together(node, a, b) for a, b in zip(left.expressions, right.expressions, strict=True))
    return conjunction(tuple(binder.call(node, "=", a, b) for a, b in pairs))


def _in(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expressions")
    if isinstance(node.this, exp.Tuple):
        if not 0 < len(node.expressions) <= _MOST_ROWS:
            raise refuse(node, f"IN takes 1 to {_MOST_ROWS} rows of constants")
        rows = (_rows_equal(binder, node, node.this, row) for row in node.expressions)
        return reduce(lambda a, b: binder.call(node, "or", a, b), rows)
    listed = node.expressions
    if len(listed) == 1 and isinstance(listed[0], exp.Values):
        only(listed[0], "expressions")
        listed = [_alone(row) for row in listed[0].expressions]
    argument, *items = ((binder.bind(part), part) for part in (node.this, *listed))
    return _member(binder, node, argument, items)


def _alone(row: exp.Expression) -> exp.Expression:
    """The one value of a row of VALUES."""
    if not isinstance(row, exp.Tuple) or len(row.expressions) != 1:
        raise refuse(row, "IN takes rows of one value", "Write x IN (1, 2, 3).")
    found = row.expressions[0]
    assert isinstance(found, exp.Expression)
    return found


def _member(binder: Binder, node: exp.Expression, argument: Part, items: Parts) -> Scalar:
    if not items or len(items) > _MOST_ITEMS:
        raise refuse(node, f"IN takes 1 to {_MOST_ITEMS} constants")
    bound = binder.united(node, (argument, *items))
    if isinstance(bound[0], (Literal, Null)):
        raise refuse(node, "IN needs an expression on its left")
    constants = tuple(b for b in bound[1:] if isinstance(b, Literal))
    if len(constants) < len(items):
        raise refuse(node, "IN takes constants that are not NULL", "Write x IN (1, 2, 3).")
    return Member(bound[0], constants)


def _like(binder: Binder, node: exp.Expression) -> Scalar:
    return _matches(binder, node, "\\")


def _escape(binder: Binder, node: exp.Expression) -> Scalar:
    """LIKE ... ESCAPE 'c'."""
    only(node, "this", "expression")
    escape = binder.scalar(node.expression)
    if (
        not isinstance(node.this, (exp.Like, exp.ILike))
        or not isinstance(escape, Literal)
        or len(str(escape.value)) > 1
    ):
        raise refuse(node, "ESCAPE takes one constant character, or none, after LIKE")
    return _matches(binder, node.this, str(escape.value))


def _matches(binder: Binder, node: exp.Expression, escape: str) -> Scalar:
    only(node, "this", "expression", "negate")
    value, pattern = binder.scalar(node.this), binder.scalar(node.expression)
    if not isinstance(pattern, Literal):
        raise refuse(node, "LIKE needs a constant pattern")
    text = _with_backslashes(str(pattern.value), escape)
    if (len(text) - len(text.rstrip("\\"))) % 2:
        raise refuse(node, "a LIKE pattern must not end with the escape character")
    name = "like" if isinstance(node, exp.Like) else "ilike"
    return binder.negated(
        node, binder.call(node, name, value, Literal(text, pattern.type)), bool(node.args.get("negate"))
    )


def _with_backslashes(pattern: str, escape: str) -> str:
    """The same pattern with a backslash as the escape character."""
    if escape == "\\":
        return pattern
    parts, rest = [], iter(pattern)
    for character in rest:
        is_escape = character == escape
        parts.append(f"\\{next(rest, '')}" if is_escape else "\\\\" if character == "\\" else character)
    return "".join(parts)


def _regular(binder: Binder, node: exp.Expression) -> Scalar:
    """x ~ pattern, x ~* pattern, x SIMILAR TO pattern."""
    only(node, "this", "expression", "negate")
    value = binder.scalar(node.this)
    text = _pattern(binder, node, construct(node))
    try:
        if isinstance(node, exp.SimilarTo):
            text = of_similar(text)
        check_regular(text)
    except ValueError as error:
        raise refuse(node, f"this pattern is not supported over private rows: {error}", _REGULAR) from error
    name = "matches, any case" if isinstance(node, exp.RegexpILike) else "matches"
    found = binder.call(node, name, value, Literal(text, SqlType.TEXT))
    return binder.negated(node, found, bool(node.args.get("negate")))


def _pattern(binder: Binder, node: exp.Expression, what: str) -> str:
    pattern = binder.scalar(node.expression)
    if not isinstance(pattern, Literal):
        raise refuse(node, f"{what} needs a constant pattern")
    return str(pattern.value)


RULES: Mapping[type, Rule] = MappingProxyType({
    **dict.fromkeys(_COMPARISONS, _compare),
    exp.And: _logic, exp.Or: _logic, exp.Not: _not, exp.Is: _is,
    exp.NullSafeEQ: _distinct_from, exp.NullSafeNEQ: _distinct_from,
    exp.Between: _between, exp.In: _in, exp.Like: _like, exp.ILike: _like, exp.Escape: _escape,
    exp.RegexpLike: _regular, exp.RegexpILike: _regular, exp.SimilarTo: _regular,
})  # fmt: skip
