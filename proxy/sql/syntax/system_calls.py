"""Which functions of the schema `hush` stand in a FROM clause, and with which argument?

Such a call is answered by the proxy like a relation of that schema. Its argument is a constant of the statement: a
string, or a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from proxy.sql.syntax.locate import TextSpan
from proxy.sql.syntax.names import fold, identifier
from proxy.sql.syntax.refusal import refuse

CALLS = frozenset(("estimate",))


@dataclass(frozen=True, slots=True)
class ParameterNumber:
    """An argument that is bound to the statement, counted from 1."""

    number: int


CallArgument = str | ParameterNumber


@dataclass(frozen=True, slots=True)
class SystemCall:
    """`hush.<name>(argument)` in a FROM clause."""

    name: str
    argument: CallArgument
    span: TextSpan


def system_call(node: exp.Table, tokens: Sequence[Token]) -> SystemCall | None:
    """The call that a table reference is; None: it is something else. Raises Unsupported."""
    function, schema = node.this, node.args.get("db")
    if not isinstance(function, exp.Anonymous) or not isinstance(schema, exp.Identifier):
        return None
    name, start = fold(str(function.this)), schema.meta["start"]
    if identifier(schema) != "hush" or name not in CALLS:
        return None
    end = _closing(tokens, start)
    if len(function.expressions) != 1:
        raise refuse(node, f"hush.{name} takes one text", _hint(name))
    return SystemCall(name, _argument(function.expressions[0], name), TextSpan(start, end))


def _argument(node: exp.Expression, name: str) -> CallArgument:
    match node:
        case exp.Literal(args={"is_string": True}):
            return str(node.this)
        case exp.Parameter(this=exp.Literal() as number) if str(number.this).isdigit():
            return ParameterNumber(int(str(number.this)))
        case exp.Cast() | exp.Paren():
            return _argument(node.this, name)
        case _:
            raise refuse(node, f"hush.{name} takes a constant text or a parameter", _hint(name))


def _hint(name: str) -> str:
    return f"Write SELECT * FROM hush.{name}($$SELECT count(*) FROM ...; SELECT ...$$)."


def _closing(tokens: Sequence[Token], start: int) -> int:
    """Where the parentheses end that open behind the name which starts there."""
    depth = 0
    for token in (t for t in tokens if t.start >= start):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type is TokenType.R_PAREN and depth == 0:
            return token.end + 1
    raise AssertionError("a call was parsed, so its parentheses end")
