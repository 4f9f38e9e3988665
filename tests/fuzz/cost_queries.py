"""Statements of families that can be made as long as one likes, for what it costs to plan them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

_LEAVES = (
    "age > {n}", "age + {n} < 50", "city = 'c{n}'", "age BETWEEN {n} AND 90", "height * {n} >= 2.5", "plan = 'pro'",
    "city LIKE 'c{n}%'", "age IN ({n}, 7)", "coalesce(weight, {n}) > 1", "joined > DATE '2020-01-01' + {n}",
    "age IS NOT NULL", "length(city) = {n}", "extract(month FROM joined) = {n}",
)  # fmt: skip
_VALUES = ("age", "age + {n}", "least(age, {n})", "height", "height * {n}", "CASE WHEN age > {n} THEN height END",
           "coalesce(age, {n})", "abs(age - {n})", "round(height / {n}.5)")  # fmt: skip
_AGGREGATES = ("sum({v})", "avg({v})", "count({v})", "count(*) FILTER (WHERE {c})", "sum({v}) FILTER (WHERE {c})",
               "min(age)", "stddev({v})", "var_pop({v})", "count(DISTINCT city)")  # fmt: skip
_KEYS = ("plan", "age / {n}", "city", "date_trunc('month', joined)", "CASE WHEN age > {n} THEN 'old' ELSE 'young' END",
         "extract(year FROM joined)", "age > {n}", "least(age, {n})")  # fmt: skip

_COLUMNS = "user_id, age, height, weight, city, plan, joined"
_AROUND = ("abs({} - {n})", "least({}, {n})", "coalesce({}, {n})", "greatest({} + 1, {n})")

Family = Callable[[random.Random, int], str]


def condition(rng: random.Random, number: int) -> str:
    return rng.choice(_LEAVES).format(n=number)


def value(rng: random.Random, number: int) -> str:
    return rng.choice(_VALUES).format(n=number + 1)


def _aggregate(rng: random.Random, number: int) -> str:
    return rng.choice(_AGGREGATES).format(v=value(rng, number), c=condition(rng, number))


def _flat(operator: str) -> Family:
    def made(rng: random.Random, size: int) -> str:
        return f"SELECT count(*) FROM users WHERE {f' {operator} '.join(condition(rng, n) for n in range(size))}"

    return made


def _both(rng: random.Random, size: int) -> str:
    parts = [f"({condition(rng, n)} {rng.choice(('AND', 'OR'))} {condition(rng, n + 1)})" for n in range(size)]
    return f"SELECT count(*) FROM users WHERE {rng.choice((' AND ', ' OR ')).join(parts)}"


def _filters(rng: random.Random, size: int) -> str:
    counts = (f"count(*) FILTER (WHERE {condition(rng, n)} AND {condition(rng, n + 1)})" for n in range(size))
    return f"SELECT {', '.join(counts)} FROM users"


def _aggregates(rng: random.Random, size: int) -> str:
    return f"SELECT {', '.join(_aggregate(rng, n) for n in range(size))} FROM users"


def _grouped(rng: random.Random, size: int) -> str:
    return f"SELECT plan, {', '.join(_aggregate(rng, n) for n in range(size))} FROM users GROUP BY plan"


def _case(rng: random.Random, size: int) -> str:
    branches = " ".join(f"WHEN {condition(rng, n)} THEN {value(rng, n)}" for n in range(size))
    return f"SELECT sum(least(greatest(CASE {branches} END, 0), 9)) FROM users"


def _simple_case(rng: random.Random, size: int) -> str:
    return f"SELECT sum(CASE age {' '.join(f'WHEN {n} THEN {rng.randrange(9)}' for n in range(size))} END) FROM users"


def _case_key(rng: random.Random, size: int) -> str:
    branches = " ".join(f"WHEN {condition(rng, n)} THEN 'g{rng.randrange(size)}'" for n in range(size))
    return f"SELECT CASE {branches} END AS g, count(*) FROM users GROUP BY 1"


def _keys(rng: random.Random, size: int) -> str:
    keys = [rng.choice(_KEYS).format(n=n + 1) for n in range(size // 8 + 1)]
    return f"SELECT count(*) FROM users GROUP BY {', '.join(keys)}"


def _joins(rng: random.Random, size: int) -> str:
    stores = " ".join(f"JOIN stores s{n} ON s{n}.store_id = o.store_id" for n in range(size // 8 + 1))
    return f"SELECT s0.region, count(*) FROM orders o {stores} GROUP BY s0.region"


def _ctes(rng: random.Random, size: int) -> str:
    levels = [f"c{n} AS (SELECT user_id, age, city, height FROM {f'c{n - 1}' if n else 'users'} WHERE age > {n})"
              for n in range(size // 4 + 1)]  # fmt: skip
    return f"WITH {', '.join(levels)} SELECT count(*), {_aggregate(rng, 1).replace('city', 'age')} FROM c{size // 4}"


def _apart(rng: random.Random, size: int) -> str:
    named = [f"c{n} AS (SELECT count(*) AS n FROM users WHERE {condition(rng, n)})" for n in range(size // 8 + 1)]
    shown = " + ".join(f"c{n}.n" for n in range(len(named)))
    return f"WITH {', '.join(named)} SELECT {shown} FROM {', '.join(c.split()[0] for c in named)}"


def _deep(rng: random.Random, size: int) -> str:
    whole = "age"
    for number in range(min(size // 2, 90)):
        whole = rng.choice(_AROUND).format(whole, n=number)
    return f"SELECT sum(least(greatest({whole}, 0), 9)) FROM users"


def _selects(rng: random.Random, size: int) -> str:
    inner = "users"
    for number in range(size // 8):
        inner = f"(SELECT {_COLUMNS} FROM {inner} WHERE {condition(rng, number)}) AS t{number}"
    return f"SELECT count(*) FROM {inner}"


def _memberships(rng: random.Random, size: int) -> str:
    parts = (f"user_id IN (SELECT user_id FROM orders WHERE amount > {n})" for n in range(size // 8 + 1))
    return f"SELECT count(*) FROM users WHERE {' AND '.join(parts)}"


def _sets(rng: random.Random, size: int) -> str:
    sets = [f"({', '.join(rng.sample(('plan', 'city', 'age'), rng.randrange(4)))})" for _ in range(size // 8 + 1)]
    return f"SELECT plan, city, age, count(*) FROM users GROUP BY GROUPING SETS ({', '.join(sets)})"


def _having(rng: random.Random, size: int) -> str:
    tests = " AND ".join(f"count(*) + {n} > {rng.randrange(9)}" for n in range(size))
    order = ", ".join(f"sum(age) + {n}" for n in range(size))
    return f"SELECT plan, count(*) FROM users GROUP BY plan HAVING {tests} ORDER BY {order}"


def _arguments(rng: random.Random, size: int) -> str:
    return f"SELECT sum(coalesce({', '.join(value(rng, n) for n in range(size))})) FROM users"


def _texts(rng: random.Random, size: int) -> str:
    listed = ", ".join(f"'{n}'" for n in range(size * 4))
    return (
        f"SELECT count(*) FROM users WHERE city IN ({listed}) OR city NOT IN ({listed.replace('1', 'x')}, upper('a'))"
    )


FAMILIES: Mapping[str, Family] = {
    "AND": _flat("AND"), "OR": _flat("OR"), "AND and OR": _both, "filters": _filters, "aggregates": _aggregates,
    "grouped aggregates": _grouped, "CASE": _case, "simple CASE": _simple_case, "CASE as key": _case_key, "keys": _keys,
    "joins": _joins, "CTEs": _ctes, "CTEs side by side": _apart, "deep": _deep, "sub-selects": _selects,
    "memberships": _memberships, "grouping sets": _sets, "HAVING": _having, "arguments": _arguments, "lists": _texts,
}  # fmt: skip
