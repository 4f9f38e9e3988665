"""What is said of calls that are not known: in the words of the statement, for refusals and for PostgreSQL's errors."""

from __future__ import annotations

import pytest

from proxy.sql.advice.front_errors import advice_for_error
from proxy.sql.syntax.written_calls import WrittenCall, call_at, call_of, calls_around


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("median(age) FROM users", WrittenCall("median", ("age",), "users")),
        ("Median ( u.age + 1 ) FROM a, b", WrittenCall("median", ("u.age + 1",), "a")),
        ("f(g(x, 1), ARRAY[1, 2], 'a,)') FROM (SELECT 1) t", WrittenCall("f", ("g(x, 1)", "ARRAY[1, 2]", "'a,)'"))),
        ("now()", WrittenCall("now")),
        ('f("a b") FROM "T t"', WrittenCall("f", ('"a b"',), '"T t"')),
        ("mode() WITHIN GROUP (ORDER BY lower(x) DESC) FROM t2", WrittenCall("mode", (), "t2", "lower(x)")),
        ("mode() WITHIN GROUP (ORDER BY x) FROM t2", WrittenCall("mode", (), "t2", "x")),
        ("mode() WITHIN GROUP (ORDER BY x", WrittenCall("mode")),
        (f"f({'x' * 200}, y)", WrittenCall("f", ("", "y"))),
        ("f(x -- a\n, y /* b */)", WrittenCall("f", ("", ""))),
        ("f(x)) FROM inner_one) FROM u", WrittenCall("f", ("x",), "inner_one")),
    ],
)
def test_a_call_is_read_as_it_stands(text: str, wanted: WrittenCall) -> None:
    assert call_at(text, 0) == wanted


@pytest.mark.parametrize("text", ["x + 1", "f(x", "'f'(x)", "", "f"])
def test_what_is_no_call_is_none(text: str) -> None:
    assert call_at(text, 0) is None
    assert call_of(text, "f") is None


def test_an_argument_that_cannot_be_shown_stays_a_letter() -> None:
    call = call_at(f"f({'x' * 200})", 0)
    assert call is not None
    assert (call.argument(0, "x"), call.argument(3, "z"), call.subject) == ("x", "z", "x")


def test_calls_around_a_place_come_from_the_inside() -> None:
    text = "SELECT f(a, g(h(1), day, 2)), (day)"
    assert [c.name for c in calls_around(text, text.index("day"))] == ["g", "f"]
    assert list(calls_around(text, text.rindex("day"))) == []


@pytest.mark.parametrize(
    ("text", "sqlstate", "at", "wanted"),
    [
        ("SELECT median(age) FROM users", "42883", "median", "Write percentile_cont(0.5) WITHIN GROUP (ORDER BY age)."),
        ("SELECT quantile_disc(0.25, age) FROM users", "42883", "quantile_disc",
         "Write percentile_disc(0.25) WITHIN GROUP (ORDER BY age)."),
        ("SELECT dateadd(month, -1, o.at) FROM o", "42703", "month", "Write o.at + INTERVAL '-1 month'."),
        ("SELECT dateadd(months, n, o.at) FROM o", "42703", "months", "Write o.at + n * INTERVAL '1 month'."),
        ("SELECT date_sub(at, INTERVAL '2 days') FROM o", "42883", "date_sub", "Write at - INTERVAL '2 days'."),
        ("SELECT date_sub() FROM o", "42883", "date_sub", "Write x - INTERVAL '1 day'."),
        ("SELECT datediff(at, seen) FROM o", "42883", "datediff",
         "Write at::date - seen::date for days, or EXTRACT(epoch FROM at - seen) for seconds."),
        ("SELECT datediff(year, at, seen) FROM o", "42703", "year",
         "Write EXTRACT(year FROM age(seen, at)), and 12 times it plus EXTRACT(month FROM age(seen, at)) for months."),
        ("SELECT date_trunc(month, at) FROM o", "42703", "month", "Write date_trunc('month', at)."),
        ("SELECT tostartofmonth(at) FROM o", "42883", "tostartofmonth", "Write date_trunc('month', at)."),
        ("SELECT datetrunc(at) FROM o", "42883", "datetrunc", "Write date_trunc('day', at)."),
        ("SELECT date_format(at, '%W') FROM o", "42883", "date_format", "Write to_char(at, 'YYYY-MM')."),
        ("SELECT group_concat(city SEPARATOR ',') FROM o", "42601", "SEPARATOR",
         ("Group by it, and collect above: SELECT string_agg(v.x::text, ',') FROM"
         " (SELECT city AS x FROM o GROUP BY 1) AS v.")),
        ("SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY a.b) OVER () FROM a", "42883", "percentile_disc",
         "Write percentile_disc(0.9) WITHIN GROUP (ORDER BY a.b)."),
        ("SELECT isnull(x) FROM o", "42883", "isnull", "Write x IS NULL."),
        ("SELECT sumif(amount, paid) FROM o", "42883", "sumif", "Write sum(amount) FILTER (WHERE paid)."),
        ("SELECT frobnicate(x) FROM o", "42883", "frobnicate", ""),
        ("SELECT x <> y FROM o", "42883", "<>", ""),
        ("SELECT f(nothing) FROM o", "42703", "nothing", ""),
        ("SELECT median(age) FROM users", "22012", "median", ""),
        (f"SELECT median(age) FROM users WHERE {'a' * 20_000}", "42883", "median", ""),
    ],
)  # fmt: skip
def test_an_error_of_postgresql_gets_the_statement_to_write(text: str, sqlstate: str, at: str, wanted: str) -> None:
    assert advice_for_error(text, sqlstate, text.index(at) + 1) == wanted


def test_an_error_without_a_place_gets_nothing() -> None:
    assert advice_for_error("SELECT median(age) FROM users", "42883", 0) == ""
