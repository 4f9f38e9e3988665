"""Which private groups and which parts of a release another question shows, and how near it is then."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from proxy.analysis.analyse import Lowered
from proxy.plan.parts.modes import ModePart
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.reuse.derive import Derived, derive
from proxy.plan.vector.recipes import Ranked
from proxy.policy.model import Bounded, Column, WrittenBound
from proxy.sqltypes import SqlType as T
from tests.unit.plan.shop import ORDERS, TABLES, USERS, any_plan, context, context_with_sums, plan

EXTRA = (
    Column(name="nick", type=T.TEXT, case_blind=True),
    Column(name="code", type=T.NUMERIC),
)
WIDE = replace(
    ORDERS, name="wide", rows_per_group=WrittenBound(60), groups_per_unit=WrittenBound(60),
    columns=(*ORDERS.columns, Column(name="shop", type=T.TEXT)),
)  # fmt: skip
OF = replace(context(), tables={**TABLES, "users": replace(USERS, columns=(*USERS.columns, *EXTRA)), "wide": WIDE})
PURE = replace(context(pure=True), tables=OF.tables)
CITIES = "select city, plan, count(*), avg(age) from users group by 1, 2"
SHOPS = "select shop, count(*), avg(amount) from wide group by shop"
MEDIAN = "percentile_cont(0.5) within group (order by {})"


def derived(source: str, wanted: str, factor: float = 1000.0) -> Derived | None:
    found = derive(plan(wanted, OF), [any_plan(source, OF)], factor)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("source", "wanted", "left_out"),
    [
        (CITIES, "select plan, city, avg(age) from users group by 1, 2", ()),
        (CITIES, "select city, plan, count(*) from users where city <> 'Bern' group by 1, 2", ("Bern",)),
        (
            CITIES,
            "select city, plan, count(*) from users where city not in ('Bern', 'Biel') group by 1, 2",
            ("Bern", "Biel"),
        ),
        (CITIES, "select city, plan, count(*) from users where city is not null group by 1, 2", ()),
        ("select city, plan, count(*), avg(age) from users group by grouping sets ((1), (1, 2))", CITIES, ()),
        (SHOPS, "select shop, sum(amount), count(*) from wide group by shop", ()),
    ],
)
def test_private_groups_are_those_of_the_release(source: str, wanted: str, left_out: tuple[str, ...]) -> None:
    found = derived(source, wanted)
    assert found is not None
    (of,) = found.sources
    assert of.chosen is not None
    names = [k.scalar for k in of.of.analysed.keys]
    assert [names[p] for p in of.chosen.places] == [k.scalar for k in plan(wanted, OF).analysed.keys]
    city = names.index(plan(wanted, OF).analysed.private_keys[0].scalar)
    keys = ("Bern", "Biel", "Chur")
    cells = {k: tuple(k if i == city else "pro" for i in range(len(names))) for k in keys}
    shown = [k for k, cell in cells.items() if of.chosen.key(cell) is not None]
    assert shown == [k for k in keys if k not in left_out]
    assert found.counts() == ()
    assert found.shown.sds == pytest.approx(of.of.sds)
    assert found.shown.selection == of.of.selection


@pytest.mark.parametrize(
    ("source", "wanted", "why"),
    [
        (CITIES, "select count(*) from users", "groups that are not shown are in no total"),
        (CITIES, "select city, count(*) from users group by city", "numbers of units beside other keys"),
        (CITIES, "select count(*) from users where city = 'Bern'", "it may not be shown, and chance decided"),
        (CITIES, "select city, plan, count(*) from users where plan <> 'pro' group by 1, 2", "others count"),
        (CITIES, "select city, plan, count(*) from users where city like 'B%' group by 1, 2", "not a list"),
        (CITIES, "select city, plan, count(*) from users where born <> '2000-01-01' group by 1, 2", "other rows"),
        (CITIES, "select upper(city), plan, count(*) from users group by 1, 2", "another key"),
        (
            "select city, plan, count(*) from users where age > 3 group by 1, 2",
            "select city, plan, count(*) from users group by 1, 2",
            "fewer rows",
        ),
        ("select nick, count(*) from users group by 1", "select nick, count(*) from users where nick <> 'a' group by 1",
         "texts that are alike in other spellings"),
        ("select code, count(*) from users group by 1", "select code, count(*) from users where code <> 1 group by 1",
         "compared as a decimal"),
        ("select age * 2 + weight, count(*) from users group by 1",
         "select age * 2 + weight, count(*) from users where age * 2 + weight <> 4 group by 1", "doubles"),
        ("select city, avg(age) from users group by 1", "select city, avg(height) from users group by 1", "another"),
        (SHOPS, "select shop, count(*) from wide where shop <> 'a' group by shop", "a person keeps few groups"),
        (SHOPS, "select shop, status, count(*) from wide group by 1, 2", "finer"),
        ("select shop, count(*), count(*) filter (where amount > 3) from wide group by shop",
         "select shop, count(*) from wide group by shop", "rows of the filter weigh too"),
        ("select store_id, sum(amount) from orders group by 1", "select store_id, avg(amount) from orders group by 1",
         "groups of a person are bounded"),
        (
            "select shop, status, count(*) from wide group by 1, 2",
            "select status, shop, count(*) from wide group by 1, 2",
            "in which groups a person is follows from the order",
        ),
    ],
)  # fmt: skip
def test_other_private_groups_do_not_follow(source: str, wanted: str, why: str) -> None:
    assert derived(source, wanted) is None, why


def test_a_total_that_a_person_bounds_is_of_its_own_release() -> None:
    of = context_with_sums(Bounded(0, 200))
    asked = plan("select store_id, sum(amount) from orders group by 1", of)
    assert not derive(asked, [asked], 1000)


def test_a_private_group_needs_not_many_more_units_than_it_would_by_itself() -> None:
    city = "select city, count(*) from users group by city"
    more = "select city, count(*), avg(age), avg(height), stddev(age) from users group by city"
    found = derived(more, city)
    assert found is not None
    (source,) = found.sources
    ours, fresh = source.of.selection, plan(city, OF).selection
    assert found.noise >= ours.tau / fresh.tau > 1.0  # type: ignore[union-attr]
    assert derived(more, city, found.noise * 0.99) is None
    assert derived(more, city, found.noise * 1.01) is not None


@pytest.mark.parametrize(
    ("source", "wanted", "parts"),
    [
        (f"hush.low({MEDIAN.format('age')}), {MEDIAN.format('age')}", MEDIAN.format("age"), (0,)),
        (f"min(age), max(height), {MEDIAN.format('age')}", MEDIAN.format("age"), (0,)),
        (f"min(age), max(height), {MEDIAN.format('age')}", "count(*), max(height)", (1,)),
        ("count(distinct city), count(distinct age), avg(age)", "count(distinct city), count(age)", None),
        ("count(distinct city), count(distinct age)", "count(distinct city)", None),
    ],
)
@pytest.mark.parametrize("group", ["", "plan"])
def test_parts_are_those_of_the_release(source: str, wanted: str, parts: tuple[int, ...] | None, group: str) -> None:
    made, asked = (
        f"select {group + ', ' * bool(group)}{s} from users{' group by 1' * bool(group)}" for s in (source, wanted)
    )
    found = derived(made, asked)
    assert found is not None
    assert found.shown.parts == any_plan(made, OF).parts  # type: ignore[union-attr]
    recipes = [f for f in found.shown.vector.finishes if isinstance(f, Ranked)]
    for recipe, number in zip(recipes, parts or (), strict=True):
        part = found.shown.parts[recipe.part]
        fraction = plan(asked, OF).analysed.owned.block.aggregates[-1].fraction
        assert recipe.part == number
        assert isinstance(part, QuantilePart)
        assert part.asked.fractions[recipe.place] == fraction
    errors = [
        p.ladder.rank_error_up(f, 0.95)
        for p in found.shown.parts
        if isinstance(p, QuantilePart)
        for f in p.asked.fractions
    ]
    assert found.noise > 1.0 or not errors
    assert math.isfinite(found.noise)


MODE = "mode() within group (order by {})"


@pytest.mark.parametrize("group", ["", "plan"])
def test_modes_are_those_of_the_release(group: str) -> None:
    made, asked = (
        f"select {group + ', ' * bool(group)}{s} from users{' group by 1' * bool(group)}"
        for s in (f"min(age), {MODE.format('age')}, {MODE.format('plan')}", MODE.format("plan"))
    )
    found = derived(made, asked)
    assert found is not None
    (recipe,) = (f for f in found.shown.vector.finishes if isinstance(f, Ranked))
    part = found.shown.parts[recipe.part]
    assert isinstance(part, ModePart)
    assert (part.candidates, recipe.place) == (("free", "pro"), 0)
    (new,) = plan(asked, OF).parts
    assert isinstance(new, ModePart)
    assert found.noise >= new.poll.steepness / part.poll.steepness > 1.0


@pytest.mark.parametrize(
    ("source", "wanted", "why"),
    [
        (f"select {MODE.format('age')} from users", f"select {MODE.format('plan')} from users", "another value"),
        (f"select {MODE.format('age')} from users", "select min(age) from users", "another kind"),
        (f"select {MODE.format('age')} from users",
         f"select {MODE.format('age')} filter (where plan = 'pro') from users", "other rows"),
        (f"select plan, {MODE.format('age')} from users group by plan", f"select {MODE.format('age')} from users",
         "modes do not add up"),
        (f"select {MODE.format('age')} from users where age > 3", f"select {MODE.format('age')} from users", "fewer"),
        (f"select {MODE.format('status')}, count(*) from orders",
         f"select {MODE.format('status')} from orders where amount > 3", "other rows of a person"),
    ],
)  # fmt: skip
def test_other_modes_do_not_follow(source: str, wanted: str, why: str) -> None:
    assert derived(source, wanted) is None, why


def test_modes_of_several_rows_need_the_same_bounds() -> None:
    text = f"select status, {MODE.format('amount > 3')} from wide group by status"
    lowered = replace(OF, lowered=Lowered(rows_per_group=3))
    asked = plan(text, OF)
    assert derive(asked, [asked], 1)
    assert not derive(asked, [plan(text, lowered)], 1000)


@pytest.mark.parametrize(
    ("source", "wanted", "why"),
    [
        (f"select {MEDIAN.format('age')} from users", f"select hush.low({MEDIAN.format('age')}) from users", "no ends"),
        ("select min(age) from users", "select max(age) from users", "another rank"),
        ("select min(age) from users", "select min(height) from users", "another measure"),
        ("select count(distinct age) from users", "select min(age) from users", "another kind"),
        ("select plan, min(age) from users group by plan", "select min(age) from users", "ranks do not add up"),
        ("select plan, count(distinct age) from users group by plan", "select count(distinct age) from users", "same"),
        ("select age, min(age) from users group by age", "select age, min(age) from users where age > 7 group by age",
         "the least of other values"),
        ("select count(distinct status), count(*) from orders",
         "select count(distinct status) from orders where amount > 3", "other rows"),
        ("select status, min(amount) from orders group by status",
         "select status, min(amount) from orders where status = 'paid' group by status", "a person is in fewer groups"),
        ("select plan, min(age) from users group by plan", "select plan, avg(age) from users group by plan", "no sum"),
    ],
)  # fmt: skip
def test_other_parts_do_not_follow(source: str, wanted: str, why: str) -> None:
    assert derived(source, wanted) is None, why


def test_parts_of_several_rows_need_the_same_bounds() -> None:
    text = "select status, min(amount), count(distinct made) from wide group by status"
    lowered = replace(OF, lowered=Lowered(rows_per_group=3))
    asked = plan(text, OF)
    assert derive(asked, [asked], 1)
    assert not derive(asked, [plan(text, lowered)], 1000)
    for one in ("min(amount)", "count(distinct made)"):
        assert not derive(plan(f"select status, {one} from wide group by status", lowered), [asked], 1000)
    sets = any_plan("select status, min(amount) from wide group by rollup (status)", OF)
    assert not derive(asked, [sets], 1000)


def test_a_threshold_for_less_delta_is_that_much_worse() -> None:
    """Noise is alike, and yet fewer groups are shown."""
    city = "select city, count(*) from users group by city"
    source, wanted = plan(city, replace(OF, atto_for_keys=OF.atto_for_keys // 10**6)), plan(city, OF)
    (found,) = derive(wanted, [source], 1000)
    ratio = source.selection.tau / wanted.selection.tau  # type: ignore[union-attr]
    assert found.noise == pytest.approx(ratio)
    assert not derive(wanted, [source], ratio * 0.99, ratio * 0.99)
