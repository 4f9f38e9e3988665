"""Which answers follow from which releases, and how noisy they are."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from proxy.analysis.analyse import Lowered
from proxy.plan.derive import derive
from proxy.plan.sets import SetsPlan
from proxy.policy.model import Bounded, Column, FromPolicy, Listed
from proxy.sqltypes import SqlType as T
from tests.unit.plan.shop import ORDERS, TABLES, USERS, any_plan, context, context_with_sums, plan

#: orders of which all rows of a unit count in each group, users with more keys
WIDE = replace(ORDERS, rows_per_group=FromPolicy(60), groups_per_unit=FromPolicy(60))
FLAGS = (
    Column(name="told", type=T.BOOL, domain=Listed((False, True)), nullable=False),
    Column(name="town", type=T.TEXT, domain=Listed(("a", "b")), case_blind=True),
    Column(name="grade", type=T.NUMERIC, domain=Listed((1, 2))),
)
SHOP = {**TABLES, "users": replace(USERS, columns=(*USERS.columns, *FLAGS)), "wide": replace(WIDE, name="wide")}
OF = replace(context(), tables=SHOP)

GIVEN = [
    # source, wanted, cells that are added up
    ("select plan, count(*) from users group by plan", "select count(*) from users", 2),
    ("select plan, count(*) from users group by plan", "select plan, count(*) from users group by plan", 1),
    ("select plan, told, count(*) from users group by 1, 2", "select told, plan, count(*) from users group by 1, 2", 1),
    ("select plan, told, count(*) from users group by 1, 2", "select told, count(*) from users group by 1", 2),
    ("select told, plan, count(*) from users group by 1, 2", "select count(*) from users where plan = 'pro'", 2),
    ("select plan, count(*) from users group by plan", "select count(*) from users where plan in ('pro')", 1),
    (
        "select plan, count(*) from users group by plan",
        "select plan, count(*) from users where plan in ('pro', 'x') group by 1",
        1,
    ),
    ("select told, count(*) from users group by told", "select count(*) from users where told", 1),
    ("select told, count(*) from users group by told", "select count(*) from users where not told", 1),
    ("select plan, count(*), sum(age) from users group by plan", "select plan, avg(age) from users group by plan", 1),
    ("select plan, avg(height) from users group by plan", "select sum(height), count(*) from users", 2),
    (
        "select plan, count(*), variance(height) from users group by plan",
        "select stddev_pop(height), avg(height) from users",
        2,
    ),
    ("select plan, count(*) from users where age > 3 group by plan", "select count(*) from users where 3 < age", 2),
    ("select age, count(*) from users group by age", "select count(*) from users where age in (1, 2, 3)", 3),
    ("select joined, count(*) from users group by joined", "select count(*) from users where joined = '2019-05-01'", 1),
    ("select status, count(*) from wide group by status", "select count(*) from wide", 3),
    (
        "select status, avg(amount) from orders group by status",
        "select status, sum(amount), count(amount) from orders group by 1",
        1,
    ),
]
NOT_GIVEN = [
    # source, wanted, why not
    ("select count(*) from users", "select plan, count(*) from users group by plan", "coarser"),
    ("select plan, count(*) from users group by plan", "select count(*) from users where age > 3", "other rows"),
    ("select plan, count(*) from users where age > 3 group by plan", "select count(*) from users", "fewer rows"),
    ("select plan, count(*) from users group by plan", "select count(*) from wide", "another table"),
    ("select plan, sum(height) from users group by plan", "select avg(height) from users", "no count"),
    (
        "select plan, count(*) from users group by plan",
        "select plan, count(DISTINCT age) from users group by plan",
        "a part",
    ),
    ("select city, count(*) from users group by city", "select count(*) from users", "private keys"),
    (
        "select plan, count(*) from users group by plan",
        "select plan, city, count(*) from users group by 1, 2",
        "private keys",
    ),
    (
        "select town, count(*) from users group by town",
        "select count(*) from users where town = 'A'",
        "compared as spelled",
    ),
    (
        "select grade, count(*) from users group by grade",
        "select count(*) from users where grade = 1",
        "compared as numeric",
    ),
    (
        "select age, count(*) from users group by age",
        "select count(*) from users where age = 3.5::float8",
        "compared as a double",
    ),
    ("select age, count(*) from users group by age", "select count(*) from users where age > 3", "not a list"),
    (
        "select age, count(*) from users group by age",
        "select count(*) from users where age = 700",
        "outside the domain",
    ),
    (
        "select status, count(*) from orders group by status",
        "select count(*) from orders",
        "rows of a group were bounded",
    ),
    (
        "select status, count(*) from orders group by status",
        "select count(*) from orders where status = 'paid'",
        "the same",
    ),
    (
        "select status, count(*), avg(amount) from orders group by status",
        "select status, avg(amount) from orders group by status",
        "other rows took their share",
    ),
    (
        "select status, count(distinct user_id) from wide group by status",
        "select count(distinct user_id) from wide",
        "units",
    ),
    (
        "select plan, told, count(*) from users group by 1, 2",
        "select plan, told, age, count(*) from users group by 1, 2, 3",
        "finer",
    ),
]


@pytest.mark.parametrize(("source", "wanted", "added"), GIVEN)
def test_an_answer_follows_from_a_release(source: str, wanted: str, added: int) -> None:
    made, asked = plan(source, OF), plan(wanted, OF)
    found = derive(asked, made, 1000)
    assert found is not None
    assert found.shown.added == added
    assert [key for key, _ in found.groups] == list(asked.public_keys)
    assert all(len(set(cells)) == added and set(cells) <= set(made.public_keys) for _, cells in found.groups)
    assert len({cell for _, cells in found.groups for cell in cells}) == added * len(asked.public_keys)
    assert found.shown.sds == pytest.approx([math.sqrt(added) * sd for sd in made.sds])
    assert (found.shown.fingerprint, found.shown.cost) == (made.fingerprint, made.cost)


@pytest.mark.parametrize(
    ("source", "wanted", "number", "added"),
    [
        ("rollup (plan, told)", "select count(*), avg(age) from users", 0, 1),
        ("rollup (plan, told)", "select plan, avg(age) from users group by plan", 1, 1),
        ("rollup (plan, told)", "select told, count(*) from users group by told", 2, 2),
        ("cube (plan, told)", "select told, count(*) from users group by told", 2, 1),
        ("cube (plan, told)", "select sum(age) from users where plan = 'pro'", 1, 1),
        ("grouping sets ((plan, city), (told))", "select count(*) from users", 0, 2),
    ],
)
def test_an_answer_follows_from_one_of_several_grouping_sets(source: str, wanted: str, number: int, added: int) -> None:
    made = any_plan(f"select count(*), avg(age) from users group by {source}", OF)
    assert isinstance(made, SetsPlan)
    asked = plan(wanted, OF)
    found = derive(asked, made, 1000)
    assert found is not None
    assert (found.source, found.shown.added) == (made, added)
    assert {cell[0] for _, cells in found.groups for cell in cells} == {number}
    stored = {(number, *key) for key in made.plans[number].public_keys}
    assert all(len(cells) == added and set(cells) <= stored for _, cells in found.groups)
    assert found.shown.sds == pytest.approx([math.sqrt(added) * sd for sd in made.plans[number].sds])
    assert derive(asked, made, 0.99) is None, "each set has a share of the charge alone"


def test_sets_that_bound_a_person_together_answer_nothing_else() -> None:
    made = any_plan("select count(*) from orders group by rollup (status)", OF)
    assert isinstance(made, SetsPlan)
    assert made.together
    assert derive(plan("select count(*) from orders", OF), made, 1000) is None


@pytest.mark.parametrize(("source", "wanted", "why"), NOT_GIVEN)
def test_other_answers_do_not_follow(source: str, wanted: str, why: str) -> None:
    assert derive(plan(wanted, OF), plan(source, OF), 1000) is None, why


def test_noise_decides_whether_an_answer_is_derived() -> None:
    source = plan("select age, count(*) from users group by age", OF)
    few, all_of_them = (plan(f"select count(*) from users{w}", OF) for w in (" where age in (1, 2, 3)", ""))
    assert derive(few, source, 2) is not None
    assert derive(few, source, 1.7) is None
    assert derive(all_of_them, source, 10) is None
    assert derive(all_of_them, source, 11) is not None


def test_who_asks_for_more_accuracy_is_answered_anew() -> None:
    question = "select plan, count(*) from users group by plan"
    cheap, dear = (plan(question, replace(OF, pico=pico)) for pico in (10**9, 2 * 10**9))
    assert derive(dear, cheap, 2) is None
    assert derive(cheap, dear, 1) is not None
    more = plan("select plan, count(*), sum(age) from users group by plan", OF)
    assert derive(plan(question, OF), more, 1) is None
    assert derive(plan(question, OF), more, 2) is not None


def test_bounds_that_were_tighter_answer_nothing_else() -> None:
    text = "select status, count(*) from wide group by status"
    lowered = plan(text, replace(OF, lowered=Lowered(rows_per_group=3)))
    assert derive(plan(text, OF), lowered, 1000) is None
    assert derive(lowered, plan(text, OF), 1000) is not None
    orders = "select status, count(*) from orders group by status"
    few_groups = plan(orders, replace(OF, lowered=Lowered(groups=1)))
    assert derive(plan(orders, OF), few_groups, 1000) is None
    by_total = context_with_sums(Bounded(0, 200))
    totals = "select status, sum(amount) from orders group by status"
    assert derive(plan(totals, by_total), plan(totals, by_total), 1000) is None
    pure = replace(context(pure=True), tables=SHOP)
    whole = derive(plan("select count(*), avg(height) from users", pure),
                   plan("select plan, count(*), sum(height) from users group by plan", pure), 2)  # fmt: skip
    assert whole is not None
