"""What do functions of texts mean?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.nodes import Case, Literal, Null, Scalar
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.binding.bits import check_bracketed
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

FARTHEST = 2**31 - 1  # no text has a place as far
_MOST_FILL = 100
_INITCAP = re.compile(r"\binitcap\s*\([^()]*,", re.IGNORECASE)
_FUNCTIONS: dict[type[exp.Expression], str] = {
    exp.Lower: "lower", exp.Upper: "upper", exp.Length: "length", exp.Reverse: "reverse", exp.Ascii: "ascii",
}  # fmt: skip


def _function(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this")
    return binder.call(node, _FUNCTIONS[type(node)], binder.scalar(node.this))


def part_of(binder: Binder, node: exp.Expression, value: Scalar, first: int, end: int) -> Scalar:
    """The characters from `first` to before `end`, counted from 1."""
    start, length = Literal(first, SqlType.INT4), Literal(max(end - first, 0), SqlType.INT4)
    return binder.call(node, "substring", value, start, length)


def constant_integer(binder: Binder, node: exp.Expression) -> int:
    """A whole constant. Raises Unsupported."""
    if isinstance(node, exp.Length) and isinstance(node.this, exp.Literal) and node.this.args.get("is_string"):
        return len(str(node.this.this))  # Tableau's ENDSWITH: right(x, length('abc')) = 'abc'
    value = binder.scalar(node)
    if not isinstance(value, Literal) or not isinstance(value.value, int) or abs(value.value) > FARTHEST:
        raise refuse(node, "an integer constant is needed here", "Write the number itself, as in left(x, 3).")
    return value.value


def constant_text(binder: Binder, node: exp.Expression, part: exp.Expression, what: str) -> Literal:
    value = binder.scalar(part)
    if not isinstance(value, Literal) or not isinstance(value.value, str) or not value.type.is_text:
        raise refuse(node, f"{what} must be a constant text here", "Write it in quotes, as in position('a' IN x).")
    return Literal(value.value, SqlType.TEXT)


def _position(binder: Binder, node: exp.Expression) -> Scalar:
    """position(part IN text), strpos(text, part)."""
    only(node, "this", "substr")
    wanted = constant_text(binder, node, node.args["substr"], "what is looked for")
    return binder.call(node, "position", binder.scalar(node.this), wanted)


def _starts_with(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    check_bracketed(node)
    wanted = constant_text(binder, node, node.expression, "the start")
    return binder.call(node, "starts with", binder.scalar(node.this), wanted)


def _replace(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression", "replacement")
    if node.args.get("replacement") is None:
        raise refuse(node, "replace takes three texts", "Write replace(x, 'old', 'new').")
    old = constant_text(binder, node, node.expression, "what is replaced")
    new = constant_text(binder, node, node.args["replacement"], "the replacement")
    if len(str(new.value)) > _MOST_FILL:
        raise refuse(node, f"a replacement has at most {_MOST_FILL} characters here")
    return binder.call(node, "replace", binder.scalar(node.this), old, new)


def _pad(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression", "fill_pattern", "is_left")
    count, fill = constant_integer(binder, node.expression), Literal(" ", SqlType.TEXT)
    if node.args.get("fill_pattern") is not None:
        fill = constant_text(binder, node, node.args["fill_pattern"], "the fill")
    if not 0 <= count <= _MOST_FILL or not fill.value:
        raise refuse(node, f"padding is accepted to 0 to {_MOST_FILL} characters, with a fill")
    name = "lpad" if node.args.get("is_left") else "rpad"
    return binder.call(node, name, binder.scalar(node.this), Literal(count, SqlType.INT4), fill)


def _initcap(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    if node.args.get("expression") is not None and _INITCAP.search(binder.source) is not None:
        raise refuse(node, "initcap takes one text")
    return binder.call(node, "initcap", binder.scalar(node.this))


def _translate(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "from_", "to")
    old = constant_text(binder, node, node.args["from_"], "what is replaced")
    new = constant_text(binder, node, node.args["to"], "the replacement")
    if len(set(str(old.value))) < len(str(old.value)):
        raise refuse(node, "translate takes each character once")
    return binder.call(node, "translate", binder.scalar(node.this), old, new)


def _concat_function(binder: Binder, node: exp.Expression) -> Scalar:
    """concat(x, y, ...): NULL counts as empty."""
    only(node, "expressions", "safe", "coalesce")
    empty = Literal("", SqlType.TEXT)
    bound = (shown(binder, node, binder.scalar(part)) for part in node.expressions)
    parts = [b if isinstance(b, Literal) else binder.call(node, "coalesce", b, empty) for b in bound]
    return joined(binder, node, parts)


def joined(binder: Binder, node: exp.Expression, parts: Sequence[Scalar]) -> Scalar:
    """Texts, one after the other."""
    return reduce(lambda a, b: binder.call(node, "||", a, b), parts)


def _concat_ws(binder: Binder, node: exp.Expression) -> Scalar:
    """concat_ws(',', x, y, ...): the parts that are not NULL, with a constant between each two."""
    only(node, "expressions", "safe", "coalesce")
    if len(node.expressions) < 2:
        raise refuse(node, "concat_ws takes a separator and values")
    separator = constant_text(binder, node, node.expressions[0], "the separator")
    parts = [shown(binder, node, binder.scalar(part)) for part in node.expressions[1:]]
    joined: Scalar = (empty := Literal("", SqlType.TEXT))
    for part in parts:
        if not isinstance(part, Null):
            marked = binder.call(node, "coalesce", binder.call(node, "||", separator, part), empty)
            joined = binder.call(node, "||", joined, marked)
    first = Literal(len(str(separator.value)) + 1, SqlType.INT4)
    return binder.call(node, "substring from", joined, first)


def as_text(binder: Binder, node: exp.Expression, value: Scalar) -> Scalar:
    """A value that is joined to texts, as PostgreSQL writes it out."""
    if isinstance(value, Null) or (value.type.is_text and value.type is not SqlType.UUID):
        return value
    return binder.convert(node, value, SqlType.TEXT)


def shown(binder: Binder, node: exp.Expression, value: Scalar) -> Scalar:
    """A value as concat shows it: booleans are t and f there, and true and false beside ||."""
    if value.type is not SqlType.BOOL or isinstance(value, Null):
        return as_text(binder, node, value)
    yes, no = Literal("t", SqlType.TEXT), Literal("f", SqlType.TEXT)
    if isinstance(value, Literal):
        return yes if value.value else no
    return Case(((value, yes), (binder.call(node, "not", value), no)), Null(SqlType.TEXT), SqlType.TEXT)


def _trim(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression", "position")
    characters = node.args.get("expression")
    what = Literal(" ", SqlType.TEXT) if characters is None else binder.scalar(characters)
    if not isinstance(what, Literal):
        raise refuse(node, "trim takes constant characters")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
    return binder.call(node, name, binder.scalar(node.this), what)


def _concat(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression", "safe")
    parts = (binder.scalar(node.this), binder.scalar(node.expression))
    if any(p.type.is_text for p in parts):
        parts = (as_text(binder, node, parts[0]), as_text(binder, node, parts[1]))
    return binder.call(node, "||", *parts)


RULES: Mapping[type, Rule] = MappingProxyType({
    **dict.fromkeys(_FUNCTIONS, _function), exp.Trim: _trim,
    exp.DPipe: _concat, exp.StrPosition: _position, exp.StartsWith: _starts_with,
    exp.Replace: _replace, exp.Pad: _pad, exp.Concat: _concat_function, exp.ConcatWs: _concat_ws,
    exp.Initcap: _initcap, exp.Translate: _translate,
})  # fmt: skip
