"""What do functions mean that take a part of a text by a pattern?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra import Case, Literal, Null, Scalar
from proxy.sql.binder import Binder, Rule
from proxy.sql.patterns import Found, check_extent, of_split
from proxy.sql.refusal import only, refuse
from proxy.sqltypes import SqlType

_MOST_FIELDS = 100
_LONGEST = 100
_HINT = "Accepted: characters, . [a-z] * + ? {2,3} ^ $ and one group, where each repetition has a clear end."


def _text(value: str) -> Literal:
    return Literal(value, SqlType.TEXT)


def _constant(binder: Binder, node: exp.Expression, part: exp.Expression | None, what: str) -> str:
    value = None if part is None else binder.scalar(part)
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise refuse(node, f"{what} must be a constant text here")
    return value.value


def _pattern(binder: Binder, node: exp.Expression, part: exp.Expression | None) -> tuple[str, Found]:
    pattern = _constant(binder, node, part, "the pattern")
    try:
        return pattern, check_extent(pattern)
    except ValueError as error:
        raise refuse(node, f"this pattern is not supported over private rows: {error}", _HINT) from error


def first_match(binder: Binder, node: exp.Expression, part: exp.Expression, *, whole: bool = False) -> Scalar:
    """What the pattern, or its group, matches first; NULL where it matches nothing."""
    value, (pattern, found) = binder.scalar(node.this), _pattern(binder, node, part)
    group = Literal(0 if whole else found.groups, SqlType.INT4)
    taken = binder.call(node, "extracted", value, _text(pattern), group)
    return Case(((binder.call(node, "matches", value, _text(pattern)), taken),), Null(SqlType.TEXT), SqlType.TEXT)


def _substr(binder: Binder, node: exp.Expression) -> Scalar:
    """regexp_substr(x, pattern): the whole match."""
    only(node, "this", "expression")
    return first_match(binder, node, node.expression, whole=True)


def _element(binder: Binder, node: exp.Expression) -> Scalar:
    """(regexp_match(x, pattern))[1]."""
    only(node, "this", "expressions")
    call = node.this
    while isinstance(call, exp.Paren):
        call = call.this
    is_match = isinstance(call, exp.Anonymous) and str(call.this).lower() == "regexp_match"
    if not is_match or len(call.expressions) != 2 or [str(e) for e in node.expressions] != ["0"]:
        raise refuse(node, "an array element is accepted as (regexp_match(x, 'pattern'))[1] only")
    return first_match(binder, exp.RegexpSubstr(this=call.expressions[0]), call.expressions[1])


def _replaced(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression", "replacement", "modifiers", "single_replace")
    pattern, found = _pattern(binder, node, node.expression)
    new = _constant(binder, node, node.args.get("replacement"), "the replacement")
    options = node.args.get("modifiers")
    flags = "" if options is None else _constant(binder, node, options, "the flags")
    if flags not in ("", "g"):
        raise refuse(node, "regexp_replace takes the flag g only", "Write both cases in brackets: [aA].")
    if found.may_be_empty:
        raise refuse(node, "a pattern that matches nothing is not replaced here", "Write + for *.")
    name = "replaced matches" if flags else "replaced match"
    return binder.call(node, name, binder.scalar(node.this), _text(pattern), _text(_references(node, new, found)))


def _references(node: exp.Expression, new: str, found: Found) -> str:
    """The replacement in the engine's words. \\1 is the group, \\& the match."""
    rest = new.replace("\\&", "").replace("\\1", "")
    if "\\" in rest or len(new) > _LONGEST or ("\\1" in new and not found.groups):
        raise refuse(node, f"a replacement has at most {_LONGEST} characters, \\1 for the group and \\& for the match")
    return new.replace("\\&", "\\0")


def _split_part(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "delimiter", "part_index")
    delimiter = _constant(binder, node, node.args.get("delimiter"), "the delimiter")
    number = binder.scalar(node.args["part_index"])
    index = number.value if isinstance(number, Literal) and number.type.is_integer else 0
    if not isinstance(index, int) or not 0 < abs(index) <= _MOST_FIELDS or not 0 < len(delimiter) <= _LONGEST:
        raise refuse(node, f"split_part takes a constant delimiter and a constant field from 1 to {_MOST_FIELDS}")
    try:
        pattern = of_split(delimiter, index)
    except ValueError as error:
        raise refuse(node, str(error)) from error
    return binder.call(
        node, "field", binder.scalar(node.this), _text(pattern), _text(delimiter), Literal(index, SqlType.INT4)
    )


RULES: Mapping[type, Rule] = MappingProxyType({
    exp.RegexpReplace: _replaced, exp.RegexpSubstr: _substr, exp.Bracket: _element, exp.SplitPart: _split_part,
})  # fmt: skip
