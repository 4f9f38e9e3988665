"""Which values does a CHECK constraint leave to a column?

Reads conjunctions of comparisons with constants, BETWEEN, IN and = ANY (ARRAY[...]), as databases print them. What is
written otherwise says nothing. Nothing is computed: the constants keep their text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from proxy.sql.algebra.comparisons import MIRRORED

DOMAIN_VALUE = "value"  # how the constraint of a type calls what it is about

_MOST_CHARACTERS = 20_000
_COMPARED: Mapping[type[exp.Expression], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.EQ: "="}


@dataclass(frozen=True, slots=True)
class Said:
    """The lowest and highest value as they are written, "" where nothing is said, or all values.

    is_low_out, is_high_out: the end itself is not allowed.
    """

    low: str = ""
    high: str = ""
    values: tuple[str, ...] = ()
    is_low_out: bool = False
    is_high_out: bool = False

    def and_also(self, other: Said) -> Said:
        """Both, the later one where they speak of the same end: it is for people to look at."""
        result = self
        if other.low:
            result = replace(result, low=other.low, is_low_out=other.is_low_out)
        if other.high:
            result = replace(result, high=other.high, is_high_out=other.is_high_out)
        return replace(result, values=other.values) if other.values else result


def said(check: str) -> Mapping[str, Said]:
    """What a constraint's condition says, by the columns' names; columns it does not speak of plainly are missing."""
    if len(check) > _MOST_CHARACTERS:
        return {}
    try:
        tree = sqlglot.parse_one(f"SELECT 1 WHERE {check}", dialect="postgres")
    except (SqlglotError, RecursionError):
        return {}
    where = tree.args.get("where")
    found: dict[str, Said] = {}
    for name, one in _facts(where.this) if isinstance(where, exp.Where) else ():
        found[name] = found.get(name, Said()).and_also(one)
    return found


def _facts(condition: exp.Expression) -> Iterator[tuple[str, Said]]:
    condition = _bare(condition)
    match condition:
        case exp.And(this=left, expression=right):
            yield from _facts(left)
            yield from _facts(right)
        case exp.Between():
            low, high = _constant(condition.args["low"]), _constant(condition.args["high"])
            if low and high:
                yield from _about(condition.this, Said(low, high))
        case exp.In(this=subject):
            yield from _listed(subject, condition.expressions)
        case exp.EQ(this=subject, expression=exp.Any(this=array)):
            array = _bare(array)
            yield from _listed(subject, array.expressions if isinstance(array, exp.Array) else [])
        case exp.GT() | exp.GTE() | exp.LT() | exp.LTE() | exp.EQ():
            yield from _compared(condition, _COMPARED[type(condition)])
        case _:
            return


def _compared(condition: exp.Expression, operator: str) -> Iterator[tuple[str, Said]]:
    subject, constant = condition.this, _constant(condition.expression)
    if not constant:
        subject, constant, operator = condition.expression, _constant(condition.this), MIRRORED[operator]
    if not constant:
        return
    match operator:
        case "=":
            yield from _about(subject, Said(values=(constant,)))
        case ">" | ">=":
            yield from _about(subject, Said(low=constant, is_low_out=operator == ">"))
        case _:
            yield from _about(subject, Said(high=constant, is_high_out=operator == "<"))


def _listed(subject: exp.Expression, items: list[exp.Expression]) -> Iterator[tuple[str, Said]]:
    values = tuple(_constant(item) for item in items)
    if values and all(values):
        yield from _about(subject, Said(values=values))


def _about(subject: exp.Expression, one: Said) -> Iterator[tuple[str, Said]]:
    column = _bare(subject)
    if isinstance(column, exp.Column) and isinstance(column.this, exp.Identifier):
        yield column.name, one


def _constant(node: exp.Expression) -> str:
    """The text of a constant; "" for anything else, an empty text too."""
    node = _bare(node)
    if isinstance(node, exp.Neg):
        inner = _bare(node.this)
        return f"-{inner.this}" if isinstance(inner, exp.Literal) and not inner.is_string else ""
    return str(node.this) if isinstance(node, exp.Literal) else ""


def _bare(node: exp.Expression) -> exp.Expression:
    """Without brackets and casts."""
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return node
