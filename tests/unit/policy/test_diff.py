"""Does a change of a policy say what it opens and what it closes?"""

from __future__ import annotations

import pytest

from proxy.policy.diff import Change, diff
from proxy.policy.load import load_policy
from proxy.policy.model import Policy

TEXT = """
version: 1
dataset: shop
source: {engine: duckdb, path: shop.duckdb, data_version: a}
privacy: {unit: customer, delta: 1e-6}
budgets: {dataset: {epsilon: 20}}
tables:
  users:
    unit: user_id
    unit_unique: true
    columns:
      user_id: {type: integer, key: true}
      age: {type: integer, bounds: [0, 110]}
      plan: {type: text, values: [free, pro]}
      city: {type: text}
      note: {type: text, hidden: true}
  orders:
    unit: user_id
    max_rows_per_unit: 60
    joins: {user_id: users.user_id}
    columns:
      order_id: {type: bigint}
      user_id: {type: integer, key: true}
      amount: {type: numeric, bounds: [0, 9]}
  stores:
    public: true
    columns: {name: {type: text}}
"""


def _policy(text: str) -> Policy:
    return load_policy(text, filename="shop.yaml", environment={})


def _changes(*edits: tuple[str, str]) -> tuple[Change, ...]:
    text = TEXT
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return diff(_policy(TEXT), _policy(text))


_MONTHLY = "refresh: month, acknowledge_lifetime_loss: true"
_AGE = "age: {type: integer, bounds: [0, 110]}"
_PLAN = "plan: {type: text, values: [free, pro]}"
_STORES = "    public: true\n    columns: {name: {type: text}}"
_OWNED_STORES = "    unit: no\n    unit_unique: true\n    columns: {no: {type: integer}, name: {type: text}}"
_ORDERS = """    unit: user_id
    max_rows_per_unit: 60
    joins: {user_id: users.user_id}
    columns:
      order_id: {type: bigint}
      user_id: {type: integer, key: true}
"""
_CASES = (
    # the promise and the accounts
    ("delta: 1e-6", "delta: 1e-5", "opens privacy.delta"),
    ("delta: 1e-6", "delta: 1e-7", "closes privacy.delta"),
    ("unit: customer,", "unit: customer, group_size: 2,", "closes privacy.group_size"),
    ("unit: customer,", "unit: customer, neighbors: replace_one,", "closes privacy.neighbors"),
    ("unit: customer,", "unit: customer, time_grid: 0,", "opens privacy.time_grid"),
    ("unit: customer,", "unit: customer, raw_select: empty,", "changes privacy.raw_select"),
    ("unit: customer,", "unit: person,", "changes privacy.unit"),
    ("unit: customer,", "unit: customer, accounting: zcdp, query_epsilon: 1,", "changes privacy.query_epsilon"),
    ("epsilon: 20", "epsilon: 21", "opens budgets.dataset"),
    ("{epsilon: 20}", "{epsilon: 20}, user: {epsilon: 3}", "closes budgets.user"),
    ("{epsilon: 20}", "{epsilon: 20, questions: 9}", "changes budgets"),
    ("{epsilon: 20}", f"{{epsilon: 2, {_MONTHLY}}}", "opens budgets.dataset"),
    ("dataset: shop\n", "dataset: other\n", "opens dataset"),
    ("shop.duckdb", "other.duckdb", "changes source"),
    ("data_version: a", "data_version: b", "changes source.data_version"),
    ("version: 1\n", "version: 1\naccess: {users_file: u.yaml}\n", "changes access.users_file"),
    ("version: 1\n", "version: 1\nlimits: {statement_timeout: 5s}\n", "changes limits.statement_timeout"),
    # tables
    ("  stores:\n    public: true\n    columns: {name: {type: text}}\n", "", "closes tables.stores"),
    ("  stores:\n", "  more: {public: true, columns: {a: {type: text}}}\n  stores:\n", "opens tables.more"),
    (_STORES, _OWNED_STORES, "closes tables.stores.public"),
    (_ORDERS, "    public: true\n    columns:\n      order_id: {type: bigint}\n", "opens tables.orders.public"),
    ("    unit: user_id\n    max_rows_per_unit: 60", "    unit: {via: users, on: user_id}\n    max_rows_per_unit: 60",
     "changes tables.orders.unit"),
    ("    max_rows_per_unit: 60", "    max_rows_per_unit: 6", "changes tables.orders.max_rows_per_unit"),
    ("    max_rows_per_unit: 60", "    max_rows_per_unit: 60\n    max_rows_per_group: 5",
     "changes tables.orders.max_rows_per_group"),
    ("    max_rows_per_unit: 60", "    unit_unique: true", "changes tables.orders.unit_unique"),
    ("    unit_unique: true", "    max_rows_per_unit: 2", "changes tables.users.unit_unique"),
    ("    max_rows_per_unit: 60", "    max_rows_per_unit: 60\n    unit_filter: allow",
     "opens tables.orders.unit_filter"),
    ("    unit_unique: true", "    unit_unique: true\n    unit_constant: [plan]", "changes tables.users.unit_constant"),
    ("    public: true", "    public: true\n    relation: main.shops", "changes tables.stores.relation"),
    ("    public: true", "    public: true\n    comment: Shops.", "changes tables.stores.comment"),
    ("    joins: {user_id: users.user_id}\n", "", "closes tables.orders.joins.user_id"),
    # columns
    ("      city: {type: text}\n", "", "closes tables.users.columns.city"),
    ("      city: {type: text}\n", "      city: {type: text}\n      mail: {type: text}\n",
     "opens tables.users.columns.mail"),
    ("      city: {type: text}\n", "      city: {type: text}\n      mail: {type: text, hidden: true}\n",
     "closes tables.users.columns.mail"),
    ("{type: text, hidden: true}", "{type: text}", "opens tables.users.columns.note.hidden"),
    ("order_id: {type: bigint}", "order_id: {type: bigint, key: true}", "closes tables.orders.columns.order_id.key"),
    ("order_id: {type: bigint}", "order_id: {type: integer}", "changes tables.orders.columns.order_id.type"),
    (_AGE, "age: {type: integer, bounds: [0, 99]}", "changes tables.users.columns.age.bounds"),
    (_AGE, "age: {type: integer}", "changes tables.users.columns.age"),
    (_AGE, "age: {type: integer, bounds: [0, 110], nullable: false}", "changes tables.users.columns.age.nullable"),
    ("bounds: [0, 9]", "bounds: [0, 9], sum_bounds: [0, 50]", "changes tables.orders.columns.amount.sum_bounds"),
    (_PLAN, "plan: {type: text, values: [free, pro, team]}", "opens tables.users.columns.plan.values"),
    (_PLAN, "plan: {type: text, values: [free]}", "closes tables.users.columns.plan.values"),
    (_PLAN, "plan: {type: text, values: [pro, free]}", "changes tables.users.columns.plan.values"),
    ("city: {type: text}", "city: {type: text, values: [Bern]}", "opens tables.users.columns.city"),
    ("city: {type: text}", "city: {type: text, case_blind: true}", "changes tables.users.columns.city.case_blind"),
)  # fmt: skip


