"""What is said of what bounds leave out, and do intervals hold it?"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from proxy.plan.profile.bound_choice import FromProfile
from proxy.plan.profile.left_out import COMPLETE, About, Untold, told
from proxy.plan.profile.profile import TableProfile
from proxy.plan.release_plan import PlanContext, ReleasePlan
from proxy.plan.vector.recipes import Count, Total
from proxy.plan.words.explain_sets import explain_plan, plan_lines
from proxy.policy.model import Bounded, WrittenBound
from proxy.release.figure import Figure
from proxy.release.finish import _figures
from proxy.session.answering.notices import left_out_notices, unsaid
from tests.unit.plan.shop import any_plan, context, context_with_sums, plan
from tests.unit.plan.test_profile import PROFILE, PROFILED, ROWS, counted

COUNT = "select count(*) from orders"
AVERAGE = "select avg(amount) from orders"


def shown(of: ReleasePlan, bounded: float, rng: random.Random) -> Figure:
    """The first aggregate of an answer whose bounded truth is known."""
    (recipe,) = of.vector.finishes
    assert isinstance(recipe, (Count, Total))
    (found,) = _figures(recipe, of, [[bounded + rng.gauss(0.0, sd) for sd in of.sds]], nonnegative=True)
    return found


def test_intervals_hold_the_truth_that_bounds_cut() -> None:
    """40 profiles, 50 answers each: 95 of 100 wanted; below 1,830 of 2,000 by chance once in 10^5 at 94 of 100."""
    held = without = 0
    true = float(sum(ROWS))
    for seed in range(40):
        profile = TableProfile(table="orders", allowed=60, rows=counted(ROWS, seed=seed), sums=(), data_version="7")
        of = plan(COUNT, replace(context(), profiles=(profile,)))
        assert isinstance(of.left_out, About)
        most = of.allocation.unit_norm / of.allocation.weights[0]
        bounded, rng = sum(min(n, most) for n in ROWS), random.Random(seed)
        for _ in range(50):
            figure = shown(of, bounded, rng)
            held += figure.low <= true <= figure.high
            without += abs(figure.value - true) <= 1.96 * of.sds[0] if figure.value else 0
    assert held >= 1_830
    assert without < held, "the noise alone does not hold it as often"


def test_where_nothing_is_cut_intervals_hold_no_more_than_they_say() -> None:
    """All units are below the bound: 20,000 answers, of which 95 % are held; 93.9 to 96.1 % by chance."""
    of, rng, true = plan(COUNT, PROFILED), random.Random(5), 3.0 * len(ROWS)
    assert isinstance(of.left_out, About)
    figures = [shown(of, true, rng) for _ in range(20_000)]
    assert 18_780 <= sum(f.low <= true <= f.high for f in figures) <= 19_220


def test_intervals_know_of_units_that_the_noise_of_a_profile_hides() -> None:
    of = plan(COUNT, PROFILED)
    assert isinstance(of.bound, FromProfile)
    assert isinstance(of.left_out, About)
    profile = PROFILED.profiles[0]
    assert of.bound.unseen == profile.rows.sd
    blind = replace(of, bound=replace(of.bound, unseen=0.0))
    one, other = (shown(p, 1000.0, random.Random(1)) for p in (of, blind))
    half_a_bound = of.bound.unseen * of.allocation.unit_norm / of.allocation.weights[0] / 2.0
    assert one.high - other.high == pytest.approx(half_a_bound, abs=0.4 * of.sds[0])
    assert one.low >= other.low, "both ends are never missed at once"


@pytest.mark.parametrize("rows", [5, 12, 60])
def test_the_policys_bounds_leave_out_what_they_do(rows: int) -> None:
    """Averages keep them. Without keys T rows of a unit count; with keys C of them in a group at least."""
    of = plan(AVERAGE, _bounded(60, rows))
    assert isinstance(of.left_out, About)
    true = 1.0 - sum(min(n, rows) for n in ROWS) / sum(ROWS)
    cut = sum(n > rows for n in ROWS) / len(ROWS)
    assert of.left_out.share == pytest.approx(true, rel=0.1, abs=0.02)
    assert of.left_out.units == pytest.approx(cut, rel=0.1, abs=0.02)
    by_status = plan("select status, avg(amount) from orders group by status", _bounded(rows, 60)).left_out
    assert isinstance(by_status, About)
    assert by_status.least <= by_status.share <= by_status.most
    assert by_status.most == pytest.approx(true, rel=0.1, abs=0.02), "all rows of a unit in one group"


def _bounded(per_group: int, rows: int) -> PlanContext:
    of = PROFILED
    orders = replace(of.tables["orders"], rows_per_group=WrittenBound(per_group), rows_per_unit=WrittenBound(rows))
    return replace(of, tables={**of.tables, "orders": orders})


def test_what_is_told_is_a_function_of_profile_price_policy_and_text() -> None:
    """Claim of `left_out`: the same for equal ones, whatever stands in the tables; other for others."""
    assert plan(COUNT, PROFILED).left_out == plan(COUNT, PROFILED).left_out
    assert plan(COUNT, PROFILED).left_out != plan(COUNT, replace(PROFILED, pico=PROFILED.pico * 100)).left_out
    assert plan(AVERAGE, PROFILED).left_out == plan(AVERAGE, replace(PROFILED, pico=PROFILED.pico * 100)).left_out


def test_a_condition_lowers_the_range_to_nothing() -> None:
    found = plan("select avg(amount) from orders where status = 'paid'", PROFILED).left_out
    assert isinstance(found, About)
    assert found.least == 0.0
    assert "before WHERE" in told(found, "customer")


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from users",
        "select city, count(*), avg(age) from users group by city",
        "select count(distinct user_id) from orders",
    ],
)
def test_nothing_is_said_where_every_row_counts(query: str) -> None:
    for of in (plan(query, PROFILED), plan(query)):
        assert of.left_out == COMPLETE
        assert told(of.left_out, "customer") == ""
        assert not left_out_notices((of,), "customer")


def test_what_nothing_tells_is_said_once_in_a_session() -> None:
    of, said = plan(COUNT), set[str]()
    assert isinstance(of.left_out, Untold)
    (notice,) = unsaid(left_out_notices((of,), "customer"), said)
    assert notice.message.startswith("of a customer count as much as 60 rows")
    assert not unsaid(left_out_notices((of,), "customer"), said)
    assert shown(of, 1000.0, random.Random(1)).high < 1000 + 6 * of.sds[0], (
        "an interval is not widened by what nobody knows"
    )


def test_a_share_is_said_each_time_and_in_the_plan() -> None:
    of, said = plan(AVERAGE, PROFILED), set[str]()
    (notice,) = unsaid(left_out_notices((of,), "customer"), said)
    for _ in range(2):
        assert unsaid(left_out_notices((of,), "customer"), said) == (notice,)
        assert notice.message.startswith("bounds leave out about ")
        assert "of customers" in notice.message
    assert f"Left out: {notice.message}" in " ".join(" ".join(plan_lines(explain_plan(of, PROFILED.privacy))).split())


def test_sets_say_what_they_leave_out_and_choose_no_bound() -> None:
    of = any_plan("select status, count(*) from orders group by rollup (status)", PROFILED)
    notices = left_out_notices((of,), "customer")
    assert notices
    assert not any(p.allocation.is_chosen for p in of.plans)


@pytest.mark.parametrize("most", [300, 1500])
def test_sums_that_units_totals_bound_lose_what_is_beyond_them(most: int) -> None:
    """A unit's sum is 50 for each of its rows here."""
    of = replace(context_with_sums(Bounded(0, most)), profiles=(PROFILE,), may_choose=False)
    found = plan("select sum(amount) from orders", of).left_out
    assert isinstance(found, About)
    true = 1.0 - sum(min(50.0 * n, most) for n in ROWS) / (50.0 * sum(ROWS))
    assert found.share == pytest.approx(true, rel=0.15)
    assert found.least < true < found.most


