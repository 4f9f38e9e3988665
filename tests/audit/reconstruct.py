"""`make reconstruct`: how much of everybody's secret comes back from ten thousand sums over random subsets?

Starts a proxy, asks it as any client can, solves for the secrets by least squares, and compares with what the budget
allows: whoever sees all answers tells two databases that differ in one person apart with at most Phi(mu/2),
mu^2 = 2 rho, and these sums move by no more if one secret, a coin toss, is another. Other attacks are in `guesses`.
Prints a page for the documents; --write keeps it with its figures. Ends with 1 if more comes back than that.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

from tests.audit import guesses
from tests.audit.figure import drawn
from tests.audit.guesses import Guessed, policy_of_people
from tests.e2e.served import ROOT, Client, Served, serving, write_users

PAGE = ROOT / "docs" / "reconstruction.md"
FIGURE = PAGE.with_suffix(".svg")
GUESSES = PAGE.with_name("guesses.svg")
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
    columns = {"number": {"type": "integer", "bounds": [0, PEOPLE], "nullable": False}, "ill": {"type": "boolean"}}
    return [
        policy_of_people(folder, f"budget{number}", "people.duckdb", epsilon, columns)
        for number, epsilon in enumerate((*BUDGETS, 1_000_000.0))
    ]


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

What a budget allows is known: whoever sees all these sums is right about one person's secret with a probability of at
most Phi(mu/2), mu^2 = 2 rho, as each sum moves by one with the secret. Of {people} people that share is right on
average, give or take {sd:.1%}.

![Share of secrets that came back, over budgets, beside the line of what is allowed](reconstruction.svg)

| budget (epsilon) | sums answered | right | allowed |
| --- | --- | --- | --- |
{lines}
Averages of repeats, differences of two sums and questions about one person are sums too: what `2 rho` bounds is the sum
of 1/sd^2 over all answers, whatever is made of them. `tests/attacks/test_reconstruction.py` checks that over the wire;
`make audit` measures what one answer tells of who is there.

## Guesses about one person

{towns} towns have a target each, and an attacker knows everything else about a town and spends the whole budget of the
dataset on it. The towns are asked about at once, which reveals no more about anybody, and makes {towns} independent
guesses of each attack; half are right by tossing a coin, and chance alone moves a share by {guess_sd:.1%}.

Whether somebody is there is guessed rightly with a probability of at most Phi(mu/2). What somebody is like who is there
anyway, as whether a target is ill, is one person who leaves and another one who comes: the rows of two, and at most
Phi(mu) are right. With `neighbors: replace_one` in the policy the noise is twice that, and the first holds for both.

![Share of right guesses of each attack, over budgets, beside the two lines of what is allowed](guesses.svg)

{guesses}
A difference wastes half of the budget on what is known. An average of many answers tells as much as one answer at the
whole price, no more. The best question moves by the whole bound in one direction or the other; nothing tells more. An
outlier, here an amount ten million times the declared bound, is no better seen than anybody at the bound.
"""


def written(outcomes: Sequence[Outcome], guessed: Sequence[Guessed]) -> str:
    lines = "".join(
        f"| {f'{o.epsilon:g}' if o.rho else 'none'} | {o.sums} | {o.right:.1%} | {o.allowed:.1%} |\n" for o in outcomes
    )
    return _PAGE.format(people=PEOPLE, cells=CELLS, without=min(o.without_noise for o in outcomes), lines=lines,
                        sd=0.5 / math.sqrt(PEOPLE), towns=guesses.TOWNS, guess_sd=0.5 / math.sqrt(guesses.TOWNS),
                        guesses=guesses.table(guessed))  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.audit.reconstruct", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)} and its figure")
    options = parser.parse_args()
    guessed, outcomes = list(_guessed()), list(_outcomes())
    page = written(outcomes, guessed)
    print(page)
    if options.write:
        PAGE.write_text(page)
        right = [(o.epsilon, o.right) for o in outcomes if o.rho]
        allowed = [(o.epsilon, o.allowed) for o in outcomes if o.rho]
        across, up = "epsilon of the dataset's budget", "secrets that came back"
        FIGURE.write_text(drawn({"found": right}, {"allowed": allowed}, across=across, up=up))
        GUESSES.write_text(guesses.figure(guessed))
    is_as_it_must_be = all([o.is_as_it_must_be for o in outcomes] + [g.is_as_it_must_be for g in guessed])
    return 0 if is_as_it_must_be and outcomes[-1].right > 0.9 else 1


def _guessed() -> Iterator[Guessed]:
    with tempfile.TemporaryDirectory(prefix="guesses") as name, ExitStack() as running:
        folder = Path(name)
        for found in guesses.guesses(running.enter_context(serving(folder, guesses.write_world(folder))), _each):
            said = f"{found.attack.name}, {found.epsilon:g}: {found.right:.3f} of {found.allowed:.3f}"
            print(said, file=sys.stderr, flush=True)
            yield found


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
