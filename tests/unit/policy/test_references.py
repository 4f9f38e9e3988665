"""Where does a policy read the server's environment, however that is written?"""

from __future__ import annotations

import pytest

from proxy.policy.problems import FileProblems
from proxy.policy.tree import Reference, references

FILE = "shop.yaml"


@pytest.mark.parametrize(
    "written",
    [
        "a: people ${A_SECRET}",
        'a: "people \\x24{A_SECRET}"',
        'a: "people $\\u007bA_SECRET}"',
        'a: "people $\\\n  {A_SECRET}"',
        "a: >-\n  people\n  ${A_SECRET}",
        "a: &there people ${A_SECRET}",
    ],
)
def test_a_variable_is_found_as_yaml_means_it(written: str) -> None:
    (found,) = references(f"b: none\n{written}\n", FILE).items()
    assert found == (("a",), Reference("people ${A_SECRET}", 2))


def test_an_alias_is_a_place_of_its_own() -> None:
    found = references("source: {dsn: &there '${DSN:-none}'}\ntables: [*there]\n", FILE)
    assert {path: value.text for path, value in found.items()} == {
        ("source", "dsn"): "${DSN:-none}",
        ("tables", 0): "${DSN:-none}",
    }


@pytest.mark.parametrize("text", ["", "a: $${NAME}", "a: $NAME", "a: '$ {NAME}'", "# ${NAME}\na: 1"])
def test_what_names_no_variable(text: str) -> None:
    assert not references(text, FILE)


def test_what_is_not_yaml_has_none() -> None:
    with pytest.raises(FileProblems, match="not valid YAML"):
        references("a: [", FILE)
