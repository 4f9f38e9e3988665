"""Where may a randomized column stand, and what becomes of conditions on it?"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.errors import Unsupported
from proxy.sql.algebra.describe import describe_aggregate, describe_scalar
from proxy.sql.relations.scope import Catalog
from tests.unit.plan.survey import PEOPLE, TABLES, coins
from tests.unit.release.make import bound

CATALOG = Catalog(TABLES)


def test_a_condition_of_where_is_a_measure_of_each_aggregate() -> None:
    block = bound("select count(*), avg(age) from people where vote = 'a' and plan = 'pro'", CATALOG).block
    assert [describe_scalar(c) for c in block.where] == ["(plan = 'pro')"]
    assert [describe_aggregate(a) for a in block.aggregates] == [
        "count(*) FILTER (WHERE (vote = 'a'))", "avg(age) FILTER (WHERE (vote = 'a'))",
    ]  # fmt: skip


def test_other_conditions_stay_where_they_are() -> None:
    block = bound("select count(*) from people where plan = 'pro' and age > 5", CATALOG).block
    assert len(block.where) == 2
    assert block == bound("select count(*) from people where age > 5 and plan = 'pro'", CATALOG).block


@pytest.mark.parametrize(
    "query",
    [
        "select ill, count(*) from people group by 1",
        "select city, vote, count(*), sum(age) from people group by 1, 2",
        "select distinct vote from people",
        "select count(*) from people p join visits v using (id) where p.vote = 'a' and v.paid",
        "select count(*) from (select * from people where plan = 'pro') x where vote = 'a'",
        "with x as (select vote, age from people) select avg(age) from x where vote in ('a', 'b')",
        "select count(*) from visits a join visits b using (id) where a.paid",
        "select avg(pay), sum(pay * 2), sum(pay) filter (where vote = 'a'), count(pay) from people",
        "select avg(2 - pay / 4) from people",
        "select vote, count(*) from people group by 1 having vote = 'a'",
        "select mode() within group (order by vote) from people",
        "select plan, mode() within group (order by mood) filter (where age > 5), count(*) from people group by 1",
        "select mode() within group (order by smokes) from people where plan = 'pro'",
    ],
)
def test_accepted(query: str) -> None:
    assert bound(query, CATALOG).columns


def test_fair_coins_have_the_most_frequent_answer_of_the_truth() -> None:
    """p + q = 1: yes is stored by most exactly if it is true of most, on average."""
    columns = tuple(replace(c, randomized=coins("0.3", "0.5")) if c.name == "ill" else c for c in PEOPLE.columns)
    fair = Catalog(MappingProxyType({"people": replace(PEOPLE, columns=columns)}))
    assert bound("select mode() within group (order by ill) from people", fair).columns


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select count(distinct id) from people where vote = 'a'", "count(distinct) over randomized values"),
        ("select vote, count(distinct id) from people group by 1", "count(distinct) over randomized values"),
        ("select count(distinct vote) from people", "count(distinct) over randomized values"),
        ("select bool_or(ill) from people", "bool_or over randomized values"),
        ("select max(pay) from people", "max over randomized values"),
        ("select percentile_cont(0.5) within group (order by age) from people where ill", "percentile_cont over"),
        ("select regr_sxx(age, age) from people where ill", "regr_sxx over randomized values"),
        ("select corr(pay, age) from people", "corr over randomized values"),
        ("select count(*) from people where pay > 3", "pay has noise of its own and cannot be compared"),
        ("select pay, count(*) from people group by 1", "pay has noise of its own and cannot be grouped by"),
        ("select avg(least(pay, 5)) from people", "only sums, averages and variances of pay itself"),
        ("select avg(pay * pay) from people", "only sums, averages and variances of pay itself"),
        ("select upper(vote), count(*) from people group by 1", 'an expression of the randomized column "vote"'),
        ("select vote, count(*) from people where vote <> 'a' group by 1", 'a condition on "vote", which is'),
        ("select vote, avg((vote = 'a')::int) from people group by 1", 'a condition on "vote", which is grouped by'),
        ("select count(*) from visits a join visits b using (id) where a.paid and b.paid", "stands twice"),
        ("select vote, count(*) from people group by rollup (vote)", "grouping sets over randomized columns"),
        ("select plan, count(*) filter (where ill) from people group by rollup (plan)", "grouping sets over"),
        ("select plan from people where ill group by 1", "chooses no groups"),
        ("select mode() within group (order by ill) from people", 'the coins of "ill" favour one answer'),
        ("select mode() within group (order by pay) from people", "has noise of its own and has no most frequent"),
        ("select mode() within group (order by upper(vote)) from people", "the most frequent value of an expression"),
        ("select mode() within group (order by vote) from people where smokes", "mode over randomized values"),
        ("select mode() within group (order by plan) from people where smokes", "mode over randomized values"),
        ("select smokes, mode() within group (order by vote) from people group by 1", "mode over randomized values"),
        ("select plan, mode() within group (order by vote) from people group by rollup (plan)", "grouping sets over"),
    ],
)  # fmt: skip
def test_refused_with_a_hint(query: str, said: str) -> None:
    with pytest.raises(Unsupported) as refused:
        bound(query, CATALOG)
    assert said in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from people where exists (select from visits v where v.id = people.id and paid)",
        "select count(*) from visits v left join people p using (id) where p.vote = 'a' or p.vote is null",
        "select avg(n) from (select id, count(paid) n from visits group by id) x",
        "select n, count(*) from (select id, count(*) n from visits where paid group by id) x group by 1",
        "select count(*) from (select id, paid, count(*) from visits group by id, paid) x",
        "select count(*) from (select distinct id, paid from visits) x",
        "select avg(n) from (select row_number() over (partition by id order by paid) n from visits) x",
        "select count(*) from (select paid, row_number() over (partition by id) n from visits) x where paid",
        "select count(*) from (select id, paid from visits union all select id, ill from people) x where paid",
    ],
)
def test_refused_below_the_outermost_rows(query: str) -> None:
    with pytest.raises(Unsupported, match="cannot be used here"):
        bound(query, CATALOG)
