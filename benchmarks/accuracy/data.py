"""Made-up rows of units, skewed or flat, with the policies that could be written for them."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np

from proxy.policy.model import Bounded, Column, Listed, Table, UnitColumns, WrittenBound
from proxy.sqltypes import SqlType

UNITS = 5000
KINDS = tuple("abcdefgh")
DAYS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """unit, amount, kind and day of each row; most: rows of the unit that has most."""

    name: str
    unit: np.ndarray[tuple[int], np.dtype[np.int64]]
    amount: np.ndarray[tuple[int], np.dtype[np.float64]]
    kind: np.ndarray[tuple[int], np.dtype[np.int64]]
    day: np.ndarray[tuple[int], np.dtype[np.int64]]

    @property
    def sizes(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Rows of each unit."""
        return np.bincount(self.unit)

    def loaded(self) -> duckdb.DuckDBPyConnection:
        """A database with these rows."""
        database = duckdb.connect()
        database.execute(
            "create table orders as select unnest($u::bigint[]) as user_id, unnest($a::double[]) as amount,"
            " unnest($k::varchar[]) as kind, unnest($d::integer[]) as day",
            {"u": self.unit.tolist(), "a": self.amount.tolist(),
             "k": [KINDS[k] for k in self.kind], "d": self.day.tolist()},
        )  # fmt: skip
        return database


def skewed() -> Rows:
    """Most have a few rows and small amounts, some very many and large ones; few days have most rows."""
    rng = np.random.default_rng(11)
    sizes = np.ceil(rng.lognormal(1.0, 1.0, UNITS)).astype(int)
    unit = np.repeat(np.arange(UNITS), sizes)
    amount = np.minimum(rng.lognormal(3.0, 0.8, len(unit)), 1000.0)
    kind = np.minimum(rng.geometric(0.45, len(unit)), len(KINDS)) - 1
    day = np.minimum(rng.geometric(0.2, len(unit)), DAYS) - 1
    return Rows("skewed", unit, amount, kind, day)


def flat() -> Rows:
    """One to ten rows each, amounts evenly between 0 and 100, all kinds and days alike."""
    rng = np.random.default_rng(12)
    unit = np.repeat(np.arange(UNITS), rng.integers(1, 11, UNITS))
    amount = rng.uniform(0.0, 100.0, len(unit))
    return Rows("flat", unit, amount, rng.integers(0, len(KINDS), len(unit)), rng.integers(0, DAYS, len(unit)))


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a policy says: rows of a unit, and the largest amount."""

    name: str
    rows: int
    amount: float


def bounds_of(rows: Rows) -> dict[str, Bounds]:
    """generous: far above what there is. tight: exactly what there is. narrow: below what a twentieth of units has."""
    most, largest = int(rows.sizes.max()), float(np.ceil(rows.amount.max()))
    return {
        "generous": Bounds("generous", 3000, 10_000.0),
        "tight": Bounds("tight", most, largest),
        "narrow": Bounds("narrow", int(np.quantile(rows.sizes, 0.95)), largest),
    }


def table_of(bounds: Bounds) -> Table:
    return Table(
        name="orders", relation=("orders",), ownership=UnitColumns(("user_id",)),
        rows_per_unit=WrittenBound(bounds.rows),
        columns=(
            Column(name="user_id", type=SqlType.INT8, key=True),
            Column(name="amount", type=SqlType.FLOAT8, domain=Bounded(0.0, bounds.amount), nullable=False),
            Column(name="kind", type=SqlType.TEXT, domain=Listed(KINDS), nullable=False),
            Column(name="day", type=SqlType.INT4, domain=Bounded(0, DAYS - 1), nullable=False),
        ),
    )  # fmt: skip
