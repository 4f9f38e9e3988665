"""Does the private engine, as the function table spells it, give what PostgreSQL gives?

Row by row over odd values. NULL stands where PostgreSQL raises. The oracle must give the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from proxy.front.front import Front
from tests.front.asked import Asked, differences
from tests.front.conftest import open_as

TEXTS = (
    "upper(x)",
    "lower(x)",
    "initcap(x)",
    "left(x, -1)",
    "left(x, -3)",
    "left(x, 2)",
    "right(x, -2)",
    "right(x, 2)",
    "concat(x, '-', i)",
    "concat_ws('-', x, i, d)",
    "concat_ws(', ', x, c, null, 'y')",
    "x || i",
    "x || d",
    "c || x",
    "i || x",
    "translate(x, 'abc', 'xy')",
    "octet_length(x)",
    "concat(x, i > 5, '-', i = 7)",
    "concat_ws('/', i > 5, x, null, true)",
    "(i > 5) || x",
    "x || (i > 5)",
    "x::varchar(2)",
    "c::varchar(3)",
    "i::varchar(2)",
)
PATTERNS = (
    "split_part(x, '-', 1)",
    "split_part(x, '-', 2)",
    "split_part(x, '-', 3)",
    "split_part(x, '-', -1)",
    "split_part(x, '-', -2)",
    "split_part(x, '//', 2)",
    "split_part(x, 'aa', 1)",
    "split_part(x, 'aa', 2)",
    "split_part(x, '.', 2)",
    "split_part(x, '%_', 2)",
    "split_part(split_part(x, '/', 3), '.', -1)",
    "substring(x from '[0-9]+')",
    "substring(x from '@(.*)$')",
    "substring(x, '([a-z]+)@')",
    "(regexp_match(x, '[a-c]-'))[1]",
    "regexp_substr(x, 'b.*$')",
    "regexp_replace(x, '[0-9]+', '#')",
    "regexp_replace(x, '[a-c]', '<\\&>', 'g')",
    "regexp_replace(x, '([a-c])-', '\\1+', 'g')",
    "regexp_replace(x, '^.*@(.*)$', '\\1')",
    "regexp_replace(x, '[^a-z]', '', 'g')",
)
CONDITIONS = (
    "x like any (array['a%', '%b'])",
    "x like all (array['a%', '%b'])",
    "x not like any (array['a%', '%b'])",
    "x not ilike all ('{a%,%B}')",
    "i >= all ('{1,7}')",
    "i < any (array[0, 10])",
    "i = any ('{}')",
    "i <> all ('{}'::int[])",
    "x = any ('{a,\"a-b-c\",ab}')",
    "(i, x) < (7, 'b')",
    "(i, n) >= (2, 1.15)",
    "row(i, x) = row(7, 'a--b')",
    "(i, x) is distinct from (7, 'a--b')",
    "(i, null) is not distinct from (7, x)",
    "regexp_match(x, 'a.*b') is null",
    "regexp_match(x, '-') is not null",
    "i = some(array[1, 7])",
    "x <> some('{a,b}')",
    "(i, x) is null",
    "(i, x) is not null",
    "i between symmetric 10 and 1",
    "i not between symmetric 10 and 1",
    "num_nulls(i, x, n)",
    "num_nonnulls(i, x, n)",
)
NUMBERS = (
    "n::numeric(10,2)",
    "n::numeric(5,1)",
    "r::numeric(12,2)",
    "i::numeric(4)",
    "left(x, 2)::numeric(6,2)",
    "trunc(n, 2)",
    "trunc(n, -1)",
    "trunc(i, -1)",
    "trunc(n, 0)",
    "log(2, i)",
    "log(2.5, n)",
    "log10(n)",
    "log10(i)",
    "log(10, i)",
    "cbrt(r)",
    "cbrt(i)",
    "div(i, 7)",
    "div(n, 0.5)",
    "div(7, i)",
    "width_bucket(i, array[0, 10, 100])",
    "width_bucket(n, array[0.5, 1.15, 99])",
)
FORMATS = (
    "to_char(t, 'YYYY-MM-DD HH24:MI:SS.US')",
    "to_char(t, 'YYYY-\"Q\"Q')",
    "to_char(t, 'IYYY-IW ID D DDD')",
    "to_char(t, 'Day|Month|Mon|DY|dy|Dy|day|MONTH|month')",
    "to_char(t, 'FMMonth FMDay FMDD FMMM YY')",
    "to_char(t, 'HH12:MI AM')",
    "to_char(t, 'HH:MI pm MS')",
    "to_char(t, 'WW W')",
    "to_char(d, 'DD.MM.YYYY')",
    "to_char(d, 'HH24:MI 100% \"T%\"')",
    "to_char(z, 'YYYY-MM-DD HH24')",
    "to_char(t, 'yyyy-mm-dd hh24:mi:ss')",
    "to_char(t, 'FMHH24 FMMI FMSS FMHH12')",
    "to_char(t, 'TMMonth TMDay TMmon')",
    "to_char(i, '999')",
    "to_char(i, 'FM000')",
    "to_char(i, '90')",
    "to_char(i, 'fm9909')",
    "to_char(round(n), '099')",
    "to_char(n, 'FM9')",
    "to_char(extract(month from t), 'FM00')",
)
TIMES = (
    "extract(decade from t)",
    "extract(century from d)",
    "extract(millennium from z)",
    "extract(milliseconds from t)",
    "extract(microseconds from t)",
    "date_trunc('decade', t)",
    "date_trunc('century', t)",
    "date_trunc('millennium', d)",
    "date_trunc('milliseconds', t)",
    "date_trunc('microseconds', t)",
)

ZONES = (
    "t at time zone 'UTC'",
    "t at time zone 'Europe/Zurich'",
    "z at time zone 'Europe/Zurich'",
    "z at time zone 'America/New_York'",
    "z at time zone 'utc'",
    "t at time zone 'UTC' at time zone 'Asia/Kolkata'",
    "t at time zone 'Europe/Zurich' at time zone 'America/St_Johns'",
    "d at time zone 'Asia/Tokyo'",
    "timezone('Europe/Zurich', z)",
    "timezone('Europe/Zurich', t)",
    "date_trunc('day', z, 'Europe/Zurich')",
    "date_trunc('month', z, 'America/New_York')",
    "to_char(z at time zone 'Asia/Kolkata', 'YYYY-MM-DD HH24:MI')",
    "(z at time zone 'Asia/Tokyo')::date",
    "to_timestamp(r) at time zone 'UTC'",
)
SPANS = (
    "extract(epoch from t - timestamp '2000-01-01')",
    "extract(epoch from (z - t))",
    "extract(day from t - timestamp '2010-06-01 12:00')",
    "extract(hour from t - timestamp '2010-06-01 12:00')",
    "extract(minute from timestamp '2010-06-01 12:00' - t)",
    "extract(second from t - timestamp '2010-06-01 12:00')",
    "extract(milliseconds from t - d)",
    "extract(microseconds from d - t)",
    "date_part('day', timestamptz '2024-06-01 12:00+00' - z)",
    "t - timestamp '2024-01-01' < interval '60 days'",
    "t - z >= '1 month'",
    "interval '1 day 12:00' > z - t",
    "interval '1 day 2 hours' <= t - z",
    "t - z = t - z",
    "extract(year from age(timestamp '2024-03-01 10:00', t))",
    "extract(month from age(timestamp '2024-03-01 10:00', t))",
    "extract(year from age(t, date '2004-02-29'))",
    "extract(month from age(d, date '2004-01-31'))",
    "extract(month from age(date '2004-01-31', d))",
    "date_part('year', age(t, z))",
    "extract(day from age(timestamp '2024-03-31 10:00', t))",
    "extract(hours from age(t, timestamp '2004-02-29 23:59:59.5'))",
    "extract(minute from age(t, z))",
    "extract(second from age(timestamp '2024-03-31 10:00:00.25', t))",
    "extract(milliseconds from age(z, t))",
    "extract(microseconds from age(timestamp '2024-03-31 10:00:00.25', t))",
    "extract(epoch from age(t, timestamp '2004-02-29 23:59:59.5'))",
    "extract(day from age(d, date '2004-01-31'))",
    "age(t, z) < interval '3 months 2 days 5 hours'",
    "age(timestamp '2024-03-31 10:00', t) between interval '-20 days' and interval '20 years 1 mon'",
    "age(d, date '2004-03-31') = interval '-2 months'",
    "age(t, timestamp '2004-02-29') > age(z, timestamp '2024-01-01')",
    "t - z between interval '-1 day' and interval '2 days'",
    "t - z > '02:30'",
    "t::time < '12:00'",
    "cast(t as time) between time '06:30' and '18:30:15.5'",
    "extract(minute from t::time)",
    "extract(epoch from t::time)",
    "t::time >= z::time",
    "make_timestamp(extract(year from t)::int, i % 13, 31, 23, 59, 59.999999)",
    "make_timestamptz(2024, i, 29, 0, 30, 0)",
    "date_trunc('mons', t)",
    "date_part('hrs', t)",
    "t + i * interval '1 day'",
    "t - interval '5 minutes' * floor(n)",
    "d + i * interval '1 month'",
    "date_trunc('hour', t) + interval '5 minutes' * floor(extract(minute from t) / 5)",
    "date_trunc('minute', z) + interval '5 seconds' * floor(extract(second from z) / 5)",
    "date_bin('15 minutes', t, timestamp '2024-01-01')",
    "date_bin(interval '7 days', t, '2024-01-01 00:00:01')",
    "date_bin('1 hour', z, timestamptz '2001-01-01')",
    "make_date(i, 2, 29)",
    "make_date(2024, i, 31)",
    "make_date(extract(year from t)::int, extract(month from t)::int, 1)",
    "make_date(2024, 2, 29) + i % 7",
    "to_timestamp(i)",
    "to_timestamp(n)",
    "to_timestamp(floor(extract(epoch from t) / 3600) * 3600)",
)

CASTS = (
    "x::integer",
    "x::bigint",
    "x::smallint",
    "x::float8",
    "x::numeric",
    "x::date",
    "x::timestamp",
    "i::text",
    "b::text",
    "d::text",
    "t::text",
    "date_trunc('day', t)::text",
    "extract(year from t)::text || '-' || lpad(extract(month from t)::text, 2, '0')",
    "concat(extract(year from d), '-Q', extract(quarter from d))",
    "date_part('dow', t)::text",
    "floor(n)::text",
    "round(n)::varchar",
    "floor(i / 10)::text || '0s'",
    "i::boolean",
    'x collate "C"',
    "t + (-6 || ' day')::interval",
    "t - make_interval(months => 1, days => 2, mins => 5)",
    "t > (select timestamp '2024-01-01')",
    "(select i % 7)",
)
ANGLES = (
    "sin(r)",
    "cos(i)",
    "tan(r)",
    "asin(r / 100)",
    "acos(n)",
    "atan(r)",
    "atan2(r, i)",
    "degrees(i)",
    "radians(n)",
    "pi() * r",
)

SUBJECTS = {
    "texts": TEXTS, "patterns": PATTERNS, "conditions": CONDITIONS, "numbers": NUMBERS, "formats": FORMATS,
    "times": TIMES, "zones": ZONES, "spans": SPANS, "casts": CASTS, "angles": ANGLES,
}  # fmt: skip


@pytest.fixture(scope="module")
def asked(front: Front) -> Iterator[Asked]:
    with open_as(front, "alice") as connection:
        yield Asked(connection)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_engine_and_the_oracle_give_what_postgresql_gives(asked: Asked, subject: str) -> None:
    wrong = []
    for expression in SUBJECTS[subject]:
        scalar = asked.scalar(expression)
        found = asked.engine(scalar)
        assert any(value is not None for value in found), f"{expression} says nothing"
        wrong += [f"{expression}, PostgreSQL: {d}" for d in differences(found, asked.postgres(expression))]
        wrong += [f"{expression}, oracle: {d}" for d in differences(found, asked.oracle(scalar))]
    assert not wrong
