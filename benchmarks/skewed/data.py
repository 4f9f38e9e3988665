"""Where do the rows come from that are spread unevenly over persons and groups?

The same rows wherever they are made: each is computed from its number. Of `n` persons or groups the one with number i
(from 0) has a part of 1/(2 sqrt(i n)) of all rows, so that the busiest 1 % have a tenth of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

_KNOWN = 50
_NATIONS = 25
_PLACES = 1_000


@dataclass(frozen=True, slots=True)
class Size:
    """How large one file is."""

    rows: int
    persons: int

    @property
    def name(self) -> str:
        return f"skewed-{self.rows}-{self.persons}"


def made(folder: Path, size: Size) -> Path:
    """The DuckDB file of this size, made once."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{size.name}.duckdb"
    if not path.exists():
        half = path.with_suffix(".half")
        half.unlink(missing_ok=True)
        with duckdb.connect(str(half)) as connection:
            connection.execute(f"CREATE TABLE events AS {_rows(size)}")
            places = f"SELECT i::INTEGER AS place, 'nation ' || i % {_NATIONS} AS nation FROM range({_PLACES}) t(i)"
            connection.execute(f"CREATE TABLE places AS {places}")
        half.rename(path)
    return path


def _rows(size: Size) -> str:
    """One row for each number: `person`, groups of several numbers, and two measures."""

    def uniform(salt: int) -> str:
        return f"((hash(i * 16 + {salt}) >> 11)::DOUBLE / {2**53})"

    def skewed(salt: int, of: int) -> str:
        return f"floor({of} * {uniform(salt)} * {uniform(salt)})::INTEGER"

    return (
        f"SELECT 1 + {skewed(1, size.persons)} AS person, 'known ' || {skewed(2, _KNOWN)} AS known,"
        f" 'g' || {skewed(3, 10)} AS ten, 'g' || {skewed(4, 500)} AS half_thousand,"
        f" 'g' || {skewed(5, 1_000)} AS thousand, 'g' || {skewed(6, 100_000)} AS many,"
        f" {skewed(7, _PLACES)} AS place, round(1000 * {uniform(8)} * {uniform(9)}, 2) AS amount,"
        f" floor(100 * {uniform(10)})::INTEGER AS score FROM range({size.rows}) t(i)"
    )
