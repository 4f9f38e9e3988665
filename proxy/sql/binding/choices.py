"""What do CASE, COALESCE, NULLIF, GREATEST and LEAST mean?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.nodes import Case, Literal, Null, Scalar
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.functions.signatures import common_type
from proxy.sql.syntax.refusal import only
from proxy.sqltypes import SqlType


def _case(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "ifs", "default")
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
    tests = conditions(binder, node)
    default = node.args.get("default") or exp.Null()
    values = binder.together(node, *(b.args["true"] for b in node.args["ifs"]), default)
    wanted = common_type(tuple(v.type for v in values if not isinstance(v, Null)) or (SqlType.TEXT,))
    assert wanted is not None
    branches, otherwise = _decided(tuple(zip(tests, values[:-1], strict=True)), values[-1])
    return Case(branches, otherwise, wanted) if branches or otherwise.type is not wanted else otherwise


def _decided(
    branches: tuple[tuple[Scalar, Scalar], ...], default: Scalar
) -> tuple[tuple[tuple[Scalar, Scalar], ...], Scalar]:
    """The branches that rows can still take, and what all others get: tools write positions as CASE over constants."""
    kept: list[tuple[Scalar, Scalar]] = []
    for condition, value in branches:
        if isinstance(condition, Literal) and condition.value is True:
            return tuple(kept), value
        if not isinstance(condition, Literal | Null):
            kept.append((condition, value))
    return tuple(kept), default


def conditions(binder: Binder, node: exp.Expression) -> tuple[Scalar, ...]:
    """When each branch of a CASE is taken; CASE x WHEN y asks whether x = y."""
    branches = [branch.this for branch in node.args["ifs"]]
    if node.this is None:
        return tuple(binder.condition(b) for b in branches)
    subject = (binder.bind(node.this), node.this)  # once: nested subjects would double with every branch
    pairs = (binder.united(node, (subject, (binder.bind(b), b)), is_compared=True) for b in branches)
    return tuple(binder.call(node, "=", *pair) for pair in pairs)


def _meeting(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expressions", "ignore_nulls")
    return binder.call(node, node.key.lower(), *binder.together(node, node.this, *node.expressions))


def _nullif(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    return binder.call(node, "nullif", *binder.together(node, node.this, node.expression))


RULES: Mapping[type, Rule] = MappingProxyType({
    exp.Case: _case, exp.Coalesce: _meeting, exp.Greatest: _meeting, exp.Least: _meeting, exp.Nullif: _nullif,
})  # fmt: skip
