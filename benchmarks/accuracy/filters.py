"""How far from the best bound are counts and sums under WHERE, with profiles that know of filters and with others?

    python -m benchmarks.accuracy.filters [SCALE]

Over the demo's shop: profiles of epsilon 1 made by `hushql profile`, statements planned as a proxy plans them, bounded
answers computed by the plans' own SQL. An error is the root of bias^2 + noise^2 of all groups; that of the
oracle is the least of 60 bounds, known from the data.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import duckdb
import numpy as np

from proxy import app
from proxy.admin.commands.demo_data import generate_with_progress
from proxy.admin.files import read_policy
from proxy.config import ProfileConfig, UsersAt
from proxy.dp.accounting import knob_pico
from proxy.pipeline.alone import read_alone
from proxy.pipeline.outline import Cuts, Outline
from proxy.pipeline.plans import Task, plan_statement
from proxy.pipeline.premises import Terms, as_declared
from proxy.pipeline.statements import Understood
from proxy.plan.profile.learned import noise_of_one
from proxy.plan.profile.profile import TableProfile
from proxy.plan.release_plan import ReleasePlan
from proxy.policy.model import Policy
from proxy.sql.algebra.constants import Constants

_POLICY = Path(__file__).parents[2] / "policies" / "shop.yaml"
_PROFILES = 3
_EPSILONS = (0.5, 2.0)
_USERS = " join users using (user_id)"
FILTERS = (
    ("all", "", "true"),
    ("50 % of rows", "", "\"at\" >= timestamp '2025-01-01'"),
    ("7 % of rows", "", "store_id = 3"),
    ("5 % of rows, large", "", "amount > 120"),
    ("0.5 % of rows", "", "status = 'refunded' and store_id = 3"),
    ("half of units", _USERS, "newsletter"),
    ("7 % of units", _USERS, "plan = 'team'"),
    ("1 % of units", _USERS, "age = 60"),
    ("7 % of units, half of rows", _USERS, "plan = 'team' and \"at\" >= timestamp '2025-01-01'"),
)
ASKED = (
    ("count(*)", "", 1.0),
    ("sum(amount)", "", 1000.0),
    ("count(*)", "status", 1.0),
    ("sum(amount)", "store_id", 1000.0),
)


@dataclass(frozen=True, slots=True)
class Shop:
    """The data, and the policy of them."""

    policy: Policy
    database: duckdb.DuckDBPyConnection

    def plan(self, text: str, epsilon: float, profiles: Sequence[TableProfile]) -> ReleasePlan:
        """As a proxy plans it for somebody who may name every table."""
        premises = as_declared(self.policy, (), tuple(profiles))
        handle = read_alone(Cuts(), text, premises).handle
        assert isinstance(handle, Understood)
        assert isinstance(handle.query, Outline)
        task = Task(query=handle.query, premises=premises, terms=Terms(epsilon=epsilon),
                    constants=Constants({}, datetime(2026, 1, 1, tzinfo=UTC)))  # fmt: skip
        (plan,) = plan_statement(Cuts(), task).plans
        assert isinstance(plan, ReleasePlan)
        return plan

    def error(self, plan: ReleasePlan, truth: Mapping[object, float], largest: float) -> float:
        """The root of the mean squared error of the groups."""
        keys, found = len(plan.analysed.keys), dict.fromkeys(truth, 0.0)
        worth = plan.units_per_grid[0] * largest
        for _, *row in self.database.execute(plan.sql).fetchall():
            if (key := row[0] if keys else 0) in found:
                found[key] = row[keys] * worth
        sd = plan.sds[0] * largest
        return math.sqrt(np.mean([(found[k] - true) ** 2 + sd * sd for k, true in truth.items()]))


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with tempfile.TemporaryDirectory() as name:
        for line in _lines(Path(name), scale):
            print(line, flush=True)


def _lines(folder: Path, scale: float) -> Iterator[str]:
    data = folder / "shop.duckdb"
    generate_with_progress(data, scale, replace=True)
    os.environ["SHOP_DUCKDB"] = str(data)
    policy = read_policy(_POLICY, os.environ)
    users = folder / "users.yaml"
    users.write_text("roles: {analyst: {}}\nusers: {}\n", encoding="utf-8")
    users.chmod(0o600)
    config = ProfileConfig(policy=_POLICY, state=folder, epsilon=1.0, users=UsersAt(users))
    drawn = [app.profile(replace(config, state=folder / str(k))).findings.profiles for k in range(_PROFILES)]
    shop = Shop(policy, duckdb.connect(data, read_only=True))
    yield "filter, epsilon: error over that of the best bound: policy, sizes alone, with shares"
    for epsilon in _EPSILONS:
        every: list[tuple[float, ...]] = []
        for words, join, where in FILTERS:
            rows = [_compared(shop, asked, join, where, epsilon, drawn) for asked in ASKED]
            every += [r[:3] for r in rows]
            means = np.exp(np.log(np.array([r[:3] for r in rows])).mean(axis=0))
            each = ", ".join(
                f"{a}{' by ' + k if k else ''} {r[1]:.1f} -> {r[2]:.1f}"
                for (a, k, _), r in zip(ASKED, rows, strict=True)
            )
            yield f"{words}, {epsilon:g}: {means[0]:.1f}, {means[1]:.2f}, {means[2]:.2f} ({each})"
        yield f"geometric mean, {epsilon:g}: " + ", ".join(f"{x:.2f}" for x in np.exp(np.log(every).mean(axis=0)))


def _compared(
    shop: Shop, asked: tuple[str, str, float], join: str, where: str, epsilon: float,
    drawn: Sequence[tuple[TableProfile, ...]],
) -> tuple[float, float, float]:  # fmt: skip
    what, key, largest = asked
    text = (
        f"select {key + ', ' if key else ''}{what} from orders{join} where {where}{' group by ' + key if key else ''}"
    )
    truth, best = _oracle(
        shop, asked, join, where, noise_of_one(shop.policy.privacy, knob_pico(shop.policy.privacy, epsilon))
    )
    policy = shop.error(shop.plan(text, epsilon, ()), truth, largest)
    blind, seeing = (
        math.sqrt(np.mean([shop.error(shop.plan(text, epsilon, p), truth, largest) ** 2 for p in profiles]))
        for profiles in ([tuple(replace(p, shares=()) for p in ps) for ps in drawn], drawn)
    )
    return policy / best, blind / best, seeing / best


def _oracle(
    shop: Shop, asked: tuple[str, str, float], join: str, where: str, noise: float
) -> tuple[Mapping[object, float], float]:
    """The true groups, and the error of the best bound."""
    what, key, largest = asked
    value = "1" if what == "count(*)" else "amount"
    of = f"select user_id, {key or 0} as k, sum({value})::double / {largest} as x from orders{join}"
    rows = shop.database.execute(f"{of} where {where} group by 1, 2").fetchnumpy()
    units, unit = np.unique(np.asarray(rows["user_id"]), return_inverse=True)
    names, group = np.unique(np.asarray(rows["k"]).astype(str if key == "status" else int), return_inverse=True)
    x = np.asarray(rows["x"], dtype=np.float64)
    norms = np.sqrt(np.bincount(unit, x * x, len(units)))
    whole = np.bincount(group, x, len(names))
    errors = []
    for bound in norms.max() * 2.0 ** (-np.arange(60) / 4.0):
        left = np.bincount(group, x * np.minimum(1.0, bound / norms)[unit], len(names))
        errors.append(math.sqrt(np.mean((whole - left) ** 2 + (bound * noise) ** 2)))
    truth = {n.item(): float(w) * largest for n, w in zip(names, whole, strict=True)}
    return MappingProxyType(truth), min(errors) * largest


if __name__ == "__main__":
    main()
