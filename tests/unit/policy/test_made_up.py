"""Made-up rows follow from the policy, and their keys join along what it declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from proxy.policy.load import load_policy
from proxy.policy.made_keys import ROWS_OF_A_UNIT, UNITS
from proxy.policy.made_up import DrawnFrom, MadeColumn, OwnValues, made_up
from proxy.policy.model import Policy, Table
from tests.unit.sql.corpus import policy

SHOP = """
version: 1
dataset: shop
source: {engine: duckdb, path: shop.duckdb, data_version: a}
privacy: {unit: customer}
budgets: {dataset: {epsilon: 9}}
tables:
"""


def of(tables: str) -> Policy:
    return load_policy(SHOP + tables, filename="shop.yaml", environment={})


def made(served: Policy, name: str, visible: Mapping[str, Table] | None = None) -> dict[str, MadeColumn]:
    return {m.column.name: m for m in made_up(served, served.tables if visible is None else visible, name)}


def test_tables_of_units_have_a_row_for_each_and_others_three() -> None:
    assert (UNITS, ROWS_OF_A_UNIT) == (100, 3)
    for name, rows in (("users", 100), ("orders", 300), ("items", 300)):
        assert {len(m.values) for m in made(policy(), name).values()} == {rows}


def test_keys_join_and_agree_along_every_path() -> None:
    users, orders, items = (made(policy(), name) for name in ("users", "orders", "items"))
    assert len(set(users["user_id"].values)) == 100
    assert set(Counter(orders["user_id"].values).values()) == {3}
    assert set(orders["user_id"].values) == set(users["user_id"].values)
    assert len(set(orders["order_id"].values)) == 300
    assert set(items["order_id"].values) == set(orders["order_id"].values)


def test_keys_of_a_public_table_are_drawn_from_its_rows() -> None:
    source = made(policy(), "orders")["store_id"].source
    assert isinstance(source, DrawnFrom)
    assert (source.table, source.column, len(source.places)) == ("stores", "store_id", 300)
    hidden = {n: t for n, t in policy().tables.items() if n != "stores"}
    assert made(policy(), "orders", hidden)["store_id"].source == OwnValues()


def test_values_honour_what_is_declared() -> None:
    users = made(policy(), "users")
    assert set(users["plan"].values) - {None} == {"free", "pro", "team"}
    assert all(v is None or 0 <= int(v) <= 110 for v in users["age"].values)
    assert None not in users["kids"].values, "it is declared never to be NULL"
    assert None in users["nick"].values
    assert None not in users["user_id"].values


@pytest.mark.parametrize("change", [
    {"data_version": "another"}, {"digest": "0" * 64},
])  # fmt: skip
def test_another_policy_or_version_gives_other_rows(change: dict[str, str]) -> None:
    before, after = made(policy(), "users"), made(replace(policy(), **change), "users")  # type: ignore[arg-type]  # texts
    assert before != after
    assert before["user_id"] == after["user_id"], "keys are counted"


def test_tables_of_one_policy_have_unlike_rows() -> None:
    one = of("  a: {unit: id, unit_unique: true, columns: {id: {type: integer}, x: {type: integer}}}\n"
             "  b: {unit: id, unit_unique: true, columns: {id: {type: integer}, x: {type: integer}}}\n")  # fmt: skip
    assert made(one, "a")["x"].values != made(one, "b")["x"].values


def test_hidden_columns_and_tables_leave_no_trace() -> None:
    served = of("  a: {unit: secret_name, columns: {secret_name: {type: text, hidden: true}, x: {type: text}}}\n"
                "  b: {unit: person, columns: {person: {type: text}}}\n")  # fmt: skip
    assert set(made(served, "a")) == {"x"}
    assert "secret" not in str(made(served, "b"))
    alone = made(served, "b", {"b": served.tables["b"]})
    assert alone["person"].values == made(served, "b")["person"].values


def test_what_is_constant_for_a_unit_is_the_same_in_its_rows() -> None:
    served = of("  a: {unit: id, unit_constant: [x], columns: {id: {type: integer}, x: {type: integer}}}\n")
    rows = made(served, "a")
    pairs = set(zip(rows["id"].values, rows["x"].values, strict=True))
    assert len(pairs) == len(set(rows["id"].values)) == 100


def test_no_more_rows_than_the_policy_lets_a_unit_have() -> None:
    served = of("  a: {unit: id, max_rows_per_unit: 2, columns: {id: {type: uuid}}}\n")
    assert set(Counter(made(served, "a")["id"].values).values()) == {2}


def test_few_keys_make_few_rows() -> None:
    served = of("  a: {unit: id, unit_unique: true, columns: {id: {type: boolean}}}\n"
                "  b: {unit: id, columns: {id: {type: boolean}}}\n")  # fmt: skip
    assert made(served, "a")["id"].values == ("false", "true")
    assert Counter(made(served, "b")["id"].values) == {"false": 3, "true": 3}


_PATH = """
  a: {unit: id, unit_unique: true, joins: {region: regions.code}, columns: {id: {type: text}, region: {type: text}}}
  b:
    unit: {via: a, on: owner}
    unit_constant: [colour]
    columns: {owner: {type: text}, colour: {type: text}, line: {type: integer}}
    joins: {owner: a.id}
  regions: {public: true, columns: {code: {type: text}}}
