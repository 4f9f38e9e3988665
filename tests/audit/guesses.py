"""How often is an attacker right about one person: by differences, by averages, by the best question, by an outlier?

A thousand towns have a target each, so that one budget pays for a thousand independent guesses: the answers for all
towns reveal no more of a person than those for the person's own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import duckdb
import numpy as np
import numpy.typing as npt

from tests.audit.figure import drawn
from tests.e2e.served import Client, Served, write_users, write_yaml

TOWNS, OTHERS = 1000, 3  # others: people of a town of whom everything is known
BUDGETS = (0.5, 1.0, 2.0, 5.0, 10.0)
_REPEATS = 20
_TARGET = 0  # the number of each town's target; the others' are 1 and more
_USUAL, _MOST = 50, 100  # an amount, and the declared bound, which an outlier is far above
_SDS = 4.5  # more right guesses than that above what is allowed are no chance: one line in 200,000
Numbers = npt.NDArray[np.float64]
Guesses = npt.NDArray[np.bool_]
Ask = Callable[[str], Numbers]  # an expression, with FROM and WHERE if need be: its value for each town


@dataclass(frozen=True, slots=True)
class Attack:
    """A way to guess something about each target. statements: how many share the budget.

    apart: how many people's rows lie between both answers to what is guessed. guess: the answer, for each town.
    """

    name: str
    statements: int
    apart: int
    guess: Callable[[Ask], Guesses]

    def allowed(self, rho: float) -> float:
        """How often whoever sees every answer is right at most: Phi(apart mu/2), mu^2 = 2 rho."""
        return 0.5 * (1 + math.erf(self.apart * math.sqrt(2 * rho) / 2 / math.sqrt(2)))


@dataclass(frozen=True, slots=True)
class Guessed:
    """What an attack achieved with a budget."""

    attack: Attack
    epsilon: float
    rho: float
    right: float

    @property
    def allowed(self) -> float:
        return self.attack.allowed(self.rho)

    @property
    def is_as_it_must_be(self) -> bool:
        return self.right <= self.allowed + _SDS * 0.5 / math.sqrt(TOWNS)


def _by_difference(ask: Ask) -> Guesses:
    others = ask(f"count(*) FROM people WHERE ill AND number <> {_TARGET}")
    return (ask("count(*) FROM people WHERE ill") - others) > 0.5


def _by_average(ask: Ask) -> Guesses:
    """The same count in other words, which all rows pass; the others are not ill."""
    each = [ask(f"count(*) FROM people WHERE ill AND number < {OTHERS + 1 + n}") for n in range(_REPEATS)]
    return sum(each, np.zeros(TOWNS)) / _REPEATS > 0.5


def _by_the_best_question(ask: Ask) -> Guesses:
    """One that a person moves by the whole bound, in one direction or the other."""
    return ask("sum(CASE WHEN ill THEN 1e0 ELSE -1e0 END) FROM people") > -OTHERS


def _by_an_outlier(ask: Ask) -> Guesses:
    return ask("sum(amount) FROM people WHERE is_listed") - OTHERS * _USUAL > _MOST / 2


ATTACKS = (
    Attack("a difference of two counts", 2, 2, _by_difference),
    Attack(f"an average of {_REPEATS} counts in other words", _REPEATS, 2, _by_average),
    Attack("the best question, once", 1, 2, _by_the_best_question),
    Attack("whether an outlier is there", 1, 1, _by_an_outlier),
)


def secrets() -> Sequence[bool]:
    return [random.Random(f"target {n}").random() < 0.5 for n in range(TOWNS)]


def datasets() -> Mapping[str, tuple[Attack, float]]:
    """The attack and the budget of each dataset."""
    return MappingProxyType({
        f"guess{a}{b}": (attack, epsilon) for a, attack in enumerate(ATTACKS) for b, epsilon in enumerate(BUDGETS)
    })  # fmt: skip


def write_world(folder: Path) -> list[Path]:
    """One table for all: targets are ill, or in the list, by their secret; their amount is beyond all bounds."""
    with duckdb.connect(str(folder / "towns.duckdb")) as connection:
        connection.execute("create table people (pid integer, town integer, number integer, ill boolean,"
                           " is_listed boolean, amount double)")  # fmt: skip
        others = f"{TOWNS} + r, r % {TOWNS}, 1 + r // {TOWNS}, false, true, {_USUAL} from range({TOWNS * OTHERS}) t(r)"
        connection.execute(f"insert into people select {others}")
        connection.executemany(f"insert into people values (?, ?, {_TARGET}, ?, ?, 1e9)",
                               [(n, n, secret, secret) for n, secret in enumerate(secrets())])  # fmt: skip
    write_users(folder / "users.yaml", {"eve": "boss"})
    columns = {
        "town": {"type": "integer", "bounds": [0, TOWNS - 1], "nullable": False},
        "number": {"type": "integer", "bounds": [0, 99], "nullable": False},
        "ill": {"type": "boolean"},
        "is_listed": {"type": "boolean"},
        "amount": {"type": "double precision", "bounds": [0, _MOST], "nullable": False},
    }
    return [
        policy_of_people(folder, name, "towns.duckdb", epsilon, columns) for name, (_, epsilon) in datasets().items()
    ]


def policy_of_people(folder: Path, dataset: str, data: str, epsilon: float, columns: Mapping[str, object]) -> Path:
    """Of one table with one row for each person. data: the file's name. epsilon: of the whole dataset."""
    document = {
        "version": 1,
        "dataset": dataset,
        "source": {"engine": "duckdb", "path": data, "data_version": "1"},
        "privacy": {
            "unit": "person", "delta": 1e-6, "query_epsilon": 0.1, "max_query_epsilon": 100, "time_grid": "0ms"
        },
        "budgets": {"dataset": {"epsilon": epsilon}},
        "tables": {"people": {"unit": "pid", "unit_unique": True, "columns": {
            "pid": {"type": "integer", "key": True}, **columns
        }}},
        "access": {"users_file": "users.yaml"},
    }  # fmt: skip
    return write_yaml(folder / f"{dataset}.yaml", document)


