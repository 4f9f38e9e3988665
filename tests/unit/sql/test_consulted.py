"""What texts stand for by the clock of the plan and by those of the session, and what is left to PostgreSQL."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from sqlglot import exp

from proxy.errors import Unsupported
from proxy.sql.algebra.constants import (
    TIME_OID,
    Constants,
    Elements,
    Given,
    InputText,
    TimeOfDay,
    Unheld,
    Unread,
    not_understood,
)
from proxy.sql.algebra.nodes import Literal, Null, Span
from proxy.sql.binding.consulted import Consulted, may_read_clock
from proxy.sqltypes import SqlType, Value

NODE = exp.Literal.string("x")
NOW = datetime(2024, 6, 1, 23, 30, 15, tzinfo=UTC)
TOKYO = "Asia/Tokyo"
UNKNOWN = "EST5EDT,M3.2.0,M11.1.0"


def consulted(zone: str = "", *, now: datetime = NOW) -> Consulted:
    return Consulted(Constants({}, now, {}, zone))


@pytest.mark.parametrize(
    ("text", "kind", "zone", "value"),
    [
        ("now", SqlType.TIMESTAMPTZ, "", NOW), (" NOW ", SqlType.TIMESTAMPTZ, TOKYO, NOW),
        ("now", SqlType.TIMESTAMP, TOKYO, datetime(2024, 6, 2, 8, 30, 15)), ("now", SqlType.DATE, "", date(2024, 6, 1)),
        ("today", SqlType.DATE, "", date(2024, 6, 1)), ("Today", SqlType.DATE, TOKYO, date(2024, 6, 2)),
        ("yesterday", SqlType.DATE, "", date(2024, 5, 31)), ("tomorrow", SqlType.TIMESTAMP, "", datetime(2024, 6, 2)),
        ("tomorrow", SqlType.TIMESTAMPTZ, TOKYO, datetime(2024, 6, 3, tzinfo=ZoneInfo(TOKYO))),
    ],
)  # fmt: skip
def test_words_for_the_clocks_time(text: str, kind: SqlType, zone: str, value: Value) -> None:
    asked = consulted(zone)
    assert asked.value(NODE, text, kind) == Literal(value, kind)
    assert asked.reads_clock


@pytest.mark.parametrize("zone", ["", TOKYO, "<+05>-05", UNKNOWN])
def test_a_constant_day_reads_no_clock(zone: str) -> None:
    asked = consulted(zone)
    assert asked.value(NODE, "2024-02-29", SqlType.DATE) == Literal(date(2024, 2, 29), SqlType.DATE)
    assert asked.span(NODE, "1 day") == Span(0, 1, 0)
    assert not asked.reads_clock


@pytest.mark.parametrize(
    ("zone", "instant"),
    [
        ("", datetime(2024, 2, 29, 12, tzinfo=UTC)), (TOKYO, datetime(2024, 2, 29, 3, tzinfo=UTC)),
        ("<+05:30>-05:30", datetime(2024, 2, 29, 6, 30, tzinfo=UTC)), ("EST5", datetime(2024, 2, 29, 17, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_an_instant_without_an_offset_is_by_the_sessions_clocks(zone: str, instant: datetime) -> None:
    asked = consulted(zone)
    assert asked.value(NODE, "2024-02-29 12:00", SqlType.TIMESTAMPTZ).value == instant
    assert asked.instant(NODE, datetime(2024, 2, 29, 12)) == instant
    assert asked.value(NODE, "2024-02-29 12:00+00", SqlType.TIMESTAMPTZ).value == datetime(2024, 2, 29, 12, tzinfo=UTC)


def test_clocks_that_leap_and_turn_back_are_read_as_postgresql_reads_them() -> None:
    asked = consulted("Europe/Zurich")
    for local in (datetime(2024, 3, 31, 2, 30), datetime(2024, 10, 27, 2, 30)):
        assert asked.instant(NODE, local).astimezone(UTC) == local.replace(hour=1, tzinfo=UTC)


def test_clocks_that_only_postgresql_knows() -> None:
    asked = consulted(UNKNOWN)
    assert asked.is_elsewhere
    for read in (
        lambda: asked.value(NODE, "2024-02-29 12:00", SqlType.TIMESTAMPTZ),
        lambda: asked.instant(NODE, datetime(2024, 2, 29, 12)),
    ):
        with pytest.raises(Unread) as unread:
            read()
        (text,) = unread.value.texts
        assert text.oid == SqlType.TIMESTAMPTZ.oid
    with pytest.raises(Unread):
        asked.value(NODE, "today", SqlType.DATE)
    with pytest.raises(Unsupported, match="not known"):
        asked.local_now(NODE)


@pytest.mark.parametrize(
    ("zone", "now", "is_elsewhere"),
    [("", NOW, False), ("Etc/UTC", NOW, False), ("<+00>-00", NOW, False), (TOKYO, NOW, True), ("<+09>-09", NOW, True),
     (TOKYO, NOW.astimezone(ZoneInfo(TOKYO)), False), (UNKNOWN, NOW, True)],
)  # fmt: skip
def test_whether_the_sessions_clocks_are_others(zone: str, now: datetime, is_elsewhere: bool) -> None:
    assert consulted(zone, now=now).is_elsewhere is is_elsewhere


def test_what_the_policys_clocks_show_is_shown_on_the_sessions() -> None:
    zurich, twice = NOW.astimezone(ZoneInfo("Europe/Zurich")), datetime(2024, 10, 27, 2, 30)
    assert consulted(TOKYO, now=zurich).local(NODE, datetime(2024, 6, 1, 12)) == datetime(2024, 6, 1, 19)
    assert consulted("Europe/Zurich", now=zurich).local(NODE, twice) == twice
    with pytest.raises(Unsupported, match="twice") as refused:
        consulted(TOKYO, now=zurich).local(NODE, twice)
    assert "SET TimeZone = 'Europe/Zurich'" in refused.value.hint


def test_without_any_zone_times_are_as_they_are() -> None:
    asked = consulted(now=NOW.replace(tzinfo=None))
    assert asked.local(NODE, datetime(2024, 6, 1)) == asked.instant(NODE, datetime(2024, 6, 1)) == datetime(2024, 6, 1)
    assert asked.local_now(NODE) == datetime(2024, 6, 1, 23, 30, 15)


# --- what PostgreSQL is to read --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [k for k in SqlType if k is not SqlType.INTERVAL and not k.is_text])
def test_texts_that_are_not_plain_are_collected_with_stand_ins(kind: SqlType) -> None:
    asked = Consulted(Constants({}, NOW), collects=True)
    assert asked.value(NODE, "what", kind).type is kind
    assert asked.value(NODE, "ever", kind).type is kind
    with pytest.raises(Unread) as unread:
        asked.check()
    assert unread.value.texts == (InputText("what", kind.oid), InputText("ever", kind.oid))


def test_intervals_times_of_day_and_arrays_are_collected_too() -> None:
    asked = Consulted(Constants({}, NOW), collects=True)
    asked.span(NODE, "1-2")
    asked.span(NODE, "5", "", 42)
    asked.time_of_day(NODE, "5 PM")
    asked.elements(NODE, "{1, 2}", SqlType.INT4)
    with pytest.raises(Unread) as unread:
        asked.check()
    assert unread.value.texts == (
        InputText("1-2", SqlType.INTERVAL.oid), InputText("5", SqlType.INTERVAL.oid, 42), InputText("5 PM", TIME_OID),
        InputText("{1, 2}", SqlType.INT4.array_oid),
    )  # fmt: skip


def test_plain_ones_are_not() -> None:
    asked = consulted()
    assert asked.time_of_day(NODE, "17:30") == TimeOfDay(63_000_000_000)
    assert asked.span(NODE, "90", "MINUTE", 42) == Span(0, 0, 5_400_000_000)
    assert asked.elements(NODE, "{1,2}", SqlType.INT4).items == (Literal(1, SqlType.INT4), Literal(2, SqlType.INT4))
    asked.check()


def test_a_text_that_is_not_plain_is_never_guessed_where_nobody_looks() -> None:
    with pytest.raises(Unread):
        consulted().value(NODE, "1/2/2024", SqlType.DATE)


def test_what_was_read_is_what_it_stands_for() -> None:
    day = Literal(date(2024, 1, 2), SqlType.DATE)
    given: dict[str, Given] = {"2 Jan 2024": day, "infinity": Unheld("is beyond private rows")}
    readings = {InputText(text, SqlType.DATE.oid): value for text, value in given.items()}
    asked = Consulted(Constants({}, NOW, readings))
    assert asked.value(NODE, "2 Jan 2024", SqlType.DATE) == day
    with pytest.raises(Unsupported, match="'infinity' is beyond private rows"):
        asked.value(NODE, "infinity", SqlType.DATE)


@pytest.mark.parametrize(
    ("text", "oid", "may_read"),
    [("today 12:00", 1114, True), ("TOMORROW 04:00 PST", 1184, True), ("{2024-01-01,Now}", 1182, True),
     ("now", TIME_OID, True), ("2024.153", 1114, False), ("known", 25, False), ("today", 1186, False)],
)  # fmt: skip
def test_texts_that_may_name_the_clocks_time_are_known(text: str, oid: int, may_read: bool) -> None:
    assert may_read_clock(InputText(text, oid)) is may_read
    readings: dict[InputText, Given] = {InputText(text, oid): Literal(datetime(2024, 1, 1), SqlType.TIMESTAMP)}
    if oid == SqlType.TIMESTAMP.oid:
        asked = Consulted(Constants({}, NOW, readings))
        asked.value(NODE, text, SqlType.TIMESTAMP)
        assert asked.reads_clock is may_read


@pytest.mark.parametrize(
    ("oid", "name", "form"),
    [
        (SqlType.DATE.oid, "date", "'2024-12-31'"), (SqlType.INT4.array_oid, "integer[]", "'{a,b}'"),
        (TIME_OID, "time", "'17:30'"), (SqlType.BOOL.oid, "boolean", "true"), (SqlType.INT4.oid, "integer", "40"),
    ],
)  # fmt: skip
def test_without_a_server_such_a_text_is_refused_with_the_form_of_its_type(oid: int, name: str, form: str) -> None:
    error = not_understood(Unread((InputText("x", oid),)))
    assert error.message == f"'x' is not understood as {name} without a server"
    assert form in error.hint


def test_elements_may_be_null() -> None:
    assert Elements((Null(SqlType.INT4),)).dimensions == 1
