"""Interval literals keep months, days and microseconds apart."""

from __future__ import annotations

import pytest

from proxy.sql.algebra import Span
from proxy.sql.spans import parse_span


@pytest.mark.parametrize(
    ("text", "unit", "span"),
    [
        ("1 month", "", Span(1, 0, 0)), ("1", "MONTH", Span(1, 0, 0)), ("-2", "weeks", Span(0, -14, 0)),
        ("1 year 2 mons 3 days", "", Span(14, 3, 0)), ("1.5 hours", "", Span(0, 0, 5_400_000_000)),
        (" +3   Quarters ", "", Span(9, 0, 0)), ("0.000001", "second", Span(0, 0, 1)),
        ("1min30sec", "", Span(0, 0, 90_000_000)), ("02:30", "", Span(0, 0, 9_000_000_000)),
        ("-1:00:00.5", "", Span(0, 0, -3_600_500_000)),
    ],
)  # fmt: skip
def test_understood(text: str, unit: str, span: Span) -> None:
    assert parse_span(text, unit) == span


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("", ""), ("1.5", "month"), ("1-2", ""), ("P1Y", ""), ("1 month ago", ""), ("1 eon", ""),
        ("1 day 02:03:04", ""), ("12:60", ""), ("02:03", "hour"),
        ("0.0000001", "second"), ("3000000000", "day"), ("9999999999999999", "month"),
    ],
)  # fmt: skip
def test_the_rest_is_not(text: str, unit: str) -> None:
    assert parse_span(text, unit) is None
