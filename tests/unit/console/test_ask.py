"""What an answer's columns, a plan and a refusal mean for people."""

from __future__ import annotations

import pytest

from proxy.console.ask import ColumnInterval, NoInterval, columns_of, forecast_of
from proxy.console.trouble import proposed, trouble_of
from proxy.console.wire import ConsoleAnswer
from proxy.errors import FrontFailed
from proxy.sqltypes import SqlType

TEXT, INT8, FLOAT8 = SqlType.TEXT.oid, SqlType.INT8.oid, SqlType.FLOAT8.oid


def answer(*columns: tuple[str, int]) -> ConsoleAnswer:
    return ConsoleAnswer(
        columns=tuple(n for n, _ in columns), kinds=tuple(k for _, k in columns), rows=(), notices=(), tag=""
    )


def test_intervals_stand_beside_their_numbers() -> None:
    found = columns_of(
        answer(("status", TEXT), ("n", INT8), ("sum", INT8), ("n_low", FLOAT8), ("n_high", FLOAT8),
               ("sum_low", FLOAT8), ("sum_high", FLOAT8))
    )  # fmt: skip
    assert [(c.name, c.interval) for c in found] == [
        ("status", NoInterval()), ("n", ColumnInterval(3, 4)), ("sum", ColumnInterval(5, 6)),
    ]  # fmt: skip


def test_of_two_columns_of_one_name_each_has_its_own_interval() -> None:
    found = columns_of(
        answer(("count", INT8), ("count", INT8), ("count_low", FLOAT8), ("count_high", FLOAT8),
               ("count_low", FLOAT8), ("count_high", FLOAT8))
    )  # fmt: skip
    assert [c.interval for c in found] == [ColumnInterval(2, 3), ColumnInterval(4, 5)]


@pytest.mark.parametrize(
    "columns",
    [
        (("n", INT8), ("n_low", FLOAT8)),
        (("n_low", FLOAT8), ("n_high", FLOAT8), ("n", INT8)),
        (("t", TEXT), ("t_low", FLOAT8), ("t_high", FLOAT8)),
        (("n", INT8), ("n_low", TEXT), ("n_high", TEXT)),
    ],
)
def test_what_is_no_interval_of_a_number_stays_a_column(columns: tuple[tuple[str, int], ...]) -> None:
    assert [c.name for c in columns_of(answer(*columns))] == [name for name, _ in columns]


@pytest.mark.parametrize(
    "hint, expected",
    [
        ("Ask for aggregates: SELECT count(*) FROM users.", "SELECT count(*) FROM users"),
        ("What helps: SET hush.epsilon = 6.2.", "SET hush.epsilon = 6.2;\nSELECT 1"),
        ("Write percentile_cont(0.5) WITHIN GROUP (ORDER BY age).", ""),
        ("", ""),
    ],
)
def test_a_hint_that_names_a_statement_proposes_it(hint: str, expected: str) -> None:
    assert proposed(hint, "SELECT 1") == expected


def test_a_failure_of_the_proxy_is_told_in_its_words() -> None:
    found = trouble_of(FrontFailed("gone", hint="Try again."), "SELECT 1")
    assert (found.message, found.hint, found.code, found.position) == ("gone", "Try again.", "57P01", 0)


def test_a_forecast_says_cost_errors_and_threshold() -> None:
    plan = {
        "epsilon": 0.79, "charge_epsilon": 0.5, "delta": 1e-6, "later": [],
        "accounts": [{"account": a, "remaining": "epsilon 9 of 10"} for a in ("user", "session")],
        "releases": [{"unit": "customer", "threshold": 49.8, "reused": False, "expected": ["all noise"], "outputs": [
            {"aggregate": "count(*)", "half_width_95": 35.5},
            {"aggregate": "avg(age)", "half_width_95_times_rows": 1255.9},
        ]}],
    }  # fmt: skip
    found = forecast_of(plan)
    assert (found["charge"], found["threshold"], found["unit"], found["expected"]) == (
        0.5,
        49.8,
        "customer",
        ["all noise"],
    )
    assert found["remaining"] == ["user: epsilon 9 of 10"]
    assert found["outputs"] == [
        {"name": "count(*)", "error": 35.5, "times_rows": None},
        {"name": "avg(age)", "error": None, "times_rows": 1255.9},
    ]
    assert found["is_reused"] is False


def test_a_plan_is_free_only_if_every_release_was_paid_for() -> None:
    def plan(*reused: bool) -> dict[str, object]:
        return {"releases": [{"reused": r, "threshold": None} for r in reused]}

    assert [forecast_of(plan(*r))["is_reused"] for r in ((True,), (True, False), ())] == [True, False, False]