def test_sums_of_what_was_not_profiled_are_not_told() -> None:
    of = replace(context_with_sums(Bounded(0, 1500)), may_choose=False)
    for profile in (replace(PROFILE, sums=()), PROFILE):
        query = "select sum(amount) from orders" if not profile.sums else "select sum(amount * 2) from orders"
        found = plan(query, replace(of, profiles=(profile,))).left_out
        assert isinstance(found, Untold if not profile.sums else About)


def test_a_profile_of_older_data_is_told_in_notices_and_in_explain() -> None:
    """Also where bounds leave out next to nothing, since more rows of units would not be seen."""
    words = "by a profile of data version 7, while the data are of version 9"
    for query in (COUNT, AVERAGE, "select status, sum(amount) from orders group by status"):
        fresh, old = (plan(query, replace(context(), profiles=(p,))) for p in (PROFILE, replace(PROFILE, newer="9")))
        assert isinstance(old.left_out, About)
        (notice,) = left_out_notices((old,), "customer")
        assert words in notice.message
        assert not any(words in n.message for n in left_out_notices((fresh,), "customer"))
        assert fresh.sql == old.sql, "it is as private, and the same is asked"
    lines = " ".join(" ".join(plan_lines(explain_plan(plan(COUNT, _old()), context().privacy))).split())
    assert "by the profile of data version 7, while the data are of version 9" in lines
    assert words in told(
        About(share=0.001, least=0.0, most=0.01, units=0.01, is_filtered=False, outdated=("7", "9")), "u"
    )


def _old() -> PlanContext:
    return replace(context(), profiles=(replace(PROFILE, newer="9"),))
