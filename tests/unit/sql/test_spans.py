"""Texts of intervals keep months, days and microseconds apart."""

from __future__ import annotations

import pytest

from proxy.sql.algebra.nodes import Span
from proxy.sql.literals.interval_texts import plain_span


@pytest.mark.parametrize(
    ("text", "field", "span"),
    [
        ("1 month", "", Span(1, 0, 0)), ("1", "MONTH", Span(1, 0, 0)), ("-2 weeks", "", Span(0, -14, 0)),
        ("1 year 2 mons 3 days", "", Span(14, 3, 0)), ("1.5 seconds", "", Span(0, 0, 1_500_000)),
        (" +3   Months ", "", Span(3, 0, 0)), ("0.000001 second", "", Span(0, 0, 1)),
        ("90", "MINUTE", Span(0, 0, 5_400_000_000)),
        ("1min 30sec", "", Span(0, 0, 90_000_000)), ("02:30", "", Span(0, 0, 9_000_000_000)),
        ("-1:00:00.5", "", Span(0, 0, -3_600_500_000)), ("7", "", Span(0, 0, 7_000_000)),
        ("2 days 12:30:00", "", Span(0, 2, 45_000_000_000)), ("1 day -01:00", "", Span(0, 1, -3_600_000_000)),
        ("1 years 0 mons -3 days 4 hours 5 mins 6.00 secs", "", Span(12, -3, 14_706_000_000)),
    ],
)  # fmt: skip
def test_understood(text: str, field: str, span: Span) -> None:
    assert plain_span(text, field) == span


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", ""), ("1.5 months", ""), ("1.5 hours", ""), ("1-2", ""), ("P1Y", ""), ("1 month ago", ""), ("1 eon", ""),
        ("-1 day 02:03:04", ""), ("-1 day 2 hours", ""), ("12:60", ""), ("02:03", "HOUR"), ("1.5", "HOUR"),
        ("1 day", "HOUR"), ("1 day 2 days", ""), ("1 hour 02:03", ""), ("02:03 1 day", ""),
        ("1.5 secs 5 milliseconds", ""), ("1 day+2:00", ""), ("1min30sec", ""), ("1 quarter", ""),
        ("0.0000001 second", ""), ("3000000000 days", ""), ("999999999 years", ""), ("1 mss", ""), ("٣ days", ""),
    ],
)  # fmt: skip
def test_the_rest_is_for_postgresql(text: str, field: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        plain_span(text, field)
