"""Zones that a query may name, and what their clocks show."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from proxy.errors import Unsupported
from proxy.policy.model import Bounded, Listed, Unknown
from proxy.sql.algebra.constants import Constants
from proxy.sql.algebra.nodes import Call, ColumnRef, Scalar
from proxy.sql.binding.rules import make_binder
from proxy.sql.functions.domains.rules import Argument
from proxy.sql.functions.domains.zones import moved_to_zone, name_of, shown, zone_of
from proxy.sql.syntax.parse import parse
from proxy.sqltypes import SqlType

ZURICH = "Europe/Zurich"
COLUMNS = {"t": SqlType.TIMESTAMP, "z": SqlType.TIMESTAMPTZ, "d": SqlType.DATE}


@pytest.mark.parametrize(
    ("text", "name"), [("utc", "UTC"), ("GMT", "UTC"), ("Etc/UTC", "UTC"), (ZURICH, ZURICH), ("Etc/GMT+5", "Etc/GMT+5")]
)
def test_names(text: str, name: str) -> None:
    assert zone_of(text) == name


@pytest.mark.parametrize("text", ["CET", "EST", "+02", "europe/zurich", "Mars/Base", "", "../etc/passwd", "posixrules"])
def test_abbreviations_and_offsets_are_no_names(text: str) -> None:
    with pytest.raises(ValueError, match=r"^"):
        zone_of(text)


def test_the_policys_zone() -> None:
    assert [name_of(z) for z in (UTC, ZoneInfo("Etc/UTC"), ZoneInfo(ZURICH), None)] == ["UTC", "UTC", ZURICH, "UTC"]


def test_clocks_that_leap_and_turn_back() -> None:
    assert shown(datetime(2024, 3, 31, 2, 30), ZURICH, "UTC") == datetime(2024, 3, 31, 1, 30)
    assert shown(datetime(2024, 10, 27, 2, 30), ZURICH, "UTC") == datetime(2024, 10, 27, 1, 30)
    assert shown(datetime(2024, 7, 1), "UTC", ZURICH) == datetime(2024, 7, 1, 2)


def moved(domain: Bounded | Listed | Unknown, here: str, there: str) -> object:
    return moved_to_zone((Argument(domain), Argument(Listed((here,))), Argument(Listed((there,)))))


def test_bounds_move_with_the_clocks() -> None:
    year = Bounded(datetime(2024, 1, 1), datetime(2024, 7, 1))
    assert moved(year, "UTC", ZURICH) == Bounded(datetime(2024, 1, 1, 1), datetime(2024, 7, 1, 2))
    back = Bounded(datetime(2024, 10, 27, 0, 30), datetime(2024, 10, 27, 1))  # 2:30 in summer, 2:00 in winter
    assert moved(back, "UTC", ZURICH) == Bounded(datetime(2024, 10, 27, 1, 30), datetime(2024, 10, 27, 3))
    assert moved(Listed((datetime(2024, 7, 1),)), ZURICH, "UTC") == Listed((datetime(2024, 6, 30, 22),))
    assert moved(Unknown(), "UTC", ZURICH) == Unknown()
    assert moved(Bounded(datetime(1, 1, 1), datetime(2, 1, 1)), "Asia/Tokyo", "UTC") == Unknown()
    assert moved_to_zone((Argument(year), Argument(Unknown()), Argument(Unknown()))) == Unknown()


def bound(text: str, zone: str) -> Scalar:
    now = datetime(2024, 6, 1, tzinfo=ZoneInfo(zone))
    binder = make_binder(lambda n: ColumnRef(0, n.name, COLUMNS[n.name]), Constants({}, now), f"SELECT {text}")
    (item,) = parse(f"SELECT {text}").expressions
    return binder.scalar(item)


@pytest.mark.parametrize(
    ("text", "zone", "kind"),
    [
        (f"z AT TIME ZONE '{ZURICH}'", "UTC", SqlType.TIMESTAMP),
        (f"t AT TIME ZONE '{ZURICH}'", "UTC", SqlType.TIMESTAMPTZ),
        (f"z AT TIME ZONE '{ZURICH}'", ZURICH, SqlType.TIMESTAMP),
        ("t AT TIME ZONE 'UTC'", ZURICH, SqlType.TIMESTAMPTZ),
        ("(t AT TIME ZONE 'UTC') AT TIME ZONE 'Asia/Tokyo'", ZURICH, SqlType.TIMESTAMP),
        (f"d AT TIME ZONE '{ZURICH}'", "UTC", SqlType.TIMESTAMP), ("to_timestamp(5)", ZURICH, SqlType.TIMESTAMPTZ),
        ("extract(epoch FROM z)", ZURICH, SqlType.NUMERIC), ("extract(epoch FROM t - t)", ZURICH, SqlType.NUMERIC),
        (f"date_trunc('day', z, '{ZURICH}')", ZURICH, SqlType.TIMESTAMPTZ),
    ],
)  # fmt: skip
def test_what_is_told_in_the_policys_zone(text: str, zone: str, kind: SqlType) -> None:
    assert bound(text, zone).type is kind


def test_seconds_of_an_instant_are_counted_in_utc() -> None:
    found = bound("extract(epoch FROM z)", ZURICH)
    assert isinstance(found, Call)
    assert isinstance(found.args[0], Call)
    assert found.args[0].function == "local time"
    assert bound("extract(epoch FROM z)", "UTC") == Call("extract epoch", (ColumnRef(0, "z", SqlType.TIMESTAMPTZ),),
                                                         SqlType.NUMERIC)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["z AT TIME ZONE 'UTC'", "z - now() < interval '1 day'", "date_trunc('day', z, 'UTC')", "extract(day FROM z - t)",
     "date_bin('1 day', z, '2024-01-01')", "z AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo'"],
)  # fmt: skip
def test_instants_stay_in_the_policys_zone(text: str) -> None:
    with pytest.raises(Unsupported, match="policy's time zone"):
        bound(text, ZURICH)
