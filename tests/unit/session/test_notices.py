"""What is said about a charge, and to whom."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from proxy.dp.accounting import knob_pico
from proxy.errors import BudgetSpent
from proxy.ledger.base import AccountSpent, Balance, Receipt, Shortfall
from proxy.ledger.promises import Standing
from proxy.plan.charge import AccountKind, Cost
from proxy.plan.release_plan import Threshold
from proxy.plan.words.outputs import output_noise
from proxy.policy.figures import figure
from proxy.policy.model import Refresh
from proxy.release.noisy import NoisyCells, NoisyCut
from proxy.session.answering.notices import (
    budget_spent,
    charge_notices,
    left_out_notices,
    left_out_words,
    rank_notices,
    threshold_notices,
    zone_notices,
)
from proxy.sqltypes import SqlType
from proxy.wire.exchange import CHARGED, FREE
from tests.unit.plan.shop import context, plan
from tests.unit.session.make import LIMIT, PRIVACY, account, balance

CHARGE = LIMIT // 10


def receipt(*balances: Balance, charged: int = CHARGE) -> Receipt:
    return Receipt(statement=1, items=(), charged=(Cost(charged, 0),) * len(balances), balances=balances)


def said(found: Receipt, *, is_admin: bool = False) -> list[str]:
    return [f"{n.severity}: {n.message}" for n in charge_notices(found, PRIVACY, is_admin=is_admin)]


def test_dataset_figures_are_for_admins() -> None:
    found = receipt(balance(0.5, "dataset"), balance(0.1, "user"), balance(0.2, "session"))
    (to_user,) = said(found)
    assert "dataset" not in to_user
    assert to_user.startswith("NOTICE: charged epsilon 0.584; left: user ")
    assert "dataset" in said(found, is_admin=True)[0]


def test_a_limit_that_comes_back_is_told_with_its_lifetime_loss() -> None:
    monthly = replace(balance(0.1), account=replace(account(), refresh=Refresh.MONTH))
    (bounded,) = said(receipt(balance(0.5, "dataset"), monthly))
    assert bounded.endswith("left: user 1.889 of 2 this month (at worst 2 over the lifetime)")
    (free,) = said(receipt(balance(0, "dataset", limited=False), monthly))
    assert free.endswith("left: user 1.889 of 2 this month (without bound over the lifetime)")


def test_unlimited_account_and_free_answer() -> None:
    found = receipt(balance(0, "dataset"), balance(0, "user", limited=False), charged=0)
    assert said(found) == ["NOTICE: charged nothing: your accounts paid for this release already; left: user unlimited"]
    assert [n.sqlstate for n in charge_notices(found, PRIVACY, is_admin=False)] == [FREE]
    paid = replace(found, charged=(Cost(0, 0), Cost(CHARGE, 0)))
    assert [n.sqlstate for n in charge_notices(paid, PRIVACY, is_admin=False)] == [CHARGED]


def test_a_charge_names_the_accounts_that_pay_when_others_do_not() -> None:
    found = receipt(balance(0.1, "user"), balance(0.2, "session"))
    first = replace(found, charged=(Cost(0, 0), Cost(CHARGE, 0)))
    assert said(first)[0].startswith("NOTICE: charged epsilon 0.584 to the session (paid before: user); left: user ")
    partly = replace(found, charged=(Cost(CHARGE // 2, 0), Cost(CHARGE, 0)))
    assert said(partly)[0].startswith("NOTICE: charged epsilon 0.4045 to the user, 0.584 to the session; left: ")


def test_the_refusal_of_a_role_shows_no_figures() -> None:
    found = budget_spent(AccountSpent((), AccountKind.ROLE), PRIVACY)
    assert found.message == "the privacy budget of your role is spent"
    assert not any(c.isdigit() for c in found.text())


@pytest.mark.parametrize(
    ("spent", "warning"),
    [(0.7, []), (0.801, ["80%"]), (0.85, ["80%"]), (0.94, []), (0.951, ["95%"]), (1.0, ["95%"])],
)
def test_warning_is_given_once_when_a_mark_is_passed(spent: float, warning: list[str]) -> None:
    found = [s for s in said(receipt(balance(spent))) if s.startswith("WARNING")]
    assert [s.split()[1] for s in found] == warning


def test_quantiles_are_said_to_be_approximate() -> None:
    found = output_noise(plan("select count(*), min(age), percentile_cont(0.5) within group (order by age) from users"))
    (notice,) = rank_notices(found)
    most = max(math.ceil(o.half_width_95) for o in found if o.is_of_ranks)
    assert notice.severity == "NOTICE"
    assert f"{most:,} rows or fewer off" in notice.message
    assert rank_notices(output_noise(plan("select count(*), avg(height) from users"))) == ()


def test_modes_are_said_to_be_drawn() -> None:
    found = output_noise(plan("select mode() within group (order by age), min(age) from users"))
    ranks, modes = rank_notices(found)
    assert "rows or fewer off" in ranks.message
    (short,) = (math.ceil(o.half_width_95) for o in found if o.is_of_mode)
    assert modes.message == (
        f"mode() is approximate: a value that is {short:,} rows short of the most frequent is given with a"
        " chance of at most 5 %"
    )


def test_the_size_from_which_unlisted_groups_are_shown_is_told() -> None:
    of = plan("select city, count(*) from users group by city")
    assert isinstance(of.selection, Threshold)
    (notice,) = threshold_notices([of], "customer")
    assert notice.message == f"groups of fewer than about {figure(of.selection.tau, 2)} customers are not shown"
    assert 10 < of.selection.tau < 1000
    assert threshold_notices([plan("select plan, count(*) from users group by plan")], "customer") == ()
    mode = plan("select mode() within group (order by city) from users")
    (notice,) = threshold_notices([mode], "customer")
    assert notice.message.startswith("groups and values of fewer than about ")


def test_no_warning_when_nothing_was_charged() -> None:
    assert len(said(receipt(balance(0.99), charged=0))) == 1


def test_refusal_speaks_of_epsilon_and_offers_what_fits() -> None:
    shortfall = Shortfall(balance=balance(0.99, "session"), needed=Cost(CHARGE, 0))
    error = AccountSpent((shortfall,))
    told = budget_spent(error, PRIVACY)
    assert type(told) is BudgetSpent
    assert told.message == "too little is left of your session budget"
    assert "costs epsilon 0.584; the session account has 0.1" in told.detail
    assert told.hint.startswith("SET hush.epsilon = 0.1")


def test_refusal_when_nothing_is_left_offers_repetition_only() -> None:
    empty = Balance(account=account(), spent=Cost(LIMIT, 0))
    error = AccountSpent((Shortfall(balance=empty, needed=Cost(CHARGE, 5)),))
    told = budget_spent(error, PRIVACY)
    assert "delta" in told.detail
    assert told.hint == "Statements that were answered before can be repeated at no charge."


def test_refusal_for_the_dataset_shows_no_figures() -> None:
    told = budget_spent(AccountSpent(()), PRIVACY)
    assert told.message == "the privacy budget of this dataset is spent"
    assert "Nothing was charged." in told.detail
    assert not any(c.isdigit() for c in told.text())


def test_refusal_names_every_account_of_the_caller_that_is_short() -> None:
    short = tuple(Shortfall(balance=balance(0.99, kind), needed=Cost(CHARGE, 0)) for kind in ("user", "session"))
    told = budget_spent(AccountSpent(short), PRIVACY)
    assert told.message == "too little is left of your user and session budget"
    assert "the user account has" in told.detail
    assert "the session account has" in told.detail


def test_the_epsilon_that_would_fit_is_what_counts_no_more_than_is_left() -> None:
    """A charge under the policy counts 25 times where groups of 5 were promised before."""
    kept = replace(balance(0), standing=Standing(reach=5, group_size=5))
    hint = budget_spent(AccountSpent((Shortfall(balance=kept, needed=Cost(CHARGE * 25, 0)),)), PRIVACY).hint
    fitting = float(hint.split(" ")[3])
    assert hint.startswith(f"SET hush.epsilon = {fitting:g} would fit. ")
    fits, more = (kept.counted(knob_pico(PRIVACY, e)) for e in (fitting, fitting + 0.002))
    assert fits <= kept.remaining.pico < more


@pytest.mark.parametrize(
    ("kinds", "session", "policy", "is_told"),
    [
        ({SqlType.TIMESTAMPTZ}, "America/New_York", "UTC", True),
        ({SqlType.TIMESTAMPTZ}, "UTC", "Europe/Zurich", True),
        ({SqlType.TIMESTAMPTZ}, "Europe/Zurich", "Europe/Zurich", False),
        ({SqlType.TIMESTAMPTZ}, "Etc/UTC", "UTC", False),
        ({SqlType.TIMESTAMPTZ}, "", "Europe/Zurich", False),
        ({SqlType.TIMESTAMP, SqlType.DATE}, "America/New_York", "UTC", False),
    ],
)
def test_other_time_zone_is_told(kinds: set[SqlType], session: str, policy: str, is_told: bool) -> None:
    found = zone_notices(frozenset(kinds), session, replace(PRIVACY, time_zone=policy))
    assert [policy in n.message and session in n.message for n in found] == [True] * is_told


def test_of_how_many_units_rows_are_left_out_is_told_with_the_answer() -> None:
    """Before, that it will be told; then the noisy share alone, and of a small one nothing but in hush.last_query."""
    of = plan("select count(*) from orders", context(tell_cut=True))
    (before,) = left_out_notices([of], "customer")
    assert before.message.endswith("tells how many customers have rows left out, which makes its noise 1 % larger")
    unit = of.scale * of.cut_weight

    def after(cut: int, whole: int) -> tuple[list[str], str]:
        cells = {of.fingerprint: NoisyCells((), (NoisyCut(0, round(cut * unit), round(whole * unit)),))}
        found = [n.message for n in left_out_notices([of, of], "customer", cells)]
        return found, left_out_words([of], "customer", cells)

    told = "about 28 % of customers have rows left out (27 to 30 %)"
    assert after(2842, 7158) == ([told], told)
    assert after(-60, 10_060) == ([], "less than 1 % of customers have rows left out")
    untold = plan("select count(*) from orders")
    (as_before,) = left_out_notices([of, untold], "customer", {of.fingerprint: NoisyCells(())})
    assert as_before.message.endswith("without a profile nothing tells what is left out")