"""


def test_units_of_paths_join() -> None:
    served = of(_PATH)
    a, b = (made(served, name) for name in "ab")
    assert set(b["owner"].values) == set(a["id"].values)
    assert len(set(zip(b["owner"].values, b["colour"].values, strict=True))) == 100
    assert made(served, "a")["region"].source != OwnValues()
    unseen = made(served, "b", {"b": served.tables["b"]})
    assert len(unseen["owner"].values) == 300


def test_units_of_several_columns_join() -> None:
    served = of("  c: {unit: [x, y], columns: {x: {type: integer}, y: {type: text}}}\n"
                "  d: {unit: [x, y], unit_unique: true, columns: {x: {type: integer}, y: {type: text}}}\n")  # fmt: skip
    pairs = [set(zip(t["x"].values, t["y"].values, strict=True)) for t in (made(served, "c"), made(served, "d"))]
    assert pairs[0] == pairs[1]
    assert len(pairs[0]) == 100


def test_rows_that_are_units_themselves() -> None:
    served = load_policy(
        SHOP.replace("customer", "row") + "  a: {columns: {x: {type: date, bounds: [2024-01-01, 2024-02-01]}}}\n",
        filename="shop.yaml", environment={},
    )  # fmt: skip
    assert len(made(served, "a")["x"].values) == 100


def test_columns_with_unlike_lists_do_not_join_and_keep_to_them() -> None:
    served = of(
        "  a: {unit: id, unit_unique: true, columns: {id: {type: integer}, k: {type: integer, values: [1, 2]}}}\n"
        "  b: {unit: id, joins: {k: a.k}, columns: {id: {type: integer}, k: {type: integer, values: [7, 8]}}}\n"
    )
    assert set(made(served, "b")["k"].values) - {None} == {"7", "8"}
    assert set(made(served, "a")["k"].values) - {None} == {"1", "2"}


@pytest.mark.parametrize("own, public, is_drawn", [
    ("bigint", "integer", True), ("integer", "bigint", False), ("text", "varchar", True), ("numeric", "integer", True),
    ("integer", "numeric", False),
])  # fmt: skip
def test_only_what_a_column_can_hold_is_drawn(own: str, public: str, is_drawn: bool) -> None:
    served = of(f"  a: {{unit: id, joins: {{k: p.k}}, columns: {{id: {{type: integer}}, k: {{type: {own}}}}}}}\n"
                f"  p: {{public: true, columns: {{k: {{type: {public}}}}}}}\n")  # fmt: skip
    assert isinstance(made(served, "a")["k"].source, DrawnFrom) is is_drawn


def test_a_unit_that_a_public_table_lists_is_drawn_the_same_everywhere() -> None:
    served = of("  a: {unit: id, unit_unique: true, joins: {id: p.id}, columns: {id: {type: integer}}}\n"
                "  b: {unit: id, columns: {id: {type: integer}}}\n"
                "  p: {public: true, columns: {id: {type: integer}}}\n")  # fmt: skip
    a, b = made(served, "a")["id"].source, made(served, "b")["id"].source
    assert isinstance(a, DrawnFrom)
    assert isinstance(b, DrawnFrom)
    assert a.places == tuple(range(100))
    assert Counter(b.places) == dict.fromkeys(range(100), 3)
