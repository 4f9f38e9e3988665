"""A small shop whose every row is known: rows by formula, inside the policy's domains and bounds.

The same rows are served twice: as private tables, and as public ones whose answers are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import psycopg

USERS = 900
ORDERS_PER_USER = 3  # the policy's bound; some users have fewer
CITIES = ("Zürich", "Basel", "Geneva", "new york", "O'Fallon")
RARE_CITY = "Nowhere"  # one user lives there
PLANS = ("free", "pro", "team", None)
STORES = (
    (1, "Alpha", "north", date(2001, 2, 3)),
    (2, "Beta", "south", date(2011, 12, 31)),
    (3, "Gamma", "online", None),
    (4, "Delta", "north", date(2020, 2, 29)),
)

CREATE = """
create table users (user_id integer, age integer, city varchar, plan varchar, newsletter boolean, joined date,
  score double, balance decimal(12,2), seen timestamptz, code varchar, nick varchar, kids smallint, steps bigint,
  height real);
create table orders (order_id bigint, user_id integer, store_id integer, amount decimal(12,2), status varchar,
  "at" timestamp, note varchar);
create table items (order_id bigint, line integer, category varchar, quantity integer, price double);
create table stores (store_id integer, name varchar, region varchar, opened date);
create table "Odd ""Table" ("User" integer, "select" integer, "Mixed Case" varchar);
"""

#: The same tables for PostgreSQL, with the keys that a policy needs there.
POSTGRES = CREATE.replace("double", "double precision").replace(" varchar", " text")
KEYS = """
create unique index on users (user_id);
create unique index on orders (order_id);
create unique index on stores (store_id);
create unique index on "Odd ""Table" ("User");
"""


def user_rows() -> Iterator[tuple[object, ...]]:
    """One row for each customer."""
    for i in range(1, USERS + 1):
        yield (
            i,
            None if i % 31 == 0 else 18 + i * 7 % 60,
            RARE_CITY if i == USERS else None if i % 37 == 0 else CITIES[i * i % 5],
            PLANS[i % 4],
            None if i % 17 == 0 else i % 3 == 0,
            date(2020, 1, 1) + timedelta(days=i * 11 % 1400),
            None if i % 41 == 0 else (i * 13 % 997) / 10 - 49.5,
            None if i % 43 == 0 else Decimal(i * 37 % 20001 - 10000) / 100,
            datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=i * 997 % 500_000),
            f"c{i % 7}",
            None if i % 19 == 0 else f"  Nick_{i % 5}% ",
            i % 4,
            i * 1_000_003 % 10_000_000,
            1.5 + i % 64 / 128,
        )


def orders_of(user: int) -> int:
    return ORDERS_PER_USER - user % 3


def order_rows() -> Iterator[tuple[object, ...]]:
    """Up to three orders for each customer."""
    number = 0
    for user in range(1, USERS + 1):
        for _ in range(orders_of(user)):
            number += 1
            yield (
                number,
                user,
                1 + number % 4,
                Decimal(number * 53 % 99_000) / 100,
                None if number % 29 == 0 else ("paid", "refunded")[number % 5 == 0],
                datetime(2024, 1, 1) + timedelta(seconds=number * 39_119 % 62_000_000),
                None if number % 3 else f"note {number % 4}",
            )


def item_rows() -> Iterator[tuple[object, ...]]:
    """One or two lines for each order."""
    for number in range(1, sum(orders_of(u) for u in range(1, USERS + 1)) + 1):
        for line in range(1, 2 + number % 2):
            yield (
                number,
                line,
                ("books", "music", "tools", None)[(number + line) % 4],
                1 + number % 9,
                None if number % 23 == 0 else number % 400 / 2,
            )


def odd_rows() -> Iterator[tuple[object, ...]]:
    for i in range(1, USERS + 1):
        yield (i, i % 10, ("A b", "c")[i % 2])


def rows_of_tables() -> Iterator[tuple[str, Iterator[tuple[object, ...]]]]:
    yield "users", user_rows()
    yield "orders", order_rows()
    yield "items", item_rows()
    yield "stores", iter(STORES)
    yield '"Odd ""Table"', odd_rows()


def write_shop(path: Path) -> None:
    """Make the DuckDB file."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(CREATE)
        for table, rows in rows_of_tables():
            insert(connection, table, list(rows))


def fill_postgres(client: psycopg.Connection[tuple[object, ...]]) -> None:
    """Insert the rows into tables made by POSTGRES."""
    copy_rows(client, rows_of_tables())


def copy_rows(
    client: psycopg.Connection[tuple[object, ...]], tables: Iterable[tuple[str, Iterator[tuple[object, ...]]]]
) -> None:
    for table, rows in tables:
        with client.cursor().copy(f"copy {table} from stdin".encode()) as copy:
            for row in rows:
                copy.write_row(row)


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[object, ...]]) -> None:
    marks = ", ".join("?" for _ in rows[0])
    for start in range(0, len(rows), 100):
        part = rows[start : start + 100]
        connection.execute(
            f"insert into {table} values {', '.join(f'({marks})' for _ in part)}", [v for row in part for v in row]
        )
