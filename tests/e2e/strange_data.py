"""Which databases does a new administrator meet that nobody made for hushql?

Baseball, as a DuckDB file without a key; a music shop, as PostgreSQL statements with keys and names in mixed case; and
flights, as Parquet. All made up, the same each time.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

PLAYERS, BATTING = 20_000, 100_000

_BASEBALL = f"""
CREATE TABLE People AS SELECT
  'p' || lpad(i::text, 5, '0') AS playerID, 1850 + (i * 7) % 150 AS birthYear, 1 + i % 12 AS birthMonth,
  CASE WHEN i % 9 = 0 THEN 'D.R.' WHEN i % 11 = 0 THEN 'CAN' ELSE 'USA' END AS birthCountry,
  'City ' || (i % 700) AS birthCity, 'First' || (i % 300) AS nameFirst, 'Last' || (i % 5000) AS nameLast,
  150 + (i * 13) % 120 AS weight, 62 + (i * 5) % 20 AS height,
  CASE WHEN i % 20 = 0 THEN NULL WHEN i % 3 = 0 THEN 'L' ELSE 'R' END AS bats,
  CASE WHEN i % 4 = 0 THEN 'L' ELSE 'R' END AS throws,
  DATE '1871-05-04' + ((i * 37) % 54000)::int AS debut
FROM range({PLAYERS}) t(i);
CREATE TABLE Batting AS SELECT
  'p' || lpad(((i * i * 31 + i) % {PLAYERS})::text, 5, '0') AS playerID, (1871 + i % 150)::smallint AS yearID,
  1 + i % 2 AS stint, 'T' || lpad((i % 149)::text, 2, '0') AS teamID,
  CASE WHEN i % 2 = 0 THEN 'NL' ELSE 'AL' END AS lgID, i % 163 AS G, (i * 3) % 700 AS AB, (i * 5) % 190 AS R,
  (i * 7) % 260 AS H, (i * 11) % 70 AS "2B", (i * 13) % 70 AS HR, (i * 17) % 190 AS RBI
FROM range({BATTING}) t(i);
CREATE TABLE Salaries AS SELECT
  (1985 + i % 32)::smallint AS yearID, 'T' || lpad((i % 149)::text, 2, '0') AS teamID,
  CASE WHEN i % 2 = 0 THEN 'NL' ELSE 'AL' END AS lgID,
  'p' || lpad(((i * 17) % {PLAYERS})::text, 5, '0') AS playerID, (60000 + (i * 9973) % 30000000)::double AS salary
FROM range(26000) t(i);
CREATE TABLE Teams AS SELECT
  (1871 + i % 150)::smallint AS yearID, 'T' || lpad((i % 149)::text, 2, '0') AS teamID, 'Team ' || (i % 149) AS name,
  i % 110 AS W, (i * 7) % 110 AS L, (i * 9973) % 3500000 AS attendance
