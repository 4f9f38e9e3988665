"""`make reconstruct`: how much of everybody's secret comes back from ten thousand sums over random subsets?

Starts a proxy, asks it as any client can, solves for the secrets by least squares, and compares with what the budget
allows: whoever sees all answers guesses one person's secret, a coin toss, rightly with at most Phi(mu/2), mu^2 = 2 rho.
Prints a page for the documents; --write keeps it with its figure. Ends with 1 if more comes back than that.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

from tests.audit.figure import drawn
from tests.e2e.served import ROOT, Client, Served, serving, write_users

PAGE = ROOT / "docs" / "reconstruction.md"
FIGURE = PAGE.with_suffix(".svg")
PEOPLE, PRIME, CELLS = 200, 2003, 20  # cells: subsets of one statement, of which everybody is in one
STATEMENTS, FEWER = 500, 100  # of the budget of 1, and of the others
BUDGETS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
UNLIMITED = 5.0  # epsilon of each statement where there is no budget worth the name
_SDS = 4.5  # more right guesses than that above what is allowed are no chance: one run in 200,000
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back. rho: of the budget, 0 for none. sums: that were answered. right: share of all people."""

    epsilon: float
    rho: float
    sums: int
    right: float
    without_noise: float

    @property
    def allowed(self) -> float:
        return 0.5 * (1 + math.erf(math.sqrt(2 * self.rho) / 2 / math.sqrt(2))) if self.rho else 1.0

    @property
    def is_as_it_must_be(self) -> bool:
        return self.right <= self.allowed + _SDS * 0.5 / math.sqrt(PEOPLE)


def write_world(folder: Path, secrets: Sequence[bool]) -> list[Path]:
    """A dataset for each budget, and one with plenty."""
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute("create table people (pid integer, number integer, ill boolean)")
        connection.executemany("insert into people values (?, ?, ?)", [(n, n, s) for n, s in enumerate(secrets)])
    write_users(folder / "users.yaml", {"eve": "boss"})
    paths = []
    for number, epsilon in enumerate((*BUDGETS, 1_000_000.0)):
        path = folder / f"budget{number}.yaml"
        path.write_text(f"""version: 1
dataset: budget{number}
source: {{engine: duckdb, path: people.duckdb, data_version: "1"}}
privacy: {{unit: person, delta: 1e-6, query_epsilon: 0.1, max_query_epsilon: 100, time_grid: 0ms}}
budgets: {{dataset: {{epsilon: {epsilon}}}}}
tables:
  people:
    unit: pid
    unit_unique: true
    columns:
      pid: {{type: integer, key: true}}
      number: {{type: integer, bounds: [0, {PEOPLE}], nullable: false}}
      ill: {{type: boolean}}
access: {{users_file: users.yaml}}
""")
        paths.append(path)
    return paths


def attacked(served: Served, dataset: str, epsilon: float, statements: int, secrets: Sequence[bool]) -> Outcome:
    """Ask for sums until there are enough or the budget is spent, and solve for the secrets."""
    rng = random.Random(f"{dataset} {statements}")
    with served.connect(dataset, "eve") as client:
        rho = _number(client, "SELECT rho_limit FROM hush.budget WHERE kind = 'dataset'")
        asked = _each(client, rho, statements) if epsilon < 1e5 else UNLIMITED
        client.execute(f"SET hush.epsilon = {asked:.6f}; SET hush.nonnegative = off".encode())
        equations = list(_sums(client, rng, statements))
    matrix, sums = np.array([members for members, _ in equations]), np.array([found for _, found in equations])
    solved = np.linalg.lstsq(matrix, sums, rcond=None)[0]
    exact = np.linalg.lstsq(matrix, matrix @ np.array(secrets, float), rcond=None)[0]
    right, without = (float(np.mean((x > 0.5) == np.array(secrets))) for x in (solved, exact))
    return Outcome(epsilon, rho if epsilon < 1e5 else 0.0, len(equations), right, without)


