"""What does a policy become that says how columns were randomized before they were stored?"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from proxy.policy.document import schema
from proxy.policy.load import load_policy
from proxy.policy.model import Bounded, Column, Listed, LocalTable, Policy, Table
from proxy.policy.randomized import mechanism_words
from proxy.policy.response import (
    GaussianNoise,
    KeptOrUniform,
    LaplaceNoise,
    NotRandomized,
    Randomized,
    TwoCoins,
    best_response,
)
from proxy.policy.tree import read_tree
from tests.unit.policy.schema_reader import fits

TEXT = """
version: 1
dataset: survey
source: {engine: duckdb, path: survey.duckdb, data_version: a}
privacy: {unit: person, delta: 1e-6}
budgets: {dataset: {epsilon: 20}}
tables:
  answers:
    local: true
    unit: person
    columns:
      person: {type: integer, public: true}
      smokes: {type: boolean, randomized: {truth: 0.5, yes: 0.4}}
      party: {type: text, values: [red, null, blue], randomized: {keep: 0.75}}
      town: {type: text, values: [Bern, Chur], randomized: {epsilon: 1}}
      income: {type: double precision, bounds: [0, 200], randomized: {laplace: 50}}
      height: {type: numeric, bounds: [1.5, 2], randomized: {gaussian: 0.1}}
      weight: {type: real, bounds: [0.1, 300.7], randomized: {gaussian: 0.3}}
      region: {type: text, values: [north, south], public: true, nullable: false}
"""


def load(text: str = TEXT) -> Policy:
    return load_policy(text, filename="survey.yaml", environment={})


def answers() -> Table:
    return load().tables["answers"]


def column(name: str) -> Column:
    found = answers().column(name)
    assert found is not None
    return found


def test_a_local_table_is_neither_public_nor_promised() -> None:
    table = answers()
    assert table.ownership == LocalTable(("person",))
    assert (table.is_local, table.is_public, table.is_promised) == (True, False, False)
    assert load().private_tables() == ()
    assert not column("person").key, "who it was is declared public"
    assert load(TEXT.replace("    unit: person\n", "")).tables["answers"].ownership == LocalTable()


@pytest.mark.parametrize("name, mechanism, words", [
    ("smokes", TwoCoins(Fraction(1, 2), Fraction(2, 5)), "truth 0.5, else yes 0.4, epsilon 1.253"),
    ("party", KeptOrUniform(Fraction(3, 4), 3), "keep 0.75 among 3 values, epsilon 2.303"),
    ("town", best_response(Fraction(1), 2), "keep 0.462117 among 2 values, epsilon 1"),
    ("income", LaplaceNoise(Fraction(50), Fraction(0), Fraction(200)), "Laplace noise of scale 50, epsilon 4"),
    ("height", GaussianNoise(Fraction(1, 10), Fraction(3, 2), Fraction(2)),
     "Gaussian noise of standard deviation 0.1, rho 12.5"),
])  # fmt: skip
def test_a_column_is_randomized_as_the_policy_says_exactly(name: str, mechanism: Randomized, words: str) -> None:
    assert column(name).randomized == mechanism
    assert mechanism_words(mechanism) == words


def test_other_columns_are_not_randomized() -> None:
    assert column("region").randomized == column("person").randomized == NotRandomized()
    assert len(answers().randomized) == 6


def test_null_is_there_only_if_it_is_one_of_the_values() -> None:
    assert {c.name for c in answers().columns if c.is_randomized and c.nullable} == {"party"}
    assert column("party").domain == Listed(("red", "blue"))


def test_bounds_are_those_of_what_is_stored_rounded_outwards() -> None:
    assert column("height").domain == Bounded(Decimal("1.1"), Decimal("2.4"))
    for name in ("income", "weight"):
        domain, noise = column(name).domain, column(name).randomized
        assert isinstance(domain, Bounded)
        assert isinstance(noise, LaplaceNoise | GaussianNoise)
        low, high = noise.stored
        assert isinstance(domain.lo, float)
        assert isinstance(domain.hi, float)
        assert Fraction(domain.lo) <= low < high <= Fraction(domain.hi)
        assert Fraction(domain.hi) - high < Fraction(1, 10**12)


def test_the_schema_lets_null_be_one_of_the_values_and_nothing_else() -> None:
    assert fits(read_tree(TEXT, "p", {}).root, schema(), schema())
    for wrong in (TEXT.replace("[0, 200]", "[0, null]"), TEXT.replace("keep: 0.75", "kept: 0.75")):
        assert not fits(read_tree(wrong, "p", {}).root, schema(), schema())
