"""What do the statements say that ask which share of people's rows has which value?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from proxy.dp.mechanisms import Distribution
from proxy.policy.model import Bounded, Column, Domain, Listed, Table, UnitColumns, Unknown
from proxy.session.learning.profile_questions import Sharing, Size, Sizing, bound_of, filters, text_of, weight_of
from proxy.sqltypes import SqlType as T
from tests.unit.session.make import version

ID = Column(name="user_id", type=T.INT8, key=True)
TABLE = Table(name="rows", relation=("rows",), ownership=UnitColumns(("user_id",)), columns=(ID,))
GAUSSIAN, LAPLACE = Distribution.GAUSSIAN, Distribution.LAPLACE


def asked(kind: T, domain: Domain, *, several: bool = True) -> Sharing:
    return Sharing(
        replace(TABLE, columns=(ID, Column(name="x", type=kind, domain=domain)), unit_unique=not several), "x"
    )


@pytest.mark.parametrize(
    ("kind", "domain", "part"),
    [
        (T.TEXT, Listed(("it's", "b")), """WHEN t0."x" = 'it''s' THEN 1 WHEN t0."x" = 'b' THEN 2 ELSE 0"""),
        (T.BOOL, Unknown(), 'WHEN t0."x" = false THEN 1 WHEN t0."x" = true THEN 2'),
        (T.NUMERIC, Listed((Decimal("1.50"), Decimal(2))), 'WHEN t0."x" = 1.50 THEN 1 WHEN t0."x" = 2 THEN 2'),
        (T.INT4, Bounded(3, 4), 'WHEN t0."x" = 3 THEN 1'),
        (T.FLOAT8, Bounded(1.0, 65.0), 'WHEN t0."x" IS NULL THEN 0 WHEN t0."x" <= 2 THEN 1'),
        (T.DATE, Bounded(date(2024, 1, 1), date(2024, 1, 9)), "<= date '2024-01-02' THEN 1"),
        (T.TIMESTAMP, Bounded(datetime(2024, 1, 1), datetime(2024, 3, 5)), "<= timestamp '2024-01-02 00:00:00' THEN 1"),
        (
            T.TIMESTAMPTZ,
            Bounded(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 3, 5, tzinfo=UTC)),
            "<= timestamptz '2024-01-02 00:00:00+00:00' THEN 1",
        ),
    ],
)
def test_values_are_put_into_numbered_cells(kind: T, domain: Domain, part: str) -> None:
    policy = version().policy
    for several in (True, False):
        text = text_of(asked(kind, domain, several=several), policy)
        assert part in text
        assert ("pairs" in text) is several


def test_a_share_weighs_a_fifth() -> None:
    sizing = Sizing(TABLE, Size.ROWS)
    share, alone = (asked(T.BOOL, Unknown(), several=s) for s in (True, False))
    assert [weight_of(q, GAUSSIAN) for q in (sizing, share, alone)] == [25, 2, 1]
    assert [weight_of(q, LAPLACE) for q in (sizing, share, alone)] == [5, 2, 1]
    assert [bound_of(q, GAUSSIAN) for q in (sizing, share, alone)] == [0, 2**0.5, 0]
    assert [bound_of(q, LAPLACE) for q in (sizing, share, alone)] == [0, 2, 0]


def test_columns_that_nothing_is_declared_of_are_no_filters() -> None:
    columns = (ID, Column(name="note", type=T.TEXT), Column(name="ok", type=T.BOOL),
               Column(name="secret", type=T.BOOL, hidden=True))  # fmt: skip
    of = replace(TABLE, columns=columns)
    assert filters(of) == ("ok",)
    assert not Sharing(of, "missing").cells.are_told