def guesses(served: Served, each: Callable[[Client, float, int], float]) -> Iterator[Guessed]:
    """Every attack with every budget. each: the epsilon of which so many statements just fit into a rho."""
    for dataset, (attack, epsilon) in datasets().items():
        with served.connect(dataset, "eve") as client:
            ((limit,),) = client.execute("SELECT rho_limit FROM hush.budget WHERE kind = 'dataset'").fetchall()
            asked = each(client, float(limit), attack.statements)
            client.execute(f"SET hush.epsilon = {asked:.6f}; SET hush.nonnegative = off".encode())
            found = attack.guess(_asking(client))
            yield Guessed(attack, epsilon, float(limit), float(np.mean(found == np.array(secrets()))))


def table(found: Sequence[Guessed]) -> str:
    lines = (f"| {g.attack.name} | {g.epsilon:g} | {g.right:.1%} | {g.allowed:.1%} |\n" for g in found)
    return "".join(("| guessed by | budget (epsilon) | right | allowed |\n", "| --- | --- | --- | --- |\n", *lines))


def figure(found: Sequence[Guessed]) -> str:
    """What was right of each attack, and what is allowed where one person and where two lie between both answers."""
    points = {a.name: [(g.epsilon, g.right) for g in found if g.attack is a] for a in ATTACKS}
    most = {("present or not", "ill or not")[a - 1]: [(g.epsilon, g.allowed) for g in found if g.attack is of]
            for a in (1, 2) for of in [next(o for o in ATTACKS if o.apart == a)]}  # fmt: skip
    lines = {f"allowed: {name}": line for name, line in most.items()}
    return drawn(points, lines, across="epsilon of the dataset's budget", up="guesses that are right")


def _asking(client: Client) -> Ask:
    def ask(what: str) -> Numbers:
        select, rest = what.split(" FROM ", 1)
        rows = client.execute(f"SELECT town, {select} FROM {rest} GROUP BY town ORDER BY town".encode()).fetchall()
        return np.array([float(str(found)) for _, found in rows])

    return ask
