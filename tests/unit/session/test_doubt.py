"""Numbers that are smaller than their noise are pointed out."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.session.answering.notices import doubt_notices, empty_notices, far_notices
from tests.unit.session.running import Slow, session_with
from tests.unit.session.test_estimate import asked


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("select count(*) from users", "the noise is larger than the number: see hush.low and hush.high"),
        ("select plan, count(*), sum(age), hush.sd(sum(age)) from users group by plan", "8 of 8 numbers"),
        ("select plan, count(distinct city) from users group by plan", "4 of 4 numbers"),
        ("select (select count(*) from users), (select sum(age) from users)", "2 of 2 numbers"),
        ("select avg(age) from users", ""),
        ("select min(age) from users", ""),
        ("select plan, mode() within group (order by city) from users group by plan", ""),
        ("select plan, count(*) from users group by rollup (plan)", ""),
    ],
)
def test_a_number_that_is_all_noise_is_pointed_out(tmp_path: Path, text: str, says: str) -> None:
    noise = Slow()
    noise.may_go_on.set()
    with session_with(noise, tmp_path / "state") as (session, _ledger, _workers):
        told = [n.message for n in asked(session, text).notices if "noise" in n.message]
        assert (told == []) if not says else (says in told[0])


def test_nothing_is_said_of_numbers_above_their_noise() -> None:
    assert doubt_notices(0, 5) == ()
    (one,) = doubt_notices(1, 5)
    assert "1 of 5 numbers" in one.message
    assert "coarser GROUP BY" in one.detail


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("select plan, avg(age), stddev(age) from users group by plan", "8 of 8 averages are NULL"),
        ("select plan, corr(age, height) from users group by plan", "4 of 4 averages are NULL"),
        ("select avg(age) from users", ""),
        ("select plan, count(*) from users group by plan", ""),
    ],
)
def test_averages_that_noise_left_nothing_of_are_pointed_out_among_several(
    tmp_path: Path, text: str, says: str
) -> None:
    noise = Slow()
    noise.may_go_on.set()
    with session_with(noise, tmp_path / "state") as (session, _ledger, _workers):
        told = [n for n in asked(session, text).notices if "averages" in n.message]
        assert [n.message.partition(":")[0] for n in told] == ([says] if says else [])
        assert all("DESC NULLS LAST" in n.detail for n in told)


def test_nothing_is_said_of_averages_that_are_there() -> None:
    assert empty_notices(0, 5) == ()


def test_quantiles_that_may_be_others_than_were_asked_for_are_pointed_out() -> None:
    assert far_notices(0, 3) == ()
    (one,) = far_notices(1, 1)
    assert one.message.startswith("the rank of the quantile may be off by more than a tenth of the rows")
    (several,) = far_notices(2, 12)
    assert "2 of 12 quantiles" in several.message
    assert "see EXPLAIN" in several.detail
