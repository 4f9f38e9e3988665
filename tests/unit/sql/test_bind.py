"""Which nodes of a tree have a meaning over private rows."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime

import pytest
from sqlglot import exp

from proxy.errors import Unsupported
from proxy.sql.algebra.constants import Constants
from proxy.sql.algebra.nodes import ColumnRef, Scalar
from proxy.sql.binding.binder import Binder
from proxy.sql.binding.rules import RULES, make_binder
from proxy.sqltypes import SqlType


def _column(_node: exp.Column) -> Scalar:
    return ColumnRef(0, "x", SqlType.TEXT)


@pytest.fixture
def binder() -> Binder:
    return make_binder(_column, Constants({}, datetime(2026, 1, 1, tzinfo=UTC)), "")


def _relatives() -> list[type[exp.Expression]]:
    """Classes of nodes that derive from one with a rule and have none."""
    known = [c for _, c in inspect.getmembers(exp, inspect.isclass) if issubclass(c, exp.Expression)]
    return [c for c in known if c not in RULES and any(issubclass(c, ruled) for ruled in RULES)]


def test_a_node_that_only_resembles_one_with_a_rule_is_refused(binder: Binder) -> None:
    relatives = _relatives()
    assert exp.TryCast in relatives
    for kind in relatives:
        like = kind(this=exp.column("x"), to=exp.DataType.build("integer"))
        with pytest.raises(Unsupported, match="not supported over private rows"):
            binder.scalar(like)
