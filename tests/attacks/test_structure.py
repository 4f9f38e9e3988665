"""How tables are put together must not decide what one person can do to an answer."""

from __future__ import annotations

import psycopg
import pytest

from tests.attacks.hostile import Attacked, Client, refusal, rows, spent, value

REFUSED = {
    "a question about one person inside another": (
        "SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM people q WHERE q.name = 'alice')",
        "SELECT count(*) FROM people WHERE 'alice' IN (SELECT name FROM people)",
        "SELECT count(*) FROM people p WHERE v > ALL (SELECT v FROM people q WHERE q.kind = p.kind)",
        "SELECT count(*) FROM people WHERE name = ANY (SELECT name FROM people WHERE ok)",
        "SELECT count(*), EXISTS (SELECT 1 FROM people WHERE name = 'alice') FROM events",
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM people WHERE name = 'alice') THEN 1 END",
        "SELECT 1 WHERE 'alice' IN (SELECT name FROM people)",
        "SELECT * FROM labels WHERE EXISTS (SELECT 1 FROM people WHERE name = 'alice')",
        "VALUES ((SELECT name FROM people LIMIT 2))",
    ),
    "a condition on the rows of others": (
        "SELECT count(*) FROM events e WHERE EXISTS (SELECT 1 FROM people p WHERE p.pid <> e.pid AND p.name = 'alice')",
        "SELECT count(*) FROM people WHERE NOT EXISTS (SELECT 1 FROM people WHERE name = 'alice')",
        "SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM events e WHERE pid = pid)",
        "SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM events e WHERE e.pid = e.pid AND e.n = 1)",
        "SELECT count(*) FROM people p WHERE p.v IN (SELECT e.x FROM events e)",
        "SELECT count(*) FROM people p WHERE p.v NOT IN (SELECT q.v FROM people q WHERE q.name = 'alice')",
        "SELECT count(*) FROM people p WHERE p.pid IN (SELECT e.pid + 1 FROM events e)",
        "SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM events e, people q WHERE e.pid = p.pid)",
        "SELECT count(*) FROM people p WHERE p.pid IN (SELECT e.pid FROM events e ORDER BY x LIMIT 1)",
        "SELECT count(*) FROM people p WHERE p.pid IN (SELECT CASE WHEN e.n > 3 THEN e.pid END FROM events e)",
        "SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM events e WHERE e.pid = p.pid AND e.pid < 100)",
    ),
    "a scalar of all rows": (
        "SELECT count(*) FROM people WHERE v > (SELECT v FROM people)",
        "SELECT count(*) FROM people WHERE v > (SELECT avg(v) FROM people)",
        "SELECT sum(v - (SELECT min(v) FROM people)) FROM people",
    ),
    "a correlated aggregate": (
        "SELECT count(*) FROM people p WHERE (SELECT count(*) FROM events e WHERE e.what = p.name) > 3",
        "SELECT count(*) FROM people p WHERE p.v > (SELECT avg(q.v) FROM people q WHERE q.kind = p.kind)",
    ),
    "windows across people": (
        "SELECT rank() OVER (ORDER BY v) FROM people",
        "SELECT sum(r) FROM (SELECT row_number() OVER (ORDER BY w) AS r FROM people) AS t",
        "SELECT count(*) FROM (SELECT lag(v) OVER (ORDER BY i) AS l FROM people) AS t WHERE l > 5",
        "SELECT count(*) FROM (SELECT ntile(4) OVER (ORDER BY v) AS q FROM people) AS t WHERE q = 1",
        "SELECT sum(v) OVER () FROM people",
    ),
    "joins on other things than the person": (
        "SELECT count(*) FROM people p JOIN people q ON p.name = q.name",
        "SELECT count(*) FROM people p JOIN people q ON p.pid < q.pid",
        "SELECT count(*) FROM people p JOIN events e ON e.pid = p.pid OR e.pid IS NOT NULL",
        "SELECT count(*) FROM people p JOIN events e ON e.pid + 0 = p.pid + 0",
        "SELECT count(*) FROM people p JOIN events e ON coalesce(e.pid, 0) = coalesce(p.pid, 0)",
        "SELECT count(*) FROM people, events",
        "SELECT count(*) FROM people CROSS JOIN events",
        "SELECT count(*) FROM people p JOIN events e ON true",
        "SELECT count(*) FROM people p JOIN events e ON e.n = p.pid",
        "SELECT count(*) FROM people p JOIN events e ON p.pid = p.pid",
        "SELECT count(*) FROM people p JOIN events e ON NOT e.pid <> p.pid",
        "SELECT count(*) FROM people p JOIN events e ON CASE WHEN e.pid = p.pid THEN true ELSE false END",
        "SELECT count(*) FROM people p LEFT JOIN events e ON e.n = p.pid",
        "SELECT count(*) FROM people p LEFT JOIN events e ON true",
        "SELECT count(*) FROM people p LEFT JOIN people q ON q.pid <> p.pid",
        "SELECT count(*) FROM people p LEFT JOIN events e ON e.pid = p.pid OR e.n > 0",
        "SELECT count(*) FROM people p LEFT JOIN events e ON e.pid = p.pid LEFT JOIN people q ON q.name = e.what",
        "SELECT l.label, count(*) FROM labels l LEFT JOIN people p ON p.name = l.label GROUP BY 1",
        "SELECT count(*) FROM people p FULL JOIN events e ON e.pid = p.pid",
        "SELECT count(*) FROM events e RIGHT JOIN people p ON e.pid > p.pid",
        "SELECT count(*) FROM people NATURAL FULL JOIN events",
        "SELECT count(*) FROM people p JOIN labels l ON l.label = p.name",
        "SELECT count(*) FROM people p, labels l",
        "SELECT count(*) FROM people p ASOF JOIN events e ON e.pid = p.pid",
        "SELECT count(*) FROM (people p JOIN events e ON e.pid = p.pid)",
    ),
    "rows with forged owners": (
        "SELECT count(*) FROM people p JOIN generate_series(1, 1000) AS g (pid) ON g.pid = p.pid",
        "SELECT count(*) FROM people p JOIN (VALUES (777), (777)) AS f (pid) ON f.pid = p.pid",
        "SELECT count(*) FROM (SELECT pid FROM people UNION ALL SELECT 777) AS t",
        "SELECT count(*) FROM (SELECT pid FROM people UNION ALL VALUES (777)) AS t",
        "SELECT count(*) FROM people p JOIN unnest(ARRAY[777, 777]) AS f (pid) ON f.pid = p.pid",
    ),
    "sets of rows": (
        "SELECT count(*) FROM (SELECT pid FROM people UNION ALL SELECT pid FROM people) AS t",
        "SELECT count(*) FROM (SELECT name FROM people UNION SELECT what FROM events) AS t",
        "SELECT count(*) FROM (SELECT pid FROM people EXCEPT SELECT pid FROM events) AS t",
        "SELECT count(*) FROM (SELECT pid FROM people INTERSECT ALL SELECT pid FROM events) AS t",
        "SELECT name FROM people UNION ALL SELECT 'x'",
        "SELECT count(*) FROM people UNION ALL SELECT v::int FROM people",
    ),
    "unusual relations": (
        "SELECT count(*) FROM people p, LATERAL (SELECT p.v) AS l",
        "SELECT count(*) FROM people p, LATERAL unnest(ARRAY[1, 2]) AS l",
        "WITH RECURSIVE r AS (SELECT pid FROM people UNION ALL SELECT pid FROM r) SELECT count(*) FROM r",
        "SELECT count(*) FROM people, unnest(string_to_array(name, ' '))",
        "SELECT count(*) FROM ROWS FROM (generate_series(1, 2)) AS g JOIN people ON true",
        "SELECT unnest(ARRAY[v]), count(*) FROM people GROUP BY 1",
        "SELECT generate_series(1, n), count(*) FROM events GROUP BY 1",
    ),
    "rows above the line": (
        "SELECT count(*), name FROM people",
        "SELECT count(*), (SELECT label FROM labels WHERE labels.kind = people.kind) FROM people",
        "SELECT kind, count(*) FROM people GROUP BY kind ORDER BY v",
        "SELECT kind, count(*) FROM people GROUP BY kind HAVING v > 5",
        "SELECT count(*) FILTER (WHERE name = 'alice') OVER (), v FROM people",
        "SELECT sum(count(*)) OVER (ORDER BY v) FROM people GROUP BY kind",
        "SELECT sum(sum(v)) FROM people",
    ),
    "ambiguity": (
        "SELECT count(*) FROM people p JOIN events e ON e.pid = p.pid WHERE pid > 5",
        "SELECT count(*) FROM people p JOIN events p ON p.pid = p.pid",
        "SELECT count(*) FROM (SELECT v AS a, w AS a FROM people) AS t WHERE a > 5",
        "SELECT count(*) FROM people WHERE t.v > 5",
    ),
    "tables made of rows": (
        "CREATE TEMP TABLE kept AS SELECT * FROM people",
        "CREATE TABLE kept AS SELECT count(*) FROM people",
        "CREATE TEMP TABLE kept AS TABLE people",
        "INSERT INTO labels SELECT name, kind FROM people",
        "SELECT name INTO TEMP kept FROM people",
        "MERGE INTO people USING labels ON false WHEN NOT MATCHED THEN INSERT (pid) VALUES (1)",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_lets_one_person_decide_for_others_is_refused(kind: str, attacked: Attacked) -> None:
    with attacked.connect() as client:
        before = spent(client)
        for sql in REFUSED[kind]:
            state, said = refusal(client, sql)
            assert state.startswith(("DP", "42", "0A", "21")), (sql, state, said)
            assert "alice" not in said.replace(sql, "")
        assert spent(client) == before


def test_a_unit_alias_binds_as_postgresql_binds_it(eve: Client) -> None:
    everybody = value(eve, "SELECT count(*) FROM people")
    assert abs(value(eve, "SELECT count(pid) FROM (SELECT v AS pid FROM people) AS t") - everybody) < 10
    assert refusal(eve, "SELECT count(*) FROM (SELECT pid AS v FROM people) AS t WHERE v = 777")[0] == "DP007"
    assert refusal(eve, 'SELECT count(*) FROM (SELECT pid AS "V" FROM people) AS t WHERE "V" = 777')[0] == "DP007"
    assert refusal(eve, "SELECT a, count(*) FROM (SELECT pid AS a FROM people) AS t GROUP BY a")[0] == "DP005"
    assert refusal(eve, "SELECT kind AS pid, pid, count(*) FROM people GROUP BY pid")[0].startswith(("DP", "42"))


def test_a_swapped_alias_joins_what_it_names(eve: Client) -> None:
    joined = "SELECT count(*) FROM (SELECT n AS pid, pid AS n FROM events) AS e JOIN people p ON e.pid = p.pid"
    assert refusal(eve, joined)[0].startswith("DP")
    fine = "SELECT count(*) FROM (SELECT n AS pid, pid AS n FROM events) AS e JOIN people p ON e.n = p.pid"
    assert value(eve, fine) > 1000


def test_a_fan_out_is_cut_after_the_join(attacked: Attacked) -> None:
    """A thousand rows joined with themselves are a million; a person still counts for 20 at most."""
    found = []
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset, epsilon=100) as client:
            found.append(value(client, "SELECT count(*) FROM events a JOIN events b ON a.pid = b.pid"))
    assert abs(found[0] - found[1]) < 40


