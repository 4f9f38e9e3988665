"""Are the values of a key complete, and as few as can be told?"""

from __future__ import annotations

from datetime import date, datetime

import pytest

from proxy.analysis.domains import Domains
from proxy.analysis.key_values import KeyValues
from proxy.sql.algebra.nodes import Scalar
from tests.oracle import times
from tests.oracle.scalars import Evaluator, Reading
from tests.unit.analysis.samples import ROWS, argument
from tests.unit.plan.shop import plan

COMPUTED = (
    "age / 10", "age / 10 * 10", "age - age % 10", "age % 7", "-age", "abs(age - 50)", "age * 1.0", "age::numeric",
    "floor(age / 10.0)", "floor(age / 10.0) * 10.0 + 0.0", "(floor(height / 10) * 10)::integer", "ceil(height / 7)",
    "round(height)", "round(height::numeric / 3)", "trunc(-height / 4)", "round(age, -1)", "round(height::numeric, -2)",
    "age::text", "(age / 10 * 10)::text || '-' || (age / 10 * 10 + 9)::text", "plan || '!'", "length(plan)",
    "substring(plan, 2, 2)", "substring(plan from 2)", "left(plan, 1)", "trim('e' from plan)",
    "trim(leading 'f' from plan)", "trim(trailing 'e' from plan)", "upper(plan) || lower(plan)",
    "date_part('year', joined)", "date_part('year', joined) * 100 + date_part('month', joined)",
    "joined + 1", "joined - age", "joined - date '2019-06-30'", "date '2021-01-01' - joined", "joined::timestamp",
    "joined + interval '1 month'", "joined - interval '1 year 2 months 3 days'", "joined + interval '90 minutes'",
    "date_trunc('week', joined + interval '1 day') - interval '1 day'", "joined::text",
    "date_trunc('month', joined)::date + 1", "date_trunc('month', joined + interval '1 month')",
    "to_char(joined, 'YYYY-MM')", "to_char(joined, 'Day')", "to_char(joined, '\"Q\"Q YYYY D')",
    "to_char(joined, 'IYYY IW')",
    "to_char(joined, 'FMMonth dy W')", "to_char(born, 'MM')", "initcap(plan)", "left(plan, -1)", "right(plan, -2)",
    "split_part(plan, 'r', -1)", "concat_ws('-', plan, age / 20)", "translate(plan, 'e', 'i')", "octet_length(plan)",
    "substring(plan from 'r.')", "plan::varchar(2)", "lpad((age / 10)::text, 3, '0')", "trunc(age, -1)",
    "extract(decade from joined)", "extract(century from joined)", "date_trunc('decade', joined)",
    "extract(year from date_trunc('month', joined)) * 100 + extract(month from date_trunc('month', joined))",
    "width_bucket(age, array[10, 50])", "num_nulls(age, plan)", "div(age, 40)",
    "(joined::timestamp at time zone 'UTC' at time zone 'Asia/Kolkata')::date",
    "date_trunc('month', joined::timestamptz at time zone 'America/New_York')",
    "date_trunc('week', joined::timestamptz, 'Europe/Zurich')", "date_trunc('month', joined) at time zone 'Asia/Tokyo'",
    "extract(day from joined::timestamp - timestamp '2019-06-30 12:00')",
    "date_bin('10 days', joined::timestamp, '2000-01-01')",
    "extract(hour from joined::timestamp - timestamp '2019-06-30 12:00')",
    "extract(year from age(date '2021-03-01', joined))", "extract(month from age(joined, date '2020-02-29'))",
    "make_date(extract(year from joined)::int, extract(month from joined)::int, 1)", "to_timestamp(age * 86400)",
    "date_trunc('month', joined) + age / 40 * interval '1 month'",
    "to_timestamp(floor(extract(epoch from joined) / 86400) * 86400)",
    "extract(epoch from joined)", "extract(epoch from date_trunc('month', joined))::bigint * 1000",
    "date_trunc('day', joined::date) + -extract(dow from joined) * interval '1 day'",
    "to_char(extract(month from joined), 'FM00')", "to_char(age - 50, '90')", "concat(age > 50, plan)",
    "case when age < 18 then 'young' when age between 18 and 64.5 then 'middle' when age >= 65 then 'old' end",
    "case when plan in ('free', 'x') then 1 when plan is null then 2 else 3 end",
    "case when not (age <> 50 or plan is distinct from 'pro') then age / 20 else -1 end",
    "case when age is distinct from 50 and age is not null then age / 20 when age = 50 then null else -1 end",
    "case when extract(month from joined) > 6 then 'late' else to_char(joined, 'Mon') end",
    "case when nullif(age, 50) >= 50 then 'more' when coalesce(age, 7) = 7 then '7' else 'less' end",
    "case when plan like 'f%' then 'f' when lower(plan) = 'pro' then plan else 'other' end",
    "case when joined < date '2020-02-29' then extract(year from joined) else extract(month from joined) end",
    "coalesce(age, 500)", "coalesce(age, 0.5)", "nullif(age, 50)", "greatest(age, 20)", "least(joined, '2019-06-30')",
    "case when age > 50 then age / 20 else -1 end", "case when age > 50 then extract(year from joined) else 0 end",
)  # fmt: skip


