"""What do comparisons, IN, LIKE, NULL tests and their combinations mean?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.constants import Untyped
from proxy.sql.algebra.nodes import TRUE, Call, Literal, Member, Null, Scalar, conjunction
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.binding.binder import unknown as unknown_node
from proxy.sql.binding.bits import check_bracketed
from proxy.sql.binding.quantified import (
    Quantified,
    QuantifiedPart,
    QuantifiedParts,
    combined,
    elements,
    few,
    quantified_of,
    unnested,
)
from proxy.sql.binding.rows import compare_rows, different_rows, row_of
from proxy.sql.binding.subqueries import one_row
from proxy.sql.binding.times.durations import Side, compared, side
from proxy.sql.binding.times.intervals import bind_interval
from proxy.sql.binding.times.spans import length_of
from proxy.sql.binding.values import constants_of
from proxy.sql.conditions.patterns import check_regular, of_similar
from proxy.sql.syntax.long_lists import list_of, written_out
from proxy.sql.syntax.parse import unwrapped
from proxy.sql.syntax.refusal import only, refuse
from proxy.sql.syntax.words import construct
from proxy.sqltypes import SqlType

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_MOST_ITEMS = 100_000
_MOST_ROWS = 100
_REGULAR = (
    "Accepted: characters, . [a-z] ( ) | * + ? {2,3} ^ $ and \\d, at most 200 characters. "
    "Write [A-Za-z0-9_] for \\w, [0-9] for [[:digit:]], (a|b) for (?:a|b) and ~* for (?i)."
)


def _compare(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    operator, row, quantified = _COMPARISONS[type(node)], row_of(node.this), quantified_of(node.expression)
    if row is not None:
        return compare_rows(binder, node, operator, row, row_of(node.expression))
    if quantified is not None:
        return _quantified(binder, node, operator, quantified)
    return compared(binder, node, operator, side(binder, node.this), side(binder, node.expression))


def _quantified(binder: Binder, node: exp.Expression, operator: str, found: Quantified) -> Scalar:
    """x = ANY(array), x >= ALL(array) and so on, the array being constant."""
    argument = (binder.bind(node.this), node.this)
    kind = SqlType.TEXT if isinstance(argument[0], Untyped) else argument[0].type
    items = elements(binder, node, found.array, kind)
    if items and (operator, found.every) in (("=", False), ("<>", True)):
        return binder.negated(node, _member(binder, node, argument, items), found.every)
    pairs = (binder.united(node, (argument, item), is_compared=True) for item in few(node, items))
    return combined(binder, node, (binder.call(node, operator, *pair) for pair in pairs), found)


def _logic(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    return binder.call(node, node.key.lower(), binder.condition(node.this), binder.condition(node.expression))


def _not(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this")
    return binder.negated(node, binder.condition(node.this), True)


def _is(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression", "negate")
    negate, row = bool(node.args.get("negate")), row_of(node.this)
    if isinstance(node.expression, exp.Null) and row is not None:
        tests = (binder.call(node, "is null", binder.scalar(value)) for value in row)
        return conjunction(tuple(binder.negated(node, test, negate) for test in tests))
    if isinstance(node.expression, exp.Null):
        return binder.negated(node, _is_null(binder, node), negate)
    if isinstance(node.expression, exp.Boolean):
        wanted = Literal(bool(node.expression.this), SqlType.BOOL)
        different = binder.call(node, "is distinct from", binder.condition(node.this), wanted)
        return binder.negated(node, different, not negate)
    raise refuse(node, "IS is accepted with NULL, TRUE and FALSE")


def _is_null(binder: Binder, node: exp.Expression) -> Scalar:
    """x IS NULL, also of regexp_match(x, pattern), which is so where nothing matches."""
    match unwrapped(node.this):
        case exp.Anonymous(this=str() as name, expressions=[value, pattern]) if name.lower() == "regexp_match":
            found = _regular(binder, exp.RegexpLike(this=value, expression=pattern))
            return binder.call(node, "is distinct from", found, Literal(True, SqlType.BOOL))
        case _:
            of = bind_interval(binder, node.this)
            if isinstance(of, Call) and of.type is SqlType.INTERVAL:
                return binder.call(node, "is null", length_of(of))
            return binder.call(node, "is null", binder.scalar(node.this) if isinstance(of, Untyped) else of)


def _distinct_from(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    rows = row_of(node.this), row_of(node.expression)
    if rows[0] is not None:
        different = different_rows(binder, node, rows[0], rows[1])
    else:
        sides = binder.together(node, node.this, node.expression, is_compared=True)
        different = binder.call(node, "is distinct from", *sides)
    return binder.negated(node, different, isinstance(node, exp.NullSafeEQ))


def _between(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "low", "high", "symmetric")
    found, lowest, highest = (side(binder, p) for p in (node.this, node.args["low"], node.args["high"]))
    if not node.args.get("symmetric"):
        return _inside(binder, node, found, lowest, highest)
    ways = (_inside(binder, node, found, a, b) for a, b in ((lowest, highest), (highest, lowest)))
    return binder.call(node, "or", *ways)


def _inside(binder: Binder, node: exp.Expression, found: Side, lowest: Side, highest: Side) -> Scalar:
    return conjunction((compared(binder, node, ">=", found, lowest), compared(binder, node, "<=", found, highest)))


def _in(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expressions", "query")
    if node.args.get("query") is not None:
        return _member_of_query(binder, node)
    row = row_of(node.this)
    if row is not None:
        if not 0 < len(node.expressions) <= _MOST_ROWS:
            raise refuse(node, f"IN takes 1 to {_MOST_ROWS} rows of constants")
        rows = (compare_rows(binder, node, "=", row, row_of(other)) for other in written_out(node.expressions))
        return reduce(lambda a, b: binder.call(node, "or", a, b), rows)
    listed = node.expressions
    if len(listed) == 1 and isinstance(listed[0], exp.Values):
        only(listed[0], "expressions")
        listed = [_alone(row) for row in listed[0].expressions]
    long = list_of(listed)
    argument = binder.bind(node.this), node.this
    if long is not None:
        return _member(binder, node, argument, [(bound, listed[0]) for bound in constants_of(listed[0], *long)])
    return _member(binder, node, argument, [(binder.bind(part), part) for part in listed])


def _member_of_query(binder: Binder, node: exp.Expression) -> Scalar:
    """x IN (SELECT unnest(ARRAY[1, 2])), and of generate_series(1, 5)."""
    items = unnested(binder, node, node.args["query"])
    if not items:
        return Literal(False, SqlType.BOOL)
    return _member(binder, node, (binder.bind(node.this), node.this), items)


def _alone(row: exp.Expression) -> exp.Expression:
    """The one value of a row of VALUES."""
    if not isinstance(row, exp.Tuple) or len(row.expressions) != 1:
        raise refuse(row, "IN takes rows of one value", "Write x IN (1, 2, 3).")
    found = row.expressions[0]
    assert isinstance(found, exp.Expression)
    return found


def _member(binder: Binder, node: exp.Expression, argument: QuantifiedPart, items: QuantifiedParts) -> Scalar:
    if not items or len(items) > _MOST_ITEMS:
        raise refuse(node, f"IN takes 1 to {_MOST_ITEMS:,} constants", "Put them into a public table and join it.")
    bound = binder.united(node, (argument, *items), is_compared=True)
    constants = tuple(b for b in bound[1:] if isinstance(b, Literal))
    unknown = sum(isinstance(b, Null) for b in bound[1:])
    if len(constants) + unknown < len(items):
        raise refuse(node, "IN takes constants", "Write x IN (1, 2, 3).")
    if not constants or isinstance(bound[0], Null):
        return Null(SqlType.BOOL)
    found = _among(binder, node, bound[0], constants) if isinstance(bound[0], Literal) else Member(bound[0], constants)
    return binder.call(node, "or", found, Null(SqlType.BOOL)) if unknown and found != TRUE else found


def _among(binder: Binder, node: exp.Expression, value: Literal, constants: tuple[Literal, ...]) -> Scalar:
    """Whether one constant is among others; the engine is asked of those that are not told apart here."""
    tests = tuple(dict.fromkeys(binder.call(node, "=", value, constant) for constant in constants))
    left: list[Scalar] = [test for test in tests if not isinstance(test, Literal)]
    if TRUE in tests or not left:
        return Literal(TRUE in tests, SqlType.BOOL)
    if len(left) > _MOST_ROWS:
        raise refuse(node, f"a constant is compared with at most {_MOST_ROWS} others")
    return reduce(lambda a, b: binder.call(node, "or", a, b), left)


def _exists(binder: Binder, node: exp.Expression) -> Scalar:
    """EXISTS (SELECT 1 WHERE condition) of no table, which is whether the condition holds."""
    only(node, "this")
    plain = one_row(node.this)
    if plain is None:
        raise unknown_node(node)
    where = plain.args.get("where")
    if where is None:
        return TRUE
    different = binder.call(node, "is distinct from", binder.condition(where.this), TRUE)
    return binder.negated(node, different, True)


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
    value, quantified, negate = binder.scalar(node.this), quantified_of(node.expression), bool(node.args.get("negate"))
    if quantified is not None:
        patterns = (binder.united(node, (item,))[0] for item in few(node, elements(binder, node, quantified.array)))
        found = (_matches_one(binder, node, value, pattern, escape) for pattern in patterns)
        return combined(binder, node, (binder.negated(node, test, negate) for test in found), quantified)
    test = _matches_one(binder, node, value, binder.scalar(node.expression), escape)
    return binder.negated(node, test, negate)


def _matches_one(binder: Binder, node: exp.Expression, value: Scalar, pattern: Scalar, escape: str) -> Scalar:
    if not isinstance(pattern, Literal):
        raise refuse(node, "LIKE needs a constant pattern")
    text = _with_backslashes(str(pattern.value), escape)
    if (len(text) - len(text.rstrip("\\"))) % 2:
        raise refuse(node, "a LIKE pattern must not end with the escape character")
    name = "like" if isinstance(node, exp.Like) else "ilike"
    return binder.call(node, name, value, Literal(text, pattern.type))


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
    only(node, "this", "expression", "negate", "flag")
    value = binder.scalar(node.this)
    text = _pattern(binder, node, construct(node))
    try:
        if isinstance(node, exp.SimilarTo):
            text = of_similar(text)
        check_regular(text)
    except ValueError as error:
        raise refuse(node, f"this pattern is not supported over private rows: {error}", _REGULAR) from error
    name = "matches, any case" if isinstance(node, exp.RegexpILike) or _ignores_case(binder, node) else "matches"
    found = binder.call(node, name, value, Literal(text, SqlType.TEXT))
    return binder.negated(node, found, bool(node.args.get("negate")))


def _ignores_case(binder: Binder, node: exp.Expression) -> bool:
    """By the flags of regexp_like(x, pattern, 'i')."""
    flags = node.args.get("flag")
    value = None if flags is None else binder.scalar(flags)
    if value is not None and (not isinstance(value, Literal) or value.value not in ("", "c", "i")):
        raise refuse(node, "regexp_like takes the flags 'i' and 'c' only", "Write regexp_like(x, 'pattern', 'i').")
    return isinstance(value, Literal) and value.value == "i"


def _pattern(binder: Binder, node: exp.Expression, what: str) -> str:
    check_bracketed(node)
    pattern = binder.scalar(node.expression)
    if not isinstance(pattern, Literal):
        raise refuse(node, f"{what} needs a constant pattern")
    return str(pattern.value)


RULES: Mapping[type, Rule] = MappingProxyType({
    **dict.fromkeys(_COMPARISONS, _compare),
    exp.And: _logic, exp.Or: _logic, exp.Not: _not, exp.Is: _is,
    exp.NullSafeEQ: _distinct_from, exp.NullSafeNEQ: _distinct_from,
    exp.Between: _between, exp.In: _in, exp.Like: _like, exp.ILike: _like, exp.Escape: _escape,
    exp.Exists: _exists, exp.RegexpLike: _regular, exp.RegexpILike: _regular, exp.SimilarTo: _regular,
})  # fmt: skip
