"""`make timing`: do answers take longer because of one person, and what does the time grid hide of it?

Two proxies serve databases that differ in one person, chosen so that each statement has the most to do for that person
alone. The same statement goes to one and the other in an order that is tossed for each pair, so that whatever else
the machine does meets both alike. Nothing is judged: the page that is written says what was measured on what machine.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

from benchmarks.serving import LOGIN, PASSWORD, ROOT, connect, serving

PAGE = ROOT / "docs" / "timing.md"
PEOPLE, ROWS = 20_000, 100_000
GRIDS = ("0ms", "10ms", "100ms")
STATEMENTS = {
    "100,000 rows of the person, 10 count": "SELECT count(*) FROM events WHERE n < 5",
    "100,000 keys of the person, 4 count": "SELECT what, count(*) FROM events GROUP BY what",
    "a text of 2 million letters": "SELECT count(*) FROM people WHERE upper(name) LIKE '%Z%Y%Z%'",
    "that text, compared with a short one": "SELECT count(*) FROM people WHERE name = 'nobody'",
}
Times = npt.NDArray[np.float64]

_OTHERS = f"""
create table people as select i::integer as pid, 'name ' || i as name from range({PEOPLE}) t(i);
create table events as select (i % {PEOPLE})::integer as pid, 'key ' || i % 50 as what, (i % 10)::integer as n
  from range({5 * PEOPLE}) t(i);
"""
_PERSON = f"""
insert into people values (1000000, repeat('zy', 1000000));
insert into events select 1000000, 'own key ' || i, i % 10 from range({ROWS}) t(i);
"""
_POLICY = """
version: 1
dataset: timed
source: {{engine: duckdb, path: {data}, data_version: "1"}}
privacy: {{unit: person}}
budgets: {{dataset: {{epsilon: 10}}}}
tables:
  people:
    unit: pid
    unit_unique: true
    columns: {{pid: {{type: integer, key: true}}, name: {{type: text}}}}
  events:
    unit: pid
    max_rows_per_unit: 10
    max_rows_per_group: 10
    max_groups_per_unit: 4
    columns: {{pid: {{type: integer, key: true}}, what: {{type: text}}, n: {{type: integer, bounds: [0, 9]}}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One statement under one grid: milliseconds with the person and without."""

    grid: str
    what: str
    with_person: Times
    without: Times

    @property
    def distance(self) -> float:
        """Of the two distribution functions, at most (Kolmogorov and Smirnov)."""
        places = np.sort(np.concatenate([self.with_person, self.without]))
        ours, theirs = (np.searchsorted(np.sort(t), places, side="right") for t in (self.with_person, self.without))
        return float(np.max(np.abs(ours - theirs))) / len(self.with_person)

    def line(self) -> str:
        spread = " | ".join(
            f"{np.median(t):.1f} ({np.quantile(t, 0.05):.1f} to {np.quantile(t, 0.95):.1f})"
            for t in (self.with_person, self.without)
        )
        return f"| {self.what} | {'none' if self.grid == GRIDS[0] else self.grid} | {spread} | {self.distance:.2f} |\n"


def measured(folder: Path, grid: str, pairs: int) -> Iterator[Timed]:
    with ExitStack() as stack:
        ask: list[Callable[[str], float]] = []
        for side in ("with", "without"):
            own = folder / f"{side}_{grid}"
            own.mkdir()
            policy = own / "timed.yaml"
            policy.write_text(_POLICY.format(data=folder / f"{side}.duckdb"))
            port = stack.enter_context(serving(own, policy, {}, time_grid=grid)).port
            client = stack.enter_context(
                connect(f"host=127.0.0.1 port={port} dbname=timed user={LOGIN} password={PASSWORD}")
            )
            client.execute("SET hush.fresh = on")

            def taken_ms(sql: str, ask_it: Callable[[bytes], object] = client.execute) -> float:
                started = time.perf_counter()
                ask_it(sql.encode())
                return 1000 * (time.perf_counter() - started)

            ask.append(taken_ms)
        for what, sql in STATEMENTS.items():
            yield _timed(grid, what, sql, ask, pairs)


def _timed(grid: str, what: str, sql: str, ask: list[Callable[[str], float]], pairs: int) -> Timed:
    taken = np.zeros((2, pairs))
    for one in ask:
        one(sql)  # nothing is read for the first time below
    for pair in range(pairs):
        for side in random.sample((0, 1), 2):
            taken[side, pair] = ask[side](sql)
    return Timed(grid=grid, what=what, with_person=taken[0], without=taken[1])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.timing", description=__doc__)
    parser.add_argument("--pairs", type=int, default=150)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="timing") as name:
        folder = Path(name)
        for side, more in (("with", _PERSON), ("without", "")):
            with duckdb.connect(str(folder / f"{side}.duckdb")) as connection:
                connection.execute(_OTHERS + more)
        found = [timed for grid in GRIDS for timed in measured(folder, grid, options.pairs)]
    page = written(found, options.pairs, load)
    print(page)
    PAGE.write_text(page)


def written(found: list[Timed], pairs: int, load: float) -> str:
    return f"""# What the time of an answer tells

Written by `make timing`: milliseconds until an answer, from two proxies whose data differ in one person
who makes the statement as slow as one person can. {pairs} pairs for each line, in an order that was tossed; the median,
and between which times nine of ten answers came. There were {os.cpu_count()} processors, and at the start {load:.1f}
other processes that wanted one.

The distance is that of the two distribution functions (Kolmogorov and Smirnov): 0 is alike, 1 is told apart by a single
answer. By chance alone it is above {1.63 * (2 / pairs) ** 0.5:.2f} once in a hundred lines; more often on a
busy machine, where what follows each other is slow together.

| the person has | grid | with the person | without | distance |
| --- | --- | --- | --- | --- |
{"".join(t.line() for t in found)}"""


if __name__ == "__main__":
    main()