def listed(expression: str) -> tuple[Scalar, Domains, KeyValues]:
    scalar, domains = argument(expression)
    return scalar, domains, KeyValues(domains, keeps_outside=True)


@pytest.mark.parametrize("expression", COMPUTED)
def test_every_value_is_in_the_list(expression: str) -> None:
    scalar, domains, values = listed(expression)
    found = values.of(scalar)
    assert found is not None
    spelled = {times.moment_of(v) if isinstance(v, date) else float(v) if not isinstance(v, str) else v for v in found}
    evaluator = Evaluator(domains.column, "UTC")
    seen = {evaluator.value(scalar, row, Reading.TEST) for row in ROWS} - {None}
    assert seen
    assert seen <= spelled


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("age / 40 * 40", [0, 40, 80]),
        ("floor(age / 40.0) * 40.0", [0, 40, 80]),
        ("age - age % 40", [0, 40, 80]),
        ("(age / 40)::text || plan", ["0free", "0pro", "1free", "1pro", "2free", "2pro"]),
        ("(age / 60)::text || (age / 60 + 1)::text", ["01", "12"]),
        ("round(age, -2)", [0, 100, 200]),
        ("age % 3", [0, 1, 2]),
        ("to_char(joined, 'YYYY')", ["2019", "2020"]),
        ("to_char(date_trunc('year', joined), 'YYYY-MM')", ["2019-01", "2020-01"]),
        ("extract(year from date_trunc('year', joined)) - extract(year from date_trunc('year', joined))", [0]),
        ("length(city) % 3", [-2, -1, 0, 1, 2]),
        ("length(plan)", [3, 4]),
        ("date_trunc('year', joined)::date - 1", [date(2018, 12, 31), date(2019, 12, 31)]),
        ("date_trunc('year', joined + interval '1 year')", [datetime(2020, 1, 1), datetime(2021, 1, 1)]),
        ("case when age > 3 then date_part('year', joined) else 0 end", [0, 2019, 2020]),
        ("nullif(plan, 'pro')", ["free"]),
        ("to_char(extract(quarter from joined), 'FM00')", ["01", "02", "03", "04"]),
        ("case when age < 40 then age / 40 when age > 200 then 7 else -1 end", [-1, 0]),
        ("case when plan = 'pro' then 'p' when plan in ('free', 'x') then 'f' else 'none' end", ["f", "none", "p"]),
        (
            "case when plan <> 'pro' and not plan = 'free' then 'no' when plan is not null then plan else '-' end",
            ["-", "free", "pro"],
        ),
        ("case when age is null or age >= 0 then 1 else 2 end", [1]),
        ("case when nullif(plan, 'pro') = 'pro' then 1 else 2 end", [2]),
        ("case when nullif(plan || ' ', 'pro ') = 'pro ' then 1 else 2 end", [1, 2]),  # nobody says which nullif is
        ("case when coalesce(nullif(plan, 'pro'), upper(plan)) = 'PRO' then 1 else 2 end", [1, 2]),
        ("case when coalesce(age, 200) > 110 then 'none' end", ["none"]),
        ("case when extract(month from born) = 13 then 1 else 2 end", [2]),
        ("case when age = 1.00000000000000000001 then 1 else 2 end", [1, 2]),  # the same to a double
        ("case when plan || ' ' = 'pro ' then 1 else 2 end", [1, 2]),
        (
            "date_trunc('year', joined)::date + -extract(doy from date_trunc('year', joined)) * interval '1 day'",
            [datetime(2018, 12, 31), datetime(2019, 12, 31)],
        ),
        (
            "date_trunc('day', joined) - extract(doy from joined)::int * interval '1 day'",
            [datetime(2018, 12, 31), datetime(2019, 12, 31)],
        ),
    ],
)
def test_lists_are_short(expression: str, expected: list[object]) -> None:
    scalar, _, values = listed(expression)
    assert sorted(values.of(scalar) or ()) == expected


@pytest.mark.parametrize(
    "expression",
    ["height", "age / 10.0", "city", "city || 'x'", "length(city)", "user_id", "age + length(city)",
     "joined + length(city)", "extract(epoch from joined + age)", "born + 1", "age * 9007199254740993", "height * 10",
     "floor(height * 1e6)", "joined + 2147483647", "joined - interval '4000 years'", "coalesce(age, length(city))"],
)  # fmt: skip
def test_what_nobody_can_list_has_no_list(expression: str) -> None:
    scalar, _, values = listed(expression)
    assert values.of(scalar) is None


def test_conditions_shorten_the_list() -> None:
    found = plan("select count(age / 10 * 10) from users where age / 10 * 10 between 20 and 45 and age < 44")
    (aggregate,) = found.analysed.owned.block.aggregates
    assert KeyValues(found.analysed.domains).of(aggregate.argument) == (20, 30, 40)


def test_work_has_an_end() -> None:
    deep = "(case when age = 1 then age else age + 1 end)"
    for _ in range(6):
        deep = f"({deep} + {deep})"
    scalar, _, values = listed(deep)
    assert values.of(scalar) is not None, "every whole number between the bounds"
    many = " + ".join(f"(age % {n})" for n in range(2, 150))
    scalar, _, values = listed(many)
    assert len(values.of(scalar) or ()) > 1000
