"""A survey that was randomized before it was stored, beside people who are protected by the dataset's promise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import duckdb

from tests.e2e.served import Document, write_yaml
from tests.postgres_server import private_server

PEOPLE = 6_000
PARTIES = ("red", "green", "blue")
TOWNS = ("Aarau", "Biel", "Chur", "Davos")
LAPLACE = 20
LOW, HIGH = 0, 100
_MADE = """
create table answers (person integer not null, smokes boolean not null, party varchar not null,
                      income double precision not null, region varchar not null, town varchar not null,
                      age integer not null);
create table towns (name varchar not null, county varchar not null, twin varchar not null);
create table people (id integer not null unique, region varchar not null, ill boolean not null);
create unique index on towns (name);
"""
TOWN_ROWS = (("Aarau", "AG", "x"), ("Biel", "BE", "x"), ("Chur", "GR", "y"), ("Davos", "GR", "y"))


def truth(i: int) -> tuple[bool, str, float]:
    """smokes, party and income of a person, as only the generator knows."""
    return i % 5 == 0, PARTIES[0 if i % 2 else 1 + i % 4 // 2], float(i % 80)


def public(i: int) -> tuple[str, str, int]:
    """region, town and age."""
    return ("north", "south")[i % 2], TOWNS[i % 3], 18 + i % 60


def stored() -> list[tuple[object, ...]]:
    """Each answer as it is stored: by two coins, kept in 0.75, with Laplace noise. The same in each run."""
    drawn = random.Random(23)
    found: list[tuple[object, ...]] = []
    for i in range(PEOPLE):
        smokes, party, income = truth(i)
        told = smokes if drawn.random() < 0.5 else drawn.random() < 0.5
        kept = party if drawn.random() < 0.75 else drawn.choice(PARTIES)
        noise = LAPLACE * drawn.choice((-1, 1)) * math.log(1.0 - drawn.random())
        found.append((i, told, kept, income + noise, *public(i)))
    return found


def private() -> list[tuple[object, ...]]:
    return [(i, ("north", "south")[i % 2], i % 7 == 0) for i in range(1_000)]


_TABLES: Mapping[str, Callable[[], Sequence[tuple[object, ...]]]] = {
    "answers": stored,
    "towns": lambda: TOWN_ROWS,
    "people": private,
}


def _insert(table: str, rows: Sequence[tuple[object, ...]]) -> str:
    """All at once, which is faster than one by one; no text has a quote."""
    return f"insert into {table} values {', '.join(map(repr, rows))}"


def write_duckdb(path: Path, gone: str = "false") -> None:
    """The survey. gone: which private people are missing."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(_MADE.replace("create unique index on towns (name);", ""))
        for table, rows in _TABLES.items():
            connection.execute(_insert(table, rows()))
        connection.execute(f"delete from people where {gone}")


def write_postgres(database: str) -> str:
    """The same in the tests' own PostgreSQL: the connection string of a login that only reads."""
    server, reader = private_server(), f"{database}_reader"
    server.create(
        database, f"{_MADE} create role {reader} login; grant select on all tables in schema public to {reader};"
    )
    with server.owner(database) as owner:
        for table, rows in _TABLES.items():
            owner.execute(_insert(table, rows()).encode())
    return server.dsn(database, reader)


def survey_policy(dataset: str, source: Document, **answers: object) -> Document:
    """A policy over this data. answers: what else is said of the local table."""
    tables = {
        "answers": {
            "local": True,
            "unit": "person",
            "joins": {"town": "towns.name"},
            "columns": {
                "person": {"type": "integer", "public": True},
                "smokes": {"type": "boolean", "randomized": {"truth": 0.5, "yes": 0.5}},
                "party": {"type": "text", "values": list(PARTIES), "randomized": {"keep": 0.75}},
                "income": {"type": "double precision", "bounds": [LOW, HIGH], "randomized": {"laplace": LAPLACE}},
                "region": {"type": "text", "values": ["north", "south"], "public": True, "nullable": False},
                "town": {"type": "text", "public": True},
                "age": {"type": "integer", "bounds": [0, 120], "public": True, "nullable": False},
            },
            **answers,
        },
        "towns": {
            "public": True,
            "columns": {n: {"type": "text"} for n in ("name", "county", "twin")},
        },
        "people": {
            "unit": "id", "unit_unique": True,
            "columns": {
                "id": {"type": "integer", "key": True},
                "region": {"type": "text", "values": ["north", "south"]},
                "ill": {"type": "boolean"},
            },
        },
    }  # fmt: skip
    return {
        "version": 1, "dataset": dataset, "tables": tables, "source": {**source, "data_version": "1"},
        "privacy": {"unit": "person", "query_epsilon": 1, "time_grid": "0ms", "delta": 1e-6},
        "budgets": {"dataset": {"epsilon": 1000}, "user": {"epsilon": 30}},
    }  # fmt: skip


def write_policies(folder: Path, **answers: object) -> list[Path]:
    """The survey in a DuckDB file and in a PostgreSQL, as datasets `local` and `elsewhere`."""
    write_duckdb(folder / "survey.duckdb")
    sources: dict[str, Document] = {
        "local": {"engine": "duckdb", "path": "survey.duckdb"},
        "elsewhere": {"engine": "postgres", "dsn": "${SURVEY_DSN}"},
    }
    return [
        write_yaml(folder / f"{name}.yaml", survey_policy(name, source, **answers)) for name, source in sources.items()
    ]
