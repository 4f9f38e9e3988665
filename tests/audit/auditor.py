"""Asks a running proxy about neighbouring databases, as any client can, and compares with what it says it charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import psycopg

from tests.audit.evidence import ROUNDS, Promise, Scores, at_least, power, proven
from tests.audit.world import KEYS, KEYS_EPSILON, MIDDLE, MODES, PLACES_OF_ONE, WITH, WITHOUT
from tests.e2e.served import Client, Served

ALONE = 4_000  # answers to a statement without groups
NULL = -1e9

Numbers = npt.NDArray[np.float64]  # the columns of all rows of an answer
Score = Callable[[Numbers], Scores]  # one for each pair of neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of release, asked for so many times. promises, epsilon and score: of each mode, as in MODES."""

    name: str
    sql: str
    promises: tuple[Promise, Promise]
    epsilon: tuple[float, float]
    score: tuple[Score, Score]
    times: int = 1


def last(numbers: Numbers) -> Scores:
    return numbers[:, -1]


def sum_of_a_person(numbers: Numbers) -> Scores:
    found: Scores = last(numbers).reshape(-1, PLACES_OF_ONE).sum(axis=1)
    return found


def least_of_a_person(numbers: Numbers) -> Scores:
    found: Scores = last(numbers).reshape(-1, PLACES_OF_ONE).min(axis=1)
    return found


def rows_and_side(numbers: Numbers) -> Scores:
    """The number of rows, and whether the median is on the person's side: both are in the charge."""
    return numbers[:, -2] + 3 * (numbers[:, -1] > MIDDLE)


def rows_and_vote(numbers: Numbers) -> Scores:
    """The number of rows, and whether the mode is the person's value: both are in the charge."""
    return numbers[:, -2] + 3 * (numbers[:, -1] > 0)


def total_and_part(numbers: Numbers) -> Numbers:
    """Of the three rows of a place, those that the person is in: the part with large v, and the total behind it."""
    return last(numbers).reshape(-1, 3)[:, 1:]


def sum_of_both_sets(numbers: Numbers) -> Scores:
    found: Scores = total_and_part(numbers).sum(axis=1)
    return found


def least_of_both_sets(numbers: Numbers) -> Scores:
    found: Scores = total_and_part(numbers).min(axis=1)
    return found


GAUSSIAN_OR_LAPLACE = (Promise.MU, Promise.EPSILON)
KINDS = (
    Kind(name="count, one statement each", sql="SELECT count(*) FROM lone", promises=GAUSSIAN_OR_LAPLACE,
         epsilon=(5, 1), score=(last, last), times=ALONE),
    Kind(name="count by public key", sql="SELECT place, count(*) FROM people GROUP BY place ORDER BY place",
         promises=GAUSSIAN_OR_LAPLACE, epsilon=(5, 1), score=(last, last)),
    Kind(name="count, four groups of a person", sql="SELECT place, count(*) FROM visits GROUP BY place ORDER BY place",
         promises=GAUSSIAN_OR_LAPLACE, epsilon=(5, 2), score=(sum_of_a_person, least_of_a_person)),
    Kind(name="sum", sql="SELECT place, sum(v) FROM people GROUP BY place ORDER BY place",
         promises=GAUSSIAN_OR_LAPLACE, epsilon=(5, 1), score=(last, last)),
    Kind(name="count, two grouping sets of a person", promises=GAUSSIAN_OR_LAPLACE, epsilon=(5, 2),
         score=(sum_of_both_sets, least_of_both_sets), times=3,
         sql="SELECT place, count(*) FROM people GROUP BY GROUPING SETS ((place, v > 5), (place)) ORDER BY 1, v > 5"),
    Kind(name="count(DISTINCT x)", sql="SELECT place, count(DISTINCT tag) FROM tags GROUP BY place ORDER BY place",
         promises=GAUSSIAN_OR_LAPLACE, epsilon=(5, 1), score=(last, last)),
    Kind(name="median, with its count", promises=(Promise.RHO, Promise.EPSILON), epsilon=(2.75, 2),
         score=(rows_and_side, rows_and_side), times=2,
         sql="SELECT place, count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY score) FROM scores GROUP BY 1"
             " ORDER BY 1"),
    Kind(name="mode(), with its count", promises=(Promise.RHO, Promise.EPSILON), epsilon=(2.75, 2),
         score=(rows_and_vote, rows_and_vote), times=2,
         sql="SELECT place, count(*), mode() WITHIN GROUP (ORDER BY vote) FROM votes GROUP BY 1 ORDER BY 1"),
)  # fmt: skip
NAMED = "SELECT count(*) FROM (SELECT name, count(*) FROM named GROUP BY name) AS shown WHERE name LIKE 'name %'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was charged and what the answers prove. power: how often such answers would prove more than was charged."""

    kind: str
    mode: str
    promise: Promise
    charged: float
    proven: float
    answers: int
    power: float

    @property
    def is_flagged(self) -> bool:
        return self.proven > self.charged


