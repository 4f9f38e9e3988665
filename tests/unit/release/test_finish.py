"""What does the client see of noisy cells: text of the right type, and a function of noisy numbers alone?"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pytest

from proxy.analysis.keys import NULL_KEY, KeyValue
from proxy.release.finish import Release, finish
from proxy.release.noisy import NoisyCell, NoisyCells
from proxy.sql.query.block import Carries, Injected
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import context
from tests.unit.release.make import planned


def shown(query: str, *cells: tuple[tuple[KeyValue, ...], dict[str, float]], nonnegative: bool = True) -> Release:
    """The release whose moments, by name of their class, have these values."""
    plan, bound = planned(query)
    names = [type(m).__name__ for m in plan.vector.moments]
    noisy = [
        NoisyCell(key, tuple(round(values[n] / u) for n, u in zip(names, plan.units_per_grid, strict=True)))
        for key, values in cells
    ]
    return finish(plan, NoisyCells(tuple(noisy)), bound.columns, nonnegative=nonnegative, time_zone="UTC")


def values(release: Release) -> list[tuple[str | None, ...]]:
    return [c.values for c in release.columns]


def test_counts_are_whole_numbers() -> None:
    release = shown("select count(*) from orders", ((), {"RowCount": 17.4}))
    assert values(release) == [("17",)]
    assert release.columns[0].column.type is SqlType.INT8
    assert release.rows == 1


@pytest.mark.parametrize(("nonnegative", "expected"), [(True, "0"), (False, "-3")])
def test_a_negative_count_is_zero_where_it_goes_to_the_client(nonnegative: bool, expected: str) -> None:
    assert values(shown("select count(*) from orders", ((), {"RowCount": -3.2}), nonnegative=nonnegative)) == [
        (expected,)
    ]


def test_grouped_counts_keep_their_noisy_total() -> None:
    query = "select status, count(*) from orders group by 1"
    cells = [((s,), {"RowCount": n}) for s, n in (("paid", 50.0), ("refunded", -10.0), (NULL_KEY, 20.0))]
    _, counts = values(shown(query, *cells))
    numbers = [int(c or 0) for c in counts]
    assert min(numbers) == 0
    assert sum(numbers) == 60
    assert values(shown(query, *cells, nonnegative=False))[1] == ("50", "-10", "20")


@pytest.mark.parametrize(
    ("of", "half", "raw", "expected"),
    [
        ("amount", 1000, (500, -100, 200), (450, 0, 150)),
        ("amount", 1000, (-500, -100, 200), (0, 0, 0)),
        ("-amount", 1000, (-500, 100, -200), (-450, 0, -150)),
        ("amount - 500", 500, (500, -100, 200), (500, -100, 200)),
    ],
)
def test_sums_keep_the_sign_of_their_values_and_the_noisy_total(
    of: str, half: int, raw: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    query = f"select status, sum({of}), hush.low(sum({of})), hush.high(sum({of})) from orders group by 1"
    statuses: tuple[KeyValue, ...] = ("paid", "refunded", NULL_KEY)
    cells: list[tuple[tuple[KeyValue, ...], dict[str, float]]] = [
        ((s,), {"ScaledSum": v / half}) for s, v in zip(statuses, raw, strict=True)
    ]
    shown_as, plain = (
        [[float(v or "nan") for v in column] for column in values(shown(query, *cells, nonnegative=on))[1:]]
        for on in (True, False)
    )
    assert [round(v) for v in shown_as[0]] == list(expected)
    assert [round(v) for v in plain[0]] == list(raw)
    sign = {"amount": 1, "-amount": -1}.get(of, 0)
    for ends, raw_ends in zip(shown_as[1:], plain[1:], strict=True):  # about the raw number, cut where none can be
        assert ends == [e if sign * e >= 0 else 0.0 for e in raw_ends]


def test_an_average_is_clamped_and_null_when_its_count_is_noise() -> None:
    query = "select avg(height) from users"
    plan, _ = planned(query)
    noise = plan.sds[[type(m).__name__ for m in plan.vector.moments].index("RowCount")]
    many = 100 * noise
    assert values(shown(query, ((), {"RowCount": many, "ScaledSum": 0.0}))) == [("125.0",)]
    assert values(shown(query, ((), {"RowCount": many, "ScaledSum": 5 * many}))) == [("250.0",)]
    assert values(shown(query, ((), {"RowCount": many, "ScaledSum": -5 * many}))) == [("0.0",)]
    assert values(shown(query, ((), {"RowCount": 1.9 * noise, "ScaledSum": 0.0}))) == [(None,)]


def test_an_average_of_sets_that_agree_does_not_know_what_its_noises_share() -> None:
    """Under pure accounting two halves share their noises, and the interval knows it; not once they were adjusted."""
    plan, found = planned("select hush.low(avg(height)), hush.high(avg(height)) from users", context(pure=True))
    noise = max(plan.sds)
    cell = NoisyCell((), tuple(round(20 * noise / u) for u in plan.units_per_grid))
    own, agreed = (
        [float(v or "nan") for (v,) in values(finish(p, NoisyCells((cell,)), found.columns, nonnegative=True,
                                                     time_zone="UTC"))]
        for p in (plan, replace(plan, agreed=plan.sds))
    )  # fmt: skip
    assert own != agreed
    assert agreed == pytest.approx(own, rel=0.1)


def test_sums_have_the_type_of_postgresql() -> None:
    ((text,),) = values(shown("select sum(height) from users", ((), {"ScaledSum": 2.0})))
    assert float(text or "nan") == pytest.approx(500)
    (text,) = values(shown("select sum(amount) from orders", ((), {"ScaledSum": 2.0})))[0]
    assert text is not None
    assert Decimal(text) == 2000
    release = shown("select sum(age) from users", ((), {"ScaledSum": 2.0}))
    assert values(release) == [("220",)]
    assert release.columns[0].column.type is SqlType.INT8


def test_intervals_surround_the_value() -> None:
    query = "select count(*), hush.low(count(*)), hush.high(count(*)), hush.sd(count(*)) from orders"
    value, low, high, sd = (float(v[0] or "nan") for v in values(shown(query, ((), {"RowCount": 5000.0}))))
    assert value == 5000
    assert low < value < high
    assert 1.96 * sd <= (high - low) / 2 <= 1.97 * sd
    assert [round(end, 1) for end in (low, high)] == [low, high]  # a hundredth of the noise
    query = "select hush.sd(avg(height)), hush.low(avg(height)) from users"
    sd_text, low_text = values(shown(query, ((), {"RowCount": 0.0, "ScaledSum": 0.0})))
    assert sd_text == (None,)
    assert low_text == ("0.0",)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (NULL_KEY, SqlType.TEXT, None),
        (True, SqlType.BOOL, "t"),
        (False, SqlType.BOOL, "f"),
        (7, SqlType.INT8, "7"),
        (2**53 + 1, SqlType.INT8, "9007199254740993"),
        (7.0, SqlType.INT4, "7"),
        (0.1, SqlType.FLOAT8, "0.1"),
        (float("nan"), SqlType.FLOAT8, "nan"),
        (1.5, SqlType.NUMERIC, "1.5"),
        (1e22, SqlType.NUMERIC, "10000000000000000000000"),
        (Decimal("1.500"), SqlType.NUMERIC, "1.5"),
        (float("nan"), SqlType.NUMERIC, "NaN"),
        (float("-inf"), SqlType.NUMERIC, "-Infinity"),
        (3.0, SqlType.NUMERIC, "3"),
        ("O'Hara", SqlType.TEXT, "O'Hara"),
        ("a\x00b", SqlType.TEXT, "a?b"),
        (date(2024, 2, 29), SqlType.DATE, "2024-02-29"),
        (datetime(2024, 2, 29, 1, 2), SqlType.TIMESTAMP, "2024-02-29 01:02:00"),
        (datetime(2024, 2, 29, 1, 2), SqlType.TIMESTAMPTZ, "2024-02-29 01:02:00 Europe/Berlin"),
    ],
)
def test_keys_read_as_postgresql_writes_them(value: KeyValue, kind: SqlType, text: str | None) -> None:
    plan, _ = planned("select city, count(*) from users group by 1")
    cells = NoisyCells((NoisyCell((value,), (0,) * len(plan.vector.moments)),))
    key = Injected(Carries.KEY, 0, kind)
    release = finish(plan, cells, (key,), nonnegative=True, time_zone="Europe/Berlin")
    assert values(release) == [(text,)]


def test_no_cells_give_columns_without_rows() -> None:
    release = shown("select city, count(*), avg(age) from users group by 1")
    assert release.rows == 0
    assert values(release) == [(), (), ()]
