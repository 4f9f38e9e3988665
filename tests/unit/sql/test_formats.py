"""Formats of to_char: what is understood, what is not, and which unit decides."""

from __future__ import annotations

import pytest

from proxy.sql.literals.formats import FormatPiece, finest, pieces_of
from proxy.sql.literals.time_texts import every_text


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("YYYY-MM", (FormatPiece("%Y-%m", "month"),)),
        ("yyyy", (FormatPiece("%Y", "year"),)),
        ('"100%"', (FormatPiece("100%%", ""),)),
        ("IYYY-IW", (FormatPiece("%G-%V", "week"),)),
        ("IW YYYY", (FormatPiece("%V %Y", "day"),)),
        ("FMDD", (FormatPiece("%-d", "day"),)),
        ("Month", (FormatPiece("%B", "month", is_padded=True),)),
        ("FMMONTH", (FormatPiece("%B", "month", case="upper"),)),
        (
            "dy am",
            (FormatPiece("%a", "day", case="lower"), FormatPiece(" ", ""), FormatPiece("%p", "hour", case="lower")),
        ),
        ("Q/D", (FormatPiece("", "quarter", number="Q"), FormatPiece("/", ""), FormatPiece("", "day", number="D"))),
        ("HH12:MI PM", (FormatPiece("%I:%M %p", "minute"),)),
    ],
)
def test_pieces(text: str, pieces: tuple[FormatPiece, ...]) -> None:
    assert pieces_of(text) == pieces


@pytest.mark.parametrize(
    "text",
    ["", "x" * 101, "DDTH", "DDth", "YYYY-MM-DDTHH24", "week", "Yyyy", "FMYYYY", "TMDD", "FMWW", "J", "CC", "Y,YYY",
     "SSSS", "TZ", "RM", "AD", "a.m.", '"', "FF3", "FXDD", "mONTH", "\\", "é", '"é"', "FM"],
)  # fmt: skip
def test_the_rest_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"understood|characters"):
        pieces_of(text)


def test_the_finest_unit_decides() -> None:
    assert [finest(u) for u in ((), ("", "year"), ("week",), ("week", "year"), ("month", "second"))] == [
        "", "year", "week", "day", "second",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("directives", "count"),
    [("%m", 12), ("%b", 12), ("%H:00", 24), ("%H:%M", 1440), ("%p", 2), ("%A", 7), ("%%", 1), ("%d.", 31),
     ("%I %%", 12), ("%d.%m", 0), ("%Y", 0), ("%H:%M:%S", 0), ("%I:%M %p", 0)],
)  # fmt: skip
def test_texts_that_need_no_bounds(directives: str, count: int) -> None:
    assert len(every_text(directives)) == count
