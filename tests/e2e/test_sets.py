"""Totals of grouping sets through the wire: they are the sums of their parts, at one charge, and come back free."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.served import Client, Served

QUERIES = (
    "SELECT plan, newsletter, count(*), sum(kids) FROM users GROUP BY CUBE (plan, newsletter) ORDER BY 1, 2, 3, 4",
    "SELECT status, store_id, count(*), count(note) FROM orders GROUP BY ROLLUP (status, store_id) ORDER BY 1, 2, 3, 4",
)  # fmt: skip
Rows = list[tuple[object, ...]]


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.connect("shop", "bob") as connection:
        connection.execute("SET hush.epsilon = 0.05")
        yield connection


def ask(client: Client, query: str) -> Rows:
    """Rows, each with its grouping first."""
    keys = query.split()[1:3]
    grouping = f"SELECT GROUPING({keys[0]}{keys[1].rstrip(',')}), "
    return client.execute(query.replace("SELECT ", grouping, 1).encode()).fetchall()


def sums(rows: Rows, level: int, place: int) -> dict[object, list[int]]:
    """Numbers of one set, added up by one of its keys; by nothing for no place."""
    found: dict[object, list[int]] = {}
    for grouping, *keys, first, second in rows:
        if grouping == level:
            total = found.setdefault(keys[place] if place >= 0 else None, [0, 0])
            assert isinstance(first, int)
            assert isinstance(second, int)
            total[:] = [total[0] + first, total[1] + second]
    return found


@pytest.mark.parametrize("query", QUERIES)
def test_totals_are_the_sums_of_their_parts_until_the_setting_is_off(query: str, client: Client) -> None:
    rows = ask(client, query)
    assert sums(rows, 0, 0) == sums(rows, 1, 0)
    assert sums(rows, 0, -1) == sums(rows, 1, -1) == sums(rows, 3, -1)
    if "CUBE" in query:
        assert sums(rows, 0, 1) == sums(rows, 2, 1)
    client.execute("SET hush.consistency = off")
    drawn = ask(client, query)
    assert [row[:3] for row in drawn] == [row[:3] for row in rows]
    assert drawn != rows
    client.execute("SET hush.consistency = on")
    assert ask(client, query) == rows


def test_all_sets_are_one_release_that_comes_back_free(client: Client) -> None:
    query = QUERIES[0].replace("kids", "age")
    (((told,),),) = client.execute(f"EXPLAIN (FORMAT JSON) {query}".encode()).fetchall()
    (release,) = told["releases"]
    assert len(release["grouping_sets"]) == 4
    before = spent(client)
    rows = client.execute(query.encode()).fetchall()
    charged = spent(client) - before
    assert charged == pytest.approx(release["charge"]["rho"], abs=2e-12)
    other = query.replace("CUBE (plan, newsletter)", "GROUPING SETS ((plan), (), (newsletter), (plan, newsletter))")
    assert client.execute(other.encode()).fetchall() == rows
    assert spent(client) - before == charged
    (noises,) = zip(*client.execute('SELECT "column" FROM hush.last_query').fetchall(), strict=True)
    assert noises[:2] == ("count(*) by ()", "sum(age) by ()")


def spent(client: Client) -> float:
    ((rho,),) = client.execute("SELECT rho_spent FROM hush.budget WHERE kind = 'session'").fetchall()
    return float(rho)
