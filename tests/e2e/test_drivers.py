"""The census through several drivers: true numbers up to the stated noise, PostgreSQL's types."""

from __future__ import annotations

import asyncio
import csv
import os
import shutil
import subprocess
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text, create_engine, func, select

from proxy.front.binaries import wheel_directory
from tests.e2e.served import PASSWORD, Served

BY_CLASS = "SELECT class, count(*), avg(age), sum(hours_per_week) FROM adult GROUP BY class ORDER BY 2 DESC"
Truth = dict[str, tuple[int, float, int]]


@pytest.fixture(scope="module")
def truth(adult_csv: Path) -> Truth:
    """Rows, mean age and hours per class, from the file itself."""
    with adult_csv.open() as file:
        rows = [(r["class"], int(r["age"]), int(r["hours_per_week"])) for r in csv.DictReader(file)]
    classes = sorted({c for c, _, _ in rows})
    assert len(rows) == 32_561
    return {
        c: (
            sum(1 for r in rows if r[0] == c),
            sum(r[1] for r in rows if r[0] == c) / sum(1 for r in rows if r[0] == c),
            sum(r[2] for r in rows if r[0] == c),
        )
        for c in classes
    }


def is_right(rows: Sequence[Sequence[Any]], truth: Truth) -> bool:
    """Within ten standard deviations of the noise at the policy's epsilon, 0.5."""
    assert [row[0] for row in rows] == ["<=50K", ">50K"], "ordered by the count"
    for name, count, mean, hours in rows:
        true = truth[str(name)]
        assert [type(count), type(mean), type(hours)] == [int, Decimal, int]
        if abs(count - true[0]) > 250 or abs(float(mean) - true[1]) > 1.5 or abs(hours - true[2]) > 25_000:
            return False
    return True


def test_forty_and_older(served: Served) -> None:
    with served.connect("adult") as client:
        client.execute("SET hush.epsilon = 100")
        ((count,),) = client.execute("SELECT count(*) FROM adult WHERE age >= 40").fetchall()
        ((half,),) = client.execute("SELECT half_width_95 FROM hush.last_query").fetchall()
        assert abs(int(str(count)) - 14_237) <= max(1, 4 * float(str(half)))


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("prepare", [False, True])
def test_psycopg(served: Served, truth: Truth, binary: bool, prepare: bool) -> None:
    with served.connect("adult") as client:
        cursor = client.execute(BY_CLASS, binary=binary, prepare=prepare)
        assert [(c.name, c.type_code) for c in cursor.description or ()] == [
            ("class", 25), ("count", 20), ("avg", 1700), ("sum", 20)]  # fmt: skip
        assert is_right(cursor.fetchall(), truth)
        text = client.execute(BY_CLASS).fetchall()
        assert text == client.execute(BY_CLASS, binary=True).fetchall()


def test_psycopg_async_and_pipeline(served: Served, truth: Truth) -> None:
    async def ask() -> list[tuple[object, ...]]:
        async with await psycopg.AsyncConnection.connect(served.dsn("adult"), autocommit=True) as client:
            async with client.pipeline():
                first = await client.execute(BY_CLASS)
                second = await client.execute("SELECT count(*) FROM adult WHERE age > %s", (40,))
                third = await client.execute(BY_CLASS, binary=True)
            assert len(await second.fetchall()) == 1
            rows: list[tuple[object, ...]] = await first.fetchall()
            assert await third.fetchall() == rows
            return rows

    assert is_right(asyncio.run(ask()), truth)


@pytest.mark.parametrize("is_binary", [False, True])
def test_psycopg_list_parameter(served: Served, is_binary: bool) -> None:
    with served.connect("adult") as client:
        cursor = client.cursor()
        cursor.execute("SELECT count(*) FROM adult WHERE race = ANY(%s)", (["White", "Other"],), binary=is_binary)
        (white,) = cursor.fetchone() or ()
        cursor.execute("SELECT count(*) FROM adult WHERE NOT (race <> ALL(%b))", (["White", "Other"],))
        (again,) = cursor.fetchone() or ()
    assert abs(white - 28_087) < 300
    assert abs(again - 28_087) < 300


