"""Understood statements and plans are kept by everything they depend on."""

from __future__ import annotations

from typing import Any

from proxy.pipeline.plans import Planned
from proxy.pipeline.statements import QueryString
from proxy.session.asking.plancache import PlanCache
from proxy.session.contract import Piece
from proxy.session.dataset import Version
from tests.unit.session.make import version

PIECES = (Piece(text="SELECT 1", start=0, is_private=False, describe_text="SELECT 1"),)
PLANNED = Planned(blocks=(), plans=(), outputs=(), types=frozenset())


def asked(of: Version, login: str = "ann", text: str = "SELECT 1", **more: Any) -> QueryString:
    return QueryString(premises=of.premises(login), text=text, **{"has_intervals": False, **more})


def test_pieces_are_kept_by_all_they_depend_on() -> None:
    cache, one, two = PlanCache(), version(), version()
    cache.keep_pieces(asked(one), PIECES)
    assert cache.pieces(asked(one)) is PIECES
    for other in (asked(two), asked(one, "clerk"), asked(one, text="SELECT 2"), asked(one, has_intervals=True),
                  asked(one, noted=frozenset("v")), asked(one, told=((("view",),),))):  # fmt: skip
        assert cache.pieces(other) is None


def test_least_recently_used_is_forgotten() -> None:
    cache = PlanCache(most=2)
    cache.keep_planned("a", PLANNED, 8)
    cache.keep_planned("b", PLANNED, 8)
    assert cache.planned("a") is PLANNED
    cache.keep_planned("c", PLANNED, 8)
    assert [cache.planned(k) for k in "abc"] == [PLANNED, None, PLANNED]


def test_long_texts_are_not_kept() -> None:
    cache, long = PlanCache(), asked(version(), text="SELECT 1" + " " * 20_000)
    cache.keep_pieces(long, PIECES)
    assert cache.pieces(long) is None
    long = asked(version(), told=((("view", "v", "SELECT 1" + " " * 20_000, None),),))
    cache.keep_pieces(long, PIECES)
    assert cache.pieces(long) is None


def test_plans_of_long_texts_are_not_kept() -> None:
    cache = PlanCache()
    cache.keep_planned("a", PLANNED, 1_000_000)
    assert cache.planned("a") is None
