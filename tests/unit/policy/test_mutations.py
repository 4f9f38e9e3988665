"""Does a damaged policy give a policy or a PolicyError, and never anything else?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.errors import PolicyError
from proxy.policy.load import load_policy
from proxy.policy.users import UNCHECKED, load_users
from tests.unit.policy.case_files import BASE, USERS

SHOP = (Path(__file__).parents[3] / "policies" / "shop.yaml").read_text(encoding="utf-8")
FRAGMENTS = [
    *(
        "",
        " ",
        "\n",
        "  ",
        ":",
        ": ",
        "-",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "#",
        "&a ",
        "*a",
        "!x ",
        "'",
        '"',
        "|",
        ">",
        "%",
    ),
    *(
        "null",
        "true",
        "0",
        "-1",
        "1e400",
        ".inf",
        ".nan",
        "0x",
        "2024-13-45",
        "2024-01-01 25:00",
        "${",
        "${A}",
        "${B:-x}",
    ),
    *(
        "<<: ",
        "? ",
        "unit",
        "users",
        "orders",
        "row",
        "public: true",
        "[[]]",
        "{}",
        "\t",
        "\x00",
        "\u2028",
        "é",
        "9" * 5000,
    ),
]
LOOSE = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
pytestmark = pytest.mark.no_cover  # hundreds of policies


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """The text with one to four cuts, insertions or swapped lines."""
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["cut", "insert", "replace word", "drop line", "double line", "indent"]))
        at = draw(st.integers(0, max(0, len(text) - 1)))
        lines = text.split("\n")
        row = draw(st.integers(0, len(lines) - 1))
        if kind == "cut":
            text = text[:at] + text[at + draw(st.integers(1, 30)) :]
        elif kind == "insert":
            text = text[:at] + draw(st.sampled_from(FRAGMENTS)) + text[at:]
        elif kind == "replace word":
            head, colon, _ = lines[row].partition(":")
            lines[row] = head + colon + " " + draw(st.sampled_from(FRAGMENTS))
            text = "\n".join(lines)
        elif kind == "drop line":
            text = "\n".join(lines[:row] + lines[row + 1 :])
        elif kind == "double line":
            text = "\n".join([*lines[: row + 1], *lines[row:]])
        else:
            lines[row] = draw(st.sampled_from(["  ", " ", "    "])) + lines[row]
            text = "\n".join(lines)
    return text


def complaint(load: Callable[[], object]) -> str:
    """The words of the PolicyError that loading raises, or nothing. Any other exception fails the test."""
    try:
        load()
    except PolicyError as error:
        return error.message
    return ""


def names_the_file(message: str, filename: str) -> bool:
    return all(line.startswith(f"{filename}:") for line in message.split("\n")) if message else True


@pytest.mark.parametrize("text", [BASE, SHOP], ids=["base", "shop"])
@LOOSE
@given(data=st.data())
def test_any_mutation_gives_a_policy_or_a_policy_error(text: str, data: st.DataObject) -> None:
    changed = data.draw(mutated(text))
    assert names_the_file(complaint(lambda: load_policy(changed, filename="p.yaml", environment={"A": "1"})), "p.yaml")


@LOOSE
@given(data=st.data())
def test_any_mutation_of_a_users_file_gives_users_or_a_policy_error(data: st.DataObject) -> None:
    changed = data.draw(mutated(USERS))
    assert names_the_file(complaint(lambda: load_users(changed, filename="u.yaml", tables=UNCHECKED)), "u.yaml")


def written(scalar: object) -> str:
    """A Python value as somebody might write it in YAML."""
    match scalar:
        case None:
            return "null"
        case bool():
            return str(scalar).lower()
        case float():
            return repr(scalar).replace("inf", ".inf").replace("nan", ".nan")
        case _:
            return str(scalar)


SCALARS = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(FRAGMENTS), st.text(max_size=8))
)
KINDS = ["integer", "numeric", "real", "text", "date", "timestamp", "timestamptz", "uuid", "boolean", "char"]


@LOOSE
@given(
    kind=st.sampled_from(KINDS),
    key=st.sampled_from(["bounds", "values", "sum_bounds"]),
    items=st.lists(SCALARS, max_size=3),
)
def test_any_scalar_as_bound_or_value(kind: str, key: str, items: list[object]) -> None:
    column = "{type: " + kind + ", " + key + ": [" + ", ".join(map(written, items)) + "]}"
    text = BASE.replace("{type: text}", column)
    assert names_the_file(complaint(lambda: load_policy(text, filename="p.yaml", environment={})), "p.yaml")