def test_asyncpg(served: Served, truth: Truth) -> None:
    async def ask() -> None:
        client = await asyncpg.connect(
            host="127.0.0.1", port=served.port, user="ann", password=PASSWORD, database="adult"
        )
        try:
            assert is_right([tuple(r) for r in await client.fetch(BY_CLASS)], truth)
            statement = await client.prepare("SELECT count(*) AS n FROM adult WHERE age >= $1 AND sex = $2")
            assert [a.type.name for a in [*statement.get_attributes()]] == ["int8"]
            assert [p.name for p in statement.get_parameters()] == ["int4", "text"]
            first = await statement.fetchval(40, "Male")
            assert await statement.fetchval(40, "Male") == first
            assert abs(first - 10_069) < 300
            async with client.transaction():
                cursor = await client.cursor("SELECT race, count(*) FROM adult GROUP BY race ORDER BY 1")
                assert len([*(await cursor.fetch(2)), *(await cursor.fetch(9))]) == 5
            with pytest.raises(asyncpg.PostgresError) as refused:
                await client.fetch("SELECT * FROM adult")
            assert refused.value.sqlstate == "DP004"
        finally:
            await client.close()

    asyncio.run(ask())


def test_asyncpg_pool(served: Served) -> None:
    """A connection that goes back to the pool is reset, and its next user finds the policy's settings."""

    async def ask() -> list[str]:
        pool = asyncpg.create_pool(
            host="127.0.0.1", port=served.port, user="ann", password=PASSWORD, database="adult", min_size=1, max_size=1
        )
        found = []
        async with pool:
            for _ in range(2):
                async with pool.acquire() as client:
                    found.append(str(await client.fetchval("SHOW hush.epsilon")))
                    await client.execute("SET hush.epsilon = 0.125")
                    assert await client.fetchval("SELECT count(*) FROM adult WHERE age >= 40") > 0
        return found

    first, second = asyncio.run(ask())
    assert first == second != "0.125"


def test_sqlalchemy(served: Served, truth: Truth) -> None:
    url = f"postgresql+psycopg://ann:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{served.port}/adult"
    engine = create_engine(url)
    adult = Table("adult", MetaData(), Column("class", Text), Column("age", Integer), Column("hours_per_week", Integer))
    question = (
        select(adult.c["class"], func.count().label("n"), func.avg(adult.c.age), func.sum(adult.c.hours_per_week))
        .where(adult.c.age.in_(range(17, 91)))
        .group_by(adult.c["class"])
        .order_by(func.count().desc())
    )
    with engine.connect() as client:
        assert is_right([tuple(r) for r in client.execute(question)], truth)
        reflected = Table("adult", MetaData(), autoload_with=client)
        assert str(reflected.c.age.type) == "INTEGER"
        named = select(func.count()).select_from(adult).where(adult.c.age.between(30, 40), adult.c["class"] == ">50K")
        assert client.execute(named).scalar_one() > 1000
    engine.dispose()


def test_pg_dump_writes_the_schema(served: Served) -> None:
    """The wheel's, which is as new as the public server. Tables have no rows there to dump."""
    done = subprocess.run(
        [str(wheel_directory()[0] / "pg_dump"), "--schema-only", "-h", "127.0.0.1", "-p", str(served.port), "-U", "ann",
         "adult"],
        env={**os.environ, "PGPASSWORD": PASSWORD, "LC_ALL": "C.UTF-8"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "CREATE TABLE public.adult (" in done.stdout


def test_psql(served: Served) -> None:
    beside = wheel_directory()[0] / "psql"
    psql = str(beside) if beside.is_file() else shutil.which("psql")
    if psql is None:
        pytest.skip("no psql program here")
    script = "\n".join((BY_CLASS + ";", "\\d adult", "\\gdesc", "SELECT 1 FROM adult HAVING count(*) > 1 \\gdesc", ""))
    done = subprocess.run(
        [psql, "-X", "-A", "-h", "127.0.0.1", "-p", str(served.port), "-U", "ann", "adult"],
        env={**os.environ, "PGPASSWORD": PASSWORD, "LC_ALL": "C.UTF-8"}, input=script, capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("class|count|avg|sum\n<=50K|")
    assert "hours_per_week|integer" in done.stdout
    assert "?column?|integer" in done.stdout
    assert "NOTICE:  charged epsilon 0.5" in done.stderr
    assert "; left: user " in done.stderr
