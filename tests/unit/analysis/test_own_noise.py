"""How much of a column's own noise is in what is summed?"""

from __future__ import annotations

import math

import pytest

from proxy.analysis.estimated import weighted
from proxy.analysis.own_noise import own_noise
from proxy.sql.algebra.nodes import Call
from proxy.sql.relations.scope import Catalog
from proxy.sqltypes import SqlType
from tests.unit.plan.survey import TABLES
from tests.unit.release.make import bound

CATALOG = Catalog(TABLES)
SD = 10.0 * math.sqrt(2.0)  # of pay


@pytest.mark.parametrize(
    ("aggregate", "sd"),
    [
        ("sum(pay)", SD), ("avg(pay)", SD), ("sum(pay + 3)", SD), ("avg(2 - pay / 4)", SD / 4),
        ("sum(-3 * pay)", 3 * SD), ("sum((pay - 1) * 2)", 2 * SD), ("sum(0 * pay)", 0.0),
        ("sum(pay / 0)", 0.0), ("avg(pay * 1e90)", 1e90 * SD), ("count(pay)", 0.0), ("var_samp(1 - 2 * pay)", 2 * SD),
        ("sum(pay) filter (where ill)", SD),
        ("sum(size) filter (where ill)", 0.0), ("avg(ill::int)", 0.0),
    ],
)  # fmt: skip
def test_noise_grows_with_the_factor_of_its_column(aggregate: str, sd: float) -> None:
    block = bound(f"select {aggregate} from people", CATALOG).block
    found = weighted(block.aggregates[0], block)
    assert found is not None
    assert found.own.sd == pytest.approx(sd)
    assert found.own.sd_of_square == pytest.approx(math.sqrt(5.0) * sd * sd)  # of Laplace noise


def test_what_is_no_multiple_has_no_known_noise() -> None:
    block = bound("select sum(pay) from people", CATALOG).block
    with pytest.raises(AssertionError, match="a number with noise"):
        own_noise(Call("abs", (block.aggregates[0].argument,), SqlType.FLOAT8), block)