_MORE = "  more: {public: true, columns: {a: {type: text}}}\n  stores:\n"
_AGE_LAST = f"      {_PLAN}\n      {_AGE}\n"
_SPOKEN = (
    ("  stores:\n", _MORE, "opens tables.more",
     "a new table with 1 column to ask about; its rows are shown to everybody, exactly and free"),
    ("      city: {type: text}\n", "      city: {type: text}\n      no: {type: integer, key: true}\n",
     "opens tables.users.columns.no", "a new column, which may only be joined on"),
    (_AGE, "age: {type: integer, values: [1, 2]}", "changes tables.users.columns.age",
     "2 values listed, no more [0, 110]: other values count, other groups are public"),
    (_AGE, "age: {type: integer}", "changes tables.users.columns.age",
     "no more [0, 110]: no sums, averages and quantiles, and any value may be a group, if enough units are in it"),
    ("city: {type: text}", "city: {type: text, values: [Bern]}", "opens tables.users.columns.city",
     "1 value listed, and public: all its groups may be asked for"),
    (f"      {_AGE}\n      {_PLAN}\n", _AGE_LAST, "changes tables.users.columns",
     "they stand in another order, as clients see them"),
    ("bounds: [0, 9]", "bounds: [0, 9], sum_bounds: [0, 50]", "changes tables.orders.columns.amount.sum_bounds",
     "[0, 50], where no bounds were: the sum of a unit beyond counts as the end"),
    ("unit: customer,", "unit: customer, raw_select: empty,", "changes privacy.raw_select",
     "rows that are asked for themselves are no error, there are none"),
    ("unit: customer,", "unit: customer, raw_select: made_up,", "changes privacy.raw_select",
     "rows that are asked for themselves are made up from this policy, with a notice that says so"),
    ("unit: customer,", "unit: customer, profile: charged,", "closes privacy.profile",
     "what profiles tell is charged to each login and session that is told"),
    ("version: 1\n", "version: 1\nlimits: {statement_timeout: 5s}\n", "changes limits.statement_timeout",
     "60 s becomes 5 s"),
)  # fmt: skip


@pytest.mark.parametrize("old, new, expected, words", _SPOKEN)
def test_a_change_is_said_in_words_that_are_true_of_it(old: str, new: str, expected: str, words: str) -> None:
    found = [(f"{c.effect.value} {c.where}", c.words) for c in _changes((old, new)) if c.where != "policy"]
    assert found == [(expected, words)]


