"""Are answers public values of chosen cells, shown in PostgreSQL's types, and NULL where too few rows are?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from proxy.dp.quantiles import Draw, Weights
from proxy.errors import BadGroups
from proxy.plan.release_plan import ReleasePlan, Threshold
from proxy.release.finish import Release, finish
from proxy.release.noisy import NoisyCells
from proxy.release.parts import publish_release
from proxy.release.raw import KeptKeys, RawResult
from proxy.sql.query.block import Carries, Injected
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import context, plan

PRECISE = replace(context(), pico=10**12 * 200)
Rows = Sequence[tuple[object, ...]]


class NoNoise:
    """Noise that is always zero."""

    def take(self, n: int) -> tuple[int, ...]:
        return (0,) * n


def best(given: Weights, _: Draw) -> int:
    return int(given.argmax())


def answered(of: ReleasePlan, vector: Rows, *parts: Rows, choose: object = best) -> NoisyCells:
    """What is published if the engine gives these rows for the vector and for each part."""

    def run(stage: int, _: KeptKeys) -> RawResult:
        return RawResult(0, tuple((vector, *parts)[stage]))

    cells = publish_release(of, run, NoNoise(), choose=choose)  # type: ignore[arg-type]  # a choice
    assert repr(NoisyCells.of_payload(cells.payload())) == repr(cells)  # NaN is not equal to itself
    return cells


def shown(of: ReleasePlan, cells: NoisyCells, *kinds: SqlType, carries: Carries = Carries.VALUE,
          zone: str = "UTC") -> list[tuple[str | None, ...]]:  # fmt: skip
    columns = tuple(Injected(carries, i, kind) for i, kind in enumerate(kinds))
    found: Release = finish(of, cells, columns, nonnegative=True, time_zone=zone)
    return [c.values for c in found.columns]


def counted(of: ReleasePlan, *numbers: float) -> tuple[int, ...]:
    """The moments of a vector on its grid, for so many rows each."""
    return tuple(round(n / u) for n, u in zip(numbers, of.units_per_grid, strict=True))


def test_answers_have_the_type_that_postgresql_gives() -> None:
    of = plan("select max(age), percentile_cont(0.5) within group (order by age) from users", PRECISE)
    cells = answered(of, [(0, *counted(of, 1000))], [(30, 1024 * 500), (40, 1024 * 500)])
    assert shown(of, cells, SqlType.INT4, SqlType.FLOAT8) == [("40",), ("30.0",)]
    of = plan("select max(height) from users", PRECISE)
    cells = answered(of, [(0, *counted(of, 1000))], [(100, 1024 * 1000)])
    assert shown(of, cells, SqlType.FLOAT8) == [("0.5025",)]
    assert shown(of, cells, SqlType.FLOAT4) == [("0.5025",)]
    of = plan("select min(joined) from users", PRECISE)
    cells = answered(of, [(0, *counted(of, 1000))], [(31, 1024 * 1000)])
    assert shown(of, cells, SqlType.DATE) == [("2019-02-01",)]
    of = plan("select min(made), max(amount) from orders", PRECISE)
    amount, made = ([(0, 1024 * 1000)], [(0, 1024 * 1000)])
    cells = answered(of, [(0, *counted(of, 10_000, 10_000))], amount, made)
    assert shown(of, cells, SqlType.TIMESTAMPTZ, SqlType.NUMERIC, zone="Asia/Tokyo") == [
        ("2024-01-01 00:05:00 Asia/Tokyo",), ("0.01",)]  # fmt: skip


KINDS = (SqlType.FLOAT8, SqlType.DATE)
MIDDLE = "percentile_cont(0.5) within group (order by age)"


def test_the_ends_of_the_domain_are_told_where_none_were_asked_for() -> None:
    of = plan("select max(age), min(joined) from users", PRECISE)
    cells = answered(of, [(0, *counted(of, 1000, 1000))], [(30, 1024 * 1000)], [(31, 1024 * 1000)])
    assert shown(of, cells, *KINDS, carries=Carries.LOW) == [("0.0",), ("2019-01-01",)]
    assert shown(of, cells, *KINDS, carries=Carries.HIGH) == [("110.0",), ("2020-12-31",)]
    assert shown(of, cells, *KINDS, carries=Carries.SD) == [(None,), (None,)]


def test_ends_that_are_asked_for_are_those_of_drawn_cells() -> None:
    of = plan(f"select {MIDDLE}, min(joined), hush.low({MIDDLE}), hush.high(min(joined)) from users", PRECISE)
    ages = [(a, 1024 * 50) for a in range(20)] + [(100, 1024)]
    cells = answered(of, [(0, *counted(of, 1001, 1001))], ages, [(31, 1024 * 1000)])
    assert [len(p) for p in cells.cells[0].parts] == [3, 3]
    (middle,), _ = shown(of, cells, *KINDS)
    (low,), (first,) = shown(of, cells, *KINDS, carries=Carries.LOW)
    (high,), (last,) = shown(of, cells, *KINDS, carries=Carries.HIGH)
    assert (low, middle, high) == ("9.0", "10.0", "10.0")
    assert (first, last) == ("2019-01-01", "2019-02-01")  # below the least value there is none
    assert shown(of, cells, *KINDS, carries=Carries.SD) == [(None,), (None,)]


def test_an_interval_holds_its_answer() -> None:
    """Ends and answer are drawn apart, so that one may lie beyond the other."""
    of = plan(f"select {MIDDLE}, hush.low({MIDDLE}) from users", PRECISE)
    for crossed in ((7, 9, 3), (7, 12, 111), (7, 0, 3)):
        draws = iter(crossed)
        cells = answered(of, [(0, *counted(of, 1000))], [(7, 1024)], choose=lambda *_, draws=draws: next(draws))
        ends = [shown(of, cells, SqlType.FLOAT8, carries=c)[0][0] for c in (Carries.LOW, Carries.HIGH)]
        # before the candidates of a lower end stands what is below the domain
        wanted = (min(7, max(0, crossed[1] - 1)), max(7, min(110, crossed[2])))
        assert ends == [f"{end:.1f}" for end in wanted]


def test_too_few_rows_have_no_quantile() -> None:
    of = plan("select max(age) from users")
    (part,) = of.parts
    offset = part.ladder.offset  # type: ignore[union-attr]  # of a quantile
    for rows, value in ((offset - 1, None), (offset + 1, "7")):
        cells = answered(of, [(0, *counted(of, rows))], [(7, 1024 * rows)])
        assert shown(of, cells, SqlType.INT4) == [(value,)]
    middle = plan("select percentile_disc(0.5) within group (order by age) from users")
    least = max(1.0, 2 * middle.sds[0])
    for rows, value in ((least * 0.99, None), (least * 1.01, "7")):
        cells = answered(middle, [(0, *counted(middle, rows))], [(7, 1024 * round(rows))])
        assert shown(middle, cells, SqlType.INT4) == [(value,)]


def test_quantiles_whose_rank_is_far_off_are_counted() -> None:
    """Those that may be off by more than a tenth of the noisy rows, with what is kept away from an end; no NULLs."""
    of = plan("select status, max(amount) from orders group by status")
    (part,) = of.parts
    off = part.ladder.distance_up(Fraction(1), 0.95)  # type: ignore[union-attr]  # of a quantile
    assert off == part.ladder.rank_error_up(Fraction(1), 0.95) + part.ladder.offset  # type: ignore[union-attr]
    numbers = {"paid": 10 * off * 1.01, "refunded": 10 * off * 0.99, "other": 1.0}
    vector = [(0, name, *counted(of, n)) for name, n in numbers.items() if name != "other"]
    cells = answered(of, vector, [(name, 5, 1024 * round(n)) for name, n in numbers.items()])
    columns = (Injected(Carries.KEY, 0, SqlType.TEXT), Injected(Carries.VALUE, 0, SqlType.NUMERIC))
    found = finish(of, cells, columns, nonnegative=True, time_zone="UTC")
    assert found.columns[1].values.count(None) == found.rows - 2
    assert (found.quantiles, found.far) == (2, 1)
    middle = plan("select percentile_disc(0.5) within group (order by age) from users")
    ladder = middle.parts[0].ladder  # type: ignore[union-attr]  # of a quantile
    assert ladder.distance_up(Fraction(1, 2), 0.95) == ladder.rank_error_up(Fraction(1, 2), 0.95)


def test_the_answer_is_a_function_of_the_choice() -> None:
    of = plan("select percentile_cont(array[0.25, 0.75]) within group (order by height) from users", PRECISE)
    vector = [(0, *counted(of, 1000))]
    histograms: list[Rows] = [[], [(3, 1024)], [(i, 1024 * i) for i in range(2000)]]
    answers = {answered(of, vector, h, choose=lambda given, _: len(given) // 5).payload() for h in histograms}
    assert len(answers) == 1


def test_groups_have_their_own_histograms() -> None:
    of = plan("select status, max(amount) from orders group by status", PRECISE)
    rows = [("refunded", 9, 1024 * 5000), ("paid", 5, 1024 * 4000), ("paid", 6, 1024 * 1000), ("other", 1, 1)]
    cells = answered(of, [(0, "paid", *counted(of, 5000))], rows)
    assert [c.parts for c in cells.cells] == [((6,),), ((9,),), ((0,),)]
    assert shown(of, cells, SqlType.NUMERIC) == [("0.13", None, None)]


@pytest.mark.parametrize("row", [(-1, 5), (111, 5), ("x", 5), (3, -1)])
def test_rows_in_no_cell_are_our_mistake(row: tuple[object, ...]) -> None:
    of = plan("select max(age) from users", PRECISE)
    with pytest.raises((TypeError, ValueError)):
        answered(of, [(0, *counted(of, 1000))], [row])


def test_too_many_groups_are_refused_before_their_histograms_are_made() -> None:
    of = plan("select city, max(height) from users group by city", PRECISE)
    assert isinstance(of.selection, Threshold)
    cities = [(0, f"city {i}", *counted(of, *[1000] * len(of.vector.moments))) for i in range(9000)]

    def run(stage: int, _: KeptKeys) -> RawResult:
        assert stage == 0, "the histograms are not asked for"
        return RawResult(0, tuple(cities))

    with pytest.raises(BadGroups, match="too many groups"):
        publish_release(of, run, NoNoise())


def test_a_stop_is_heard_between_groups() -> None:
    class Stopped(Exception):
        pass

    of = plan("select status, max(amount) from orders group by status", PRECISE)
    choices: list[int] = []

    def choose(given: Weights, draw: Draw) -> int:
        choices.append(len(given))
        return best(given, draw)

    def check() -> None:
        if choices:
            raise Stopped

    def run(_stage: int, _kept: KeptKeys) -> RawResult:
        return RawResult(0, ())

    with pytest.raises(Stopped):
        publish_release(of, run, NoNoise(), check, choose)
    assert len(choices) == 1


def test_rows_of_a_group_that_is_no_number_are_counted_together() -> None:
    """NaN is told to be another key in each row that an engine returns; all of them are one group's."""
    of = plan(
        "select ln(age - age) * 0 as k, percentile_disc(0.5) within group (order by age) from users group by 1", PRECISE
    )
    rows = [(float("nan"), place, 1024 * weight) for place, weight in ((30, 1000), (40, 10), (50, 1))]
    cells = answered(of, [(0, float("nan"), *counted(of, 1011, 1011))], rows)
    assert [c.parts[0][0] for c in cells.cells] == [30]
