"""A proxy over data of which a role may see a part: `parts` holds all, `cut` what the clerk may see and no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from tests import places
from tests.e2e import served
from tests.e2e.served import Served

#: Names of columns that the clerk must not hear of, and values of rows that it must not see.
SECRET = ("zz_income", "zz_shop", "zz_rent", "zz_code", "zz_age")
OUTSIDE = "elsewhere"
PEOPLE = 3000
_TABLES = """
tables:
  people:
    relation: {schema}.people
    unit: pid
    unit_unique: true
    joins: {{pid: visits.pid}}
    columns: {{pid: {{type: integer, key: true}}, age: {{type: integer, bounds: [0, 99]}}, city: {{type: text}},
              group: {{type: text, values: [a, b, {outside}]}}{income}}}
  visits:
    relation: {schema}.visits
    unit: pid
    joins: {{pid: people.pid, shop: shops.shop}}
    max_rows_per_unit: 4
    max_rows_per: {{kind: 4{per}}}
    columns: {{pid: {{type: integer, key: true}}, shop: {{type: integer}},
              kind: {{type: text, values: [x, y, {outside}]}}, minutes: {{type: integer, bounds: [0, 90]}},
              day: {{type: date, bounds: [2024-01-01, 2024-12-31]}}{zz_shop}}}
  shops:
    relation: {schema}.shops
    public: true
    columns: {{shop: {{type: integer}}, town: {{type: text}}{rent}}}
  told:
    relation: {schema}.told
    local: true
    columns: {{place: {{type: text, values: [n, s, {outside}], public: true}},
              smokes: {{type: boolean, randomized: {{truth: 0.5, yes: 0.5}}}}{code}}}
"""
_HEAD = """version: 1
dataset: {name}
source: {{engine: duckdb, path: all.duckdb, data_version: "1"}}
privacy: {{unit: person, delta: 1e-6, query_epsilon: 100, max_query_epsilon: 100, time_grid: 0ms, time_zone: UTC,
          raw_select: {raw}, tell_cut: false}}
budgets: {{dataset: {{epsilon: 1000000}}}}
access: {{users_file: {users}}}
"""
_DATA = f"""
create table people as select r::integer as pid, (20 + r % 60)::integer as age, 'city ' || r % 3 as city,
  case when r % 5 = 0 then '{OUTSIDE}' when r % 2 = 0 then 'a' else 'b' end as "group",
  (case when r % 5 = 0 then 90 else r % 50 end)::integer as zz_income from range({PEOPLE}) t(r);
create table visits as select (r % {PEOPLE})::integer as pid, (r % 4)::integer as shop,
  case when r % 7 in (0, 1) then '{OUTSIDE}' when r % 3 = 0 then 'x' else 'y' end as kind,
  (case when r % 7 in (0, 1) then 90 else r % 60 end)::integer as minutes,
  date '2024-01-01' + (r % 360)::integer as day,
  (case when r % 7 in (0, 1) then 3 else 1 + r % 2 end)::integer as zz_shop from range({4 * PEOPLE}) t(r);
create table shops as select r::integer as shop, 'town ' || r as town, (1000 + r)::integer as zz_rent
  from range(4) t(r);
create table told as select case when r % 5 = 0 then '{OUTSIDE}' when r % 2 = 0 then 'n' else 's' end as place,
  r % 3 = 0 as smokes, (case when r % 5 = 0 then 9 else 1 end)::integer as zz_code from range({PEOPLE}) t(r);
create schema part;
create table part.people as select pid, age, city, "group" from people where zz_income < 60;
create table part.visits as select pid, shop, kind, minutes, day from visits where zz_shop in (1, 2);
create table part.shops as select shop, town from shops;
create table part.told as select place, smokes from told where zz_code = 1;
"""
CLERK = (
    "columns: {people: [pid, age, city, group], visits: [pid, shop, kind, minutes, day], shops: [shop, town],"
    " told: [place, smokes]}, rows: {people: 'zz_income < 60', visits: 'zz_shop IN (1, 2)', told: 'zz_code = 1'},"
    " settings: {hush.digits: all}"
)


def policies(folder: Path, raw: str = "refuse") -> list[Path]:
    """Both policies, their data and their logins: eve sees all, the clerk a part of `parts` and all of `cut`."""
    with duckdb.connect(str(folder / "all.duckdb")) as data:
        data.execute(_DATA)
    served.write_users(folder / "users.yaml", {"clerk": "clerk", "eve": "analyst", "boss": "boss"}, CLERK)
    served.write_users(folder / "cut.yaml", {"clerk": "clerk"}, "settings: {hush.digits: all}")
    whole = _TABLES.format(
        schema="main", outside=OUTSIDE, income=", zz_income: {type: integer, bounds: [0, 99]}",
        zz_shop=", zz_shop: {type: integer, bounds: [1, 3]}", rent=", zz_rent: {type: integer}",
        per=", zz_shop: 4", code=", zz_code: {type: integer, public: true, bounds: [0, 9]}",
    )  # fmt: skip
    part = _TABLES.format(schema="part", outside=OUTSIDE, income="", zz_shop="", rent="", per="", code="")
    made = []
    for name, users, tables in (("parts", "users.yaml", whole), ("cut", "cut.yaml", part)):
        made.append(folder / f"{name}.policy.yaml")
        made[-1].write_text(_HEAD.format(name=name, users=users, raw=raw) + tables)
    return made


@contextmanager
def serving(folder: Path, raw: str = "refuse") -> Iterator[Served]:
    """Both datasets, served."""
    with served.serving(folder, policies(folder, raw), places.UNCOUNTED) as running:
        yield running
