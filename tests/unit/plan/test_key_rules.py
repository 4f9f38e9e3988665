"""Do unlisted groups of a few units show as seldom as is charged for, whatever the policy promises?

What a unit may hold is written beside each statement here, by the policy's words. The chance is computed from that, the
charge and the released integers, by `tests/oracle/shown`; only which integers these are is read from the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

import pytest

from proxy.dp.accounting import ATTO
from proxy.dp.selection import shown_atto_up
from proxy.plan.parts.cut_units import norm_up
from proxy.plan.release_plan import PlanContext, ReleasePlan
from proxy.plan.sets.sets import Plan, SetsPlan
from proxy.policy.model import Bounded, Neighbors, Policy, Privacy, Table
from tests.oracle.shown import Few, unit_length
from tests.thresholds import each_of, least_shown
from tests.unit.plan.shop import TABLES, any_plan, context, with_bounds
from tests.unit.plan.test_profile import PROFILE, counted
from tests.unit.sql.corpus import Case, cases, plan, policy, setting_of

_UNUSED = 1e-4  # of a chance: what thresholds leave, since they are rounded


@dataclass(frozen=True, slots=True)
class Promised:
    """What a policy promises of units."""

    units: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    fewest: int = 0

    def __str__(self) -> str:
        return f"{self.units} {self.neighbors.value} {self.fewest}"

    def within(self, privacy: Privacy) -> Privacy:
        return replace(privacy, group_size=self.units, neighbors=self.neighbors, min_units=self.fewest)

    def few(self, pico: int, keys: int) -> Few:
        """So many units, each in so many groups, of a release at this price."""
        length = unit_length(pico, self.units, is_exchanged=self.neighbors is Neighbors.REPLACE_ONE)
        return Few(units=self.units, length=length, keys=keys, fewest=self.fewest)


EXCHANGED = Neighbors.REPLACE_ONE
PROMISES = (
    Promised(), Promised(2), Promised(5), Promised(1, EXCHANGED), Promised(1, fewest=4), Promised(5, EXCHANGED),
    Promised(5, EXCHANGED, 3), Promised(2, fewest=1),
)  # fmt: skip
promises = pytest.mark.parametrize("promised", PROMISES, ids=str)


def releases_of(plan: Plan) -> tuple[ReleasePlan, ...]:
    return plan.plans if isinstance(plan, SetsPlan) else (plan,)


def first_share(pico: int, takers: int) -> int:
    """Of an amount that is shared equally, with what is left over."""
    return pico // takers + pico % takers


def in_groups(release: ReleasePlan) -> float:
    """Which part of a unit's length is in groups at most: all but where it is counted whether units are cut."""
    whole = release.allocation.unit_norm
    return whole / norm_up(whole, release.cut_weight, release.distribution)


def check(release: ReleasePlan, few: Few, atto: int) -> None:
    """Its charge of delta is the chance to show a few units' groups, neither less nor much more."""
    assert release.cost.atto == atto
    few = replace(few, length=few.length * in_groups(release))
    (rule,) = release.key_rules
    each, least = each_of(release), least_shown(release)
    chance = few.chance(each, least)
    assert chance <= atto / ATTO, "their groups show more often than is charged for"
    assert chance >= (1 - _UNUSED) * atto / ATTO, "groups are hidden for nothing"
    for units in (few.units + 1, 3 * few.units):  # what the ledger makes of the rule, once more is promised
        exact, told = replace(few, units=units).chance(each, least), shown_atto_up(rule, units) / ATTO
        assert told >= exact * (1 - 1e-9)
        assert told <= 1.1 * exact or told > 0.1, "nothing is lost by adding up chances while they are small"


# --- the cases ------------------------------------------------------------------------------------------------

KEYS = {"orders": 7, "items": 40}  # of a unit, of those who have several rows


def with_keys(served: Policy, promised: Promised) -> Policy:
    tables = {n: replace(t, keys_per_unit=KEYS.get(n, t.keys_per_unit)) for n, t in served.tables.items()}
    return replace(served, tables=MappingProxyType(tables), privacy=promised.within(served.privacy))


def keys_in(sql: str) -> int:
    """Groups of one unit, by the tables that a statement names: the farthest on the path to the unit decides."""
    words = sql.replace("(", " ").replace('"', " ").split()
    return next((KEYS[name] for name in ("items", "orders") if name in words), 1)


PRIVATE = [c for c in cases() if not c.is_refused and "'private'" in str(c.facts["releases"])]


def test_cases_have_unlisted_groups_of_all_tables() -> None:
    assert {keys_in(c.sql) for c in PRIVATE} == {1, *KEYS.values()}
    assert len(PRIVATE) >= 30


