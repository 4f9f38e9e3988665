"""A short statement must not stand for endless work: everything is refused in good time, in plain words."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

import pytest

from proxy.errors import Unsupported
from proxy.sql.advice.front_errors import advice_for_error
from tests.unit.plan.shop import plan

DEEP = 25


MOST_CALLS = 10_000_000  # of functions: a few seconds' work, and the same number on every machine


def calls_to_plan(query: str, *, is_refused: bool = False) -> int:
    """How many functions are called until a query is planned, or refused if it must be."""

    def work() -> None:
        with pytest.raises(Unsupported) if is_refused else contextlib.suppress(Unsupported):
            plan(query)

    return calls_of(work)


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called."""
    found = 0

    def see(_frame: object, event: str, _argument: object) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def doubled(levels: int) -> str:
    """Sub-selects each of which names the column of the one inside twice."""
    inner = "SELECT user_id, city AS c FROM users"
    for level in range(levels):
        inner = f"SELECT user_id, c || c AS c FROM ({inner}) AS t{level}"
    return f"SELECT count(*) FROM ({inner}) AS t WHERE c = 'x'"


def nested(opening: str, closing: str, levels: int = DEEP) -> str:
    return f"SELECT count(*) FROM users WHERE {opening * levels}age > 1{closing * levels}"


ENDLESS = {
    "square roots write it twice": f"SELECT count(*) FROM users WHERE {'sqrt(' * DEEP}height{')' * DEEP} = 1",
    "sub-selects double a column": doubled(DEEP),
    "BETWEEN reads it twice": nested("(", " BETWEEN false AND true)"),
    "CASE compares its subject with every branch": nested("(CASE ", " WHEN true THEN false WHEN false THEN true END)"),
    "a chain of OR that is too large": f"SELECT count(*) FROM users WHERE {' OR '.join(['age > 1'] * 11_000)}",
    "a chain of +": f"SELECT count(*) FROM users WHERE age > {' + '.join(['1'] * 3000)}",
    "a chain of NOT": f"SELECT count(*) FROM users WHERE {'NOT ' * 3000} age > 1",
    "a union of a thousand": " UNION ALL ".join(["SELECT count(*) FROM users"] * 1000),
    "parentheses": f"SELECT count(*) FROM users WHERE age > {'(' * 3000}1{')' * 3000}",
    "more constants than a list may have": f"SELECT count(*) FROM users WHERE age IN ({', '.join(['1'] * 100_001)})",
}


@pytest.mark.parametrize("case", ENDLESS)
def test_endless_work_is_refused(case: str) -> None:
    assert calls_to_plan(ENDLESS[case], is_refused=True) < MOST_CALLS


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT count(*) FROM users WHERE {' AND '.join(['age > 1'] * 150)}",
        "SELECT count(*) FROM users WHERE age::bigint::int::bigint = 1",
        f"SELECT count(*) FROM users WHERE age IN ({', '.join(map(str, range(9000)))})",
        doubled(4),
        "SELECT count(*) FROM users WHERE '20' BETWEEN age AND height",
        f"SELECT count(*) FROM users WHERE age{'::bigint::int' * DEEP} = 1",
        "SELECT count(*) FROM users WHERE CASE age WHEN 1 THEN true WHEN '2' THEN false END",
    ],
)
def test_large_statements_of_people_are_planned(query: str) -> None:
    assert len(plan(query).sql) < 200_000


LONG = {
    "a list of constants": f"age IN ({', '.join(map(str, range(50_000)))})",
    "what is not in a list": "city NOT IN ('" + "', '".join(f"c{n}" for n in range(50_000)) + "')",
    "a list as a chain of OR": " OR ".join(f"age = {n}" for n in range(20_000)),
    "a list as a chain of AND": " AND ".join(f"age <> {n}" for n in range(20_000)),
    "a chain of OR": " OR ".join(f"age + {n} = {2 * n}" for n in range(4_000)),
    "a chain of AND": " AND ".join(f"age > {n}" for n in range(4_000)),
}
CALLS_FOR_A_CHARACTER = 80  # whatever is read again for each constant or operand would take thousands


@pytest.mark.parametrize("case", LONG)
def test_long_lists_and_chains_are_planned_by_their_length(case: str) -> None:
    query = f"SELECT count(*) FROM users WHERE {LONG[case]}"
    assert calls_to_plan(query) < CALLS_FOR_A_CHARACTER * len(query)
    assert plan(query).sql


@pytest.mark.parametrize("case", ["a list of constants", "what is not in a list"])
def test_a_long_list_is_looked_at_as_one(case: str) -> None:
    """Its constants are read, put in order and spelled, and nothing else is asked of each."""
    query = f"SELECT count(*) FROM users WHERE {LONG[case]}"
    assert calls_to_plan(query) < 80 * 50_000


