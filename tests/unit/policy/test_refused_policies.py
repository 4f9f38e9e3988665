"""Is every mistake in a policy reported with its line, its path and what would be accepted?"""

from __future__ import annotations

import pytest

from proxy.errors import PolicyError
from proxy.policy.load import load_policy
from proxy.policy.problems import FileProblems
from tests.unit.policy.case_files import BASE, Case, read_cases

ENVIRONMENT = {"SECRET": "hunter2", "SECRET_NUMBER": "0.777"}
CASES = read_cases("refused.txt", BASE)


def problems(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load_policy(text, filename="p.yaml", environment=ENVIRONMENT)
    return caught.value.message.split("\n")


def test_base_of_the_cases_is_accepted() -> None:
    assert load_policy(BASE, filename="p.yaml", environment={}).dataset == "shop"


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_refused(case: Case) -> None:
    assert problems(case.text()) == [f"p.yaml:{line}" for line in case.expected]


def test_titles_are_different() -> None:
    assert len({case.title for case in CASES}) == len(CASES) > 100


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", "p.yaml:1: the file is empty"),
        ("# only a comment\n", "p.yaml:1: the file is empty"),
        ("null", "p.yaml:1: expected a mapping with the keys"),
        ("- 1", "p.yaml:1: expected a mapping with the keys"),
        ("{}", "p.yaml:1: version: required and missing"),
        ("[" * 600, "p.yaml:1: not valid YAML: the text cannot be read"),
        ("a: \x00", "p.yaml:1: not valid YAML: the text cannot be read"),
        ("&a [*a]", "p.yaml:1: [0][0][0]"),
        ("a: 1\n---\nb: 2", "p.yaml:2: not valid YAML: but found another document"),
    ],
)
def test_text_that_is_no_policy(text: str, expected: str) -> None:
    assert problems(text)[0].startswith(expected)


def test_self_containing_alias_ends() -> None:
    assert any("nested too deep" in line for line in problems("version: 1\ndataset: &a [*a]\n"))


def test_repeated_aliases_do_not_explode() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert any("repeated too often" in line for line in problems("\n".join(lines)))


def test_number_of_many_digits_is_refused() -> None:
    assert "p.yaml:1: version: cannot be read as a number" in problems("version: " + "9" * 5000)


def test_no_secret_in_any_message() -> None:
    text = BASE.replace("data/shop.duckdb", "${SECRET}").replace("1e-6", "${SECRET}").replace("shop", "${SECRET}", 1)
    text = text.replace("[free, pro, team]", '["${SECRET}", "${SECRET}"]').replace("epsilon: 20", "epsilon: ${SECRET}")
    assert "hunter2" not in "\n".join(problems(text))


def test_problems_can_be_read_by_programs() -> None:
    with pytest.raises(FileProblems) as caught:
        load_policy(BASE.replace("version: 1", "version: 3"), filename="p.yaml", environment={})
    (problem,) = caught.value.problems
    assert (problem.line, problem.path, problem.message) == (1, ("version",), "expected 1, found 3")
