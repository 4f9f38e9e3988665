"""What a profile tells is not had free, in whatever disguise, where the policy says that it is charged."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.errors import BudgetSpent, HushError
from tests.unit.plan.test_profile import PROFILE
from tests.unit.session.test_confirm import FEW
from tests.unit.session.test_estimate import asked
from tests.unit.session.test_profile_payment import charged

COUNT = "select count(*) from orders"
DISGUISES = (
    COUNT,
    f"explain {COUNT}",
    f"explain (format json) {COUNT}",
    f"select * from hush.estimate('{COUNT}') e",
    f"select * from hush.estimate('select 1; explain {COUNT}; {COUNT}') e",
    'explain select count(*) from "orders"',
    'explain select count(*) from "shop"."public"."orders"',
    "EXPLAIN SELECT COUNT(*) FROM OrDeRs",
    "explain with o as (select amount from orders) select sum(amount) from o",
    "explain select u.city, count(*) from users u join orders o on o.user_id = u.user_id group by u.city",
    "explain select count(*) from users where age > (select avg(amount) from orders)",
    "explain select count(*) from users u where exists (select 1 from orders o where o.user_id = u.user_id)",
    "explain select nothing from orders",
    "explain select count(*) from/**/orders",
)
REFUSED_AS_WRITTEN = {'explain select count(*) from "shop"."public"."orders"'} | {
    text for text in DISGUISES if "(select avg" in text or "nothing" in text
}
SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"hush.target_error": "0.001"},
    {"hush.confirm": "on", "hush.epsilon": "0.0001"},
)


@pytest.mark.parametrize("place", range(len(SETTINGS)))
def test_nothing_of_a_profile_is_told_to_who_has_not_paid(tmp_path: Path, place: int) -> None:
    """Whatever two profiles say, a login that cannot pay is told the same to the byte, and charged nothing."""
    heard = []
    for number, profile in enumerate((PROFILE, FEW)):
        said = list[tuple[type, str]]()
        with charged(tmp_path / str(number), profile, user=0.3) as here:
            for text in DISGUISES:
                with pytest.raises(HushError) as refused:
                    asked(here.session, text, SETTINGS[place])
                said.append((type(refused.value), refused.value.text()))
            found = asked(here.session, "select * from hush.policy")
            said.append((type(found), f"{found.sql} {found.arrays}"))
            assert here.spent("user") == here.spent("session") == []
        heard.append(said)
    assert heard[0] == heard[1]
    others = {text for text, (kind, _) in zip(DISGUISES, heard[0], strict=False) if kind is not BudgetSpent}
    assert others <= REFUSED_AS_WRITTEN, "refused by the text and the policy alone"
