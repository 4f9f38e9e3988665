"""How are the answers of a survey made up, whose people tossed two coins before they answered?

Synthetic people only, so numpy's generator with a fixed seed is fine here: whoever answers in earnest needs coins of
their own, as `hushql randomize` tosses them. The file has what was answered. What is true is nowhere but here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from proxy.admin.demo.data import appearing

PEOPLE = 20_000
#: Who tells the truth; and how many of the others say yes. As policies/survey.yaml says.
TRUTH, YES = 0.5, 0.5
REGIONS = ("north", "east", "south", "west")
_SEED = 20260101
_CREATE = """
create table answers as select person_id, age, $regions[region] as region, evaded
from people order by person_id
"""


@dataclass(frozen=True, slots=True)
class Survey:
    """One element for each person. answered: what they said after their coins. true: what only this generator knows."""

    age: NDArray[np.int64]
    region: NDArray[np.int64]
    true: NDArray[np.bool_]
    answered: NDArray[np.bool_]


def survey() -> Survey:
    """The same people on every machine: about one in seven did it, most often those in between 30 and 60."""
    random = np.random.default_rng(_SEED)
    age = np.clip(np.rint(random.normal(47.0, 16.0, PEOPLE)), 18, 90).astype(np.int64)
    region = random.integers(1, 1 + len(REGIONS), PEOPLE)
    true = random.random(PEOPLE) < np.where((age >= 30) & (age < 60), 0.18, 0.09)
    answered = np.where(random.random(PEOPLE) < TRUTH, true, random.random(PEOPLE) < YES)
    return Survey(age=age, region=region, true=true, answered=answered)


def generate_survey(path: Path, *, replace: bool = False) -> None:
    """Write the survey's DuckDB file. Raises ConfigError if it exists and `replace` is false."""
    made = survey()
    with appearing(path, replace=replace) as temporary, duckdb.connect(str(temporary)) as connection:
        columns = {"age": made.age.astype(np.int32), "region": made.region, "evaded": made.answered}
        connection.register("people", {"person_id": np.arange(1, PEOPLE + 1, dtype=np.int32), **columns})
        connection.execute(_CREATE, {"regions": [*REGIONS]})
