"""Is NULL a group only where a row can be in it?"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import product
from types import MappingProxyType

import duckdb
import pytest

from proxy.analysis.absent import may_be_null
from proxy.analysis.domains import Domains
from proxy.analysis.key_values import KeyValues
from proxy.analysis.keys import NULL_KEY, PublicKey
from proxy.plan.release_plan import ReleasePlan
from proxy.policy.model import Bounded, Column, Listed, Table, UnitColumns, WrittenBound
from proxy.sql.algebra.nodes import Scalar, columns_of
from proxy.sqltypes import SqlType as T
from tests.oracle import times
from tests.oracle.scalars import Evaluator, Reading, Row
from tests.oracle.values import Value
from tests.unit.plan.shop import TABLES, context, plan

_FIRST, _LAST = datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59, 59)
SALES = Table(
    name="sales", relation=("sales",), ownership=UnitColumns(("id",)), rows_per_unit=WrittenBound(9),
    columns=(
        Column(name="id", type=T.INT4, key=True),
        Column(name="age", type=T.INT4, domain=Bounded(0, 110), nullable=False),
        Column(name="maybe", type=T.INT4, domain=Bounded(0, 110)),
        Column(name="count", type=T.INT8, nullable=False),
        Column(name="height", type=T.FLOAT8, domain=Bounded(0, 250), nullable=False),
        Column(name="speed", type=T.FLOAT8, nullable=False),
        Column(name="amount", type=T.NUMERIC, domain=Bounded(0, 1000), nullable=False),
        Column(name="rate", type=T.NUMERIC, nullable=False),
        Column(name="at", type=T.TIMESTAMP, domain=Bounded(_FIRST, _LAST), nullable=False),
        Column(name="seen", type=T.TIMESTAMPTZ, domain=Bounded(_FIRST, _LAST), nullable=False),
        Column(name="day", type=T.DATE, domain=Bounded(date(2024, 1, 1), date(2024, 12, 31)), nullable=False),
        Column(name="born", type=T.DATE, nullable=False),
        Column(name="city", type=T.TEXT, domain=Listed(("Bern", "Rome")), nullable=False),
        Column(name="blind", type=T.TEXT, domain=Listed(("bern", "rome")), nullable=False, case_blind=True),
        Column(name="code", type=T.BPCHAR, domain=Listed(("a", "b")), nullable=False),
        Column(name="free", type=T.TEXT, nullable=False),
        Column(name="paid", type=T.BOOL, domain=Listed((False, True)), nullable=False),
    ),
)  # fmt: skip
CONTEXT = replace(context(), tables=MappingProxyType({**TABLES, "sales": SALES}))
SAMPLES: dict[str, tuple[object, ...]] = {
    "age": (0, 1, 39, 40, 50, 110), "maybe": (None, 0, 50), "count": (-(2**63), -1, 0, 7, 2**63 - 1),
    "height": (0.0, 0.5, 99.9, 100.0, 250.0), "speed": (float("-inf"), -1.0, 0.0, 40.0, float("inf"), float("nan")),
    "amount": tuple(map(Decimal, ("0", "99.25", "99.99", "100", "1000"))), "rate": (Decimal(0), Decimal("5.5")),
    "at": (_FIRST, datetime(2024, 2, 29), datetime(2024, 6, 30, 23, 59, 59, 999999), datetime(2024, 7, 1), _LAST),
    "seen": (_FIRST, _LAST),
    "day": (date(2024, 1, 1), date(2024, 1, 31), date(2024, 6, 30), date(2024, 12, 31)),
    "born": (date(1, 1, 1), date(2000, 2, 29), date(9999, 12, 31)), "city": ("Bern", "Rome"),
    "blind": ("bern", "Rome", "BERN"), "code": ("a", "b"), "free": ("", "a", "zz"), "paid": (False, True),
}  # fmt: skip

NEVER = """
age / 10
age / 10 * 10
floor(age / 10.0) * 10
floor(cast(age as float) / 10) * 10
floor(age * 0.1)::int
round(age, -1)
(age / 10)::text
age::text
age::bigint
cast(age as numeric(10, 0))
mod(age, 7)
div(age, 10)
width_bucket(age::float8, 0, 110, 11)
width_bucket(age, array[10, 20, 50])
round(height)::int
floor((height - 0.0) / 25.0) * 25.0 + 0.0
height::smallint
floor(amount / 100) * 100
(amount / 100)::int
sqrt(age)::int
floor(ln(age + 1))
floor(log(10, age + 1))
power(age, 2)::int
count % 7
count / 7
(100 / (age + 1))
age / nullif(age - 200, 0)
asin(height / 250)::int
exp(height)::numeric < 5
extract(month from at)::int
extract(year from at)::int * 100 + extract(month from at)::int
date_part('dow', at)
date_trunc('day', at at time zone 'UTC')
date_trunc('day', seen at time zone 'Europe/Zurich')
day::timestamp
date_trunc('week', at + interval '1 day') - interval '1 day'
floor(extract(epoch from at) / 604800) * 604800
extract(epoch from at)::bigint / 86400 * 86400
to_timestamp(floor(extract(epoch from at) / 86400) * 86400)
date_trunc('month', at)::text
concat(extract(year from at), '-', extract(month from at))
make_date(extract(year from at)::int, extract(month from at)::int, 1)
day - (extract(isodow from day)::int - 1)
date_trunc('hour', at) + (extract(minute from at)::int / 30) * interval '30 min'
day - date '2024-01-01'
extract(year from age(timestamp '2025-01-01', at))
floor(extract(epoch from (timestamp '2025-01-01' - at)) / 86400)
case when age < 40 then 'y' when not (age < 40) then 'o' end
case when age < 40 then 1 when age >= 40 then 2 end
case when age between 0 and 17 then 1 when age between 18 and 64 then 2 when age > 64 then 3 else null end
case when age <= 17.5 then 1 when age > 17 then 2 end
case when age / 10 < 3 then 1 when age >= 30 then 2 end
case when amount < 100 then 's' when amount >= 100 then 'l' end
case when age > 200 then null else 1 end
case when height < 100 then 1 when height >= 100 and height < 200 then 2 when height >= 200 then 3 end
case when age < 40 and amount < 100 then 1 when not (age < 40 and amount < 100) then 2 end
case when age < 40 and amount < 100 then 1 when age >= 40 then 2 when amount >= 100 then 3 end
case city when 'Bern' then 'CH' when 'Rome' then 'IT' end
case when city <> 'Bern' then 1 when city = 'Bern' then 2 end
case when city in ('Bern') then 1 when not (city in ('Bern')) then 2 end
case code when 'a' then 1 when 'b' then 2 end
case when at < '2024-07-01' then 1 when not (at < '2024-07-01') then 2 end
case when seen < '2024-07-01' then 1 when seen >= '2024-07-01' then 2 end
case when day <= '2024-06-30' then 1 when day >= '2024-07-01' then 2 end
case when extract(month from at) < 7 then 1 when extract(month from at) >= 7 then 2 end
case when date_trunc('month', at) < '2024-07-01' then 1 when not date_trunc('month', at) < '2024-07-01' then 2 end
case when age % 3 = 0 then 1 when age % 3 = 1 then 2 when age % 3 = 2 then 3 end
case when paid then 1 when not paid then 0 end
case paid when true then 1 when false then 0 end
paid::int
case when paid and age < 40 then 1 when not (paid and age < 40) then 2 end
(age > 30)::int
(age > 30)::text
case when free = 'a' then 1 when free <> 'a' then 2 end
case when free like 'a%' then 1 when not free like 'a%' then 2 end
case when free in ('a', 'b') then 1 when free not in ('a', 'b') then 2 end
case when free is not null then 1 end
case when count < 0 then 1 when count >= 0 then 2 end
case when count <= 5 then 1 when count >= 6 then 2 end
case when speed < 40 then 1 when speed >= 40 then 2 end
case when age < count then 1 when not (age < count) then 2 end
case when maybe is null then 1 when maybe < 40 then 2 when maybe >= 40 then 3 end
case when maybe < 40 then 1 when maybe < 40 is not true then 2 end
coalesce(maybe, 0) / 10
nullif(age, 200)
coalesce(case when age < 40 then 1 end, case when age >= 40 then 2 end)
nullif(city, '')
coalesce(nullif(age, 0), 1)
case when nullif(age, 5) is null then 5 when age <> 5 then 1 end
greatest(maybe, age)
num_nulls(age, maybe)
case when (case when age < 18 then 'a' else 'b' end) = 'a' then 1 when age >= 18 then 2 end
case when upper(free) = 'A' then 1 when not upper(free) = 'A' then 2 end
case when 1 < age then 1 when 1 >= age then 2 end
""".strip().splitlines()
SOMETIMES = """
maybe
maybe / 10
age / 0
100 / age
age % (age - 50)
nullif(age, 5)
nullif(city, 'Bern')
case when age < 40 then 'y' end
case when age < 40 then 'y' when age > 40 then 'o' end
age + maybe
case when amount < 99 then 1 when amount > 99.5 then 2 end
case when amount <= 99 then 1 when amount >= 100 then 2 end
case when city = 'Bern' then 1 end
case when maybe < 40 then 1 when not (maybe < 40) then 2 end
case when at < '2024-07-01' then 1 when at > '2024-07-01' then 2 end
case when free = 'a' then 1 when free = 'zz' then 2 end
case when speed < 40 then 1 when speed > 40 then 2 end
case when count < 0 then 1 when count > 0 then 2 end
case when age < 40 and amount < 100 then 1 when age >= 40 then 2 end
sqrt(age - 50)::int
ln(age)::int
make_date(2023, extract(month from at)::int, extract(day from at)::int)
age % 2 / (age % 2)
(age * 1000)::smallint
case when day < '2024-06-30' then 1 when day > '2024-06-30' then 2 end
case when paid then 1 end
case when age / 10 < 3 then 1 when age > 30 then 2 end
nullif(paid, true)
to_timestamp(speed)
coalesce(case when age < 40 then 1 end, case when age > 40 then 2 end)
acos(height)::int
case when age < 40 then 100 / (age - 7) else 1 end
case when (case when age < 18 then 7 / (age - 7) else 0 end) > 5 then 1 when true then nullif(age, 7) end
case when nullif(age, maybe) is null then 1 when age = 7 then 2 when age <> maybe then 3 end
""".strip().splitlines()
# where looking would not tell
UNTOLD = """
case when blind = 'bern' then 1 when blind <> 'bern' then 2 end
round(count, -1)
count * 2
free::int
case when free < 'b' then 1 when free >= 'b' then 2 end
date_trunc('month', born)
to_char(at, 'YYYY')::int
case when rate < 5 then 1 when rate >= 5 then 2 end
case when born < '2000-01-01' then 1 when born >= '2000-01-01' then 2 end
""".strip().splitlines()
_MANY = " ".join(f"when age <= {n} and height <= {n} then {n}" for n in range(80))
LONG = f"case {_MANY} when height > 3 then age end"


def key_of(expression: str, where: str = "true") -> tuple[Scalar, Domains]:
    found: ReleasePlan = plan(f"select count(*) from sales where {where} group by {expression}", CONTEXT)
    (key,) = found.analysed.keys
    domains = found.analysed.domains
    assert not isinstance(key, PublicKey) or (NULL_KEY in key.values) is is_null_possible(key.scalar, domains)
    return key.scalar, domains


def is_null_possible(scalar: Scalar, domains: Domains) -> bool:
    return may_be_null(scalar, domains, KeyValues(domains))


def values_of(scalar: Scalar, domains: Domains) -> set[bool]:
    """Whether the key is NULL, in all rows that samples of its columns make."""
    columns = sorted(columns_of(scalar), key=lambda c: c.name)
    evaluator = Evaluator(domains.column, "UTC")
    rows: list[Row] = [
        {(c.scan, c.name): _stored(v) for c, v in zip(columns, values, strict=True)}
        for values in product(*(_samples(c.name) for c in columns))
    ]
    return {evaluator.value(scalar, row, Reading.KEY) is None for row in rows}


def _samples(column: str) -> list[object]:
    """Those above, and all of few."""
    match column:
        case "age":
            return [*range(111)]
        case "day":
            return [date(2024, 1, 1) + timedelta(days=n) for n in range(366)]
        case _:
            return [*SAMPLES[column]]


def _stored(value: object) -> Value:
    return times.moment_of(value) if isinstance(value, date) else value  # type: ignore[return-value]  # as oracles store it


@pytest.mark.parametrize("expression", NEVER)
def test_null_is_no_group_where_no_row_gives_it(expression: str) -> None:
    scalar, domains = key_of(expression)
    assert not is_null_possible(scalar, domains)
    assert values_of(scalar, domains) == {False}


@pytest.mark.parametrize("expression", SOMETIMES)
def test_null_is_a_group_where_a_row_may_give_it(expression: str) -> None:
    scalar, domains = key_of(expression)
    assert is_null_possible(scalar, domains)
    assert True in values_of(scalar, domains)


@pytest.mark.parametrize("expression", [*UNTOLD, LONG])
def test_null_is_a_group_where_nobody_can_tell(expression: str) -> None:
    assert is_null_possible(*key_of(expression))


@pytest.mark.parametrize(
    ("where", "expression"),
    [
        ("maybe < 40", "maybe / 10"),
        ("age >= 40", "case when age < 18 then null when age > 39 then 1 end"),
        ("maybe is not null", "case when maybe < 40 then 1 when maybe >= 40 then 2 end"),
        ("born between '2000-01-01' and '2020-01-01'", "date_trunc('year', born)"),
        ("count between 0 and 100", "count * 10"),
        ("age <> 0 and age > 0", "100 / age"),
        ("rate between 0 and 10", "floor(rate / 2)"),
    ],
)
def test_conditions_keep_null_out(where: str, expression: str) -> None:
    assert not is_null_possible(*key_of(expression, where))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("case when age is null then 'none' when age < 40 then 'y' else 'o' end", ["o", "y"]),
        ("case when amount < 0 then 1 when amount < 100 then 2 when amount <= 1000 then 3 else 4 end", [2, 3]),
        ("case when amount is null then 1 when at >= '2024-01-01' then 2 else 3 end", [2]),
        ("case when blind is null then 1 else 2 end", [1, 2]),
        ("coalesce(city, 'none')", ["Bern", "Rome"]),
        ("nullif(city, 'Rome')", ["Bern"]),
        ("concat(city, age / 60)", ["Bern0", "Bern1", "Rome0", "Rome1"]),
        ("concat('-', age / 60)", ["-0", "-1"]),
        ("round(amount / 400)", [0, 1, 2, 3]),
        ("trunc(amount / 400)::int", [0, 1, 2]),
        ("width_bucket(amount, 0, 2000, 4)", [1, 2, 3]),
        ("width_bucket(height, 10, 250, 2)", [0, 1, 2, 3]),
        ("width_bucket(height, 300, 400, 2)", [0]),
        ("width_bucket(height, -9, -1, 2)", [3]),
        ("width_bucket(age - 100, -50, 0, 5)", [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_no_group_is_for_what_no_row_has(expression: str, expected: list[object]) -> None:
    scalar, domains = key_of(expression)
    assert sorted(KeyValues(domains).of(scalar) or ()) == expected
    if "blind" not in expression:
        found = KeyValues(domains, keeps_outside=True).of(scalar) or ()
        assert set(expected) <= set(found), "as of rows with columns outside of their domains"


def test_rows_of_a_sub_select_have_no_null_that_their_keys_cannot_give() -> None:
    inner = "select id, age / 10 as decade, count(*) from sales group by 1, 2"
    (key,) = plan(f"select decade, count(*) from ({inner}) t group by 1", CONTEXT).analysed.keys
    assert isinstance(key, PublicKey)
    assert NULL_KEY not in key.values


PARTS = "case when age < 40 then 1 when not (age < 40) then 2 end"


@pytest.mark.parametrize("key", ["age / 10", PARTS, "floor(amount / 100)"])
def test_rows_against_what_is_declared_move_nothing_that_is_shown(key: str) -> None:
    """A row without a value that is declared to be there is dropped before its unit's rows are counted and scaled."""
    rows = [f"({unit}, {age}, {100 * unit})" for unit in (1, 2) for age in range(0, 100, 7)]
    absent = [f"(1, {age}, {amount})" for age, amount in (("NULL", "NULL"), (-1, -1), (500, 5000)) for _ in range(200)]
    of = plan(f"select sum(age), count(*) from sales group by {key}", CONTEXT)
    given = []
    for extra in ([], absent):
        with duckdb.connect(":memory:") as engine:
            engine.execute("create table sales (id integer, age integer, amount decimal(9, 2))")
            engine.execute(f"insert into sales values {', '.join([*rows, *extra])}")
            given.append(sorted(engine.execute(of.sql).fetchall()))
    assert given[0] == given[1]
    assert all(row[1] is not None for row in given[0])
