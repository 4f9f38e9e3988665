"""Can an extreme, or any other quantile, show somebody's own value, or that somebody is there?"""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.attacks.hostile import Attacked, rows

QUANTILES = (
    "max(v)", "min(v)", "percentile_cont(1) WITHIN GROUP (ORDER BY v)", "percentile_disc(0) WITHIN GROUP (ORDER BY v)",
    "percentile_cont(0.9999) WITHIN GROUP (ORDER BY v)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY v)",
    "percentile_cont(0.0001) WITHIN GROUP (ORDER BY v DESC)",
)  # fmt: skip


def test_answers_are_middles_of_cells_whatever_the_rows_hold(attacked: Attacked) -> None:
    """v is a whole number for nearly everybody, and lies between 0 and 10; its cells are 0.0002 wide."""
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset, epsilon=5) as client:
            client.execute("SET hush.fresh = on")
            for aggregate in QUANTILES:
                for ((found,),) in (rows(client, f"SELECT {aggregate} FROM people") for _ in range(3)):
                    place = Decimal(str(found)) / Decimal("0.0001")
                    assert 0 <= place <= 100_000
                    assert place % 2 == 1, (aggregate, found)


@pytest.mark.parametrize("aggregate", ["max(v)", "min(num)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY v)"])
def test_a_quantile_over_nobody_is_null_by_noise_alone(aggregate: str, attacked: Attacked) -> None:
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset, epsilon=1) as client:
            client.execute("SET hush.fresh = on")
            # shown where the noise passes twice its sd, less one row, once in 28 answers: 11 of 16 are one run in 10^12
            found = [rows(client, f"SELECT {aggregate} FROM people WHERE name = 'alice'")[0][0] for _ in range(16)]
            assert found.count(None) >= 6, dataset


def test_the_largest_value_of_one_person_is_not_shown(attacked: Attacked) -> None:
    """Alone above 60, with the target's clamped to 100: the answer stays where the others are."""
    with attacked.connect(epsilon=1) as client:
        client.execute("SET hush.fresh = on")
        found = [rows(client, "SELECT max(num) FROM people")[0][0] for _ in range(12)]
        assert sum(isinstance(f, Decimal) and f < 60 for f in found) >= 6, found


def test_the_same_question_gives_the_same_answer_for_free(attacked: Attacked) -> None:
    with attacked.connect(epsilon=2) as client:
        quantiles = "max(v), percentile_cont(ARRAY[0.2, 0.7]) WITHIN GROUP (ORDER BY num)"
        asked = f"SELECT kind, {quantiles} FROM people GROUP BY 1"
        first = rows(client, asked)
        before = rows(client, "SELECT rho_spent FROM hush.budget WHERE kind = 'user'")
        assert [rows(client, asked) for _ in range(3)] == [first] * 3
        assert rows(client, "SELECT rho_spent FROM hush.budget WHERE kind = 'user'") == before


def test_other_fractions_of_the_same_rows_are_paid_for(attacked: Attacked) -> None:
    with attacked.connect(epsilon=2) as client:
        spent = []
        for fraction in ("0.31", "0.32", "0.33"):
            rows(client, f"SELECT percentile_cont({fraction}) WITHIN GROUP (ORDER BY v) FROM people")
            spent.append(rows(client, "SELECT rho_spent FROM hush.budget WHERE kind = 'user'")[0][0])
        assert len(set(spent)) == 3


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT max(v) OVER () FROM people",
        "SELECT v - min(v) FROM people",
        "SELECT kind, count(*) FROM people GROUP BY kind, max(v)",
    ],
)
def test_rows_do_not_meet_their_own_extremes(sql: str, attacked: Attacked) -> None:
    with attacked.connect() as client, pytest.raises(Exception, match=r".") as refused:
        client.execute(sql.encode())
    assert str(getattr(refused.value, "sqlstate", "")).startswith(("DP", "42803"))
