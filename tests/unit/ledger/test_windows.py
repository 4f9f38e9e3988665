"""Days, calendar windows, and what they say of a lifetime."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.dp.accounting import epsilon_spent, limit_pico
from proxy.ledger.balances import Running, in_rho
from proxy.ledger.base import Balance
from proxy.ledger.lifetime import everyone_epsilon, lifetime_epsilon, worst_case_lines
from proxy.ledger.windows import day_of, first_day, most_in_a_year, window_end
from proxy.plan.charge import Account, AccountKind, Cost
from proxy.policy.model import Budgets, EpsilonLimit, NoLimit, Privacy, Refresh, Role, Users
from tests.unit.identity.test_tokens import SETTINGS
from tests.unit.sql.corpus import policy

CALENDAR = (Refresh.DAY, Refresh.WEEK, Refresh.MONTH)


def test_a_day_is_one_of_utc() -> None:
    east = timezone(timedelta(hours=13))
    assert day_of(datetime(2026, 3, 1, 12, 59, tzinfo=east)) == date(2026, 2, 28).toordinal()
    assert day_of(datetime(2026, 3, 1, 13, 0, tzinfo=east)) == date(2026, 3, 1).toordinal()


@pytest.mark.parametrize(
    ("refresh", "first", "end"),
    [
        (Refresh.DAY, date(2024, 2, 29), datetime(2024, 3, 1, tzinfo=UTC)),
        (Refresh.WEEK, date(2024, 2, 26), datetime(2024, 3, 4, tzinfo=UTC)),
        (Refresh.MONTH, date(2024, 2, 1), datetime(2024, 3, 1, tzinfo=UTC)),
    ],
)
def test_windows_of_a_leap_day(refresh: Refresh, first: date, end: datetime) -> None:
    day = date(2024, 2, 29).toordinal()
    assert first_day(refresh, day) == first.toordinal()
    assert window_end(refresh, day) == end


@given(st.sampled_from(CALENDAR), st.integers(date(1990, 1, 1).toordinal(), date(2090, 1, 1).toordinal()))
def test_windows_follow_each_other_without_gap(refresh: Refresh, day: int) -> None:
    first, after = first_day(refresh, day), day_of(window_end(refresh, day))
    assert first <= day < after
    assert {first_day(refresh, d) for d in range(first, after)} == {first}
    assert first_day(refresh, after) == after


@pytest.mark.parametrize("refresh", CALENDAR)
def test_a_year_touches_as_many_windows_as_are_counted(refresh: Refresh) -> None:
    touched = [
        len({first_day(refresh, d) for d in range(date(y, 1, 1).toordinal(), date(y + 1, 1, 1).toordinal())})
        for y in range(1990, 2060)
    ]
    assert max(touched) == most_in_a_year(refresh)
    assert most_in_a_year(Refresh.LIFETIME) == 1


def test_a_lifetime_has_no_end() -> None:
    with pytest.raises(ValueError, match="no end"):
        window_end(Refresh.LIFETIME, 1)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 100)), max_size=30), st.sampled_from(list(Refresh)))
def test_a_running_sum_is_that_of_its_window(steps: list[tuple[int, int]], refresh: Refresh) -> None:
    running, day, booked = Running(), date(2026, 1, 1).toordinal(), list[tuple[int, int]]()
    for later, pico in steps:
        day += later
        running.add(day, Cost(pico, 1))
        booked.append((day, pico))
        within = [p for d, p in booked if d >= first_day(refresh, day)]
        assert running.within(refresh, day) == Cost(sum(within), len(within))
    assert len(running.by_day) <= 32


@given(st.integers(0, 10**16))
def test_an_epsilon_in_rho_is_half_its_square_rounded_up(pico: int) -> None:
    rho = in_rho(Cost(pico, 0)).pico
    assert (rho - 1) * 2 * 10**12 < pico**2 <= rho * 2 * 10**12


# --- the worst case -----------------------------------------------------------------------------

PRIVACY = Privacy(unit="customer")


def balance(kind: AccountKind, epsilon: float, refresh: Refresh, granted: float = 0) -> Balance:
    limit, more = (Cost(limit_pico(PRIVACY, e), 0) for e in (epsilon, granted))
    account = Account(kind=kind, name=kind, limited=epsilon > 0, limit=limit, refresh=refresh)
    return Balance(account=account, spent=Cost(0, 0), granted=more)


def test_a_lifetime_is_bounded_by_its_own_limit_or_the_datasets() -> None:
    month = balance(AccountKind.USER, 3, Refresh.MONTH)
    plain = balance(AccountKind.USER, 3, Refresh.LIFETIME, granted=1)
    dataset = balance(AccountKind.DATASET, 20, Refresh.LIFETIME, granted=1)
    again = balance(AccountKind.DATASET, 20, Refresh.WEEK)
    assert lifetime_epsilon(month, (dataset, month), PRIVACY) == epsilon_spent(PRIVACY, dataset.limit.pico) > 20
    assert lifetime_epsilon(plain, (dataset, plain), PRIVACY) == epsilon_spent(PRIVACY, plain.limit.pico) > 3
    for kept in (again, balance(AccountKind.DATASET, 0, Refresh.LIFETIME)):
        assert math.isinf(lifetime_epsilon(month, (kept, month), PRIVACY))
        assert math.isinf(lifetime_epsilon(kept, (kept, month), PRIVACY))
        assert math.isinf(everyone_epsilon((kept, plain), PRIVACY))
    assert everyone_epsilon((plain, dataset), PRIVACY) == epsilon_spent(PRIVACY, dataset.limit.pico)
    spent = replace(dataset, spent=dataset.limit)
    assert everyone_epsilon((spent,), PRIVACY) == everyone_epsilon((dataset,), PRIVACY), "others' spending is not in it"


def test_an_account_that_is_overspent_has_lost_what_it_has_spent_and_others_hear_no_figure_of_it() -> None:
    dataset, user = (balance(k, 3, Refresh.LIFETIME) for k in (AccountKind.DATASET, AccountKind.USER))
    over = Cost(limit_pico(PRIVACY, 4), 0)
    spent, own = replace(dataset, spent=over), replace(user, spent=over)
    assert lifetime_epsilon(own, (dataset, own), PRIVACY) == epsilon_spent(PRIVACY, over.pico) > 3.9
    assert lifetime_epsilon(spent, (spent, user), PRIVACY) == epsilon_spent(PRIVACY, over.pico)
    assert math.isinf(everyone_epsilon((spent, user), PRIVACY))
    month = balance(AccountKind.USER, 3, Refresh.MONTH)
    assert math.isinf(lifetime_epsilon(month, (spent, month), PRIVACY))


def test_each_limit_that_comes_back_has_its_sentence() -> None:
    served = policy()
    monthly, daily = EpsilonLimit(3, Refresh.MONTH), EpsilonLimit(1, Refresh.DAY)
    budgets = Budgets(dataset=EpsilonLimit(20), user=monthly, session=NoLimit(), role=EpsilonLimit(5))
    users = Users(logins={}, roles={"guest": Role(name="guest", shared=daily)})
    changed = type(served)(**{**{n: getattr(served, n) for n in served.__slots__}, "budgets": budgets})
    first, second = worst_case_lines(changed, users)
    assert first.startswith(
        "budgets.user: epsilon 3 comes back every month; worst case in a calendar year: epsilon 12.35 at"
    )
    assert first.endswith("over the lifetime of the data: epsilon 20 by budgets.dataset")
    assert second.startswith("shared_budget of guest: epsilon 1 comes back every day; worst case in a calendar year")
    assert list(worst_case_lines(changed)) == [first]


def test_people_from_outside_have_the_sentence_of_their_role() -> None:
    role = Role(name="guest", budget=EpsilonLimit(1, Refresh.DAY))
    outside = replace(SETTINGS, groups=(("analysts", "guest"),))
    users = Users(logins={}, roles={"guest": role, "other": replace(role, name="other")}, outside=outside)
    (line,) = worst_case_lines(policy(), users)
    assert line.startswith("budget of each guest from outside: epsilon 1 comes back every day")
