"""What made-up rows say about the private rows: nothing, byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pytest

from tests.attacks.hostile import refusal, spent, value
from tests.e2e.served import PASSWORD, Served, serving, shop_policy, write_users, write_yaml
from tests.e2e.shop_data import write_shop
from tests.wire.raw import RawClient

LOGINS = {"ann": "analyst", "clerk": "clerk"}
ASKED = (
    "SELECT * FROM users", "SELECT * FROM orders LIMIT 100", "TABLE items", 'SELECT * FROM "Odd ""Table"',
    "SELECT * FROM users JOIN orders USING (user_id) JOIN items i USING (order_id) ORDER BY 1, 2",
    "SELECT o.order_id, s.* FROM orders o JOIN stores s ON s.store_id = o.store_id WHERE o.amount > 500",
    "SELECT age / (age - 30) FROM users", "SELECT 1 / (user_id - 7) FROM users",
    "SELECT * FROM users WHERE user_id = 777", "COPY (SELECT * FROM orders) TO STDOUT",
    "SELECT count(*) FROM users WHERE false", "SELECT u.count FROM users u",
    "SELECT max(city) FROM (SELECT city FROM users) t",
)  # fmt: skip


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, ...]]:
    """One policy, with no word of it changed, over the shop, over the shop without a person, and over no people."""
    shop = shop_policy()
    privacy = {**shop["privacy"], "raw_select": "made_up"}  # type: ignore[dict-item]  # a mapping by the schema
    with ExitStack() as running:
        found = []
        for name, gone in (("whole", "false"), ("without", "user_id = 7"), ("empty", "true")):
            folder = tmp_path_factory.mktemp(name)
            write_data(folder / "shop.duckdb", gone)
            write_users(folder / "users.yaml", LOGINS, "tables: [orders, stores]")
            policy = write_yaml(folder / "shop.yaml", {**shop, "privacy": privacy})
            found.append(running.enter_context(serving(folder, [policy])))
        yield tuple(found)


def write_data(path: Path, gone: str) -> None:
    write_shop(path)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"delete from items where order_id in (select order_id from orders where {gone})")
        for table in ("orders", "users"):
            connection.execute(f"delete from {table} where {gone}")


def said(served: Served, login: str = "ann") -> list[tuple[str, bytes]]:
    """Every message of every answer."""
    with RawClient(served.port) as client:
        client.log_in(login, PASSWORD, "shop")
        return [(reply.kind, reply.body) for sql in ASKED for reply in client.query(sql)]


def test_made_up_rows_are_the_same_bytes_on_neighbouring_databases(neighbours: tuple[Served, ...]) -> None:
    """Also after one of them was asked for releases, and for whoever sees fewer tables."""
    before = [said(served) for served in neighbours]
    assert len([kind for kind, _ in before[0] if kind == "D"]) > 1000
    assert before[0] == before[1] == before[2]
    with neighbours[0].connect("shop") as client:
        for sql in ("SELECT count(*), sum(age) FROM users", "SELECT city, count(*) FROM users GROUP BY city"):
            client.execute(sql.encode()).fetchall()
    assert [said(served) for served in neighbours] == before
    assert said(neighbours[0], "clerk") == said(neighbours[1], "clerk") == said(neighbours[2], "clerk")


def test_a_release_is_of_private_rows_beside_made_up_ones(neighbours: tuple[Served, ...]) -> None:
    with neighbours[2].connect("shop") as client:
        assert len(client.execute("SELECT * FROM users").fetchall()) == 100
        client.execute("SET hush.epsilon = 50")
        assert abs(value(client, "SELECT count(*) FROM users")) < 20, "there is nobody"


def test_whatever_shows_or_computes_from_made_up_rows_charges_nothing(neighbours: tuple[Served, ...]) -> None:
    with neighbours[1].connect("shop") as client:
        before = spent(client)
        for sql in ASKED[:6]:
            client.execute(sql.encode())
        for sql in ("SELECT city FROM users UNION SELECT plan FROM users", "SELECT u.count FROM users u"):
            assert refusal(client, sql)[0].startswith("DP")
        assert spent(client) == before
