"""Can one solve for everybody's secret from many noisy sums, average the noise away, or take one sum from another?

All numbers of a dataset together tell at most what its budget allows. With standard deviations s of counts that one
person moves by one, the sum of 1/s^2 over all answers is at most mu^2 = 2 rho of the budget, and then no way to combine
them is right about one person's secret, a coin toss, more often than Phi(mu/2).
"""

from __future__ import annotations

import math
from itertools import count

import numpy as np
import psycopg
import pytest

from tests.attacks.hostile import Attacked, Client, rows, value

PEOPLE = 64
EACH = 0.1  # epsilon of one statement, of the budget of 1 of dataset `bits`
SECRET = [number % 2 == 0 for number in range(PEOPLE)]  # as `ok` of the people is
SIGNS = np.array([[(-1) ** (row & column).bit_count() for column in range(PEOPLE)] for row in range(PEOPLE)])


def guessed(client: Client) -> tuple[list[bool], float]:
    """Everybody's secret as the sums of 64 subsets tell it, and what the answers tell in all: the sum of 1/s^2.

    The subsets are those of a Hadamard matrix, so that what noise does to one guess is independent of the others.
    """
    sums, told = [], 0.0
    for row in SIGNS:
        members = ", ".join(str(number) for number in range(PEOPLE) if row[number] > 0)
        sql = f"SELECT count(*), hush.sd(count(*)) FROM people WHERE ok AND i - 1 IN ({members})"
        ((found, sd),) = rows(client, sql)
        sums.append(float(str(found)))
        told += float(str(sd)) ** -2
    estimates = SIGNS.T @ (2 * np.array(sums) - sums[0]) / PEOPLE
    return [not bool(e > 0.5) for e in estimates], told


def right(guesses: list[bool]) -> int:
    """How many of the 63 whose errors are independent."""
    return sum(g == s for g, s in zip(guesses[1:], SECRET[1:], strict=True))


def budget_of(client: Client) -> float:
    return value(client, "SELECT rho_limit FROM hush.budget WHERE kind = 'dataset'")


@pytest.mark.statistical
def test_what_a_budget_allows_reconstructs_nobody_and_plenty_reconstructs_everybody(attacked: Attacked) -> None:
    """63 independent guesses, each right with at most p: that many are right less than once in 10^9 runs."""
    with attacked.connect(login="boss", epsilon=100) as plenty:
        plenty.execute("SET hush.nonnegative = off")
        assert right(guessed(plenty)[0]) == PEOPLE - 1  # each is wrong below 1e-11 at a distance of half a person
    with attacked.connect("bits", "boss", epsilon=EACH) as client:
        client.execute("SET hush.nonnegative = off")
        guesses, told = guessed(client)
        rho = budget_of(client)
        assert told <= 2 * rho
        p = 0.5 * (1 + math.erf(math.sqrt(2 * rho) / 2 / math.sqrt(2)))
        most = next(k for k in count(30) if tail(k, p) < 1e-9)
        assert most < PEOPLE - 1, "the bound must be able to fail"
        assert right(guesses) < most
        with pytest.raises(psycopg.Error) as spent:  # averaging goes on until nothing is left
            for _ in range(PEOPLE):
                client.execute("SET hush.fresh = on")
                told += value(client, "SELECT hush.sd(count(*)) FROM people") ** -2
        assert spent.value.sqlstate == "DP001"
        assert told <= 2 * rho


def tail(least: int, p: float) -> float:
    """The probability of so many heads or more of 63."""
    return sum(math.comb(PEOPLE - 1, k) * p**k * (1 - p) ** (PEOPLE - 1 - k) for k in range(least, PEOPLE))
