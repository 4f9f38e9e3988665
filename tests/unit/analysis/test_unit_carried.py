"""Whatever sub-select hands the unit on, it stays the unit: nobody may filter by it, group by it or add it up."""

from __future__ import annotations

from itertools import product

import pytest

from proxy.errors import BadGroups, HushError, PolicyForbids
from tests.unit.plan.shop import plan

MET = "from users u left join orders o on u.user_id = o.user_id"

#: Rows of units with a column k that holds the unit, or the one that an outer join has met.
CARRIERS = (
    "select user_id as u, user_id as k from orders",
    "select u.user_id as u, o.user_id as k from users u join orders o using (user_id)",
    f"select u.user_id as u, o.user_id as k {MET}",
    f"select u.user_id as u, o.user_id as k, count(*) as n {MET} group by u.user_id, o.user_id",
    "select u.user_id as u, o.user_id as k, count(*) as n from users u join orders o using (user_id) group by 1, 2",
    ("select o.user_id as u, u.user_id as k, count(*) as n from users u right join orders o on u.user_id = o.user_id"
     " group by o.user_id, u.user_id"),
    f"select u.user_id as u, coalesce(o.user_id, u.user_id) as k {MET}",
    f"select distinct u.user_id as u, o.user_id as k {MET}",
    f"select u.user_id as u, o.user_id as k {MET} union all select user_id, user_id from users",
    f"select u.user_id as u, o.user_id as k {MET} union select user_id, 5 from users",
    f"select u.user_id as u, o.user_id as k {MET} union all select user_id, 5 from users",
    "select u.user_id as u, o.user_id as k from users u full join orders o on u.user_id = o.user_id and u.age > 5",
    ("select coalesce(u.user_id, o.user_id) as u, o.user_id as k, count(*) as n from users u full join orders o"
     " on u.user_id = o.user_id group by coalesce(u.user_id, o.user_id), o.user_id"),
    f"select u.user_id as u, lag(o.user_id) over (partition by u.user_id order by u.age) as k {MET}",
    f"select u.user_id as u, o.user_id as k, row_number() over (partition by u.user_id) as r {MET}",
    "select u.user_id as u, l.user_id as k from users u, lateral (select * from orders where user_id = u.user_id) l",
    f"select q.u, q.k from (select u.user_id as u, o.user_id as k, count(*) {MET} group by u.user_id, o.user_id) q",
    f"select u.user_id as u, case when u.age > 3 then o.user_id else 5 end as k {MET}",
)  # fmt: skip
USES = (
    "select count(*) from ({}) q where k = 5",
    "select k, count(*) from ({}) q group by k",
    "select count(*) filter (where k < 5) from ({}) q",
    "select sum(least(greatest(k, 0), 100)) from ({}) q",
    "select count(*) from (select u, count(*) filter (where k = 5) as n from ({}) q group by u) z where n > 0",
)


@pytest.mark.parametrize("use", USES)
def test_what_holds_the_unit_goes_on_to(use: str) -> None:
    accepted = []
    for carrier in CARRIERS:
        try:
            plan(use.format(carrier))
        except (PolicyForbids, BadGroups):
            continue
        except HushError as error:
            pytest.fail(f"refused for another reason: {error} {carrier}")
        accepted.append(carrier)
    assert not accepted


def test_whether_it_is_there_may_be_asked() -> None:
    for carrier, use in product(CARRIERS[:5], ("select count(*) from ({}) q where k is null",
                                               "select k is null, count(k) from ({}) q group by 1")):  # fmt: skip
        assert plan(use.format(carrier)).vector.moments


#: Rows whose k is the unit in some alone; in others whatever the asker likes.
MIXED = (
    "select user_id as u, user_id as k from users union all select user_id, store_id from orders",
    "select user_id as u, store_id as k from orders union select user_id, user_id from users",
    "select user_id as u, user_id as k from users union all {}",
    "select user_id as u, user_id as k from users union {}",
    "select z.u, z.k from (select user_id as u, user_id as k from users union all {}) z",
)
CHOSEN = (
    "select user_id, k from (select distinct user_id, age + 5 as k from users) c",
    "select user_id, k from (select user_id, age + 5 as k, count(*) from users group by 1, 2) c",
    "select user_id, k from (select user_id, first_value(5) over (partition by user_id) as k from users) c",
    "select user_id, s.store_id from orders join stores s using (store_id)",
)


@pytest.mark.parametrize("use", ["select count(*) from ({}) q where k = u",
                                 "select count(*) filter (where u = k) from ({}) q"])  # fmt: skip
def test_what_is_the_unit_in_some_rows_is_not_compared_with_it(use: str) -> None:
    for mixed, chosen in product(MIXED, CHOSEN):
        with pytest.raises(PolicyForbids, match="identifies the privacy unit"):
            plan(use.format(mixed.format(chosen)))