FROM range(2900) t(i);
"""

MUSIC = """
CREATE TABLE "Artist" ("ArtistId" int PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "Album" ("AlbumId" int PRIMARY KEY, "Title" varchar(160) NOT NULL,
  "ArtistId" int NOT NULL REFERENCES "Artist");
CREATE TABLE "Genre" ("GenreId" int PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "Track" ("TrackId" int PRIMARY KEY, "Name" varchar(200) NOT NULL, "AlbumId" int REFERENCES "Album",
  "GenreId" int REFERENCES "Genre", "Milliseconds" int NOT NULL, "UnitPrice" numeric(10,2) NOT NULL);
CREATE TABLE "Employee" ("EmployeeId" int PRIMARY KEY, "LastName" varchar(20) NOT NULL, "Title" varchar(30),
  "ReportsTo" int REFERENCES "Employee", "BirthDate" timestamp, "Country" varchar(40));
CREATE TABLE "Customer" ("CustomerId" int PRIMARY KEY, "FirstName" varchar(40) NOT NULL, "Country" varchar(40),
  "Email" varchar(60) NOT NULL, "SupportRepId" int REFERENCES "Employee");
CREATE TABLE "Invoice" ("InvoiceId" int PRIMARY KEY, "CustomerId" int NOT NULL REFERENCES "Customer",
  "InvoiceDate" timestamp NOT NULL, "BillingCountry" varchar(40), "Total" numeric(10,2) NOT NULL);
CREATE TABLE "InvoiceLine" ("InvoiceLineId" int PRIMARY KEY, "InvoiceId" int NOT NULL REFERENCES "Invoice",
  "TrackId" int NOT NULL REFERENCES "Track", "UnitPrice" numeric(10,2) NOT NULL, "Quantity" int NOT NULL);
INSERT INTO "Artist" SELECT i, 'Artist ' || i FROM generate_series(1, 300) i;
INSERT INTO "Album" SELECT i, 'Album ' || i, 1 + i % 300 FROM generate_series(1, 500) i;
INSERT INTO "Genre" SELECT i, 'Genre ' || i FROM generate_series(1, 25) i;
INSERT INTO "Track" SELECT i, 'Track ' || i, 1 + i % 500, 1 + i % 25, 100000 + (i * 7919) % 300000, 0.99
  FROM generate_series(1, 3500) i;
INSERT INTO "Employee" SELECT i, 'Name ' || i, 'Sales', CASE WHEN i > 1 THEN 1 END, '1970-01-01',
  'Canada' FROM generate_series(1, 8) i;
INSERT INTO "Customer" SELECT i, 'First ' || i, (ARRAY['USA', 'Canada', 'Brazil', 'France'])[1 + i % 4],
  'c' || i || '@example.org', 3 + i % 3 FROM generate_series(1, 6000) i;
INSERT INTO "Invoice" SELECT i, 1 + (i * 7) % 6000, timestamp '2021-01-01' + (i % 1800) * interval '1 day',
  (ARRAY['USA', 'Canada', 'Brazil', 'France'])[1 + i % 4], (i % 25) + 0.99 FROM generate_series(1, 42000) i;
INSERT INTO "InvoiceLine" SELECT i, 1 + i % 42000, 1 + (i * 11) % 3500, 0.99, 1 FROM generate_series(1, 90000) i;
"""

_FLIGHTS = """
SELECT 2013::bigint AS year, 1 + i % 12 AS month, 1 + i % 28 AS day, (i * 7) % 2400 AS dep_time,
  (i * 13) % 300 - 20 AS dep_delay, (i * 17) % 320 - 40 AS arr_delay,
  ['UA', 'AA', 'B6', 'DL', 'EV'][1 + i % 5] AS carrier, 1 + (i * 31) % 8000 AS flight,
  'N' || lpad((i % 4000)::text, 5, '0') AS tailnum, ['EWR', 'JFK', 'LGA'][1 + i % 3] AS origin,
  'D' || (i % 105) AS dest, 20 + (i * 3) % 670 AS air_time, 80 + (i * 11) % 4900 AS distance, i % 24 AS hour
FROM range(60000) t(i)
"""


def write_baseball(path: Path) -> None:
    """A DuckDB file with 20,000 people and 100,000 batting rows, without a declared key."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(_BASEBALL)


def write_baseball_files(folder: Path) -> tuple[Path, ...]:
    """The same as CSV files with headers; their names are those of the tables."""
    paths = []
    with duckdb.connect(":memory:") as connection:
        connection.execute(_BASEBALL)
        for name in ("People", "Batting"):
            paths.append(folder / f"{name}.csv")
            connection.execute(f"COPY {name} TO '{paths[-1]}' (header)")
    return tuple(paths)


def write_flights(path: Path) -> None:
    """A Parquet file of 60,000 flights of 4,000 aeroplanes."""
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY ({_FLIGHTS}) TO '{path}' (FORMAT parquet)")
