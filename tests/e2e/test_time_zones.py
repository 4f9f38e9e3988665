"""Constants are meant by the session's clocks, as in PostgreSQL; days and months of private times are the policy's.

The policy's time zone is UTC. The public twin of the tables answers the same statements in the session's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.served import Client, Served
from tests.e2e.test_input_texts import Refused, ask, check

ZONES = ("UTC", "Europe/Zurich", "America/New_York", "<+05:30>-05:30")
UNKNOWN = "EST5EDT,M3.2.0,M11.1.0"  # to all but PostgreSQL
USERS = (
    "seen >= '2024-06-01'", "seen >= DATE '2024-06-01'", "seen >= TIMESTAMP '2024-06-01 12:00'",
    "seen >= '2024-06-01'::timestamptz", "seen BETWEEN '2024-06-01' AND DATE '2024-07-01'",
    "seen >= '2024-03-10 02:30'", "seen >= '1 June 2024'", "seen > TIMESTAMPTZ '2024-06-01 00:00+02'",
    "seen > date_trunc('month', TIMESTAMPTZ '2024-06-10 12:00+00')",
    "seen > TIMESTAMPTZ '2024-11-10 12:00+00' - interval '30 days'",
    "joined > (TIMESTAMPTZ '2021-06-10 23:30+00')::date", "joined > TIMESTAMPTZ '2021-06-10 23:30+00'",
    "joined = TIMESTAMPTZ '2020-01-11 23:00+00'", "seen > to_timestamp(1717200000)",
    "joined + extract(day from TIMESTAMPTZ '2021-06-10 23:30+00')::int > '2021-06-01'",
    "seen > to_timestamp('2024-06-01 12:00:00', 'YYYY-MM-DD HH24:MI:SS')",
    "seen > make_timestamptz(2024, 6, 1, 12, 0, 0)", "seen > '2024-06-01 00:00' AT TIME ZONE 'Asia/Tokyo'",
    "seen > DATE '2024-06-01' AT TIME ZONE 'Asia/Tokyo'", "seen IN ('2024-01-01', '2024-01-01 16:37+00')",
    "to_char(TIMESTAMPTZ '2021-06-10 23:30+00', 'DD') = '11' AND age > 30",
    "seen AT TIME ZONE 'Europe/Zurich' > '2024-06-01'", "(seen AT TIME ZONE 'UTC')::date > '2024-06-01'",
    "(seen, seen) OVERLAPS ('2024-06-01', DATE '2024-07-01')",
    "extract(epoch from seen) > extract(epoch from TIMESTAMPTZ '2024-06-01')",
    "age('2025-01-01', joined) > interval '2 years'", "CASE WHEN seen > '2024-06-01' THEN 1 ELSE 0 END = 1",
    "date_trunc('day', seen, 'Europe/Zurich') = '2024-06-01 00:00 Europe/Zurich'",
    "seen - TIMESTAMPTZ '2024-06-01 00:00' > interval '30 days'",
)  # fmt: skip
ORDERS = (
    "at > TIMESTAMPTZ '2024-06-01 00:00+00'", "at BETWEEN TIMESTAMPTZ '2024-06-01 00:00+00' AND '2025-01-01'",
    "at >= date_trunc('month', TIMESTAMPTZ '2024-06-01 00:00+00')", "at::date > TIMESTAMPTZ '2024-06-01 00:00+00'",
    "at IN (TIMESTAMPTZ '2024-01-01 00:00+00', '2024-01-01')",
)  # fmt: skip
BY_CLOCK = ("seen < current_date - 600", "seen < 'today'::date - 600", "age(seen) > interval '1 day'",
            "seen > localtimestamp - interval '700 days'")  # fmt: skip
BY_CLOCK_OF_ORDERS = ("at > now() - interval '600 days'", "at < localtimestamp - interval '500 days'")
STATEMENTS = (
    *(f"SELECT count(*) FROM users WHERE {condition}" for condition in (*USERS, *BY_CLOCK)),
    *(f"SELECT count(*) FROM orders WHERE {condition}" for condition in (*ORDERS, *BY_CLOCK_OF_ORDERS)),
)
#: Days and months of private times beside constants, whose days and months are others.
CUT = ("date_trunc('day', seen) = '2024-06-01'", "date_trunc('day', seen) > now() - interval '3 years'",
       "date_trunc('month', seen) = date_trunc('month', TIMESTAMPTZ '2024-06-10 12:00+00')")  # fmt: skip


@pytest.fixture(scope="module", params=ZONES)
def pair(served: Served, request: pytest.FixtureRequest) -> Iterator[tuple[Client, Client]]:
    with served.connect("shop") as private, served.connect("truth") as exact:
        yield in_zone(private, request.param), in_zone(exact, request.param)


def in_zone(client: Client, zone: str) -> Client:
    client.execute(f"SET TimeZone = '{zone}'".encode())
    return client


@pytest.mark.parametrize("sql", STATEMENTS)
def test_constants_are_meant_by_the_sessions_clocks(pair: tuple[Client, Client], sql: str) -> None:
    check(pair, sql)


@pytest.mark.parametrize("oid", [1082, 1114, 1184])
@pytest.mark.parametrize("text", ["2024-06-01", "1 June 2024", "2024-06-01 12:00+00"])
def test_parameters_are_meant_by_the_sessions_clocks(pair: tuple[Client, Client], oid: int, text: str) -> None:
    for condition in ("seen >= $1", "seen > coalesce($1, TIMESTAMPTZ '2024-06-01')"):
        check(pair, f"SELECT count(*) FROM users WHERE {condition}", text, oid)
    check(pair, "SELECT count(*) FROM orders WHERE at > $1", text, oid)


def test_days_of_rows_do_not_meet_days_of_constants_in_another_time_zone(served: Served) -> None:
    with served.connect("shop") as private, served.connect("truth") as exact:
        for condition in CUT:
            sql = f"SELECT count(*) FROM users WHERE {condition}"
            check((in_zone(private, "UTC"), in_zone(exact, "UTC")), sql)
            refused = ask(in_zone(private, "Europe/Zurich"), sql)
            assert isinstance(refused, Refused)
            assert refused.sqlstate == "DP006"
            assert "another time zone" in refused.message


def test_clocks_that_only_postgresql_knows_are_asked_of_it_or_refused(served: Served) -> None:
    with served.connect("shop") as private, served.connect("truth") as exact:
        both = in_zone(private, UNKNOWN), in_zone(exact, UNKNOWN)
        for condition in ("seen >= '2024-06-01'", "seen >= DATE '2024-06-01'", "seen >= TIMESTAMP '2024-06-01 12:00'"):
            check(both, f"SELECT count(*) FROM users WHERE {condition}")
        for condition in ("seen < current_date - 600", "joined > TIMESTAMPTZ '2021-06-10 23:30+00'"):
            refused = ask(private, f"SELECT count(*) FROM users WHERE {condition}")
            assert isinstance(refused, Refused)
            assert "not known" in refused.message


def test_a_notice_says_in_which_time_zone_days_are_cut(served: Served) -> None:
    with served.connect("shop") as client:
        told: list[str] = []
        client.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
        days = b"SELECT date_trunc('month', seen), count(*) FROM users GROUP BY 1"
        in_zone(client, "Europe/Zurich").execute(days)
        assert any(m.startswith("private times are computed in the time zone UTC, constants are read in") for m in told)
        told.clear()
        in_zone(client, "UTC").execute(days)
        assert not any("time zone" in message for message in told)
