"""Injected values cannot be taken for SQL, whatever they hold."""

from __future__ import annotations

import re

import pytest

from proxy.sql.query.front.splice import (
    InjectedColumn,
    Patch,
    array_text,
    array_type,
    erase,
    splice,
    system_template,
    text_literal_pg,
)
from proxy.sql.query.split import EmptiedText
from proxy.sql.syntax.locate import TextSpan
from proxy.sql.syntax.outer import Edit
from proxy.sqltypes import SqlType


@pytest.mark.parametrize(
    "value", ["it's", 'a"b', "a\\b", "{x,NULL}", "", "NULL", "$1", "'; DROP TABLE t; --", "\n", "é"]
)
def test_text_stays_text(value: str) -> None:
    array = array_text((value, None))
    assert array.startswith('{"')
    assert array.endswith('",NULL}')
    element = re.fullmatch(r'\{"((?:[^"\\]|\\.)*)",NULL\}', array, re.DOTALL)
    assert element is not None
    assert re.sub(r"\\(.)", r"\1", element[1], flags=re.DOTALL) == value
    literal = text_literal_pg(array)
    inner = literal.strip().removeprefix("E")[1:-1]
    assert inner.replace("''", "'").replace("\\\\", "\\") == array
    assert "'" not in inner.replace("''", "")


def test_patches_are_applied_in_text_order_with_numbered_parameters() -> None:
    text = "SELECT (first), (second)"
    one = InjectedColumn("a0", SqlType.INT8, ("1", None))
    two = InjectedColumn("k0", SqlType.TEXT, ("x",))
    spans = (
        TextSpan(text.index("first"), text.index("first") + 5),
        TextSpan(text.index("second"), text.index("second") + 6),
    )
    found = splice(
        text, (Patch(spans[1], "SELECT k0 FROM @", "@", (two,)), Patch(spans[0], "SELECT a0 FROM @", "@", (one,))), 3
    )
    assert found.arrays == (one, two)
    assert found.with_parameters == (
        'SELECT (SELECT a0 FROM ROWS FROM (pg_catalog.unnest($3::pg_catalog.int8[])) AS "hush_r"("a0")),'
        ' (SELECT k0 FROM ROWS FROM (pg_catalog.unnest($4::pg_catalog.text[])) AS "hush_r"("k0"))'
    )
    assert "'{\"1\",NULL}'::pg_catalog.int8[]" in found.with_literals
    assert "$" not in found.with_literals


def test_patches_inside_patches_are_not_looked_for_in_values() -> None:
    text = "(outer (inner) )"
    outer, inner = TextSpan(1, 15), TextSpan(8, 13)
    evil = InjectedColumn("k0", SqlType.TEXT, ("@1 @2 @3",))
    found = splice(
        text,
        (
            Patch(outer, "SELECT (@2), (@3) FROM @1", "@1", (evil,), (Edit(inner, "@2"), Edit(TextSpan(0, 0), "@3"))),
            Patch(inner, "SELECT k0 FROM @1", "@1", (evil,)),
            Patch(TextSpan(0, 0), "SELECT 1", "@1", ()),
        ),
        1,
    )
    relation = 'ROWS FROM (pg_catalog.unnest({}::pg_catalog.text[])) AS "hush_r"("k0")'
    assert found.arrays == (evil, evil)
    assert found.with_parameters == (
        f"(SELECT (SELECT k0 FROM {relation.format('$2')}), (SELECT 1) FROM {relation.format('$1')})"
    )
    literal = relation.format("'{\"@1 @2 @3\"}'")
    assert found.with_literals == f"(SELECT (SELECT k0 FROM {literal}), (SELECT 1) FROM {literal})"


def test_erased_text_is_gone() -> None:
    text = "WITH a(x, y) AS (SELECT * FROM users) SELECT 1"
    start = text.index("SELECT *")
    found = splice(text, (erase(EmptiedText(TextSpan(start, start + 19), 2)),), 1)
    assert found.with_parameters == found.with_literals == "WITH a(x, y) AS (SELECT NULL, NULL) SELECT 1"
    assert found.arrays == ()


@pytest.mark.parametrize("needs_alias", [True, False])
def test_system_relation(needs_alias: bool) -> None:
    column = InjectedColumn("kind", SqlType.TEXT, ())
    template, marker = system_template("budget", (column,), needs_alias=needs_alias)
    assert template.count(marker) == 1
    assert template.endswith('AS "budget"') is needs_alias


def test_every_type_has_an_array() -> None:
    assert len({array_type(kind) for kind in SqlType}) == len(SqlType)
