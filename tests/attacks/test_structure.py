"""How tables are put together must not decide what one person can do to an answer."""

from __future__ import annotations

import psycopg
import pytest

from tests.attacks.hostile import Attacked, Client, refusal, rows, spent, value
from tests.attacks.structures import REFUSED


@pytest.mark.parametrize("kind", REFUSED)
def test_what_lets_one_person_decide_for_others_is_refused(kind: str, attacked: Attacked) -> None:
    with attacked.connect() as client:
        before = spent(client)
        for sql in REFUSED[kind]:
            state, said = refusal(client, sql)
            assert state.startswith(("DP", "42", "0A", "21")), (sql, state, said)
            own = "'alice'" if "'alice'" in sql else sql
            assert "alice" not in said.replace(sql, "").replace(own, ""), "but for the client's own constant"
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
