"""Are modes values of drawn candidates, whatever else the rows hold, in PostgreSQL's spelling, and NULL for too few?"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from proxy.errors import BadGroups
from proxy.plan.modes import ModePart
from proxy.plan.release_plan import ReleasePlan, Threshold
from proxy.release.noisy import NoisyCells
from proxy.release.ranks import check_sizes
from proxy.sql.block import Carries
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import context, plan
from tests.unit.release.test_ranks import PRECISE, Rows, answered, shown

PLAN = "select mode() within group (order by plan) from users"


def vector_of(of: ReleasePlan, rows: int) -> Rows:
    """What the engine gives for that many rows in the one group."""
    each = int(of.scale * of.allocation.weights[0])
    return [(0, rows * each)]


def test_the_value_of_most_rows_is_shown() -> None:
    of = plan(PLAN, PRECISE)
    cells = answered(of, vector_of(of, 50), [("free", 10 * 1024), ("pro", 40 * 1024)])
    assert cells.cells[0].parts == ((1,),)
    assert shown(of, cells, SqlType.TEXT) == [("pro",)]
    for carries in (Carries.LOW, Carries.HIGH, Carries.SD):
        assert shown(of, cells, SqlType.TEXT, carries=carries) == [(None,)]


def test_the_answer_is_a_function_of_the_drawn_candidate() -> None:
    of = plan(PLAN, PRECISE)
    some = [[("free", 1024)], [("pro", 90 * 1024)], []]
    found = [answered(of, vector_of(of, 50), rows, choose=lambda *_: 0) for rows in some]
    assert found[0] == found[1] == found[2]
    assert {shown(of, cells, SqlType.TEXT)[0] for cells in found} == {("free",)}


def test_what_is_no_candidate_does_not_exist() -> None:
    of = plan(PLAN, PRECISE)
    cells = answered(of, vector_of(of, 50), [("gold", 90 * 1024), (None, 99 * 1024), ("pro", 1024)])
    assert shown(of, cells, SqlType.TEXT) == [("pro",)]


@pytest.mark.parametrize(
    ("of", "value", "kind", "text"),
    [
        ("age > 30", True, SqlType.BOOL, "t"),
        ("age", 41, SqlType.INT4, "41"),
        ("joined", date(2020, 2, 29), SqlType.DATE, "2020-02-29"),
        ("extract(year from joined)", 2020.0, SqlType.NUMERIC, "2020"),
    ],
)
def test_modes_are_spelled_as_postgresql_spells_their_type(of: str, value: object, kind: SqlType, text: str) -> None:
    wanted = plan(f"select mode() within group (order by {of}) from users", PRECISE)
    cells = answered(wanted, vector_of(wanted, 90), [(value, 60 * 1024)])
    assert shown(wanted, cells, kind) == [(text,)]


def test_too_few_rows_have_no_mode() -> None:
    of = plan("select mode() within group (order by age) from users")
    (part,) = of.parts
    assert isinstance(part, ModePart)
    sd = of.sds[0]
    least = max(part.poll.least, 2 * sd)
    few, many = (vector_of(of, rows) for rows in (int(least) - 1, int(least) + 2))
    assert shown(of, answered(of, few, [(41, 9000 * 1024)]), SqlType.INT4) == [(None,)]
    assert shown(of, answered(of, many, []), SqlType.INT4) != [(None,)], "what is drawn is shown, whatever the rows are"


def test_every_shown_group_has_a_draw_of_its_own() -> None:
    of = plan("select plan, mode() within group (order by age > 30) from users group by plan", PRECISE)
    each = int(of.scale * of.allocation.weights[0])
    vector = [(0, "free", 50 * each), (0, "pro", 50 * each)]
    rows = [("pro", True, 30 * 1024), ("pro", False, 20 * 1024), ("gold", True, 9 * 1024)]
    cells = answered(of, vector, rows)
    assert [c.parts for c in cells.cells] == [((0,),), ((1,),)]


def test_histograms_of_modes_are_limited_together() -> None:
    of = plan("select city, mode() within group (order by age) from users group by city", context())
    assert isinstance(of.selection, Threshold)
    check_sizes(of, NoisyCells(()))
    (part,) = of.parts
    assert isinstance(part, ModePart)
    wide = replace(of, parts=(replace(part, poll=replace(part.poll, candidates=1 << 22)),))
    cells = answered(of, [], [])
    check_sizes(wide, cells)
    with pytest.raises(BadGroups, match="mode"):
        check_sizes(wide, NoisyCells(answered(*_two_groups()).cells))


def _two_groups() -> tuple[ReleasePlan, Rows, Rows]:
    of = plan("select plan, mode() within group (order by age > 30) from users group by plan", PRECISE)
    return of, [], []