def test_hundreds_of_aggregates_are_planned_by_their_number() -> None:
    """Four times as many take little more than four times as long: none is compared with all others."""

    def asked(count: int) -> tuple[str, ...]:
        return (
            f"SELECT {', '.join(f'sum(least(age, 100) + {n})' for n in range(count))} FROM users",
            f"SELECT {', '.join(f'count(*) FILTER (WHERE age = {n})' for n in range(count))} FROM users",
        )

    for few, many in zip(asked(150), asked(600), strict=True):
        assert calls_to_plan(many) < 5.5 * calls_to_plan(few)


CHOICES = ("CASE WHEN c > 1 THEN c ELSE c END", "CASE WHEN c > 1 AND c < 50 THEN c WHEN c > 60 THEN c + 1 ELSE -c END")


@pytest.mark.parametrize("choice", CHOICES)
def test_choices_of_choices_are_planned_in_good_time(choice: str) -> None:
    """Each level names the column of the one inside under two conditions, and each of these under two more."""
    inner = "SELECT user_id, age AS c FROM users"
    for level in range(6):
        inner = f"SELECT user_id, {choice} AS c FROM ({inner}) AS t{level}"
        asked = f"SELECT sum(c) FILTER (WHERE c > 5 AND c < 10) FROM ({inner}) AS t WHERE c > 3"
        assert calls_to_plan(asked) < MOST_CALLS


@pytest.mark.parametrize(("filters", "tests"), [(16, 100), (60, 20)])
def test_many_filters_of_many_tests_are_planned_in_good_time(filters: int, tests: int) -> None:
    """Every test of one filter may exclude every test of another."""
    conditions = [" AND ".join(f"age <> {i + j}" for j in range(tests)) for i in range(filters)]
    counts = ", ".join(f"count(*) FILTER (WHERE {c})" for c in conditions)
    assert calls_to_plan(f"SELECT {counts} FROM users") < MOST_CALLS


def test_deep_sums_of_many_parts_are_planned_in_good_time() -> None:
    """Tables of what is known of an expression look through all of it, unless it knows its own number there."""
    whole = "age"
    for level in range(60):
        whole = f"({whole} + {whole})" if level < 9 else f"({whole} + 1)"
    assert calls_to_plan(f"SELECT sum(least(greatest({whole}, 0), 1)) FROM users") < MOST_CALLS / 5


SINCE = "made - timestamptz '2024-01-01'"
COMPARED = {
    "a sum": "CASE WHEN ({}) + interval '1 day' > interval '{} days' THEN made END",
    "a choice": "CASE WHEN coalesce({}, interval '1 day') > interval '{} days' THEN made END",
    "a difference": "CASE WHEN (({}) - interval '1 day') - interval '1 day' > interval '{} days' THEN made END",
}


@pytest.mark.parametrize("comparison", COMPARED.values(), ids=COMPARED.keys())
def test_intervals_in_intervals_are_read_once(comparison: str) -> None:
    """Whether something is an interval is asked of all that it is made of, at every level."""

    def asked(levels: int) -> str:
        whole = SINCE
        for level in range(levels):
            whole = f"({comparison.format(whole, level)}) - timestamptz '2024-01-01'"
        return f"SELECT count(*) FILTER (WHERE {whole} > interval '1 hour') FROM orders"

    assert calls_to_plan(asked(8)) < 2.5 * calls_to_plan(asked(4))


def test_a_long_chain_of_intervals_is_read_once() -> None:
    def asked(length: int) -> str:
        return f"SELECT avg({'coalesce(' * length}{SINCE}{', interval $$1 day$$)' * length}) FROM orders"

    assert calls_to_plan(asked(100)) < 2.2 * calls_to_plan(asked(50))


def test_many_averages_are_not_each_looked_at_for_every_other_one() -> None:
    averages = ", ".join(f"avg(made - timestamptz '2024-01-01' + interval '{day} days')" for day in range(120))
    assert calls_to_plan(f"SELECT {averages} FROM orders") < 3_000_000


@pytest.mark.parametrize("nested", ["f(", "f(1, ", "f((", "a.f(b, "])
@pytest.mark.parametrize("sqlstate", ["42601", "42703", "42883"])
def test_a_hint_for_an_error_of_postgresql_is_found_in_good_time(nested: str, sqlstate: str) -> None:
    """It is looked for beside all sessions, and the error is free."""

    def asked(levels: int) -> int:
        text = f"select {nested * levels}"
        return calls_of(lambda: [advice_for_error(text, sqlstate, place) for place in (8, len(text))])

    assert asked(2400) < 2.5 * asked(1200) < MOST_CALLS / 5
