"""Constants, bounds and prices at the ends of what numbers hold: plain answers or plain refusals, never a failure."""

from __future__ import annotations

import psycopg
import pytest

from tests.attacks.hostile import DUCKDB, Attacked, Client, refusal, rows, spent

HUGE = "least(greatest(w, -1.7e308), 1.7e308)"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT avg({HUGE}) FROM people",
        f"SELECT sum({HUGE}), count(w) FROM people",
        "SELECT sum(w) FROM people WHERE w BETWEEN 0 AND 1e200",
        "SELECT avg(w) FROM people WHERE w BETWEEN 1e308 AND 1.7e308",
        "SELECT sum(w) FILTER (WHERE w > -1e300 AND w < 1e300) FROM people",
    ],
)
def test_bounds_that_no_noise_fits_are_refused_before_the_charge(sql: str, eve: Client) -> None:
    before = spent(eve)
    state, said = refusal(eve, sql)
    assert state == "DP002"
    assert "too large" in said
    assert spent(eve) == before


@pytest.mark.parametrize(
    ("sql", "groups"),
    [
        ("SELECT kind, count(*) FROM people WHERE kind = 'nothing' GROUP BY kind", []),
        ("SELECT kind, count(*), sum(v) FROM people WHERE kind < 'a' GROUP BY kind", []),
        (
            "SELECT kind, count(*), sum(x) FROM people p JOIN events e ON e.pid = p.pid WHERE kind = 'd' GROUP BY 1",
            [],
        ),
        ("SELECT n, count(*), sum(x) FROM events WHERE n > 11 AND n IN (1, 2) GROUP BY n", [1, 2]),
        ("SELECT n, count(*), sum(x) FROM events WHERE n IN (12, 13) GROUP BY n", []),
        ("SELECT n, count(*) FROM events WHERE n IN (2, 2.5, 3.0) GROUP BY n", [2, 3]),
        ("SELECT n, count(*) FROM events WHERE n = 2.5 GROUP BY n", []),
    ],
)
def test_groups_are_those_that_a_condition_leaves(sql: str, groups: list[int], eve: Client) -> None:
    assert [row[0] for row in rows(eve, sql)] == groups


def test_releases_that_would_cost_nothing_are_refused(attacked: Attacked) -> None:
    """The smallest epsilon, divided among more releases than it has parts."""
    many = ", ".join(f"(SELECT count(*) FROM people WHERE i < {n})" for n in range(1000))
    with attacked.connect(epsilon=0.0001) as client:
        before = spent(client)
        state, said = refusal(client, f"SELECT {many}")
        assert (state, "too small" in said) == ("DP007", True)
        assert spent(client) == before
        assert not client.broken


def test_the_order_of_infinite_keys_is_not_the_engines(attacked: Attacked) -> None:
    """NaN after infinity, as PostgreSQL sorts them, with and without a person; what raises in PostgreSQL is NULL."""
    key = "CASE WHEN i < 100 THEN w * 1e308 * 1e308 WHEN i < 200 THEN w * 1e308 * 1e308 * 0 END"
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset, epsilon=100) as client:
            found = [row[0] for row in rows(client, f"SELECT {key} AS k, count(*) FROM people GROUP BY k")]
            numbers = ["inf", "nan"] if attacked.engine == DUCKDB else []
            assert [str(k) for k in found] == [*numbers, "None"]


def test_instants_of_arrays_are_keys_in_the_policys_zone(eve: Client) -> None:
    instants = ["2024-01-01 05:00:00+02", "2024-01-01 05:00:00+00"]
    written = ", ".join(f"'{i}'" for i in instants)
    literal = f"SELECT tz, count(*) FROM people WHERE tz = ANY(ARRAY[{written}]::timestamptz[]) GROUP BY tz"
    listed = f"SELECT tz, count(*) FROM people WHERE tz IN ({written}) GROUP BY tz"
    bound = "SELECT tz, count(*) FROM people WHERE tz = ANY(%s::timestamptz[]) GROUP BY tz"
    wanted = [row[0] for row in rows(eve, listed)]
    assert len(set(wanted)) == len(instants)
    assert [row[0] for row in rows(eve, literal)] == wanted
    assert [row[0] for row in psycopg.Cursor(eve).execute(bound, (instants,)).fetchall()] == wanted
