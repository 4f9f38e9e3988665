"""What do functions mean that the parser does not know by name?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.nodes import Case, Literal, Scalar
from proxy.sql.binding.binder import Binder, Rule, unknown
from proxy.sql.binding.texts.lists import counted
from proxy.sql.binding.times.ages import age
from proxy.sql.binding.times.made import made_timestamp
from proxy.sql.binding.times.zones import at_zone
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

CallBinder = Callable[[Binder, exp.Expression, Sequence[exp.Expression]], Scalar]


def _call(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expressions")
    named = _NAMED.get(str(node.this).lower())
    if named is None:
        raise unknown(node, binder.source)
    return named(binder, node, node.expressions)


def arguments(binder: Binder, node: exp.Expression, parts: Sequence[exp.Expression], count: int) -> list[Scalar]:
    """So many bound arguments. Raises Unsupported."""
    if len(parts) != count:
        raise refuse(node, f"{str(node.this).lower()} takes {count} argument{'s' * (count > 1)} here")
    return [binder.scalar(part) for part in parts]


def _octet_length(binder: Binder, node: exp.Expression, parts: Sequence[exp.Expression]) -> Scalar:
    return binder.call(node, "octet_length", *arguments(binder, node, parts, 1))


def _cardinality(binder: Binder, node: exp.Expression, parts: Sequence[exp.Expression]) -> Scalar:
    if len(parts) != 1:
        raise refuse(node, "cardinality takes one argument here")
    return counted(binder, node, parts[0], None)


def _is_finite(binder: Binder, node: exp.Expression, parts: Sequence[exp.Expression]) -> Scalar:
    return binder.call(node, "isfinite", *arguments(binder, node, parts, 1))


def _now(binder: Binder, node: exp.Expression, parts: Sequence[exp.Expression]) -> Scalar:
    """transaction_timestamp() and statement_timestamp(), which are now() for a statement of its own."""
    if parts:
        raise refuse(node, f"{str(node.this).lower()} takes no argument")
    return Literal(binder.constants.now(), SqlType.TIMESTAMPTZ)


def _counted(binder: Binder, node: exp.Expression, parts: Sequence[exp.Expression]) -> Scalar:
    """num_nulls(x, y, ...) and num_nonnulls(x, y, ...)."""
    if not parts:
        raise refuse(node, "an argument is missing")
    one, none = Literal(1, SqlType.INT4), Literal(0, SqlType.INT4)
    if str(node.this).lower() == "num_nonnulls":
        one, none = none, one
    tests = (binder.call(node, "is null", binder.scalar(part)) for part in parts)
    found: list[Scalar] = [Case(((test, one),), none, SqlType.INT4) for test in tests]
    return reduce(lambda a, b: binder.call(node, "integer +", a, b), found)


def _make_date(binder: Binder, node: exp.Expression, parts: Sequence[exp.Expression]) -> Scalar:
    return binder.call(node, "make_date", *arguments(binder, node, parts, 3))


def _timezone(binder: Binder, node: exp.Expression, parts: Sequence[exp.Expression]) -> Scalar:
    """timezone(zone, x), which is x AT TIME ZONE zone."""
    if len(parts) != 2:
        raise refuse(node, "timezone takes a zone and a time here")
    return at_zone(binder, node, parts[1], parts[0])


def _make_instant(binder: Binder, node: exp.Expression, parts: Sequence[exp.Expression]) -> Scalar:
    return binder.convert(node, made_timestamp(binder, node, parts), SqlType.TIMESTAMPTZ)


_NAMED: Mapping[str, CallBinder] = MappingProxyType({
    "octet_length": _octet_length, "num_nulls": _counted, "num_nonnulls": _counted,
    "make_date": _make_date, "timezone": _timezone, "age": age,
    "make_timestamptz": _make_instant, "cardinality": _cardinality, "isfinite": _is_finite,
    "transaction_timestamp": _now, "statement_timestamp": _now,
})  # fmt: skip
RULES: Mapping[type, Rule] = MappingProxyType({exp.Anonymous: _call})
