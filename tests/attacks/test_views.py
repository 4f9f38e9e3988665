"""Views and prepared statements must let nobody do what the same SELECT does not."""

from __future__ import annotations

import psycopg
import pytest

from tests.attacks.hostile import Attacked, Client, refusal, rows, spent, value
from tests.attacks.structures import REFUSED


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_is_refused_of_a_view_and_when_prepared(kind: str, attacked: Attacked) -> None:
    with attacked.connect() as client:
        client.prepare_threshold = None
        before = spent(client)
        for sql in REFUSED[kind]:
            if not sql.startswith(("SELECT", "WITH")) or " INTO " in sql:
                continue
            made = {f"CREATE TEMP VIEW a AS {sql}": "SELECT * FROM a", f"PREPARE a AS {sql}": "EXECUTE a"}
            for making, asking in made.items():
                try:
                    client.execute(making.encode())
                except psycopg.Error:
                    continue
                state, said = refusal(client, asking)
                assert state.startswith(("DP", "42")), (sql, state, said)
                own = "'alice'" if "'alice'" in sql else sql
                assert "alice" not in said.replace(own, ""), "but for the client's own constant"
                client.execute("DISCARD ALL")
        assert spent(client) == before


def test_names_around_a_view_do_not_get_into_it(eve: Client) -> None:
    eve.execute("CREATE TEMP VIEW v AS SELECT pid, kind FROM people WHERE v > 5")
    many = value(eve, "SELECT count(*) FROM v")
    for sql in ("WITH people AS (SELECT 1 AS pid, 'a' AS kind, 9 AS v) SELECT count(*) FROM v",
                "WITH people AS (SELECT * FROM events) SELECT count(*) FROM v"):  # fmt: skip
        state, _ = refusal(eve, sql)
        assert state == "DP006"
    assert abs(value(eve, "SELECT count(*) FROM v AS people") - many) < 10


def test_a_name_of_a_view_is_never_an_empty_table(eve: Client) -> None:
    """Whatever becomes of a name, an answer is a release or an error."""
    eve.execute("CREATE TEMP VIEW v AS SELECT pid FROM people")
    eve.execute('ALTER VIEW v RENAME TO "V W"')
    assert value(eve, 'SELECT count(*) FROM "V W"') > 100
    for sql in ('SELECT count(*) FROM U&"V\\0020W"', "SELECT count(*) FROM v", 'COPY "V W" TO STDOUT',
                "CREATE TEMP TABLE people AS SELECT 1", 'ALTER VIEW "V W" RENAME TO people', 'SELECT "V W" FROM "V W"',
                'INSERT INTO labels SELECT count(*) FROM "V W"', 'DELETE FROM "V W"'):  # fmt: skip
        state, _ = refusal(eve, sql)
        assert state.startswith(("DP", "42", "55", "0A")), (sql, state)
    assert rows(eve, 'SELECT * FROM "V W" LIMIT 0') == []


def test_what_a_call_evaluates_is_what_the_client_may(eve: Client) -> None:
    eve.execute("PREPARE a (text) AS SELECT count(*) FROM people WHERE name = $1")
    for arguments in ("(SELECT name FROM people LIMIT 1)", "'x') , (SELECT 1", "pg_read_file('/etc/passwd')", "$1",
                      "'x'::text, 'y'", "generate_series(1, 3)::text", "current_setting('nope.nope')"):  # fmt: skip
        state, said = refusal(eve, f"EXECUTE a({arguments})")
        assert not state.startswith("XX"), (arguments, state, said)
    assert value(eve, "EXECUTE a('; drop table people; --' || '''')") >= 0


def test_a_series_that_postgresql_spells_otherwise_in_a_view_repeats_everybody(attacked: Attacked) -> None:
    """ROWS FROM with one function is refused as it is written; a view says it as a plain series, which is answered."""
    sql = "SELECT count(*) FROM ROWS FROM (generate_series(1, 2)) AS g JOIN people ON true"
    with attacked.connect() as client:
        assert refusal(client, sql)[0] == "DP006"
        client.execute(f"CREATE TEMP VIEW a AS {sql}".encode())
        everybody = value(client, "SELECT count(*) FROM people")
        found = value(client, "SELECT * FROM a")
        assert abs(found - 2 * everybody) < 20 * value(client, "SELECT sd FROM hush.last_query")
