"""Which statements over local tables are cut into what is charged, what is free, and rows that are shown?"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.errors import HushError, NotAggregate
from proxy.pipeline.outline import outline_of
from proxy.policy.model import LocalTable
from proxy.sql.query.split import Split, split
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements
from tests.unit.plan.survey import ANSWERS, WITH_LOCAL

SHOWN = Catalog(MappingProxyType({**WITH_LOCAL, "answers": replace(ANSWERS, ownership=LocalTable(shows_rows=True))}))
CATALOG = Catalog(WITH_LOCAL)


def cut(query: str, catalog: Catalog = CATALOG) -> Split:
    return split(split_statements(query)[0], catalog, frozenset({"budget"}))


@pytest.mark.parametrize(("query", "found"), [
    ("select count(*) from answers", [False]),
    ("select count(*) from answers join cities on name = city", [False]),
    ("with a as (select * from answers) select count(*) from a", [False]),
    ("with a as (select * from people) select count(*) from a", [True]),
    ("with a as (select * from people), b as (select * from a) select count(*) from b", [True]),
    ("with people as (select * from answers) select count(*) from people", [False]),
    ("select count(*) from answers where id in (select id from people)", [True]),
    ("select (select count(*) from answers), (select count(*) from people)", [False, True]),
])  # fmt: skip
def test_a_block_is_free_if_no_name_in_it_is_promised(query: str, found: list[bool]) -> None:
    assert [b.is_promised for b in cut(query).blocks] == found


@pytest.mark.parametrize(("query", "is_free", "charged"), [
    ("select count(*) from people where age > (select avg(age) from answers)", True, 1),
    ("select count(*) from answers where age > (select avg(age) from people)", False, 1),
    ("select count(*), (select min(age) from people) from answers where age > (select avg(age) from people)", False, 2),
    ("with p as (select avg(age) as a from people) select count(*) from answers, p where age > a", False, 1),
    ("select count(*) from answers, (select avg(age) as a from people) p where age > a", False, 1),
    ("select count(*) from people where age > (select avg(age) from answers) and age < (select avg(age) from people)",
     False, 2),
    ("select count(*) from answers where age > (select avg(age) from answers)", True, 0),
])  # fmt: skip
def test_only_what_is_promised_has_a_price_among_stages(query: str, is_free: bool, charged: int) -> None:
    found = outline_of(cut(query))
    assert found.stages
    assert (found.asks_free, len(found.keyed)) == (is_free, charged)


@pytest.mark.parametrize("query", [
    "select * from answers", "select vote, canton from answers join cities on name = city where ill order by 1 limit 3",
    "with a as (select * from answers) select id from a",
])  # fmt: skip
def test_rows_are_shown_where_the_policy_says_so(query: str) -> None:
    """The statement is the front's, as it is."""
    found = cut(query, SHOWN)
    assert (found.text, found.blocks, found.emptied, found.system) == (query, (), (), ())
    with pytest.raises(NotAggregate):
        cut(query)


@pytest.mark.parametrize("query", [
    "select * from answers join people using (id)", "select * from people",
    "select * from answers where id in (select id from people)",
    "select * from answers a where exists (select 1 from people p where p.id = a.id)",
    "with p as (select id from people) select * from answers join p using (id)",
    "select a.id, (select max(age) from people p where p.id = a.id) from answers a",
    "select id from answers union all select id from people",
    "select * from answers, hush.budget",
    "select * from answers where age > (select avg(age) from people)",
    "select * from answers where age > (select avg(age) from answers)",
    "with people as (select * from answers) select * from people",
])  # fmt: skip
def test_no_row_is_shown_beside_what_is_promised(query: str) -> None:
    with pytest.raises(HushError):
        cut(query, SHOWN)


def test_aggregates_of_shown_rows_are_estimates_all_the_same() -> None:
    assert [b.is_promised for b in cut("select count(*) from answers where ill", SHOWN).blocks] == [False]
