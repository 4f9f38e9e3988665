"""Does a policy say for whom it promises what, in a form that finds every other unit?"""

from __future__ import annotations

import pytest

from proxy.policy.load import load_policy
from proxy.policy.model import Neighbors, Policy, Promise
from proxy.policy.pledge import RowsOwner, changed_unit, pledge_of
from proxy.policy.problems import FileProblems

TEXT = """
version: 1
dataset: shop
source: {engine: duckdb, path: shop.duckdb, data_version: a}
privacy: {unit: customer, group_size: 3, neighbors: replace_one}
budgets: {dataset: {epsilon: 20}}
tables:
  users:
    unit: [country, id]
    unit_unique: true
    columns: {country: {type: text, key: true}, id: {type: integer, key: true}, plan: {type: text}}
  orders:
    relation: main.sales
    unit: [country, id]
    max_rows_per_unit: 60
    columns: {order_id: {type: integer, key: true}, country: {type: text, key: true}, id: {type: integer, key: true}}
  items:
    unit: {via: orders, on: order_id}
    max_rows_per_unit: 60
    columns: {order_id: {type: integer, key: true}, price: {type: integer, bounds: [0, 9]}}
  stores:
    public: true
    columns: {name: {type: text}}
"""
_FILES = "source: {engine: duckdb, files: {users: u.csv, orders: o.csv, items: i.csv, stores: s.csv}, data_version: a}"


def _policy(*edits: tuple[str, str]) -> Policy:
    text = TEXT
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return load_policy(text, filename="shop.yaml", environment={})


def _difference(*edits: tuple[str, str]) -> str:
    before = pledge_of(_policy())
    return changed_unit(before.unit, dict(before.owners), pledge_of(_policy(*edits)))


def test_a_pledge_holds_promise_unit_and_owners() -> None:
    found = pledge_of(_policy())
    assert (found.dataset, found.policy_digest, found.unit, found.changed_from) == (
        "shop", _policy().digest, "customer", "",
    )  # fmt: skip
    assert found.promise == Promise(3, Neighbors.REPLACE_ONE)
    assert found.promise.reach == 6
    own = RowsOwner("the unit is country, id")
    via = RowsOwner("the unit is found by order_id = order_id", ("table orders", "rows of main.sales"))
    assert found.owners == (
        ("rows of items", via),
        ("rows of main.sales", own),
        ("rows of users", own),
        ("table items", via),
        ("table orders", own),
        ("table users", own),
    )


_ITEMS = TEXT[TEXT.index("  items:") : TEXT.index("  stores:")]


@pytest.mark.parametrize(
    "edits",
    [
        (("plan: {type: text}", "plan: {type: text, values: [a]}"),),
        (("max_rows_per_unit: 60", "max_rows_per_unit: 5"),),
        (("epsilon: 20", "epsilon: 2"), ("data_version: a", "data_version: b")),
        (("group_size: 3", "group_size: 5"),),
        (("  orders:\n", "  sales:\n"), ("via: orders", "via: sales")),
        (("unit: [country, id]", "unit: [id, country]"),),
        (("relation: main.sales", "relation: main.all_sales"),),
        ((_ITEMS, ""),),
    ],
)  # fmt: skip
def test_edits_that_leave_the_unit_alone_are_none_of_it(edits: tuple[tuple[str, str], ...]) -> None:
    assert _difference(*edits) == ""


_VIA = "the unit is found by order_id = order_id in rows of main.sales"
_ORDER = "price: {type: integer, bounds: [0, 9]}"


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ((("unit: customer", "unit: family"),), "The unit was customer and is family now"),
        ((("unit: [country, id]", "unit: id"),),
         "Of rows of main.sales, the unit is country, id no more, but the unit is id"),
        ((("unit: [country, id]", "unit: id"), ("  orders:\n", "  sales:\n"), ("via: orders", "via: sales")),
         "Of rows of main.sales, the unit is country, id no more, but the unit is id"),
        ((("unit: [country, id]", "unit: id"), ("main.sales", "main.others"), ("  users:", "  people:")),
         "Of table orders, the unit is country, id no more, but the unit is id"),
        ((("on: order_id}", "on: price}\n    joins: {price: orders.order_id}"), (_ORDER, "price: {type: integer}")),
         f"Of rows of items, {_VIA} no more, but the unit is found by price = order_id in rows of main.sales"),
        ((("  orders:\n", "  sales:\n"), ("via: orders", "via: sales"), ("main.sales", "main.others")),
         f"Of rows of items, {_VIA} no more, but the unit is found by order_id = order_id in rows of main.others"),
    ],
)  # fmt: skip
def test_another_unit_is_found_whatever_else_is_renamed(edits: tuple[tuple[str, str], ...], said: str) -> None:
    assert _difference(*edits) == said


def test_files_are_known_by_their_table() -> None:
    edits = (
        ("source: {engine: duckdb, path: shop.duckdb, data_version: a}", _FILES),
        ("    relation: main.sales\n", ""),
    )
    assert {place.split(" ")[0] for place, _ in pledge_of(_policy(*edits)).owners} == {"table"}


def test_rows_that_stand_alone_are_units_of_their_own() -> None:
    text = """
version: 1
dataset: votes
source: {engine: duckdb, path: v.duckdb, data_version: a}
privacy: {unit: row, unit_changed_from: voter}
budgets: {dataset: {epsilon: 20}}
tables: {votes: {columns: {yes: {type: boolean}}}}
"""
    found = pledge_of(load_policy(text, filename="v.yaml", environment={}))
    assert (found.unit, found.changed_from) == ("row", "voter")
    assert found.owners == (
        ("rows of votes", RowsOwner("each row is a unit")),
        ("table votes", RowsOwner("each row is a unit")),
    )


def test_the_unit_that_is_given_up_is_a_word() -> None:
    with pytest.raises(FileProblems, match=r"privacy\.unit_changed_from: expected a word"):
        _policy(("unit: customer", "unit: customer, unit_changed_from: ' person'"))


def test_what_is_acknowledged_leaves_stored_answers() -> None:
    assert _policy(("unit: customer", "unit: customer, unit_changed_from: person")).digest == _policy().digest