def test_one_cte_named_twice_is_paid_once(attacked: Attacked) -> None:
    with attacked.connect() as client:
        start = spent(client)
        value(client, "SELECT count(*) FROM people WHERE v > 0.31")
        price = spent(client) - start
        twice = (
            "WITH c AS (SELECT count(*) AS n FROM people WHERE v > 0.32) SELECT (SELECT n FROM c) - (SELECT n FROM c)"
        )
        before = spent(client)
        assert value(client, twice) == 0
        assert spent(client) - before == pytest.approx(price)


def test_several_blocks_share_one_price(attacked: Attacked) -> None:
    """No statement costs more than its knob; many blocks only make each noisier."""
    with attacked.connect() as client:
        start = spent(client)
        value(client, "SELECT count(*) FROM people WHERE v > 0.41")
        price = spent(client) - start
        before = spent(client)
        rows(client, " UNION ALL ".join(f"SELECT count(*) FROM people WHERE v > 0.5{i}" for i in range(9)))
        assert spent(client) - before == pytest.approx(price, rel=1e-6)


def test_so_many_blocks_share_one_small_price_or_are_refused(attacked: Attacked) -> None:
    with attacked.connect(epsilon=0.0001) as client:
        many = " UNION ALL ".join(f"SELECT count(*) FROM people WHERE v > {i}" for i in range(150))
        before = spent(client)
        try:
            found = rows(client, many)
        except psycopg.Error:
            found = []
        if not found:
            assert spent(client) == before
        else:
            assert max(int(str(row[0])) for row in found) > 10_000  # noise of sd 100,000 and more
