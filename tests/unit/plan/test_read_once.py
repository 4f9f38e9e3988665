"""Do measures mean the same over values that were read once as over the rows themselves?"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date
from types import MappingProxyType

import duckdb
import pytest

from proxy.plan.sql.moment_sql import MomentTerms, SharedColumns
from proxy.policy.model import Bounded, Column, Table, UnitColumns, WrittenBound
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import TABLES, context, plan

#: Its columns have the names that the private SQL gives to what it computes.
ODD = Table(
    name="orders",
    relation=("orders",),
    ownership=UnitColumns(("u0",)),
    rows_per_unit=WrittenBound(60),
    rows_per_group=WrittenBound(60),
    groups_per_unit=WrittenBound(12),
    columns=(
        Column(name="u0", type=SqlType.INT4, key=True),
        Column(name="b0", type=SqlType.INT4, domain=Bounded(-7, 9)),
        Column(name="b1", type=SqlType.INT8, domain=Bounded(-3, 3), nullable=False),
        Column(name="v0", type=SqlType.FLOAT8, domain=Bounded(-2, 2)),
        Column(name="k0", type=SqlType.NUMERIC, domain=Bounded(0, 4)),
        Column(name="n", type=SqlType.FLOAT4, domain=Bounded(0, 1), nullable=False),
        Column(name="c0", type=SqlType.DATE, domain=Bounded(date(2024, 1, 1), date(2024, 12, 31))),
        Column(name="m0", type=SqlType.TEXT),
    ),
)
MEASURES = (
    "sum(b0 * b0)", "sum(b0 / b1), sum(b0 % b1), sum(b1 * b0)", "sum(b0 / 2), sum(b0 / 2.0)", "sum(v0 * b0 - v0)",
    "sum(b0 * (1 - k0)), sum(b0 * (1 - k0) * (1 + v0)), sum(b0)", "avg(b1 * b1), count(b1 * b1), count(*)",
    "sum(n * b1), sum(n * n)", "sum(coalesce(b0, 1) * b0)", "sum(nullif(b0, 3) * b0)", "sum(abs(b0) + b0)",
    "sum(CASE WHEN b0 > 3 THEN b0 ELSE v0 END), sum(b0 * v0)", "sum((b0::numeric) / 4 * b0)", "sum(v0::integer * v0)",
    "sum(b0::float8 / 3 - b0)", "sum(extract(day from c0) * extract(month from c0))", "sum(greatest(b0, b1) * b0)",
    "sum(sqrt(v0) * v0), sum(exp(v0) + v0)", "sum(power(v0, 2) + v0)", "stddev(b0 * v0), corr(b0 * b1, v0 + v0)",
    "sum(b0 * b0) FILTER (WHERE b0 > 2), sum(b0 * b0) FILTER (WHERE v0 > 0)", "sum(floor(v0) * v0)", "sum(-v0 * v0)",
    "sum(least(v0, k0) * k0)", "sum(round(k0, 1) * k0)", "sum(b0 * 1e6 * b0)",
    "sum(b0 * b0), sum(CASE WHEN m0 = 'a' THEN b0 END)",
)  # fmt: skip
KEYS = ("", "b0", "v0 * v0")

VALUES: tuple[tuple[object, ...], ...] = (
    (0, 1, 2, 3, None, -7, 9, -(2**31), 2**31 - 1, 5, -1),
    (0, 1, -1, None, 3, -3, 2**63 - 1, -(2**63)),
    (0.0, -0.0, 1.5, -1.5, None, "nan", "inf", "-inf", 1e308, 5e-324, 0.5),
    (0, "0.01", "3.99", None, "9999999999.99", -4, 2),
    (0.1, 0.7, None, "nan", "inf", 3e38),
    ("2024-02-29", "2024-12-31", None, "1900-01-01", "infinity", "5000000-01-01"),
    ("", "a", None, "ab", "2"),
)  # of the columns, in order


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        'create table orders (u0 integer, b0 integer, b1 bigint, v0 double, k0 decimal(12, 2), "n" float, c0 date,'
        " m0 varchar)"
    )
    chosen = random.Random(1)
    made = [(r % 40, *(chosen.choice(values) for values in VALUES)) for r in range(400)]
    connection.executemany("insert into orders values (?, ?, ?, ?, ?, ?, ?, ?)", made)
    return connection


@pytest.mark.parametrize("measures", MEASURES)
def test_measures_mean_the_same_over_columns_that_are_read_once(
    measures: str, rows: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = replace(context(), tables=MappingProxyType({**TABLES, "orders": ODD}))
    queries = [f"select {measures} from orders" + (f" group by {key}" if key else "") for key in KEYS]
    shared = [plan(query, of).sql for query in queries]
    monkeypatch.setattr(MomentTerms, "read_once", lambda _self: SharedColumns({}, {}))
    apart = [plan(query, of).sql for query in queries]
    assert any(ours != theirs for ours, theirs in zip(shared, apart, strict=True))
    for query, ours, theirs in zip(queries, shared, apart, strict=True):
        found, wanted = (sorted(map(repr, rows.execute(sql).fetchall())) for sql in (ours, theirs))
        assert found == wanted, query