_FAR = "the delta of unlisted groups counts as often as a group of that size is shown, which is far more"
_REFUSED = "refused where anything was promised before; give the dataset a new name, or write customer here"
_ACKNOWLEDGED = "acknowledged; what was spent stays spent, and nothing of it was released for this unit"
_SPENT = (
    ("unit: customer,", "unit: customer, group_size: 5,", "changes privacy", f"what was spent counts 25 times; {_FAR}"),
    ("unit: customer,", "unit: customer, group_size: 2, neighbors: replace_one,", "changes privacy",
     f"what was spent counts 16 times; {_FAR}"),
    ("unit: customer,", "unit: customer, neighbors: replace_one,", "changes privacy", "what was spent counts 4 times"),
    ("unit: customer, delta: 1e-6", "unit: customer, accounting: pure", "changes privacy.accounting",
     "zcdp becomes pure: refused once anything was spent: rho has no epsilon without a delta"),
    ("unit: customer,", "unit: person,", "changes privacy.unit_changed_from",
     f"The unit was customer and is person now: {_REFUSED}"),
    ("unit: customer,", "unit: person, unit_changed_from: person,", "changes privacy.unit_changed_from",
     f"The unit was customer and is person now: {_REFUSED}"),
    ("unit: customer,", "unit: person, unit_changed_from: customer,", "opens privacy.unit_changed_from",
     f"The unit was customer and is person now: {_ACKNOWLEDGED}"),
    ("    unit: user_id\n    max_rows_per_unit: 60", "    unit: order_id\n    max_rows_per_unit: 60",
     "changes privacy.unit_changed_from",
     f"Of rows of orders, the unit is user_id no more, but the unit is order_id: {_REFUSED}"),
)  # fmt: skip


@pytest.mark.parametrize("old, new, expected, words", _SPENT)
def test_a_change_says_what_it_does_to_what_was_spent(old: str, new: str, expected: str, words: str) -> None:
    assert (expected, words) in {(f"{c.effect.value} {c.where}", c.words) for c in _changes((old, new))}


def test_bounds_of_sums_that_go_are_no_bounds_any_more() -> None:
    bounded = _policy(TEXT.replace("bounds: [0, 9]", "bounds: [0, 9], sum_bounds: [0, 50]"))
    assert "no more [0, 50]: the sum of a unit is bounded by its rows alone" in {
        change.words for change in diff(bounded, _policy(TEXT))
    }


@pytest.mark.parametrize("old, new, expected", _CASES)
def test_a_change_says_which_way_it_goes(old: str, new: str, expected: str) -> None:
    found = {f"{c.effect.value} {c.where}" for c in _changes((old, new))}
    assert expected in found
    subject = ".".join(expected.split(" ")[1].split(".")[:2])  # whatever else follows is about the same table or key
    assert {w for w in found if not w.split(" ")[1].startswith((subject, "policy", "privacy"))} == set()


def test_the_same_policy_written_otherwise_is_no_change() -> None:
    assert _changes(("epsilon: 20", "epsilon: 20.0"), ("delta: 1e-6", "delta: 0.000001")) == ()


def test_words_are_for_people_and_hold_no_connection_string() -> None:
    old = _policy(TEXT.replace("engine: duckdb, path: shop.duckdb", "engine: postgres, dsn: 'host=a password=secret1'"))
    new = _policy(TEXT.replace("engine: duckdb, path: shop.duckdb", "engine: postgres, dsn: 'host=b password=secret2'"))
    text = " ".join(change.words for change in diff(old, new))
    assert "read from another place" in text
    assert "secret" not in text


def _spent(*edits: tuple[str, str]) -> dict[str, str]:
    """What becomes of what was spent, from the second policy to the first."""
    text = TEXT
    for old, new in edits:
        text = text.replace(old, new)
    return {c.where: c.words for c in diff(_policy(text), _policy(TEXT))}


def test_a_weaker_promise_lets_later_charges_count_more() -> None:
    words = _spent(("unit: customer,", "unit: customer, group_size: 5,"))["privacy"]
    assert words == "what was spent stays as it counts, and each new charge counts 25 times: accounts keep a promise"


def test_epsilon_of_pure_accounting_counts_once_for_each_unit() -> None:
    edits = ("unit: customer, delta: 1e-6", "unit: customer, accounting: pure")
    (change,) = (c for c in diff(_policy(TEXT.replace(*edits)), _policy(TEXT.replace(*edits).replace(
        "accounting: pure", "accounting: pure, group_size: 5"))) if c.where == "privacy")  # fmt: skip
    assert change.words == "what was spent counts 5 times"
    words = _spent(edits)["privacy.accounting"]
    assert words.endswith("zcdp: each release of epsilon e counts as rho e^2/2, after what a larger group makes of e")


def test_another_dataset_has_nothing_spent() -> None:
    words = _spent(("dataset: shop", "dataset: other"), ("unit: customer,", "unit: person, group_size: 5,"))
    assert words.keys() & {"privacy", "privacy.unit_changed_from"} == set()


def test_neighbors_and_group_sizes_that_reach_alike_change_nothing() -> None:
    words = _spent(("unit: customer,", "unit: customer, group_size: 2,"))
    assert "privacy" in words
    both = TEXT.replace("unit: customer,", "unit: customer, neighbors: replace_one,")
    two = TEXT.replace("unit: customer,", "unit: customer, group_size: 2,")
    assert "privacy" not in {c.where for c in diff(_policy(two), _policy(both))}
