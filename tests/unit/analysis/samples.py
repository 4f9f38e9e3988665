"""Rows of users with values inside and outside their domains, and expressions over them."""

from __future__ import annotations

import math
from datetime import date
from itertools import product

from proxy.analysis.domains import Domains
from proxy.sql.algebra.nodes import Scalar
from tests.oracle import times
from tests.oracle.scalars import Row
from tests.oracle.values import Value
from tests.unit.plan.shop import plan

AGES: tuple[Value, ...] = (None, -5, 0, 1, 17, 50, 109, 110, 111, 2**31 - 1)
HEIGHTS: tuple[Value, ...] = (None, -1.0, 0.0, 0.4, 125.5, 250.0, 251.0, math.inf, math.nan)
JOINED: tuple[Value, ...] = tuple(
    None if d is None else times.moment_of(d)
    for d in (None, date(2019, 1, 1), date(2019, 12, 30), date(2020, 2, 29), date(2020, 12, 31), date(2030, 1, 1))
)
PLANS: tuple[Value, ...] = (None, "free", "pro", "other")


def argument(expression: str) -> tuple[Scalar, Domains]:
    found = plan(f"select count({expression}) from users")
    return found.analysed.owned.block.aggregates[0].argument, found.analysed.domains


def sample_rows() -> list[Row]:
    rows: list[Row] = []
    for age, height, joined, name in product(AGES, HEIGHTS, JOINED, PLANS):
        values = {"user_id": 1, "age": age, "height": height, "weight": 1.0, "city": "x", "plan": name,
                  "joined": joined, "born": 0}  # fmt: skip
        rows.append({(0, column): value for column, value in values.items()})
    return rows[::3]


ROWS = sample_rows()
