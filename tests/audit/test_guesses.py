"""Do the attackers of `guesses` win where there is no noise, and is what they may achieve what it should be?"""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from tests.audit.guesses import ATTACKS, BUDGETS, Attack, Guessed, Numbers, figure, secrets, table, write_world


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("towns")
    write_world(folder)
    return folder / "towns.duckdb"


@pytest.mark.parametrize("attack", ATTACKS, ids=[a.name for a in ATTACKS])
def test_without_noise_an_attacker_is_always_right(attack: Attack, towns: Path) -> None:
    with duckdb.connect(str(towns), read_only=True) as connection:
        bounded = "(SELECT * REPLACE (least(amount, 100) AS amount) FROM people)"
        asked = 0

        def ask(what: str) -> Numbers:
            nonlocal asked
            asked += 1
            select, rest = what.replace("people", bounded).replace(" WHERE ", " AND ").split(" FROM ", 1)
            condition = rest.removeprefix(bounded).removeprefix(" AND ") or "true"
            aggregate = f"coalesce({select} FILTER (WHERE {condition}), 0)"
            found = connection.execute(f"SELECT {aggregate} FROM {bounded} GROUP BY town ORDER BY town").fetchall()
            return np.array([float(value) for (value,) in found])

        guessed = attack.guess(ask)
    assert guessed.tolist() == list(secrets())
    assert asked == attack.statements


def test_what_is_allowed_grows_from_a_coin_toss_and_with_what_lies_between() -> None:
    assert {a.allowed(0.0) for a in ATTACKS} == {0.5}
    assert all(a.allowed(2.0) == pytest.approx({1: 0.841345, 2: 0.977250}[a.apart], abs=1e-6) for a in ATTACKS)


def test_the_page_has_every_attack_with_every_budget() -> None:
    found = [Guessed(a, epsilon, epsilon / 10, 0.5) for a in ATTACKS for epsilon in BUDGETS]
    assert table(found).count("\n") == 2 + len(found)
    assert figure(found).count("<circle") == len(found) + len(ATTACKS), "and a mark of each in the legend"
    assert all(g.is_as_it_must_be for g in found)
    assert not Guessed(ATTACKS[0], 0.5, 0.001, 0.95).is_as_it_must_be
