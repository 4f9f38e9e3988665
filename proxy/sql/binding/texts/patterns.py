"""What do functions mean that take a part of a text by a pattern?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.nodes import Case, Literal, Null, Scalar
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.conditions.patterns import Found, check_extent, check_regular, of_split
from proxy.sql.functions.texts import LONGEST_JOINED
from proxy.sql.syntax.parse import unwrapped
from proxy.sql.syntax.refusal import only, refuse
from proxy.sql.syntax.words import construct
from proxy.sqltypes import SqlType

_MOST_FIELDS = 100
LONGEST_PART = 100
_LEFT_OUT = {"position": "1", "occurrence": "1", "option": "0"}
_WHOLE_TEXT = "Write regexp_count(x, 'pattern'), regexp_instr(x, 'pattern') or regexp_substr(x, 'pattern')."
_HINT = (
    "Accepted: characters, . [a-z] * + ? {2,3} ^ $ and one group, where each repetition has a clear end. "
    "Write [A-Za-z0-9] for [[:alnum:]] and [ ] for \\s."
)


def _text(value: str) -> Literal:
    return Literal(value, SqlType.TEXT)


def constant_of(binder: Binder, node: exp.Expression, part: exp.Expression | None, what: str) -> str:
    """A constant text. Raises Unsupported."""
    value = None if part is None else binder.scalar(part)
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise refuse(node, f"{what} must be a constant text here", "Write it in quotes, as in split_part(x, ',', 1).")
    return value.value


def _pattern(binder: Binder, node: exp.Expression, part: exp.Expression | None) -> tuple[str, Found]:
    pattern = constant_of(binder, node, part, "the pattern")
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
    _check_whole(node, "position", "occurrence")
    return first_match(binder, node, node.expression, whole=True)


def element_of_match(binder: Binder, node: exp.Expression, accepted: str) -> Scalar:
    """(regexp_match(x, pattern))[1]."""
    call = unwrapped(node.this)
    is_match = isinstance(call, exp.Anonymous) and str(call.this).lower() == "regexp_match"
    if not is_match or len(call.expressions) != 2 or [str(e) for e in node.expressions] != ["0"]:
        raise refuse(node, f"an array element is accepted as {accepted} only",
                     "For one of several constants write CASE x WHEN 1 THEN 'a' WHEN 2 THEN 'b' END.")  # fmt: skip
    return first_match(binder, exp.RegexpSubstr(this=call.expressions[0]), call.expressions[1])


def _check_whole(node: exp.Expression, *names: str) -> None:
    """names: parts that may be as if left out. Raises Unsupported."""
    only(node, "this", "expression", *names)
    for name in names:
        written = node.args.get(name)
        if written is not None and str(written) != _LEFT_OUT[name]:
            raise refuse(node, f"{construct(node)} looks for the first match from the start on here", _WHOLE_TEXT)


def _searched(binder: Binder, node: exp.Expression, *names: str) -> Scalar:
    """The text of regexp_count and regexp_instr, as far as it is read."""
    _check_whole(node, *names)
    bounds = Literal(1, SqlType.INT4), Literal(LONGEST_JOINED, SqlType.INT4)
    return binder.call(node, "substring", binder.scalar(node.this), *bounds)


def _count(binder: Binder, node: exp.Expression) -> Scalar:
    """regexp_count(x, pattern): by how much a text grows if a letter is put after every match."""
    value, (pattern, found) = _searched(binder, node, "position"), _pattern(binder, node, node.expression)
    if found.may_be_empty:
        raise refuse(node, "a pattern that matches nothing is not counted here", "Write + for *.")
    grown = binder.call(node, "replaced matches", value, _text(pattern), _text("\\0#"))
    return binder.call(node, "integer -", binder.call(node, "length", grown), binder.call(node, "length", value))


def _place(binder: Binder, node: exp.Expression) -> Scalar:
    """regexp_instr(x, pattern): one more than what is left if all is cut from the first match on; 0 without one."""
    value = _searched(binder, node, "position", "occurrence", "option")
    pattern = constant_of(binder, node, node.expression, "the pattern")
    try:
        check_regular(pattern)
    except ValueError as error:
        raise refuse(node, f"this pattern is not supported over private rows: {error}", _HINT) from error
    matches = binder.call(node, "matches", value, _text(pattern))
    rest = binder.call(node, "replaced match", value, _text(f"(?:{pattern}).*"), _text(""))
    place = binder.call(node, "integer +", binder.call(node, "length", rest), Literal(1, SqlType.INT4))
    branches = ((matches, place), (binder.call(node, "not", matches), Literal(0, SqlType.INT4)))
    return Case(branches, Null(SqlType.INT4), SqlType.INT4)


def _replaced(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression", "replacement", "modifiers", "single_replace")
    pattern, found = _pattern(binder, node, node.expression)
    new = constant_of(binder, node, node.args.get("replacement"), "the replacement")
    options = node.args.get("modifiers")
    flags = "" if options is None else constant_of(binder, node, options, "the flags")
    if flags not in ("", "g"):
        raise refuse(node, "regexp_replace takes the flag g only", "Write both cases in brackets: [aA].")
    if found.may_be_empty:
        raise refuse(node, "a pattern that matches nothing is not replaced here", "Write + for *.")
    name = "replaced matches" if flags else "replaced match"
    return binder.call(node, name, binder.scalar(node.this), _text(pattern), _text(_references(node, new, found)))


def _references(node: exp.Expression, new: str, found: Found) -> str:
    """The replacement in the engine's words. \\1 is the group, \\& the match."""
    rest = new.replace("\\&", "").replace("\\1", "")
    if "\\" in rest or len(new) > LONGEST_PART or ("\\1" in new and not found.groups):
        what = f"a replacement has at most {LONGEST_PART} characters, \\1 for the group and \\& for the match"
        raise refuse(node, what, "Write regexp_replace(x, '^(.*)@', '\\1').")
    return new.replace("\\&", "\\0")


def field(binder: Binder, node: exp.Expression, value: Scalar, delimiter: str, index: int) -> Scalar:
    """A part of a text, counted from 1, or from the end below zero; empty where there are fewer."""
    if not 0 < abs(index) <= _MOST_FIELDS or not 0 < len(delimiter) <= LONGEST_PART:
        what = f"{construct(node)} takes a constant delimiter and a constant field from 1 to {_MOST_FIELDS}"
        raise refuse(node, what, "Write split_part(x, ',', 1).")
    try:
        pattern = of_split(delimiter, index)
    except ValueError as error:
        raise refuse(node, str(error)) from error
    return binder.call(node, "field", value, _text(pattern), _text(delimiter), Literal(index, SqlType.INT4))


def _split_part(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "delimiter", "part_index")
    delimiter = constant_of(binder, node, node.args.get("delimiter"), "the delimiter")
    number = binder.scalar(node.args["part_index"])
    index = number.value if isinstance(number, Literal) and number.type.is_integer else 0
    return field(binder, node, binder.scalar(node.this), delimiter, index if isinstance(index, int) else 0)


RULES: Mapping[type, Rule] = MappingProxyType({
    exp.RegexpReplace: _replaced, exp.RegexpSubstr: _substr, exp.SplitPart: _split_part,
    exp.RegexpCount: _count, exp.RegexpInstr: _place,
})  # fmt: skip
