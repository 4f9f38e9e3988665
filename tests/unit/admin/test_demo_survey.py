"""Are the survey's people the same each time, and their answers such as the policy says of its coins?"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from proxy.admin.demo.survey import PEOPLE, REGIONS, TRUTH, YES, generate_survey, survey
from proxy.admin.files import read_policy
from proxy.errors import ConfigError
from proxy.policy.model import Bounded, Listed
from proxy.policy.response import TwoCoins
from tests.unit.admin.command_line import CommandLine

POLICY = Path(__file__).parents[3] / "policies" / "survey.yaml"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("survey") / "survey.duckdb"
    generate_survey(path)
    return path


def rows(path: Path) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute("select * from answers").fetchall()


def test_the_file_has_what_was_answered_and_not_what_is_true(answers: Path) -> None:
    made = survey()
    found = rows(answers)
    assert [row[0] for row in found] == [*range(1, PEOPLE + 1)]
    assert [row[1] for row in found] == made.age.tolist()
    assert [row[2] for row in found] == [REGIONS[i - 1] for i in made.region]
    assert [row[3] for row in found] == made.answered.tolist()
    assert made.answered.tolist() != made.true.tolist()


def test_the_same_people_each_time(answers: Path, tmp_path: Path) -> None:
    generate_survey(tmp_path / "again.duckdb")
    assert rows(tmp_path / "again.duckdb") == rows(answers)


def test_coins_fell_as_the_policy_says() -> None:
    """Of those with either truth, yes is answered as often as two coins have it: within four standard deviations."""
    table = read_policy(POLICY, {}).tables["answers"]
    evaded = table.column("evaded")
    assert evaded is not None
    assert evaded.randomized == TwoCoins(Fraction(TRUTH), Fraction(YES))
    made = survey()
    for true, chance in ((True, TRUTH + (1 - TRUTH) * YES), (False, (1 - TRUTH) * YES)):
        said = made.answered[made.true == true]
        assert abs(said.mean() - chance) < 4 * math.sqrt(chance * (1 - chance) / len(said))


def test_the_other_columns_lie_in_the_policy_and_go_with_the_truth() -> None:
    table = read_policy(POLICY, {}).tables["answers"]
    made = survey()
    age, region = table.column("age"), table.column("region")
    assert age is not None
    assert region is not None
    assert age.domain == Bounded(18, 90)
    assert 18 <= made.age.min() <= made.age.max() <= 90
    assert region.domain == Listed(REGIONS)
    assert {*np.unique(made.region)} == {1, 2, 3, 4}
    middle = (made.age >= 30) & (made.age < 60)
    assert made.true[middle].mean() > 1.5 * made.true[~middle].mean()


def test_command(command: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "survey.duckdb"
    assert command("demo-data", str(path), "--survey") == 0
    assert command.out == f"{path}: 20000 people\n"
    assert command("demo-data", str(path), "--survey") == 2
    assert command("demo-data", str(path), "--survey", "--force") == 0
    with pytest.raises(ConfigError, match="exists already"):
        generate_survey(path)
