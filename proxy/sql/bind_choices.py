"""What do CASE, COALESCE, NULLIF, GREATEST and LEAST mean?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra import Case, Null, Scalar
from proxy.sql.binder import Binder, Rule
from proxy.sql.refusal import only
from proxy.sql.signatures import common_type
from proxy.sqltypes import SqlType


def _case(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "ifs", "default")
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
    conditions = _conditions(binder, node)
    default = node.args.get("default") or exp.Null()
    values = binder.together(node, *(b.args["true"] for b in node.args["ifs"]), default)
    wanted = common_type(tuple(v.type for v in values if not isinstance(v, Null)) or (SqlType.TEXT,))
    assert wanted is not None
    return Case(tuple(zip(conditions, values[:-1], strict=True)), values[-1], wanted)


def _conditions(binder: Binder, node: exp.Expression) -> tuple[Scalar, ...]:
    branches = [branch.this for branch in node.args["ifs"]]
    if node.this is None:
        return tuple(binder.condition(b) for b in branches)
    subject = (binder.bind(node.this), node.this)  # once: nested subjects would double with every branch
    return tuple(binder.call(node, "=", *binder.united(node, (subject, (binder.bind(b), b)))) for b in branches)


def _meeting(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expressions", "ignore_nulls")
    return binder.call(node, node.key.lower(), *binder.together(node, node.this, *node.expressions))


def _nullif(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    return binder.call(node, "nullif", *binder.together(node, node.this, node.expression))


RULES: Mapping[type, Rule] = MappingProxyType({
    exp.Case: _case, exp.Coalesce: _meeting, exp.Greatest: _meeting, exp.Least: _meeting, exp.Nullif: _nullif,
})  # fmt: skip
