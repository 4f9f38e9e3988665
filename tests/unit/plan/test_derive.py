"""Which answers follow from which releases, and how noisy they are."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from proxy.analysis.analyse import Lowered
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.reuse.derive import Derived
from proxy.plan.reuse.derive import derive as derived_from
from proxy.plan.sets.sets import Plan, SetsPlan
from proxy.policy.model import Bounded, Column, Listed, WrittenBound
from proxy.sqltypes import SqlType as T
from tests.unit.plan.shop import ORDERS, TABLES, USERS, any_plan, context, context_with_sums, plan
from tests.unit.plan.test_profile import PROFILE

#: orders of which all rows of a unit count in each group, users with more keys
WIDE = replace(ORDERS, rows_per_group=WrittenBound(60), groups_per_unit=WrittenBound(60))
FLAGS = (
    Column(name="told", type=T.BOOL, domain=Listed((False, True)), nullable=False),
    Column(name="town", type=T.TEXT, domain=Listed(("a", "b")), case_blind=True),
    Column(name="grade", type=T.NUMERIC, domain=Listed((1, 2))),
    Column(name="zero", type=T.FLOAT8, domain=Bounded(0, 0), nullable=False),
)
SHOP = {**TABLES, "users": replace(USERS, columns=(*USERS.columns, *FLAGS)), "wide": replace(WIDE, name="wide")}
OF = replace(context(), tables=SHOP)

GIVEN = [
    # source, wanted, cells that are added up
    ("select plan, count(*) from users group by plan", "select count(*) from users", 2),
    ("select plan, count(*) from users group by plan", "select sum(zero), count(*) from users", 2),
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
    (
        "select upper(plan), count(*) from users where plan = 'pro' group by 1",
        "select count(*) from users",
        "rows that the release left out, of which its keys tell too little",
    ),
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
    (
        "select date_trunc('month', made), count(*) from wide group by 1",
        "select date_trunc('day', made), count(*) from wide group by 1",
        "finer",
    ),
    (
        "select date_trunc('month', joined), count(*) from users group by 1",
        "select count(*) from users where joined > '2019-05-10'",
        "in the middle of a month",
    ),
    (
        "select date_trunc('week', joined), count(*) from users group by 1",
        "select date_trunc('month', joined), count(*) from users group by 1",
        "weeks of two months",
    ),
    ("select town, count(*) from users group by town", "select upper(town), count(*) from users group by 1", "blind"),
    (
        "select plan, count(*) from users group by plan",
        "select plan = 'pro' or weight > 3, count(*) from users group by 1",
        "other columns decide some rows",
    ),
    (
        "select plan, count(*) from users group by plan",
        "select count(*) from users where plan = 'pro' or weight > 3",
        "the same",
    ),
    (
        "select age, count(*) from users where age < 50 group by age",
        "select count(*) from users where age < 60",
        "rows that the release left out",
    ),
    (
        "select plan, count(*) from users where plan <> 'pro' group by plan",
        "select told, count(*) from users group by told",
        "the same, by another key",
    ),
    (
        "select plan, count(*) from users where age < 50 group by plan",
        "select plan, count(*) from users where age < 40 group by plan",
        "nothing is known of ages",
    ),
    (
        "select joined, told, age % 7, count(*) from users where joined > '2019-03-01' or age % 7 < 3 group by 1, 2, 3",
        "select count(*) from users",
        "too many values to look at",
    ),
    (
        "select plan, case when age < 9 then 1 else 2 end, count(*) from users group by 1, 2",
        "select case when age < 9 then 1 when age < 12 then 2 else 3 end, count(*) from users group by 1",
        "two of three ages are one cell",
    ),
    ("select plan, bool_or(told) from users group by plan", "select count(*) from users where told", "half of it"),
    ("select plan, sum(height) from users group by plan", "select plan, sum(age) from users group by plan", "another"),
    ("select plan, count(age) from users group by plan", "select plan, count(*) from users group by plan", "nulls"),
    (
        "select plan, sum(age) from users group by plan",
        "select plan, sum(age) filter (where told) from users group by 1",
        "some",
    ),
    (
        "select plan, avg(height) from users group by plan",
        "select plan, variance(height) from users group by plan",
        "no squares",
    ),
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


def derive(wanted: ReleasePlan, source: Plan, factor: float, if_cheaper: float = 1.0) -> Derived | None:
    """The least noisy answer from one release."""
    found = derived_from(wanted, (source,), factor, if_cheaper)
    return found[0] if found else None


@pytest.mark.parametrize(("source", "wanted", "added"), GIVEN)
def test_an_answer_follows_from_a_release(source: str, wanted: str, added: int) -> None:
    made, asked = plan(source, OF), plan(wanted, OF)
    found = derive(asked, made, 1000)
    assert found is not None
    assert found.shown.added == added
    (of,) = found.sources
    assert [key for key, _ in of.groups] == list(asked.public_keys)
    assert all(len(set(cells)) == added and set(cells) <= set(made.public_keys) for _, cells in of.groups)
    assert len({cell for _, cells in of.groups for cell in cells}) == added * len(asked.public_keys)
    assert found.shown.sds == pytest.approx([math.sqrt(added) * sd for sd in made.sds])
    assert (found.shown.fingerprint, found.shown.cost) == (made.fingerprint, made.cost)


COARSER = [
    # source, wanted, how many cells are added up for groups
    (
        "select joined, count(*) from users group by joined",
        "select date_trunc('month', joined), count(*) from users group by 1",
        {1, 28, 29, 30, 31},
    ),
    (
        "select age, count(*) from users group by age",
        "select case when age < 18 then 'young' else 'old' end, count(*) from users group by 1",
        {18, 94},
    ),
    (
        "select age, count(*) from users group by age",
        "select age between 3 and 7, count(*) from users group by 1",
        {5, 106, 1},
    ),
    ("select age, count(*) from users group by age", "select count(*) from users where age > 3", {107}),
    (
        "select plan, told, count(*) from users group by 1, 2",
        "select plan = 'pro', count(*) from users group by 1",
        {2},
    ),
    (
        "select plan, told, count(*) from users group by 1, 2",
        "select count(*) from users where told or plan = 'pro'",
        {3},
    ),
    (
        "select plan, told, count(*) from users group by 1, 2",
        "select case when told then plan else 'none' end, count(*) from users where told is not null group by 1",
        {1, 2},
    ),
    ("select age, count(*) from users where age < 50 group by age", "select count(*) from users where age = 7", {1}),
    ("select plan, count(*) from users where plan in ('pro', 'free') group by plan", "select count(*) from users", {2}),
    (
        "select town, plan, count(*) from users group by 1, 2",
        "select plan, town, count(*) from users where length(plan) <> 3 group by 1, 2",
        {0, 1},
    ),
    (
        "select date_trunc('day', made), count(*) from wide group by 1",
        "select extract(quarter from made), count(*) from wide group by 1",
        {1, 91, 92},
    ),
    (
        "select made::date, status, count(*) from wide group by 1, 2",
        "select date_trunc('month', made), count(*) from wide group by 1",
        {3, 87, 90, 93},
    ),
    (
        "select extract(month from joined), count(*) from users group by 1",
        "select extract(month from joined) > 6, count(*) from users group by 1",
        {1, 6},
    ),
]


@pytest.mark.parametrize(("source", "wanted", "counts"), COARSER)
def test_a_coarser_grouping_follows(source: str, wanted: str, counts: set[int]) -> None:
    made, asked = plan(source, OF), plan(wanted, OF)
    found = derive(asked, made, 1000)
    assert found is not None
    assert {n for (n,) in found.counts()} == counts
    assert found.shown.added == max(counts)
    cells = [cell for _, of in found.sources[0].groups for cell in of]
    assert len(cells) == len(set(cells)), "no cell is in two groups"
    for count in counts:
        assert found.shown_of((count,)).sds == pytest.approx([math.sqrt(count) * sd for sd in made.sds])


TWO = [
    # sources, wanted, its noise beside that of a new answer
    (
        "select plan, sum(height) from users group by plan",
        "select plan, count(*) from users group by plan",
        "select plan, avg(height) from users group by plan",
        1.59,
    ),
    (
        "select plan, sum(height) from users group by plan",
        "select plan, told, count(*) from users group by 1, 2",
        "select avg(height) from users",
        2.45,
    ),
    ("select sum(age) from users", "select count(age) from users", "select avg(age) from users", 1.59),
    (
        "select sum(age) from users",
        "select count(*), count(age) from users",
        "select avg(age), count(*) from users",
        None,
    ),
    ("select sum(height) from users", "select count(*) from users", "select sum(height), count(*) from users", None),
    (
        "select sum(height) filter (where told) from users",
        "select sum(height) from users",
        "select sum(height), sum(height) filter (where told) from users",
        None,
    ),
    (
        "select stddev_pop(height) from users",
        "select count(*) filter (where told) from users",
        "select variance(height), count(*) filter (where told) from users",
        None,
    ),
    ("select sum(amount) from orders", "select count(amount) from orders", "select avg(amount) from orders", 1.59),
]
NOT_TWO = [
    (
        "select sum(amount) from orders",
        "select count(*) from orders",
        "select avg(amount) from orders",
        "NULL is counted",
    ),
    (
        "select status, sum(amount) from wide group by status",
        "select status, count(amount) from wide group by status",
        "select status, avg(amount) from wide group by status",
        "a person above the bounds would weigh less in one of them",
    ),
    (
        "select plan, sum(height) from users group by plan",
        "select count(*) from users where told",
        "select avg(height) from users",
        "other rows",
    ),
]


@pytest.mark.parametrize(("one", "other", "wanted", "noise"), TWO)
@pytest.mark.parametrize("pure", [False, True])
def test_an_answer_follows_from_two_releases(
    one: str, other: str, wanted: str, noise: float | None, pure: bool
) -> None:
    of = replace(context(pure=pure), tables=SHOP)
    sources, asked = [plan(t, of) for t in (one, other)], plan(wanted, of)
    assert not any(derived_from(asked, [s], 1000) for s in sources)
    found = derived_from(asked, sources, 1000)[0]
    assert {s.plan.fingerprint for s in found.sources} == {s.fingerprint for s in sources}
    assert len(found.shown.vector.moments) == sum(len(s.of.vector.moments) for s in found.sources)
    counts = [max(len(cells) for _, cells in s.groups) for s in found.sources]
    sds = [math.sqrt(n) * sd for s, n in zip(found.sources, counts, strict=True) for sd in s.of.sds]
    assert found.shown.sds == pytest.approx(sds)
    units = [u for s in found.sources for u in s.of.units_per_grid]
    assert found.shown.units_per_grid == pytest.approx(units)
    if noise is not None and not pure:
        assert found.noise == pytest.approx(noise, abs=0.01)
        assert not derived_from(asked, sources, noise - 0.02)
        assert derived_from(asked, sources, noise + 0.02)


@pytest.mark.parametrize(("one", "other", "wanted", "why"), NOT_TWO)
def test_other_answers_do_not_follow_from_two(one: str, other: str, wanted: str, why: str) -> None:
    assert not derived_from(plan(wanted, OF), [plan(t, OF) for t in (one, other)], 1000), why


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("avg(height)", "sum(height)"), ("avg(height)", "count(*)"), ("count(*), avg(age)", "count(age)"),
        ("count(*), avg(age)", "sum(age)"), ("count(age), count(*)", "count(*)"),
        ("variance(height)", "avg(height)"), ("variance(age), count(*)", "sum(age)"),
        ("sum(age), count(age)", "avg(age)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pure", [False, True])
def test_aggregates_follow_from_the_moments_of_others(source: str, wanted: str, pure: bool) -> None:
    of = replace(context(pure=pure), tables=SHOP)
    asked, made = (plan(f"select {a} from users", of) for a in (wanted, source))
    assert derive(asked, made, 1000)


def test_a_number_of_values_is_no_number_of_rows_with_a_condition() -> None:
    """The two are equal, and no rule says so."""
    made = plan("select count(*), count(age) from users", OF)
    asked = plan("select count(*) filter (where age is not null), count(*) from users", OF)
    assert derive(asked, made, 1000) is None


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
    (of,) = found.sources
    assert (of.plan, found.shown.added) == (made, added)
    assert of.number == number
    stored = set(made.plans[number].public_keys)
    assert all(len(cells) == added and set(cells) <= stored for _, cells in of.groups)
    assert found.shown.sds == pytest.approx([math.sqrt(added) * sd for sd in made.plans[number].sds])
    assert derive(asked, made, 0.99) is None, "each set has a share of the charge alone"


def test_sets_that_bound_a_person_together_answer_nothing_else() -> None:
    made = any_plan("select count(*) from orders group by rollup (status)", OF)
    assert isinstance(made, SetsPlan)
    assert made.together
    assert derive(plan("select count(*) from orders", OF), made, 1000) is None
    wide = any_plan("select count(*) from wide group by rollup (status)", OF)
    for wanted in ("select count(*) from wide", "select status, count(*) from wide group by 1"):
        assert derive(plan(wanted, OF), wide, 1000) is None


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


MET = (
    "", "where exists (select 1 from wide w where w.user_id = u.user_id)",
    "where not exists (select 1 from wide w where w.user_id = u.user_id)",
    "where exists (select 1 from wide w where w.user_id = u.user_id and w.amount > 3)",
    "left join users v on v.user_id = u.user_id", "join users v on v.user_id = u.user_id",
)  # fmt: skip


@pytest.mark.parametrize("source", MET)
@pytest.mark.parametrize("wanted", MET)
def test_rows_that_met_other_rows_are_other_rows(source: str, wanted: str) -> None:
    made = plan(f"select u.plan, count(*) from users u {source} group by u.plan", OF)
    found = derive(plan(f"select count(*) from users u {wanted}", OF), made, 1000)
    assert (found is not None) == (source == wanted)


def test_bounds_that_a_profile_chose_answer_nothing_else() -> None:
    """One factor for all of a unit's groups: its cells do not add up to what a coarser question would have counted."""
    chosen = replace(OF, profiles=(PROFILE,))
    fine, coarse = "select status, count(*) from orders group by status", "select count(*) from orders"
    given, asked = plan(fine, chosen), plan(coarse, chosen)
    assert given.allocation.is_chosen
    assert asked.allocation.is_chosen
    for source in (given, plan(fine, OF)):
        assert derive(asked, source, 10**6) is None
    assert derive(plan(coarse, OF), given, 10**6) is None