@pytest.mark.parametrize("promised", PROMISES[::2], ids=str)
@pytest.mark.parametrize("case", PRIVATE, ids=lambda c: c.place)
def test_unlisted_groups_of_every_case_show_as_seldom_as_is_charged(case: Case, promised: Promised) -> None:
    served = with_keys(policy(), promised)
    setting = setting_of(served)
    pool = 5 * 10**11  # half of the policy's delta, all of which a statement as dear as its account has
    checked = 0
    for of in plan(case, served, setting):
        each = releases_of(of)
        private = [r for r in each if r.analysed.private_keys]
        for number, release in enumerate(each):
            assert bool(release.key_rules) == (release in private)
            if release in private:
                price = setting.share // len(each) + (setting.share % len(each) if number == 0 else 0)
                pico = first_share(price, 1 + len(release.parts))
                check(release, promised.few(pico, keys_in(case.sql)), pool // len(private))
                checked += 1
    assert checked


# --- statements of every shape --------------------------------------------------------------------------------

ORDERED = "select user_id, store_id, row_number() over (partition by user_id order by made) as r from orders"
EACH = "select user_id, store_id, count(*) as n from orders group by user_id, store_id"
BOTH = "select user_id, store_id from orders union all select user_id, store_id from orders where amount > 5"
#: A statement, how many unlisted groups a unit may be in, and what is computed beside the numbers of its groups.
SHAPES = {
    "one row": ("select city, count(*) from users group by 1", 1, 0),
    "one row, listed groups beside": ("select city, plan, count(*), avg(height) from users group by 1, 2", 1, 0),
    "one row, a part": ("select city, count(distinct age), avg(age) from users group by 1", 1, 1),
    "several rows": ("select store_id, count(*) from orders group by 1", 7, 0),
    "listed groups beside": ("select store_id, status, count(*) from orders group by 1, 2", 7, 0),
    "sums": ("select store_id, sum(amount), avg(amount), count(*), count(amount) from orders group by 1", 7, 0),
    "units": ("select store_id, count(distinct user_id) from orders group by 1", 7, 0),
    "units that pass": (
        "select store_id, count(distinct user_id) filter (where amount > 5), sum(amount) from orders group by 1", 7, 0,
    ),
    "nothing but groups": ("select store_id from orders group by 1", 7, 0),
    "parts": ("select store_id, count(distinct order_id), max(amount), count(*) from orders group by 1", 7, 2),
    "a part alone": ("select store_id, count(distinct order_id) from orders group by 1", 7, 1),
    "a path": ("select store_id, sum(qty) from items join orders using (order_id) group by 1", 40, 0),
    "a path that is not named": ("select price, count(*) from items group by 1", 40, 0),
    "a join of units": ("select city, store_id, count(*) from users join orders using (user_id) group by 1, 2", 7, 0),
    "of one row beside others": ("select city, count(*) from users join orders using (user_id) group by 1", 1, 0),
    "rows put together": (f"select store_id, count(*) from ({BOTH}) t group by 1", 14, 0),
    "groups of a unit": (f"select store_id, n, count(*) from ({EACH}) t group by 1, 2", 7, 0),
    "a total of a unit": (
        "select s, count(*) from (select user_id, sum(amount) as s from orders group by user_id) t group by 1", 1, 0,
    ),
    "a window": (f"select store_id, count(*) from ({ORDERED}) t where r < 100 group by 1", 7, 0),
    "the first rows": (f"select store_id, count(*) from ({ORDERED}) t where r < 3 group by 1", 2, 0),
}  # fmt: skip
TABLES_HERE: dict[str, Table] = {
    **TABLES,
    "orders": replace(with_bounds(TABLES["orders"], "amount", Bounded(-500, 20)), keys_per_unit=7),
    "items": replace(TABLES["items"], keys_per_unit=40),
}


def promising(promised: Promised) -> PlanContext:
    of = context()
    return replace(of, tables=MappingProxyType(TABLES_HERE), privacy=promised.within(of.privacy))


@promises
@pytest.mark.parametrize("shape", SHAPES)
def test_unlisted_groups_of_every_shape_show_as_seldom_as_is_charged(shape: str, promised: Promised) -> None:
    of, (sql, keys, parts) = promising(promised), SHAPES[shape]
    (release,) = releases_of(any_plan(sql, of))
    assert len(release.parts) == parts
    check(release, promised.few(first_share(of.pico, 1 + parts), keys), of.atto_for_keys)


@promises
def test_a_profile_changes_nothing_of_how_seldom_they_show(promised: Promised) -> None:
    """What it says of rows makes bounds narrower, and which groups show is a matter of the bound in force."""
    of = replace(promising(promised), profiles=(PROFILE,))
    for sql in ("select store_id, count(*) from orders group by 1", SHAPES["sums"][0]):
        (release,) = releases_of(any_plan(sql, of))
        check(release, promised.few(of.pico, 7), of.atto_for_keys)


@promises
def test_chosen_bounds_show_groups_as_seldom_as_is_charged(promised: Promised) -> None:
    """Where a profile tells how many groups units have, B is chosen, and the threshold follows from it."""
    few = [float(1 + n % 3) for n in range(40_000)]
    told = replace(PROFILE, rows=counted(few), sums=(), groups=(("store_id", counted([min(n, 2.0) for n in few])),))
    of = replace(promising(promised), profiles=(told,))
    for sql in (SHAPES["several rows"][0], "select store_id, count(*), sum(amount) from orders group by 1"):
        (release,) = releases_of(any_plan(sql, of))
        assert release.allocation.is_chosen
        check(release, promised.few(of.pico, 7), of.atto_for_keys)


@promises
def test_groups_that_units_have_once_show_as_seldom_as_those_of_one_row(promised: Promised) -> None:
    of = promising(promised)
    orders = replace(TABLES_HERE["orders"], unit_constant=("store_id",))
    of = replace(of, tables=MappingProxyType({**TABLES_HERE, "orders": orders}))
    (release,) = releases_of(any_plan("select store_id, sum(amount), count(*) from orders group by 1", of))
    check(release, promised.few(of.pico, 1), of.atto_for_keys)


@promises
def test_sets_with_unlisted_groups_divide_the_delta(promised: Promised) -> None:
    of = promising(promised)
    found = releases_of(any_plan("select store_id, status, count(*) from orders group by cube (store_id, status)", of))
    private = [r for r in found if r.analysed.private_keys]
    assert (len(found), len(private)) == (4, 2)
    for release in private:
        check(release, promised.few(of.pico // 4, 7), of.atto_for_keys // 2)
