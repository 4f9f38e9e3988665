"""Whether a unit is there, asked in every place where it may be: no answer moves further than one unit may move it."""

from __future__ import annotations

import random

import pytest

from proxy.policy.model import UnitColumns
from tests.fuzz.examine import Examiner, Make, report, run_worlds
from tests.fuzz.promises import always
from tests.fuzz.twins import TwinExaminer
from tests.fuzz.worlds import World

WORLDS = ((115_001, Examiner), (115_002, TwinExaminer))

#: x and y are two tables that hold the unit, d finds it along a path. Each asks of a NULL in another place.
ABSENT = (
    "select u0 is null, count(*) from e group by 1",
    "select count(*) filter (where u0 is null), sum(case when u0 is null then 1 else 2 end) from e",
    "select x.u0 is null and x.code is null, count(*), count(x.u0) from e x group by 1",
    "select y.u0 is null, count(*), sum(least(greatest(y.j, 0), 5)) from p x left join e y on {same} group by 1",
    "select y.u0 is null, x.u0 is not null, count(distinct x.u0) from p x right join e y on {same} group by 1, 2",
    "select x.u0 is null, y.u0 is null, count(*) from p x full join e y on {same} group by 1, 2",
    "select coalesce(x.u0 is null, true), count(*) from p x full join e y on {same} and x.code = y.code group by 1",
    "select count(*) from p x left join e y on {same} and y.code > 1 where y.u0 is null",
    "select count(*) from p x left join e y on {same} where (y.u0 is null) = (x.code is null)",
    "select count(*) from p x where exists (select 1 from e y where {same} and y.u0 is null)",
    "select count(*) from p x where not exists (select 1 from e y where {same} and y.u0 is not null)",
    "select count(*), count(distinct code) from p x where (x.u0, x.code) is null or x.u0 is not null",
    "select e.u0 is null, count(*) from d left join e on d.ref = e.id group by 1",
    "select e.u0 is null, d.ref is null, count(*) from d full join e on d.ref = e.id group by 1, 2",
    "select count(*) filter (where ref is null), avg(case when ref is null then 1 else 0 end) from d",
    "select n > 1, count(*) from (select {u}, count(*) filter (where u0 is null) n from e group by {u}) q group by 1",
    "select k, count(*) from (select {u}, u0 is null as k, count(*) as n from e group by {u}, u0 is null) q group by k",
    "select k, count(*) from (select {xs}, y.u0 is null as k from p x left join e y on {same}) q group by k",
    ("select k, count(*) from (select {xs}, row_number() over (partition by {xs} order by y.u0 is null, y.code) as k"
     " from p x left join e y on {same}) q where k < 3 group by k"),
    "select k, count(*) from (select {u}, u0 is null as k from p union all select {u}, false from e) q group by k",
    "select count(distinct u0 is null), count(distinct case when u0 is null then code end) from e",
)  # fmt: skip


@pytest.mark.parametrize(("world", "of"), WORLDS)
def test_whether_a_unit_is_there_tells_no_more_than_a_unit_may(world: int, of: type[Examiner]) -> None:
    planned = 0
    for query in ABSENT:
        tally = run_worlds((world,), "both", 1, make=_named(query), of=of)
        assert not tally.failures, report(tally)
        planned += tally.planned
    assert planned > len(ABSENT) * 3 / 4, "what is asked here is mostly refused"


def _named(query: str) -> Make:
    def make(world: World, rng: random.Random) -> str:
        ownership = world.tables["e"].ownership
        assert isinstance(ownership, UnitColumns)
        return always(query.replace("{xs}", ", ".join(f"x.{c}" for c in ownership.columns)))(world, rng)

    return make
