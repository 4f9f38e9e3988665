"""Sub-queries that are released first must not tell more than their release, nor loosen what comes after them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import psycopg
import pytest

from tests.attacks.hostile import DUCKDB, HOSTILE_NAMES, Attacked, Client, refusal, rows, spent, value


def explained(client: Client, sql: str) -> Mapping[str, list[Mapping[str, object]]]:
    ((data,),) = rows(client, f"EXPLAIN (FORMAT JSON) {sql}")
    found = json.loads(data) if isinstance(data, str) else data
    assert isinstance(found, list)
    return dict(found[0])


def private_sql(client: Client, sql: str) -> list[str]:
    return [str(release["private_sql"]) for release in explained(client, sql)["releases"]]


def test_a_stage_gives_a_noisy_value_and_no_other(attacked: Attacked) -> None:
    """At this epsilon the noise of the count has sd 500; the value that the second stage reads has it.

    Five draws of one number are equal in one run in 10^12.
    """
    with attacked.connect(epsilon=0.01) as client:
        seen = set()
        for at_least in (-8, -7, -6, -5, -4):
            sql = f"SELECT count(*) FROM people WHERE i > (SELECT 1000000 + count(*) FROM people WHERE v > {at_least})"
            value(client, sql)
            first, second = private_sql(client, sql)
            assert "1000" not in first
            seen |= set(re.findall(r"\d{6,7}", second))
        assert len(seen) > 1, "five draws of one number"


def test_the_target_moves_the_second_stage_by_no_more_than_its_noise_allows(attacked: Attacked) -> None:
    """A value that the target has driven far away is a constant, and the bounds that follow from it are public."""
    found = []
    sql = "SELECT sum(v - (SELECT 1000 * count(*) FROM events WHERE n >= 0)) FROM people"
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset, epsilon=100) as client:
            value(client, sql)
            releases = explained(client, sql)["releases"]
            sd = float(re.findall(r"'sd': ([0-9.]+)", str(releases[1]["outputs"]))[0])
            found.append((value(client, "SELECT 1000 * count(*) FROM events WHERE n >= 0"), sd))
    for constant, sd in found:
        assert sd > 0.05 * abs(constant), "the noise grows with the constant"
    assert abs(found[0][0] - found[1][0]) < 1000 * 60, "20 rows of a person, and noise"


def test_hostile_names_stay_values(attacked: Attacked, eve: Client) -> None:
    """Names that were released are compared with the rows, character by character."""
    shown = {row[0]: row[1] for row in rows(eve, "SELECT name, count(*) FROM people GROUP BY name")}
    assert len(set(HOSTILE_NAMES) & set(shown)) > 10
    inside = value(eve, "SELECT count(*) FROM people WHERE name IN (SELECT name FROM people GROUP BY name)")
    named = {str(name): int(str(n)) for name, n in shown.items() if name is not None}
    assert named.pop("before?after", 80), "a text that PostgreSQL cannot hold is shown in other characters"
    assert inside == pytest.approx(sum(named.values()), abs=40)
    outside = value(eve, "SELECT count(*) FROM people WHERE name NOT IN (SELECT name FROM people WHERE name IS NOT NULL"
                    " GROUP BY name)")  # fmt: skip
    assert abs(outside - (80 if attacked.engine == DUCKDB else 0)) < 40


def test_what_a_stage_says_when_it_fails_is_made_of_noisy_numbers(attacked: Attacked) -> None:
    with attacked.connect(epsilon=1) as client:
        for sql, state in (
            ("SELECT count(*) FROM people WHERE v > (SELECT count(*) / 0 FROM people)", "22012"),
            ("SELECT count(*) FROM people WHERE v > (SELECT (count(*) || 'x')::integer FROM people)", "22P02"),
            ("SELECT count(*) FROM people WHERE v > (SELECT 'NaN'::float8 + count(*) FROM people)", "DP006"),
            ("SELECT count(*) FROM people WHERE ok = (SELECT array_agg(1) FROM people)", "42883"),
        ):  # fmt: skip
            assert refusal(client, sql)[0] == state, sql


def test_a_failing_stage_is_no_way_around_the_budget(attacked: Attacked) -> None:
    """What is shown of a stage before the statement fails was paid for, and the whole statement with it."""
    with attacked.connect(epsilon=0.3) as client:
        price = 0.0
        wrong = "SELECT count(*) FROM people WHERE v > (SELECT (count(*) || 'x')::integer FROM people WHERE v < {})"
        for number in range(3):
            before = spent(client)
            with pytest.raises(psycopg.Error):
                client.execute(wrong.format(number).encode())
            found = spent(client) - before
            assert found > 0
            price = price or found
            assert found == pytest.approx(price)


def test_a_small_budget_pays_for_all_stages_or_for_none(attacked: Attacked) -> None:
    with attacked.connect("tiny") as client:
        left = float(str(rows(client, "SELECT min(epsilon_remaining) FROM hush.budget")[0][0]))
        client.execute(f"SET hush.epsilon = {left + 0.1:.3f}".encode())
        state, said = refusal(client, "SELECT count(*) FROM people WHERE v > (SELECT avg(v) FROM people)")
        assert (state, "Nothing was charged" in said) == ("DP001", True)


def test_what_others_asked_does_not_show_in_the_charge_of_a_statement_that_is_refused(attacked: Attacked) -> None:
    """The dataset is spent, and bob has asked for eve's first stage in one world and for another in the other."""
    seen = []
    for dataset, column in (("edge_a", "v"), ("edge_b", "num")):
        with attacked.connect(dataset, "bob") as bob, attacked.connect(dataset, "eve") as eve:
            value(bob, f"SELECT count(*) FROM people WHERE v > (SELECT avg({column}) FROM people)")
            said = refusal(eve, "SELECT count(*) FROM people WHERE v < (SELECT avg(v) FROM people)")
            seen.append((said, spent(eve), spent(eve, "session"), rows(eve, "SELECT outcome FROM hush.history")))
    assert seen[0] == seen[1]
    assert (seen[0][0][0], *seen[0][1:]) == ("DP001", 0, 0, [])


def test_what_can_never_be_answered_is_refused_before_a_stage_is_charged(attacked: Attacked) -> None:
    stage = "(SELECT avg(v) FROM people)"
    with attacked.connect() as client:
        before = spent(client)
        for wrong in (
            f"v > {stage} AND w > (SELECT count(*) FROM events) AND i << 3 > (SELECT -sum(x) FROM events)",
            f"v > {stage} AND name > {stage}",
            f"v > {stage} AND v > (SELECT avg(v) FROM people WHERE i << 1 = 2)",
            f"v > {stage} AND v > (SELECT avg(v) FROM people WHERE v > (SELECT count(*) FROM events) AND i << 1 = 2)",
        ):
            assert refusal(client, f"SELECT count(*) FROM people WHERE {wrong}")[0] in ("DP006", "42883"), wrong
        assert spent(client) == before


def test_one_stage_in_two_spellings_is_one_stage(attacked: Attacked) -> None:
    """Two values of random() would make two releases of what was counted as one."""
    with attacked.connect() as client:
        part = "(SELECT count(*) FROM people WHERE v > (SELECT avg(v) * random() FROM people))"
        ((one, other),) = rows(client, f"SELECT {part}, {part.replace('SELECT avg', 'SELECT  avg')}")
        assert one == other