def _each(client: Client, rho: float, statements: int) -> float:
    """An epsilon of which so many statements just fit into the budget."""
    low, high = 1e-4, 50.0
    for _ in range(16):
        middle = math.sqrt(low * high)
        client.execute(f"SET hush.epsilon = {middle:.6f}".encode())
        priced = _number(client, "SELECT max(rho) FROM hush.estimate('SELECT count(*) FROM people')")
        low, high = (middle, high) if priced * statements <= rho else (low, middle)
    return low * 0.999


def _sums(client: Client, rng: random.Random, statements: int) -> Iterator[tuple[Numbers, float]]:
    """The members of each subset, and how many of them are ill, as it was answered."""
    numbers = np.arange(PEOPLE)
    for _ in range(statements):
        a, b = rng.randrange(1, PRIME), rng.randrange(PRIME)
        subset = f"(number * {a} + {b}) % {PRIME} % {CELLS}"
        for cell, found in client.execute(
            f"SELECT {subset} AS cell, count(*) FROM people WHERE ill GROUP BY 1".encode()
        ).fetchall():
            if cell is None:
                continue  # the rows of nobody
            yield ((numbers * a + b) % PRIME % CELLS == int(cell)).astype(float), float(found)


def _number(client: Client, sql: str) -> float:
    ((found,),) = client.execute(sql.encode()).fetchall()
    return float(found)


# --- the page -----------------------------------------------------------------------------------------------------

_PAGE = """\
# What comes back from ten thousand sums

Written by `make reconstruct`, over the wire as any client can.

{people} people have a secret each, a coin toss, and a number that everybody knows. An attacker asks how many of a
random subset of them have the secret, again and again, until the budget of the dataset is spent; each statement asks
for {cells} subsets, of which everybody is in one. Least squares give the secrets that fit best. Without noise they
would be right about {without:.0%} of the people; half are right by guessing.

What a budget allows is known: whoever sees every answer is right about one person's secret with a probability of at
most Phi(mu/2), mu^2 = 2 rho. Of {people} people that share is right on average, give or take {sd:.1%}.

![Share of secrets that came back, over budgets, beside the line of what is allowed](reconstruction.svg)

| budget (epsilon) | sums answered | right | allowed |
| --- | --- | --- | --- |
{lines}
Averages of repeats, differences of two sums and questions about one person are sums too: what `2 rho` bounds is the sum
of 1/sd^2 over all answers, whatever is made of them. `tests/attacks/test_reconstruction.py` checks that over the wire;
`make audit` measures what one answer tells of who is there.
"""


def written(outcomes: Sequence[Outcome]) -> str:
    lines = "".join(
        f"| {f'{o.epsilon:g}' if o.rho else 'none'} | {o.sums} | {o.right:.1%} | {o.allowed:.1%} |\n" for o in outcomes
    )
    return _PAGE.format(people=PEOPLE, cells=CELLS, without=min(o.without_noise for o in outcomes), lines=lines,
                        sd=0.5 / math.sqrt(PEOPLE))  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.audit.reconstruct", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)} and its figure")
    options = parser.parse_args()
    outcomes = list(_outcomes())
    page = written(outcomes)
    print(page)
    if options.write:
        PAGE.write_text(page)
        points = [(o.epsilon, o.right) for o in outcomes if o.rho]
        allowed = [(o.epsilon, o.allowed) for o in outcomes if o.rho]
        FIGURE.write_text(drawn(points, allowed, across="epsilon of the dataset's budget", up="secrets that came back"))
    return 0 if all(o.is_as_it_must_be for o in outcomes) and outcomes[-1].right > 0.9 else 1


def _outcomes() -> Iterator[Outcome]:
    secrets = [random.Random(f"secret {n}").random() < 0.5 for n in range(PEOPLE)]
    with tempfile.TemporaryDirectory(prefix="reconstruct") as name:
        folder = Path(name)
        with serving(folder, write_world(folder, secrets)) as served:
            for number, epsilon in enumerate((*BUDGETS, 1e6)):
                statements = STATEMENTS if epsilon == 1 else FEWER
                found = attacked(served, f"budget{number}", epsilon, statements, secrets)
                print(f"{epsilon:g}: {found.right:.3f} of {found.allowed:.3f}", file=sys.stderr, flush=True)
                yield found


if __name__ == "__main__":
    sys.exit(main())
