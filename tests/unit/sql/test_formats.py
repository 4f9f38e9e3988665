"""Formats of to_char: what is understood, what is not, and which unit decides."""

from __future__ import annotations

import pytest

from proxy.sql.literals.formats import Piece, finest, pieces_of
from proxy.sql.literals.time_texts import every_text


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("YYYY-MM", (Piece("%Y-%m", "month"),)),
        ("yyyy", (Piece("%Y", "year"),)),
        ('"100%"', (Piece("100%%", ""),)),
        ("IYYY-IW", (Piece("%G-%V", "week"),)),
        ("IW YYYY", (Piece("%V %Y", "day"),)),
        ("FMDD", (Piece("%-d", "day"),)),
        ("Month", (Piece("%B", "month", is_padded=True),)),
        ("FMMONTH", (Piece("%B", "month", case="upper"),)),
        ("dy am", (Piece("%a", "day", case="lower"), Piece(" ", ""), Piece("%p", "hour", case="lower"))),
        ("Q/D", (Piece("", "quarter", number="Q"), Piece("/", ""), Piece("", "day", number="D"))),
        ("HH12:MI PM", (Piece("%I:%M %p", "minute"),)),
    ],
)
def test_pieces(text: str, pieces: tuple[Piece, ...]) -> None:
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
