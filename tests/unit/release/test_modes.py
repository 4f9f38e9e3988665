"""Are modes values of drawn candidates, whatever else the rows hold, in PostgreSQL's spelling, and NULL for too few?"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import duckdb
import pytest

from proxy.analysis.keys import NULL_KEY
from proxy.errors import BadGroups
from proxy.plan.parts.modes import ModePart
from proxy.plan.release_plan import ReleasePlan, Threshold
from proxy.release.finish import finish
from proxy.release.noisy import NoisyCells
from proxy.release.parts import publish_release
from proxy.release.ranks import check_sizes
from proxy.release.raw import RawResult
from proxy.sql.query.block import Carries, Injected
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import context, plan
from tests.unit.plan.test_quantiles import USERS
from tests.unit.release.test_ranks import PRECISE, NoNoise, Rows, answered, shown

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


# --- values that nobody listed -----------------------------------------------------------------------------------

UNLISTED = "select mode() within group (order by city) from users"
BY_PLAN = "select plan, mode() within group (order by city) from users group by plan"
BY_CITY = "select city, mode() within group (order by born) from users group by city"


def released(of: ReleasePlan, *groups: tuple[object, ...]) -> NoisyCells:
    """What is published of users: so many of each group, which are (rows, plan, city, born)."""
    connection = duckdb.connect()
    connection.execute(USERS)
    unit = 0
    for rows, *values in groups:
        assert isinstance(rows, int)
        for _ in range(rows):
            unit += 1
            connection.execute("insert into users (user_id, plan, city, born) values (?, ?, ?, ?)", [unit, *values])
    return publish_release(of, lambda *_: RawResult(0, tuple(connection.execute(of.sql).fetchall())), NoNoise())


def told(of: ReleasePlan, cells: NoisyCells, *keys: SqlType, value: SqlType = SqlType.TEXT) -> list[tuple[object, ...]]:
    """The rows of the answer."""
    columns = tuple(Injected(Carries.KEY, i, kind) for i, kind in enumerate(keys))
    columns += (Injected(Carries.GROUPING, 0, SqlType.INT4),) if keys else ()
    found = finish(of, cells, (*columns, Injected(Carries.VALUE, 0, value)), nonnegative=True, time_zone="UTC")
    assert found.rows == len(found.columns[0].values)
    return [
        tuple(v)
        for v in zip(*(c.values for c in found.columns if c.column.carries is not Carries.GROUPING), strict=True)
    ]


def test_the_largest_noisy_number_above_the_threshold_decides() -> None:
    of = plan(UNLISTED, PRECISE)
    cells = released(of, (40, "pro", "Basel", None), (60, "pro", "Bern", None), (1, "pro", "Zug", None),
                     (90, "pro", None, None))  # fmt: skip
    assert told(of, cells) == [("Bern",)]
    assert told(of, NoisyCells(cells.cells[:1])) == [("Basel",)], "a function of the released cells alone"


def test_what_has_no_value_is_not_the_most_frequent_one() -> None:
    """Such as a time that the engine cannot hold: it is no NULL there, and NULL in the group's key."""
    of = plan(UNLISTED, PRECISE)
    basel, bern = released(of, (40, "pro", "Basel", None), (60, "pro", "Bern", None)).cells
    assert told(of, NoisyCells((basel, replace(bern, key=(NULL_KEY,))))) == [("Basel",)]
    of = plan(BY_CITY, PRECISE)
    (cell,) = released(of, (40, "pro", "Zug", date(2001, 1, 2))).cells
    assert told(of, NoisyCells((replace(cell, key=("Zug", NULL_KEY)),)), SqlType.TEXT) == [("Zug", None)]


def test_where_no_value_is_above_the_threshold_there_is_one_row_without() -> None:
    of = plan(UNLISTED, PRECISE)
    assert told(of, released(of, (1, "pro", "Zug", None))) == [(None,)]


def test_every_public_group_is_shown() -> None:
    """Those without a kept value, and those of whose rows there are none, too."""
    of = plan(BY_PLAN, PRECISE)
    cells = released(of, (50, "pro", "Bern", None), (20, "pro", "Basel", None), (30, "free", "Basel", None))
    assert told(of, cells, SqlType.TEXT) == [("free", "Basel"), ("pro", "Bern")]
    cells = released(of, (50, "pro", "Bern", None), (1, "free", "Zug", None))
    assert told(of, cells, SqlType.TEXT) == [("free", None), ("pro", "Bern")]
    assert told(of, released(of), SqlType.TEXT) == [("free", None), ("pro", None)]


def test_private_groups_are_shown_that_have_a_value() -> None:
    of = plan(BY_CITY, PRECISE)
    days = date(2001, 1, 2), date(2003, 4, 5)
    cells = released(of, (40, "pro", "Zug", days[0]), (30, "pro", "Bern", days[0]), (60, "pro", "Bern", days[1]),
                     (1, "pro", "Chur", days[1]))  # fmt: skip
    found = told(of, cells, SqlType.TEXT, value=SqlType.DATE)
    assert found == [("Bern", "2003-04-05"), ("Zug", "2001-01-02")]
