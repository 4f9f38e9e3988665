"""Do ntile, percent_rank and cume_dist, made of places and counts, give what they are defined to give?"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlglot import exp

from proxy.sql.algebra.constants import Constants
from proxy.sql.algebra.nodes import ColumnRef, Literal, Scalar
from proxy.sql.binding.binder import Binder
from proxy.sql.binding.rules import make_binder
from proxy.sql.relations.window_shares import less_one, share, tile
from proxy.sqltypes import SqlType
from tests.oracle.scalars import Evaluator, Reading

NODE = exp.Ntile()


def binder() -> Binder:
    return make_binder(lambda _: ColumnRef(0, "x", SqlType.INT8), Constants({}, datetime(2024, 1, 1, tzinfo=UTC)), "")


def number(value: int) -> Scalar:
    return Literal(value, SqlType.INT8)


def value_of(scalar: Scalar) -> object:
    return Evaluator(lambda _: pytest.fail("no column is read"), "UTC").value(scalar, {}, Reading.MEASURE)


@pytest.mark.parametrize("tiles", range(1, 8))
def test_the_first_tiles_have_one_row_more(tiles: int) -> None:
    for count in range(1, 17):
        sizes = [count // tiles + (n < count % tiles) for n in range(tiles)]
        expected = [n + 1 for n, size in enumerate(sizes) for _ in range(size)]
        places = range(1, count + 1)
        assert [value_of(tile(binder(), NODE, number(p), number(count), tiles)) for p in places] == expected


@pytest.mark.parametrize(("part", "whole", "expected"), [(1, 1, 0.0), (1, 5, 0.0), (3, 5, 0.5), (5, 5, 1.0)])
def test_the_percent_rank_of_the_only_row_is_zero(part: int, whole: int, expected: float) -> None:
    before, others = (less_one(binder(), NODE, number(n)) for n in (part, whole))
    assert value_of(share(binder(), NODE, before, others)) == expected
