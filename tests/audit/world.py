"""Which data does the auditor ask about? The same tables with and without a person, over and over.

Every place of `people`, `visits` and `tags` is a pair of neighbours of its own: with a person who weighs as much as the
bounds let anybody, and without. One answer by place is thus as many answers about neighbours as there are places.
`lone` is one pair. `named` has one key for each person, whom it would show.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from tests.e2e.served import write_users, write_yaml

PLACES = 4_000
VISITORS, PLACES_OF_ONE = 10_000, 4  # persons in `visits`, and places of each
TAGS_OF_ONE = 3  # in `tags`
KEYS = 20_000
TOP, MIDDLE = 199, 180  # of the scores: that of the person, and that of the one in the middle of the others
ON_A_SIDE = 20  # of those; in `votes`, for each of two values
MODES = ("zcdp", "pure")
WITH, WITHOUT = "with", "without"
DELTA = 0.01
KEYS_EPSILON = 1.0

_CREATE = f"""
create table lone as select i::integer as pid from range(20) t(i);
create table people as select i::integer as pid, i::integer as place, 0.0::double as v from range({PLACES}) t(i);
create table scores as select (i * 100 + j)::integer as pid, i::integer as place,
  case when j < {ON_A_SIDE} then 0 when j > {ON_A_SIDE} then {TOP} else {MIDDLE} end::integer as score
  from range({PLACES}) t(i), range({2 * ON_A_SIDE + 1}) u(j);
create table votes as select (i * 100 + j)::integer as pid, i::integer as place, (j % 2)::integer as vote
  from range({PLACES}) t(i), range({2 * ON_A_SIDE}) u(j);
create table visits as select i::integer as pid, i::integer as place from range({PLACES_OF_ONE * VISITORS}) t(i);
create table tags as select i::integer as pid, i::integer as place, 1000 as tag from range({PLACES}) t(i);
create table named as select i::integer as pid, 'everybody' as name from range(1000) t(i);
"""
_PERSON = f"""
insert into lone values (1000000);
insert into people select 1000000 + i, i, 10.0 from range({PLACES}) t(i);
insert into scores select 1000000 + i, i, {TOP} from range({PLACES}) t(i);
insert into votes select 1000000 + i, i, 1 from range({PLACES}) t(i);
insert into visits select 1000000 + i // {PLACES_OF_ONE}, i from range({PLACES_OF_ONE * VISITORS}) t(i);
insert into tags select 1000000 + i // {TAGS_OF_ONE}, i // {TAGS_OF_ONE}, i % {TAGS_OF_ONE}
  from range({TAGS_OF_ONE * PLACES}) t(i);
insert into named select 1000000 + i, 'name ' || i from range({KEYS}) t(i);
"""


def write_world(folder: Path) -> list[Path]:
    """Data, logins and policies: `zcdp_with`, ... and `keys_with`."""
    for side in (WITH, WITHOUT):
        with duckdb.connect(str(folder / f"{side}.duckdb")) as connection:
            connection.execute(_CREATE + (_PERSON if side == WITH else ""))
    write_users(folder / "users.yaml", {"ann": "analyst"})
    policies = {
        f"{mode}_{side}": policy(mode, side, {"epsilon": 1_000_000}) for mode in MODES for side in (WITH, WITHOUT)
    }
    policies["keys_with"] = policy("zcdp", WITH, {"epsilon": KEYS_EPSILON})
    return [write_yaml(folder / f"{n}.yaml", {**document, "dataset": n}) for n, document in policies.items()]


def policy(mode: str, side: str, dataset: Mapping[str, float]) -> dict[str, object]:
    delta = {"delta": DELTA if dataset["epsilon"] < 100 else 1e-6} if mode == "zcdp" else {}
    return {
        "version": 1,
        "source": {"engine": "duckdb", "path": f"{side}.duckdb", "data_version": "1"},
        "privacy": {"unit": "person", "accounting": mode, "max_query_epsilon": 100, "time_grid": 0, **delta},
        "budgets": {"dataset": dataset},
        "limits": {"statement_timeout": "10min"},  # a busy machine is no loss of privacy
        "tables": _tables(),
        "access": {"users_file": "users.yaml"},
    }


def _tables() -> dict[str, object]:
    pid = {"type": "integer", "key": True}
    here = {"type": "integer", "bounds": [0, PLACES - 1], "nullable": False}
    once = {"unit": "pid", "unit_unique": True}
    return {
        "lone": {**once, "columns": {"pid": pid}},
        "people": {**once, "columns": {
            "pid": pid, "place": here,
            "v": {"type": "double precision", "bounds": [0, 10], "nullable": False},
        }},
        "scores": {**once, "columns": {
            "pid": pid, "place": here, "score": {"type": "integer", "bounds": [0, TOP], "nullable": False},
        }},
        "votes": {**once, "columns": {
            "pid": pid, "place": here, "vote": {"type": "integer", "bounds": [0, 1], "nullable": False},
        }},
        "visits": {
            "unit": "pid", "max_rows_per_unit": PLACES_OF_ONE, "max_rows_per_group": 1,
            "max_groups_per_unit": PLACES_OF_ONE,
            "columns": {"pid": pid, "place": {**here, "bounds": [0, PLACES_OF_ONE * VISITORS - 1]}},
        },
        "tags": {
            "unit": "pid", "max_rows_per_unit": TAGS_OF_ONE, "max_rows_per_group": TAGS_OF_ONE,
            "max_groups_per_unit": 1,
            "columns": {"pid": pid, "place": here, "tag": {"type": "integer"}},
        },
        "named": {**once, "columns": {"pid": pid, "name": {"type": "text"}}},
    }  # fmt: skip
