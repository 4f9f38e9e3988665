"""Are outside names found under whatever alias they hide?"""

from __future__ import annotations

import ast

import pytest

from tools.names import uses


def values(text: str) -> set[str]:
    return {use.name for use in uses(ast.parse(text)) if use.is_value}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import numpy as np\nnp.random.normal()", "numpy.random.normal"),
        ("from numpy import random as r\nr.normal()", "numpy.random.normal"),
        ("from os import urandom as u\nu(4)", "os.urandom"),
        ("import os.path\nos.urandom(4)", "os.urandom"),
        ("def f():\n    import random\n    return random.random()", "random.random"),
        ("from proxy.plan import charge as c\nc.Reserved()", "proxy.plan.charge.Reserved"),
        ("make = Reserved", "Reserved"),
        ("modules()[0].Reserved()", ".Reserved"),
        ("open('x')", "open"),
    ],
)
def test_a_name_is_resolved_to_its_origin(text: str, name: str) -> None:
    assert name in values(text)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: Reserved) -> Reserved: ...",
        "async def f(*, x: tuple[Reserved, ...]) -> None: ...",
        "x: Reserved",
        "isinstance(x, Reserved | int)",
        "match x:\n    case Reserved(): pass",
        "from proxy.plan.charge import Reserved",
    ],
)
def test_naming_a_type_is_not_using_it_as_a_value(text: str) -> None:
    assert not any("Reserved" in name for name in values(text))


def test_a_base_class_and_a_decorator_are_values() -> None:
    assert values("class A(Reserved): ...\n@seal\ndef f(): ...") >= {"Reserved", "seal"}


def test_a_method_called_like_a_builtin_is_not_the_builtin() -> None:
    text = "class C:\n    def open(self): ...\nC().open()\ndef compile(): ...\ncompile()"
    assert not {"open", "compile"} & values(text)


def test_a_class_statement_is_a_definition() -> None:
    (use,) = (use for use in uses(ast.parse("class Reserved: ...")) if use.is_definition)
    assert (use.name, use.is_value) == ("Reserved", False)


def test_a_local_variable_called_like_a_module_is_not_the_module() -> None:
    text = "def f(select, rows):\n    time = select.parent\n    return time.hour, [queue.x for queue in rows]"
    assert not any(name.split(".")[0] in {"select", "time", "queue"} for name in values(text))


def test_an_import_is_found_even_where_a_variable_hides_it() -> None:
    assert "time.monotonic" in values("import time\ndef f(time):\n    return time.monotonic()")
