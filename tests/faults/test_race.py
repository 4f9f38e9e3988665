"""Fifty connections race for the last of a budget."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from threading import Barrier

from proxy.admin.files import read_policy
from proxy.dp.accounting import limit_pico
from tests.faults.proxied import LOGINS, Proxied, Site, distinct_count, refusal_of, running

CONNECTIONS = 50
LIMIT = 1.3  # of the dataset, in epsilon; no multiple of a statement's cost in what is counted, rho


def ask_until_refused(proxied: Proxied, login: str, numbers: Iterator[int], start: Barrier) -> int:
    """How many answers one connection got before the budget was spent."""
    with proxied.connect(login) as client:
        start.wait()
        for answered in count():
            refused = refusal_of(partial(client.execute, distinct_count(next(numbers)).encode()))
            if refused is not None:
                assert refused.sqlstate == "DP001", refused
                return answered
    raise AssertionError("the budget lasts for ever")


def test_fifty_connections_get_exactly_what_the_budget_pays_for(site: Site) -> None:
    """As many answers as whole statements fit into the limit: none too many, none too few."""
    site.write_policy(budgets={"dataset": {"epsilon": LIMIT}, "user": {"epsilon": 1000}})
    limit = limit_pico(read_policy(site.policy, {}).privacy, LIMIT)
    numbers, start = count(), Barrier(CONNECTIONS)
    with running(site) as proxied, ThreadPoolExecutor(CONNECTIONS) as threads:
        racers = [
            threads.submit(ask_until_refused, proxied, LOGINS[i % len(LOGINS)], numbers, start)
            for i in range(CONNECTIONS)
        ]
        answered = sum(racer.result() for racer in racers)
    fit = limit // site.price()
    assert limit % site.price()
    assert fit > CONNECTIONS // 2
    assert answered == fit
    assert site.spent() == fit * site.price() <= limit
    assert sum(site.spent(f"tiny/{login}") for login in LOGINS) == site.spent()
