"""Understood statements and plans are kept by everything they depend on."""

from __future__ import annotations

from proxy.session.answer import Planned
from proxy.session.contract import Piece
from proxy.session.plancache import PlanCache
from tests.unit.session.make import version

PIECES = (Piece(text="SELECT 1", start=0, is_private=False, describe_text="SELECT 1"),)
PLANNED = Planned(blocks=(), plans=(), outputs=(), types=frozenset())


def test_pieces_are_kept_by_version_login_text_and_intervals() -> None:
    cache, one, two = PlanCache(), version(), version()
    cache.keep_pieces(one, "ann", "SELECT 1", False, PIECES)
    assert cache.pieces(one, "ann", "SELECT 1", False) is PIECES
    for other in ((two, "ann", "SELECT 1", False), (one, "bob", "SELECT 1", False), (one, "ann", "SELECT 2", False),
                  (one, "ann", "SELECT 1", True)):  # fmt: skip
        assert cache.pieces(*other) is None


def test_least_recently_used_is_forgotten() -> None:
    cache = PlanCache(most=2)
    cache.keep_planned("a", PLANNED)
    cache.keep_planned("b", PLANNED)
    assert cache.planned("a") is PLANNED
    cache.keep_planned("c", PLANNED)
    assert [cache.planned(k) for k in "abc"] == [PLANNED, None, PLANNED]


def test_long_texts_are_not_kept() -> None:
    cache, one, text = PlanCache(), version(), "SELECT 1" + " " * 20_000
    cache.keep_pieces(one, "ann", text, False, PIECES)
    assert cache.pieces(one, "ann", text, False) is None
