"""Does PostgreSQL make the integer of the definition of every number that it can store?"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from proxy.plan.sql import checked_doubles
from proxy.plan.vector.moments import ROW_UNITS, ScaledSum
from proxy.sql.algebra.nodes import TRUE, Call, Literal
from proxy.sql.render.postgres.dialect import POSTGRES
from proxy.sqltypes import SqlType
from tests.postgres_server import private_server
from tests.unit.analysis.samples import argument

_MISSING = 7
_LARGEST, _NEAREST = 1.7976931348623157e308, 5e-324
_FARTHEST_NUMERIC = Decimal("1e150")
# lowest and highest value, and whether z is measured from their middle, as averages do
_BOUNDS = (
    (0.0, 1000.0), (-500.0, 500.0), (5.0, 12.0), (-12.0, -5.0), (0.1, 0.3), (-0.7, 0.1), (0.0, 1e-3), (1e6, 3e12),
    (-1e100, 1e100), (1e-90, 2e-90), (0.0, 4e9), (-3e10, 7e11), (16.35, 97.1),
)  # fmt: skip


def measures() -> Iterator[ScaledSum]:
    of = Literal(0, SqlType.NUMERIC)
    for low, high in _BOUNDS:
        yield ScaledSum(TRUE, of, low / 2 + high / 2, (high - low) / 2)
        largest = max(abs(low), abs(high))
        yield ScaledSum(TRUE, of, 0.0, largest, low / largest, high / largest)


def numbers() -> list[Decimal]:
    """Near every end, from both sides, with more digits than doubles have; and the ends of what can be stored."""
    rng = random.Random(5)
    near: list[float] = [0.0, _NEAREST, 1e-310, 1e-150, 1e-149, 1e150, 1e151, _LARGEST]
    for low, high in _BOUNDS:
        for end in (low, high, low / 2 + high / 2):
            near += [end, math.nextafter(end, math.inf), math.nextafter(end, -math.inf)]
        near += [rng.uniform(low, high) for _ in range(5)]
    exact = [Decimal(n) for n in near]
    further = [n * (1 + sign * Decimal("1e-30")) for n in exact for sign in (-1, 1)]
    odd = [Decimal(n) for n in ("1e-400", "1e400", "NaN", "Infinity", "-Infinity")]
    return [*exact, *(-n for n in exact), *further, *odd, -odd[0], -odd[1]]


@pytest.fixture(scope="module")
def stored() -> Iterator[psycopg.Connection[Any]]:
    """A table with numerics, and one with the doubles among them."""
    server = private_server()
    server.create(
        "row_integers",
        "create table n (x numeric); create table d (x float8); create table l (x numeric(300, 150))",
    )
    with psycopg.connect(server.dsn("row_integers"), autocommit=True) as connection:
        connection.cursor().executemany("insert into n values (%s)", [(n,) for n in (*numbers(), None)])
        doubles = [float(n) for n in numbers() if not n.is_finite() or abs(n) <= Decimal(_LARGEST)]
        connection.cursor().executemany("insert into d values (%s)", [(n,) for n in (*doubles, None)])
        limited = [n for n in numbers() if n.is_nan() or abs(n) < Decimal("9.9e149")]
        connection.cursor().executemany("insert into l values (%s)", [(n,) for n in (*limited, None)])
        yield connection


def defined(value: float | Decimal | None, scaled: ScaledSum) -> int:
    """trunc(2^30 clamp((x - middle)/half)), and the zero and the ends that numerics have as doubles."""
    if isinstance(value, Decimal) and value.is_finite():
        if abs(value) > _FARTHEST_NUMERIC:
            return _MISSING
        value = 0.0 if abs(value) < Decimal("1e-150") else float(value)
    if value is None or not math.isfinite(value):
        return _MISSING
    z = (float(value) - scaled.middle) / scaled.half
    return math.trunc(ROW_UNITS * min(max(z, scaled.least), scaled.most))


@pytest.mark.parametrize("scaled", list(measures()), ids=lambda s: f"{s.middle:g},{s.half:g},{s.least:g},{s.most:g}")
def test_every_stored_number_has_the_integer_of_the_definition(
    stored: psycopg.Connection[Any], scaled: ScaledSum
) -> None:
    double = checked_doubles.scaled_integer("x", scaled, _MISSING)
    texts = [("d", double)]
    for table, limited in (("n", False), ("l", True)):
        stored_double = POSTGRES.stored("x", SqlType.NUMERIC, limited=limited)
        texts.append((table, checked_doubles.scaled_integer(stored_double, scaled, _MISSING)))
        numeric = checked_doubles.numeric_integer("x", scaled, str(_MISSING), limited=limited)
        texts += [(table, numeric)] * bool(numeric)
    for table, text in texts:
        found = stored.execute(f"select x, {text} from {table}".encode()).fetchall()
        assert len(found) > 100
        assert [(x, i) for x, i in found if i != defined(x, scaled)] == []


def test_most_bounds_need_no_double_to_tell_what_is_outside() -> None:
    for limited in (False, True):
        found = [checked_doubles.numeric_integer("x", s, str(_MISSING), limited=limited) for s in measures()]
        assert sum(text != "" for text in found) > len(_BOUNDS)


def test_arithmetic_that_bounds_prove_harmless_never_raises(stored: psycopg.Connection[Any]) -> None:
    """For results that are too large, and for those that are nearer to zero than all doubles but zero."""
    proven = ("0.9", "0.52", "-0.75", "1", "3", "age")
    for factor in (*proven, "0.5", "0.5000000000000001", "0.19", "height", "1e-200"):
        scalar, domains = argument(f"height * {factor}")
        assert isinstance(scalar, Call)
        assert POSTGRES.may_raise("*", domains.operands(scalar)) == (factor not in proven), factor
        if factor in proven and factor != "age":
            text = POSTGRES.call("*", ("(x)", f"({factor})"), tuple(a.type for a in scalar.args), may_raise=False)
            assert stored.execute(f"select count({text}) from d where abs(x) <= 250".encode()).fetchone() != (0,)
    for expression in ("height + 1", "height - age"):
        scalar, domains = argument(expression)
        assert isinstance(scalar, Call)
        assert not POSTGRES.may_raise(scalar.function, domains.operands(scalar))
    for expression in ("weight + 1", "height - weight", "weight * 2"):
        scalar, domains = argument(expression)
        assert isinstance(scalar, Call)
        assert POSTGRES.may_raise(scalar.function, domains.operands(scalar)), "without bounds nothing is proven"