def audited(served: Served, kind: Kind, mode: str) -> Finding:
    """One kind of release in one mode, with the person and without."""
    place = MODES.index(mode)
    scores, charges = [], set()
    for side in (WITH, WITHOUT):
        with served.connect(f"{mode}_{side}") as client:
            _settle(client, kind.epsilon[place])
            scores.append(kind.score[place](_numbers(client, kind.sql, kind.times)))
            charges.add(_charge(client, kind.promises[place]))
    (charged,) = charges  # whoever is in the data pays the same
    promise, (ours, theirs) = kind.promises[place], scores
    loss, counts = proven(promise, ours, theirs)
    sure = power(promise, ours, theirs, charged) if loss > charged else 0.0
    return Finding(kind=kind.name, mode=mode, promise=promise, charged=charged, proven=loss, answers=2 * counts.of,
                   power=sure)  # fmt: skip


def audited_keys(served: Served) -> Finding:
    """How many keys that are one person's alone are shown, of KEYS in one answer."""
    with served.connect("keys_with") as client:
        _settle(client, KEYS_EPSILON)
        ((shown,),) = client.execute(NAMED.encode()).fetchall()
        charged = _charge(client, Promise.DELTA)
    loss = at_least(int(str(shown)), KEYS)
    each = np.repeat((1.0, 0.0), (int(str(shown)), KEYS - int(str(shown))))
    drawn = (int(np.random.default_rng(seed).choice(each, KEYS).sum()) for seed in range(ROUNDS))
    sure = sum(at_least(number, KEYS) > charged for number in drawn) / ROUNDS
    return Finding(kind="a key of one person alone", mode="zcdp", promise=Promise.DELTA, charged=charged, proven=loss,
                   answers=2 * KEYS, power=sure)  # fmt: skip


def refuses_unlisted_keys(served: Served) -> bool:
    """Under pure accounting no key may be shown that nobody has listed."""
    with served.connect("pure_with") as client:
        try:
            client.execute(NAMED.encode())
        except psycopg.Error:
            return True
    return False


def _settle(client: Client, epsilon: float) -> None:
    """New noise for each statement, and numbers as they come: nothing is drawn towards zero or made to agree."""
    raw = "SET hush.fresh = on; SET hush.nonnegative = off; SET hush.consistency = off"
    client.execute(f"SET hush.epsilon = {epsilon}; {raw}".encode())


def _numbers(client: Client, sql: str, times: int) -> Numbers:
    """All answers, in order; NULL is a number of its own."""
    with client.pipeline():
        cursors = [client.cursor() for _ in range(times)]
        for cursor in cursors:
            cursor.execute(sql.encode())
    rows = [row for cursor in cursors for row in cursor.fetchall()]
    return np.array([[NULL if v is None else float(str(v)) for v in row] for row in rows])


def _charge(client: Client, promise: Promise) -> float:
    """What the proxy says the last statement cost, as the number that is promised."""
    ((rho, epsilon, delta),) = client.execute(b"SELECT rho, epsilon, delta FROM hush.last_query LIMIT 1").fetchall()
    match promise:
        case Promise.MU:
            return float((2 * float(str(rho))) ** 0.5)
        case Promise.RHO:
            return float(str(rho))
        case Promise.EPSILON:
            return float(str(epsilon))
        case Promise.DELTA:
            return float(str(delta))
